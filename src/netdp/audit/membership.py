"""Membership inference on masked descent: is somebody's record in the data, asked by one who knows all the rest.

**What is seen.** In every iteration t of `MaskedDescent` everybody reads one noisy sum S_t of clipped gradients, in grid steps. The
attacker knows all data but one record r of the target, all coins but r's, and its own noise. It subtracts what it knows,
and is left with R_t = c_t·k_t + the noise of the honest parties, of variance V: k_t is r's clipped gradient, c_t ∈ {0, 1} the
secret coin of probability q, and c_t = 0 throughout if r is not there. Its score is the likelihood ratio

    l = Σ_t log(1 − q + q·exp((⟨R_t, k_t⟩ − ‖k_t‖²/2)/V)),

and no test is better (Neyman and Pearson), up to the difference between discrete and rounded Gaussian noise. Where the unit is a
party, it takes part in both worlds, with k_t in one and k′_t in the other: then two such terms are subtracted.

**The crafted record.** The loss is largest if k_t is as long as allowed in every iteration. So the record's loss is ⟨x, θ⟩: its
gradient is its row x, wherever the model stands (`ConstantGradients`), four times as long as the clip; a sound system cuts it to
the clip, one that forgets to gives itself away. A party's data push one way in one world and the opposite way in the other.

**Many trials in one run.** Noise is drawn for every coordinate by itself, so B records, each with a coordinate of its own, are B
trials of one run: no coordinate holds anything of two records, coins and noises of different ones are independent. A party
without coins may push along all of its coordinates, if the clip is √B times as large: each is then a run of its own. And a
run of many iterations falls into stretches of m in a row, each a trial: gradients do not depend on the model, so trials are
independent and alike.

**The honest parties alone.** What a coalition learns about the target is the sum over the parties that hide with it (its connected
part of the mask graph without the coalition; with absences the smallest roster). What is run is the descent of these, with
everybody's share of the noise as stated, by `netdp.simulate.descent.train`, which is `netdp.learn.train`. An iteration that may
be attempted A times counts as A iterations: the attacker has seen all attempts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.graphs import complete
from netdp.models import Model
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import count
from netdp.privacy import Curve, Observers
from netdp.privacy.sampled_gaussian import sampled_gaussian_curve
from netdp.protocols import MaskedDescent
from netdp.protocols.model_steps import begun, stepped
from netdp.simulate.descent import train
from netdp.simulate.model_parties import ModelParties

from .attack import SIMULATOR, Attack, System
from .bounds import Measured
from .table import attacks

FAR = 4.0
"""How many times the clip the crafted gradient is long, before it is clipped."""
_COLUMNS = 256
"""Trials side by side in one run; more of them take longer than they bring."""
_NUMBERS = 1 << 17
"""Numbers in everybody's gradients of one iteration."""
_PARTIES = 64
"""Parties with coins of their own in one run, if there are fewer."""
_WIDE = 16
"""The variance of a split share, in squared grid steps, at least."""
_RUN = 256
"""Iterations of one run, unless a single trial has more."""

Seen = Callable[[int, FloatArray], IntArray]
"""(t, θ) → whole numbers (d,): something that is in the sum of iteration t, which starts at the model θ."""


# ── the attack on sums, wherever they come from ───────────────────────────────────────────────────────────────────────


