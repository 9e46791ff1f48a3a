"""Summaries, tables and pictures."""

import io
import json
import math
import re
import shutil
import subprocess
from html import unescape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, NetdpError
from netdp.families.gossip.protocol import Gossip
from netdp.privacy.wording import readable
from netdp.protocols.answers import OWN, PUBLISHED, Answer, error_words, predicted
from netdp.report import answer, answer_table, save_picture
from netdp.report import charts as heat
from netdp.report import style as files
from netdp.report.tables import distance_cells

MASKED = Gossip(graphs.hypercube(4), rounds=9, sigma=2.0, masks=20.0)


def text_of(summary):
    buffer = io.StringIO()
    Console(file=buffer, width=100).print(answer_table(summary))
    return buffer.getvalue()


@given(st.floats(1e-4, 1e12))
def test_readable_rounds_up_and_only_a_little(value):
    shown = float(readable(value))
    assert shown >= value * (1 - 1e-12)
    assert shown <= value + 1 if 1000 <= value < 1e6 else shown <= value * 1.011 + 1e-12


def test_readable_never_shows_zero_for_a_loss():
    assert readable(1e-300) == "<0.0001"
    assert readable(0.0) == "0"
    assert readable(math.nan) == "–"


def test_summary_by_distance():
    summary = answer(MASKED, [0, 15], delta=1e-5)
    assert [row.hops for row in summary.by_distance] == [1, 2]
    assert sum(row.parties for row in summary.by_distance) == summary.everyone.parties == 14
    assert summary.everyone.own.worst_factor == pytest.approx(np.nanmax(summary.loss.factor))
    assert summary.everyone.own.mean_factor == pytest.approx(np.nanmean(summary.loss.factor))
    assert summary.everyone.losses["plain gossip"].worst_factor == 1.0
    worst = max(row.own.epsilon for row in summary.by_distance)
    assert summary.everyone.own.epsilon == summary.epsilon == worst < summary.other("local DP").worst_epsilon(1e-5)


@pytest.mark.parametrize("delta", [0, 1, -1e-6, math.nan])
def test_delta_is_checked(delta):
    with pytest.raises(InvalidValue, match=re.escape(repr(delta))):
        answer(MASKED, 0, delta)


def test_table_says_what_it_must():
    text = text_of(answer(MASKED, 0))
    assert "(not a bound)" in text
    assert "claim: exact" in text
    assert "trusted" in text
    assert "masks=20" in text
    plain = text_of(answer(Gossip(graphs.ring(20), rounds=6, sigma=1.0), 0))
    assert "as chosen" not in plain
    assert "below the exact loss" in plain


def test_groups_out_of_reach_share_a_row():
    _, cells = distance_cells(answer(Gossip(graphs.ring(30), rounds=3, sigma=1.0), 0))
    assert [row[0] for row in cells] == ["1", "2", "3", "4–15", "worst", "mean factor"]
    assert cells[3][2:4] == ["0", "0"]


def test_json_is_complete_and_plain():
    data = json.loads(json.dumps(answer(MASKED, 3).to_dict(), allow_nan=False))
    assert data["loss"]["claim"] == "exact"
    assert data["loss"]["certified"] is True
    assert data["alternatives"][PUBLISHED]["certified"] is False
    assert data["alternatives"][PUBLISHED]["errata"]
    epsilon = answer(MASKED, 3).loss.epsilon(1e-6)
    assert data["loss"]["epsilon"] == [None if u == 3 else epsilon[u] for u in range(16)]
    assert data["epsilon"] == data["everyone"]["losses"][OWN]["epsilon"] == np.nanmax(epsilon)
    assert data["distances"] == graphs.hypercube(4).distances(3).tolist()
    assert data["protocol"]["graph"]["n"] == 16
    assert data["observers"] == {"parties": [3], "roles": []}
    assert data["error"]["rmse"] == pytest.approx(netdp.expected_error(MASKED).rmse)


