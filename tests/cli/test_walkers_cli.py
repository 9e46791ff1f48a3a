"""`netdp account` for tokens and shuffling."""

import json

import pytest

import netdp
from netdp import graphs


def test_token_on_the_complete_graph(run):
    words = ["account", "complete:200", "-p", "token", "--steps", "20000", "--sigma", "61"]
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    for word in (
        "200 users",
        "certified (upper)",
        "published (not a bound)",
        "local DP",
        "trusted curator",
        "assumes:",
    ):
        assert word in out
    data = json.loads(run(*words, "--json")[1])
    expected = netdp.account(netdp.WalkSum(200, 20_000, 61.0, sender="known"), [0]).worst_epsilon(1e-6)
    assert data["epsilon"] == pytest.approx(expected, rel=1e-12)
    assert data["claim"] == "upper"
    assert data["alternatives"]["local DP"]["epsilon"] > 5 * data["epsilon"]
    assert data["observers"] == {"parties": [0], "roles": []}
    assert len(data["loss"]["epsilon"]) == 200
    assert data["alternatives"]["published (not a bound)"]["claim"] == "published"
    hidden = json.loads(run(*words, "--sender", "hidden", "--json")[1])
    assert hidden["epsilon"] < data["epsilon"]


def test_token_on_a_ring_finds_the_gap(run):
    words = ["account", "ring:10", "-p", "token", "--rounds", "3", "--sigma", "4", "-o", "8"]
    out = run(*words, "--no-closing")[1]
    assert "certified (exact)        ∞ (no protection)" in out
    assert "nothing" not in out
    assert json.loads(run(*words, "--no-closing", "--json")[1])["epsilon"] == "inf"
    assert json.loads(run(*words, "--json")[1])["epsilon"] < 2


def test_token_on_any_graph(run):
    status, out, err = run("account", "grid:3x3", "-p", "token", "--steps", "900", "--sigma", "30", "-o", "4")
    assert (status, err) == (0, "")
    assert "grid(3, 3): 9 users" in out


def test_picture_of_the_curves(run, tmp_path):
    words = ["account", "ring:12", "-p", "token", "--rounds", "2", "--sigma", "4"]
    status, out, _ = run(*words, "--plot", str(tmp_path / "a.png"))
    assert status == 0
    assert "picture: " in out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    data = json.loads(run(*words, "--plot", str(tmp_path / "a.svg"), "--json")[1])
    assert data["plot"].endswith("a.svg")
    picture = (tmp_path / "a.svg").read_text("utf-8")
    assert "<svg" in picture


def test_shuffle(run):
    words = ["account", "regular:300,6", "-p", "shuffle", "--rounds", "40", "--epsilon0", "1", "--delta", "1e-4"]
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert "the curator can learn" in out
    data = json.loads(run(*words, "--json")[1])
    p = netdp.Shuffle(graphs.parse("regular:300,6"), rounds=40, epsilon0=1.0)
    assert data["epsilon"] == pytest.approx(netdp.account(p, "curator").worst_epsilon(1e-4))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ring:10", "-p", "token", "--sigma", "1"], "rounds is missing"),
        (["complete:10", "-p", "token", "--sigma", "1"], "steps is missing"),
        (["complete:10", "-p", "token", "--sigma", "1", "--steps", "5"], "shorter than one visit"),
        (["complete:x", "-p", "token", "--sigma", "1", "--steps", "5"], "how many users"),
        (["complete:10", "-p", "token", "--sigma", "1", "--steps", "50", "-o", "bob"], "users have numbers"),
        (["ring:10", "-p", "shuffle", "--rounds", "5", "--epsilon0", "1"], "set --laziness 0.5"),
        (["regular:300,6", "-p", "shuffle", "--rounds", "2", "--epsilon0", "1"], "would do"),
        (["ring:9", "-p", "shuffle", "--rounds", "2"], "epsilon0 is missing"),
        (["ring:9", "-p", "pigeon"], "unknown protocol 'pigeon'"),
        (
            ["ring:9", "-p", "shuffle", "--rounds", "9", "--epsilon0", "1", "--plot", "a.jpg"],
            "must end in .png, .svg, .pdf or .html",
        ),
    ],
)
def test_refusals(run, words, message):
    status, out, err = run("account", *words)
    assert (status, out) == (2, "")
    assert message in " ".join(err.split())


def test_plan_a_token(run):
    words = ["plan", "complete:30", "-p", "token", "--epsilon", "2", "--delta", "1e-4", "--visits", "5"]
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    for word in ("walk, sender hidden", "ring, one round", "local DP", "trusted curator", "chosen: "):
        assert word in out
    data = json.loads(run(*words, "--json")[1])
    assert data["options"][0]["rmse"] < data["local_dp"]["rmse"]
    assert all(option["worst_epsilon"] <= 2 for option in data["options"])
    assert f"σ={data['options'][0]['protocol']['sigma']:g}" in out


def test_plan_shuffling(run):
    words = ["plan", "regular:300,6", "-p", "shuffle", "--epsilon0", "1", "--delta", "1e-4"]
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert "a trusted shuffler" in out
    data = json.loads(run(*words, "--json")[1])
    assert f"rounds={data['options'][0]['protocol']['rounds']}" in out
    assert data["options"][0]["worst_epsilon"] < 1.02 * data["options"][0]["extras"]["uniform"]
    target = json.loads(run(*words[:4], "--epsilon", "0.3", "--delta", "1e-4", "--json")[1])
    found = target["options"][0]
    assert found["worst_epsilon"] <= 0.3 < found["protocol"]["epsilon0"]


def test_tokens_are_planned_on_any_graph(run):
    """Every option meets the target against any single user, and a ring is also gone round."""
    data = json.loads(
        run("plan", "ring:5", "-p", "token", "--epsilon", "3", "--delta", "1e-4", "--visits", "5", "--json")[1]
    )
    assert {option["name"] for option in data["options"]} == {"walk, everybody equally often", "ring, one round"}
    assert all(option["worst_epsilon"] <= 3 for option in data["options"])
    status, out, _ = run(
        "plan", "star:5", "-p", "token", "--epsilon", "3", "--delta", "1e-4", "--visits", "5", "--colluders", "2"
    )
    assert status == 0
    assert "walk, to a random neighbour" in out
    assert "against any 2 users together" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["ring:9", "-p", "token", "--epsilon", "1", "--steps", "9"],
            "--steps does not belong to a plan of a token on ring:9",
        ),
        (["complete:9", "-p", "token"], "epsilon is missing"),
        (["ring:9", "-p", "shuffle"], "give one of the two"),
        (["ring:9", "-p", "pigeon"], "unknown protocol 'pigeon'"),
    ],
)
def test_plans_refused(run, words, message):
    status, out, err = run("plan", *words)
    assert (status, out) == (2, "")
    assert message in " ".join(err.split())