def ratios(
    left: npt.ArrayLike,
    within: npt.ArrayLike,
    variance: float,
    sampling: float = 1.0,
    without: npt.ArrayLike | None = None,
) -> FloatArray:
    """log of the likelihood ratio of every iteration, from what is left of its sum, (…, d) grid steps.

    within     k: what the protected one adds in one world, when it takes part; (…, d)
    without    what it adds in the other; None: it is not there
    variance   of the honest parties' noise, in squared grid steps
    sampling   q, the probability with which it takes part

    >>> ratios([[3], [0]], [[2]], variance=4.0).tolist()                     # (3·2 − 2²/2)/4 and (0 − 2)/4
    [1.0, -0.5]
    >>> [round(x, 4) for x in ratios([[3], [-3]], [[2]], 4.0, sampling=0.5, without=[[-2]]).tolist()]
    [1.1863, -1.1863]
    """
    seen = np.asarray(left, dtype=np.float64)

    def one(moved: npt.ArrayLike) -> FloatArray:
        k = np.asarray(moved, dtype=np.float64)
        shift = ((seen * k).sum(axis=-1) - (k * k).sum(axis=-1) / 2) / variance
        if sampling == 1:
            return np.asarray(shift)
        return np.asarray(np.logaddexp(math.log1p(-sampling), math.log(sampling) + shift))

    return one(within) if without is None else one(within) - one(without)


def ratios_of_sums(
    protocol: MaskedDescent, start: FloatArray, sums: Sequence[IntArray], known: Seen, moved: Seen, honest: int
) -> FloatArray:
    """(T,) the same for the opened sums of one run, in grid steps, as simulated or real parties read them.

    start    the public first model
    known    (t, θ) → all that the attacker knows to be in sum t: the records of others that took part, its own noise
    moved    (t, θ) → k_t, what the record in question adds when it takes part
    honest   how many parties' noise is not known to the attacker

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(3), 2, sigma=2.0, step=0.5, grid=0.5)           # shares of variance 16
    >>> seen = [np.array([13]), np.array([-3])]
    >>> ratios_of_sums(p, np.zeros(1), seen, lambda t, at: np.array([t]), lambda t, at: np.array([4]), honest=2).tolist()
    [1.25, -0.875]
    """
    state, out = begun(start), np.empty(len(sums))
    for t, total in enumerate(sums, 1):
        left = np.asarray(total) - known(t, state.theta)
        k = moved(t, state.theta)
        out[t - 1] = ratios(left, k, honest * protocol.sum.share, protocol.sampling)
        state = stepped(protocol, state, t, np.asarray(total))
    return out


def in_a_row(scores: FloatArray, times: int) -> FloatArray:
    """Trials of so many iterations in a row: sums of their scores; what is left over at the end is left out.

    A promise about m iterations holds from any model that they start from, so every m in a row of a long run are one trial.

    >>> in_a_row(np.arange(7.0), 3).tolist()
    [3.0, 12.0]
    """
    m = count("times", times)
    whole = len(scores) // m
    return np.asarray(scores[: whole * m].reshape(whole, m, *scores.shape[1:]).sum(axis=1))


def as_sampled(measured: Measured, sampling: float, times: int, *, replaced: bool = False) -> float:
    """ε at δ of the sampled Gaussian with the most noise under which what was counted is possible; 0 if it proves nothing.

    For masked descent the reading that "as Gaussian" is for sums: its noise is Gaussian but for its grid, so only the amount is in
    question. (With sampling, a Gaussian shift that is guessed right as often has the smaller ε at a small δ.)

    >>> from netdp.audit.bounds import measure
    >>> rng = np.random.default_rng(0)
    >>> there = rng.standard_normal(20_000) + 2.0 * (rng.random(20_000) < 0.5)
    >>> told = measure(rng.standard_normal(20_000), there, delta=1e-5)
    >>> true = float(sampled_gaussian_curve(0.5, 0.5, 1).epsilon(1e-5))
    >>> 0.8 * true < as_sampled(told, 0.5, 1) < true, told.as_gaussian < 0.5 * true
    (True, True)
    """

    def possible(multiplier: float) -> bool:
        return not measured.refutes(sampled_gaussian_curve(multiplier, sampling, times, replaced=replaced))

    low, high = 1 / 16, 2.0**20
    if possible(high):
        return 0.0
    while high / low > 1.002:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if possible(middle) else (low, middle)
    return float(sampled_gaussian_curve(high, sampling, times, replaced=replaced).epsilon(measured.delta))


