"""The formulas of Muffliato for gossip that changes or stays secret, in the table of published losses. None is a guarantee.

VaryingGossip       Equation (6), with colluders (14)
ErdosRenyiGossip    Theorem 4/9, with colluders Corollary 5: for a party that is no neighbour, or for one that is
ErdosRenyiDescent   Proposition 1, in the mean over its random β_t and |N_t(V)|

The last three hold, by their own words, only for orders with σ² ≥ Δ²α(α−1)/2: no other order is used.
"""

from __future__ import annotations

import numpy as np

from netdp.accounting.published.muffliato import collusion, varying
from netdp.accounting.table import published
from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.privacy import DEFAULT_ORDERS, Adjacency, Claim, Guarantee, RenyiCurve
from netdp.protocols import ErdosRenyiDescent, ErdosRenyiGossip, VaryingGossip

from .redrawn import meeting
from .statements import published_statement


@published.register
def _varying(protocol: VaryingGossip, observers: tuple[int, ...]) -> Guarantee:
    return published_statement(protocol, varying.equation14(protocol, observers), observers, varying.ERRATA)


@published.register
def _secret_graph(
    protocol: ErdosRenyiGossip,
    observers: tuple[int, ...],
    *,
    degree: int | None = None,
    neighbour: bool = False,
) -> Guarantee:
    """`degree`: how many neighbours the observers have, the mean of it by default; `neighbour`: about one of them."""
    if protocol.varying:
        raise InvalidValue(
            "Theorem 9 is about one graph per run: set varying=False, or take the formula for drawn graphs, "
            "transcript=protocol.draw(seed)"
        )
    reached = (protocol.n - len(observers)) * meeting(protocol.p, len(observers)) if degree is None else degree
    slope = 0.5 if neighbour else protocol.rounds * reached / max(protocol.n - reached, 1e-300)
    return _stated(slope * protocol.local_mu**2, protocol.sigma, protocol.sensitivity)


@published.register
def _proposition1(protocol: ErdosRenyiDescent, observers: tuple[int, ...]) -> Guarantee:
    chance = meeting(protocol.p, len(observers))
    reached = (protocol.n - len(observers)) * chance
    spread = protocol.gossip_rounds * reached / max(protocol.n - reached, 1e-300)
    slope = protocol.iterations * (chance + (1 - chance) * spread)
    return _stated(
        slope * (protocol.sensitivity / protocol.sigma) ** 2,
        protocol.sigma,
        protocol.sensitivity,
        ("the random β_t and |N_t(V)| of Proposition 1 stand at their means",),
    )


def _stated(slope: float, sigma: float, sensitivity: float, more: tuple[str, ...] = ()) -> Guarantee:
    """α·slope at the orders that the theorem admits."""
    most = collusion.largest_order(sigma, sensitivity)
    given = np.asarray(DEFAULT_ORDERS, dtype=np.float64)
    orders: FloatArray = np.append(given[given < most * (1 - 1e-12)], most)
    return Guarantee(
        curve=RenyiCurve(orders, orders * slope),
        adjacency=Adjacency.REPLACE,
        claim=Claim.PUBLISHED,
        assumptions=("the formula of the paper, as printed; it is not a bound", *more),
        references=collusion.REFERENCES,
        errata=collusion.ERRATA,
    )
