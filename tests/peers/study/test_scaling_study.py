"""Scaling, then training: the masked sum of the estimators as a study, its answer in a schema, and both within one budget.

What must hold: docs/proofs/learning.md#scaling-on-peers and #private-standardisation.
"""

import json
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from netdp import graphs
from netdp.errors import FileFormatError, InvalidValue, Refused
from netdp.families.masked.learning import standardised
from netdp.families.masked.protocol import quantised, quantised_records
from netdp.families.masked.training import composed, scaling_sum
from netdp.learn import load_model
from netdp.learn.scaling import by_bounds
from netdp.models.card import card_text
from netdp.models.files import save_model
from netdp.models.schema import Column, Schema, moment_length, moments
from netdp.peers.ledger.entries import entry_of, losses, total
from netdp.peers.records import Misfit
from netdp.peers.study import ScalingTask, Study, Training
from netdp.peers.study.files import read_answer, read_schema, scaled_by
from netdp.peers.study.planning import (
    check_paid,
    plan_scaling,
    plan_training_after,
    scaled_facts,
    scaling_epsilon,
    total_epsilon,
    unheld_words,
)
from netdp.peers.study.progress import about
from netdp.peers.study.scaling import Scaled
from netdp.peers.study.task import Task
from netdp.privacy.filters import limit_admits
from netdp.protocols.accounting import account

sys.path.append(str(Path(__file__).parents[1]))

import crew
import matrix
import trials

NAMES = [f"p{u}" for u in range(5)]
FEATURES = [{"name": "age", "range": [20.0, 60.0]}, {"name": "paid", "range": [0.0, 1000.0]}]
SCHEMA = """\
label = "ill"
classes = ["no", "yes"]

[features]
age = [20, 60]
sex = ["f", "m"]
paid = [0, 1000]
"""
PLAN = {"graph": "complete:5", "delta": 1e-6}


def asked(unit="record", **changes):
    return ScalingTask(**{"features": FEATURES, "unit": unit, "max_records": 500} | changes)


def rows_of(X):
    return [{"age": str(a), "paid": str(b)} for a, b in X]


def table(count=200, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(50, 4, count), rng.exponential(30.0, count)])


@pytest.fixture(scope="module")
def first():
    """A scaling study that takes a tenth of ε = 1."""
    return plan_scaling("where", asked(), NAMES, epsilon=1.0, **PLAN).complete(nonce="0" * 32)


@pytest.fixture(scope="module")
def answer(first):
    means = np.array([0.5, -0.9, 0.35 - 1, 0.85 - 1])
    return first.answer([*(1000 * means), 1000.0])


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(SCHEMA, "utf-8")
    return path


@pytest.fixture(scope="module")
def second(answer, tmp_path_factory):
    """The training after it, with what is left."""
    path = tmp_path_factory.mktemp("second") / "schema.toml"
    path.write_text(SCHEMA, "utf-8")
    path.write_text(scaled_by(path, answer), "utf-8")
    task = Training(**read_schema(path), max_records=500, records=1000, held_out=0.1)
    return plan_training_after("train", task, NAMES, epsilon=1.0, **PLAN)


# ── the first study is the estimators' masked sum ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("unit", ["party", "record"])
def test_what_a_party_adds_is_what_the_estimators_add(unit):
    X = table()
    expected = moments(by_bounds([(20, 60), (0, 1000)], 2).bounded(X), unit)
    np.testing.assert_allclose(asked(unit).rows(rows_of(X)), expected, atol=1e-12)


@pytest.mark.parametrize("unit", ["party", "record"])
def test_the_answer_is_the_scaling_that_the_estimators_make_of_the_same_rows(unit):
    tables, bounds = [table(200, seed) for seed in range(5)], by_bounds([(20, 60), (0, 1000)], 2)
    theirs = standardised(bounds, scaling_sum(graphs.ring(5), 2, unit, 200, sigma=1e-6), tables, 0)
    added = np.vstack([asked(unit).rows(rows_of(one)) for one in tables]).sum(axis=0)
    found = asked(unit).answer(added, parties=5)["features"]
    centres = [20 + 20 * (1 + theirs.mean[0]), 500 * (1 + theirs.mean[1])]
    np.testing.assert_allclose([one["centre"] for one in found], centres, rtol=1e-4)
    np.testing.assert_allclose([one["scale"] for one in found], theirs.deviation * [20, 500], rtol=1e-3)


