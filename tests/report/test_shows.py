"""What notebooks see: plots that touch nothing, tables with their columns, cards that escape hostile names."""

import pickle
import re
import sys

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, MissingDependency
from netdp.families.gossip.plan import plan_gossip
from netdp.families.masked.plan import plan_masked
from netdp.families.shuffle.plan import calibrate_epsilon0
from netdp.privacy.wording import readable
from netdp.protocols.planning import baselines, trade_off

FLORENCE = graphs.dataset("florentine")
GOSSIP = netdp.Gossip(FLORENCE, rounds=4, sigma=4.0, masks=10.0)
LOSS = netdp.account(GOSSIP, "Medici")
PLAN = plan_gossip(graphs.hypercube(3), 1.0, 1e-6)


@pytest.fixture
def mpl():
    return pytest.importorskip("matplotlib")


# ── plots ────────────────────────────────────────────────────────────────────────────────────────────────────────────

PLOTS = {
    "graph": lambda: FLORENCE.plot(),
    "loss on a network": lambda: LOSS.plot(),
    "loss at another delta": lambda: LOSS.plot(delta=1e-3),
    "all pairs": lambda: netdp.pairwise(GOSSIP).plot(),
    "losses in order": lambda: netdp.account(netdp.RingDescent(12, rounds=2, sigma=4.0, step=0.05), [0]).plot(),
    "one curve": lambda: netdp.account(netdp.Local(12, sigma=4.0), [0]).plot(),
    "any two": lambda: netdp.account(GOSSIP, colluders=2).plot(),
    "plan": lambda: PLAN.plot(),
    "masked plan": lambda: plan_masked(graphs.hypercube(3), 1.0, 1e-6).plot(),
}


@pytest.mark.parametrize("make", PLOTS.values(), ids=PLOTS)
def test_a_plot_is_a_figure_that_belongs_to_nobody(make, mpl):
    import matplotlib.pyplot as plt

    before, style, backend = plt.get_fignums(), dict(mpl.rcParams), mpl.get_backend()
    figure = make()
    assert isinstance(figure, mpl.figure.Figure)
    content = figure._repr_png_()
    assert content.startswith(b"\x89PNG")
    assert plt.get_fignums() == before
    assert dict(mpl.rcParams) == style
    assert mpl.get_backend() == backend
    assert "Picture: " in repr(figure)


def test_a_plot_saves_itself_by_its_ending(tmp_path, mpl):
    figure = LOSS.plot()
    for ending, start in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".html", b"<!doctype")):
        assert figure.save(tmp_path / f"loss{ending}").read_bytes().startswith(start)
    with pytest.raises(InvalidValue, match="must end in"):
        figure.save(tmp_path / "loss.tiff")


def words(figure):
    from matplotlib.text import Text

    return " ".join(text.get_text() for text in figure.findobj(Text))


def test_a_loss_draws_the_network_it_was_accounted_on(mpl):
    assert "Strozzi" in words(LOSS.plot())
    without = pickle.loads(pickle.dumps(LOSS))  # workers leave the network behind
    assert without.network is None
    assert "Strozzi" not in words(without.plot())
    assert "Strozzi" in words(without.plot(FLORENCE))
    np.testing.assert_array_equal(without.factor, LOSS.factor)
    with pytest.raises(InvalidValue, match="15 parties"):
        LOSS.plot(graphs.ring(4))


def test_the_network_is_no_part_of_the_statement():
    assert "network" not in LOSS.to_dict()
    assert "network" not in repr(LOSS)


def test_a_plot_states_the_worst_epsilon_rounded_up(mpl):
    assert f"ε ≤ {readable(LOSS.worst_epsilon(1e-6))}" in words(LOSS.plot()).replace("\u00a0", " ")


def test_an_estimate_is_stated_as_one(mpl):
    guess = netdp.account(netdp.RandomizedGossip(netdp.graphs.ring(5), steps=4, sigma=4.0), 0)
    said = words(guess.plot()).replace("\u00a0", " ")
    assert "ε ≈ " in said
    assert "≤" not in said


