"""Entries, their curves and totals, against computations that share nothing with them."""

import dataclasses
import math
from datetime import UTC, date, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.gossip.account.grid import wire_grid
from netdp.families.masked.peer import sum_loss
from netdp.peers.ledger.entries import (
    Entry,
    LedgerBroken,
    between,
    check_chain,
    curve,
    entry_of,
    observers,
    total,
    utc_text,
    year,
)
from netdp.peers.ledger.losses import NO_BOUND, loss_of, profile_loss, together
from netdp.peers.study import Study
from netdp.peers.study.task import Task
from netdp.privacy import GaussianCurve, ProfileCurve, gaussian_epsilon
from netdp.protocols import Gossip, MaskedSum, RingSum
from netdp.protocols.accounting import account


def masked(share=10**6, distance=300, dimension=1, kind="masked-sum"):
    return {"kind": kind, "share": share, "distance": distance, "dimension": dimension}


def entry(
    loss=None, roster=("ann", "bob", "cy", "dan"), unit="party", attempt=1, time="2026-11-16T10:00:00Z", me="ann"
):
    return Entry(time, 64 * "a", "waits", attempt, roster, me, unit, 1e-6, masked() if loss is None else loss)


def epsilon(entries, against, unit="party", delta=1e-6):
    return float(total(entries, against, unit).epsilon(delta))


# ── an independent computation: sums over all points of the plane ─────────────────────────────────────────────────────


def law(share, size, distance):
    """Probabilities of a sum of `size` discrete Gaussians, and of it moved by `distance`, by plain convolution."""
    reach = math.ceil(12 * math.sqrt(share)) + 1
    x = np.arange(-reach, reach + 1)
    one = np.exp(-(x**2) / (2 * share))
    one /= one.sum()
    noise = np.array([1.0])
    for _ in range(size):
        noise = np.convolve(noise, one)
    padding = np.zeros(distance)
    return np.concatenate([noise, padding]), np.concatenate([padding, noise])


def true_delta(pairs, eps):
    p, q = np.array([1.0]), np.array([1.0])
    for one, other in pairs:
        p, q = np.multiply.outer(p, one).ravel(), np.multiply.outer(q, other).ravel()
    return max(np.maximum(p - math.exp(eps) * q, 0).sum(), np.maximum(q - math.exp(eps) * p, 0).sum())


@pytest.mark.parametrize(
    ("first", "second", "near"),
    [
        ((40, 3, 12), (40, 3, 12), 1e-6),  # equal: exact
        ((40, 3, 12), (25, 3, 5), 0.25),  # coarse grids cost a margin
        ((400, 3, 30), (900, 3, 40), 0.03),
    ],
)
def test_two_releases_are_never_below_the_truth_and_not_far_above(first, second, near):
    """Rosters of four against any one party: sums of three shares are seen."""
    pairs = [law(share, size, distance) for share, size, distance in (first, second)]
    entries = [entry(masked(share, distance)) for share, _, distance in (first, second)]
    both = total(entries, 1)
    for eps in (0.0, 0.5, 1.0, 2.0, 3.0):
        truth = true_delta(pairs, eps)
        assert float(both.delta(eps)) >= truth * (1 - 1e-9)
    for delta in (1e-2, 1e-4):
        found = float(both.epsilon(delta))
        assert true_delta(pairs, found) <= delta * (1 + 1e-9)
        assert true_delta(pairs, max(found - near - 1e-3, 0.0)) > delta


@pytest.mark.parametrize("times", [1, 2, 3, 10])
def test_equal_releases_are_root_times_the_gaussian(times):
    """On a fine grid the certified ε is that of a Gaussian with √times·μ: not below it but for the grid, and hardly above."""
    entries = [entry(attempt=i + 1) for i in range(times)]
    for against, size in ((0, 4), ("zed", 4), (1, 3), ("bob", 3), (2, 2), (3, 1), (7, 1)):
        mu = math.sqrt(times) * 300 / math.sqrt(size * 10**6)
        ideal = float(gaussian_epsilon(mu, 1e-6))
        # the law of whole numbers is summed exactly: its loss may be a little less than that of real ones
        assert ideal * (1 - 1e-6) <= epsilon(entries, against) <= ideal * (1 + 1e-3)


