"""`netdp protocols`, and every protocol from the command line."""

import dataclasses
import json
import shlex

import pytest

import netdp.protocols
from netdp.protocols import Protocol
from netdp.settings.catalogue import CATALOGUE, LEFT_OUT, RENAMED
from netdp.settings.models import protocol_fields

#: Protocols that a command cannot state: a path of users, messages written out.
ONLY_IN_PYTHON = {"PathSum", "LinearGaussianView", "TreeSum"}


def test_every_protocol_can_be_reached():
    reached = {way.protocol for entry in CATALOGUE.values() for way in entry.ways.values()}
    ours = {kind.__name__ for kind in Protocol.kinds().values() if kind.__module__.startswith("netdp.")}
    assert ours - reached <= ONLY_IN_PYTHON
    assert reached <= set(dir(netdp.protocols))


def test_every_field_is_a_setting_or_named_as_left_out():
    for entry in CATALOGUE.values():
        for way in entry.ways.values():
            kind = getattr(netdp.protocols, way.protocol)
            fields = {field.name for field in dataclasses.fields(kind)} - {"n", "graph", "graphs", "links"}
            settings = {{new: old for old, new in RENAMED.items()}.get(name, name) for name in protocol_fields(way)}
            assert fields - settings <= set(LEFT_OUT)


def test_the_list(run):
    status, out, err = run("protocols")
    assert (status, err) == (0, "")
    for name, entry in CATALOGUE.items():
        assert f"\n{name}  (" in f"\n{out}"
        assert entry.does in out
        assert entry.example in out
    listing = json.loads(run("protocols", "--json")[1])
    assert list(listing) == list(CATALOGUE)
    assert "rounds" in listing["gossip"]["settings"]
    assert listing["token"]["classes"] == ["GraphWalkSum", "RingSum", "WalkSum"]


@pytest.mark.parametrize("name", list(CATALOGUE))
def test_its_example_works(run, name):
    words = shlex.split(CATALOGUE[name].example)
    status, out, err = run(*words[1:], "--json")
    assert (status, err) == (0, "")
    data = json.loads(out)
    loss = data["loss"]
    assert loss["claim"] in CATALOGUE[name].claims or loss["claim"] in ("exact", "upper")
    assert data["protocol"]["protocol"] in Protocol.kinds()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["account", "ring:9", "-p", "gosip"],
            "unknown protocol 'gosip' (did you mean 'gossip'?); choose one of gossip",
        ),
        (
            ["account", "ring:9", "-p", "varying", "--rounds", "2", "--sigma", "1", "--steps", "3"],
            "--steps does not belong",
        ),
        (
            ["account", "complete:9", "-p", "token", "--steps", "30", "--sigma", "1", "--weights", "1,b"],
            "such as 1,2,2",
        ),
        (["account", "ring:9", "-p", "histogram", "--rounds", "2", "--domain", "3"], "gamma is missing; give --gamma"),
        (
            ["plan", "ring:9", "-p", "varying", "--rounds", "2", "--epsilon", "1", "--sigma", "4"],
            "No such option: --sigma",
        ),
        (["account", "ring:9", "--rounds", "2", "--sigma", "1", "-o", "1", "--colluders", "2"], "give one of the two"),
        (["account", "ring:9", "-p", "masked", "--sigma", "1", "--masks", "two"], "masks"),
    ],
)
def test_what_does_not_fit_is_refused(run, words, message):
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert message in err


def test_a_plan_finds_the_noise_of_any_protocol(run):
    words = ["ring:8+hypercube:3", "-p", "varying", "--rounds", "6"]
    data = json.loads(run("plan", *words, "--epsilon", "1", "--json")[1])
    assert data["epsilon"] <= 1.0
    sigma = data["protocol"]["sigma"]
    again = json.loads(run("account", *words, "--sigma", repr(sigma), "--colluders", "1", "--json")[1])
    assert again["epsilon"] == pytest.approx(data["epsilon"], rel=1e-9)
    less = json.loads(run("account", *words, "--sigma", repr(0.98 * sigma), "--colluders", "1", "--json")[1])
    assert less["epsilon"] > 1.0


def test_the_worst_colluders_are_named(run):
    words = ["account", "hypercube:3", "--rounds", "6", "--sigma", "4", "--masks", "100", "--colluders", "2"]
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert "What any 2 parties together can learn" in out
    assert "worst that was found: parties" in out
    data = json.loads(run(*words, "--json")[1])
    assert data["loss"]["found"]["attained"]


def test_a_histogram_is_simulated(run, tmp_path):
    words = ["simulate", "complete:50", "-p", "histogram", "--steps", "500", "--domain", "3", "--gamma", "0.2"]
    (tmp_path / "labels.csv").write_text("\n".join(["0"] * 20 + ["2"] * 30))
    status, out, err = run(
        *words, "--sender", "hidden", "--values", str(tmp_path / "labels.csv"), "--seed", "1", "--json"
    )
    assert (status, err) == (0, "")
    data = json.loads(out)
    assert data["truth"] == [0.4, 0.0, 0.6]
    assert data["error"]["realised"] < 4 * data["error"]["predicted"]
    (tmp_path / "labels.csv").write_text("\n".join(["0.5"] * 50))
    status, _, err = run(*words, "--values", str(tmp_path / "labels.csv"))
    assert status == 2
    assert "a histogram takes labels 0 … 2" in err