def test_a_kind_of_picture_can_be_asked_for(mpl):
    pairs = netdp.pairwise(netdp.Gossip(FLORENCE, rounds=4, sigma=4.0))
    for loss in (LOSS, pairs):
        assert "worst party" in words(loss.plot(kind="curve"))
    assert "largest loss first" in words(LOSS.plot(kind="order"))
    assert "observer v" in words(pairs.plot(kind="pairs"))
    for loss, kind, way_out in (
        (LOSS, "pie", "network, pairs, order, curve"),
        (LOSS, "pairs", "netdp.pairwise"),
        (pairs, "network", "netdp.account"),
        (netdp.account(netdp.WalkSum(9, steps=20, sigma=4.0), 0), "network", "graph="),
    ):
        with pytest.raises(InvalidValue, match=way_out):
            loss.plot(kind=kind)
    with pytest.raises(InvalidValue, match="from_networkx"):
        LOSS.plot(graph=FLORENCE.to_networkx())


def test_without_the_library_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for make in (LOSS.plot, FLORENCE.plot, PLAN.plot):
        with pytest.raises(MissingDependency, match=r"netdp\[plot\]"):
            make()


# ── error against ε ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_lines_of_a_plan_are_certified_at_every_noise():
    for option, line in zip(PLAN.options, trade_off(PLAN, [1.0, 2.0]), strict=True):
        assert line.name == option.name
        assert list(line.epsilon) == sorted(line.epsilon)
        noisier = option.protocol.replace(sigma=2 * option.protocol.sigma)
        losses = np.asarray(netdp.pairwise(noisier).epsilon(1e-6))
        assert line.epsilon[0] >= np.nanmax(losses) * (1 - 1e-9)
        assert line.rmse[0] == pytest.approx(netdp.expected_error(noisier).rmse, rel=1e-6)


def test_lines_of_a_masked_plan_are_accounted_anew():
    plan = plan_masked(graphs.hypercube(3), 1.0, 1e-6, colluders=2)
    line = trade_off(plan, [0.5, 1.0])[0]
    quieter = plan.protocol.replace(sigma=plan.protocol.sigma / 2)
    assert line.epsilon[1] == netdp.account(quieter, colluders=2).worst_epsilon(1e-6)
    assert line.epsilon[1] > 1 >= line.epsilon[0]


def test_baselines_meet_the_plan_at_its_target():
    at = baselines(PLAN, np.array([1.0, 2.0]))
    assert at["local DP"][0] == pytest.approx(PLAN.local_rmse)
    assert at["trusted curator"][0] == pytest.approx(PLAN.curator_rmse)
    assert at["local DP"][1] < at["local DP"][0]
    assert (at["trusted curator"] < at["local DP"]).all()
    shuffled = calibrate_epsilon0(graphs.regular(300, 8, 0), 0.3, 1e-4)
    found = baselines(shuffled, np.array([shuffled.promised]))
    assert found["local DP"][0] == pytest.approx(shuffled.local_rmse)
    assert found["trusted curator"][0] == pytest.approx(shuffled.curator_rmse)


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_loss_as_a_table():
    pytest.importorskip("pandas")
    frame = LOSS.to_frame()
    assert list(frame.columns) == ["party", "observer", "epsilon", "factor", "hops"]
    assert len(frame) == 15
    medici = frame[frame.party == "Medici"].iloc[0]
    assert medici.observer
    assert np.isnan(medici.epsilon)
    assert medici.hops == 0
    np.testing.assert_array_equal(frame.epsilon, LOSS.epsilon(1e-6))
    assert frame.attrs["claim"] == "exact"
    assert LOSS.to_frame(delta=1e-3).epsilon.max() < frame.epsilon.max()


