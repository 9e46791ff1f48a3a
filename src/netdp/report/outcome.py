"""A simulated run looked back at: the answer beside the truth, the error beside its prediction, and what was given away.

Of a model that was learned in simulation the same: how good it is on rows that nobody trained on, and what it gave away.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from netdp.errors import NetdpError, Unsupported
from netdp.learn.tables import DataTable
from netdp.mechanisms.base import Mechanism
from netdp.mechanisms.laplace import Laplace
from netdp.mechanisms.responses import RandomizedResponse
from netdp.models.linear import Logistic
from netdp.models.parties import LogisticParties, ModelParties, accuracy
from netdp.numerics.arrays import FloatArray, jsonable
from netdp.numerics.values import held, party_values
from netdp.privacy.guarantee import Claim, Guarantee
from netdp.privacy.wording import readable
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import ExpectedError, expected_error
from netdp.protocols.answers import loss_words
from netdp.protocols.base import Protocol
from netdp.protocols.simulation import hindsight, simulate

SIMULATION = "a simulation: everything ran in this process, nothing was sent over a network"


@dataclass(frozen=True, eq=False)
class Outcome:
    """One run of a protocol on numbers, and what can be said of it afterwards.

    answers     of all parties, of the curator alone where there is one; of a histogram the shares, which all read alike
    truth       the mean of the values (clipped, if bounds were stated), or the true shares
    realised    root mean square over the answers of their distance from the truth; of a histogram the L2 distance
    expected    the predicted one, for these values; or why there is none
    loss        certified; `after` says whether for what really happened, and else why for the plan of it
    source      where the values came from
    record      all that the recorded parties hold
    """

    protocol: Protocol
    answers: FloatArray
    truth: float | FloatArray
    realised: float
    expected: ExpectedError | str
    messages: int
    loss: Guarantee
    after: str
    delta: float
    seed: int
    source: str
    record: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            **_plain_settings(self),
            "answer": jsonable(self.answers) if self._shares else float(self.answers[0]),
            "answers": jsonable(self.answers),
            "truth": jsonable(np.asarray(self.truth)),
            "error": {
                "realised": self.realised,
                "predicted": {"not_available": self.expected} if isinstance(self.expected, str) else self.expected.rmse,
                "predicted_claim": None if isinstance(self.expected, str) else self.expected.claim.value,
                "predicted_at_most": None if isinstance(self.expected, str) else self.expected.at_most,
            },
            "messages": {"total": self.messages, "per_party": self.messages / self.protocol.n},
            **_plain_loss(self),
            "accounted": self.after,
            "record": None if self.record is None else _plain(self.record),
        }

    @property
    def _shares(self) -> bool:
        return not isinstance(self.truth, float)

    def _rows(self) -> list[tuple[str, str, str]]:
        who = f"the {self.protocol.roles[0]}" if self.protocol.roles else f"party {_name(self.protocol, 0)}"
        spread = ""
        if len(self.answers) > 1 and not self._shares:
            spread = f"all parties: {self.answers.min():.4g} to {self.answers.max():.4g}"
        at_most = " at most" if self.loss.is_certified else ""
        expected = ("–", f"not predicted: {self.expected}")
        if not isinstance(self.expected, str):
            said = "" if self.expected.claim is Claim.EXACT else f": {self.expected.words}"
            expected = (self.expected.cell, f"predicted for these values, root mean square{said}")
        return [
            (f"answer of {who}", _few(self.answers) if self._shares else f"{self.answers[0]:.4g}", spread),
            ("truth", _few(np.atleast_1d(self.truth)), "the share of every value" if self._shares else "the mean of the values"),
            ("error", readable(self.realised), "realised, root mean square over the answers" if spread else "realised"),
            ("", *expected),
            ("messages", f"{self.messages:,}", f"{self.messages / self.protocol.n:,.0f} per party"),
            (f"ε at δ = {self.delta:g}", loss_words(self.loss, self.delta),
             f"{self.loss.claim.value}, what {self.loss.observers.words} learned{at_most}; {self.after}"),
        ]  # fmt: skip

    def _heading(self) -> list[str]:
        return [self.protocol.describe(), f"values: {self.source}; seed {self.seed}"]

    def __str__(self) -> str:
        return _text(self)


def run_and_account(
    protocol: Protocol,
    values: Any,
    seed: int,
    bounds: tuple[float, float] | None,
    record: Any,
    observers: Any,
    delta: float,
    source: str,
) -> Outcome:
    """Simulate, compare with the prediction, and account for the transcript."""
    run = simulate(protocol, values, seed, bounds=bounds, record=record)
    truth: float | FloatArray
    domain: int | None = getattr(protocol, "domain", None)
    if domain is not None:  # a histogram
        data = np.asarray(values)
        answers, truth = run.estimates[0], np.bincount(data, minlength=domain) / protocol.n
        realised = float(np.linalg.norm(answers - truth))
    else:
        data = held(party_values(values, protocol.n), protocol.sensitivity, bounds)  # type: ignore[attr-defined]
        answers, truth = run.estimates[:, 0], float(data.mean())
        answers = answers[:1] if np.ptp(answers) == 0 else answers  # a token: everybody reads the same
        realised = float(np.sqrt(np.mean((answers - truth) ** 2)))
    loss, after = _looked_back(protocol, observers, run.transcript)
    return Outcome(
        protocol,
        answers,
        truth,
        realised,
        _predicted(protocol, data),
        len(run.transcript),
        loss,
        after,
        delta,
        seed,
        source,
        run.record,
    )


def _looked_back(protocol: Protocol, observers: Any, transcript: Any) -> tuple[Guarantee, str]:
    """The loss of what really happened; where that adds nothing to what was said before, that."""
    try:
        loss = account(protocol, observers, transcript=transcript)
    except Unsupported:
        return account(protocol, observers), "stated before the run: what happened by chance stays secret"
    return loss, hindsight(protocol) if hindsight.handles(protocol) else "for the messages that were really sent"


def shuffle_and_account(
    protocol: Protocol,
    values: Any,
    seed: int,
    bounds: tuple[float, float] | None,
    observers: Any,
    delta: float,
    source: str,
) -> Outcome:
    """Randomize values, shuffle them and let the curator estimate: numbers of an interval, or without one labels."""
    done = simulate(protocol, values, seed, bounds=bounds)
    answers, epsilon0 = done.estimate, protocol.epsilon0  # type: ignore[attr-defined]
    mechanism: Mechanism
    truth: float | FloatArray
    null: Any
    if bounds is None:  # the protocol knows how many labels there are
        mechanism = RandomizedResponse(protocol.values, epsilon0)  # type: ignore[attr-defined]
        data, null = np.asarray(values), 0
        truth = mechanism.answer(data)
        realised = float(np.linalg.norm(answers - truth))
    else:
        low, high = bounds
        mechanism, answers = Laplace.interval(low, high, epsilon0), answers[:1]
        data, null = np.clip(party_values(values, protocol.n), low, high), [(low + high) / 2]
        truth = float(data.mean())
        realised = abs(float(answers[0]) - truth)
    options: dict[str, Any] = {}
    if getattr(protocol, "reporting", "all") == "single":
        options["null"] = null
    loss, after = None, "stated before the run: where reports went is nobody's knowledge"
    if (pattern := getattr(done, "pattern", None)) is not None:
        loss, after = account(protocol, observers, transcript=pattern), "for the faults that really occurred"
    return Outcome(
        protocol,
        answers,
        truth,
        realised,
        _predicted(protocol, data, mechanism=mechanism, **options),
        done.messages,
        account(protocol, observers) if loss is None else loss,
        after,
        delta,
        seed,
        source,
    )


def _predicted(protocol: Protocol, data: FloatArray, **options: Any) -> ExpectedError | str:
    try:
        return expected_error(protocol, data, **options)
    except NetdpError as problem:
        return str(problem)


def _few(numbers: FloatArray) -> str:
    return ", ".join(f"{x:.4g}" for x in numbers[:6]) + (", …" if len(numbers) > 6 else "")


def _name(protocol: Protocol, party: int) -> str:
    """What the graph calls a party."""
    return str(party if protocol.network is None else protocol.network.label(party))


def _plain(record: Any) -> dict[str, Any]:
    return {field.name: jsonable(getattr(record, field.name)) for field in dataclasses.fields(record)}


def _plain_settings(outcome: Outcome | TrainingOutcome) -> dict[str, Any]:
    """What was run, on what."""
    protocol, graph = outcome.protocol.to_dict(), outcome.protocol.network
    if graph is not None:
        protocol["graph"] = {"name": graph.name, "n": graph.n, "m": graph.m, "digest": graph.digest}
    told = {"simulation": True, "note": SIMULATION, "protocol": protocol}
    return {**told, "values": outcome.source, "seed": outcome.seed}


def _plain_loss(outcome: Outcome | TrainingOutcome) -> dict[str, Any]:
    """What it gave away, to whom."""
    loss, delta = outcome.loss, outcome.delta
    worst = jsonable(loss.worst_epsilon(delta))
    return {"observers": loss.observers.to_dict(), "delta": delta, "epsilon": worst, "loss": loss.to_dict(delta)}


def _text(outcome: Outcome | TrainingOutcome) -> str:
    rows = [f"  {name}: {value} ({note})" if note else f"  {name}: {value}" for name, value, note in outcome._rows()]
    return "\n".join([SIMULATION, *outcome._heading(), *rows])


def _shown(outcome: Outcome | TrainingOutcome, *after: RenderableType) -> RenderableType:
    """Heading and rows for a terminal, and what comes below them."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    for row in outcome._rows():
        table.add_row(*row)
    heading = [Text(line) for line in outcome._heading()]
    return Group(Text(f"{SIMULATION}\n", style="bold"), *heading, Text(), table, *after)


