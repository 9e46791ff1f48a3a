"""Any f users who collude with the curator of network shuffling (docs/guarantees.md#any-coalition).

A neighbour of u may be among them, and in the first round u hands it, with probability p = P(u, O), a report that can
only be u's own. So δ_u(ε) ≥ p·δ_{ε₀}(ε) for any number of rounds, and no bound for all coalitions is far below that of
the report alone, (ε₀, δ₀): that is what is claimed, and the coalition of largest p stands beside it. At a δ well below p
its ε is next to ε₀.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from netdp.accounting.baselines import local
from netdp.accounting.table import coalitions
from netdp.numerics.arrays import UNIT
from netdp.privacy import Claim, Found, Guarantee, Observers, ProfileCurve
from netdp.protocols import FaultyShuffle, RelayedShuffle, Shuffle

REFERENCE = "netdp, docs/guarantees.md#any-coalition: every coalition of a size."


@coalitions.register
def _shuffle(protocol: Shuffle, colluders: int) -> Guarantee:
    return report_alone(protocol, first_hop(protocol, colluders))


@coalitions.register
def _relayed(protocol: RelayedShuffle, colluders: int) -> Guarantee:
    return report_alone(protocol, first_hop(protocol.direct, colluders))


@coalitions.register
def _faulty(protocol: FaultyShuffle, colluders: int, *, transcript: Any = None) -> Guarantee:
    """Whoever is away, lost or slow: the report itself bounds what anybody learns, before a run and after it."""
    if transcript is not None:
        protocol.checked(transcript)
    return report_alone(protocol, None)


def report_alone(protocol: Any, found: Found | None) -> Guarantee:
    """The loss of a report by itself, and the coalition to whom somebody is most likely to hand it first."""
    loss = local(protocol)
    assert isinstance(loss, Guarantee)
    said = (
        f"every report comes from an ε₀ = {protocol.epsilon0:g}"
        + (f", δ₀ = {protocol.delta0:g}" if protocol.delta0 else "")
        + " randomizer, drawn once; whatever happens to it afterwards, nobody learns more",
    )
    return dataclasses.replace(
        loss,
        claim=Claim.UPPER,
        assumptions=said,
        references=(*loss.references, REFERENCE),
        found=found,
    )


def first_hop(protocol: Any, colluders: int) -> Found:
    """The user and the f others to whom its first hop leads most often; binary response attains the profile."""
    P = protocol.transition.tocsr()
    best, target = -1.0, 0
    members: tuple[int, ...] = ()
    for u in range(protocol.n):
        row = P.data[P.indptr[u] : P.indptr[u + 1]]
        to = P.indices[P.indptr[u] : P.indptr[u + 1]]
        away = to != u
        order = np.argsort(-row[away], kind="stable")[:colluders]
        chance = float(row[away][order].sum())
        if chance > best:
            best, target, members = chance, u, tuple(sorted(int(w) for w in to[away][order]))
    e0 = protocol.epsilon0
    height = (
        best * math.tanh(e0 / 2) * (1 - 64 * UNIT)
    )  # (e^ε₀ − e^ε)/(e^ε₀ + 1) is a chord in e^ε: the curve is read exactly
    curve = ProfileCurve([0.0, e0], [height, 0.0]) if e0 > 0 else ProfileCurve([0.0], [0.0])
    note = f"its first hop leads to them with probability {best:.3g}, for binary randomized response"
    return Found(Observers(members, ("curator",)), target, curve, attained=True, note=note)
