"""An audit in a single run: everybody is a canary.

All parties but the observers hold one end of the public interval or the other, each by a fair coin of its own. After one run
the observers guess the coins they are surest of. If what they hold is (ε, δ)-private towards everybody, then so many right
guesses are unlikely, and `bounds.one_run` says how unlikely: the number of right guesses proves a lower bound on ε (Steinke,
Nasr, Jagielski 2023). The claim that it is held against is the *worst* one over all targets, as the bound is about all of them
together. It is weaker than what thousands of runs prove about one target, and costs one run; many parties whose losses are all
alike suit it best.

**Linear views.** The observers hold y = A x + C z (`linear`, found by feeding the system). About party u the other coins are
noise of variance Δ²/4 each. Taking them for Gaussian, the log-odds of u's coin are Δ·T_u,

    T_u = a_uᵀ M_u⁺ y,   M_u = C Cᵀ + (Δ²/4)·Σ_{w≠u} a_w a_wᵀ,

and with M = M_u + (Δ²/4)·a_u a_uᵀ, the same for all u, T_u = a_uᵀM⁺y/(1 − (Δ²/4)·a_uᵀM⁺a_u) (Sherman and Morrison). The guess
is its sign.

**Shuffling.** Everybody answers by binary randomized response; the coin of u is guessed from the reports where u's may be, each
by how likely it is u's (`shuffles`), against the mean of all reports.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from netdp.accounting import account
from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import FloatArray, IntArray, jsonable
from netdp.numerics.checks import whole
from netdp.privacy import Observers
from netdp.protocols import Gossip, PathSum, PushSum, RingSum, Shuffle
from netdp.views import who_looks

from .attack import SIMULATOR, Columns, System, batch_seed
from .bounds import CONFIDENCE, one_run
from .linear import held, probed
from .shuffles import fit, shuffled, walked

_TOLERANCE = 1e-12
"""Directions of M below this share of its largest one count as empty: rounding."""
_LOOKS, _FITS = 200, 1e-6
"""Runs of a shuffle that are looked at beforehand, and the p-value below which the walks that were found are used."""


@dataclass(frozen=True)
class OneRun:
    """What one run proved.

    right, guessed, canaries   so many guesses were right, of so many, about so many coins
    epsilon                    at δ, ε is at least this, but for the doubt 1 − confidence
    claimed                    the worst ε over all targets, certified
    """

    observers: Observers
    right: int
    guessed: int
    canaries: int
    delta: float
    confidence: float
    epsilon: float
    claimed: float

    @property
    def refuted(self) -> bool:
        """Whether so many right guesses are impossible under the claim, but for the doubt."""
        return self.epsilon > self.claimed

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "observers": self.observers.to_dict(), "right": self.right, "guessed": self.guessed, "canaries": self.canaries,
            "delta": self.delta, "confidence": self.confidence, "epsilon": self.epsilon, "claimed": jsonable(self.claimed),
            "refuted": self.refuted,
        }  # fmt: skip


def one_run_audit(
    protocol: Any,
    observers: Any,
    delta: float,
    *,
    share: float = 0.5,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    system: System = SIMULATOR,
) -> OneRun:
    """Guess the coins of all parties but the observers from one run; `share` of them, those that are surest.

    >>> from netdp import graphs
    >>> done = one_run_audit(Gossip(graphs.star(400), rounds=1, sigma=1.0), [0], delta=1e-6, seed=1)
    >>> done.canaries, done.guessed, 0 < done.epsilon < done.claimed
    (399, 200, True)
    """
    if not 0 < share <= 1:
        raise InvalidValue(f"share must lie in (0, 1], the part of the coins that is guessed, got {share!r}")
    who, seed = who_looks(protocol, observers), whole("seed", seed)
    guess = _guess(protocol)
    canaries = np.delete(np.arange(protocol.n), list(who.parties))
    coins = np.random.default_rng(batch_seed(seed, 4)).integers(2, size=len(canaries))
    lean = guess(protocol, who.parties, canaries, coins, seed, system)
    guessed = math.ceil(share * len(canaries))
    surest = np.argsort(-np.abs(lean), kind="stable")[:guessed]
    right = int(((lean[surest] > 0) == (coins[surest] == 1)).sum())
    epsilon = one_run(right, guessed, len(canaries), delta, confidence)
    claimed = float(account(protocol, who).worst_epsilon(delta=delta))
    return OneRun(who, right, guessed, len(canaries), float(delta), float(confidence), epsilon, claimed)


def _guess(protocol: Any) -> Any:
    if isinstance(protocol, Shuffle):
        return _from_reports
    if (
        isinstance(protocol, Gossip | PushSum | RingSum | PathSum)
        and getattr(protocol, "law", "gaussian") == "gaussian"
    ):
        return _from_numbers
    raise Unsupported(
        f"{protocol.describe()}: one run is audited where views are linear with Gaussian noise and nothing public is drawn "
        "(Gossip, PushSum, RingSum, PathSum), or of a Shuffle; audit one target in many runs"
    )


def _from_numbers(
    protocol: Any, observers: tuple[int, ...], canaries: IntArray, coins: IntArray, seed: int, system: System
) -> FloatArray:
    """T_u of every canary."""
    gridded = getattr(protocol, "grid", None) is not None
    data, noise = probed(system, protocol.replace(grid=None) if gridded else protocol, observers, seed)
    half = protocol.sensitivity / 2
    values = np.zeros((protocol.n, 1))
    values[canaries, 0] = np.where(coins == 1, half, -half)
    normal = np.random.default_rng(batch_seed(seed, 5)).standard_normal
    seen = held(system(protocol, Columns(values), seed, normal, list(observers)))[:, 0]
    mine = data[:, canaries]
    spread, directions = np.linalg.eigh(noise @ noise.T + half**2 * mine @ mine.T)
    kept = spread > _TOLERANCE * spread.max(initial=0.0)
    inside = (directions[:, kept] / np.sqrt(spread[kept])).T
    parts, whole_view = inside @ mine, inside @ seen
    weight = np.maximum(1 - half**2 * (parts**2).sum(axis=0), _TOLERANCE)
    return np.asarray(whole_view @ parts / weight)


def _from_reports(
    protocol: Shuffle, colluders: tuple[int, ...], canaries: IntArray, coins: IntArray, seed: int, system: System
) -> FloatArray:
    """By how much more often than elsewhere the report is 1 where the report of a canary may be."""
    n, rng = protocol.n, np.random.default_rng(batch_seed(seed, 5))
    values = np.zeros(n, dtype=np.int64)
    values[canaries] = coins
    run = shuffled(system, protocol, values, seed, rng)
    laws = walked(protocol, np.eye(n))
    found = np.zeros((n, n))
    for number in range(_LOOKS):
        look = shuffled(system, protocol, values, batch_seed(seed, 6, number), rng)
        found[np.arange(n), look.transcript.positions] += 1
    if min(fit(row, law) for row, law in zip(found, laws, strict=True)) * n < _FITS:
        laws = (found / _LOOKS + laws) / 2
    weights = (laws / np.maximum(laws.mean(axis=0), 1e-300))[canaries][:, run.view.holders]
    hidden = ~np.isin(run.transcript.origins, colluders)  # they know their own reports
    reports = np.asarray(run.view.reports)
    mean = weights[:, hidden] @ reports[hidden] / np.maximum(weights[:, hidden].sum(axis=1), 1e-300)
    return np.asarray(mean - reports[hidden].mean())
