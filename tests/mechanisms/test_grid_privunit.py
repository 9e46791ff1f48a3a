"""PrivUnit in whole numbers: shares of caps and losses by enumeration, the sampler's law, the error.

Proofs: docs/proofs/mechanisms.md#privunit.
"""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from netdp.errors import InvalidValue, NetdpError
from netdp.mechanisms import ExactMechanism, GridPrivUnit, PrivUnit, on_a_grid
from netdp.mechanisms.coins import ALL
from netdp.mechanisms.discrete_gaussian import words_from


def words(seed=0):
    return words_from(np.random.default_rng(seed))


def lattice(mechanism, reach):
    """All z that Q can draw within `reach` deviations, and their probabilities."""
    s, d = mechanism.spread, mechanism.dimension
    x = np.arange(-reach * s, reach * s + 1)
    z = np.stack(np.meshgrid(*[x] * d, indexing="ij"), axis=-1).reshape(-1, d)
    z = z[(z**2).sum(axis=1) >= mechanism.shortest**2]
    weight = np.exp(-(z**2).sum(axis=1) / (2.0 * s * s))
    return z, weight / weight.sum()


def true_caps(mechanism, reach, count, seed=0):
    """Q of the caps of several w: along axes and diagonals, where a lattice is least round, and of random ones."""
    z, Q = lattice(mechanism, reach)
    d, rng = mechanism.dimension, np.random.default_rng(seed)
    fixed = [
        np.eye(d, dtype=np.int64)[0],
        np.ones(d, dtype=np.int64),
        -np.eye(d, dtype=np.int64)[-1],
        np.arange(1, d + 1),
    ]
    ws = [*fixed, *rng.integers(-50, 51, (count, d))]
    return z, Q, [mechanism.on_cap(z, np.broadcast_to(w, z.shape)) for w in ws if w.any()]


@pytest.mark.parametrize(
    ("d", "epsilon0", "spread", "near"), [(2, 1.0, 16, 0.8), (2, 4.0, 40, 0.97), (2, 0.7, 50, 0.93), (3, 2.0, 6, 0.6)]
)
def test_certified_loss_by_enumeration(d, epsilon0, spread, near):
    """The law of the report is enumerated: every ratio of two probabilities is at most e^ε₀, and the worst not far below."""
    mechanism = GridPrivUnit(d, epsilon0, spread=spread)
    _, Q, caps = true_caps(mechanism, 5, 10)
    low, high = mechanism.shares
    shares = np.array([Q[cap].sum() for cap in caps])
    assert low <= shares.min()
    assert shares.max() <= high
    assert low <= mechanism.cap <= high
    p = 1 - mechanism.flips / ALL
    laws = [np.where(cap, p / q, (1 - p) / (1 - q)) for cap, q in zip(caps, shares, strict=True)]
    worst = max(np.log((a / b).max()) for a in laws for b in laws)
    assert worst <= mechanism.drawn_loss <= mechanism.epsilon0
    assert worst >= near * mechanism.drawn_loss
    for epsilon in (0.0, 0.4 * epsilon0, 0.8 * epsilon0):
        found = max(Q @ np.maximum(a - math.exp(epsilon) * b, 0) for a in laws for b in laws)
        assert found <= float(mechanism.curve.delta(epsilon))
        assert found >= 0.7 * float(mechanism.curve.delta(epsilon)) or spread < 40


def test_the_shares_close_in_on_those_of_the_sphere():
    for d, epsilon0 in ((2, 1.0), (10, 4.0), (200, 8.0)):
        gaps = []
        for spread in (2**10, 2**14, 2**20):
            mechanism = GridPrivUnit(d, epsilon0, spread=spread)
            low, high = mechanism.shares
            assert low <= mechanism.cap <= high
            gaps.append((mechanism.cap - low) / mechanism.cap)
        assert gaps[0] > 10 * gaps[1] > 100 * gaps[2]
        assert gaps[2] < 1e-4


@pytest.mark.parametrize(("d", "epsilon0"), [(2, 0.5), (3, 1.0), (10, 4.0), (200, 1.0), (200, 8.0), (5000, 2.0)])
def test_it_is_as_private_and_as_accurate_as_on_the_sphere(d, epsilon0):
    ideal = PrivUnit(d, epsilon0)
    mechanism = on_a_grid(ideal)
    assert isinstance(mechanism, ExactMechanism)
    low, _ = mechanism.shares
    p = 1 - mechanism.flips / ALL
    assert math.log(p / (1 - p) * (1 - low) / low) <= epsilon0 * (1 + 1e-14)
    assert mechanism.drawn_loss == pytest.approx(epsilon0, rel=1e-9)
    assert mechanism.squared_error(7) == pytest.approx(ideal.squared_error(7), rel=1e-4)
    for epsilon in (0.0, 0.5 * epsilon0):
        assert float(mechanism.curve.delta(epsilon)) == pytest.approx(float(ideal.curve.delta(epsilon)), rel=1e-4)
    assert float(mechanism.curve.delta(epsilon0)) == 0


