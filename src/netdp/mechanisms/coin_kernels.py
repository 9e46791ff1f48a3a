"""Many coins at once, compiled: which draws survive a flip for one binary digit of their numbers.

The same comparisons of the same words in the same order as NumPy makes in `netdp.mechanisms.discrete_gaussian`, in one pass
instead of eight; so which of the two runs is no part of what is drawn. Whole numbers only. No branch depends on a digit: digits
are random, and a processor that guesses them is wrong every other time.

Both are compiled, or read from the cache on disk, when this module is imported: it takes a tenth of a second and some twenty
megabytes. So nothing imports it before there is a large draw, and a fork server that imports it gives it to all its children.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

_NUMBERS = types.Array(types.int64, 1, "C")
_WORDS = types.Array(types.uint64, 1, "C", readonly=True)  # those of the system are; any others may be taken for it


@njit([(_NUMBERS, types.int64)], nogil=True, cache=True)
def asked(numbers: Any, bit: int) -> int:
    """How many numbers have this binary digit set."""
    count = 0
    for i in range(numbers.shape[0]):
        count += (numbers[i] >> bit) & 1
    return count


@njit(
    [(_NUMBERS, _NUMBERS, types.int64, _WORDS, types.uint64, _NUMBERS, _NUMBERS)],
    nogil=True,
    cache=True,
)
def survivors(
    numbers: Any, places: Any, bit: int, drawn: Any, first: Any, out: Any, out_places: Any
) -> tuple[Any, Any, Any]:
    """Flip for the numbers whose digit is set, a word of `drawn` each in order: heads, and it survives, if that is below `first`.

    Survivors and their places go to `out` and `out_places`, as long as `numbers`. Returns how many there are, how many of them
    have the next lower digit set, and how many words equal `first`: then nothing is decided, and what was written is void.
    """
    kept = following = ties = np.uint64(0)
    one, word, last = np.uint64(1), np.uint64(0), np.uint64(drawn.shape[0] - 1)
    here, lower = np.uint64(bit), np.uint64(max(bit - 1, 0))
    for i in range(np.uint64(numbers.shape[0])):  # numbers without a sign: no index is checked for being negative
        number = np.uint64(numbers[i])
        flips = (number >> here) & one
        shown = drawn[min(word, last)]
        stays = one - (flips & np.uint64(shown >= first))
        ties += flips & np.uint64(shown == first)
        word += flips
        out[kept] = numbers[i]
        out_places[kept] = places[i]
        kept += stays
        following += stays & (number >> lower) & one
    return kept, following, ties
