"""Learning together: one masked sum after the other, the same model at every party after each.

Once everybody has contributed (which is only the word that it takes part, and has paid), party u publishes in iteration
t = 1, 2, … a signed *step*: a digest of the model that it starts from, and y_t. Steps are passed on by all. Who holds those of
all members adds them, and everybody has the next model, to the last bit (`netdp.protocols.model_steps`).

**Nothing is published that was not written down, and nothing is written down twice.** The step of iteration t and the state
before it go into registers that only rise (`netdp.peers.ledger.store.Store.rise`), in one transaction, before the step is
signed. A process that starts again reads both and goes on: it says what stands there. Steps are drawn only after the
neighbours have said what they hold in our name.

**How far parties are apart.** Nobody completes iteration t without the step of everybody, and nobody makes step t + 1 before it has
completed t. So if I have completed c iterations, everybody has completed c − 1, c or c + 1; steps that exist and that anybody may
need are those of iterations c, c + 1 and c + 2. All others are refused or forgotten: memory is level, however long it takes, and
a party that comes back finds what it needs, because the step and the state that it reads are of its last iteration. ∎

**Two models.** A cheat that tells two parties two different steps makes their models differ. It learns no more by that: whatever
models honest parties compute gradients at, each publishes one step per iteration, within the same bounds. The digests in the
next steps show it: then everybody shows everybody the steps that it has added up, so that the two signed ones meet and prove
who it was; and the attempt ends. A party that was started again draws no step of an iteration while it holds somebody's that
starts from another model: if its folder is an old copy, and the cheat says something else now than before, that would be a second
step under the same pads (docs/guarantees.md#held-in-our-name: what is proved about that, and what is not). One that was never
stopped publishes: so all hear of both models.

**Who is waited for.** A member that is linked to us computes, or waits as we do: it gets STALLED times the study's patience,
and more where our own gradients take long. So does one that has no link to us in the study, as long as all that have are
linked. Any other gets the patience, counted from the last step that came.

**Leaving.** A party that gives up shuts its register first: whatever is started from its folder later, it publishes no further step
of this attempt. So what was published by then is all, and the ledger may say so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from netdp.errors import Refused
from netdp.numerics.arrays import FloatArray
from netdp.protocols import MaskedDescent, MaskedSum
from netdp.protocols.masked_steps import from_bytes, opened, reduced
from netdp.protocols.model_steps import State, begun, kept, stepped
from netdp.protocols.model_steps import from_bytes as state_of
from netdp.protocols.model_steps import to_bytes as state_bytes

from ..ledger.store import SHUT
from ..messages import Item, Key, Kind, roster_digest
from .base import Answer, Moment, Moves, Spread

if TYPE_CHECKING:
    from ..kinds.base import Desk
    from ..learner import Drawn, Learner

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
            self.over = f"this party has left the training after {made} of {self.iterations} steps, for good"

    # ── what happens ──────────────────────────────────────────────────────────────────────────────────────────────────

    def advance(self, held: Mapping[Key, Item], moment: Moment) -> Moves:
        moves = Moves()
        self._begun = True
        self._claimed = max(self._claimed, moment.claimed)
        if self.answer is not None or self.over is not None:
            return moves
        said = (held.get(Key(Kind.CONTRIBUTION, self.attempt, u)) for u in self.roster)
        if any(item is None or item.body != self._digest for item in said):
            return moves
        self._open(moment)
        while self.answer is None and self.over is None:
            t = self.completed + 1
            own = held.get(Key(Kind.STEP, self.attempt, self._me, t))
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
            moves.notes.append(f"iteration {t}: {drawn.lost} own rows have no finite gradient and count as zero")
        if drawn.loss is not None:
            self.progress["loss"] = drawn.loss
            self._show = moment.now + max(SHOWN, SELDOM * drawn.took)
        body = self._mark + drawn.numbers
        stands = self._desk.rise(self.attempt, t, {STATE: state_bytes(self._state), STEP: body})[STEP]
        moves.published.append((Key(Kind.STEP, self.attempt, self._me, t), stands))
        self._since = moment.now
        return stands

    def worked(self, result: Any) -> None:
        self._ready, self.work = result, None

    def _bodies(self, held: Mapping[Key, Item], t: int, own: bytes | None) -> dict[int, bytes]:
        """Whose steps of an iteration are here."""
        found = {} if own is None else {self._me: own}
        for u in self.roster:
            item = held.get(Key(Kind.STEP, self.attempt, u, t))
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
            moves.shown = [Key(Kind.STEP, self.attempt, u, self.completed) for u in self.roster]
        if moment.now < self._disputed + LOOK * self._patience:
            moves.waits, self.wake = True, self._disputed + LOOK * self._patience
            return False
        names = ", ".join(self._name(u) for u in others[:6])
        self.over = (
            f"step {t} of {names} starts from another model than ours: somebody has published two different steps, or a machine "
            f"computes otherwise; {self._spent()}"
        )
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
        self.answer = Answer(self.attempt, self.roster, total, hashlib.sha256(total.astype("<f8").tobytes()).digest())

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

    def why_late(self) -> str | None:
        if not self._opened or self.answer is not None:
            return None
        t = self.completed + 1
        if self._claimed > t or (self._claimed == t and self._me in self.missing):
            return (
                f"others hold step {self._claimed} of this party, and its folder knows of {t - 1} iterations only: it is older "
                f"than what was sent from it, and what happened since is gone; {self._spent()}"
            )
        names = ", ".join(self._name(u) for u in self.missing[:6])
        more = f" and {len(self.missing) - 6} more" if len(self.missing) > 6 else ""
        return f"iteration {t} of {self.iterations}: the step of {names}{more} did not come in time; {self._spent()}"

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