@pytest.mark.parametrize("unit", ["party", "record"])
def test_its_guarantee_is_that_of_the_masked_sum(unit):
    study = Study.plan("where", asked(unit), NAMES, epsilon=0.3, attempts=2, absent=1, **PLAN)
    protocol = study.protocol()
    same = scaling_sum(study.graph, 2, unit, 500, sigma=protocol.sigma).replace(
        grid=protocol.grid, attempts=2, absent=1, modulus=protocol.modulus, reach=protocol.reach
    )
    assert protocol == same
    assert study.promise().worst_epsilon(1e-6) == pytest.approx(account(same, [0]).worst_epsilon(1e-6), rel=1e-12)
    assert 0.29 < study.check_promise() <= 0.3
    entry = entry_of(study, 1, range(5), 0)
    assert (entry.loss["kind"], entry.unit) == ("masked-sum", unit)


@pytest.mark.parametrize("unit", ["party", "record"])
def test_neighbours_move_what_is_added_by_no_more_than_is_accounted_and_nearly_as_much(unit):
    """In whole numbers: one record more or less; or all rows of a party replaced."""
    study = Study.plan("where", asked(unit), NAMES, epsilon=1.0, **PLAN)
    protocol, rng = study.protocol(), np.random.default_rng(0)

    def added(X):
        rows = study.task.rows(rows_of(X))
        return quantised_records(protocol, rows) if unit == "record" else quantised(protocol, rows[0])

    furthest = 0.0
    for _ in range(60):
        X = np.column_stack([rng.choice([-9, 20, 33.3, 40, 60, 99], 6), rng.choice([0, 1, 500, 998.7, 1000, 1e9], 6)])
        other = np.delete(X, 2, axis=0) if unit == "record" else rng.permutation(X[:, ::-1] * 7.3)
        furthest = max(furthest, float(np.linalg.norm(added(X) - added(other))))
    corners = (np.array([[20.0, 0.0]]), np.zeros((0, 2)) if unit == "record" else np.array([[60.0, 1000.0]]))
    furthest = max(furthest, float(np.linalg.norm(added(corners[0]) - added(corners[1]))))
    assert 0.99 * protocol.distance < furthest <= protocol.distance


@pytest.mark.parametrize("unit", ["party", "record"])
def test_peers_find_it_together_to_the_last_bit(unit, monkeypatch):
    """Whole peers in virtual time: everybody has the total that follows from rows and secrets, and says the same of it."""
    task = ScalingTask(features=[{"name": "x", "range": [0, 120]}], unit=unit, max_records=10)
    monkeypatch.setitem(
        matrix.COMPANY, f"masked-sum, {unit}", {"graph": "complete:5", "protocol": "masked-sum", "task": task}
    )
    trial = trials.Trial(f"masked-sum, {unit}", 1, tolerant=False, calm=True, twist=None)
    for u in range(trial.n):
        trial.at(0.0, trial.start, u)
    trial.run(until=trials.HORIZON, alive=range(trial.n))
    wanted, digest = crew.Crew.expected(trial, 1, tuple(range(trial.n)))
    assert len(trial.told) == trial.n
    assert {told["digest"] for told in trial.told.values()} == {digest}
    assert all(told["total"] == wanted for told in trial.told.values())
    found = [told["answer"] for told in trial.told.values()]
    assert all(one == found[0] for one in found)
    assert 0 <= found[0]["features"][0]["centre"] <= 120
    assert Scaled(**found[0]["scaled"]).study == trial.study.hash.hex()


def test_noise_leaves_the_range_as_it_is():
    found = asked().answer([40.0, -300.0, 20.0, 7.0, 12.0], parties=5, noise=1e4)
    assert found["noise"] == 1.0
    assert [one["scale"] for one in found["features"]] == [20.0, 500.0]
    assert [one["centre"] for one in found["features"]] == pytest.approx([40.0, 500.0], rel=0.01)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": []}, "one column of numbers"),
        ({"features": [FEATURES[0], FEATURES[0]]}, "twice"),
        ({"features": [{"name": "age", "range": [60, 20]}]}, "must rise"),
        ({"features": [{"name": "sex", "values": ["f", "m"]}]}, "not known"),
        ({"max_records": None}, "how many a party may have"),
    ],
)
def test_what_makes_no_sense_is_refused(change, words):
    with pytest.raises(Misfit, match=words):
        asked(**change)


