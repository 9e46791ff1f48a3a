"""Studies under either law of noise: sensitivities in L1, means from both ends, files and hashes, the ledger, limits.

Proofs: the docstring of netdp.peers.study.task; docs/proofs/masked.md#laplace-shares.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from netdp.errors import InvalidValue
from netdp.families.masked.protocol import quantised, quantised_records
from netdp.mechanisms.laplace_sums import LaplaceRelease, laplace_curve
from netdp.peers.ledger.losses import check_loss, seen, together
from netdp.peers.records import Misfit
from netdp.peers.study import Study, Task
from netdp.peers.study.planning import best_of, by_law, size_of
from netdp.privacy.filters import Filter

NAMES = list("abcde")
TARGET = {"graph": "complete:5", "epsilon": 1.0, "delta": 1e-6}
RECORDS = Task(kind="mean", unit="record", column="x", bounds=(0, 120), max_records=1000)
TASKS = {
    "sum of parties": Task(kind="sum", column="x", bounds=(-3, 5)),
    "mean of parties": Task(kind="mean", column="x", bounds=(-3, 5)),
    "variance of parties": Task(kind="variance", column="x", bounds=(-3, 5)),
    "histogram of parties": Task(kind="histogram", column="x", edges=(-3, 0, 2, 5)),
    "sum of records": Task(kind="sum", unit="record", column="x", bounds=(-3, 5), max_records=9),
    "mean of records": Task(kind="mean", unit="record", column="x", bounds=(-3, 5), max_records=9),
    "mean from both ends": Task(kind="mean", unit="record", column="x", bounds=(-3, 5), max_records=9, ends=True),
    "variance of records": Task(kind="variance", unit="record", column="x", bounds=(-3, 5), max_records=9),
    "histogram of records": Task(kind="histogram", unit="record", column="x", edges=(-3, 0, 2, 5), max_records=9),
}


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_sensitivities_are_attained_and_not_exceeded(name, law):
    task, order = TASKS[name], 1 if law == "laplace" else 2
    rows = [task.rows([{"x": float(x)}])[0] for x in np.linspace(-4, 6, 161)]
    if task.unit == "record":
        largest = max(np.linalg.norm(row, ord=order) for row in rows)
    else:
        largest = max(np.linalg.norm(one - other, ord=order) for one, other in itertools.combinations(rows, 2))
    assert largest <= task.sensitivity_under(law) * (1 + 1e-15)
    assert largest >= task.sensitivity_under(law) * (1 - 1e-3)


def test_a_record_moves_both_ends_by_one_range_exactly():
    study = Study.plan("s", RECORDS, NAMES, **TARGET, law="laplace")
    assert study.task.ends
    p = study.protocol()
    for x in np.linspace(-10, 130, 997):
        steps = quantised_records(p, study.task.rows([{"x": x}]))
        assert (steps >= 0).all()
        assert steps.sum() == p.distance == 1 / p.step


def test_the_answer_of_both_ends():
    task = RECORDS.under("laplace")
    values = [3.0, 50.0, 119.0, 200.0]
    total = task.rows([{"x": x} for x in values]).sum(axis=0)
    found = task.answer(total, parties=2, noise=0.01)
    assert found["value"] == pytest.approx(np.mean(np.minimum(values, 120)))
    assert found["records"] == pytest.approx(4)
    few = task.answer([1.0, 1.0], parties=2, noise=1.0)
    assert few["value"] is None
    assert task.rows([]).shape == (0, 2)


@pytest.mark.parametrize("f", [0.0, 0.2, 0.5, 0.9])
def test_the_standard_error_is_that_of_many_draws(f):
    """(hi − lo)²·s²·((1 − f)² + f²)/N²: half of a centred sum and a count of ε/2 each, for every f."""
    task, N, s = RECORDS.under("laplace"), 10_000, math.sqrt(2)
    rng = np.random.default_rng(1)
    totals = np.array([f * N, (1 - f) * N]) + rng.laplace(scale=1.0, size=(20_000, 2))
    answers = [task.answer(total, 5, s) for total in totals[:4000]]
    errors = 120 * totals[:, 0] / totals.sum(axis=1) - 120 * f
    stated = np.mean([one["standard_error"] for one in answers])
    assert stated == pytest.approx(120 * s * math.hypot(1 - f, f) / N, rel=1e-3)
    assert np.std(errors) == pytest.approx(stated, rel=0.03)
    centred = 60**2 * (2 * 4 + (2 * f - 1) ** 2 * 2 * 4) / N**2  # Σz with scale 2, Δ = 1, and N with scale 2
    assert stated**2 == pytest.approx(centred / 2, rel=1e-2)
    assert task.error(s, 5, records=N) == pytest.approx(120 * s / N)


def test_ends_belong_to_means_of_records():
    for wrong in ({"kind": "sum"}, {"unit": "party", "max_records": None}):
        with pytest.raises(Misfit, match="belongs to a mean"):
            Task(
                **{"kind": "mean", "unit": "record", "column": "x", "bounds": (0, 1), "max_records": 5, "ends": True}
                | wrong
            )
    assert TASKS["mean of parties"].under("laplace") is TASKS["mean of parties"]
    assert RECORDS.under("gaussian") is RECORDS


def test_studies_without_any_of_it_are_written_as_before():
    plain = Study.plan("s", RECORDS, NAMES, **TARGET, threshold=0)
    fields = plain.to_dict()
    assert not {"law", "threshold"} & set(fields["protocol"])
    assert "ends" not in fields["task"]
    for word in ("law", "threshold", "ends"):
        assert f"{word} =" not in plain.text
        assert f'"{word}"' not in plain.canonical
    made = Study.plan("s", RECORDS, NAMES, **TARGET, law="laplace", threshold=4)
    for word in ("law", "threshold", "ends"):
        assert f"{word} =" in made.text
        assert f'"{word}"' in made.canonical


def test_studies_survive_their_files(tmp_path):
    made = Study.plan("s", RECORDS, NAMES, **TARGET, absent=0, law="laplace", threshold=4)
    made.write(tmp_path / "study.toml")
    again = Study.read(tmp_path / "study.toml")
    assert again.hash == made.hash
    assert again.check_promise() <= 1.0


def test_the_law_with_the_smaller_error_is_taken():
    found = by_law("s", RECORDS, NAMES, **TARGET)
    assert {law: round(size_of(study)) for law, study in found.items()} == {"gaussian": 567, "laplace": 190}
    assert (
        best_of(found).settings.law == Study.plan("s", RECORDS, NAMES, **TARGET, law="best").settings.law == "laplace"
    )
    wide = Task(kind="histogram", column="x", edges=tuple(range(60)))
    assert (
        Study.plan("s", wide, NAMES, **TARGET, law="best").settings.law == "laplace"
    )  # two cells change, however many there are
    often = Study.plan("s", wide, NAMES, **TARGET, attempts=40, law="best")
    assert often.settings.law == "gaussian"
    with pytest.raises(InvalidValue, match="laplace"):
        Study.plan("s", RECORDS, NAMES, **TARGET, law="cauchy")


def test_the_ledger_computes_the_same_curve():
    study = Study.plan("s", RECORDS, NAMES, **TARGET | {"epsilon": 0.5}, colluders=2, law="laplace", threshold=0)
    loss, p = study.running.loss((0, 1, 2, 3, 4), 0), study.protocol()
    check_loss(loss, NAMES, "a")
    assert loss == {
        "kind": "masked-sum", "law": "laplace", "rate": [p.rate.numerator, p.rate.denominator], "parts": 3, "distance": 1024,
        "dimension": 2,
    }  # fmt: skip
    for c in (0, 1, 2, 3):
        expected = laplace_curve(LaplaceRelease(p.rate, 3, 5 - c, 1024, 2))
        assert float(seen(loss, NAMES, "a", c).epsilon(1e-6)) == float(expected.epsilon(1e-6))
    assert float(seen(loss, NAMES, "a", 2).epsilon(0.0)) <= 0.5 < float(seen(loss, NAMES, "a", 3).epsilon(0.0))
    twice = together([seen(loss, NAMES, "a", 2)] * 2)
    assert float(twice.epsilon(1e-6)) <= 1.0
    for wrong in ({"rate": [1, 0]}, {"rate": 0.5}, {"rate": [True, 2]}, {"parts": 0}, {"distance": 2.5}, {"share": 3}):
        with pytest.raises(InvalidValue):
            check_loss(loss | wrong, NAMES, "a")
    with pytest.raises(InvalidValue):
        check_loss({name: value for name, value in loss.items() if name != "law"}, NAMES, "a")


def test_limits_add_up_pure_losses():
    one = laplace_curve(LaplaceRelease(Fraction(1, 1024), 4, 4, 1024, 2))
    year = Filter(3.0, 1e-6)
    while year.admits(one):
        year.spend(one)
    assert year.studies == 3


def test_single_numbers_use_the_whole_scale():
    study = Study.plan("s", TASKS["mean of parties"], NAMES, **TARGET, law="laplace")
    p = study.protocol()
    assert int(np.ptp([quantised(p, study.task.rows([{"x": x}])[0])[0] for x in (-3, 5)])) == p.distance
