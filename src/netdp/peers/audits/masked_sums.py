"""The sums under pads in what peers sent: who published what, which pads a party knows, what is left when they are taken off.

A masked sum (`netdp.MaskedSum`) is made once in an attempt of a masked-sum study, and once in every iteration of a training. In
each, party u publishes

    y_u = k_u + η_u + Σ_{v>u} m_uv − Σ_{v<u} m_uv   (mod q),

k_u its numbers in grid steps and η_u its noise. Who holds the keys of v computes m_uv; so do these functions, from the identities
that they are given, and from no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from netdp.numerics.arrays import FloatArray, IntArray
from netdp.protocols import MaskedDescent, MaskedSum
from netdp.protocols.masked_steps import from_bytes, opened, quantised, quantised_records, reduced

from ..identity import Identity
from ..messages import Item, Kind
from ..spreads.descent import DIGEST
from ..streams import context, pads_of
from ..study import Study
from .recorded import Said, rosters_of

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Sum:
    """One sum under pads, and what was published in it.

    index       0, or the iteration of a training
    published   y by author, of those that are known
    """

    study: Study
    one: MaskedSum
    attempt: int
    index: int
    roster: tuple[int, ...]
    published: Mapping[int, Words]

    @property
    def where(self) -> bytes:
        """What its pads and noises belong to."""
        more = (self.index,) if self.index else ()
        return context(self.study.hash, self.attempt, self.roster, *more)

    @property
    def words(self) -> str:
        """Which one it is, for people."""
        return f"iteration {self.index}" if self.index else f"attempt {self.attempt}"

    @property
    def is_complete(self) -> bool:
        """Whether everybody's part is known."""
        return all(u in self.published for u in self.roster)

    def pads(self, identity: Identity, u: int, others: Iterable[int]) -> Words:
        """What u, whose keys these are, adds for the pads that it shares with these."""
        cards = dict(enumerate(self.study.cards))
        return pads_of(identity, cards, u, list(others), self.where, self.one.dimension, self.one.q)

    def uncovered(self, u: int, identities: Mapping[int, Identity]) -> Words:
        """y_u less the pads that u shares with the owners of these identities; with its own, less all of them."""
        others = [v for v in self.roster if v != u]
        y = self.published[u]
        if u in identities:
            return reduced(y - self.pads(identities[u], u, others), self.one.q)
        for v in (v for v in others if v in identities):
            y = y + self.pads(identities[v], v, [u])  # what is added at one end is subtracted at the other
        return reduced(y, self.one.q)

    def total(self) -> IntArray:
        """The opened sum of all that was published, in grid steps; everybody's part must be known."""
        total = np.zeros(self.one.dimension, dtype=np.uint64)
        for u in self.roster:
            total += self.published[u]
        return opened(reduced(total, self.one.q), self.one.q)


def sums_in(study: Study, items: Iterable[Said]) -> list[Sum]:
    """All sums under pads that these items are of, in order; empty for other protocols."""
    said = list(items)
    rosters, found = rosters_of(said), []
    if study.settings.kind == "masked-sum":
        for attempt, roster in rosters.items():
            one = cast(MaskedSum, study.protocol_of(roster))
            found.append(Sum(study, one, attempt, 0, roster, _published(said, Kind.CONTRIBUTION, attempt, 0, 32, one)))
    elif study.settings.kind == "masked-descent":
        protocol = cast(MaskedDescent, study.protocol())
        steps: dict[tuple[int, int], list[Said]] = {}
        for each in said:
            if each.item.key.kind == Kind.STEP:
                steps.setdefault((each.item.key.attempt, each.item.key.index), []).append(each)
        for (attempt, index), those in sorted(steps.items()):
            counted = study.running.evaluation  # type: ignore[attr-defined]
            one = protocol.sum if index <= protocol.iterations else counted
            if one is None or attempt not in rosters:
                continue
            published = _published(those, Kind.STEP, attempt, index, DIGEST, one)
            found.append(Sum(study, one, attempt, index, rosters[attempt], published))
    return found


def _published(
    said: Iterable[Said], kind: Kind, attempt: int, index: int, head: int, one: MaskedSum
) -> dict[int, Words]:
    found: dict[int, Words] = {}
    for each in said:
        item: Item = each.item
        if tuple(item.key)[:2] == (kind, attempt) and item.key.index == index and item.key.author not in found:
            found[item.key.author] = from_bytes(item.body[head:], one.q, one.dimension)
    return found


def in_steps(one: MaskedSum, rows: FloatArray) -> IntArray:
    """What a party adds to a sum, in grid steps, from its rows: computed here a second time."""
    return quantised_records(one, rows) if one.unit == "record" else quantised(one, rows[0])
