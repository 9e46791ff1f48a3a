"""What one party adds to a model in whole numbers, from its rows and secrets: gossip descent, and tokens that carry a model.

Everything is a function of the rows, the party's secret, the study, the attempt, the roster, the place of the step and the model
that it starts from. The noise of a step comes from a stream whose key holds the very numbers that it is added to: so whoever
computes a step again, from the same model and rows, has the same bytes, and never one noise around two numbers. (Another machine
may compute other gradients: then noise is another one, too, and what was sent twice is two releases. That is why steps are
written down before they leave, and a folder from a backup goes on on the machine that it came from.)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from netdp.learn.fitting import edge, longest_step, step_for
from netdp.learn.planning import LEAST_EDGE, Outlook
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.models.base import NoFiniteGradient
from netdp.models.linear import Linear, Logistic, Multinomial
from netdp.models.parties import ModelParties, drawn_rows
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.peers.kinds import Kind, Wish
from netdp.peers.records import Misfit
from netdp.peers.streams import context, noise_words, rows_digest

if TYPE_CHECKING:
    from netdp.peers.desk import Desk
    from netdp.peers.study.training import Training
    from netdp.protocols.descents import WholeSteps

CHUNK = 32
"""Rows whose gradients a torch model computes at once: a whole party is protected, so they need not be kept apart."""

NOISE, ROWS = 1, 2
"""What words are drawn for."""

_LONG = 20_000_000


def model_of(task: Training) -> Any:
    """The model that a descent in whole numbers trains."""
    return task.model(CHUNK) if task.is_code else task.model()


def known_expansion(task: Training, step: float, clip: float) -> float | None:
    """A Lipschitz constant of a local step for any rows that the task admits; None where nothing is known.

    Rows of built-in models are scaled to norm at most 1, each by itself, so a single row of norm 1 is the worst.
    """
    if task.is_code:
        return None
    model = task.model()
    longest = np.zeros((1, task.table.width + 1))
    longest[0, -1] = 1.0 + 1e-12
    return float(model.expansion(longest, step, clip))


class OwnSteps:
    """One party's part of a descent: its gradients in whole steps, and its noise."""

    def __init__(
        self,
        protocol: WholeSteps,
        task: Training,
        rows: FloatArray,
        secret: bytes,
        study: bytes,
        attempt: int,
        roster: Sequence[int],
        *,
        batch: int | None = None,
    ) -> None:
        self.protocol, self.batch = protocol, batch
        self.model = model_of(task)
        X, y = task.parts(rows)
        self._parties = ModelParties(self.model, [X], [y])
        self._secret, self._where = secret, (study, attempt, tuple(roster))
        self.digest = rows_digest(secret, rows)

    @cached_property
    def is_long(self) -> bool:
        """Whether a gradient takes so long that others must be listened to meanwhile."""
        if not isinstance(self.model, Linear | Logistic | Multinomial):  # nobody knows how long its gradients take
            return True
        rows = len(self._parties.ys[0]) if self.batch is None else self.batch
        return self.protocol.dimension * rows > _LONG

    def start(self) -> IntArray:
        """The public first model in whole steps."""
        return self.protocol.start(self.model.start())

    def gradient(self, state: IntArray, *place: int) -> IntArray:
        """ν times the clipped gradient at this model, in whole steps, for the step at this place."""
        theta, parties = self.protocol.model(state), self._parties
        if self.batch is not None:
            words = noise_words(self._secret, context(*self._where, ROWS, *place), self.digest)(self.batch)
            chosen = drawn_rows((words >> np.uint64(11)).astype(np.float64) * 2.0**-53, len(parties.ys[0]))
            parties = ModelParties(self.model, [parties.Xs[0][chosen]], [parties.ys[0][chosen]])
        if not len(parties.ys[0]):
            return np.zeros(len(theta), dtype=np.int64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoFiniteGradient)
            return self.protocol.in_steps(parties.gradient(theta, 0, self.protocol.clip))

    def noise(self, numbers: IntArray, variance: int, *place: int) -> IntArray:
        """The noise around these numbers at this place; nothing at variance 0."""
        if not variance:
            return np.zeros_like(numbers)
        words = noise_words(self._secret, context(*self._where, NOISE, *place), numbers.astype("<i8").tobytes())
        return FineGaussian(variance).sample(numbers.shape, words)

    def loss(self, state: IntArray) -> float | None:
        """The mean loss on the own rows, for their owner's eyes only."""
        found = self._parties.risk(self.protocol.model(state))
        return float(found) if np.isfinite(found) else None


class DescentKind(Kind):
    """What studies have in common that train in whole numbers: whole parties, each with noise of its own."""

    tasks = ("train",)

    @property
    def task(self) -> Training:
        """What is trained; `check` refuses anything else."""
        return cast("Training", self.study.task)

    def check(self) -> None:
        self.check_task(self.study.task)
        if self.task.unit != "party":
            raise Misfit(
                ("task", "unit"),
                f'{self.kind} protects whole parties: no proof covers single records there; use masked-descent, or "party"',
            )
        if self.task.held_out:
            raise Misfit(
                ("task", "held_out"),
                f"{self.kind} counts no held-out rows, which takes a sum over all; give 0, or use masked-descent",
            )
        super().check()

    def noise(self, parties: int) -> float:
        return float(self.settings.sigma)

    def answer(self, total: Sequence[float] | FloatArray, parties: int) -> dict[str, Any]:
        return self.task.answer(total, parties)

    def own_steps(self, protocol: Any, desk: Desk, attempt: int, roster: Sequence[int]) -> Callable[[], OwnSteps]:
        """What makes this party's part of an attempt, when it is needed."""
        return lambda: OwnSteps(
            protocol, self.task, desk.rows, desk.identity.noise_secret, self.study.hash, attempt, roster, batch=protocol.batch
        )  # fmt: skip

    def outlook(self) -> Outlook:
        protocol: Any = self.protocol()
        found = edge(protocol, self.task.dimension)
        warned = () if found >= LEAST_EDGE else (
            f"noise will win: {protocol.n} parties and {self.task.dimension:,} numbers in the model: steps can lead {found:.2g} "
            f"times as far as noise does, and below {LEAST_EDGE:g} little was learned on the tables tried. More parties, a larger "
            "epsilon or a smaller model help, and so do masked sums (masked-descent), in which nobody sees a single party's "
            "noisy gradient",
        )  # fmt: skip
        return Outlook(found, found, warned)

    @staticmethod
    def step_of(draft: Any, wish: Wish) -> float:
        """The step that was asked for, or the longest that helps and does not stretch."""
        task: Any = wish.task
        if (given := wish.options.get("step")) is not None:
            return float(given)
        longest = longest_step(draft.clip)
        step = min(step_for(draft, task.dimension), 0.999 * longest)  # rows are of norm 1 but for rounding
        if task.named == "multinomial":
            return min(step, longest / 2)
        if task.named == "linear":
            return min(step, 1.99)
        return min(step, 0.5 / draft.clip) if task.is_code else step
