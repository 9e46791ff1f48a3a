"""Who learns most, and who loses most: every observer alone against everybody, and the worst of them named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from netdp.engine import map_items
from netdp.errors import Unsupported
from netdp.numerics.arrays import FloatArray, Progress
from netdp.numerics.checks import positive
from netdp.privacy import Observers
from netdp.privacy.readable import readable
from netdp.protocols import Protocol
from netdp.views import observer_set

from .front import account
from .table import certified

_EVERYBODY = 200  # observers that are looked at one by one unless they are named


@dataclass(frozen=True, eq=False)
class Exposure:
    """What each of some observers learns, alone, at one δ.

    observers   who was looked at
    epsilons    (observers, n) what each learns about everybody; nan about itself
    degrees     how many links each observer has; empty where there is no graph
    names       of all parties; None: their numbers
    """

    delta: float
    observers: tuple[int, ...]
    epsilons: FloatArray
    degrees: tuple[int, ...] = ()
    names: tuple[str, ...] | None = None

    @property
    def learns(self) -> FloatArray:
        """The most that each observer learns about anybody."""
        return np.asarray(np.nanmax(self.epsilons, axis=1))

    @property
    def hub(self) -> int:
        """The observer who learns most."""
        return self.observers[int(np.argmax(self.learns))]

    @property
    def victim(self) -> int:
        """The party about whom it learns most."""
        return int(np.nanargmax(self.epsilons[int(np.argmax(self.learns))]))

    @property
    def worst(self) -> float:
        """How much: the largest ε of all pairs."""
        return float(self.learns.max())

    def rows(self, top: int = 5) -> list[dict[str, Any]]:
        """The observers who learn most: who, about whom, how much, what they learn about the others."""
        chosen = np.argsort(-self.learns, kind="stable")[:top].tolist()
        return [
            {
                "observer": self._name(self.observers[i]),
                **({"links": self.degrees[i]} if self.degrees else {}),
                "learns most about": self._name(int(np.nanargmax(self.epsilons[i]))),
                "epsilon": float(self.learns[i]),
                "in the median": float(np.nanmedian(self.epsilons[i])),
            }
            for i in chosen
        ]

    def _name(self, party: int) -> str:
        return str(party) if self.names is None else self.names[party]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {"delta": self.delta, "rows": self.rows(len(self.observers))}

    def __str__(self) -> str:
        lines = [
            f"{self._name(self.hub)} learns most: ε = {readable(self.worst)} at δ = {self.delta:g}, about {self._name(self.victim)}"
        ]
        for row in self.rows():
            links = f", {row['links']} links" if "links" in row else ""
            lines.append(
                f"  {row['observer']}{links}: {readable(row['epsilon'])} about {row['learns most about']}, "
                f"{readable(row['in the median'])} in the median"
            )
        return "\n".join(lines)


def who_learns_most(
    protocol: Protocol,
    delta: float,
    observers: Iterable[int | str] | int | str | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Exposure:
    """Every party alone as an observer, or each of `observers`: what it learns about everybody, the worst first.

    Options are those of `account`.

    >>> from netdp import graphs
    >>> from netdp.protocols import GraphWalkSum
    >>> found = who_learns_most(GraphWalkSum(graphs.star(5), steps=25, sigma=5.0), delta=1e-5)
    >>> found.hub, found.degrees[found.hub], found.worst == found.rows()[0]["epsilon"]
    (0, 4, True)
    """
    positive("delta", delta)
    network = protocol.network
    if observers is not None:
        who = observer_set(protocol.n if network is None else network, observers)
    elif protocol.n <= _EVERYBODY:
        who = tuple(range(protocol.n))
    else:
        raise Unsupported(
            f"{protocol.n} observers one by one take long; name those of interest, such as the ones with the most links: "
            "who_learns_most(protocol, delta, observers=[…])"
        )
    protocol.prepare()
    ours = certified.ours(protocol)
    found = np.array(
        [*map_items(_learned, who, shared=(protocol, delta, options), progress=progress, portable=ours)]
    ).reshape(len(who), protocol.n)
    degrees = () if network is None else tuple(int(network.degrees[v]) for v in who)
    return Exposure(float(delta), who, found, degrees, None if network is None else network.labels)


def _learned(protocol: Protocol, delta: float, options: dict[str, Any], v: int) -> FloatArray:
    """ε of everybody against v alone."""
    return np.asarray(account(protocol, Observers((v,)), **options).epsilon(delta))