def test_one_shape_for_every_protocol():
    """The same keys, whatever runs and whoever looks; every row by distance names the losses it holds."""
    grid = graphs.grid(3, 3)
    asked = [
        answer(MASKED, 3), answer(MASKED, 3, rdp=2.0), answer(Gossip(grid, 3, 1.0), colluders=2),
        answer(netdp.MaskedSum(grid, 1.0), [0, 4]), answer(netdp.RingSum(5, rounds=1, sigma=3.0), [0]),
        answer(netdp.Shuffle(graphs.regular(50, 8, 0), 9, 1.0), "curator"),
    ]  # fmt: skip
    told = [json.loads(json.dumps(one.to_dict(), allow_nan=False)) for one in asked]
    assert len({tuple(sorted(data)) for data in told}) == 1
    for one, data in zip(asked, told, strict=True):
        assert data["epsilon"] == one.loss.worst_epsilon(1e-6)
        assert bool(data["by_distance"]) == (one.protocol.network is not None and bool(one.loss.observers.parties))
        for row in (*data["by_distance"], data["everyone"]):
            assert row["losses"][OWN]["epsilon"] <= data["epsilon"]
            assert set(row["losses"]) <= {OWN, *data["alternatives"]}
        assert sum(row["parties"] for row in data["by_distance"]) in (0, data["everyone"]["parties"])
    assert [row["parties"] for row in told[3]["by_distance"]] == [4, 3]  # a masked sum, too
    assert told[1]["rdp"] == {"order": 2.0, "worst": pytest.approx(np.nanmax(netdp.account(MASKED, 3).rdp(2.0)))}
    assert "trusted sampler of √n reports" in told[5]["alternatives"]


def data_of(page):
    return json.loads(re.search(r"const data = (.*);\n", page).group(1))


def test_page_holds_the_numbers(tmp_path):
    summary = answer(MASKED, 0)
    path = save_picture(summary, tmp_path / "out.html")
    page = path.read_text("utf-8")
    data = data_of(page)
    chosen, plain = data["kinds"]
    assert plain["name"] == "plain gossip"
    assert chosen["heat"]["complete"]
    assert chosen["epsilon"][5] == pytest.approx(float(summary.loss.epsilon(1e-6)[5]), rel=1e-4)
    assert chosen["heat"]["epsilon"][5][0] == chosen["epsilon"][5]
    assert "src=" not in page  # nothing is fetched
    assert "http" not in page
    assert [p.name for p in tmp_path.iterdir()] == ["out.html"]


