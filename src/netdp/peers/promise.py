"""What a study promises to every party: its loss against any coalition of a size, as one curve that holds for everybody.

The maximum over coalitions is that of `netdp.account(protocol, colluders=f)` (`netdp.protocols.coalitions`). A promise is stated
once and kept for the whole study, so up to 2,000 coalitions are tried for it where the family's bound for all of them is not
attained; `account` tries fewer. Where they are more, the bound is the promise: it holds against every coalition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from netdp.errors import Unsupported
from netdp.numerics.checks import whole
from netdp.peers.ledger.losses import accounted
from netdp.privacy.curve import Curve
from netdp.privacy.guarantee import Guarantee, weakest
from netdp.privacy.observers import Observers
from netdp.protocols.base import Protocol
from netdp.protocols.coalitions import MOST_TRIED, affordable, against_any, coalitions_of, for_everybody, how_many


def promise_of(protocol: Protocol, colluders: int) -> Guarantee:
    """What any so many parties learn together about any other, at most: one curve for everybody."""
    loss, one = worst_of(protocol, colluders), accounted(protocol, worst_coalition(protocol, colluders))
    whole_curve = for_everybody([loss.curve], protocol.n)
    return replace(
        stated([one], protocol.n, colluders, whole_curve), claim=weakest(loss.claim, one.claim), slack=loss.slack
    )


@lru_cache(maxsize=256)
def worst_of(protocol: Protocol, colluders: int) -> Guarantee:
    """What any so many parties learn together, the worst for each party."""
    number = whole("colluders", colluders, 1)
    named = partial(accounted, protocol)
    return against_any(protocol, number, most=MOST_TRIED, account=named).require_certified()


def worst_epsilon(protocol: Protocol, colluders: int, delta: float) -> float:
    """ε of the promise at one δ."""
    return worst_of(protocol, colluders).worst_epsilon(delta)


def worst_coalition(protocol: Protocol, colluders: int) -> tuple[int, ...]:
    """A coalition that may learn as much as any other of its size."""
    found = worst_of(protocol, colluders).found
    return tuple(range(colluders)) if found is None else found.observers.parties


def stated(losses: Sequence[Guarantee], n: int, colluders: int, curve: Curve | None = None) -> Guarantee:
    """One guarantee about each of n parties that holds wherever one of these does: the largest loss over all of them.

    curve   one that is known to lie above all of theirs, for each of the n parties
    """
    who = "single party" if colluders == 1 else f"{colluders} parties together"
    return replace(
        losses[0],
        curve=for_everybody([loss.curve for loss in losses], n) if curve is None else curve,
        claim=weakest(*(loss.claim for loss in losses)),
        assumptions=tuple(dict.fromkeys(line for loss in losses for line in loss.assumptions)),
        observers=Observers(roles=(f"any {who}",)),
        factor=None,
        slack=max(loss.slack for loss in losses),
    )


def all_coalitions(n: int, size: int) -> Iterator[tuple[int, ...]]:
    """All sets of so many of n parties; refuses where they are too many to look at each."""
    if not affordable(n, size):
        raise Unsupported(
            f"there are {how_many(n, size):,} coalitions of {size} among {n} parties, and what they learn differs; at most "
            f"{MOST_TRIED:,} are looked at. Use masked-sum, where all of one size learn the same, or fewer colluders"
        )
    return iter(coalitions_of(n, size))