def test_different_releases_add_their_squares():
    entries = [entry(masked(10**8, 2000)), entry(masked(2 * 10**8, 5000)), entry(masked(10**8, 1500.0, 5))]
    mu = math.sqrt(sum(d**2 / (3 * v) for v, d in ((10**8, 2000), (2 * 10**8, 5000), (10**8, 1500))))
    ideal = float(gaussian_epsilon(mu, 1e-6))
    assert ideal <= epsilon(entries, 1) <= ideal * (1 + 1e-3)


def test_nothing_seen_is_nothing_lost():
    assert epsilon([], 1) == 0
    assert epsilon([entry(masked(distance=0))], 3) == 0


# ── who looks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_roster_matters():
    """eve was in one roster, bob in both; zed in none."""
    entries = [entry(), entry(roster=("ann", "bob", "eve"))]
    bob, eve, zed = (epsilon(entries, name) for name in ("bob", "eve", "zed"))
    assert bob > eve > zed > 0
    assert epsilon(entries, 1) == bob  # the worst single party is in every roster here
    assert epsilon(entries, 0) == zed
    alone = epsilon([entry()], 0) + epsilon([entry(roster=("ann", "bob", "eve"))], "eve")
    assert eve < alone  # composition is better than adding ε


def test_any_k_bounds_every_named_party_and_grows_with_k():
    entries = [entry(), entry(roster=("ann", "eve")), entry(roster=("ann", "bob", "eve", "fay", "gus"))]
    names = observers(entries)
    assert names == ["bob", "cy", "dan", "eve", "fay", "gus"]
    any_one = epsilon(entries, 1)
    assert all(epsilon(entries, name) <= any_one for name in names)
    assert any_one > max(epsilon(entries, name) for name in names)  # nobody was everywhere
    sizes = [epsilon(entries, k) for k in range(6)]
    assert sizes == sorted(sizes)
    assert math.isfinite(sizes[-1])  # own noise is left, always
    assert epsilon(entries, 50) == sizes[4]  # at most four others in a roster


def test_own_noise_alone_is_the_local_loss():
    assert (
        epsilon([entry()], 3)
        == epsilon([entry(masked(kind="local"))], "zed")
        == epsilon([entry(masked(kind="local"))], 1)
    )


def test_who_is_nobody():
    with pytest.raises(InvalidValue, match="'ann' is this party itself"):
        total([entry()], "ann")
    for wrong in (-1, 1.0, True, None):
        with pytest.raises(InvalidValue, match="whole number of parties"):
            total([entry()], wrong)


# ── units ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_units_are_kept_apart():
    party, record = entry(), entry(unit="record")
    assert epsilon([party], 1, "record") == epsilon([party], 1, "party") == epsilon([record], 1, "record")
    assert epsilon([party, record], 1, "record") == epsilon([party, party], 1, "party")
    assert epsilon([record], 1, "party") == epsilon([party, record], 1, "party") == math.inf
    with pytest.raises(ValueError, match="household"):
        total([party], 1, "household")


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def tables(**single):
    return profile_loss({name: GaussianCurve(mu) for name, mu in single.items()}, GaussianCurve(2.0))


