"""What an audit found: for each pair or coalition the claimed ε, what was measured, what is printed, and a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from netdp.numerics.arrays import jsonable
from netdp.privacy.guarantee import Claim
from netdp.privacy.observers import Observers

from .bounds import Measured

NEAR = 0.85
"""An exact claim is called attained from this share of its ε on."""


class Verdict(StrEnum):
    """What may be said of a claim after the attack.

    >>> [verdict.value for verdict in Verdict]
    ['refuted', 'attained', 'holds', 'too small to measure', 'nothing is promised']
    """

    REFUTED = "refuted"
    """Impossible under the claim, but for the stated doubt: the claim, or the system, is wrong."""

    ATTAINED = "attained"
    """An attack comes within 15 % of the claimed ε, and not beyond it."""

    HOLDS = "holds"
    """No attack came beyond it; how near the best one came is its tightness."""

    TOO_SMALL = "too small to measure"
    """So little is claimed to be learned that these trials cannot tell it from nothing; they did not."""

    NOTHING = "nothing is promised"
    """The claimed loss has no bound: there is nothing to refute."""

    @property
    def is_bad(self) -> bool:
        """Whether somebody has to act."""
        return self is Verdict.REFUTED


@dataclass(frozen=True)
class Finding:
    """One row: who looked at whom, what was claimed, what was measured.

    name        why this pair: "worst pair", "farthest pair", "3 colluders"
    hops        how far the target is from the nearest observer; None where there is no graph
    claimed     ε at δ, certified; `claim` says how sure
    measured    what the strongest attack proved
    reading     ε as that attack reads it if noise is Gaussian; by default that of a Gaussian shift
    attack      how that attack works, in words
    refuted     whether the measured rates are impossible under the claimed curve
    published   ε of the paper's formula, if there is one, and whether it is refuted
    local       ε of local DP with the same noise, if there is one
    resolution  the smallest ε that so many trials could have told from nothing
    """

    name: str
    observers: Observers
    target: int
    hops: int | None
    claimed: float
    claim: Claim
    measured: Measured
    attack: str
    refuted: bool
    published: float | None = None
    published_refuted: bool = False
    local: float | None = None
    resolution: float = 0.0
    target_name: str | None = None
    reading: float | None = None

    @property
    def epsilon(self) -> float:
        """The measured ε: by counts, or as the attack reads them, whichever is larger."""
        read = self.measured.as_gaussian if self.reading is None else self.reading
        return max(self.measured.by_counts, read)

    @property
    def tightness(self) -> float:
        """The measured ε as a share of the claimed one."""
        if math.isinf(self.claimed):
            return 0.0
        return self.epsilon / self.claimed if self.claimed > 0 else (math.inf if self.epsilon else 1.0)

    @property
    def verdict(self) -> Verdict:
        """What may be said of the claim."""
        if self.refuted:
            return Verdict.REFUTED
        if math.isinf(self.claimed):
            return Verdict.NOTHING
        if self.claimed > 0 and self.tightness >= NEAR:
            return Verdict.ATTAINED
        return Verdict.TOO_SMALL if 0 < self.claimed < self.resolution else Verdict.HOLDS

    @property
    def about(self) -> str:
        """The target, for people."""
        return self.target_name or f"party {self.target}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name, "observers": self.observers.to_dict(), "target": self.target, "target_name": self.target_name,
            "hops": self.hops, "claimed": jsonable(self.claimed), "claim": self.claim.value, "attack": self.attack,
            "measured": {**self.measured.to_dict(), "epsilon": jsonable(self.epsilon)},
            "tightness": jsonable(self.tightness), "verdict": self.verdict.value,
            "published": None if self.published is None else jsonable(self.published),
            "published_refuted": self.published_refuted, "local": None if self.local is None else jsonable(self.local),
            "resolution": self.resolution,
        }  # fmt: skip


@dataclass(frozen=True)
class Check:
    """Something that either is as it should be or is not: a transcript, a signature, the law of a noise."""

    name: str
    ok: bool
    words: str
    """What was looked at and what was seen."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"name": self.name, "ok": self.ok, "words": self.words}


@dataclass(frozen=True)
class Audit:
    """Everything an audit found about one protocol or study."""

    title: str
    delta: float
    confidence: float
    """That no row of a sound system is called refuted, all rows together."""
    seed: int
    findings: tuple[Finding, ...] = ()
    checks: tuple[Check, ...] = ()
    by_distance: tuple[Finding, ...] = ()
    """One pair per distance from one observer, for the picture."""
    notes: tuple[str, ...] = ()
    trials: str = ""
    """What the trials are, in words, if they are not runs of a simulation."""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing was refuted and every check passed."""
        rows = (*self.findings, *self.by_distance)
        return not any(row.verdict.is_bad for row in rows) and all(check.ok for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "title": self.title, "ok": self.ok, "delta": self.delta, "confidence": self.confidence, "seed": self.seed,
            "findings": [row.to_dict() for row in self.findings], "checks": [check.to_dict() for check in self.checks],
            "by_distance": [row.to_dict() for row in self.by_distance], "notes": list(self.notes), **self.facts,
        }  # fmt: skip
