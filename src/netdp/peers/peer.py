"""One party at work: its state machine, its folder and its links, until it holds the answer and nobody needs it any more.

Before the first link is made a peer checks everything it can: all parties have signed this very study, its own keys are
the ones listed, the certified loss is what the study promises, its owner's policy and what was spent before allow it
(`prepare`). Whatever fails raises `Refused`, with the numbers; nothing has been sent then.

Messages to one neighbour are gathered for a few milliseconds and travel as one frame: a write costs more than a
message. Tokens and states do not wait. A neighbour that does not read slows down what is sent to it, and nobody else.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import struct
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from netdp.errors import InvalidValue, LinkLost, NetdpError
from netdp.numerics.arrays import FloatArray
from netdp.peers.desk import STEP, Desk
from netdp.peers.events import opened_privately
from netdp.peers.meter import Meter
from netdp.peers.spread import SpreadResult
from netdp.peers.study.study import Study
from netdp.peers.terms import SPARE, Ended, Terms

from .events import OutcomeEvent, PeerEvent, ProofEvent, SignedEvent, Statement, StatusEvent
from .identity import Identity
from .ledger.entries import CORRECTS, in_force, spent_by_size, total
from .ledger.losses import kind_of
from .ledger.store import SHUT, Store
from .messages import Announce, Hello, Item, ItemKind, Key, Message, Pull, decode, encode, vote_of
from .party import Party
from .trace import Trace
from .transport.base import Clock, Limits, RealClock, Receiver, Transport

GATHER, LONGEST_GATHER = 0.01, 0.05
"""Seconds that messages which are not urgent wait for others to the same neighbour: among few parties, and among many."""
SOON = 0.002
"""Seconds that urgent messages wait for others where a sum survives dropouts: eight things are said by all, one after the other."""
FEW = 16
"""So many parties are few: what all say to all on the way of a sum that survives dropouts is urgent among them."""
FRAME = 1 << 20
"""Bytes after which a frame is full; a larger item travels alone."""
LONG = 10_000
"""Numbers: an answer with more of them is reported once."""
KEPT = 16 << 20
"""Bytes of others' items that a party keeps in its folder after the answer, for those who come back."""
EVERY = 0.1
"""Seconds between two reports of how far the party is; more with many parties, who may all tell the same reader."""

Report = Callable[[PeerEvent], None]
MakeTransport = Callable[[Receiver], Transport]


@dataclasses.dataclass
class _Link:
    """What waits for one neighbour."""

    waiting: deque[Message] = dataclasses.field(default_factory=deque)
    something: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    urgent: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Stopped(Exception):
    """The peer was stopped in order before it had an outcome, or before its neighbours had it."""


