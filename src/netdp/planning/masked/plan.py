"""A private mean by a masked sum: how much noise against any so many colluders, and which way of spreading costs less.

Both ways give the same integers, so privacy and error are the same; they differ in rounds and bytes. The error at the target is
that of a trusted curator who may use the noise of the honest parties only, because the colluders know their own shares:
√(n/(n − c)) times a curator's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from netdp.accounting.masked.sums import against_any, component_curve
from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph, as_graph
from netdp.numerics.checks import count
from netdp.numerics.rounding import rounded_up
from netdp.planning.base import Option, Plan
from netdp.planning.calibrate import calibrate
from netdp.planning.table import checked_target
from netdp.privacy import Observers, everywhere, gaussian_mu
from netdp.protocols import MaskedSum
from netdp.utility import expected_error

from .calibrate import fewest_together


@dataclass(frozen=True, eq=False)
class MaskedOption(Option):
    """One way of spreading."""

    protocol: MaskedSum

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        p = self.protocol
        return {**super().to_dict(), "rounds": p.rounds, "bytes_per_link": p.link_bytes, "modulus": p.q, "grid": p.step}


@dataclass(frozen=True, eq=False, repr=False)
class MaskedPlan(Plan):
    """Flooding and, where it is exact, averaging. Chosen is the one that sends fewer bytes over a link."""

    options: tuple[MaskedOption, ...]
    graph: Graph
    sensitivity: float
    colluders: int

    @property
    def best(self) -> MaskedOption:
        """The way of spreading with the fewest bytes."""
        return min(self.options, key=lambda option: option.protocol.link_bytes)

    @property
    def protocol(self) -> MaskedSum:
        """The protocol chosen."""
        return self.best.protocol

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        graph, p = self.graph, self.protocol
        mine = {
            "sensitivity": self.sensitivity,
            "colluders": self.colluders,
            "attempts": p.attempts,
            "absent": p.absent,
        }
        return {
            "graph": {"name": graph.name, "n": graph.n, "m": graph.m, "digest": graph.digest},
            **mine,
            **super().to_dict(),
        }


def plan_masked(
    graph: Graph,
    epsilon: float,
    delta: float,
    *,
    colluders: int = 1,
    sensitivity: float = 1.0,
    dimension: int = 1,
    attempts: int = 1,
    absent: int = 0,
    masks: str | int = "complete",
    mask_seed: int | None = None,
    grid: float | None = None,
) -> MaskedPlan:
    """The least noise of a `MaskedSum` against any `colluders` parties, all attempts and absences counted, and both ways to spread.

    attempts, absent, masks, grid : as in `MaskedSum`. With a degree as `masks`, coalitions are fixed before the mask graph is
        drawn, and the probability that they cut somebody off is part of δ.

    σ is rounded up to four digits, and what is promised is certified for the rounded value.

    >>> from netdp import graphs
    >>> plan = plan_masked(graphs.hypercube(6), epsilon=1.0, delta=1e-6, colluders=16)
    >>> plan.guarantee.worst_epsilon(1e-6) <= 1.0, round(plan.best.rmse / plan.curator_rmse / (64 / 48) ** 0.5, 2)
    (True, 1.0)
    >>> again = plan_masked(graphs.hypercube(6), epsilon=1.0, delta=1e-6, colluders=16, attempts=3)
    >>> round(again.best.rmse / plan.best.rmse / 3**0.5, 2)
    1.0
    """
    graph = as_graph(graph, "a masked sum")
    epsilon, delta = checked_target(epsilon, delta)
    count("colluders", colluders)
    if not isinstance(masks, str | int):
        raise InvalidValue(
            f'a plan takes masks="complete" or a degree, got {masks!r}; calibrate takes a given mask graph'
        )
    drawn = masks != "complete"
    if drawn and mask_seed is None:
        raise InvalidValue(
            f"masks={masks!r} draws a mask graph: give mask_seed=, a number that nobody could foresee when it was fixed who takes "
            "part, such as one that all of them have tossed together"
        )
    draft = MaskedSum(
        graph, sigma=sensitivity if grid is None else max(sensitivity, grid), masks=masks, sensitivity=sensitivity,
        dimension=dimension, attempts=attempts, absent=absent, grid=grid, mask_seed=mask_seed or 0,
    )  # fmt: skip
    noise = calibrate(draft, epsilon, delta, colluders=colluders).sigma
    honest, missed = fewest_together(draft, colluders, None)

    def meets(protocol: MaskedSum) -> bool:
        curve = component_curve(protocol, honest, attempts)
        return float(curve.epsilon(delta - missed * (1 + 1e-12))) <= epsilon

    found = draft.replace(sigma=rounded_up(noise))
    while not meets(found):  # the grid follows σ
        found = draft.replace(sigma=rounded_up(found.sigma * (1 + 1e-3)))
    role = "any single party" if colluders == 1 else f"any {colluders} parties together"
    if drawn and colluders > 1:
        role += " who were fixed before the mask graph was drawn"
    options, notes = [], []
    for spread in ("flood", "average"):
        protocol = found.replace(spread=spread)
        try:
            messages = protocol.rounds * 2.0 * graph.m / graph.n
        except Unsupported as problem:
            notes.append(f"average: not offered: {problem}")
            continue
        loss = against_any(protocol, colluders)
        promise = replace(
            loss,
            curve=everywhere(loss.curve, (graph.n,)),
            factor=None,
            observers=Observers(roles=(role,)),
            names=graph.labels,
        )
        options.append(MaskedOption(spread, protocol, promise, expected_error(protocol), messages))
    allowed = float(gaussian_mu(epsilon, delta))
    scale = sensitivity / allowed * math.sqrt(dimension)
    return MaskedPlan(
        tuple(options),
        epsilon=epsilon,
        delta=delta,
        holds=f"holds for every party, against {role}, whatever gets lost, late or repeated"
        + _allowed(attempts, absent),
        local_rmse=scale / math.sqrt(graph.n),
        curator_rmse=scale / graph.n,
        notes=tuple(notes),
        graph=graph,
        sensitivity=sensitivity,
        colluders=colluders,
    )


def _allowed(attempts: int, absent: int) -> str:
    """What else is covered, for the sentence about what holds."""
    words = [f"in at most {attempts} attempts"] if attempts > 1 else []
    words += [f"with at most {absent} absent"] if absent else []
    return f",\n{', '.join(words)}" if words else ""
