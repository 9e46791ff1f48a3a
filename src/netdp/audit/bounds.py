"""Measured lower bounds: what counted successes of an attack prove about ε, with a stated confidence.

An attack turns what observers hold after a run into a number, its *score*, meant to be larger if the target's data were one
value (`within`) than if they were another (`without`). For a threshold t, f = P(score > t | without) is the rate of false positives
and r = P(score > t | within) that of true ones. Two readings:

    by counts     ε ≥ log((r⁻ − δ)/f⁺), in both directions, whatever the scores are like
    as Gaussian   μ ≥ 2Φ⁻¹(a⁻), a = (r + 1 − f)/2 how often the guess "within if score > t" is right; ε is that of this shift at δ

`one_run` needs no second run: it bounds ε by how many of m canaries, all in one run, are guessed. All bounds hold together with the
stated confidence. Proofs: docs/proofs/audit.md#measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import check_delta, whole
from netdp.privacy.curve import Curve
from netdp.privacy.gaussian import gaussian_epsilon
from netdp.privacy.renyi import RenyiCurve

CONFIDENCE = 0.9999
"""That all bounds of one measurement hold together."""
_FIRST = 8
"""One in so many trials chooses the thresholds."""
_CHOICES = 97
_EPSILONS = np.concatenate([np.linspace(0.0, 4.0, 401), np.linspace(4.05, 40.0, 720)])


@dataclass(frozen=True)
class Point:
    """False positives at most, true positives at least; `exchanged`: of the worlds the other way round."""

    false: float
    true: float
    exchanged: bool = False

    def epsilon(self, delta: float) -> float:
        """The least ε for which these rates are possible at δ, whatever the law."""
        return max(0.0, math.log((self.true - delta) / self.false)) if self.true > delta and self.false > 0 else 0.0


@dataclass(frozen=True)
class Measured:
    """What the trials prove, all bounds together with `confidence`.

    accuracy   so often, at least, the best guess is right
    points     rates at the thresholds for counts, one for each direction
    """

    delta: float
    confidence: float
    trials: int
    accuracy: float
    points: tuple[Point, ...]

    @property
    def by_counts(self) -> float:
        """ε is at least this at δ, whatever the law."""
        return max((point.epsilon(self.delta) for point in self.points), default=0.0)

    @property
    def mu(self) -> float:
        """The least Gaussian shift that explains the guesses."""
        from scipy.special import ndtri

        return max(0.0, 2 * float(ndtri(self.accuracy)))

    @property
    def as_gaussian(self) -> float:
        """ε at δ of that shift."""
        return float(gaussian_epsilon(self.mu, self.delta)) if self.mu > 0 else 0.0

    @property
    def epsilon(self) -> float:
        """The larger of the two readings."""
        return max(self.by_counts, self.as_gaussian)

    def refutes(self, curve: Curve) -> bool:
        """Whether what was counted is impossible under a promise."""
        if curve.shape:
            raise InvalidValue(
                f"a promise about one target is one curve, got shape {curve.shape}; take entry(curve, target)"
            )
        deltas = np.asarray(curve.delta(_EPSILONS), dtype=np.float64)
        apart = float(deltas[0])
        if isinstance(curve, RenyiCurve) and curve.rho is not None:
            apart = min(apart, math.sqrt(float(curve.rho) / 2))
        if 2 * self.accuracy - 1 > apart:
            return True
        return any(bool((point.true > np.exp(_EPSILONS) * point.false + deltas).any()) for point in self.points)

    def share_of(self, curve: Curve) -> float:
        """How much better than chance the guesses are, as a share of the most that a promise allows, δ(0).

        Above 1 the promise is refuted.
        """
        allowed = float(curve.delta(0.0))
        advantage = max(0.0, 2 * self.accuracy - 1)
        return advantage / allowed if allowed > 0 else (math.inf if advantage > 0 else 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "epsilon": self.epsilon, "by_counts": self.by_counts, "as_gaussian": self.as_gaussian, "mu": self.mu,
            "accuracy": self.accuracy, "delta": self.delta, "confidence": self.confidence, "trials": self.trials,
            "points": [{"false": p.false, "true": p.true, "exchanged": p.exchanged} for p in self.points],
        }  # fmt: skip


def measure(without: npt.ArrayLike, within: npt.ArrayLike, delta: float, confidence: float = CONFIDENCE) -> Measured:
    """What scores of runs without and within prove; as many of one kind as of the other.

    >>> scores = np.random.default_rng(0).standard_normal((2, 40_000))
    >>> measured = measure(scores[0], scores[1] + 1.0, delta=1e-6)
    >>> 0.95 < measured.mu < 1.0, measured.by_counts < measured.as_gaussian < 4.89            # 4.89 is the truth
    (True, True)
    >>> measure(scores[0], scores[1], delta=1e-6).mu
    0.0
    """
    no, yes = (_sample(name, given) for name, given in (("without", without), ("within", within)))
    if len(no) != len(yes):
        raise InvalidValue(f"{len(no)} trials without and {len(yes)} within; make as many of both")
    check_delta(delta)
    if not 0 < confidence < 1:
        raise InvalidValue(f"confidence must lie between 0 and 1, got {confidence!r}")
    doubt, cut = 1 - confidence, len(no) // _FIRST
    threshold = _chosen(no[:cut], yes[:cut], "accuracy", delta)
    right = int((no[cut:] <= threshold).sum() + (yes[cut:] > threshold).sum())
    accuracy = float(clopper_pearson(right, 2 * (len(no) - cut), doubt / 2)[0])
    points = []
    for exchanged in (False, True):
        # exchanged: the event is "score ≤ t", and those within are the ones it may wrongly hold for
        false, true = (no, yes) if not exchanged else (-yes, -no)
        threshold = _chosen(false[:cut], true[:cut], "counts", delta)
        points.append(_judged(false[cut:], true[cut:], threshold, doubt / 8, exchanged))
    return Measured(float(delta), float(confidence), len(no) + len(yes), accuracy, tuple(points))


def clopper_pearson(successes: npt.ArrayLike, trials: int, tail: float) -> tuple[FloatArray, FloatArray]:
    """Bounds from below and from above on a probability; each fails with probability `tail` at most.

    >>> low, high = clopper_pearson(0, 100, 0.025)
    >>> float(low), round(float(high), 4)
    (0.0, 0.0362)
    """
    from scipy.special import betaincinv

    k = np.asarray(successes, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        low = np.where(k > 0, betaincinv(np.maximum(k, 1), trials - k + 1, tail), 0.0)
        high = np.where(k < trials, betaincinv(k + 1, np.maximum(trials - k, 1), 1 - tail), 1.0)
    return low, high


def one_run(right: int, guessed: int, canaries: int, delta: float, confidence: float = CONFIDENCE) -> float:
    """ε is at least this at δ, if `right` of `guessed` guesses about `canaries` coins of a single run were right.

    >>> round(one_run(right=1000, guessed=1000, canaries=1000, delta=0.0, confidence=0.95), 3)
    5.809
    >>> one_run(right=500, guessed=1000, canaries=1000, delta=1e-6)
    0.0
    """
    canaries, guessed, right = whole("canaries", canaries, 1), whole("guessed", guessed), whole("right", right)
    if not right <= guessed <= canaries:
        raise InvalidValue(f"{right} right of {guessed} guesses about {canaries} canaries cannot be")
    if not right or _one_run_chance(right, guessed, canaries, 0.0, delta) > 1 - confidence:
        return 0.0
    low, high = 0.0, 1.0
    while high < 64 and _one_run_chance(right, guessed, canaries, high, delta) <= 1 - confidence:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        fits = _one_run_chance(right, guessed, canaries, middle, delta) > 1 - confidence
        low, high = (low, middle) if fits else (middle, high)
    return low


def _one_run_chance(right: int, guessed: int, canaries: int, epsilon: float, delta: float) -> float:
    """No (ε, δ)-private run has so many right guesses with a larger probability."""
    from scipy.stats import binom

    q = 1 / (1 + math.exp(-epsilon))
    beta = float(binom.sf(right - 1, guessed, q))
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guessed, q))
    most = float((below / np.arange(1, right + 1)).max())
    return min(1.0, beta + 2 * canaries * delta * most)


def _sample(name: str, given: npt.ArrayLike) -> FloatArray:
    scores = np.asarray(given, dtype=np.float64)
    if scores.ndim != 1 or len(scores) < 2 * _FIRST or np.isnan(scores).any():
        raise InvalidValue(
            f"{name} must be a list of {2 * _FIRST} or more scores without nan, got shape {scores.shape}"
        )
    return scores


def _chosen(no: FloatArray, yes: FloatArray, reading: str, delta: float) -> float:
    """The threshold that would prove most on these trials."""
    values = np.unique(np.concatenate([no, yes]))
    if len(values) > _CHOICES:
        values = np.unique(np.quantile(np.concatenate([no, yes]), np.linspace(0.005, 0.995, _CHOICES), method="lower"))
    wrong = len(no) - np.searchsorted(np.sort(no), values, side="right")
    right = len(yes) - np.searchsorted(np.sort(yes), values, side="right")
    high, low = clopper_pearson(wrong, len(no), 0.01)[1], clopper_pearson(right, len(yes), 0.01)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(low > delta, np.log((low - delta) / high), -np.inf)
        if reading == "accuracy":
            gain = right - wrong
    return float(values[int(np.argmax(gain))])


def _judged(no: FloatArray, yes: FloatArray, threshold: float, tail: float, exchanged: bool) -> Point:
    wrong, right = int((no > threshold).sum()), int((yes > threshold).sum())
    high = float(clopper_pearson(wrong, len(no), tail)[1])
    low = float(clopper_pearson(right, len(yes), tail)[0])
    return Point(high, low, exchanged)
