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
    ],
)
def test_flags_that_do_not_belong_are_refused_by_name(run, words, message):
    status, _, err = run(*words)
    assert status == 2
    assert message in err
