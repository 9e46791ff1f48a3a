"""Whether noise was used twice: rows of draws that should have nothing to do with each other.

Two numbers that hide behind one noise show their difference. So no two contributions of a party, whatever differs between
them, may be drawn from the same random words, nor from the same ones at another place of the stream.

**Words** (64 bits, uniform): no word may come twice, anywhere. Of N words two are equal with a probability of at most N²/2⁶⁵.
That finds equal rows, rows that are equal in parts, and rows that are shifted by any number of words.

**Draws.** Row i against row j, shifted by up to a few places, and every row against itself, shifted:

- *the same difference again and again.* If rows are independent, m chosen places all show one difference with a probability of at
  most p^{m−1}, p the probability of the likeliest draw: for one noise around two values it is the same in all places. Among d
  places there are C(d, m) choices, and all shifts and pairs are counted in.
- *signs that agree, or disagree,* too often: a binomial law, exactly, if draws are symmetric around 0. Finds what was changed on
  the way: scaled, negated, with something small added.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue
from netdp.numerics.arrays import IntArray

from .findings import Check
from .noise_chances import of_each
from .noise_law import DOUBT

_PLACES = 256
"""Of every row so many places are compared with those of other rows; words are looked at in full."""


def no_reuse(
    samples: npt.ArrayLike,
    *,
    likeliest: float | None = None,
    shifts: int = 4,
    symmetric: bool = True,
    doubt: float = DOUBT,
    name: str = "no noise is used twice",
) -> Check:
    """Whether rows (contributions, draws) are drawn apart from each other.

    samples     random words (uint64), or whole numbers that were drawn
    likeliest   the probability of the likeliest draw, at most: for Gaussian noise of s ≥ 1 steps 0.4/s. By default that of a
                word, or ½, which will do for rows of a hundred numbers
    shifts      by so many places rows are shifted against each other, and by fewer
    symmetric   whether draws are symmetric around 0: noise is, contributions are not

    >>> drawn = np.random.default_rng(0).integers(-500, 500, (6, 64))
    >>> no_reuse(drawn, likeliest=1e-3).ok, no_reuse(np.vstack([drawn, drawn[2] + 7]), likeliest=1e-3).ok
    (True, False)
    """
    rows = np.asarray(samples)
    if rows.ndim != 2 or rows.dtype.kind not in "iu" or rows.shape[1] < 8 or len(rows) < 2:
        raise InvalidValue(
            f"samples must be rows of eight whole numbers or more, got {rows.dtype} of shape {rows.shape}"
        )
    words = rows.dtype == np.uint64
    if words:
        found, times = np.unique(rows, return_counts=True)
        if (times > 1).any() and rows.size**2 / 2.0**65 <= doubt / 3:
            twice = found[times > 1][0]
            where = [int(i) for i in np.flatnonzero((rows == twice).any(axis=1))[:2]]
            told = f"{int((times > 1).sum()):,} words come more than once"
            return Check(name, False, f"{told}, such as {int(twice):#x} in rows {' and '.join(map(str, where))}")
    p = 2.0**-64 if words else 0.5 if likeliest is None else likeliest
    if not 0 < p < 1:
        raise InvalidValue(f"likeliest must lie between 0 and 1, got {likeliest!r}")
    cut = rows[:, :_PLACES].astype(np.int64)
    signs = np.where(cut < 0, -1, 1) if words else np.sign(cut)
    pairs = len(rows) * (len(rows) + 1) // 2 * (2 * shifts + 1)
    most = _most_repeats(cut.shape[1], p, doubt / 3 / pairs)
    for i in range(len(rows)):
        for shift in range(-shifts, shifts + 1):
            # row i against itself only at a shift, one way
            others = np.arange(i if shift > 0 else i + 1, len(rows))
            if not len(others):
                continue
            a, b = _shifted(cut[i], cut[others], shift)
            with np.errstate(over="ignore"):
                repeats = _commonest(b - a)
            worst = int(repeats.argmax())
            if repeats[worst] >= most:
                said = f"rows {i} and {others[worst]}{_at(shift)} differ by the same number in {repeats[worst]} places"
                return Check(name, False, f"{said} of {b.shape[1]}: one noise around two values")
            if symmetric:
                a, b = _shifted(signs[i], signs[others], shift)
                product = b * a
                agree, counted = (product > 0).sum(axis=1), (product != 0).sum(axis=1)
                chances = of_each(agree, counted, 0.5)
                worst = int(chances.argmin())
                if chances[worst] < doubt / 3 / pairs:
                    said = f"the signs of rows {i} and {others[worst]}{_at(shift)} agree in {agree[worst]} places"
                    return Check(name, False, f"{said} of {counted[worst]}")
    return Check(
        name, True, f"{len(rows)} rows of {rows.shape[1]:,}: nothing in one comes again in another, shifted or not"
    )


def _shifted(one: IntArray, others: IntArray, shift: int) -> tuple[IntArray, IntArray]:
    """The parts that lie beside each other."""
    d = len(one)
    if shift >= 0:
        return one[: d - shift], others[:, shift:]
    return one[-shift:], others[:, : d + shift]


def _commonest(table: IntArray) -> IntArray:
    """How often the commonest number of every row comes.

    >>> _commonest(np.array([[1, 2, 1, 3], [4, 4, 4, 4]])).tolist()
    [2, 4]
    """
    ordered = np.sort(table, axis=1)
    place = np.arange(1, table.shape[1])
    began = np.maximum.accumulate(np.where(np.diff(ordered, axis=1) != 0, place, 0), axis=1)
    return np.asarray((place - began).max(axis=1) + 1)


def _most_repeats(places: int, p: float, doubt: float) -> int:
    """The least m for which C(places, m)·p^{m−1} is no larger than the doubt; more than there are places if there is none."""
    for m in range(2, places + 1):
        if math.lgamma(places + 1) - math.lgamma(m + 1) - math.lgamma(places - m + 1) + (m - 1) * math.log(
            p
        ) <= math.log(doubt):
            return m
    return places + 1


def _at(shift: int) -> str:
    return f", {abs(shift)} places apart," if shift else ""
