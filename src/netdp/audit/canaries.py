"""An audit from a single run: everybody holds the value of a secret coin, and guessing many coins right proves a loss.

All parties but the observers hold one end of the public interval or the other, each by a fair coin of its own. After one run
the observers guess the coins they are surest of; the number of right guesses proves a lower bound on ε (`bounds.one_run`; Steinke,
Nasr, Jagielski 2023), held against the worst claim over all targets. Guesses from linear views are the signs of
T_u = a_uᵀM⁺y/(1 − (Δ²/4)·a_uᵀM⁺a_u). See docs/proofs/audit.md#measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from netdp.audit.attack import SIMULATOR, Columns, System, batch_seed, canaries
from netdp.audit.bounds import CONFIDENCE, one_run
from netdp.audit.linear import held, probed
from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import FloatArray, IntArray, jsonable
from netdp.numerics.checks import whole
from netdp.privacy.observers import Observers
from netdp.protocols.accounting import account
from netdp.protocols.views import who_looks

_TOLERANCE = 1e-12
"""Directions of M below this share of its largest one count as empty: rounding."""


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
    >>> from netdp.protocols import Gossip
    >>> done = one_run_audit(Gossip(graphs.star(400), rounds=1, sigma=1.0), [0], delta=1e-6, seed=1)
    >>> done.canaries, done.guessed, 0 < done.epsilon < done.claimed
    (399, 200, True)
    """
    if not 0 < share <= 1:
        raise InvalidValue(f"share must lie in (0, 1], the part of the coins that is guessed, got {share!r}")
    who, seed = who_looks(protocol, observers), whole("seed", seed)
    planted = np.delete(np.arange(protocol.n), list(who.parties))
    coins = np.random.default_rng(batch_seed(seed, 4)).integers(2, size=len(planted))
    lean = canaries(protocol, who.parties, planted, coins, seed, system)
    guessed = math.ceil(share * len(planted))
    surest = np.argsort(-np.abs(lean), kind="stable")[:guessed]
    right = int(((lean[surest] > 0) == (coins[surest] == 1)).sum())
    epsilon = one_run(right, guessed, len(planted), delta, confidence)
    claimed = float(account(protocol, who).worst_epsilon(delta=delta))
    return OneRun(who, right, guessed, len(planted), float(delta), float(confidence), epsilon, claimed)


def from_numbers(
    protocol: Any, observers: tuple[int, ...], planted: IntArray, coins: IntArray, seed: int, system: System
) -> FloatArray:
    """T_u of every canary: for protocols whose views are linear with Gaussian noise."""
    if getattr(protocol, "law", "gaussian") != "gaussian":
        raise Unsupported(
            f"{protocol.describe()}: one run is audited with Gaussian noise, not with law={protocol.law!r}; "
            "audit one target in many runs"
        )
    gridded = getattr(protocol, "grid", None) is not None
    data, noise = probed(system, protocol.replace(grid=None) if gridded else protocol, observers, seed)
    half = protocol.sensitivity / 2
    values = np.zeros((protocol.n, 1))
    values[planted, 0] = np.where(coins == 1, half, -half)
    normal = np.random.default_rng(batch_seed(seed, 5)).standard_normal
    seen = held(system(protocol, Columns(values), seed, normal, list(observers)))[:, 0]
    mine = data[:, planted]
    spread, directions = np.linalg.eigh(noise @ noise.T + half**2 * mine @ mine.T)
    kept = spread > _TOLERANCE * spread.max(initial=0.0)
    inside = (directions[:, kept] / np.sqrt(spread[kept])).T
    parts, whole_view = inside @ mine, inside @ seen
    weight = np.maximum(1 - half**2 * (parts**2).sum(axis=0), _TOLERANCE)
    return np.asarray(whole_view @ parts / weight)
