"""From private values to an estimate at the curator, by network shuffling: randomize, walk, hand over, estimate.

**Which draws.** Reports are whole numbers, whose law is no less private than what is accounted for: a randomizer on real numbers
(Laplace, Gaussian, PrivUnit) is replaced by its version on a grid (`netdp.mechanisms.on_a_grid`), no less private and with the
same error but for rounding. With `floats=True` it draws in floating point itself, some ten times as fast, and no guarantee is
about those reports; the result says which it was (`draws`). See docs/guarantees.md#finite-precision.

**All.** Every report arrives exactly once, so the estimate and its error are those of the randomizer alone, after any number
of rounds: as with a trusted shuffler, or with local DP.

**Single.** Each user hands over one item: a report, or a dummy made from the null value x₀ if it holds nothing. D users are
empty; the curator cannot tell which, nor how many. It uses the expectation E₀ = E[D] for the stationary law π,

    E₀ = Σ_u (1 − π_u)ⁿ,        estimate = (n·ā − E₀·x₀)/(n − E₀),

ā being the unbiased mean over all n items. *Unbiased when positions are independent draws from π*: they do not depend on the
origins, so given D the set of reports handed over is a uniformly random one of n − D, whose sum has the mean (n − D)x̄; and
E[(n−D)x̄ + D·x₀ − E₀x₀] = (n − E₀)x̄. By the same argument its expected squared error is exactly

    [ n·v + Var(D)·‖x₀ − x̄‖² + E[D(n−D)]/n · S² ]/(n − E₀)²

with v the randomizer's error per report and S² = Σ‖x_u − x̄‖²/(n−1): noise, luck in the number of dummies, luck in which
reports are dropped (the sum of a random n−D out of n has the variance (n−D)D/n·S²).

*Biased after too few rounds.* A report that is often alone in a hand is handed over more often. If n reports' positions are
within total variation η of independent draws from π (η ≤ n·s with s the separation distance), the expected estimate given
the positions moves within a ball of radius R = n(max‖x_u‖ + ‖x₀‖)/(n − E₀) around 0, so the bias is at most 2ηR: nothing
after the rounds that privacy needs anyway, and visible after few.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.mechanisms import (
    Gaussian,
    GridGaussian,
    GridLaplace,
    GridPrivUnit,
    Laplace,
    Mechanism,
    PrivUnit,
    RandomizedResponse,
    UnaryEncoding,
    on_a_grid,
)
from netdp.mechanisms.base import EXACT_DRAWS, FLOAT_DRAWS, OWN_DRAWS
from netdp.numerics.arrays import FloatArray
from netdp.protocols import FaultyShuffle, RelayedShuffle, Shuffle
from netdp.utility.shuffle import empty_hands, null_row

from .shuffle import ShuffledReports, shuffle_reports, stream


@dataclass(frozen=True, eq=False)
class Collected:
    """What the curator has in the end: `estimate` of the mean or of the frequencies, and the run it came from.

    `mechanism` is the randomizer that drew, `draws` what is true of its draws.
    """

    estimate: FloatArray
    run: ShuffledReports = field(repr=False)
    mechanism: Mechanism
    draws: str

    def __str__(self) -> str:
        shown = ", ".join(f"{x:.4g}" for x in self.estimate[:6]) + (", …" if len(self.estimate) > 6 else "")
        return f"the curator's estimate by {type(self.mechanism).__name__}: {shown}\n{self.run}\n{self.draws}"


def collect(
    protocol: Shuffle,
    mechanism: Mechanism,
    values: npt.ArrayLike,
    seed: int,
    *,
    null: Any = None,
    floats: bool = False,
) -> Collected:
    """Randomize every user's value, shuffle the reports through the network, estimate; the same seed gives the same run.

    The randomizer may be no less private than the (ε₀, δ₀) that the protocol states. `null` is the value dummies are made
    from, and is needed for reporting="single" only. Reports are whole numbers (`netdp.mechanisms.on_a_grid`);
    `floats=True` draws those of Laplace, Gaussian and PrivUnit in floating point: faster, and for simulation only.

    >>> from netdp import graphs
    >>> from netdp.mechanisms import RandomizedResponse
    >>> p = Shuffle(graphs.regular(3000, 6, seed=1), rounds=30, epsilon0=1.0)
    >>> done = collect(p, RandomizedResponse(2, 1.0), [0] * 1000 + [1] * 2000, seed=0)
    >>> done.estimate.round(1).tolist(), done.run.traffic.mean_sent
    ([0.3, 0.7], 30.0)
    >>> collect(p, RandomizedResponse(2, 1.5), [0] * 3000, seed=0)
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: the protocol states ε₀ = 1, δ₀ = 0, but this RandomizedResponse has δ = 0.322 at that ε₀
    (its own statement: ε₀ = 1.5, δ₀ = 0); take more noise, or state the larger loss in the protocol
    """
    mechanism, draws = which_draws(mechanism, floats)
    check_mechanism(protocol, mechanism)
    data = mechanism.check(values)
    if len(data) != protocol.n:
        raise InvalidValue(f"there are {protocol.n} users; give one value for each, got {len(data)}")
    if protocol.reporting == "all":
        if null is not None:
            raise InvalidValue(f'reporting="all" sends no dummies; leave null out, got {null!r}')
        run = shuffle_reports(protocol, mechanism.randomize(data, stream(seed, 2)), seed)
        return Collected(mechanism.estimate(run.view.reports), run, mechanism, draws)
    instead = null_row(mechanism, null)

    def dummies(count: int) -> npt.NDArray[Any]:
        reports = mechanism.randomize(np.repeat(instead, max(count, 1), axis=0), stream(seed, 3))
        return reports[:count]

    run = shuffle_reports(protocol, mechanism.randomize(data, stream(seed, 2)), seed, dummies=dummies)
    return Collected(estimate_single(protocol, mechanism, run.view.reports, null), run, mechanism, draws)


def which_draws(mechanism: Mechanism, floats: bool) -> tuple[Mechanism, str]:
    """The randomizer that is to draw, and what is true of its draws.

    >>> used, draws = which_draws(Laplace.interval(0.0, 1.0, 1.0), floats=False)
    >>> type(used).__name__, draws.startswith("reports are whole numbers")
    ('GridLaplace', True)
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidValue(f"mechanism must be a randomizer such as RandomizedResponse(2, 1.0), got {mechanism!r}")
    # of randomizers of one's own nothing is known, whatever methods they have and whatever they are derived from
    if type(mechanism) in (RandomizedResponse, UnaryEncoding, GridLaplace, GridGaussian, GridPrivUnit):
        return mechanism, EXACT_DRAWS
    if type(mechanism) not in (Laplace, Gaussian, PrivUnit):
        return mechanism, OWN_DRAWS
    return (mechanism, FLOAT_DRAWS) if floats else (on_a_grid(mechanism), EXACT_DRAWS)