def test_tables_against_each_and_all():
    one = entry(tables(bob=0.5, cy=0.1, dan=0.3))
    mu = {"bob": 0.5, "cy": 0.1, "dan": 0.3, "zed": 0.5, 0: 0.5, 1: 0.5, 2: 2.0, 3: 2.0, 9: 2.0}
    for against, value in mu.items():
        assert epsilon([one], against) == pytest.approx(float(gaussian_epsilon(value, 1e-6)), rel=1e-9)
    unbounded = entry(profile_loss({name: GaussianCurve(0.1) for name in ("bob", "cy", "dan")}, None))
    assert math.isfinite(epsilon([unbounded, one], 1))
    assert epsilon([unbounded, one], 2) == math.inf


def test_the_worst_of_tables_lies_above_each():
    low = ProfileCurve([0.0, 1.0, 2.0], [0.5, 0.1, 0.0])
    flat = ProfileCurve([0.0, 3.0], [0.3, 0.01])
    one = entry(profile_loss({"bob": low, "cy": flat, "dan": GaussianCurve(0.2)}, None))
    points = np.linspace(0, 5, 401)
    worst = curve(one, 1).delta(points)
    singles = np.max([curve(one, name).delta(points) for name in ("bob", "cy", "dan")], axis=0)
    assert (worst >= singles - 1e-15).all()
    assert (worst <= singles * 1.001 + 1e-15).all()


def test_mixed_kinds_compose_safely_and_tightly():
    """A Gaussian stored as a table, one by its μ, and a masked sum: together the Gaussian of all three."""
    gaussian = ProfileCurve.of(GaussianCurve(0.2), np.linspace(0, 3, 1501))
    table = entry(profile_loss(dict.fromkeys(("bob", "cy", "dan"), gaussian), None))
    by_mu = entry(tables(bob=0.3, cy=0.3, dan=0.3))
    sum_of_three = entry(masked(10**8, 2000))
    mu = math.sqrt(0.2**2 + 0.3**2 + 2000**2 / (3 * 10**8))
    ideal = float(gaussian_epsilon(mu, 1e-6))
    assert ideal <= epsilon([table, by_mu, sum_of_three], 1) <= ideal * 1.02
    assert len(table.loss["curves"][0]["epsilons"]) <= 256


LOSSES = st.sampled_from(
    [
        masked(),
        masked(400, 11),
        masked(5000, 21.5, 3),
        masked(kind="local"),
        tables(bob=0.5, cy=0.1, dan=0.3),
        profile_loss({name: ProfileCurve([0.0, 0.5], [0.2, 1e-9]) for name in ("bob", "cy", "dan")}, None),
    ]
)


@settings(max_examples=25)
@given(losses=st.lists(LOSSES, min_size=2, max_size=5), data=st.data())
def test_the_order_of_entries_does_not_matter(losses, data):
    shuffled = data.draw(st.permutations(losses))
    against = data.draw(st.sampled_from([0, 1, 2, "bob", "zed"]))
    one, other = ([entry(loss) for loss in some] for some in (losses, shuffled))
    assert epsilon(one, against, delta=1e-5) == epsilon(other, against, delta=1e-5)


@settings(max_examples=15)
@given(losses=st.lists(LOSSES, min_size=1, max_size=3), more=LOSSES)
def test_every_entry_costs_something(losses, more):
    entries = [entry(loss) for loss in losses]
    assert epsilon([*entries, entry(more)], 1, delta=1e-5) > epsilon(entries, 1, delta=1e-5)


# ── from studies ──────────────────────────────────────────────────────────────────────────────────────────────────────

NAMES = [f"c{u}" for u in range(6)]


def plan(**options):
    task = Task(
        kind="mean", column="minutes", bounds=(0, 120), **({"unit": options.pop("unit")} if "unit" in options else {})
    )
    return Study.plan("waits", task, NAMES, graph="complete:6", epsilon=1.0, delta=1e-6, **options)


