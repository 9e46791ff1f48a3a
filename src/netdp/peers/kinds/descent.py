"""Learning together (`netdp.MaskedDescent`): a masked sum of clipped gradients in every iteration, the same model at all parties.

**What is promised** is about all iterations together, and the evaluation: `netdp.peers.ledger.descent_losses`, the same
function that the ledger uses. It is entered in full before the first step leaves; docs/guarantees.md#training-on-peers says
which line enforces which assumption.

Everybody must be there from beginning to end (attempts = 1, absent = 0). A study that breaks off is over; a party that was
away for a while comes back and goes on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np

from netdp.errors import InvalidValue, NetdpError
from netdp.numerics.rounding import rounded_up
from netdp.planning.table import noise_for
from netdp.privacy import Guarantee, Observers, SharedCurve
from netdp.protocols import MaskedDescent, MaskedSum
from netdp.protocols.masked_steps import from_bytes, wire_width

from ..learner import Learner, rows_digest
from ..ledger.descent_losses import broken_off, descent_curve, descent_loss
from ..ledger.losses import accounted
from ..messages import Item, Kind, roster_digest
from ..model import Misfit, Number, Strict, Whole
from ..spreads.descent import DIGEST, Descending
from .base import Desk, Roster, Running, Wish
from .noise import DIGITS, least_noise, power_of_two

if TYPE_CHECKING:
    from ..spreads.base import Spread
    from ..study.training import Training

_DIAGONAL = math.sqrt(2.0) * (1 + 1e-12)  # of a row that is counted: right or not, and one
_MOST_ITERATIONS = 100_000
_EVALUATION_STEPS = 64  # of its grid, in a deviation of its noise


class DescentSettings(Strict):
    """Noisy gradient descent on masked sums (`netdp.MaskedDescent`)."""

    kind: Literal["masked-descent"]
    iterations: Whole
    sampling: Number = 1.0
    clip: Number
    step: Number
    momentum: Number = 0.0
    average: Literal["last", "later"] = "later"
    sigma: Number
    grid: Number
    modulus: Whole
    evaluation_sigma: Number = 0.0
    evaluation_grid: Number = 1.0
    evaluation_modulus: Whole = 2
    chunk: Whole = 1


class DescentRunning(Running):
    """Parties that train one model, by a masked sum of their gradients in every iteration."""

    kind = "masked-descent"
    Settings = DescentSettings
    options = ("iterations", "sampling", "clip", "step", "momentum", "average", "chunk")
    comments: ClassVar = {
        "iterations": "how often everybody adds its gradients",
        "sampling": "the chance with which a record (or a party) takes part in an iteration, drawn in secret by its owner",
        "clip": "the longest that a gradient may be",
        "average": '"later": the mean of the models of the later half; "last": the last model',
        "sigma": "noise that every party adds to every number, in every iteration",
        "evaluation_sigma": "noise that every party adds to the two counts of held-out rows",
        "chunk": "records whose gradients a torch model computes at once; 1: each by itself, as the proof wants it",
    }
    how = (
        "In every iteration each party computes, from its own rows, which way the model should move, and publishes that "
        "with noise and under one-time pads that cancel in the sum. Everybody sees the noisy sums and makes the same model "
        "of them, and nothing else."
    )
    told = "Everybody learns the model, and every sum on the way to it: all {n} parties, and whoever they tell."
    tasks = ("train",)
    units = ("party", "record")
    depends_on_size_only = True

    @property
    def task(self) -> Training:
        """What is trained; `check` refuses anything else."""
        return cast("Training", self.study.task)

    # ── the study ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self) -> None:
        for name, usual in (("attempts", 1), ("absent", 0)):
            if getattr(self.study.privacy, name) != usual:
                raise Misfit(
                    ("privacy", name),
                    f"a training is run once, by all; who is away for a while is waited for, and goes on: give {usual}",
                )
        super().check()
        how, task, study = self.settings, self.task, self.study
        _check_iterations(how.iterations)
        if task.unit == "record" and task.records is not None and task.records > study.n * (task.max_records or 0):
            raise Misfit(
                ("task", "records"),
                f"{task.records:,} rows in all are more than {study.n} parties with max_records = {task.max_records:,} can have",
            )
        if how.chunk < 1:
            raise Misfit(("protocol", "chunk"), f"must be 1 or more records, got {how.chunk}")
        if bool(task.held_out) != (how.evaluation_sigma > 0):
            what = (
                "has no rows to count: give 0"
                if not task.held_out
                else "is missing: held-out rows are counted with noise"
            )
            raise Misfit(("protocol", "evaluation_sigma"), f"{what}; held_out = {task.held_out:g}")
        try:
            protocol = self.protocol()
            self.evaluation  # noqa: B018  refuses what makes no sense
        except NetdpError as problem:
            raise Misfit(("protocol",), str(problem)) from None
        if protocol.sampling != how.sampling:
            raise Misfit(
                ("protocol", "sampling"), f"must be a multiple of 2^-32, as coins are: give {protocol.sampling!r}"
            )

    def protocol(self) -> MaskedDescent:
        how, study, task = self.settings, self.study, self.task
        most, about = (task.max_records, task.records) if task.unit == "record" else (None, None)
        return MaskedDescent(
            study.graph, how.iterations, sigma=how.sigma, step=how.step, clip=how.clip, dimension=task.dimension,
            grid=how.grid, modulus=how.modulus, unit=task.unit, sampling=how.sampling, momentum=how.momentum,
            average=how.average, max_records=most, records=about,
        )  # fmt: skip

    @cached_property
    def evaluation(self) -> MaskedSum | None:
        """The sum that counts held-out rows: right ones, or squared errors, and all."""
        how, task = self.settings, self.task
        if not task.held_out:
            return None
        return self._counting(how.evaluation_sigma, how.evaluation_grid, how.evaluation_modulus)

    def _counting(self, sigma: float, grid: float | None = None, modulus: int | None = None) -> MaskedSum:
        task = self.task
        return MaskedSum(
            self.study.graph, sigma=sigma, sensitivity=_DIAGONAL, dimension=2, grid=grid, modulus=modulus, unit=task.unit,
            reach=float(task.max_records or 1) if task.unit == "record" else 1.0,
        )  # fmt: skip

    def _loss(self) -> dict[str, Any]:
        return descent_loss(self.protocol(), self.evaluation)

    def promise(self, colluders: int) -> Guarantee:
        study, protocol = self.study, self.protocol()
        found = accounted(protocol, tuple(range(colluders))).require_certified()
        curve = descent_curve(self._loss(), study.n - colluders)
        who = "single party" if colluders == 1 else f"{colluders} parties together"
        return replace(
            found,
            curve=SharedCurve(curve, np.zeros(study.n, dtype=np.int64)),
            assumptions=(*found.assumptions, *self._assumed()),
            observers=Observers(roles=(f"any {who}",)),
            factor=None,
            names=None,
        )

    def _assumed(self) -> tuple[str, ...]:
        task, said = self.task, []
        if task.held_out:
            if task.unit == "record":
                said.append(
                    f"a coin of its owner puts every row into training or, with probability {task.held_out:g}, into the rows "
                    "that are counted at the end, never into both: the larger of the two losses holds"
                )
            else:
                said.append("the count of held-out rows is one more sum, and is added to the loss of the training")
        model = getattr(task, "named", "")
        if self.settings.chunk > 1 and ":" in str(model):
            said.append(
                f"gradients of {self.settings.chunk} rows are computed at once, and that of a row is rounded alike whatever other "
                "rows are computed with it: nobody enforces that; chunk = 1 does"
            )
        said.append(
            "how long a party takes for an iteration, which may depend on how many rows it drew, is not covered: the promise "
            "is about what is sent"
        )
        return tuple(said)

    def worst_epsilon(self, colluders: int, delta: float) -> float:
        return float(descent_curve(self._loss(), self.study.n - colluders).epsilon(delta))

    def noise(self, parties: int) -> float:
        one = self.protocol().sum
        return one.step * math.sqrt(parties * one.share)

    def answer(self, total: Sequence[float], parties: int) -> dict[str, Any]:
        counted = self.evaluation
        noise = 0.0 if counted is None else counted.step * math.sqrt(parties * counted.share)
        return self.task.answer(total, parties, noise)

    # ── one party ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def draw(self, desk: Desk, attempt: int, roster: Roster) -> tuple[bytes, bytes]:
        return roster_digest(roster), rows_digest(desk.identity.noise_secret, desk.rows)

    def spread(self, desk: Desk, attempt: int, roster: Roster) -> Spread:
        study, protocol = self.study, self.protocol()

        def learner() -> Learner:
            return Learner(
                desk,
                protocol,
                self.evaluation,
                attempt,
                roster,
                chunk=self.settings.chunk,
                held_out=self.task.held_out,
            )

        return Descending(
            protocol, self.evaluation, attempt, roster, desk, learner, patience=study.timing.patience,
            near=study.neighbours(desk.me), name=lambda u: study.names[u],
        )  # fmt: skip

    def _sum_of(self, index: int) -> MaskedSum | None:
        """The sum that a step with this index belongs to."""
        return self._summed.sum if index <= self.settings.iterations else self.evaluation

    @cached_property
    def _summed(self) -> MaskedDescent:
        return self.protocol()

    def longest(self) -> dict[Kind, int]:
        sums = [one for one in (self._summed.sum, self.evaluation) if one is not None]
        longest = DIGEST + max(wire_width(one.q) * one.dimension for one in sums)
        return {Kind.VOTE: 4 * self.study.n, Kind.CONTRIBUTION: 32, Kind.FALLBACK: 0, Kind.STEP: longest}

    def is_legible(self, item: Item) -> bool:
        if item.key.kind == Kind.CONTRIBUTION:
            return len(item.body) == 32
        if item.key.kind != Kind.STEP:
            return item.key.kind in (Kind.VOTE, Kind.FALLBACK)
        one = self._sum_of(item.key.index)
        if one is None:
            return False
        try:
            from_bytes(item.body[DIGEST:], one.q, one.dimension)
        except InvalidValue:
            return False
        return True

    def most_steps(self) -> int:
        return int(self.settings.iterations) + (self.evaluation is not None)

    def most_rounds(self) -> int:
        return 0

    # ── the ledger ────────────────────────────────────────────────────────────────────────────────────────────────────

    def loss(self, roster: Roster, me: int) -> dict[str, Any]:
        return self._loss()

    def recomputed(self, attempt: int, roster: Roster, me: int, realised: Mapping[str, Any]) -> dict[str, Any] | None:
        """Of a training that this party has left for good: what the steps that it made tell, whoever chose the moment."""
        if not realised.get("left"):
            return None
        return broken_off(self._loss(), int(realised["releases"]))

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        from netdp.planning.training import plan_training

        task: Any = wish.task
        given = {
            name: wish.options[name] for name in ("iterations", "sampling", "clip", "step") if name in wish.options
        }
        n = wish.graph.n
        _check_iterations(given.get("iterations", 1))  # before anything is planned: that would take long
        plan = plan_training(
            n, task.dimension, wish.epsilon, wish.delta, rows=task.max_records, unit=task.unit, colluders=wish.colluders,
            graph=wish.graph, model=task.named, records=task.records if task.unit == "record" else None, **given,
        ).protocol  # fmt: skip
        chosen = {name: wish.options.get(name, getattr(plan, name)) for name in ("momentum", "average")}
        sigma = rounded_up(plan.sigma, DIGITS)
        made = plan.replace(sigma=sigma, grid=None, modulus=None, **chosen)
        made = made.replace(grid=min(made.sum.step, 1.0))
        settings = {
            "kind": cls.kind, "iterations": made.iterations, "sampling": made.sampling, "clip": made.clip, "step": made.step,
            **chosen, "sigma": sigma, "grid": made.sum.step, "modulus": made.sum.q, "chunk": wish.options.get("chunk", 1),
        }  # fmt: skip
        if task.held_out:
            settings |= cls._evaluation_settings(
                wish.graph, task, noise_for(_DIAGONAL, wish.epsilon, wish.delta) / math.sqrt(n - wish.colluders)
            )
        return settings

    @staticmethod
    def _evaluation_settings(graph: Any, task: Any, sigma: float) -> dict[str, Any]:
        sigma = rounded_up(sigma, DIGITS)
        reach = float(task.max_records or 1) if task.unit == "record" else 1.0
        made = MaskedSum(
            graph, sigma=sigma, sensitivity=_DIAGONAL, dimension=2, unit=task.unit, reach=reach,
            grid=min(1.0, power_of_two(sigma / _EVALUATION_STEPS)),
        )  # fmt: skip
        return {"evaluation_sigma": sigma, "evaluation_grid": made.step, "evaluation_modulus": made.q}

    def least(self) -> dict[str, Any]:
        study, terms, protocol = self.study, self.study.privacy, self.protocol()
        honest = study.n - terms.colluders
        rough = dict(self.settings.model_dump(mode="json"))
        apart = self.task.unit == "record"

        def counted(sigma: float) -> dict[str, Any]:
            return self._evaluation_settings(study.graph, study.task, sigma)

        def stated(sigma: float) -> dict[str, Any]:
            follows = protocol.replace(sigma=sigma, grid=None, modulus=None)
            follows = follows.replace(grid=min(follows.sum.step, 1.0))
            return rough | {"sigma": sigma, "grid": follows.sum.step, "modulus": follows.sum.q}

        def meets(settings: dict[str, Any], *, alone: bool = False) -> bool:
            made = self.with_settings(settings)
            assert isinstance(made, DescentRunning)
            loss = made._loss() | ({"evaluation": None} if alone else {})
            return float(descent_curve(loss, honest).epsilon(terms.delta)) <= terms.epsilon

        if self.task.held_out and not apart:  # one more sum, with a twentieth of μ²
            rough |= counted(noise_for(_DIAGONAL, terms.epsilon, terms.delta) * math.sqrt(20 / honest))
        sigma = least_noise(lambda sigma: meets(stated(sigma), alone=apart), protocol.sigma)
        rough |= stated(sigma)
        if self.task.held_out and apart:
            guess = noise_for(_DIAGONAL, terms.epsilon, terms.delta) / math.sqrt(honest)
            rough |= counted(least_noise(lambda sigma: meets(rough | counted(sigma)), guess))
        return rough


def _check_iterations(given: int) -> None:
    if not 1 <= given <= _MOST_ITERATIONS:
        raise Misfit(("protocol", "iterations"), f"must be 1 to {_MOST_ITERATIONS:,}, got {given:,}")
