"""What observers of a short walk see, by enumeration, written independently of the package.

A view is a pair of vectors (P, Q): the probabilities of finitely many outcomes with u's data and with its other data. Sums
are cut into cells of exact probability (Gaussian distribution functions), and outcomes of about the same loss are put
together: both are post-processing, so δ of such a pair never exceeds the true one, and falls short of it by the square of the
cells only.
"""

import itertools
import math
from collections import Counter

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom

CELLS = 120


def delta(pair, eps):
    """δ(ε) in the direction of (P, Q), at each ε."""
    P, Q = pair
    return np.array([np.maximum(P - math.exp(e) * Q, 0.0).sum() for e in np.atleast_1d(eps)])


def epsilon(pair, aim):
    """The ε at which δ of this direction is `aim`."""
    low, high = 0.0, 100.0
    if delta(pair, 0.0)[0] <= aim:
        return 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if delta(pair, middle)[0] > aim else (low, middle)
    return low


def merged(pair, cells=CELLS):
    """Outcomes of about the same loss put together."""
    P, Q = pair
    if P.size <= cells:
        return pair
    loss = np.clip(np.log(np.maximum(P, 1e-300)) - np.log(np.maximum(Q, 1e-300)), -40.0, 40.0)
    order = np.argsort(loss, kind="stable")
    # half of the cells equally wide, half of equal probability
    weight = np.cumsum((P + Q)[order])
    heavy = np.floor(weight / weight[-1] * (cells / 2) * (1 - 1e-12)).astype(np.int64)
    span = max(float(loss[order[-1]] - loss[order[0]]), 1e-300)
    wide = np.floor((loss[order] - loss[order[0]]) / span * (cells / 2) * (1 - 1e-12)).astype(np.int64)
    place = np.concatenate([[0], np.cumsum((np.diff(heavy) > 0) | (np.diff(wide) > 0))])
    return np.bincount(place, weights=P[order]), np.bincount(place, weights=Q[order])


def together(one, two):
    """Two independent views."""
    return merged((np.outer(one[0], two[0]).ravel(), np.outer(one[1], two[1]).ravel()))


def either(parts):
    """Views with a public label: a list of (probability, pair)."""
    return merged(
        (np.concatenate([w * p[0] for w, p in parts]), np.concatenate([w * p[1] for w, p in parts])), 2 * CELLS
    )


def visit_patterns(steps, w):
    """Public patterns of a walk: {(lengths of the stretches, the last open at its end): probability}.

    Lengths come as (first stretch, sorted inner ones, last stretch); a walk without visits is ((), (T,)).
    """
    out = Counter()
    for visits in itertools.product((0, 1), repeat=steps):
        lengths, j = [], 0
        for v in visits:
            if v:
                lengths.append(j)
                j = 0
            else:
                j += 1
        lengths.append(j)
        chance = w ** sum(visits) * (1 - w) ** (steps - sum(visits))
        out[lengths[0], tuple(sorted(lengths[1:-1])), lengths[-1] if len(lengths) > 1 else None] += chance
    return out


def known_places(sender, release):
    """What an observer can name: the first of a stretch after its visit, the last of one before it, the walk's last step."""
    return sender != "hidden", sender == "known", release == "named"


def whole_view(steps, w, stretch, sender="hidden", release="anonymous"):
    """The view of a walk: `stretch(length, first known, last known)` is the view of one stretch."""
    after, before, released = known_places(sender, release)
    parts = []
    for (first, inner, last), chance in visit_patterns(steps, w).items():
        view = stretch(first, False, released if last is None else before)
        for length in inner:
            if length:
                view = together(view, stretch(length, after, before))
        if last:
            view = together(view, stretch(last, after, released))
        parts.append((chance, view))
    return either(parts)


# ---- sums and descent: Gaussian mixtures


