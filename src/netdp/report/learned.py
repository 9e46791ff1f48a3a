"""A model learned in simulation and looked back at: how good it is on rows that nobody trained on, and what it gave away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table as Lines
from rich.text import Text

from netdp.accounting import account
from netdp.learn import LogisticParties, ModelParties, Table, accuracy, train, train_ring, train_walk
from netdp.models import Logistic
from netdp.numerics.arrays import FloatArray, jsonable
from netdp.privacy import Guarantee
from netdp.protocols import ErdosRenyiDescent, Protocol, RingDescent, WalkDescent

from .comparison import loss_words
from .outcome import SIMULATION

TEST = 0.2
"""The share of the rows that is held back."""


@dataclass(frozen=True, eq=False)
class Learned:
    """One model, and what can be said of it afterwards.

    accuracy   share of the held-back rows on the right side
    guess      the same for whoever says the commoner label
    loss       certified before the run, for all that observers see during it
    """

    protocol: Protocol
    model: FloatArray
    accuracy: float
    guess: float
    rows: int
    loss: Guarantee
    delta: float
    seed: int
    source: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        protocol, graph = self.protocol.to_dict(), self.protocol.network
        if graph is not None:
            protocol["graph"] = {"name": graph.name, "n": graph.n, "m": graph.m, "digest": graph.digest}
        return {
            "simulation": True, "note": SIMULATION, "protocol": protocol, "values": self.source, "seed": self.seed,
            "accuracy": self.accuracy, "guess": self.guess, "rows": self.rows, "model": jsonable(self.model),
            "observers": self.loss.observers.to_dict(), "delta": self.delta,
            "epsilon": jsonable(self.loss.worst_epsilon(self.delta)), "loss": self.loss.to_dict(self.delta),
        }  # fmt: skip

    def _rows(self) -> list[tuple[str, str, str]]:
        loss = self.loss
        return [
            ("accuracy", f"{self.accuracy:.3f}", f"on {self.rows:,} rows that nobody trained on"),
            ("guessing", f"{self.guess:.3f}", "the commoner label for every row"),
            (f"ε at δ = {self.delta:g}", loss_words(loss, self.delta),
             f"{loss.claim.value}, what {loss.observers.words} can learn about a {loss.unit.value}"),
        ]  # fmt: skip

    def __str__(self) -> str:
        rows = [f"  {name}: {value} ({note})" for name, value, note in self._rows()]
        return "\n".join([SIMULATION, self.protocol.describe(), f"rows: {self.source}; seed {self.seed}", *rows])


def learn_and_account(
    protocol: Protocol, table: Table, seed: int, observers: Any, delta: float, source: str
) -> Learned:
    """Deal four fifths of the rows to the parties, train a logistic model on them, try it on the rest.

    Where every party keeps a model, the first party's is tried; several tokens bring the mean of their models.
    """
    rows, test = table.split(TEST, seed)
    if getattr(protocol, "unit", "party") == "record":  # every record's own gradient is clipped
        model_of = Logistic(rows.X.shape[1])
        parties: Any = ModelParties.deal(model_of, rows.X, (rows.y > 0).astype(np.float64), protocol.n, seed)
    else:
        parties = LogisticParties.deal(rows.X, rows.y, protocol.n, seed)
    loss = account(protocol, observers)  # before the work: what cannot be accounted for is not run
    if isinstance(protocol, WalkDescent):
        model = train_walk(protocol, parties, seed).model
    elif isinstance(protocol, RingDescent):
        model = train_ring(protocol, parties, seed).model
    elif isinstance(protocol, ErdosRenyiDescent):
        model = train(protocol.draw(seed), parties, seed).models[0]
    else:
        model = train(protocol, parties, seed).models[0]  # type: ignore[arg-type]
    return Learned(
        protocol,
        model,
        accuracy(model, test.X, test.y),
        float(max(np.mean(test.y > 0), np.mean(test.y < 0))),
        len(test.y),
        loss,
        delta,
        seed,
        source,
    )


def learned_table(learned: Learned) -> RenderableType:
    """For a terminal."""
    lines = Lines(box=None, pad_edge=False, show_header=False)
    lines.add_column(no_wrap=True)
    lines.add_column(justify="right", no_wrap=True)
    lines.add_column(style="dim")
    for row in learned._rows():
        lines.add_row(*row)
    heading = [Text(learned.protocol.describe()), Text(f"rows: {learned.source}; seed {learned.seed}")]
    return Group(Text(f"{SIMULATION}\n", style="bold"), *heading, Text(), lines)


__all__ = ["Learned", "learn_and_account", "learned_table"]