@pytest.mark.parametrize(
    "words",
    [
        ["complete:40", "-p", "walk-descent", "--steps", "2000", "--step", "0.5"],
        ["ring:40", "-p", "ring-descent", "--rounds", "20", "--step", "0.5"],
        ["hypercube:4", "-p", "descent", "--iterations", "20", "--gossip-rounds", "4", "--step", "2"],
        ["hypercube:4", "-p", "masked-descent", "--iterations", "20", "--step", "2"],
        ["complete:40", "-p", "secret-graph-descent", "--edge-probability", "0.2", "--iterations", "20", "--step", "2"],
        ["complete:40", "-p", "central-descent", "--iterations", "20", "--step", "2"],
    ],
)
def test_learning_is_simulated(run, words):
    status, out, err = run("simulate", *words, "--sigma", "0.01", "--clip", "0.5", "--uniform", "--seed", "1", "--json")
    assert (status, err) == (0, "")
    data = json.loads(out)
    assert data["accuracy"] > 0.7 > data["guess"]
    assert data["loss"]["claim"] in ("exact", "upper")


def test_rows_to_learn_from_are_read_or_refused(run, tmp_path):
    words = ["simulate", "complete:10", "-p", "central-descent", "--iterations", "20", "--step", "2", "--sigma", "0.01"]
    rows = "\n".join(f"{i % 7},{i % 3},{int(i % 7 > 3)}" for i in range(100))
    table = tmp_path / "rows.csv"
    table.write_text(f"a,b,label\n{rows}\n")
    data = json.loads(run(*words, "--values", str(table), "--column", "label", "--seed", "1", "--json")[1])
    assert data["accuracy"] > 0.9
    assert data["rows"] == 20
    for more, message in (
        ([], "which column is the label? give --column NAME"),
        (["--column", "c"], "no column 'c'; the columns are 'a', 'b', 'label'"),
        (["--column", "label", "--bounds", "0,1"], "--bounds is about values"),
    ):
        status, _, err = run(*words, "--values", str(table), *more)
        assert status == 2
        assert message in err


def test_faults_are_looked_back_at(run):
    words = [
        "simulate",
        "regular:60,6",
        "-p",
        "faulty-shuffle",
        "--rounds",
        "40",
        "--epsilon0",
        "1",
        "--outages",
        "0.1",
    ]
    status, out, err = run(*words, "--uniform", "--seed", "1")
    assert (status, err) == (0, "")
    assert "for the faults that really occurred" in " ".join(out.split())


def test_one_way_links_from_a_file(run, tmp_path):
    links = tmp_path / "links.csv"
    links.write_text("# from,to\nann,bob\nbob,cyd\ncyd,ann\nann,cyd\n")
    words = ["account", str(links), "-p", "push-sum", "--rounds", "4", "--sigma", "4", "-o", "1", "--json"]
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert json.loads(out)["protocol"]["links"] == [[0, 1], [0, 2], [1, 2], [2, 0]]  # in the order of first appearance
    links.write_text("ann,bob,cyd\n")
    assert "expected two names, from and to" in run(*words)[2]


@pytest.mark.parametrize(
    "words", ["ring:8+hypercube:3 -p varying --rounds 6 --sigma 4",
              "ring:6 -p descent --iterations 2 --gossip-rounds 2 --sigma 4 --step 0.5"],
)  # fmt: skip
def test_a_mixing_may_be_named(run, words):
    """The word reaches the protocol: a lazy matrix gives another loss than the usual one."""
    asked = ("account", *words.split(), "--json")
    usual, named, lazy = (
        json.loads(run(*asked, *more)[1]) for more in ((), ("--mixing", "metropolis"), ("--mixing", "lazy-metropolis"))
    )
    assert usual["loss"]["epsilon"] == named["loss"]["epsilon"]
    assert lazy["protocol"]["mixing"] == "lazy-metropolis"


def test_users_are_counted_as_the_graph_counts(run):
    """hypercube:4 has sixteen parties, not four."""
    four = json.loads(run("account", "hypercube:4", "-p", "central", "--sigma", "0.1", "--json")[1])
    assert len(four["loss"]["epsilon"]) == 16


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("account", "star:10", "-p", "secret-ring", "--rounds", "3", "--sigma", "40"), "star:10 may not have; give complete:10"),
        (("plan", "ring:10", "-p", "secret-ring", "--rounds", "3", "--epsilon", "1"), "ring:10 may not have; give complete:10"),
        (("account", "star:9", "-p", "ring-descent", "--rounds", "3", "--sigma", "4", "--step", "1"), "give ring:9 or complete:9"),
    ],
)  # fmt: skip
def test_secret_rings_and_descent_on_a_ring_take_no_graph_without_their_links(run, words, message):
    status, _, err = run(*words)
    assert status == 2
    assert message in " ".join(err.split())


def test_a_descent_on_a_ring_is_at_home_where_a_ring_is(run):
    for graph in ("ring:10", "complete:10"):
        status, _, err = run("account", graph, "-p", "ring-descent", "--rounds", "3", "--sigma", "40", "--step", "0.1")
        assert (status, err) == (0, "")