def means(length, values, decay=1.0, fixed=()):
    """{mean: probability} of Σ decay^(length−i)·x_i, users drawn from `values`; `fixed` = {place: value} are given."""
    law = {0.0: 1.0}
    fixed = dict(fixed)
    for i in range(length):
        options = [fixed[i]] if i in fixed else values
        after = Counter()
        for mean, p in law.items():
            for x in options:
                after[round(mean * decay + x, 12)] += p / len(options)
        law = after
    return np.array(list(law)), np.array(list(law.values()))


def gaussian_pair(first, second, deviation, cells=CELLS):
    """Two mixtures [(means, weights)] of Gaussians of one deviation, cut into cells."""
    both = np.concatenate([first[0], second[0]])
    low, high = both.min() - 9 * deviation, both.max() + 9 * deviation
    edges = np.concatenate([[-np.inf], np.linspace(low, high, cells), [np.inf]])

    def masses(law):
        z = (edges[None, :] - law[0][:, None]) / deviation
        # differences of lower tails below the mean, of upper ones above
        down, up = np.diff(ndtr(z), axis=1), -np.diff(ndtr(-z), axis=1)
        return law[1] @ np.where(z[:, 1:] > 0, up, down)

    return masses(first), masses(second)


def sum_stretch(others, own, other, sigma, decay=1.0):
    """stretch(length, first known, last known): `others` are the values of the rest, u's are `own` and `other`."""
    q = 1.0 / (len(others) + 1)
    kept = {}

    def stretch(length, first, last):
        key = length, first, last
        if key in kept:
            return kept[key]
        if not length:
            return np.ones(1), np.ones(1)
        known = _places(length, first, last)
        parts = []
        scale = sigma * math.sqrt(sum(decay ** (2 * i) for i in range(length)))
        for named in itertools.product((False, True), repeat=len(known)):
            chance = math.prod(q if u else 1 - q for u in named)
            if chance == 0:
                continue
            # another user's known value is a known shift: take it as 0
            laws = [
                means(length, [*others, x], decay, {i: x if u else 0.0 for i, u in zip(known, named, strict=True)})
                for x in (own, other)
            ]
            parts.append((chance, gaussian_pair(*laws, scale)))
        kept[key] = either(parts)
        return kept[key]

    return stretch


def _places(length, first, last):
    return sorted(({0} if first else set()) | ({length - 1} if last else set()))


# ---- histograms: everything is finite


def responses(label, domain, gamma):
    """L-ary randomized response."""
    law = np.full(domain, gamma / domain)
    law[label] += 1 - gamma
    return law


def heap_stretch(others, own, other, domain, gamma):
    """stretch(length, first known, last known) for heaps of responses."""
    kept = {}

    def heap(laws):
        table = {(0,) * domain: 1.0}
        for law in laws:
            after = Counter()
            for counts, p in table.items():
                for value, chance in enumerate(law):
                    after[(*counts[:value], counts[value] + 1, *counts[value + 1 :])] += p * chance
            table = after
        return np.array([table[counts] for counts in sorted(table)])

    def stretch(length, first, last):
        key = length, first, last
        if key in kept:
            return kept[key]
        if not length:
            return np.ones(1), np.ones(1)
        known = _places(length, first, last)
        users = range(len(others) + 1)  # 0 is u
        parts = []
        for named in itertools.product(users, repeat=len(known)):
            pair = []
            for label in (own, other):
                each = [responses(x, domain, gamma) for x in (label, *others)]
                mixed = np.mean(each, axis=0)
                pair.append(heap([each[v] for v in named] + [mixed] * (length - len(known))))
            parts.append((1.0 / len(users) ** len(known), tuple(pair)))
        kept[key] = either(parts)
        return kept[key]

    return stretch


# ---- long walks of sums, one after the other by Fourier transform


