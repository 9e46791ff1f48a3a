"""How many members together can open a sum in its one attempt: safe, live and fair thresholds.

Of n parties at most c collude and at most a contribute nothing. A threshold t is *safe* if 2t > n + c: then only one set of
contributions is ever opened (docs/proofs/masked.md#one-attempt). With t ≤ n − c − a the honest parties that are there need
nobody else: the sum is *live*, whatever the others withhold, and *fair*, as nobody gets the answer alone. Such a threshold exists
if and only if n ≥ 3c + 2a + 1.
"""

from __future__ import annotations

from typing import NamedTuple

from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.checks import count, whole


class Threshold(NamedTuple):
    """A safe threshold, and whether honest parties that stay reach it by themselves."""

    value: int
    fair: bool

    def words(self, n: int, colluders: int, absent: int) -> str:
        """What it means, in a sentence."""
        if self.fair:
            return (
                f"any {self.value} of {n} parties open the sum: it is fair, and comes out although {absent} are absent and "
                f"{colluders} withhold what they can"
            )
        return (
            f"any {self.value} of {n} parties open the sum; it is not fair: the {max(n - colluders - absent, 0)} honest parties "
            f"that stay need some of the {colluders} colluders, who can withhold the answer from the others "
            f"(fair from {3 * colluders + 2 * absent + 1} parties on)"
        )


def fair_threshold(n: int, colluders: int, absent: int = 0) -> Threshold:
    """The largest fair threshold, t = n − c − a, where it is safe; else the smallest safe one, which is not fair.

    >>> fair_threshold(16, colluders=3, absent=2), fair_threshold(5, colluders=1), fair_threshold(5, colluders=1, absent=1)
    (Threshold(value=11, fair=True), Threshold(value=4, fair=True), Threshold(value=4, fair=False))
    >>> print(fair_threshold(5, 1, 1).words(5, 1, 1))
    any 4 of 5 parties open the sum; it is not fair: the 3 honest parties that stay need some of the 1 colluders, who can ...
    """
    n, c, a = count("n", n), whole("colluders", colluders), whole("absent", absent)
    if c + a >= n:
        raise InvalidValue(f"colluders={c} and absent={a} leave nobody of {n} parties; allow fewer")
    fair = n - c - a
    if is_safe(n, c, fair):
        return Threshold(fair, True)
    safe = (n + c) // 2 + 1
    if safe > n - a:
        raise Unsupported(
            f"{n} parties with {c} colluders and {a} absent: a safe threshold is at least {safe}, more than the {n - a} parties "
            f"that are left; allow fewer to be absent, or plan several attempts (attempts=2)"
        )
    return Threshold(safe, False)


def is_safe(n: int, colluders: int, threshold: int) -> bool:
    """Whether so many colluders among n parties can have only one set of contributions opened: 2t > n + c."""
    return 2 * threshold > n + colluders