def check_mechanism(protocol: Shuffle | FaultyShuffle | RelayedShuffle, mechanism: Mechanism) -> None:
    """Refuse a randomizer whose profile is above δ₀ at the protocol's ε₀."""
    if not isinstance(mechanism, Mechanism):
        raise InvalidValue(f"mechanism must be a randomizer such as RandomizedResponse(2, 1.0), got {mechanism!r}")
    reached = float(mechanism.curve.delta(protocol.epsilon0))
    if isinstance(mechanism, Gaussian | GridGaussian):  # exact, where chords of the curve lie a little above
        reached = min(reached, mechanism.delta0_at(protocol.epsilon0))
    if not reached <= protocol.delta0:
        raise InvalidValue(
            f"the protocol states ε₀ = {protocol.epsilon0:g}, δ₀ = {protocol.delta0:g}, but this "
            f"{type(mechanism).__name__} has δ = {reached:.3g} at that ε₀ (its own statement: ε₀ = {mechanism.epsilon0:g}, "
            f"δ₀ = {mechanism.delta0:.3g}); take more noise, or state the larger loss in the protocol"
        )


def estimate_single(protocol: Shuffle, mechanism: Mechanism, reports: npt.ArrayLike, null: Any) -> FloatArray:
    """(n·ā − E₀·x₀)/(n − E₀) from one item per user."""
    items = np.asarray(reports)
    if len(items) != protocol.n:
        raise InvalidValue(f"there are {protocol.n} users and each hands over one item; got {len(items)}")
    empty, _ = empty_hands(protocol)
    instead = mechanism.answer(null_row(mechanism, null))
    return np.asarray((protocol.n * mechanism.estimate(items) - empty * instead) / (protocol.n - empty))