def against(mechanism, found, z, mass):
    """χ² of draws against probabilities of single vectors, rare ones together."""
    size = 4 * mechanism.spread * 6
    code = lambda rows: (rows[:, 0] + size) * 4 * size + rows[:, 1] + size  # noqa: E731
    common = mass * len(found) > 10
    counts = dict(zip(*np.unique(code(found), return_counts=True), strict=True))
    seen = np.array([counts.get(k, 0) for k in code(z[common]).tolist()])
    expected = mass[common] * len(found)
    return stats.chisquare(
        np.append(seen, len(found) - seen.sum()), np.append(expected, len(found) - expected.sum())
    ).pvalue


def test_the_sampler_draws_the_enumerated_law():
    mechanism = GridPrivUnit(2, 1.5, spread=16)
    u = np.array([0.6, 0.8])
    w = mechanism.directions(u[None])
    z, Q = lattice(mechanism, 6)
    cap = mechanism.on_cap(z, np.broadcast_to(w[0], z.shape))
    p, q = 1 - mechanism.flips / ALL, Q[cap].sum()
    reports = mechanism.report(np.tile(u, (60_000, 1)), words(1))
    assert against(mechanism, reports, z, Q * np.where(cap, p / q, (1 - p) / (1 - q))) > 1e-4


@pytest.mark.parametrize("w", [(5, 3), (1, 0), (-7, 24)])
def test_drawing_around_the_cap_gives_the_same_law_as_rejection(w):
    """With long vectors only, so that the detour pays: both ways against the enumerated law."""
    mechanism = GridPrivUnit(2, 4.0, spread=8)
    mechanism.__dict__["shortest"] = 14
    z, Q = lattice(mechanism, 7)
    cap = mechanism.on_cap(z, np.broadcast_to(w, z.shape))
    rows = np.tile(np.array(w, dtype=np.int64), (15_000, 1))
    for draw in (mechanism._around, mechanism._either):
        found = mechanism._until_kept(rows, draw, words(2))
        assert against(mechanism, found, z, np.where(cap, Q, 0) / Q[cap].sum()) > 1e-4
    off = mechanism._until_kept(rows, mechanism._off, words(3))
    assert against(mechanism, off, z, np.where(cap, 0, Q) / Q[~cap].sum()) > 1e-4


def test_the_edge_of_the_cap_is_decided_in_whole_numbers():
    """γ = 3/5 exactly is not in 2⁻⁴⁰; ½ is: (1, √3)-like vectors that meet it, and miss it by one part in 10³⁰."""
    mechanism = GridPrivUnit(3, 2 * math.log(3), spread=64)  # γ = tanh(ε₀/4) = ½ in three dimensions, about
    mechanism.__dict__["edge"] = 2**39
    w = np.array([[1, 1, 0]])
    on = lambda *z: bool(mechanism.on_cap(np.array([z]), w)[0])  # noqa: E731
    assert on(1, 0, 1)  # cosine exactly ½
    assert on(10**8, 0, 10**8)
    assert not on(10**8, 0, 10**8 + 1)
    assert on(10**8 + 1, 0, 10**8)
    assert not on(-1, 0, -1)
    assert not on(-1, -1, 0)


@pytest.mark.parametrize(("d", "epsilon0", "n"), [(3, 2.0, 20_000), (200, 4.0, 1500), (60, 12.0, 400)])
def test_estimates(d, epsilon0, n):
    mechanism = GridPrivUnit(d, epsilon0)
    rng = np.random.default_rng(5)
    u = rng.standard_normal(d)
    u /= np.linalg.norm(u)
    reports = mechanism.report(np.tile(u, (n, 1)), words(6))
    assert mechanism.readable(reports).all()
    along = (reports @ u) / np.linalg.norm(reports, axis=1)
    assert abs(np.mean(along >= mechanism.threshold) - mechanism.inside) < 4.5 * math.sqrt(mechanism.outside / n) + 1e-4
    off = mechanism.estimate(reports) - u
    expected = mechanism.squared_error(n)
    assert np.sum(off**2) == pytest.approx(expected, rel=6 * math.sqrt(2 / d))
    assert abs(off @ u) < 4.5 * along.std() / mechanism.mean_length / math.sqrt(n)