# ── what is run ───────────────────────────────────────────────────────────────────────────────────────────────────────


class ConstantGradients(Model):
    """The loss of a record x is ⟨x, θ⟩: its gradient is x, wherever the model stands, and no step stretches anything.

    >>> model = ConstantGradients(2)
    >>> [block.tolist() for block in model.gradients(np.ones(2), np.array([[3.0, 4.0]]), np.zeros(1))]
    [[[3.0, 4.0]]]
    """

    name = "constant gradients"
    classes: int | None = None
    exact = True
    assumptions = ()

    def __init__(self, size: int) -> None:
        self.size = count("size", size)

    def start(self) -> FloatArray:
        """θ = 0."""
        return np.zeros(self.size)

    def gradients(self, theta: FloatArray, X: FloatArray, y: FloatArray) -> Iterator[FloatArray]:
        """The rows."""
        yield np.array(X, dtype=np.float64)

    def losses(self, theta: FloatArray, X: FloatArray, y: FloatArray) -> FloatArray:
        """⟨x, θ⟩."""
        return np.asarray(X @ theta)

    def predict(self, theta: FloatArray, X: FloatArray) -> npt.NDArray[Any]:
        """⟨x, θ⟩."""
        return np.asarray(X @ theta)

    def expansion(self, X: FloatArray, step: float, clip: float) -> float:
        """1: a step moves every model alike."""
        return 1.0


def trained_sums(protocol: MaskedDescent, losses: ModelParties, seed: int, normal: Any, record: Any) -> IntArray:
    """(T, d) the sums that everybody reads in a simulated run, in grid steps: what is under audit, unless another is given.

    With the arguments of `netdp.simulate.run.execute`, losses in place of values. Noise and coins come from the seed; `normal` and
    `record` are not used: everybody sees the same sums. Without momentum a sum is what a step moved the model by.
    """
    if protocol.momentum or protocol.groups > 1:
        raise InvalidValue(
            "sums are read off the steps of one group without momentum; what follows from sums is no secret"
        )
    models = np.empty((protocol.iterations + 1, losses.d))
    models[0] = losses.start()

    def after(t: int, found: FloatArray) -> None:
        models[t + 1] = found[0]

    train(protocol, losses, seed, after=after)
    moved = -np.diff(models, axis=0) / protocol.step
    return np.rint(moved * (protocol.expected / protocol.sum.step)).astype(np.int64)


def hidden_with(protocol: MaskedDescent, observers: Sequence[int], target: int) -> int:
    """How many parties' noise covers the target, its own included, in the worst roster.

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(9), 4, sigma=1.0, step=0.5, groups=3)
    >>> hidden_with(p, [0, 1], 3), hidden_with(p.replace(groups=1, absent=2), [0, 1], 3)
    (2, 5)
    """
    honest = [u for u in range(protocol.n) if u not in set(observers)]
    if target not in honest:
        raise InvalidValue(f"target {target} is an observer, or no party; the others are {honest[:8]}")
    pads = protocol.sum.mask_graph
    if pads is None:
        return len(honest) - protocol.absent
    part = pads.subgraph(honest).components()
    return int((part == part[honest.index(target)]).sum())