class Peer:
    """A party of a study, with its links. `await run()` gives its outcome as plain values.

    transport   makes the links, given this peer as their receiver
    report      told about progress (`netdp.peers.events`)
    record      a file to which every frame sent is appended, for audits: 4 bytes receiver, 4 bytes length, the frame
    trace       told of every frame that leaves or comes, for its owner to watch: whose and which messages, without contents
    """

    def __init__(
        self,
        identity: Identity,
        study: Study,
        store: Store,
        rows: FloatArray,
        transport: MakeTransport,
        *,
        clock: Clock | None = None,
        report: Report | None = None,
        record: Path | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.study, self.store, self.identity = study, store, identity
        self._clock = clock or RealClock()
        self._tell = report or (lambda event: None)
        self.meter = Meter(self._clock.time())
        self._stopping = False
        desk = self._desk = Desk(identity, study, store, rows)
        self.me = desk.me
        terms = Terms(study, self.me)
        self._gather = min(GATHER * max(1.0, study.n / FEW), LONGEST_GATHER)
        self._untended = False
        self._every = EVERY * max(1.0, study.n / 20)
        self._links: dict[int, _Link] = {}
        self._changed = asyncio.Event()
        self._waking, self._told = 0.0, float("-inf")
        self._failure: BaseException | None = None
        self._computing: asyncio.Task[None] | None = None
        self._record = None if record is None else _private(record)
        self._trace = trace
        self.party = Party(self.me, terms, desk, self._clock.time())
        self._outcome: dict[str, Any] | None = None
        self._unread_until: dict[int, float] = {}
        self._accused = self._signed = 0
        self._unwritten = False
        self._over = asyncio.Event()
        if (kept := (store.result(study.hash) or {}).get("resume")) is not None:
            answer, signed, addressed = _unpacked(kept)
            self.party.resume(answer, [*signed, *self._signed_before(answer)], addressed)
        self._transport = transport(self)

    # ── as a receiver of the transport ────────────────────────────────────────────────────────────────────────────────

    def linked(self, peer: int) -> None:
        """A link works."""
        self._forget(peer)
        link = self._links[peer] = _Link()
        link.task = asyncio.ensure_future(self._sending(peer, link))
        self._do(lambda: self.party.linked(peer, self._clock.time()))
        self._report({"event": "linked", "peer": self.study.everybody[peer]})

    def lost(self, peer: int, reason: Statement) -> None:
        """A link is gone."""
        self._forget(peer)
        self._do(lambda: self.party.lost(peer, self._clock.time()))
        self._report({"event": "lost", "peer": self.study.everybody[peer], "reason": reason})

    async def received(self, peer: int, frame: bytes) -> None:
        """A frame has come."""
        try:
            messages = decode(frame)
        except InvalidValue as problem:
            fault = problem
            self.meter.frame("in", len(frame), ())
            self._do(lambda: self.party.unreadable(peer, len(frame), fault, self._clock.time()))
        else:
            self.meter.frame("in", len(frame), messages)
            if self._trace is not None:
                self._trace.moved("received", self.study.everybody[peer], messages)
            several = self.party.terms.deals  # many frames come at once: what is done follows from all of them
            self._do(lambda: self.party.received(peer, messages, self._clock.time(), more=several))
            if several:
                self._untended = True
                await asyncio.sleep(0)
                if self._untended:
                    self._untended = False
                    self._do(lambda: self.party.advance(self._clock.time()))
        while (wait := self._unread_until.get(peer, 0.0) - self._clock.time()) > 0 and not self._over.is_set():
            # its next frame is not read before: it fills its own end of the link, and nothing here
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), wait)

    # ── running ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> dict[str, Any]:
        """Take part until there is an outcome and the neighbours need nothing more; the outcome as plain values."""
        told = False
        try:
            await self._transport.start()
            self._report({"event": "listening"})
            while True:
                if self._failure is not None:
                    raise self._failure
                self._do(lambda: self.party.tick(self._clock.time()))
                if self._outcome is not None and not told:
                    told = True
                    self._report(cast(OutcomeEvent, {"event": "outcome", **self._brief(self._outcome)}))
                if self._outcome is not None and self.party.may_leave:
                    self._write_late()
                    return self._outcome
                if self._stopping:
                    raise Stopped
                await self._next_change()
        finally:
            self._over.set()
            if self._failure is None:
                with contextlib.suppress(NetdpError):  # the answer itself is kept; signatures are asked for again
                    self._write_late()
                await self._flush()
            for peer in list(self._links):
                self._forget(peer)
            await self._transport.close()
            if self._record is not None:
                self._record.close()

    def stop(self) -> None:
        """Let `run` end in order, with `Stopped`: from now on nothing is heard, so nothing new is said, drawn or spent.

        What was said already gets a moment to leave. What is not heard now is said again by the neighbours at the next start.
        """
        self._stopping = True
        self._changed.set()

    @property
    def outcome(self) -> dict[str, Any] | None:
        """The outcome as plain values, if there is one by now."""
        return self._outcome

    def _report(self, event: PeerEvent) -> None:
        self.meter.event(event, self._clock.time())
        self._tell(event)

    async def _next_change(self) -> None:
        """Wait until something was heard, or until the party wants to be woken."""
        self._waking = self.party.wake
        wait = max(0.0, self._waking - self._clock.time())
        waking = asyncio.ensure_future(self._clock.sleep(min(wait, 3600.0) + 1e-3))
        hearing = asyncio.ensure_future(self._changed.wait())
        _, pending = await asyncio.wait({waking, hearing}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        self._changed.clear()

    def _do(self, act: Callable[[], None]) -> None:
        """Let the party act, and hand what it says to the links."""
        if self._failure is not None or self._stopping:
            return
        try:
            act()
            if self._outcome is None and self.party.outcome is not None:
                # kept before anybody hears of it: who knows that we are done may leave, and take with it what we need
                self._outcome = self._conclude(self.party.outcome)
                self._changed.set()
            if len(self.party.evidence) > self._accused:
                self._keep_evidence()
            self._collect()
        except Exception as problem:  # ends the peer: it must not go on after a failed write
            self._failure = problem
            self._changed.set()
            return
        if self._computing is None and (work := self.party.work()) is not None:
            self._computing = asyncio.ensure_future(self._compute(work))
        for to, message in self.party.outbox():
            link = self._links.get(to)
            if link is not None:
                link.waiting.append(message)
                link.something.set()
                if _is_urgent(message, self.study.n <= FEW) or self._is_awaited(to, message):
                    link.urgent.set()
        for peer, reason in self.party.refusals:
            self._report({"event": "refused", "peer": self.study.everybody[peer], "reason": reason})
            self._forget(peer)
        self.party.refusals.clear()
        for peer, reason in self.party.unbearable:
            self._unread_until[peer] = self._clock.time() + self.study.timing.patience
            self._report({"event": "refused", "peer": self.study.everybody[peer], "reason": reason})
        self.party.unbearable.clear()
        for peer, text in self.party.accused:
            self._report({"event": "note", "peer": self.study.everybody[peer], "text": text})
        self.party.accused.clear()
        for note in self.party.notes:
            self._report({"event": "note", "text": note})
        self.party.notes.clear()
        if self.party.may_leave or self.party.wake < self._waking:
            self._changed.set()
        if (now := self._clock.time()) >= self._told + self._every:
            self._told = now
            self._report(cast(StatusEvent, {"event": "status", **self._status()}))

    def _is_awaited(self, to: int, message: Message) -> bool:
        """Whether it announces a step that this neighbour cannot have from its author."""
        steps = (
            [key.author for key in message.keys if key.kind == ItemKind.STEP] if isinstance(message, Announce) else []
        )
        return any(author == self.me or not self.party.terms.hears(to, author) for author in steps)

    def _status(self) -> dict[str, Any]:
        """How far the party is; of a training also what it has sent, and for whom it waits."""
        status = self.party.status
        if "iteration" in status:
            waiting = [self.study.everybody[u] for u in self.party.waiting_for]
            status |= {"bytes": self.meter.bytes["out"], "waiting": waiting}
        return status

    async def _compute(self, work: Callable[[], Any]) -> None:
        """Something long, in a thread of its own: links live on meanwhile. It reads nothing that changes, and writes nothing."""
        try:
            result = await asyncio.to_thread(work)
        except Exception as problem:  # ends the peer
            self._failure = problem
            self._changed.set()
            return
        self._computing = None
        self._do(lambda: self.party.worked(result, self._clock.time()))

    async def _sending(self, peer: int, link: _Link) -> None:
        """Send what waits for a neighbour, several messages at once."""
        with contextlib.suppress(LinkLost, asyncio.CancelledError):
            while True:
                await link.something.wait()
                if link.urgent.is_set() and self.party.terms.deals:
                    await asyncio.sleep(SOON)
                if not link.urgent.is_set():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self._gather):
                            await link.urgent.wait()
                batch: list[Message] = []
                size = 0
                while link.waiting and (not batch or size + _size(link.waiting[0]) <= FRAME):
                    message = link.waiting.popleft()
                    if not self.party.is_superfluous(peer, message):
                        size += _size(message)
                        batch.append(message)
                if not link.waiting:
                    link.something.clear()
                    link.urgent.clear()
                if not batch:
                    continue
                frame = encode(batch)
                self.meter.frame("out", len(frame), batch)
                if self._trace is not None:
                    self._trace.moved("sent", self.study.everybody[peer], batch)
                if self._record is not None:
                    self._record.write(struct.pack("<II", peer, len(frame)) + frame)
                await self._transport.send(peer, frame)

    async def _flush(self) -> None:
        """Give what was said last a moment to leave."""
        for _ in range(100):
            if not any(link.waiting for link in self._links.values()):
                return
            for link in self._links.values():
                link.urgent.set()
            await self._clock.sleep(0.01)

    def _forget(self, peer: int) -> None:
        link = self._links.pop(peer, None)
        if link is not None and link.task is not None:
            link.task.cancel()

    # ── what came of it ───────────────────────────────────────────────────────────────────────────────────────────────

    def _conclude(self, outcome: SpreadResult | Ended) -> dict[str, Any]:
        """The outcome as plain values, kept in the folder; the loss recomputed from what was really contributed."""
        study, names = self.study, self.study.names
        told: dict[str, Any] = {"study": study.name, "hash": study.hash.hex(), "party": study.everybody[self.me]}
        if isinstance(outcome, Ended):
            told |= {
                "ok": False,
                "reason": outcome.reason,
                "code": outcome.reason.code,
                "contributed": outcome.contributed,
            }
            told |= {"withheld": True} if outcome.withheld else {}
        else:
            answer = study.answer(outcome.total, len(outcome.roster))
            told |= {
                "ok": True,
                "answer": answer,
                "attempt": outcome.attempt,
                "roster": [names[u] for u in outcome.roster],
                "total": outcome.total.tolist() if outcome.total.size <= 1000 else None,
                "digest": outcome.digest.hex(),
                "contributed": self._contributions(),
                "realised": self.party.realised(outcome.attempt),
            }
        if told["ok"] and not told["realised"]:  # an answer of an earlier run, which knew
            told["realised"] = (self.store.result(study.hash) or {}).get("realised", {})
        told["worse"] = self._corrected()
        told["spent"] = spent(study, self.store)
        told["sent"] = sorted([*self.party.sent])
        told["rejections"] = dict(self.party.rejections)
        told["evidence"] = [evidence.to_dict(study) for evidence in self.party.evidence.values()]
        told["blamed"] = self._blamed()
        if isinstance(outcome, SpreadResult):
            if self.party.terms.deals:
                told["signatures"] = self._signatures()
            kept = {key: value for key, value in told.items() if key != "sent"}
            self.store.set_result(study.hash, kept | {"resume": _packed(outcome, *self.party.holdings())})
        return told

    def _signed_before(self, answer: SpreadResult) -> list[Item]:
        """Others' signatures under the answer that an earlier run has kept, as they say them."""
        kept = (self.store.result(self.study.hash) or {}).get("signatures", {})
        return [
            Item(Key(ItemKind.ANSWER, answer.attempt, self.study.index(name)), answer.digest, bytes.fromhex(signature))
            for name, signature in kept.items()
        ]

    def _blamed(self) -> list[dict[str, Any]]:
        """Who did what no honest party does, short of saying two things."""
        return [
            {"party": self.study.everybody[author], "attempt": attempt, "code": said.code, "why": said}
            for (attempt, author), said in self.party.blamed.items()
        ]

    def _signatures(self) -> dict[str, str]:
        """Who signed the answer: those known from earlier runs, and those whose signature is here."""
        earlier = dict((self.store.result(self.study.hash) or {}).get("signatures", {}))
        return earlier | {self.study.names[u]: one.hex() for u, one in self.party.signatures.items()}

    def _collect(self) -> None:
        """Signatures under the answer come after it; they are written down when all are here, or when this party leaves."""
        known = self._outcome
        if known is None or not known["ok"]:
            return
        self._unwritten |= len(self.party.blamed) > len(known["blamed"])
        if len(self.party.signatures) <= self._signed:
            return
        self._signed = len(self.party.signatures)
        known["signatures"] |= {self.study.names[u]: one.hex() for u, one in self.party.signatures.items()}
        self._unwritten = True
        if self.party.all_signed:
            self._write_late()

    def _write_late(self) -> None:
        """Keep what came after the outcome, and tell it to who runs this party."""
        known = self._outcome
        if known is None or not self._unwritten:
            return
        self._unwritten = False
        known["blamed"] = self._blamed()
        late = {key: known[key] for key in ("signatures", "blamed")}
        if (kept := self.store.result(self.study.hash)) is not None:
            self.store.set_result(self.study.hash, kept | late)
        self._report(cast(SignedEvent, {"event": "signed", "signed": len(known["signatures"]), **late}))

    def _keep_evidence(self) -> None:
        """Tell the owner who signed two things, with the proof; it may come after the answer, and is kept beside it."""
        found = [evidence.to_dict(self.study) for evidence in self.party.evidence.values()]
        for one in found[self._accused :]:
            self._report(cast(ProofEvent, {"event": "evidence", "peer": one["party"], **one}))
        self._accused = len(found)
        if self._outcome is not None:
            self._outcome["evidence"] = found
            if (kept := self.store.result(self.study.hash)) is not None:
                self.store.set_result(self.study.hash, kept | {"evidence": found})

    def _contributions(self) -> int:
        return sum(entry.attempt < CORRECTS for entry in self.store.entries_of(self.study.hash))

    def _corrected(self) -> list[int]:
        """Enter what attempts really cost, where that is more than was promised; which ones that were, now or in earlier runs."""
        for attempt, (vote, _) in self.store.votes(self.study.hash).items():
            realised = self.party.realised(attempt)
            answered = isinstance(outcome := self.party.outcome, SpreadResult) and outcome.attempt == attempt
            if not realised and not answered:
                realised = {
                    "unheard": True
                }  # an earlier life contributed, and nobody has told this one what came of it
            if not realised or self.store.contribution(self.study.hash, attempt) is None:
                continue
            roster = vote_of(vote, self.party.terms.deals)[0]
            loss = self.study.running.recomputed(attempt, roster, self.me, realised)
            if loss is not None:
                self._desk.correct(attempt, roster, loss, realised)
            self.store.set_ended(self.study.hash, attempt)
        entered = self.store.entries_of(self.study.hash)
        # a training that broke off cost less than was entered
        worse = [entry.attempt for entry in entered if kind_of(entry.loss).broken_off(entry.loss, 0) is None]
        return sorted({attempt % CORRECTS for attempt in worse if attempt > CORRECTS})

    def _brief(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """The outcome as it is reported: a very long answer by the first of the roster only; all keep it in their folder."""
        first = not outcome["ok"] or outcome["roster"][0] == self.study.everybody[self.me]
        if first or self.study.task.dimension <= LONG:
            return outcome
        return outcome | {"answer": None}


def spent(study: Study, store: Store) -> dict[str, Any]:
    """What a study has really cost a party: every contribution it made, with the roster it was made to.

    epsilon  of this study alone, had its attempts been fixed beforehand
    ledger   of the party's whole ledger: `epsilon`, whatever was chosen, and `fixed`, if all had been fixed beforehand
    """
    entries = store.entries_of(study.hash)
    delta, unit = study.privacy.delta, str(study.task.unit)
    sizes = sorted({1, study.privacy.colluders + study.running.has_curator})  # a curator is one of those who look
    epsilons = {str(k): float(total(entries, k, unit).epsilon(delta)) for k in sizes}
    told = {"delta": delta, "epsilon": epsilons, "contributions": len(in_force(entries)), "unit": unit}
    told["ledger"] = spent_by_size(store.entries(), sizes, unit, delta)
    return told | ({"steps": steps_in(study, store)} if study.running.most_steps() else {})


def steps_in(study: Study, store: Store) -> int:
    """How many steps of a training a party has published, by its registers."""
    made = 0
    for attempt in range(1, study.privacy.attempts + 1):
        for number, body in store.risen(study.hash, attempt, STEP):
            made = max(made, int.from_bytes(body, "big") if number == SHUT else number)
    return made


def published_words(contributions: int, steps: int | None = None) -> str:
    """How often a party has published; in a training, by steps.

    >>> [published_words(n) for n in (0, 1, 3)], [published_words(1, k) for k in (0, 1, 1600)]
    (['nothing', 'once', '3 times'], ['no step so far', '1 step', '1,600 steps'])
    """
    if not contributions:
        return "nothing"
    if steps is not None:
        return "no step so far" if not steps else "1 step" if steps == 1 else f"{steps:,} steps"
    return "once" if contributions == 1 else f"{contributions} times"


def _packed(answer: SpreadResult, signed: list[Item], addressed: dict[int, list[Item]]) -> dict[str, Any]:
    """What a party that holds the answer needs to serve the others after a restart, as plain values."""
    if sum(len(item.body) for item in signed) > KEPT:
        signed = [item for item in signed if len(item.body) <= KEPT // 1000]
    # an item of one key may have another body for every receiver
    single = {(item.key, item.body): item for items in addressed.values() for item in items}
    if sum(len(item.body) for item in single.values()) > KEPT:
        single, addressed = {}, {}
    place = {which: number for number, which in enumerate(single)}
    return {
        "attempt": answer.attempt,
        "roster": answer.roster,
        "total": base64.b64encode(answer.total.astype("<f8").tobytes()).decode(),
        "digest": answer.digest.hex(),
        "signed": base64.b64encode(encode(signed)).decode(),
        "single": base64.b64encode(encode(single.values())).decode(),
        "for": {str(peer): [place[item.key, item.body] for item in items] for peer, items in addressed.items()},
    }


def _unpacked(kept: dict[str, Any]) -> tuple[SpreadResult, list[Item], dict[int, list[Item]]]:
    total = np.frombuffer(base64.b64decode(kept["total"]), dtype="<f8").astype(np.float64)
    answer = SpreadResult(kept["attempt"], tuple(kept["roster"]), total, bytes.fromhex(kept["digest"]))
    signed, single = (decode(base64.b64decode(kept[key])) for key in ("signed", "single"))
    items = [message for message in signed if isinstance(message, Item)]
    addressed = {int(peer): [single[place] for place in places] for peer, places in kept["for"].items()}
    return answer, items, addressed


def _private(path: Path) -> Any:
    """A file to append to, readable by its owner only: states of rings and gossip are for neighbours' eyes."""
    try:
        return opened_privately(path)
    except OSError as error:
        raise NetdpError(
            f"{path} cannot be opened to record frames: {error.strerror or error}; give another --record FILE"
        ) from None


def _is_urgent(message: Message, few: bool = True) -> bool:
    """Whether somebody waits for just this message."""
    if isinstance(message, Item):
        if message.key.kind >= ItemKind.KEYS:
            return few
        return message.key.kind not in (ItemKind.VOTE, ItemKind.CONTRIBUTION, ItemKind.FALLBACK)
    return isinstance(message, Hello | Pull)


def _size(message: Message) -> int:
    if isinstance(message, Item):
        return len(message.body) + 100
    if isinstance(message, Hello):
        return 100 + 10 * len(message.have) + 120 * len(message.proofs)
    return 20 + 10 * len(message.keys) if isinstance(message, Announce | Pull) else 60


def largest_frame(study: Study) -> int:
    """No honest frame of a study has more bytes: a full one, its longest item, and a Hello that lists all there can be."""
    attempts = study.privacy.attempts + SPARE
    keys = 4 * study.n * attempts + study.running.most_rounds()
    proofs = Terms(study, 0).proofs
    if study.running.threshold is not None:
        keys += study.n * proofs
    return FRAME + max(study.running.longest().values()) + 24 * keys + 128 * proofs + 1000


def prepare(
    home: Path,
    study_path: Path,
    data: Path | None,
    *,
    listen: str | None = None,
    report: Report | None = None,
    record: Path | None = None,
    trace: Trace | None = None,
) -> Peer:
    """A peer that may take part: everything that can be checked before the first link is. Refuses with the reason."""
    from netdp.peers.identity import alone, check_memory, mark_used
    from netdp.peers.ledger.continuity import check_may_run
    from netdp.peers.recovery.seal import check_seals
    from netdp.peers.study.planning import check_paid, unheld_words

    from .ledger.policy import OwnerPolicy
    from .study import signatures
    from .transport.grpc import GrpcTransport

    identity = Identity.load(home)
    study = Study.read(study_path)
    signatures.verify_all(study, signatures.read_all(study_path))
    me = study.index(identity.card.name)
    if trace is not None:
        trace.begin(study, identity.card.name)
    study.check_promise()
    rows, policy = np.zeros((0, study.task.dimension)), None
    if me < study.n:
        if data is None:
            raise InvalidValue(f"{identity.card.name} is a party of {study.name!r} and needs its data; give the file")
        rows, policy = study.task.rows(data), OwnerPolicy.read(home / "policy.toml")
    elif data is not None:
        raise InvalidValue(
            f"{identity.card.name} is the curator of {study.name!r} and has no data in it; leave {data} out"
        )
    check_memory(home)
    store = Store.open(home / "peer.db", sign=identity.sign)
    try:
        mark_used(home)
        if (held := alone(identity)) is not None:
            store.hold(held)
        store.verify(identity.card)  # what was spent before is added up from it
        check_seals(study, store.entries())
        check_may_run(store, study, identity.card, home)
        check_paid(study, store.entries_of)
        if policy is not None:
            policy.check(study, store, me)
        cards = study.cards
        limits = Limits(frame=largest_frame(study))

        def transport(receiver: Receiver) -> Transport:
            return GrpcTransport(
                identity, me, cards, study.neighbours(me), [study.address(u) for u in range(len(study.everybody))], receiver,
                limits, listen=listen,
                refused=lambda reason: (report or (lambda event: None))({"event": "refused", "reason": reason}),
            )  # fmt: skip

        peer = Peer(identity, study, store, rows, transport, report=report, record=record, trace=trace)
        if policy is not None and (unheld := unheld_words(study, store.entries_of)) is not None:
            peer.party.notes.append(unheld)
        return peer
    except BaseException:
        store.close()
        raise


def run_peer(peer: Peer, look: Callable[[], None] | None = None) -> dict[str, Any]:
    """Run a peer to its end in this thread, and close its folder; `look` is called every second, and when it has an outcome.

    A look that fails changes nothing: the folder may be what failed, and then the peer says so itself.
    """

    def looked() -> None:
        if look is not None:
            with contextlib.suppress(NetdpError, OSError):
                look()

    async def looking() -> None:
        while True:
            looked()
            await asyncio.sleep(1.0)

    async def life() -> dict[str, Any]:
        beside = asyncio.ensure_future(looking())
        try:
            told = await peer.run()
        finally:
            beside.cancel()
        looked()
        return told

    try:
        return asyncio.run(life())
    finally:
        peer.store.close()


__all__ = ["Peer", "Stopped", "prepare", "run_peer"]