def equal_others(others, own, other, q, sigma):
    """stretch(length, first known, last known) for any length, if all other users hold the same value."""
    kept = {}

    def stretch(length, first, last):
        key = length, first, last
        if key not in kept:
            kept[key] = either_long([(chance, pair(length, *how)) for chance, *how in cases(length, first, last)])
        return kept[key]

    def cases(length, first, last):
        known = len(_places(length, first, last))
        for f in range(known + 1):
            yield math.comb(known, f) * q**f * (1 - q) ** (known - f), f, length - known

    def pair(length, named, secret):
        k = np.arange(min(secret, 40) + 1)
        weights = binom.pmf(k, secret, q)
        weights[-1] += binom.sf(k[-1], secret, q)
        laws = [(others * (length - named - k) + x * (named + k), weights) for x in (own, other)]
        deviation = sigma * math.sqrt(length)
        span = np.ptp(np.concatenate([laws[0][0], laws[1][0]])) + 18 * deviation
        return gaussian_pair(*laws, deviation, math.ceil(12 * span / deviation))

    return stretch


def either_long(parts):
    """Views with a public label, outcomes kept apart."""
    return np.concatenate([w * p[0] for w, p in parts]), np.concatenate([w * p[1] for w, p in parts])


def long_walk_delta(steps, w, stretch, sender, release, eps, step=0.004, cells=1 << 13):
    """δ(ε) of a long walk in one direction, from below: outcomes are cells, and losses are rounded down to a grid.

    After a visit of O with t steps left the rest of the view has the losses
    B_t = Σ_m w(1−w)^m·(a stretch of m)∗B_{t−1−m} + (1−w)^t·(a last stretch of t).
    """
    after, before, released = known_places(sender, release)

    def transformed(length, first, last):
        if not length:
            return np.ones(cells // 2 + 1, dtype=np.complex128)
        P, Q = stretch(length, first, last)
        kept = P > 0
        loss = np.floor(np.clip(np.log(P[kept]) - np.log(np.maximum(Q[kept], 1e-300)), -12.0, 12.0) / step)
        return np.fft.rfft(np.bincount(loss.astype(np.int64) % cells, weights=P[kept], minlength=cells))

    lengths = np.arange(steps)
    chance = w * (1 - w) ** lengths
    inner = np.array([c * transformed(m, after, before) for m, c in zip(lengths, chance, strict=True)])
    opened = np.array([c * transformed(m, False, before) for m, c in zip(lengths, chance, strict=True)])
    ends = np.array([(1 - w) ** t * transformed(t, after, released) for t in range(steps)])
    total = (1 - w) ** steps * transformed(steps, False, released)
    for low in range(0, cells // 2 + 1, 256):  # pieces that fit into the cache
        part = slice(low, low + 256)
        rest = np.empty_like(ends[:, part])
        for t in range(steps):
            rest[t] = ends[t, part] + np.sum(inner[:t, part] * rest[:t][::-1], axis=0)
        total[part] += np.sum(opened[:, part] * rest[::-1], axis=0)
    masses = np.maximum(np.fft.irfft(total, cells), 0.0)
    loss = ((np.arange(cells) + cells // 2) % cells - cells // 2) * step
    return np.array([np.sum(masses * np.maximum(-np.expm1(e - loss), 0.0)) for e in np.atleast_1d(eps)])


# ---- many losses, by Fourier transform


def composed_losses(parts, step, cells):
    """Losses (values, probabilities under P, times), composed on a grid; the mean of each loss is kept."""
    total = np.ones(cells // 2 + 1, dtype=np.complex128)
    for loss, mass, times in parts:
        low = np.floor(loss / step)
        share = loss / step - low
        grid = np.bincount(low.astype(np.int64) % cells, weights=mass * (1 - share), minlength=cells)
        grid += np.bincount((low.astype(np.int64) + 1) % cells, weights=mass * share, minlength=cells)
        total *= np.fft.rfft(grid) ** times
    masses = np.maximum(np.fft.irfft(total, cells), 0.0)
    loss = (np.arange(cells) + cells // 2) % cells - cells // 2
    return loss * step, masses


def loss_epsilon(loss, masses, aim):
    """ε with E[(1 − e^{ε − L})₊] = aim."""
    low, high = 0.0, float(loss.max())
    for _ in range(60):
        middle = 0.5 * (low + high)
        beyond = loss > middle
        found = float(np.sum(masses[beyond] * -np.expm1(middle - loss[beyond])))
        low, high = (middle, high) if found > aim else (low, middle)
    return high
