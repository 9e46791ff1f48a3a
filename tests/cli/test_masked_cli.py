"""Masked sums from the command line: account, plan and simulate."""

import json

import pytest


def test_account(run):
    status, out, _ = run("account", "grid:4x4", "-p", "masked", "--sigma", "0.5", "--json")
    assert status == 0
    data = json.loads(out)
    assert data["claim"] == "upper"
    assert data["epsilon"] < data["alternatives"]["local DP"]["epsilon"] / 3


def test_plan_compares_rounds_and_bytes_of_both_ways(run):
    status, out, _ = run("plan", "hypercube:5", "-p", "masked", "--epsilon", "1", "--colluders", "8")
    assert status == 0
    assert "against any 8 parties together" in out
    assert all(word in out for word in ("flood", "average", "bytes a link", "×curator"))


def test_attempts_and_absences_are_flags(run):
    words = ["account", "grid:4x4", "-p", "masked", "--sigma", "0.5", "--json"]
    once, more = (json.loads(run(*words, *extra)[1]) for extra in ([], ["--attempts", "3", "--absent", "2"]))
    assert more["epsilon"] > 1.7 * once["epsilon"]
    status, out, _ = run(
        "plan", "ring:12", "-p", "masked", "--epsilon", "1", "--attempts", "2", "--absent", "3", "--grid", "0.125"
    )
    assert status == 0
    assert "in at most 2 attempts, with at most 3 absent" in out
    assert "grid 0.125" in out


def test_gossip_is_compared_with_a_masked_sum(run):
    words = ["plan", "hypercube:4", "--epsilon", "1", "--max-rounds", "30"]
    status, out, _ = run(*words)
    assert status == 0
    assert "masked sum, flood" in out
    assert "masked sum, average" in out
    assert "holds against any single party" in out
    data = json.loads(run(*words, "--json")[1])["masked_sum"]
    ways = {option["name"]: option for option in data["options"]}
    assert ways["flood"]["rounds"] == 4
    assert ways["flood"]["bytes_per_link"] == 16 * 4
    assert ways["flood"]["rmse"] == pytest.approx(data["trusted_curator"]["rmse"] * (16 / 15) ** 0.5, rel=0.01)
    _, out, _ = run(*words, "--coalitions", "0.25", "--draws", "2")
    assert "holds against any 4 parties together" in out


def test_a_policy_has_no_single_target_for_a_masked_sum(run, tmp_path):
    rules = tmp_path / "rules.csv"
    rules.write_text("target, observer, epsilon\n*, *, 1\n")
    status, out, err = run("plan", "ring:6", "--policy", str(rules), "--max-rounds", "9", "--json")
    assert status == 0, err
    assert json.loads(out)["masked_sum"] is None


def test_simulate_spreads_by_averaging(run):
    words = (
        "simulate",
        "hypercube:4",
        "-p",
        "masked",
        "--sigma",
        "0.5",
        "--spread",
        "average",
        "--uniform",
        "--seed",
        "3",
    )
    status, out, _ = run(*words)
    assert status == 0
    assert "spread by average" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["account", "ring:8", "-p", "masked", "--sigma", "1", "--rounds", "3"],
            "--rounds does not belong to a masked sum",
        ),
        (["plan", "ring:8", "-p", "masked", "--epsilon", "1", "--scope", "mean"], "--scope does not belong"),
        (
            ["account", "ring:8", "--rounds", "3", "--sigma", "1", "--spread", "flood"],
            "--spread does not belong to gossip",
        ),
        (["account", "ring:8", "-p", "masked", "--sigma", "1", "--spread", "shout"], "unknown spread 'shout'"),
        (
            ["account", "ring:8", "--rounds", "3", "--sigma", "1", "--attempts", "2"],
            "--attempts does not belong to gossip",
        ),
        (["plan", "ring:8", "--epsilon", "1", "--absent", "2"], "--absent does not belong to a plan of gossip"),
        (["account", "ring:8", "-p", "masked", "--sigma", "1", "--absent", "7"], "absent=7 of 8 parties leaves nobody"),
    ],
)
def test_flags_that_do_not_belong_are_refused_by_name(run, words, message):
    status, _, err = run(*words)
    assert status == 2
    assert message in err