def test_rows_that_do_not_fit_are_refused_and_no_rows_are_rows_where_records_are_protected():
    assert asked().rows([]).shape == (0, 5)
    with pytest.raises(InvalidValue, match="no rows"):
        asked("party").rows([])
    with pytest.raises(InvalidValue, match="at most max_records = 1"):
        asked(max_records=1).rows(rows_of(table(2)))
    with pytest.raises(InvalidValue, match="row 1: column 'paid' is empty"):
        asked().rows([{"age": "1", "paid": ""}])
    assert len(asked(missing="skip").rows([{"age": "1", "paid": ""}])) == 0
    with pytest.raises(InvalidValue, match="'nan', which is not a finite number"):
        asked().rows([{"age": "nan", "paid": "2"}])


def test_other_kinds_of_study_do_not_scale():
    with pytest.raises(Misfit, match=r"answers .*, not scaling"):
        Study.plan("where", asked("party"), NAMES, epsilon=1.0, kind="gossip", **PLAN)


# ── from its answer to a schema ───────────────────────────────────────────────────────────────────────────────────────


def test_a_schema_takes_centres_and_scales_and_says_where_they_come_from(first, answer, schema):
    fields = tomllib.loads(scaled_by(schema, answer))
    age = answer["features"][0]
    assert fields["features"]["age"] == {"range": [20.0, 60.0], "centre": age["centre"], "scale": age["scale"]}
    assert (age["centre"], age["scale"]) == (pytest.approx(50.0, rel=0.01), pytest.approx(20 * 0.1**0.5, rel=0.02))
    assert fields["features"]["sex"] == ["f", "m"]
    assert fields["scaled"]["study"] == first.hash.hex()
    assert (fields["scaled"]["sigma"], fields["scaled"]["parties"]) == (first.settings.sigma, 5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("paid = [0, 1000]", "paid = [0, 999]"),
        ("age =", "years ="),
        ("paid = [0, 1000]\n", ""),
        ("age = [20, 60]\n", ""),
    ],
)
def test_the_answer_of_another_schema_is_refused(answer, schema, old, new):
    schema.write_text(SCHEMA.replace(old, new), "utf-8")
    with pytest.raises(FileFormatError, match="other columns of numbers, or other ranges"):
        scaled_by(schema, answer)


def test_another_unit_is_refused(answer, schema):
    schema.write_text(scaled_by(schema, answer), "utf-8")
    fields = read_schema(schema)
    with pytest.raises(Misfit, match="scaled for unit = 'record', and here 'party'"):
        Training(**fields, unit="party")
    with pytest.raises(FileFormatError, match="already"):
        scaled_by(schema, answer)
    schema.write_text(SCHEMA, "utf-8")
    with pytest.raises(InvalidValue, match="for unit 'party'"):
        scaled_by(schema, answer | {"unit": "party"})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not JSON"),
        ("[]", "holds no answer"),
        ('{"ok": false, "result": null}', "ended without one"),
        ('{"result": {"kind": "mean", "value": 3}}', "another task, 'mean'"),
    ],
)
def test_what_is_no_result_of_a_scaling_study_is_refused(tmp_path, content, words):
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(FileFormatError, match=words):
        read_answer(tmp_path / "r.json")


def test_a_result_is_read_as_peers_and_up_print_it(tmp_path, answer):
    for told in ({"ok": True, "answer": answer}, {"ok": True, "result": answer}):
        (tmp_path / "r.json").write_text(json.dumps(told))
        assert read_answer(tmp_path / "r.json") == answer
    broken = {key: value for key, value in answer.items() if key != "scaled"}
    (tmp_path / "schema.toml").write_text(SCHEMA)
    with pytest.raises(InvalidValue, match="does not state what a scaling study finds"):
        scaled_by(tmp_path / "schema.toml", broken)


def test_a_result_may_not_smuggle_in_what_a_schema_would_refuse(schema, answer):
    bad = [answer["features"][0] | {"scale": 0.0}, answer["features"][1]]
    schema.write_text(scaled_by(schema, answer | {"features": bad}), "utf-8")
    with pytest.raises(Misfit, match="scale of column 'age' must be larger than 0"):
        Training(**read_schema(schema), max_records=500)


# ── the second study, and both together ───────────────────────────────────────────────────────────────────────────────


def test_both_together_fit_a_limit_of_what_they_promise(first, second):
    task = second.task
    assert task.scaled is not None
    entries = [entry_of(first, 1, range(5), 0), entry_of(second, 1, range(5), 0)]
    losses_of_both = losses(entries, 1, "record")
    limit = total_epsilon(second)
    assert 0.995 < limit <= 1.0
    assert limit_admits(losses_of_both, limit, 1e-6)
    assert not limit_admits(losses_of_both, 0.998 * limit, 1e-6)
    ledger = float(total(entries, 1, "record").epsilon(1e-6))  # if both had been fixed beforehand
    assert 0.9 < ledger < limit
    gaussian = float(composed(second.protocol(), [first.protocol()], 1).epsilon(1e-6))  # the estimators' accountant
    assert gaussian == pytest.approx(ledger, rel=2e-3)
    assert first.check_promise() <= scaling_epsilon(1.0, 1e-6) < second.check_promise() < ledger


