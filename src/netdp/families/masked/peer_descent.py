"""A party of a study that trains a model: one masked sum after the other, the same model at every party after each.

Once everybody has contributed (the word that it takes part, and has paid), party u publishes in iteration t = 1, 2, … a signed
*step*: a digest of the model that it starts from, and y_t. Steps are passed on by all; who holds those of all members adds them.
A step and the state before it go into registers that only rise before it is signed, so nothing is written twice and a process that
starts again goes on. Everybody must be there from beginning to end; one that gives up shuts its register first. Why a party that
comes back finds what it needs, and what two models mean: docs/proofs/peers.md#training-on-peers and #held-in-our-name.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, NetdpError, Refused
from netdp.families.masked.descent import MaskedDescent, State, begun, kept, stepped
from netdp.families.masked.descent import from_bytes as state_of
from netdp.families.masked.descent import to_bytes as state_bytes
from netdp.families.masked.peer import DESCENT, Learner, descent_curve, descent_loss
from netdp.families.masked.protocol import MaskedSum, from_bytes, opened, reduced, wire_width
from netdp.numerics.arrays import FloatArray, rounded_up
from netdp.peers.events import Sentence, Statement
from netdp.peers.kinds import Kind, Roster, Wish
from netdp.peers.ledger.losses import accounted
from netdp.peers.ledger.store import SHUT
from netdp.peers.messages import Item, ItemKind, Key, roster_digest
from netdp.peers.noise import DIGITS, least_noise, power_of_two
from netdp.peers.records import Misfit, Number, Strict, Whole
from netdp.peers.spread import Moment, Moves, Spread, SpreadResult
from netdp.peers.streams import rows_digest
from netdp.privacy.curves import SharedCurve
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.observers import Observers
from netdp.protocols.calibration import noise_for

if TYPE_CHECKING:
    from netdp.families.masked.peer import Drawn
    from netdp.learn.planning import Outlook
    from netdp.peers.desk import Desk
    from netdp.peers.study.training import Training
    from netdp.protocols.training import TrainingCost

STEP, STATE = b"step", b"state"
"""The registers of what is published in an iteration, and of the state before it."""

DIGEST = 32

STALLED = 4.0
"""In units of patience: how long a member that can be reached may take for a step."""

SLOWER = 20.0
"""So many times as long as we took for our own."""

LOOK = 0.25
"""How often to look again while waiting, in units of patience."""

SHOWN, SELDOM = 1.0, 50.0
"""The owner is shown the loss on its own rows after so many seconds, and after so many times as long as computing it takes."""


class Descending(Spread):
    """One party of a `MaskedDescent`.

    **How far parties are apart.** If I have completed c iterations, everybody has completed c − 1, c or c + 1; steps of
    iterations c, c + 1 and c + 2 are kept, all others refused or forgotten: memory is level, however long it takes.

    **Two models.** A cheat that tells two parties two different steps makes their models differ, and learns no more by that. The
    digests in the next steps show it: then everybody shows everybody the steps that it has added up, so that the two signed ones
    meet and prove who it was; and the attempt ends. A party that was started again draws no step of an iteration while it holds
    somebody's that starts from another model; one that was never stopped publishes: so all hear of both models.

    **Who is waited for.** A member that is linked to us computes, or waits as we do: it gets STALLED times the study's patience,
    and more where our own gradients take long. So does one that has no link to us in the study, as long as all that have are
    linked. Any other gets the patience, counted from the last step that came.

    learner    makes what one party publishes, from its rows; made when it is first needed
    evaluation the sum that counts how good the model is, in an iteration of its own at the end; or None
    near       whom we are linked to, when all is well
    """

    def __init__(
        self,
        protocol: MaskedDescent,
        evaluation: MaskedSum | None,
        attempt: int,
        roster: tuple[int, ...],
        desk: Desk,
        learner: Callable[[], Learner],
        *,
        patience: float,
        near: Collection[int] = (),
        name: Callable[[int], str] = str,
    ) -> None:
        super().__init__(attempt, roster)
        self.passes_on = True
        self.rounds = 0
        self._protocol, self._evaluation, self._desk, self._me = protocol, evaluation, desk, desk.me
        self._make, self._patience, self._name, self._near = learner, patience, name, frozenset(near)
        self._learner: Learner | None = None
        self._digest = roster_digest(roster)
        self.iterations = protocol.iterations + (evaluation is not None)
        self._state: State | None = None
        self._mark = b""
        self._ready: tuple[int, Drawn] | None = None
        self._begun = self._opened = False
        self._disputed: float | None = None
        self._since = self._started = self._show = float("-inf")
        self._began: float | None = None  # when our own step was begun, if that takes long
        self._took, self._came, self._claimed = 0.0, 0, 0
        self._resumed = 0
        self._find_place()

    def _find_place(self) -> None:
        """Where an earlier life stood: the iterations that were over, or that it has left."""
        written = self._desk.risen(self.attempt, STATE)
        self.completed = self._resumed = written[0][0] - 1 if written else 0
        steps = self._desk.risen(self.attempt, STEP)
        if steps and steps[0][0] == SHUT:
            made = int.from_bytes(
                steps[0][1], "big"
            )  # what was known when it was shut: others may have held more than we
            self.realised = {"left": True, "releases": made}
            self.over = Sentence.LEFT(made=made, iterations=self.iterations)

    # ── what happens ──────────────────────────────────────────────────────────────────────────────────────────────────

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        moves = Moves()
        self._begun = True
        self._claimed = max(self._claimed, moment.claimed)
        if self.answer is not None or self.over is not None:
            return moves
        said = (held.get(Key(ItemKind.CONTRIBUTION, self.attempt, u)) for u in self.roster)
        if any(item is None or item.body != self._digest for item in said):
            return moves
        self._open(moment)
        while self.answer is None and self.over is None:
            t = self.completed + 1
            own = held.get(Key(ItemKind.STEP, self.attempt, self._me, t))
            body = own.body if own is not None else None
            if body is None and self._may_draw(t, moment):
                if moment.returned and not self._agree(t, self._bodies(held, t, None), moves, moment):
                    break
                body = self._publish(t, moves, moment)
            bodies = self._bodies(held, t, body)
            if self.missing:
                self._wait(moves, moment, len(bodies))
                break
            if not self._agree(t, bodies, moves, moment):
                break
            self._complete(t, bodies, moment)
        return moves

    def _open(self, moment: Moment) -> None:
        """The state to go on from, and the rows; refuses rows that are not those that were paid for."""
        if self._opened:
            return
        self._opened = True
        self._since = self._started = moment.now
        self._learner = self._make()
        if self._desk.written(self.attempt) != self._learner.digest:
            raise Refused(
                f"the data of {self._name(self._me)} have changed since the training began; what was promised is about the same "
                "rows in all iterations. Put the data back as they were, or take part in a new study"
            )
        written = self._desk.risen(self.attempt, STATE)
        self._set(state_of(written[0][1]) if written else begun(self._learner.model.start()))

    def _set(self, state: State) -> None:
        self._state = state
        self._mark = hashlib.sha256(self._digest + state_bytes(state)).digest()

    def _may_draw(self, t: int, moment: Moment) -> bool:
        """Whether all neighbours have answered, and none holds our step already: else it must come back first."""
        return moment.asked and t > moment.claimed

    def _publish(self, t: int, moves: Moves, moment: Moment) -> bytes | None:
        """Our own step, drawn, written down and published; None while it is being computed."""
        assert self._learner is not None
        assert self._state is not None
        if self._ready is None or self._ready[0] != t:
            learner, state = self._learner, self._state
            show = moment.now >= self._show
            if learner.is_long:
                if self.work is None:
                    self._began = moment.now
                    self.work = lambda: (t, learner.drawn(t, state, show))
                return None
            self._ready = (t, learner.drawn(t, state, show))
        drawn, self._ready = self._ready[1], None
        if self._began is not None:
            self._took, self._began = max(self._took, moment.now - self._began), None
        if drawn.lost:
            moves.notes.append(Sentence.NO_GRADIENT(iteration=t, rows=drawn.lost))
        if drawn.loss is not None:
            self.progress["loss"] = drawn.loss
            self._show = moment.now + max(SHOWN, SELDOM * drawn.took)
        body = self._mark + drawn.numbers
        stands = self._desk.rise(self.attempt, t, {STATE: state_bytes(self._state), STEP: body})[STEP]
        moves.published.append((Key(ItemKind.STEP, self.attempt, self._me, t), stands))
        self._since = moment.now
        return stands

    def worked(self, result: Any) -> None:
        self._ready, self.work = result, None

    def _bodies(self, held: Mapping[Key, Item], t: int, own: bytes | None) -> dict[int, bytes]:
        """Whose steps of an iteration are here."""
        found = {} if own is None else {self._me: own}
        for u in self.roster:
            item = held.get(Key(ItemKind.STEP, self.attempt, u, t))
            if item is not None:
                found.setdefault(u, item.body)
        self.missing = tuple(u for u in self.roster if u not in found)
        return found

    def _agree(self, t: int, bodies: Mapping[int, bytes], moves: Moves, moment: Moment) -> bool:
        """Whether these steps start from our model. If not, those before are shown to all, and a while later the attempt ends."""
        others = [u for u, body in bodies.items() if body[:DIGEST] != self._mark]
        if not others:
            return True
        if self._disputed is None:
            self._disputed = moment.now
            moves.shown = [Key(ItemKind.STEP, self.attempt, u, self.completed) for u in self.roster]
        if moment.now < self._disputed + LOOK * self._patience:
            moves.waits, self.wake = True, self._disputed + LOOK * self._patience
            return False
        names = ", ".join(self._name(u) for u in others[:6])
        self.over = Sentence.MODELS_DIFFER(iteration=t, names=names, spent=self._spent())
        return False

    def _complete(self, t: int, bodies: Mapping[int, bytes], moment: Moment) -> None:
        """Add up, and make the next model of it."""
        assert self._state is not None
        training = t <= self._protocol.iterations
        one = self._protocol.sum if training else self._sum_of_counts
        total = np.zeros(one.dimension, dtype=np.uint64)
        for u in self.roster:
            total += numbers_of(one, bodies[u])
        sums = opened(reduced(total, one.q), one.q)
        counts = None
        if training:
            self._set(stepped(self._protocol, self._state, t, sums))
        else:
            counts = sums.astype(np.float64) * one.step
        self.completed, self._came, self._since = t, 0, moment.now
        self._tell(moment)
        if t == self.iterations:
            self._finish(counts)

    @property
    def _sum_of_counts(self) -> MaskedSum:
        assert self._evaluation is not None
        return self._evaluation

    def _finish(self, counts: FloatArray | None) -> None:
        assert self._state is not None
        model = kept(self._protocol, self._state)
        total = model if counts is None else np.concatenate([model, counts])
        self.wake = float("inf")
        self.answer = SpreadResult(
            self.attempt, self.roster, total, hashlib.sha256(total.astype("<f8").tobytes()).digest()
        )

    def _tell(self, moment: Moment) -> None:
        done, spent = self.completed - self._resumed, moment.now - self._started
        rate = done / spent if spent > 0 else 0.0
        self.progress |= {"iteration": self.completed, "of": self.iterations, "rate": rate}

    # ── waiting, and leaving ──────────────────────────────────────────────────────────────────────────────────────────

    def _wait(self, moves: Moves, moment: Moment, came: int) -> None:
        """Say whether we wait with good reason, and when to look again."""
        self.wake = moment.now + LOOK * self._patience
        if came > self._came:
            self._came, moves.waits = came, True
        others = {u for u in self.missing if u != self._me}
        needed = (
            others if others <= self._near else self._near
        )  # of who is further off nothing is heard but through these
        allowed = STALLED * self._patience + SLOWER * self._took
        if self.work is not None or (moment.linked >= needed and moment.now < self._since + allowed):
            moves.waits = True

    def why_late(self) -> Statement | None:
        if not self._opened or self.answer is not None:
            return None
        t = self.completed + 1
        if self._claimed > t or (self._claimed == t and self._me in self.missing):
            return Sentence.STEP_GONE(index=self._claimed, known=t - 1, spent=self._spent())
        names = ", ".join(self._name(u) for u in self.missing[:6])
        more = f" and {len(self.missing) - 6} more" if len(self.missing) > 6 else ""
        spent = self._spent()
        return Sentence.STEP_MISSING(iteration=t, iterations=self.iterations, names=f"{names}{more}", spent=spent)

    def _spent(self) -> str:
        return f"{self._made()} of {self.iterations} steps of this party were published, and no more will be"

    def _made(self) -> int:
        """How many own steps may have been seen: those written down, and those that others speak of."""
        numbers = [number for number, _ in self._desk.risen(self.attempt, STEP) if number < SHUT]
        return min(max([self._claimed, *numbers]), self.iterations)

    def leave(self) -> None:
        """Shut the register for good; then the steps made so far are all there will ever be."""
        if not self._begun or self.answer is not None or self.realised:
            return
        made = self._made()
        self._desk.rise(self.attempt, SHUT, {STEP: made.to_bytes(8, "big")})
        self.realised = {"left": True, "releases": made}


def numbers_of(one: MaskedSum, body: bytes) -> npt.NDArray[np.uint64]:
    """The y in a step."""
    return from_bytes(body[DIGEST:], one.q, one.dimension)


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


class DescentRunning(Kind):
    """Parties that train one model, by a masked sum of their gradients in every iteration."""

    kind = "masked-descent"
    Settings = DescentSettings
    sends = frozenset({ItemKind.STEP})
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

    def answer(self, total: Sequence[float] | FloatArray, parties: int) -> dict[str, Any]:
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

    def longest(self) -> dict[ItemKind, int]:
        sums = [one for one in (self._summed.sum, self.evaluation) if one is not None]
        longest = DIGEST + max(wire_width(one.q) * one.dimension for one in sums)
        return {
            ItemKind.VOTE: 4 * self.study.n,
            ItemKind.CONTRIBUTION: 32,
            ItemKind.FALLBACK: 0,
            ItemKind.STEP: longest,
        }

    def is_legible(self, item: Item) -> bool:
        if item.key.kind == ItemKind.CONTRIBUTION:
            return len(item.body) == 32
        if item.key.kind != ItemKind.STEP:
            return item.key.kind in (ItemKind.VOTE, ItemKind.FALLBACK)
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
        return DESCENT.broken_off(self._loss(), int(realised["releases"]))

    # ── what to expect of it ──────────────────────────────────────────────────────────────────────────────────────────

    def cost(self, latency: float) -> TrainingCost:
        from netdp.families.masked.error import expected_cost

        return expected_cost(self.protocol(), latency=latency)

    def outlook(self) -> Outlook:
        from netdp.families.masked.training import outlook

        return outlook(self.protocol(), self.study.task.max_records)

    # ── planning ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def start(cls, wish: Wish) -> dict[str, Any]:
        from netdp.families.masked.training import plan_training

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