def test_an_entry_of_a_study_costs_what_the_study_promises():
    study = plan(colluders=2, attempts=3, absent=1)
    made = [entry_of(study, attempt, (0, 2, 3, 4, 5), 2, "2026-01-01") for attempt in (1, 2, 3)]
    assert made[0].roster == ("c0", "c2", "c3", "c4", "c5")
    assert (made[0].me, made[0].study, made[0].time) == ("c2", study.hash.hex(), "2026-01-01T00:00:00Z")
    assert epsilon(made, 2) == pytest.approx(float(study.promise().worst_epsilon(1e-6)), rel=1e-9)
    whole = [entry_of(study, attempt, range(6), 2) for attempt in (1, 2, 3)]
    assert epsilon(whole, 2) < epsilon(made, 2)


def test_a_ring_is_kept_as_tables():
    ring = RingSum(6, rounds=1, sigma=8.0, noise="distributed", grid=0.0625)
    loss = loss_of(ring, 2, NAMES)
    one = entry(loss, roster=tuple(NAMES), me="c2")
    for v in (0, 1, 3, 4, 5):
        certified = account(ring, observers=[v])
        for delta in (1e-3, 3e-5, 1e-6):  # the second lies between the points that are kept
            ideal = float(certified.epsilon(delta)[2])
            found = epsilon([one], NAMES[v], delta=delta)
            assert ideal * (1 - 1e-9) <= found <= ideal * (1 + (1e-9 if delta != 3e-5 else 2e-2))
    assert epsilon([one], 1) >= max(epsilon([one], NAMES[v]) for v in (0, 1, 3, 4, 5)) * (1 - 1e-9)
    assert epsilon([one], 2) > epsilon([one], 1)


def test_a_ring_against_two_is_the_worst_of_all_pairs():
    ring = RingSum(6, rounds=1, sigma=8.0, noise="distributed", grid=0.0625)
    one = entry(loss_of(ring, 2, NAMES, colluders=2), roster=tuple(NAMES), me="c2")
    pairs = [(v, w) for v in range(6) for w in range(v) if 2 not in (v, w)]
    worst = max(float(account(ring, observers=pair).epsilon(1e-6)[2]) for pair in pairs)
    assert epsilon([one], 2) == pytest.approx(worst, rel=1e-9)
    assert epsilon([one], 3) == epsilon([one], 5) >= worst * (1 - 1e-9)  # each is read to 1e-11
    assert epsilon([one], 3) == pytest.approx(
        float(account(ring, observers=[0, 1, 3, 4, 5]).epsilon(1e-6)[2]), rel=1e-9
    )


def test_gossip_on_a_grid_is_kept_as_tables():
    """Against one it is amplified, against all others local DP is left; in real numbers it is refused."""
    real = Gossip(graphs.ring(6), rounds=4, sigma=8.0, refresh=0.5)
    gossip = real.replace(grid=wire_grid(real, 1e-6))
    one = entry(loss_of(gossip, 2, NAMES), roster=tuple(NAMES), me="c2")
    found = {v: float(account(gossip, observers=[v]).epsilon(1e-6)[2]) for v in (0, 1, 3, 4, 5)}
    for v, ideal in found.items():
        assert epsilon([one], NAMES[v]) == pytest.approx(ideal, rel=1e-9)
    assert epsilon([one], 1) == pytest.approx(max(found.values()), rel=1e-9)
    assert epsilon([one], 2) >= epsilon([one], 1)


def test_what_no_proof_covers_is_refused():
    with pytest.raises(Unsupported, match="pads between all pairs only"):
        sum_loss(MaskedSum(graphs.ring(6), sigma=1.0, masks=2))
    with pytest.raises(Unsupported, match="real numbers"):
        loss_of(Gossip(graphs.complete(6), rounds=3, sigma=1.0), 0, NAMES)
    with pytest.raises(Unsupported, match="real numbers"):
        loss_of(RingSum(6, rounds=1, sigma=1.0), 0, NAMES)
    with pytest.raises(InvalidValue, match="5 names for 6 parties"):
        loss_of(RingSum(6, rounds=1, sigma=1.0, grid=0.0625), 0, NAMES[:5])


