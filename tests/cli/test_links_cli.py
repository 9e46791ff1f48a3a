"""Random links on the command line: `plan --links`, `plan --advise`, `study new --links`, and +rings:2 behind a graph."""

import json

import pytest

from netdp import graphs
from netdp.graphs import with_links
from netdp.peers.study import Study

SHUFFLE = ("plan", "grid:10x10", "-p", "shuffle", "--epsilon0", "1", "--delta", "1e-3", "--laziness", "0.1")


def words(text):
    return " ".join(text.split())


def test_hops_before_and_after(run):
    status, out, err = run(*SHUFFLE, "--links", "2", "--links-seed", "5")
    assert (status, err) == (0, "")
    assert "2 random rings (seed 5), 3.8 more links for everybody" in out
    assert "the links are public, and drawn after the parties are known" in words(out)
    said = json.loads(run(*SHUFFLE, "--links", "2", "--links-seed", "5", "--json")[1])
    before = json.loads(run(*SHUFFLE, "--json")[1])
    assert said["graph"]["digest"] == with_links(graphs.grid(10, 10), 2, 5).digest
    links = said["links"]
    assert links["before"]["hops"] == before["options"][0]["protocol"]["rounds"]
    assert links["after"]["hops"] == said["options"][0]["protocol"]["rounds"] < links["before"]["hops"] / 5
    assert (links["rings"], links["seed"]) == (2, 5)
    typed = json.loads(run(SHUFFLE[0], "grid:10x10+rings:2,seed=5", *SHUFFLE[2:], "--json")[1])
    assert typed["options"] == said["options"]
    assert "links" not in typed


def test_rounds_and_error_of_gossip(run):
    status, out, _ = run(
        "plan", "path:5", "-p", "gossip", "--epsilon", "1", "--max-rounds", "5", "--links", "1", "--scope", "beyond:2"
    )
    assert status == 0
    assert "what the links buy" in out
    assert "distances are those of the graph with its links" in words(out)
    asked = ("plan", "star:6", "-p", "gossip", "--epsilon", "1", "--max-rounds", "6", "--links", "1", "--json")
    said = json.loads(run(*asked)[1])["links"]
    assert said["after"]["error"] < said["before"]["error"]
    assert len(said["rests_on"]) == 1


def test_floods_and_what_was_refused_before(run, tmp_path):
    status, out, _ = run("plan", "ring:40", "-p", "masked", "--epsilon", "1", "--links", "1", "--json")
    said = json.loads(out)["links"]
    assert status == 0
    assert said["before"]["flood: rounds"] == 20 > 3 * said["after"]["flood: rounds"]
    assert said["before"]["error"] == pytest.approx(said["after"]["error"])
    apart = tmp_path / "apart.txt"
    apart.write_text("a b\nc d\ne f\n")
    words_ = ("plan", str(apart), "-p", "masked", "--epsilon", "1", "--links", "1")
    assert "needs a connected graph" in json.loads(run(*words_, "--json")[1])["links"]["before"]["refused"]
    assert "without links: " in run(*words_)[1]


@pytest.mark.parametrize(
    "asked",
    [
        ("ring:8+hypercube:3", "-p", "varying", "--rounds", "3"),
        ("path:8", "-p", "randomized", "--steps", "6"),
    ],
)
def test_links_for_every_protocol_on_a_graph(run, asked):
    status, out, err = run("plan", *asked, "--epsilon", "1", "--delta", "1e-3", "--links", "1", "--json")
    assert (status, err) == (0, "")
    said = json.loads(out)["links"]
    assert said["after"]["σ"] > 0
    assert said["before"]["σ"] > 0


def test_advice_for_all_three_in_one_table(run, tmp_path):
    picture = tmp_path / "links.png"
    asked = ("plan", "path:10", "-p", "masked", "--epsilon", "1", "--advise", "--links-seed", "1")
    status, out, err = run(*asked, "--plot", str(picture))
    assert (status, err) == (0, "")
    for word in ("flood", "gossip", "shuffle", "rings", "proposed (*)", "the links are public"):
        assert word in out
    assert "…" not in out
    assert picture.stat().st_size > 1000
    said = json.loads(run(*asked, "--json")[1])["links"]
    assert list(said["proposed"]) == ["flood", "shuffle", "gossip"]
    assert said["rows"][0]["flood"]["rounds"] == 9
    proposed = said["proposed"]["flood"]
    assert said["rows"][proposed]["flood"]["rounds"] < 9
    assert said["rows"][proposed]["graph"]["digest"] == with_links(graphs.path(10), proposed, 1).digest