def test_what_a_training_says_of_the_first_is_what_the_first_costs(first, second):
    found = scaled_facts(second)
    assert found["epsilon"] == pytest.approx(first.check_promise(), rel=1e-9)
    told = Study.plan("where", asked(), NAMES, epsilon=0.5, attempts=3, absent=2, **PLAN)
    paid = Scaled(**told.answer([0.0] * 4 + [9.0])["scaled"])
    assert float(paid.curve(2, 1).epsilon(1e-6)) == pytest.approx(told.check_promise(), rel=1e-3)
    assert float(paid.curve(2, 1).epsilon(1e-6)) >= told.check_promise() * (1 - 1e-6)


def test_a_training_that_understates_what_scaling_cost_is_refused_by_who_paid_for_it(first, second):
    entries = [entry_of(first, 1, range(5), 0)]
    check_paid(second, {first.hash: entries}.get)
    check_paid(second, lambda study: [])  # took no part in it
    less = second.task.scaled.model_copy(update={"sigma": 1.01 * first.settings.sigma})
    lying = second.replace(task={"scaled": less.model_dump(mode="json")})
    with pytest.raises(Refused, match=r"the ledger of this party holds 0\.29"):
        check_paid(lying, {first.hash: entries}.get)
    with pytest.raises(Refused, match="states that the scaling of its columns cost at most"):
        check_paid(second, {first.hash: [*entries, entry_of(first, 2, range(5), 0)]}.get)


def test_a_training_that_names_another_study_is_only_stated(first, second):
    """A lie about the hash: a ledger holds the true study and adds up right; people are told that it holds none of that name."""
    ledger = {first.hash: [entry_of(first, 1, range(5), 0)]}
    lie = second.task.scaled.model_copy(update={"study": "f" * 64, "sigma": 1e5, "grid": 1.0})
    lying = second.replace(task={"scaled": lie.model_dump(mode="json")})
    check_paid(lying, lambda study: ledger.get(study, []))  # it may be true: others may have scaled the columns
    assert total_epsilon(lying) < total_epsilon(second)
    said = unheld_words(lying, lambda study: ledger.get(study, []))
    assert said.startswith("this party took no part in the study ffffffffffffffff…")
    assert said.endswith("what both cost together is what the study states")
    assert said.code == "scaling-not-held"
    assert unheld_words(second, lambda study: ledger.get(study, [])) is None
    assert unheld_words(first, lambda study: []) is None  # names none
    told = {"roster": NAMES, "answer": {"evaluation": None}}
    for entered, words in ((True, "as each party's ledger adds them up"), (False, "the sum is what the study states")):
        card = card_text(about(lying, told, entered) | {"digest": "0" * 64})
        assert words in card
        assert ("ledger adds them up" in card) == entered


def test_a_narrow_range_far_from_zero_keeps_its_centre_and_attempts_have_a_limit(second):
    far = ScalingTask(features=[{"name": "t", "range": [1e9, 1e9 + 100]}], max_records=10)
    (found,) = far.answer([5.0, -9.0, 10.0], 5)["features"]
    assert found["centre"] == pytest.approx(1e9 + 75, abs=1e-3)
    assert found["scale"] > 0
    assert str(int(found["centre"])) in Column("t", range=(1e9, 1e9 + 100), centre=found["centre"], scale=1.0).words
    said = second.task.scaled.model_dump()
    with pytest.raises(Misfit, match="at most 1,000"):
        Scaled(**said | {"attempts": 10**9})


def test_a_record_is_protected_as_the_noise_was_made_for_it(second):
    """Noise is for one record added or removed; changed is both: up to 2√f, not √(f+1)."""
    a, b = (moments(sign * np.ones((1, 9)), "record")[0] for sign in (1, -1))
    assert np.linalg.norm(a - b) > 1.5 * moment_length(9, "record")
    words = "added or removed; changing what a record says counts as both"
    for task in (asked(), second.task, Task(kind="mean", column="x", bounds=(0, 1), unit="record", max_records=9)):
        assert words in task.protected
    assert words in about(second, {"roster": NAMES, "answer": {"evaluation": None}})["privacy"]["neighbours"]


