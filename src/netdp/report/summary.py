"""What `netdp account` says, as plain data: by distance from the observers, beside local DP and a trusted curator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.accounting import account, local_dp, trusted_curator
from netdp.errors import InvalidValue
from netdp.numerics.arrays import Progress
from netdp.privacy import Guarantee
from netdp.privacy.readable import readable
from netdp.protocols import Gossip
from netdp.utility import ExpectedError

from .accuracy import error_dict, error_words, predicted


@dataclass(frozen=True)
class Figures:
    """One method's loss over a group of parties: worst and mean factor, worst ε(δ)."""

    worst_factor: float
    mean_factor: float
    worst_epsilon: float


@dataclass(frozen=True)
class Row:
    """All methods over one group of parties."""

    group: str  # "1", "2", …, "all"
    parties: int
    published: Figures
    plain: Figures
    chosen: Figures


@dataclass(frozen=True, eq=False)
class Summary:
    """The report on one protocol and one set of observers."""

    protocol: Gossip
    observers: tuple[int, ...]
    delta: float
    rows: tuple[Row, ...]
    everyone: Row
    local_epsilon: float
    curator_epsilon: float
    chosen: Guarantee
    plain: Guarantee
    published: Guarantee
    distances: npt.NDArray[np.int32]
    error: ExpectedError | str

    @property
    def has_extras(self) -> bool:
        """Whether the protocol does more than plain gossip."""
        return self.protocol != self.plain_protocol

    @property
    def plain_protocol(self) -> Gossip:
        """The same gossip without refresh and masks."""
        return _plain(self.protocol)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and cells, as text: worst ε by distance, everybody, mean factors. Groups out of reach share a row."""
        header = ["hops away", "parties", "published (not a bound)", "exact, plain gossip"]
        header += [f"{self.chosen.claim.value}, as chosen"] if self.has_extras else []
        header += ["local DP", "trusted curator"]
        baselines = [readable(self.local_epsilon), readable(self.curator_epsilon)]
        reached = [row for row in self.rows if any(f.worst_factor > 0 for f in self._methods(row))]
        beyond = self.rows[len(reached) :]
        cells = [
            [
                row.group,
                f"{row.parties:,}",
                *(readable(f.worst_epsilon) for f in self._methods(row)),
                *baselines,
            ]
            for row in reached
        ]
        if beyond:
            group = beyond[0].group if len(beyond) == 1 else f"{beyond[0].group}–{beyond[-1].group}"
            zeros = ["0"] * len(self._methods(beyond[0]))
            cells.append([group, f"{sum(row.parties for row in beyond):,}", *zeros, *baselines])
        everyone = self._methods(self.everyone)
        cells.append(
            [
                "worst",
                f"{self.everyone.parties:,}",
                *(readable(f.worst_epsilon) for f in everyone),
                *baselines,
            ]
        )
        factors = [f"×{f.mean_factor:.3g}" for f in everyone]  # a summary, not a guarantee: rounded as usual
        cells.append(["mean factor", "", *factors, "×1", f"×{1 / self.protocol.graph.n:.3g}"])
        return header, cells

    def _methods(self, row: Row) -> tuple[Figures, ...]:
        return (row.published, row.plain, row.chosen) if self.has_extras else (row.published, row.plain)

    @property
    def published_fails(self) -> bool:
        """Whether the published formula lies below the exact loss at some distance."""
        return any(row.plain.worst_factor > 1.001 * row.published.worst_factor for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; the certified numbers per party are under "loss"."""
        protocol = self.protocol.to_dict()
        graph = self.protocol.graph
        protocol["graph"] = {"name": graph.name, "n": graph.n, "m": graph.m, "digest": graph.digest}
        return {
            "protocol": protocol,
            "observers": self.chosen.observers.to_dict(),
            "delta": self.delta,
            "by_distance": [asdict(row) for row in self.rows],
            "all": asdict(self.everyone),
            "local_dp": {"factor": 1.0, "epsilon": self.local_epsilon},
            "trusted_curator": {"factor": 1.0 / graph.n, "epsilon": self.curator_epsilon},
            "error": error_dict(self.error),
            "distances": self.distances.tolist(),
            "loss": self.chosen.to_dict(),
            "epsilon": [None if np.isnan(e) else _number(float(e)) for e in self.chosen.epsilon(self.delta)],
            "published": {
                "certified": False,
                "errata": list(self.published.errata),
                "references": list(self.published.references),
            },
        }

    @property
    def question(self) -> str:
        """What the numbers answer."""
        return f"What {self.chosen.observers.words} can learn about a party: worst ε at δ = {self.delta:g}"

    def __str__(self) -> str:
        header, cells = self.table()
        widths = [max(len(row[i]) for row in (header, *cells)) for i in range(len(header))]
        rows = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (header, *cells)
        ]
        return "\n".join(
            [
                self.protocol.describe(),
                self.question,
                *rows,
                self.chosen.claim.meaning,
                error_words(self.protocol, self.error),
            ]
        )


def summarise(
    protocol: Gossip,
    observers: int | str | Iterable[int | str],
    delta: float = 1e-6,
    progress: Progress | None = None,
) -> Summary:
    """Account for the protocol as chosen, without refresh and masks, and as the paper prints it.

    >>> from netdp import graphs
    >>> s = summarise(Gossip(graphs.hypercube(4), rounds=8, sigma=2.0, masks=10.0), observers=[0])
    >>> [row.parties for row in s.rows]
    [4, 6, 4, 1]
    """
    if not 0 < delta < 1:
        raise InvalidValue(f"delta must lie strictly between 0 and 1, got {delta!r}; 1e-6 is a usual choice")
    chosen = account(protocol, observers, progress=progress)
    plain = chosen if _plain(protocol) == protocol else account(_plain(protocol), observers, progress=progress)
    published = account(protocol, observers, method="published")
    parties = chosen.observers.parties
    distances = protocol.graph.distances(parties)
    methods = (published, plain, chosen)
    rows = tuple(_row(str(d), distances == d, methods, delta) for d in range(1, int(distances.max()) + 1))
    return Summary(
        protocol=protocol,
        observers=parties,
        delta=delta,
        rows=rows,
        everyone=_row("all", distances > 0, methods, delta),
        local_epsilon=local_dp(protocol).worst_epsilon(delta),
        curator_epsilon=trusted_curator(protocol).worst_epsilon(delta),
        chosen=chosen,
        plain=plain,
        published=published,
        distances=distances,
        error=predicted(protocol),
    )


def _plain(protocol: Gossip) -> Gossip:
    return protocol.replace(refresh=0.0, masks=0.0)


def _row(group: str, members: npt.NDArray[np.bool_], methods: tuple[Guarantee, ...], delta: float) -> Row:
    return Row(group, int(members.sum()), *(_figures(method, members, delta) for method in methods))


def _figures(guarantee: Guarantee, members: npt.NDArray[np.bool_], delta: float) -> Figures:
    assert guarantee.factor is not None
    factor = np.asarray(guarantee.factor)[members]
    epsilon = np.asarray(guarantee.epsilon(delta))[members]
    return Figures(float(factor.max()), float(factor.mean()), float(epsilon.max()))


def _number(value: float) -> float | str:
    return value if np.isfinite(value) else "inf"
