"""`netdp simulate` as a person and as a program would use it."""

import json

import numpy as np
import pytest

import netdp
from netdp import graphs

GOSSIP = ["simulate", "hypercube:4", "-T", "9", "--sigma", "2", "--masks", "20"]


def test_it_says_that_it_is_a_simulation(run):
    status, out, err = run(*GOSSIP, "--uniform", "--seed", "3")
    assert (status, err) == (0, "")
    assert out.startswith("a simulation: everything ran in this process, nothing was sent over a network")
    for word in ("answer of party 0", "all parties:", "truth", "realised", "predicted for these values", "messages"):
        assert word in out
    assert json.loads(run(*GOSSIP, "--uniform", "--json")[1])["simulation"] is True


def test_numbers_are_those_of_the_library(run, tmp_path):
    values = np.linspace(0, 1, 16)
    file = tmp_path / "values.csv"
    file.write_text("name,age\n" + "\n".join(f"p{i},{v}" for i, v in enumerate(values)))
    words = [*GOSSIP, "--values", str(file), "--column", "age", "--seed", "5", "--record", "2", "-o", "3", "--json"]
    data = json.loads(run(*words)[1])
    protocol = netdp.Gossip(graphs.hypercube(4), rounds=9, sigma=2.0, masks=20.0)
    expected = netdp.simulate(protocol, values, seed=5, record=[2])
    np.testing.assert_allclose(data["answers"], expected.estimates[:, 0])
    assert data["answer"] == data["answers"][0]
    assert data["truth"] == pytest.approx(0.5)
    assert data["error"]["realised"] == pytest.approx(np.sqrt(np.mean((expected.estimates - 0.5) ** 2)))
    assert data["error"]["predicted"] == pytest.approx(netdp.expected_error(protocol, values).rmse)
    assert data["messages"] == {"total": 9 * 64, "per_party": 36}
    assert data["epsilon"] == pytest.approx(netdp.account(protocol, [3]).worst_epsilon(1e-6))
    assert data["observers"]["parties"] == [3]
    np.testing.assert_allclose(data["record"]["payloads"], expected.record.payloads)


def test_the_loss_is_that_of_the_walk_that_was_drawn(run):
    words = ["simulate", "complete:20", "-p", "token", "--steps", "200", "--sigma", "9", "--uniform", "--seed", "4"]
    data = json.loads(run(*words, "--json", "--record", "1")[1])
    protocol = netdp.WalkSum(20, steps=200, sigma=9.0, sender="known")
    drawn = netdp.simulate(protocol, np.zeros(20), seed=4)
    assert data["epsilon"] == pytest.approx(
        netdp.account(protocol, [0], transcript=drawn.transcript).worst_epsilon(1e-6)
    )
    assert data["loss"]["claim"] == "exact"
    assert len(data["answers"]) == 1
    assert len(data["record"]["visits"]) == int((drawn.protocol.paths[0] == 1).sum())
    out = " ".join(run(*words)[1].split())
    assert "for the walk that was drawn, as if everybody knew it" in out


def test_shuffled_reports(run):
    words = ["simulate", "regular:60,6", "-p", "shuffle", "--rounds", "40", "--epsilon0", "1", "--delta", "1e-2"]
    for more in ([], ["--reporting", "single"]):
        data = json.loads(run(*words, *more, "--uniform", "--bounds", "-1,3", "--seed", "1", "--json")[1])
        assert data["observers"] == {"parties": [], "roles": ["curator"]}
        assert -1 <= data["truth"] <= 3
        assert abs(data["answer"] - data["truth"]) == pytest.approx(data["error"]["realised"])
        assert data["error"]["realised"] < 4 * data["error"]["predicted"]
    assert "answer of the curator" in run(*words, "--uniform")[1]


def test_bounds_clip_and_are_held_to_the_sensitivity(run, tmp_path):
    file = tmp_path / "values.txt"
    file.write_text("\n".join(["-5", "0.5", *["9"] * 14]))
    data = json.loads(run(*GOSSIP, "--values", str(file), "--bounds", "0,1", "--seed", "1", "--json")[1])
    assert data["truth"] == pytest.approx(14.5 / 16)
    status, _, err = run(*GOSSIP, "--values", str(file))
    assert status == 2
    assert "14 apart, more than the sensitivity 1" in err
    assert "is 2 across" in run(*GOSSIP, "--values", str(file), "--bounds", "0,2")[2]