def table_in_the_browser(path, party):
    """The rows of the page's distance table and its caption, after looking through a party's eyes."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium on this machine to run the page's script in")
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", f"{path.as_uri()}#party={party}"]
    page = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
    caption = unescape(re.search(r'<h2 id="caption">(.*?)</h2>', page).group(1))
    told = unescape(re.search(r'id="told"[^>]*>(.*?)</p>', page).group(1))
    table = re.search(r'<table id="table">(.*?)</table>', page, flags=re.S).group(1)
    rows = [[unescape(x) for x in re.findall(r"<t[hd]>(.*?)</t[hd]>", row)] for row in table.split("</tr>")[:-1]]
    return caption, told, rows


def test_an_estimate_is_never_called_a_bound(tmp_path):
    """In words, on a terminal, on a page."""
    guess = answer(netdp.RandomizedGossip(graphs.ring(5), steps=4, sigma=4.0), 0, 1e-6)
    screen = Console(file=io.StringIO(), width=120)
    screen.print(answer_table(guess))
    for text in (str(guess), screen.file.getvalue()):
        assert "estimate (no guarantee)" in text
        assert "certified" not in text
    path = save_picture(guess, tmp_path / "guess.html")
    assert data_of(path.read_text("utf-8"))["certified"] is False
    told = table_in_the_browser(path, 0)[1]  # last: skips where there is no browser
    assert "at most" not in told
    assert "about ε = " in told


def test_the_distance_table_follows_the_clicked_party(tmp_path):
    karate = Gossip(graphs.dataset("karate"), rounds=10, sigma=2.0, masks=50.0)
    path = save_picture(answer(karate, 0), tmp_path / "page.html")
    caption, told, (header, *rows) = table_in_the_browser(path, 11)
    theirs = answer(karate, 11)
    assert caption == "By distance from party 11: worst ε at δ = 1e-6"
    assert "learns at most ε = 0.396 about anyone" in told
    assert header == ["hops away", "parties", "exact, plain gossip", "exact, as chosen", "local DP", "trusted curator"]
    _, cells = distance_cells(theirs)
    assert rows == [[row[0], row[1], *row[3:]] for row in cells[:-1]]  # neither the formula nor factors are known there
    assert rows[-1][:4] == ["worst", "33", "2.26", "0.396"]
    caption, _, (header, *rows) = table_in_the_browser(path, 0)  # the first observer again: the whole table
    assert caption.startswith("By distance from party 0:")
    assert header[2] == "published (not a bound)"
    assert rows[-1][0] == "mean factor"


def test_the_page_never_shows_less_than_the_loss(tmp_path):
    """Five digits, rounded up: 0.3960004 must not become 0.396."""
    assert heat.short(np.array([0.3960004, np.nan, 0.0])) == [0.39601, None, 0.0]
    assert heat.short(np.array([np.inf]))[0] >= 1e300  # what the page shows as ∞
    page = save_picture(answer(MASKED, 0), tmp_path / "out.html").read_text("utf-8")
    shown = np.array(data_of(page)["kinds"][0]["heat"]["epsilon"], dtype=float)
    true = netdp.pairwise(MASKED).epsilon(1e-6)
    off = ~np.eye(16, dtype=bool)
    assert (shown[off] >= true[off]).all()
    assert (shown[off] <= true[off] * 1.0002).all()


def test_an_infinite_loss_is_no_protection_not_nothing():
    ring = netdp.RingSum(10, rounds=3, sigma=4.0, closing=False)
    comparison = answer(ring, [8], 1e-6)
    buffer = io.StringIO()
    Console(file=buffer, width=100).print(answer_table(comparison))
    for text in (buffer.getvalue(), str(comparison)):
        assert "∞ (no protection)" in text
        assert "nothing" not in text
    assert comparison.to_dict()["epsilon"] == "inf"
    alternative = Answer(ring, 1e-6, comparison.loss, {"another way": comparison.loss}, "")
    assert str(alternative).count("∞ (no protection)") == 2


def test_json_names_parties_and_observers(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text("ann,bob\nbob,cem\ncem,ann\ncem,dea\n")
    graph = graphs.read(file)
    walk = netdp.GraphWalkSum(graph, steps=40, sigma=5.0)
    for data in (answer(walk, ["dea"], 1e-6).to_dict(), answer(Gossip(graph, 3, 1.0), "dea").to_dict()):
        assert data["observers"] == {"parties": [3], "roles": [], "names": ["dea"]}
        assert data["loss"]["names"] == ["ann", "bob", "cem", "dea"]
        json.dumps(data, allow_nan=False)


def test_every_report_says_how_good_the_answer_is():
    text = text_of(answer(MASKED, 0))
    assert f"predicted error of the answer: at most {readable(netdp.expected_error(MASKED).rmse)}" in text
    strong = Gossip(graphs.ring(8), rounds=20, sigma=1.0, masks=1e30)
    assert error_words(strong, predicted(strong)).startswith(
        "predicted error of the answer: at most 4.97e+12 (root mean square"
    )
    walk = netdp.WalkSum(50, steps=500, sigma=2.0, sender="known", contributions=3)
    assert "contributions=3" in predicted(walk)  # why there is none


def test_results_print_as_sentences_not_as_dumps():
    from netdp.families.shuffle.plan import plan_rounds
    from netdp.families.shuffle.simulate import collect
    from netdp.families.token.training import train_walk
    from netdp.mechanisms import RandomizedResponse
    from netdp.models.parties import LogisticParties
    from netdp.protocols.training import FromGradients, train

    shuffle = netdp.Shuffle(graphs.regular(200, 8, 0), rounds=40, epsilon0=1.0)
    rows, labels = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    users = LogisticParties.of([rows, rows], [labels, labels])
    descent = netdp.GossipDescent(graphs.ring(4), 3, gossip_rounds=2, sigma=1.0, step=0.1, expansion=1.1)
    results = {
        "masks=20": answer(MASKED, 0),
        "trusted curator": answer(netdp.RingSum(5, rounds=1, sigma=3.0), [0], 1e-6),
        "a trusted shuffler": plan_rounds(shuffle.graph, 1.0, 1e-4),
        "the curator's estimate by RandomizedResponse": collect(shuffle, RandomizedResponse(2, 1.0), [0] * 200, seed=0),
        "after 60 contributions of 2 users": train_walk(
            netdp.WalkDescent(2, steps=60, sigma=0.1, step=1.0, sender="known"), users, seed=0
        ),
        "4 parties, each with a model of 1 numbers": train(
            descent, FromGradients(lambda models: models - 1.0, n=4, d=1, smoothness=1.0), seed=0
        ),
        "a run of": netdp.simulate(MASKED, np.zeros(16), seed=0),
        "root mean squared error": netdp.expected_error(MASKED),
        "privacy loss of 15 parties": netdp.account(MASKED, 0),
    }
    for words, result in results.items():
        assert words in str(result)
        assert "array(" not in str(result)
        assert f"{type(result).__name__}(" not in str(result)


def test_hostile_labels_cannot_end_the_script(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text("a,</script><b>\n</script><b>,c\n")
    page = save_picture(answer(Gossip(graphs.read(file), 2, 1.0), "a"), tmp_path / "x.html").read_text("utf-8")
    assert page.count("</script>") == 1
    assert "</script><b>" in data_of(page)["labels"]


def test_png_is_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    path = save_picture(answer(Gossip(graphs.dataset("karate"), 6, 2.0, refresh=0.1), [0, 33]), tmp_path / "out.png")
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n")
    assert len(content) > 20_000


def test_sampled_parties_are_not_taken_for_names(monkeypatch):
    monkeypatch.setattr(heat, "MAX_FULL", 4)
    monkeypatch.setattr(heat, "SAMPLE", 3)
    ring = graphs.ring(9)
    numbered = graphs.Graph.from_edges(9, ring.edges(), labels="123456789")
    found = heat.heat_map(Gossip(numbered, 3, 1.0), 1e-6)
    expected = heat.heat_map(Gossip(ring, 3, 1.0), 1e-6)
    assert found.parties.tolist() == [0, 4, 8]
    np.testing.assert_array_equal(found.epsilon, expected.epsilon)


def test_large_graphs_are_sampled(monkeypatch):
    monkeypatch.setattr(heat, "MAX_FULL", 10)
    monkeypatch.setattr(heat, "SAMPLE", 4)
    found = heat.heat_map(MASKED, 1e-6)
    assert not found.complete
    assert found.parties.tolist() == [0, 5, 10, 15]
    full = np.asarray(netdp.pairwise(MASKED).epsilon(1e-6))
    np.testing.assert_array_equal(found.epsilon, full[np.ix_(found.parties, found.parties)])


def test_pictures_refuse_other_names_and_places(tmp_path):
    summary = answer(MASKED, 0)
    with pytest.raises(InvalidValue, match=r"\.png, \.svg, \.pdf or \.html"):
        save_picture(summary, tmp_path / "out.jpg")
    with pytest.raises(InvalidValue, match="does not exist"):
        save_picture(summary, tmp_path / "nowhere" / "out.html")


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", full)
    with pytest.raises(NetdpError, match="No space left on device"):
        save_picture(answer(MASKED, 0), tmp_path / "out.html")
    assert list(tmp_path.iterdir()) == []


def test_an_upper_bound_without_end_does_not_claim_that_there_is_no_protection():
    walk = netdp.WalkSum(50, steps=100, sigma=4.0)
    text = str(answer(walk, [0], 1e-300))
    assert "∞ (no finite bound at this δ)" in text
    assert "no protection" not in text


def test_where_all_pairs_would_take_long_a_sample_of_quick_observers_is_drawn(monkeypatch):
    from netdp.families.gossip.account.exact import expected_seconds

    protocol = Gossip(graphs.dataset("karate"), rounds=3, sigma=1.0)
    whole = heat.heat_map(protocol, 1e-6)
    assert whole.complete
    assert whole.links is None
    seconds = expected_seconds(protocol, protocol.graph.degrees)
    monkeypatch.setattr(
        heat, "SECONDS", float(3 * np.median(seconds))
    )  # half of all may be drawn, three of them in time
    monkeypatch.setattr(heat, "SLOWER_TOGETHER", 0.0)
    monkeypatch.setattr(heat, "FEWEST", 5)
    found = heat.heat_map(protocol, 1e-6)
    assert not found.complete
    assert len(found.parties) == 5
    assert found.links == protocol.graph.degrees[seconds <= np.median(seconds)].max() < 17
    assert (protocol.graph.degrees[found.parties] <= found.links).all()
    np.testing.assert_allclose(found.epsilon, whole.epsilon[np.ix_(found.parties, found.parties)], rtol=1e-9)
