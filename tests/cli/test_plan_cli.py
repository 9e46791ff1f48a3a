"""`netdp plan` as a person and as a program would use it."""

import json
import math

import pytest

import netdp


def test_table_and_json_agree(run):
    words = ["plan", "hypercube:4", "-p", "gossip", "--epsilon", "1", "--max-rounds", "30"]
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    for word in ("masked", "plain", "refreshed", "local DP", "trusted curator", "chosen: Gossip(", "claim: exact"):
        assert word in out
    data = json.loads(run(*words, "--json")[1])
    assert data["chosen"] == "masked"
    best = next(option for option in data["options"] if option["name"] == data["chosen"])
    masked = next(option for option in data["options"] if option["name"] == "masked")["protocol"]
    assert f"rounds={masked['rounds']}, sigma={masked['sigma']}, masks" in " ".join(
        out.split()
    )  # four digits, as certified
    p = netdp.Gossip(
        netdp.graphs.hypercube(4), rounds=masked["rounds"], sigma=masked["sigma"], masks=masked["masks"],
        accelerated=masked["accelerated"],
    )  # fmt: skip
    assert netdp.pairwise(p).worst_epsilon(1e-6) <= 1.0
    assert best["worst_epsilon"] <= 1.0
    assert data["trusted_curator"] == {"rmse": pytest.approx(math.sqrt(2) / 16), "law": "Laplace"}
    assert (
        best["rmse"] < 1.2 * float(1 / netdp.privacy.gaussian_mu(1.0, 1e-6)) / 16
    )  # a curator's with such noise as gossip adds


def test_a_masked_sum_states_law_threshold_and_error(run):
    words = ["plan", "complete:16", "-p", "masked", "--epsilon", "1", "--colluders", "3", "--absent", "2", "--json"]
    data = json.loads(run(*words)[1])
    (option,) = data["options"]
    extras = option["extras"]
    assert (extras["law"], extras["threshold"], extras["fair"], extras["honest"]) == ("laplace", 11, True, 11)
    assert extras["attempts"] == 1
    assert extras["times_curator"] == pytest.approx(1.206, abs=1e-3)
    assert option["rmse"] == pytest.approx(extras["times_curator"] * data["trusted_curator"]["rmse"])
    forced = json.loads(run(*words, "--law", "gaussian")[1])["options"][0]
    assert forced["extras"]["law"] == "gaussian"
    assert forced["rmse"] == pytest.approx(extras["errors"]["gaussian"])


def test_policy_colluders_and_settings(run, tmp_path):
    (tmp_path / "policy.csv").write_text("*, distance>=2, 1\n*, *, 3\n")
    config = tmp_path / "plan.toml"
    config.write_text(
        'graph = "torus:4x4"\nprotocol = "gossip"\npolicy = "policy.csv"\nmax-rounds = 20\ncoalitions = 0.2\ndraws = 3\n'
    )
    status, out, err = run("plan", "-c", str(config), "--json")
    assert (status, err) == (0, "")
    data = json.loads(out)
    assert data["epsilon"] is None
    assert len(data["scope"]["rules"]) == 2
    assert "3 coalitions of 3 parties drawn at random" in data["holds"]
    status, out, _ = run(
        "plan",
        "torus:4x4",
        "-p",
        "gossip",
        "--epsilon",
        "1",
        "--scope",
        "mean",
        "--max-rounds",
        "15",
        "--observer",
        "0",
    )
    assert status == 0
    assert "a mean is not a guarantee" in " ".join(out.split())
    assert "this single party only" in out


def test_advice(run):
    words = ["plan", "ring:8", "-p", "gossip", "--epsilon", "1", "--advise", "--max-rounds", "30"]
    status, out, _ = run(*words)
    assert status == 0
    assert "recommended:" in out
    data = json.loads(run(*words, "--json")[1])
    assert data["recommended"] in {candidate["graph"] for candidate in data["candidates"]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ring:9"], "epsilon is missing; give --epsilon"),
        (["--epsilon", "1"], "graph is missing; give GRAPH"),
        (["ring:9", "--epsilon", "-1"], "epsilon must be a finite number ≥ 0, got -1.0"),
        (["ring:9", "--epsilon", "1", "--delta", "0"], "no noise level meets this: party 1 is seen by party 0"),
        (["ring:9", "--epsilon", "1", "--scope", "some"], "got 'some'"),
        (["ring:9", "--epsilon", "1", "--coalitions", "2"], "got 2.0"),
        (["ring:9", "--epsilon", "1", "--policy", "p.csv"], "leave --epsilon and --scope out"),
        (["ring:9", "--policy", "no-such.csv"], "no-such.csv: cannot be read"),
        (["ring:9", "--epsilon", "1", "--advise", "-o", "0"], "--advise compares topologies"),
        (["ring:9", "--epsilon", "1", "-o", "12"], "12"),
        (["ring:9", "--epsilon", "1", "--draws", "5"], "--draws is about coalitions drawn at random"),
    ],
)
def test_bad_input_is_named(run, words, message):
    status, out, err = run("plan", *words, "-p", "gossip")
    assert status == 2
    assert out == ""
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_bad_settings_file(run, tmp_path):
    config = tmp_path / "plan.toml"
    config.write_text('graph = "ring:9"\nprotocol = "gossip"\nepsilon = 1.0\nspeed = 3\n')
    status, _, err = run("plan", "-c", str(config))
    assert status == 2
    assert "unknown key 'speed' (did you mean 'seed'?); a plan of gossip takes: epsilon, delta" in err


def test_no_number_of_the_table_is_cut(run):
    """Names wrap in a narrow terminal; numbers and titles do not lose digits."""
    status, out, _ = run("plan", "ring:8", "-p", "gossip", "--epsilon", "1e6", "--max-rounds", "10")
    assert status == 0
    assert "…" not in out
    assert "×curator" in out


def test_a_negative_seed_of_coalitions_is_refused(run):
    status, _, err = run("plan", "ring:8", "-p", "gossip", "--epsilon", "1", "--coalitions", "0.3", "--seed", "-1")
    assert status == 2
    assert "seed must be a whole number ≥ 0, got -1" in err


def test_json_names_the_tightest_parties(run, tmp_path):
    triangle = tmp_path / "triangle.txt"
    triangle.write_text("1 2\n2 3\n3 1\n")
    status, out, _ = run("plan", str(triangle), "-p", "gossip", "--epsilon", "1", "--max-rounds", "3", "--json")
    assert status == 0
    tightest = json.loads(out)["options"][0]["extras"]["certificate"]["tightest"]
    assert tightest["names"] == {
        "party": str(tightest["party"] + 1),
        "observers": [str(v + 1) for v in tightest["observers"]],
    }