def test_advice_of_gossip_keeps_the_topologies(run):
    said = json.loads(
        run("plan", "ring:6", "-p", "gossip", "--epsilon", "1", "--advise", "--max-rounds", "10", "--json")[1]
    )
    assert said["recommended"] in {candidate["graph"] for candidate in said["candidates"]}
    assert next(iter(said["links"]["proposed"])) == "gossip"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("plan", "ring:9", "--epsilon", "1", "--links", "-1"), "links (how many random rings)"),
        (("plan", "ring:9", "-p", "gossip", "--epsilon", "1", "--links", "1", "--advise"), "--advise proposes links itself"),
        (("plan", "ring:9", "--epsilon", "1", "--links-seed", "1"), "--links-seed is about random links"),
        (("plan", "ring:9", "--epsilon", "1", "--plot", "a.jpg"), "must end in .png, .svg, .pdf or .html"),
        (("plan", "ring:9", "-p", "gossip", "--epsilon", "1", "--advise", "--plot", "a.txt"), "a.txt"),
        (("plan", "path:2", "--epsilon", "1", "--links", "1"), "at least three parties"),
        (("plan", "complete:9", "-p", "token", "--epsilon", "1", "--links", "1"), "everybody is linked with everybody"),
        (("plan", "complete:9", "-p", "secret-ring", "--rounds", "1", "--epsilon", "1", "--links", "1"),
         "does not go along the links"),
        (("plan", "ring:9+rings:x", "--epsilon", "1"), "random rings are written like"),
        (("account", "ring:9", "--rounds", "2", "--sigma", "1", "--links", "1"), "No such option"),
    ],
)  # fmt: skip
def test_bad_links_are_named(run, asked, message):
    status, out, err = run(*asked)
    assert (status, out) == (2, "")
    assert message in err


def test_a_ring_with_links_is_any_other_graph(run):
    asked = ("account", "ring:8+rings:1", "--rounds", "2", "--sigma", "4", "--json")
    assert json.loads(run(*asked)[1])["protocol"]["graph"]["name"] == "ring(8) + 1 random ring (seed 0)"
    from netdp.settings.catalogue import CATALOGUE

    assert CATALOGUE["token"].way("ring:8+rings:1").protocol == "GraphWalkSum"
    assert CATALOGUE["token"].way("ring:8").protocol == "RingSum"


MEAN = (
    "study",
    "new",
    "waits",
    "--task",
    "mean",
    "--column",
    "minutes",
    "--bounds",
    "0,120",
    "--epsilon",
    "2",
    "--n",
    "12",
)


def test_a_study_carries_its_links(run, tmp_path):
    path = tmp_path / "s.toml"
    status, out, err = run(*MEAN, "-g", "ring:12", "--links", "1", "--links-seed", "4", "-o", str(path))
    assert (status, err) == (0, "")
    assert "It talks along ring:12+rings:1,seed=4; every link of it is in the file." in out
    assert "drawn without a look at anybody's data" in out
    study = Study.read(path)
    linked = with_links(graphs.ring(12), 1, 4)
    assert study.graph == linked
    assert {tuple(edge) for edge in study.network.edges} == {
        (f"p{u:02}", f"p{v:02}") for u, v in linked.edges().tolist()
    }
    assert study.check_promise() <= 2.0


def test_links_of_a_study_are_drawn_when_it_is_made(run, tmp_path):
    """Without a seed nobody could know them before: two drafts have different links."""
    drawn = []
    for name in "ab":
        assert run(*MEAN, "-g", "ring:12", "--links", "1", "-o", str(tmp_path / name))[0] == 0
        drawn.append(Study.read(tmp_path / name).graph)
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--links", "1"), "give --graph, such as ring:12"),
        (("-g", "ring:12", "--links-seed", "1"), "--links-seed is about random links"),
        (("-g", "ring:12", "--links", "-2"), "links (how many random rings)"),
    ],
)
def test_bad_links_of_a_study(run, tmp_path, more, message):
    status, _, err = run(*MEAN, *more, "-o", str(tmp_path / "s.toml"))
    assert status == 2
    assert message in err


def test_a_study_file_cannot_leave_links_to_be_drawn(run, tmp_path):
    path = tmp_path / "s.toml"
    assert run(*MEAN, "-g", "ring:12", "-o", str(path))[0] == 0
    path.write_text(path.read_text("utf-8").replace('"ring:12"', '"ring:12+rings:1"'), "utf-8")
    status, _, err = run("study", "explain", str(path))
    assert status == 2
    assert "write any other out as edges" in err