@dataclass(frozen=True, eq=False)
class MembershipAttack(Attack):
    """See the module. One trial is all iterations of the protocol: shorten it first if they are many (`shortened`)."""

    words: ClassVar[str] = (
        "membership inference: the likelihood ratio of all sums, for a record (party) whose gradient is always as long as allowed"
    )
    most: ClassVar[int] = 40_000
    protocol: MaskedDescent
    observers: tuple[int, ...]
    target: int
    system: Callable[..., IntArray] = trained_sums

    @property
    def times(self) -> int:
        """Iterations, and attempts at them, of one trial."""
        return self.protocol.releases

    @cached_property
    def columns(self) -> int:
        """Trials side by side."""
        n = self.run.n
        if self.protocol.replaced:
            return n  # a party has one coin for all of its coordinates
        return _COLUMNS if self.protocol.unit == "record" else int(np.clip(_NUMBERS // n, 16, _COLUMNS))

    @cached_property
    def rows(self) -> int:
        """Trials one after the other."""
        return max(1, _RUN // self.times)

    @property
    def size(self) -> int:
        """Trials of one run."""
        return self.columns * self.rows

    @cached_property
    def honest(self) -> int:
        """How many parties' noise covers the target."""
        return hidden_with(self.protocol, self.observers, self.target)

    @cached_property
    def run(self) -> MaskedDescent:
        """The descent of the parties that hide together, without what is post-processing; one coordinate as yet."""
        p, n = self.protocol, max(self.honest, 2)
        if p.replaced:
            # every party is a trial: a few are split up, and their noise with them, as long as it is wide on the grid
            n = max(n, min(_PARTIES, self.honest * p.sum.share // _WIDE))
        return p.replace(
            graph=complete(n), masks="complete", groups=1, aggregate="mean", attempts=1, absent=0, momentum=0.0,
            average="last", sigma=p.sigma * math.sqrt(self.honest / n), grid=p.sum.step, modulus=None, spread="flood",
        )  # fmt: skip

    @property
    def reach(self) -> float:
        """How far, in grid steps, one who takes part moves its coordinate."""
        return max(1.0, math.floor(self.protocol.clip / self.protocol.sum.step + 0.5))

    @cached_property
    def _wide(self) -> MaskedDescent:
        p, columns = self.run.replace(iterations=self.rows * self.times, dimension=self.columns), self.columns
        if p.unit == "record":
            return p.replace(max_records=columns, records=None)
        # cut a little shorter, so that no rounding error carries a coordinate beyond its clip to the next grid step
        return p if p.replaced else p.replace(clip=p.clip * math.sqrt(columns) * (1 - 1e-9))

    def losses(self, within: bool) -> ModelParties:
        """Who holds which rows."""
        p, columns = self._wide, self.columns
        nobody, rows = np.zeros((0, columns)), FAR * self.protocol.clip * np.eye(columns)
        if p.unit == "record":
            tables = [rows if within else nobody, *[nobody] * (p.n - 1)]
        elif p.replaced:
            tables = [row[None] if within else -row[None] for row in rows]
        else:
            push = np.full((1, columns), FAR * self.protocol.clip)
            tables = [push if within else -push, *[nobody] * (p.n - 1)]
        return ModelParties(ConstantGradients(columns), tables, [np.zeros(len(X)) for X in tables])

    def batch(self, within: bool, seed: int) -> FloatArray:
        """The scores of one run: coordinate by coordinate, stretch by stretch."""
        sums = self.system(self._wide, self.losses(within), seed, np.random.default_rng(seed).standard_normal, [])
        if sums.shape != (self.rows * self.times, self.columns):
            raise InvalidValue(f"the system gave sums of shape {sums.shape}, one row per iteration is expected")
        k, other = np.array([self.reach]), None if self.protocol.unit == "record" else np.array([-self.reach])
        variance = self.honest * self.protocol.sum.share
        each = ratios(sums[..., None], k, variance, self.protocol.sampling, other)
        return in_a_row(each, self.times).ravel()

    def reading(self, measured: Measured, claim: Curve | None = None) -> float:
        """What trials of this attack say of ε if noise is Gaussian, in an amount to be found out: `as_sampled`."""
        replaced = self.protocol.unit == "party"
        return as_sampled(measured, self.protocol.sampling, self.times, replaced=replaced)


@attacks.register
def _masked_descent(
    protocol: MaskedDescent, observers: Observers, target: int, system: System, seed: int
) -> list[Attack]:
    sums: Any = trained_sums if system is SIMULATOR else system
    return [MembershipAttack(protocol, observers.parties, target, sums)]