def test_a_seed_is_drawn_and_told(run):
    first, second = (json.loads(run(*GOSSIP, "--uniform", "--json")[1]) for _ in range(2))
    assert first["seed"] != second["seed"]
    again = json.loads(run(*GOSSIP, "--uniform", "--seed", str(first["seed"]), "--json")[1])
    assert again["answers"] == first["answers"]


def test_settings_from_a_file(run, tmp_path):
    (tmp_path / "values.csv").write_text("\n".join(["0.5"] * 5))
    config = tmp_path / "run.toml"
    config.write_text('graph = "ring:5"\nrounds = 2\nsigma = 1.0\nvalues = "values.csv"\nbounds = [0, 1]\nseed = 1\n')
    assert json.loads(run("simulate", "-c", str(config), "--json")[1])["truth"] == 0.5


def test_users_without_names_are_called_by_number(run):
    words = ["simulate", "complete:9", "-p", "token", "--steps", "90", "--sigma", "9", "--uniform"]
    assert "users have numbers here, got ['bob']" in run(*words, "--record", "bob")[2]
    assert "delta must" in run(*words, "--delta", "2")[2]


@pytest.mark.parametrize(
    ("words", "content", "message"),
    [
        ([], None, "whose values? give --values FILE"),
        (["--uniform", "--values"], "1\n", "one of the two"),
        (["--uniform", "--column", "a"], None, "--column names a column of the file"),
        (["--uniform", "--bounds", "0"], None, "bounds = '0': two numbers are needed"),
        (["--uniform", "--bounds", "1,0"], None, "bounds = '1,0': two finite numbers lo < hi are needed"),
        (["--uniform", "--bounds=-inf,inf"], None, "bounds = '-inf,inf': two finite numbers lo < hi"),
        (["--uniform", "--bounds=-1e308,1e308"], None, "two finite numbers lo < hi"),
        (["--uniform", "--seed", "-1"], None, "seed must be a whole number ≥ 0, got -1"),
        (["--uniform", "--record", "99"], None, "99"),
        (["--values"], "a,b\n1,2\n", ":1: has 2 columns; say which one: --column b"),
        (["--column", "c", "--values"], "a,b\n1,2\n", "no column 'c'; the columns are 'a', 'b'"),
        (["--values"], "1\nx\n", ":2: expected a number, got 'x'"),
        (["--values"], "1\n2\n", "values must have shape (16,)"),
        (["--values"], "", "is empty"),
    ],
)
def test_bad_input_is_named(run, tmp_path, words, content, message):
    if content is not None:
        (tmp_path / "values.csv").write_text(content)
        words = [*words, str(tmp_path / "values.csv")]
    status, out, err = run(*GOSSIP, *words)
    assert (status, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_parties_are_called_by_their_names(run, tmp_path):
    """In a file that counts from 1, node 2 is the party named 3, and no party is named 0."""
    triangle = tmp_path / "triangle.txt"
    triangle.write_text("1 2\n2 3\n3 1\n")
    status, out, _ = run(
        "simulate", str(triangle), "--rounds", "2", "--sigma", "1", "--uniform", "--seed", "0", "--record", "3"
    )
    assert status == 0
    assert "answer of party 1" in out
    assert "messages that reached 3;" in out
    assert "party 0" not in out


def test_the_middle_of_the_bounds_is_the_centre_of_a_masked_sum(run):
    words = ("simulate", "ring:9", "-p", "masked", "--sigma", "0.01", "--uniform", "--seed", "0", "--bounds", "5,6")
    status, out, _ = run(*words, "--json")
    assert status == 0
    data = json.loads(out)
    assert data["protocol"]["centre"] == 5.5
    assert 5 < data["truth"] < 6
    assert abs(data["answer"] - data["truth"]) < 0.05
