"""Every combination of what is reported, how it is handed over and by which way it goes, by whole peers.

What the peers do is held against the steps of `netdp.families.shuffle.reports`, taken here a second time. On twelve real processes:
`python benchmarks/shuffle_combinations.py`.
"""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

from netdp.errors import InvalidValue
from netdp.families.shuffle.reports import expected_empty, hop, pick
from netdp.mechanisms import PrivUnit
from netdp.mechanisms.privunit import GridPrivUnit
from netdp.peers.messages import ItemKind, Key
from netdp.peers.streams import unseal
from netdp.peers.study import Study, Task
from netdp.protocols import RelayedShuffle, Shuffle
from netdp.protocols.accounting import account

sys.path.append(str(Path(__file__).parent))

import shuffled

N = 6
DIRECTION = Task(kind="direction", columns=("x", "y", "z"))
ASKED = {"cells": shuffled.HISTOGRAM, "numbers": shuffled.MEAN, "directions": DIRECTION}
VECTORS = [{"x": 3 + u, "y": -u, "z": 0.5} for u in range(N)]


@pytest.fixture(scope="module")
def folder():
    with shuffled.folder() as made:
        yield made


@pytest.fixture(scope="module")
def people(folder):
    return shuffled.identities(folder, N)


def company(people, folder, task, **options):
    study = shuffled.study_of(people, task, epsilon=8.0, **options)
    return shuffled.Company(study, people, folder, VECTORS if task is DIRECTION else None).run()


def again(one):
    """The reports that the curator should count, from what every party wrote down: by the steps, without any peer."""
    how, graph = one.study.settings, one.study.graph
    written = [one.written(u) for u in range(N)]
    hands = [[own] for _, own, _ in written]
    room = how.cover or None
    for t in range(1, how.rounds + 1):
        moved = [hop(hands[u], written[u][0], t, tuple(graph.neighbors(u)), how.laziness, room) for u in range(N)]
        hands = [
            [*moved[u].stays, *(report for v in graph.neighbors(u) for report in moved[v].bundles[u])] for u in range(N)
        ]
    if how.reporting == "single":
        hands = [[pick(hand, key) or dummy] for hand, (key, _, dummy) in zip(hands, written, strict=True)]
    return sorted(report for hand in hands for report in hand)


@pytest.mark.parametrize(
    ("asked", "reporting", "cover"), list(itertools.product(ASKED, ("all", "single"), (0, 4))), ids=lambda one: str(one)
)
def test_every_combination_is_what_its_steps_say(people, folder, tmp_path, asked, reporting, cover):
    one = company(people, tmp_path / "run", ASKED[asked], reporting=reporting, cover=cover)
    study, reports = one.study, one.study.running.reports()
    assert all(told["ok"] for told in one.told.values()), one.told
    sealed = again(one)
    if reporting == "all":
        assert sealed == sorted(own for _, own, _ in (one.written(u) for u in range(N)))
    roster = tuple(range(N))
    opened = [reports.read(unseal(people[N], one_sealed, study.hash, 1, roster)) for one_sealed in sealed]
    empty = expected_empty(study.graph, roster) if reporting == "single" else 0.0
    total = reports.estimate(opened, N, empty)
    for told in one.told.values():
        np.testing.assert_allclose(told["total"], total, rtol=1e-9, atol=1e-9)
    last = Key(ItemKind.BUNDLE, 1, 0, study.settings.rounds + 1)
    handed = {item.body for u, to, item in one.items(sender=0, to=N) if item.key == last}
    assert len(handed) == 1
    ways = {(u, v) for u, v, item in one.items() if item.key.index <= study.settings.rounds}
    assert all(N in way for way in ways) == bool(cover)  # through the server alone, or along links alone
    assert isinstance(study.protocol(), RelayedShuffle if cover else Shuffle)


# ── directions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_direction_is_a_vector_of_length_one():
    assert DIRECTION.rows([{"x": 3, "y": 4, "z": 0}]).tolist() == [[0.6, 0.8, 0.0]]
    huge = DIRECTION.rows([{"x": 1e200, "y": -1e200, "z": 1e-200}])
    np.testing.assert_allclose(huge, [[0.5**0.5, -(0.5**0.5), 0.0]])
    assert np.linalg.norm(DIRECTION.rows([{"x": 1e-280, "y": 2e-280, "z": 0}])) == pytest.approx(1.0)
    assert (DIRECTION.dimension, DIRECTION.sensitivity) == (3, 2.0)
    assert DIRECTION.sensitivity_under("laplace") >= 12**0.5
    assert DIRECTION.answer([3.0, 0.0, -1.5], parties=3)["direction"] == {"x": 1.0, "y": 0.0, "z": -0.5}
    assert DIRECTION.error(3.0, 6) == 0.5
    assert DIRECTION.describe() == "the mean over the parties of the vectors 'x', 'y', 'z', each divided by its length"
    with pytest.raises(InvalidValue, match="all zero, so they have no direction"):
        DIRECTION.rows([{"x": 0, "y": 0.0, "z": 0}])
    for wrong, said in (
        ({"columns": ("x",)}, "a direction needs two or more different columns"),
        ({"column": "x"}, "a direction has several"),
        ({"columns": ("x", "y"), "bounds": (0, 1)}, "bounds: belong to sums and means"),
        ({"columns": ("x", "y"), "unit": "record", "max_records": 2}, "unit: of a direction every party has one row"),
        ({"columns": ("x", "y"), "value": "mean"}, "value: of a direction"),
    ):
        with pytest.raises(InvalidValue, match=said):
            Task(kind="direction", **wrong)


def test_directions_are_reported_by_privunit_and_promised_as_any_report(tmp_path):
    names = [f"p{u:02}" for u in range(24)]
    study = Study.plan("way", DIRECTION, names, graph="complete:24", epsilon=0.8, delta=1e-3, kind="shuffle")
    mechanism = study.running.reports().mechanism
    assert isinstance(mechanism, GridPrivUnit)
    assert mechanism.drawn_loss <= study.settings.epsilon0
    assert study.settings.values == 0
    assert study.check_promise() <= 0.8 < study.settings.epsilon0
    error = PrivUnit(3, study.settings.epsilon0).squared_error(24)
    assert study.noise() == pytest.approx(24 * (error / 3) ** 0.5, rel=1e-3)
    study.write(tmp_path / "way.toml")
    assert Study.read(tmp_path / "way.toml") == study
    with pytest.raises(InvalidValue, match=r"masked-sum answers sum, mean.*what does: shuffle"):
        Study.plan("way", DIRECTION, names, graph="complete:24", epsilon=0.8, delta=1e-3)
    with pytest.raises(InvalidValue, match="vectors by PrivUnit, got 3"):
        study.replace(protocol={"values": 3})


@pytest.mark.parametrize("colluders", [(), (2,)])
def test_single_reports_through_a_server_are_promised_as_all_hands(colluders):
    """What is handed over singly follows from all hands and from coins: no more is promised, and no more is known."""
    study = Study.plan(
        "s", shuffled.HISTOGRAM, [f"p{u}" for u in range(8)], graph="complete:8", epsilon=1.0, delta=1e-3, kind="shuffle",
        reporting="single", cover=3,
    )  # fmt: skip
    how = study.settings
    all_hands = RelayedShuffle(study.graph, how.rounds, how.epsilon0, cover=how.cover, values=3)
    assert study.protocol() == all_hands
    found = study.running.promise(len(colluders)).worst_epsilon(1e-3)
    assert found >= account(all_hands, ("curator", *colluders)).worst_epsilon(1e-3) * (1 - 1e-9)
