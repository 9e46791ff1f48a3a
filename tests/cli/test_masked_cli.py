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


def test_without_a_protocol_all_ways_stand_in_one_table(run):
    words = ["plan", "hypercube:4", "--epsilon", "1", "--delta", "1e-6"]
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    for word in (
        "masked: flood",
        "gossip: masked",
        "token: walk",
        "local DP, Laplace",
        "not offered: shuffle: ",
        "claim: upper",
    ):
        assert word in out
    data = json.loads(run(*words, "--json")[1])
    errors = [option["rmse"] for option in data["options"]]
    assert errors == sorted(errors)
    assert data["chosen"] == data["options"][0]["name"] == "masked: flood"
    assert all(option["worst_epsilon"] <= 1 for option in data["options"])
    ways = {option["name"]: option for option in data["options"]}
    assert ways["masked: flood"]["extras"]["rounds"] == 4
    assert ways["masked: flood"]["extras"]["bytes_per_link"] == 16 * 4
    alone = json.loads(run(*words, "-p", "gossip", "--json")[1])
    assert set(alone) == set(data)
    for option in alone["options"]:  # the same numbers as in the plan of gossip alone
        assert {**option, "name": f"gossip: {option['name']}"} == ways[f"gossip: {option['name']}"]
    assert set(data["not_offered"]) == {"shuffle"}


def test_flags_of_one_family_are_refused_by_name_in_the_plan_of_all(run):
    for flag, value, where in (
        ("--scope", "mean", "-p gossip"),
        ("--visits", "3", "-p token"),
        ("--attempts", "2", "-p masked"),
    ):
        status, _, err = run("plan", "ring:8", "--epsilon", "1", flag, value)
        assert status == 2
        assert f"{flag} does not belong to a plan of every protocol (give {where}, too)" in err


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
        (
            ["plan", "ring:8", "-p", "gossip", "--epsilon", "1", "--absent", "2"],
            "--absent does not belong to a plan of gossip",
        ),
        (
            ["account", "ring:8", "-p", "masked", "--sigma", "1", "--absent", "7"],
            "--absent 7 of 8 parties leaves nobody",
        ),
    ],
)
def test_flags_that_do_not_belong_are_refused_by_name(run, words, message):
    status, _, err = run(*words)
    assert status == 2
    assert message in err