def test_coarse_grids_still_have_a_direction():
    w = GridPrivUnit(5, 2.0, spread=20).directions(np.full((2, 5), 0.2**0.5) * [[1], [-1]])
    assert w.any(axis=1).all()
    assert w[0].sum() == 1 == -w[1].sum()


def test_refusals():
    for make, message in (
        (lambda: GridPrivUnit(2, 1.0, spread=1), "spread must lie between 2 and 67108864 for 2 numbers, got 1"),
        (lambda: GridPrivUnit(10**6, 1.0, spread=2**21), "between 2 and 1048576"),
        (lambda: GridPrivUnit(50, 1.0, spread=2), "larger spread"),
        (lambda: GridPrivUnit(200, 1e-3, spread=2**8), "too small for spread=256.*larger spread"),
        (lambda: GridPrivUnit(2, 50.0), "tries for a report, more than 10,000.*floating point"),
        (lambda: GridPrivUnit(2, 1.0).report([[3.0, 4.0]], words()), "norm 5"),
        (lambda: GridPrivUnit(2, 1.0).estimate([[0, 0]]), "row 0 of reports is zero"),
    ):
        with pytest.raises(InvalidValue, match=message):
            make()
    mechanism = GridPrivUnit(3, 1.0)
    assert mechanism.readable(np.array([[0, 0, 0], [1, 0, 0], [2**40, 0, 0]])).tolist() == [False, True, False]
    with pytest.raises(NetdpError, match="broken"):
        mechanism.report(np.eye(3), lambda size: np.zeros(size, dtype=np.uint64))


# ── formula pins: printed expressions, evaluated anew ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("dimension", "epsilon0", "spread"), [(6, 3.0, 256), (40, 4.0, 1024), (3, 2.0, 4096)])
def test_the_shares_of_caps_are_as_printed(dimension, epsilon0, spread):
    """q₋ and q₊ of the theorem with 30 digits, 10⁻⁹ of every term on the safe side; ⌈2⁶⁴(1−q₋)/(1−q₋+e^ε₀q₋)⌉ words off the cap."""
    m = GridPrivUnit(dimension, epsilon0, spread=spread)
    with mpmath.workdps(30):
        d, s, rho, edge = dimension, mpmath.mpf(spread), m.shortest, mpmath.mpf(m.threshold)
        v, h, half = s**2, mpmath.sqrt(d) / 2, mpmath.mpf(d) / 2

        def longer_than(x):
            return mpmath.gammainc(half, x**2 / (2 * v), mpmath.inf, regularized=True)

        q = mpmath.betainc(half - 0.5, 0.5, 0, 1 - edge**2, regularized=True) / 2
        rim = (1 - edge**2) ** (half - 1) / mpmath.beta(0.5, half - 0.5)
        inverse = mpmath.gamma(half - 0.5) / mpmath.gamma(half) / (mpmath.sqrt(2) * s)
        longer, about = longer_than(rho + h), longer_than(max(rho - h, 0))
        blurred = mpmath.pi / 2 * h * min(inverse, longer / (rho + h))
        more = mpmath.pi / 2 * h * (min(inverse, about / (rho - h)) if rho > h else inverse)
        tiny = 1 - longer_than(h) if rho <= 2 * h else 0
        low, high, a = mpmath.mpf(0), mpmath.mpf(1), d / (24 * v)
        for r in (10, 30):
            tail = mpmath.exp(-(mpmath.mpf(r) ** 2) / 2)
            b = (mpmath.sqrt(d) + r + h / s) ** 2 / (24 * v)
            low = max(low, mpmath.exp(-b) * (q * longer - rim * blurred - tail) / min(1, mpmath.exp(a) * about))
            most = q * about + more / mpmath.beta(0.5, half - 0.5) + tiny
            high = min(high, mpmath.exp(a + b) * most / (longer - tail))
        assert 1 - 1e-8 <= m.shares[0] / low < 1
        assert 1 < m.shares[1] / high <= 1 + 1e-8
        stated = mpmath.mpf(m.shares[0])
        exact = 2**64 * (1 - stated) / (1 - stated + mpmath.exp(mpmath.mpf(epsilon0)) * stated)
        assert exact <= m.flips <= exact * (1 + mpmath.mpf(3e-13)) + 1