# ── entries as text, times, the chain ─────────────────────────────────────────────────────────────────────────────────


def test_entries_survive_their_text():
    for loss in (masked(5000, 21.5, 3), tables(bob=0.5, cy=0.1, dan=1 / 3)):
        one = entry(loss, unit="record")
        assert Entry.from_json(one.to_json()) == one
        assert Entry.from_json(one.to_json()).to_json() == one.to_json()


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"study": "abc"}, "64 hexadecimal"),
        ({"attempt": 0}, "from 1 on"),
        ({"attempt": True}, "from 1 on"),
        ({"roster": ("bob", "cy")}, "'ann' included"),
        ({"roster": ("ann", "ann")}, "everybody once"),
        ({"unit": "household"}, "'household'"),
        ({"delta": 0.0}, "between 0 and 1"),
        ({"time": "yesterday"}, "cannot read 'yesterday'"),
        ({"name": ""}, "non-empty"),
        ({"loss": {"kind": "magic"}}, "unknown kind of loss 'magic'"),
        ({"loss": masked(share=0)}, "from 1 on"),
        ({"loss": masked(distance=math.nan)}, "number ≥ 0"),
        ({"loss": masked(distance=-1)}, "number ≥ 0"),
        ({"loss": masked(distance=1.5)}, "whole number of grid steps"),
        ({"loss": masked() | {"epsilon": 0.1}}, "share and a dimension"),
        ({"loss": tables(bob=0.5)}, "everybody in the roster"),
        ({"loss": tables(bob=0.5, cy=0.1, dan=0.3) | {"any": 7}}, "does not have"),
        ({"loss": tables(bob=0.5, cy=0.1, dan=0.3) | {"sizes": {"2": 7}}}, "does not have"),
        ({"loss": tables(bob=0.5, cy=0.1, dan=0.3) | {"sizes": {"1": 0}}}, "numbers from 2 on"),
        ({"loss": tables(bob=0.5, cy=0.1, dan=0.3) | {"curves": [{"mu": math.inf}] * 4}}, "finite"),
    ],
)
def test_an_entry_that_could_not_be_added_up_is_refused(changes, match):
    with pytest.raises(InvalidValue, match=match):
        dataclasses.replace(entry(), **changes)


def test_texts_that_are_no_entry():
    for text in ("", "[]", "{}", '{"time": 3}', "[" * 10000):
        with pytest.raises(InvalidValue):
            Entry.from_json(text)


def test_times_and_years():
    assert utc_text(datetime(2026, 3, 1, 12, tzinfo=UTC)) == "2026-03-01T12:00:00Z"
    assert utc_text("2026-03-01T01:00:00+02:00") == "2026-02-28T23:00:00Z"
    assert abs((datetime.fromisoformat(utc_text()) - datetime.now(UTC)).total_seconds()) < 3600
    times = ["2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z", "2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z"]
    entries = [entry(time=time) for time in times]
    assert [e.time for e in between(entries, *year(2026))] == times[1:3]
    assert [e.time for e in between(entries, date(2026, 12, 1), None)] == times[2:]
    with pytest.raises(InvalidValue, match="four digits"):
        year(26)


def test_the_chain_names_the_row():
    with pytest.raises(LedgerBroken, match="row 1 of the ledger: is missing") as found:
        check_chain([(2, entry().to_json(), b"", b"", b"")])
    assert found.value.row == 1
    assert NO_BOUND.epsilon(0.5) == math.inf


def test_losses_add_up_as_printed():
    """Formula pin: μ = √Σμ², four units on every square and four on the root; four of μ = 1 make exactly 2(1 + 6u)."""
    found = together([GaussianCurve(1.0)] * 4)
    assert float(found.mu) == 2 * (1 + 6 * 2.0**-53)
    assert float(together([GaussianCurve(1.0)]).mu) == 1 + 6 * 2.0**-53