def test_all_pairs_as_a_table():
    pytest.importorskip("pandas")
    pairs = netdp.pairwise(GOSSIP)
    frame = pairs.to_frame()
    assert list(frame.columns) == ["party", "observer", "epsilon", "factor"]
    assert len(frame) == 15 * 14
    one = frame[(frame.party == "Pazzi") & (frame.observer == "Medici")].epsilon.item()
    assert one == pairs.epsilon(1e-6)[FLORENCE.index("Pazzi"), FLORENCE.index("Medici")]


def test_a_plan_as_a_table():
    pytest.importorskip("pandas")
    frame = PLAN.to_frame()
    assert list(frame.columns) == [
        "way", "family", "epsilon", "claim", "rmse", "error_claim", "times_curator", "messages_per_party", "chosen",
    ]  # fmt: skip
    assert frame.way.tolist() == [*(option.name for option in PLAN.options), "local DP", "trusted curator"]
    assert frame[frame.chosen].way.item() == PLAN.best.name
    assert (frame.epsilon.dropna() <= 1.0).all()


def test_tables_without_pandas_name_the_way_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for make in (LOSS.to_frame, PLAN.to_frame):
        with pytest.raises(MissingDependency, match=r"pandas.*netdp\[notebook\]"):
            make()


# ── cards ────────────────────────────────────────────────────────────────────────────────────────────────────────────

HOSTILE = ["<script>alert(1)</script>", "a&b", '"><img src=x onerror=y>']
BAD = graphs.Graph.from_edges(3, [(0, 1), (1, 2)], labels=HOSTILE, name="<b>bold</b>")


def every_card():
    gossip = netdp.Gossip(BAD, rounds=1, sigma=4.0)
    yield BAD
    yield netdp.account(gossip, [0])
    yield netdp.account(gossip, [0], method="published")
    yield netdp.pairwise(gossip)
    yield netdp.account(gossip, colluders=1)
    yield PLAN
    yield plan_gossip(BAD, 1.0, 1e-6)


@pytest.mark.parametrize("value", [*every_card()], ids=lambda value: type(value).__name__)
def test_cards_are_well_formed_and_harmless(value):
    from xml.etree import ElementTree

    card = value._repr_html_()
    root = ElementTree.fromstring(card)  # every tag is closed, every name escaped
    tags = {element.tag for element in root.iter()}
    assert tags <= {
        "div",
        "strong",
        "small",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "ul",
        "li",
        "p",
    }
    assert not re.search(
        r"\bon\w+=|javascript:|url\(|#[0-9a-f]{3,6}", re.sub(r"&[a-z#0-9]+;", "", re.sub(r">[^<]*<", "><", card))
    )


def test_the_card_of_a_loss_says_all_it_must():
    card = LOSS._repr_html_()
    assert f"ε = {readable(LOSS.worst_epsilon(1e-6))} at δ = 10⁻⁶" in card
    assert LOSS.claim.meaning in card
    assert "party Medici" in card
    from html import escape

    for line in (*LOSS.assumptions, *LOSS.references):
        assert escape(line) in card  # word for word
    assert card.index("<details>") < card.index(escape(LOSS.assumptions[0]))
    assert "Not a guarantee" not in card
    assert "Not a guarantee" in netdp.account(GOSSIP, 0, method="published")._repr_html_()


def test_the_card_of_a_plan_names_every_way_and_the_choice():
    card = PLAN._repr_html_()
    for option in PLAN.options:
        assert f">{option.name}<" in card
        assert readable(option.rmse) in card
    assert "✓" in card
    assert "trusted curator" in card


def test_a_study_shows_itself():
    from netdp.peers.study import Study
    from netdp.peers.study.task import Task

    task = Task(kind="mean", column="x", bounds=(0, 10))
    study = Study.plan("a <b> study", task, ["a", "b", "c", "d"], graph="ring:4", epsilon=1.0, delta=1e-6)
    card = study._repr_html_()
    assert "a &lt;b&gt; study" in card
    assert "<script" not in card
