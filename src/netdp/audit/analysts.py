"""The best adaptive analyst: how far a stated ε can be beaten by whoever chooses the next study, or stops, after every answer.

Whoever states ε after some studies, at δ, is right if P(E) − Σ_ε e^ε·Q(E ∩ {ε was stated}) ≤ δ for all events E and all ways to
choose. What matters of the answers so far is their total loss l = log dP/dQ and which studies were made, so the largest
difference follows backwards from the longest series: stopping is worth (1 − e^{ε − l})₊, going on the mean of what comes after,
under P. Losses are put on a grid by rounding down, as if the analyst gained less from each answer: what is found is a lower bound.
Definition and use: docs/proofs/privacy.md#adaptive-composition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from scipy import special

from netdp.errors import Unsupported
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import positive
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.losses import hull_of
from netdp.privacy.profile import ProfileCurve

Counts = tuple[int, ...]
"""How many studies of each kind were made."""

_CELLS = 4001  # of a Gaussian answer, within 12 deviations


def best_analyst(
    menu: Sequence[Curve], stated: Callable[[Counts], float | None], *, step: float = 0.002, reach: float = 30.0
) -> float:
    """The δ that the best analyst attains against what is stated, with studies from a menu.

    stated   the ε that is stated after so many studies of each kind; None where that many are not allowed
    step     of the grid of losses
    reach    losses beyond are cut off there

    Sixteen sums of μ = ¼, composed as if sixteen had been fixed beforehand:

    >>> one = GaussianCurve(0.25)
    >>> def composed(counts):
    ...     return float(one.self_compose(counts[0]).epsilon(1e-6)) if counts[0] else 0.0
    >>> print(f"{best_analyst([one], lambda counts: composed(counts) if counts[0] <= 16 else None):.1e}")
    7.1e-06
    """
    from scipy.signal import fftconvolve

    size = math.ceil(positive("reach", reach) / positive("step", step))
    losses = step * np.arange(-size, size + 1)
    laws = [_law(curve, step, size) for curve in menu]

    @cache
    def worth(counts: Counts) -> FloatArray | None:
        epsilon = stated(counts)
        if epsilon is None:
            return None
        best: FloatArray = np.maximum(-np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)
        for kind, (masses, infinite) in enumerate(laws):
            after = worth((*counts[:kind], counts[kind] + 1, *counts[kind + 1 :]))
            if after is not None:
                # beyond the grid: above, as good as its end; below, as bad as its end
                padded = np.concatenate([np.full(size, after[0]), after, np.full(size, after[-1])])
                on = fftconvolve(padded, masses[::-1], mode="valid") + infinite
                best = np.maximum(best, on)
        return best

    nothing = worth((0,) * len(laws))
    if nothing is None:
        raise Unsupported("nothing is stated about no study at all; state 0.0")
    return float(nothing[size])


def _law(curve: Curve, step: float, size: int) -> tuple[FloatArray, float]:
    """Masses of the loss under P at −size·step … size·step, and at infinity."""
    if isinstance(curve, GaussianCurve):
        mu = float(curve.mu)
        edges = np.concatenate([[-math.inf], np.linspace(-12.0, 12.0 + mu, _CELLS), [math.inf]])
        p, q = np.diff(special.ndtr(edges - mu)), np.diff(special.ndtr(edges))
        upper = np.diff(special.ndtr(-edges[::-1] + mu))[::-1], np.diff(special.ndtr(-edges[::-1]))[::-1]
        p, q = (np.where(edges[:-1] > 0, far, near) for near, far in zip((p, q), upper, strict=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            losses = np.where(p > 0, np.log(p) - np.log(q), -math.inf)
        infinite = 0.0
    elif isinstance(curve, ProfileCurve) and not curve.shape:
        eps, deltas = hull_of(curve.epsilons, curve.deltas)
        slopes = np.append(np.diff(deltas) / np.diff(np.expm1(eps)), 0.0)
        up = np.exp(eps[1:]) * np.maximum(np.diff(slopes), 0.0)
        losses = np.concatenate([eps[1:], -eps[1:], [0.0]])
        infinite = float(deltas[-1])
        p = np.concatenate([up, up * np.exp(-eps[1:])])
        p = np.append(p, max(0.0, 1 - infinite - float(p.sum())))
    else:
        raise Unsupported(f"an analyst's studies are Gaussian curves or single profiles, not {curve!r}")
    places = np.clip(np.floor(losses / step + 1e-9), -size, size).astype(np.int64) + size
    masses = np.zeros(2 * size + 1)
    np.add.at(masses, places, p)
    return masses, infinite