def test_what_is_told_to_people(second):
    text = " ".join(second.explain().split())
    age = second.task.table.features[0].words
    assert "age (20 to 60, scaled as " in age
    assert age in text
    assert "which has cost epsilon = 0.29" in text
    assert "the ledger of every party that took part holds it" in text
    card = card_text(about(second, {"roster": NAMES, "answer": {"evaluation": None}}) | {"digest": "0" * 64})
    assert "**Both together: ε = " in card
    assert f"| age | {age[5:-1]} | feature |" in card


def test_a_total_that_scaling_has_used_up_is_refused(second):
    with pytest.raises(InvalidValue, match="nothing is left to train with"):
        plan_training_after("train", second.task, NAMES, epsilon=0.2, **PLAN)
    plain = second.task.model_copy(update={"scaled": None})
    with pytest.raises(InvalidValue, match="names none"):
        plan_training_after("train", plain, NAMES, epsilon=1.0, **PLAN)


def test_public_centres_without_a_study_are_an_assumption(second):
    plain = Training(**second.task.model_dump(mode="json", by_alias=True, exclude={"scaled"}))
    assert "nobody has worked them out from these rows" in plain.assumed[0]
    fields = second.task.model_dump(mode="json", by_alias=True)
    fields["features"][2] = {"name": "paid", "range": [0, 1000]}
    with pytest.raises(Misfit, match="'paid' has no centre and scale"):
        Training(**fields)


def test_studies_without_scaling_are_what_they_were():
    """Their hashes, too: nothing of scaling stands in their canonical form."""
    task = Training(features=[FEATURES[0]], label="ill", classes=["no", "yes"], max_records=10)
    assert task.model_dump(mode="json")["features"] == [{"name": "age", "range": [20.0, 60.0], "values": None}]
    assert "scaled" not in task.model_dump(mode="json")


def test_every_party_and_every_prediction_scales_alike(second, tmp_path):
    """By the centre and scale in the study: rows at each party, and rows of whoever has the file of the model."""
    read = Study(**tomllib.loads(second.text))
    assert read == second
    rows = [{"age": "44", "sex": "f", "paid": "7", "ill": "no"}, {"age": "99", "sex": "m", "paid": "1e9", "ill": "yes"}]
    age, paid = (one for one in second.task.table.features if one.is_centred)
    expected = [[(44 - age.centre) / age.scale, -1, (7 - paid.centre) / paid.scale, 0],
                [(60 - age.centre) / age.scale, 1, (1000 - paid.centre) / paid.scale, 1]]  # fmt: skip
    for task in (second.task, read.task):
        np.testing.assert_allclose(task.rows(rows), expected, rtol=1e-12)
    said = about(second, {"roster": NAMES, "answer": {"evaluation": None}})
    theta = np.array([1.0, 0.0, 0.0, 0.0])  # by age alone
    save_model(tmp_path, theta, said)
    loaded = load_model(tmp_path)
    edge = [{"age": age.centre - 0.01, "sex": "f", "paid": 0}, {"age": age.centre + 0.01, "sex": "f", "paid": 0}]
    assert loaded.predict(edge).tolist() == ["no", "yes"]  # 0 is where the centre is, not the middle of the range
    assert loaded.schema == second.task.table


# ── columns ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"range": (0, 1), "centre": 0.5}, "both centre and scale"),
        ({"range": (0, 1), "scale": 0.5}, "both centre and scale"),
        ({"range": (0, 1), "centre": 2.0, "scale": 1.0}, "in its range, 0 to 1; got 2"),
        ({"range": (0, 1), "centre": float("nan"), "scale": 1.0}, "in its range"),
        ({"range": (0, 1), "centre": 0.5, "scale": 0.0}, "larger than 0"),
        ({"range": (0, 1), "centre": 0.5, "scale": -1.0}, "larger than 0"),
        ({"range": (0, 1), "centre": 0.5, "scale": 1e-9}, "millionth"),
        ({"range": (0, 1), "centre": 0.5, "scale": float("inf")}, "larger than 0"),
        ({"range": (0, 1), "centre": 0.5, "scale": float("nan")}, "larger than 0"),
        ({"values": ("a", "b"), "centre": 0.5, "scale": 1.0}, "centre and scale are of numbers"),
    ],
)
def test_centres_and_scales_that_make_no_sense_are_refused(options, words):
    with pytest.raises(InvalidValue, match=words):
        Column("x", **options)


def test_what_is_predicted_keeps_its_range():
    with pytest.raises(InvalidValue, match="what is predicted keeps its range"):
        Schema((Column("x", range=(0, 1)),), Column("y", range=(0, 1), centre=0.5, scale=1.0))