def outcome_table(outcome: Outcome) -> RenderableType:
    """For a terminal."""
    recorded = []
    if outcome.record is not None:
        kept = len(outcome.record.messages if hasattr(outcome.record, "messages") else outcome.record.visits)
        who = ", ".join(_name(outcome.protocol, u) for u in outcome.record.observers)
        recorded = [Text(f"\nrecorded: the {kept:,} messages that reached {who}; --json prints them")]
    return _shown(outcome, *recorded)


TEST = 0.2
"""The share of the rows that is held back."""


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
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
        found = {"accuracy": self.accuracy, "guess": self.guess, "rows": self.rows, "model": jsonable(self.model)}
        return {**_plain_settings(self), **found, **_plain_loss(self)}

    def _rows(self) -> list[tuple[str, str, str]]:
        loss = self.loss
        return [
            ("accuracy", f"{self.accuracy:.3f}", f"on {self.rows:,} rows that nobody trained on"),
            ("guessing", f"{self.guess:.3f}", "the commoner label for every row"),
            (f"ε at δ = {self.delta:g}", loss_words(loss, self.delta),
             f"{loss.claim.value}, what {loss.observers.words} can learn about a {loss.unit.value}"),
        ]  # fmt: skip

    def _heading(self) -> list[str]:
        return [self.protocol.describe(), f"rows: {self.source}; seed {self.seed}"]

    def __str__(self) -> str:
        return _text(self)


def learn_and_account(
    protocol: Protocol, table: DataTable, seed: int, observers: Any, delta: float, source: str
) -> TrainingOutcome:
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
    model = simulate(protocol, parties, seed).model
    return TrainingOutcome(
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


def learned_table(learned: TrainingOutcome) -> RenderableType:
    """For a terminal."""
    return _shown(learned)
