"""A party of a study, without input or output: what it says next, given what it has heard and what the clock shows.

It knows nothing of sockets, files or processes. `netdp.peers.peer` feeds it with what arrives and sends what it says; the
tests feed it in any order, lose links, stop it anywhere and start it again.

**Who takes part.** An attempt has a *roster*, sealed by signed votes of all its members. In attempt 1 everybody votes for
everybody. If an attempt comes to nothing in time, everybody votes in the next one for those who showed up in it: those
who contributed if its roster was sealed, else those who voted. No leader is needed: votes are passed on, so all who are
there see the same ones after a while; if two disagree, one more attempt follows.

**What an honest party never does**, whatever it hears (the guarantee rests on these lines, and on the `Desk` that makes
its votes and contributions durable before anybody sees them):

- it votes once in an attempt, for a roster that has at least `fewest` members and itself;
- it contributes only to a sealed roster that it voted for, only in the last attempt in which it voted, once, and at most
  `attempts` times in all;
- it contributes, and takes a step of training, only after it has asked its neighbours what they hold in its name, and takes
  that for its own. They prove it by this party's own signature; who has none is not believed, and named. So no lie makes it
  silent, and no patience is needed to find out: docs/proofs/peers.md#held-in-our-name. While a contribution that is proved has
  not come back, to whatever attempt, it contributes to none; if the time is over then, it votes no further and ends. (For a
  contribution, a neighbour that cannot be reached for `grace` seconds is not waited for. Then a folder that was put back from
  a backup could draw anew; for the same data that gives the same bytes. For a step of training all neighbours are waited for.)

**Nothing is lost.** Items are passed on as long as somebody lacks them; on every new link both ends say what they hold
(`Hello`), so a link may break and a party may come back at any time. A party leaves when all its neighbours hold the
answer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from netdp.errors import InvalidValue, NetdpError
from netdp.peers.exchange import RECOVERY, Evidence, Reason, Rejected
from netdp.peers.messages import KEY_SIZE, agreed, ignores_remarks, refusal, stated, vote_of
from netdp.peers.spread import Moment, Spread, SpreadResult
from netdp.peers.terms import AHEAD, SPARE, Ended, Roster, Terms

from .events import Sentence, Statement, statement_of
from .exchange import PUBLISHED, Exchange, Neighbour
from .messages import Announce, Done, Held, Hello, Item, ItemKind, Key, Message, Pull, Remark, roster_of

if TYPE_CHECKING:
    from netdp.peers.desk import Desk
    from netdp.peers.recovery.opening import Opening

COMPLAINTS = 5
"""How many faults of one link are noted; more are only counted."""
MOMENT = 1.0
"""Seconds that a party which could leave waits, at most, for others' signatures under the answer."""
SECONDS = 4
"""How many contributions that somebody signed beside its first are kept, until it is known which one was sealed."""
DOUBTS = 4
"""How often neighbours are asked whether they hold something else under a key."""
BEARABLE = 20_000
"""How many useless messages of one neighbour are borne within the study's patience; then it is not read for so long."""


class Party:
    """One party. Feed it `linked`, `lost`, `received` and `tick`; then take what it has to say with `outbox()`."""

    def __init__(self, me: int, terms: Terms, desk: Desk, now: float) -> None:
        self.me, self.terms, self._desk, self._now, self._born = me, terms, desk, now, now
        self.outcome: SpreadResult | Ended | None = None
        self.notes: list[Statement] = []
        self.refusals: list[tuple[int, Statement]] = []
        """Links to be closed, and why."""
        self.heard = self.taken = 0
        """Messages that arrived, and those of them that were taken; a frame that cannot be read counts as one message."""
        self.rejections: Counter[str] = Counter()
        """The others, by `netdp.peers.exchange.Reason`: heard = taken + all of these."""
        self.evidence: dict[Key, Evidence] = {}
        """Under which keys somebody signed two different things, and both of them."""
        self._second: dict[Key, list[Item]] = defaultdict(list)  # besides the first, while a sum may need it
        self._openings: dict[int, Opening] = {}  # of attempts in which shares are dealt
        self._named: dict[int, dict[int, bytes]] = defaultdict(dict)  # which dealings a vote names
        self._mute: set[int] = set()  # attempts of which others hold something of ours that this folder does not know
        self._free: set[int] = set()  # attempts of which nothing is opened
        self._strangers: dict[int, set[int]] = {}  # who began an attempt with others than most
        self.accused: list[tuple[int, Statement]] = []
        """Neighbours that lied about what they hold in our name, and what they said; each once."""
        self.blamed: dict[tuple[int, int], Statement] = {}
        """Who did what no honest party does, short of saying two things: (attempt, party) and what it did."""
        self._liars: set[int] = set()
        self.unbearable: list[tuple[int, Statement]] = []
        """Neighbours that are not to be read for the study's patience, and why."""
        self._useless: Counter[int] = Counter()
        self._since: dict[int, float] = {}
        self._exchange = Exchange(
            self._is_passed_on, terms.patience / 4, self._keeps_last_token, terms.hears, me, patient=terms.deals
        )
        self._exchange.now = now
        self._greeted: set[int] = set()
        self._done: set[int] = set()  # who holds the answer, also if it has left since
        self._held = self._exchange.held
        self._tokens: dict[int, Key] = {}
        self._votes: dict[int, dict[int, Roster]] = defaultdict(dict)
        self._cast: dict[int, dict[bytes, set[int]]] = defaultdict(lambda: defaultdict(set))
        """Of an attempt, who voted for what, also who voted for several things."""
        self._ends: dict[tuple[ItemKind, int], dict[int, Item]] = defaultdict(dict)
        """Reveals and signed answers, by kind and attempt: whose they are, and what."""
        self._sealed: dict[int, Roster] = {}
        self._spreads: dict[int, Spread] = {}
        self._mine: dict[int, Item] = {}
        self._fallbacks: set[int] = set()
        self._listening = False
        self._claimed: set[Key] = set()
        self._completed: Counter[int] = Counter()  # of each attempt, how many iterations are over
        self._steps: Counter[int] = Counter()  # of each attempt, the last of our own steps that anybody says to hold
        self._working: Spread | None = None
        self.attempt = 0
        self.deadline = now + terms.gather
        self._leave_by = self._stay_until = self._stay_for_signatures = float("inf")
        self._returned = False  # whether this folder may be an old copy
        for item in sorted(desk.own(), key=lambda item: item.key):
            self._returned = True
            self._keep(item)
            if item.key.kind == ItemKind.STEP:  # it was made when the one before was over
                self._completed[item.key.attempt] = max(self._completed[item.key.attempt], item.key.index - 1)
        if self.attempt == 0 and me < terms.n:
            self._begin(1, tuple(range(terms.n)))
        self._advance()

    # ── what happens to it ────────────────────────────────────────────────────────────────────────────────────────────

    def _at(self, now: float) -> None:
        self._now = self._exchange.now = now

    def linked(self, peer: int, now: float) -> None:
        """A link to this neighbour works."""
        self._at(now)
        self._exchange.link(peer)
        self._done.discard(peer)  # it says so again, if it still is
        if self._serves:  # somebody came back and needs us, but it cannot keep us for ever
            self._leave_by = min(max(self._leave_by, now + self.terms.patience), self._stay_until)
        have, proofs = self._exchange.have_for(peer), self._exchange.proofs_for(peer)
        self._exchange.tell(peer, Hello(self.terms.study, self.terms.version, have, *self.terms.formats, proofs))

    def lost(self, peer: int, now: float) -> None:
        """The link to this neighbour is gone; what was on its way may or may not have arrived."""
        self._at(now)
        self._exchange.unlink(peer, now)

    def received(self, peer: int, messages: list[Message], now: float, *, more: bool = False) -> None:
        """Something arrived from a neighbour; if more has arrived, `advance` is to be called after it."""
        self._at(now)
        # What a neighbour holds in our name comes first: we must not contribute before we have seen it.
        for message in sorted(messages, key=self._later):
            self.heard += 1
            link = self._exchange.links.get(peer)
            try:
                if link is None:
                    raise Rejected(Reason.LINK, Sentence.OLD_LINK())
                if not self._hear(peer, link, message):
                    self._burden(peer, 1 + (len(message.keys) // 64 if isinstance(message, Announce | Pull) else 0))
                self.taken += 1
            except InvalidValue as problem:
                self._reject(peer, problem)
        if peer in self._exchange.links and not more:
            self._advance()

    def advance(self, now: float) -> None:
        """Do what follows from all that was received."""
        self._at(now)
        self._advance()

    def unreadable(self, peer: int, size: int, problem: InvalidValue, now: float) -> None:
        """Something arrived from a neighbour that is no message."""
        self._at(now)
        self.heard += 1
        self._reject(peer, Rejected(Reason.FRAME, statement_of(problem)), 1 + size // 10_000)

    def _reject(self, peer: int, problem: InvalidValue, weight: int = 1) -> None:
        reason = problem.reason if isinstance(problem, Rejected) else Reason.BODY
        self.rejections[reason] += 1
        link = self._exchange.links.get(peer)
        if link is not None:
            link.complaints += 1
            if link.complaints <= COMPLAINTS:
                self.notes.append(Sentence.IGNORED(peer=self.terms.name(peer), problem=statement_of(problem)))
        self._burden(peer, weight)

    def _burden(self, peer: int, weight: int) -> None:
        """A neighbour said something useless. It may do so at a rate; honest ones repeat each item a few times at most."""
        if self._now > self._since.get(peer, float("-inf")) + self.terms.patience:
            self._since[peer], self._useless[peer] = self._now, 0
        self._useless[peer] += weight
        honest = 8 * (self.terms.n + self.terms.others) * (self.terms.attempts + SPARE)
        if self._useless[peer] > BEARABLE + honest and all(peer != other for other, _ in self.unbearable):
            self._useless[peer] = 0
            counted = ", ".join(f"{reason}: {count}" for reason, count in sorted(self.rejections.items()))
            self.unbearable.append((peer, Sentence.FLOOD(seconds=self.terms.patience, counted=counted)))

    def _later(self, message: Message) -> int:
        if isinstance(message, Hello):
            return 0
        return 1 if isinstance(message, Item) and message.key.author == self.me else 2

    def tick(self, now: float) -> None:
        """The clock shows `now`."""
        self._at(now)
        self._exchange.ask_again(now)
        self._advance()
        if self.outcome is None and self._working is not None:  # others may well be as slow
            self.deadline = max(self.deadline, now + self.terms.patience)
        if self.outcome is None and now >= self.deadline:
            self._give_up()
            self._advance()

    def outbox(self) -> list[tuple[int, Message]]:
        """What to send to whom, in this order; forgotten here once it is taken."""
        return self._exchange.outbox()

    def is_superfluous(self, peer: int, message: Message) -> bool:
        """Whether something that was to be sent to a neighbour need not be sent any more."""
        return self._exchange.is_superfluous(peer, message)

    def work(self) -> Callable[[], Any] | None:
        """Something long that is to be computed, if there is: once, in any thread; then `worked` wants what it gave."""
        if self._working is not None or self.outcome is not None:
            return None
        self._working = next((spread for spread in self._spreads.values() if spread.work is not None), None)
        return None if self._working is None else self._working.work

    def worked(self, result: Any, now: float) -> None:
        """What `work` gave is computed."""
        self._at(now)
        spread, self._working = self._working, None
        if spread is not None and self.outcome is None:
            spread.worked(result)
            self._advance()

    @property
    def sent(self) -> set[tuple[int, int, int]]:
        """Who got something in which round: (attempt, round, to)."""
        return self._exchange.sent

    def holdings(self) -> tuple[list[Item], dict[int, list[Item]]]:
        """What others may still need of a party that holds the answer: signed items, and what is for single neighbours."""
        signed = [item for key, item in self._held.items() if key.kind.is_signed]
        return signed, {peer: list(items.values()) for peer, items in self._exchange.addressed.items()}

    def resume(self, answer: SpreadResult, signed: list[Item], addressed: Mapping[int, list[Item]]) -> None:
        """Go on as a party that held this answer before it was stopped: others may wait for what it alone had."""
        for item in signed:
            if item.key not in self._held:
                self._keep(item)
        for peer, items in addressed.items():
            self._exchange.addressed[peer] = {item.key: item for item in items}
        self._finish(answer)
        self._advance()

    @property
    def wake(self) -> float:
        """When to tick at the latest."""
        if self.outcome is not None:
            soon = self._stay_for_signatures if self._waits_for_signatures else float("inf")
            return min(self._leave_by, self._exchange.wake, soon)
        waiting = self._born + self.terms.grace
        spreads = min((spread.wake for spread in self._spreads.values()), default=float("inf"))
        soonest = min(self.deadline, self._exchange.wake, spreads)
        return min(soonest, waiting) if self._now < waiting else soonest

    @property
    def may_leave(self) -> bool:
        """Whether nobody needs this party any more: all neighbours hold the answer, or patience is over."""
        if self.outcome is None:
            return False
        if not self._serves or self._now >= self._leave_by:
            return True
        return self._done.issuperset(self.terms.neighbours) and not self._waits_for_signatures

    @property
    def _serves(self) -> bool:
        """Whether the sum is here, told or withheld: then neighbours may still need something."""
        return isinstance(self.outcome, SpreadResult) or (isinstance(self.outcome, Ended) and self.outcome.withheld > 0)

    def _done_message(self) -> Done | None:
        """What says that this party needs nothing more; a sum that is withheld has no digest."""
        if isinstance(self.outcome, SpreadResult):
            return Done(self.outcome.attempt, self.outcome.digest)
        return Done(self.outcome.withheld, b"") if isinstance(self.outcome, Ended) and self.outcome.withheld else None

    @property
    def signatures(self) -> dict[int, bytes]:
        """Who has signed the answer that is here, where answers are signed: a party's number and its signature."""
        found = self.outcome
        if not isinstance(found, SpreadResult) or not self.terms.deals:
            return {}
        said = self._ends[ItemKind.ANSWER, found.attempt]
        return {u: said[u].signature for u in sorted(said) if said[u].body == found.digest}

    @property
    def all_signed(self) -> bool:
        """Whether all members of the attempt that have helped to open the sum have signed what came of it."""
        found = self.outcome
        assert isinstance(found, SpreadResult)
        there = self._ends[ItemKind.REVEAL, found.attempt].keys()
        return there - {author for _, author in self.blamed} <= self.signatures.keys()

    @property
    def _waits_for_signatures(self) -> bool:
        """For a moment, and only for those who were there when the sum was opened; nobody waits for who was gone before."""
        if not self.terms.deals or not isinstance(self.outcome, SpreadResult) or self._now >= self._stay_for_signatures:
            return False
        return not self.all_signed

    @property
    def steps_made(self) -> int | None:
        """How many steps of a training this party has published; None where there are none."""
        if not self.terms.steps:
            return None
        own = (key.index for key in self._held if key.kind == ItemKind.STEP and key.author == self.me)
        return max(own, default=0)

    def realised(self, attempt: int) -> dict[str, Any]:
        """What really happened in an attempt, as plain values."""
        spread = self._spreads.get(attempt)
        return {} if spread is None else spread.realised

    @property
    def waiting_for(self) -> list[int]:
        """Who is needed for the next step and has not done its part, as far as this party knows."""
        if self.outcome is not None:
            return [u for u in self.terms.neighbours if u not in self._done]
        votes, spread = self._votes[self.attempt], self._spreads.get(self.attempt)
        if spread is None and (opening := self._openings.get(self.attempt)) is not None:
            return [u for u in opening.missing() if u != self.me]
        if spread is None:
            wanted = votes.get(self.me, tuple(range(self.terms.n)))
            return [u for u in wanted if votes.get(u) != wanted]
        if spread.missing:
            return [u for u in spread.missing if u != self.me]
        said = {key.author for key in self._held if key.kind == ItemKind.CONTRIBUTION and key.attempt == self.attempt}
        if spread.needs_all and (missing := [u for u in spread.roster if u not in said]):
            return missing
        return [u for u in self.terms.neighbours if not self._exchange.is_greeted(u)]

    @property
    def status(self) -> dict[str, Any]:
        """How far it is: for progress shown to people."""
        spread = self._spreads.get(self.attempt)
        return ({} if spread is None else spread.progress) | {
            "attempt": self.attempt,
            "links": sum(link.greeted for link in self._exchange.links.values()),
            "votes": len(self._votes[self.attempt]),
            "contributions": sum(
                key.kind == ItemKind.CONTRIBUTION and key.attempt == self.attempt for key in self._held
            ),
        }

    # ── hearing ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _hear(self, peer: int, link: Neighbour, message: Message) -> bool:
        """Do what a message asks; whether it was of any use."""
        if isinstance(message, Hello):
            if link.greeted:
                raise Rejected(Reason.GREETING, Sentence.SECOND_HELLO())
            self._greet(peer, message)
            return True
        if not link.greeted:
            raise Rejected(Reason.GREETING, Sentence.BEFORE_HELLO(message=type(message).__name__))
        if isinstance(message, Remark):
            if not ignores_remarks(link.format):
                raise Rejected(Reason.FRAME, Sentence.UNKNOWN_KIND(number=message.number))
            return False
        if isinstance(message, Item):
            if message.key.kind.is_signed and self._plausible(message.key):
                link.knows.add(message.key)
            if self._is_over(message.key):  # it came too late to be of use, as of everybody's but one it does
                return False
            return self._take(peer, message)
        if isinstance(message, Announce):
            known = len(link.knows)
            plausible = (key for key in message.keys if key.kind.is_signed and self._plausible(key))
            self._exchange.announced(peer, plausible, self._now)
            return len(link.knows) > known
        if isinstance(message, Pull):
            asked = len(link.pulled)
            self._exchange.pulled(peer, message.keys)
            return len(link.pulled) > asked
        mine, new = self.outcome, peer not in self._done
        self._done.add(peer)
        if new and isinstance(mine, SpreadResult) and message.attempt == mine.attempt and message.digest != mine.digest:
            self.notes.append(Sentence.OTHER_ANSWER(peer=self.terms.name(peer), attempt=mine.attempt))
        return new

    def _greet(self, peer: int, hello: Hello) -> None:
        problem = None
        theirs = stated(hello.format, hello.newest)
        format = agreed(self.terms.formats, theirs)
        if format is None:
            problem = refusal(self.terms.formats, theirs, hello.version)
        elif hello.study != self.terms.study:
            problem = Sentence.OTHER_STUDY(theirs=hello.study.hex()[:16], ours=self.terms.study.hex()[:16])
        if problem is not None:
            self.refusals.append((peer, problem))
            self._exchange.unlink(peer, self._now)
            raise Rejected(Reason.STUDY, problem)
        knows = {key for key in hello.have if self._plausible(key) and (key.kind.is_signed or key.author == self.me)}
        self._believe(peer, hello)
        self._greeted.add(peer)
        self._exchange.links[peer].format = format or 0
        self._exchange.greet(peer, knows)
        if (done := self._done_message()) is not None:
            self._exchange.tell(peer, done)

    def _believe(self, peer: int, hello: Hello) -> None:
        """What a neighbour holds in our name, of which it shows our own signature, is not said before we have seen it.

        Whether it can deliver soon does not matter: the signature alone proves that this folder is older than what was sent.
        """
        most = self.terms.proofs  # an honest neighbour has no more
        proved = {held.key: held for held in hello.proofs[:most] if self._is_published(held.key)}
        for key, shown in proved.items():
            own = self._held.get(key)
            if own is not None and Held.of(own).digest == shown.digest:
                continue
            if not self.terms.proves(shown):
                self._accuse(peer, key)
                continue
            if own is not None:
                raise self._two_of_ours(peer, key)
            if key.kind == ItemKind.CONTRIBUTION:
                if key not in self._claimed:
                    self.notes.append(Sentence.CONTRIBUTION_UNKNOWN(peer=self.terms.name(peer), attempt=key.attempt))
                self._claimed.add(key)
                if self.terms.deals:
                    self._be_mute(peer, key)
            elif key.kind in RECOVERY:
                self._be_mute(peer, key)
            elif key.index > self._steps[key.attempt]:
                if key.index > self._completed[key.attempt] + 1:
                    self.notes.append(Sentence.STEP_UNKNOWN(peer=self.terms.name(peer), index=key.index))
                self._steps[key.attempt] = key.index
        for key in hello.have:
            if key not in proved and key not in self._held and self._is_published(key) and not self._is_over(key):
                self._accuse(peer, key)

    def _be_mute(self, peer: int, key: Key) -> None:
        """This folder is older than what was sent from it: in this attempt it says nothing more, and reveals nothing."""
        if key.attempt not in self._mute:
            self._mute.add(key.attempt)
            self._returned = True
            kind = key.kind.name.lower()
            self.notes.append(Sentence.OLDER_IN_ATTEMPT(peer=self.terms.name(peer), kind=kind, attempt=key.attempt))

    def _is_published(self, key: Key) -> bool:
        """Whether it names something that this party publishes once, and that follows from its data."""
        return key.kind in PUBLISHED and key.author == self.me and (self._is_ours(key) or self._plausible(key))

    def _accuse(self, peer: int, key: Key) -> None:
        if peer not in self._liars:
            self._liars.add(peer)
            name, kind = self.terms.name(peer), key.kind.name.lower()
            said = Sentence.UNPROVED(name=name, kind=kind, index=key.index, attempt=key.attempt)
            self.accused.append((peer, said))

    def _plausible(self, key: Key) -> bool:
        """Whether an honest party could make such an item: there are finitely many, so nobody can fill our memory."""
        last = 0 if key.kind.is_signed else self.terms.rounds
        if key.kind == ItemKind.TOTAL:  # one author may release several tokens
            last = self.terms.releases - 1
        if key.kind in (ItemKind.PREPARE, ItemKind.COMMIT):
            last = self.terms.ballots
        if key.kind in (ItemKind.COMPLAINT, ItemKind.DEFENCE):
            last = self.terms.n - 1
        if key.kind == ItemKind.PROOF:  # one of each kind of item is enough
            last = max(ItemKind)
        if key.kind == ItemKind.STEP:
            over = self._completed[key.attempt]
            return self._is_ours(key) and over <= key.index and (key.author == self.me or key.index <= over + AHEAD)
        authors = (
            self.terms.n
            if key.kind in (ItemKind.VOTE, ItemKind.CONTRIBUTION) or key.kind >= ItemKind.KEYS
            else self.terms.n + self.terms.others
        )
        return key.author < authors and 1 <= key.attempt <= self.terms.attempts + SPARE and 0 <= key.index <= last

    def _is_ours(self, key: Key) -> bool:
        """Whether a step belongs to an iteration of the study, and to a party."""
        return (
            1 <= key.index <= self.terms.steps
            and key.author < self.terms.n
            and 1 <= key.attempt <= self.terms.attempts + SPARE
        )

    def _is_over(self, key: Key) -> bool:
        """Whether it is somebody's step of an iteration that nobody needs any more."""
        return key.kind == ItemKind.STEP and self._is_ours(key) and key.index < self._completed[key.attempt]

    def _take(self, peer: int, item: Item) -> bool:
        """Check an item, keep it, and pass it on; whether it was new."""
        key = item.key
        held = self._held.get(key)
        if held is not None:
            if held.body != item.body and key.kind != ItemKind.PROOF:
                self._take_second(peer, held, item)
            elif key.kind.is_signed:
                self._exchange.links[peer].same.add(key)
            return False
        too_long = len(item.body) > self.terms.longest.get(key.kind, -1)
        if not self._plausible(key) or too_long or not self.terms.fits(item):
            reason = Reason.BODY if self._plausible(key) else Reason.KEY
            raise Rejected(reason, Sentence.IMPLAUSIBLE(what=self._called(key), size=len(item.body)))
        if key.kind == ItemKind.PROOF:
            self._believe_proof(item)
        elif key.kind.is_signed:
            if not self.terms.verify(item):
                raise Rejected(Reason.SIGNATURE, Sentence.NOT_SIGNED(what=self._called(key)))
        elif key.author != peer or peer not in self.terms.neighbours:
            raise Rejected(Reason.LINK, Sentence.WRONG_LINK(what=self._called(key), peer=self.terms.name(peer)))
        elif not self._is_due(key):
            raise Rejected(Reason.EARLY, Sentence.NOT_DUE(what=self._called(key)))
        if key.kind == ItemKind.VOTE:
            self._check_roster(key.author, vote_of(item.body, self.terms.deals)[0])
        if key.author == self.me and self.terms.deals and key.kind != ItemKind.PROOF:
            self._be_mute(peer, key)
        if key.author == self.me and key.kind in (ItemKind.VOTE, ItemKind.CONTRIBUTION, ItemKind.STEP):
            self._returned = True
            self._desk.adopt(item, self._votes[key.attempt].get(self.me))
            self.notes.append(
                Sentence.TAKEN_BACK(peer=self.terms.name(peer), kind=key.kind.name.lower(), attempt=key.attempt)
            )
        self._exchange.arrived(key)
        self._keep(passed := item.passed_on())
        self._exchange.pass_on(passed)
        if key.kind == ItemKind.ANSWER:
            self._compare_answers()
        return True

    def _believe_proof(self, item: Item) -> None:
        """Keep a proof of equivocation that somebody else found; refuse what proves nothing."""
        found = Evidence.of(item)
        if found is None or not all(self.terms.proves(one) for one in (found.first, found.second)):  # type: ignore[arg-type]
            raise Rejected(Reason.SIGNATURE, Sentence.NOT_SIGNED(what=self._called(item.key)))
        self._keep_evidence(found)

    def _keep_evidence(self, found: Evidence) -> None:
        key = found.first.key
        if key not in self.evidence and not self._is_known_cheat(key):
            self.evidence[key] = found
            what = f"a second {key.kind.name.lower()} of {self.terms.name(key.author)} for attempt {key.attempt}"
            self.notes.append(Sentence.PROVED_CHEAT(what=what))
            if self.terms.deals:
                proof = found.item()
                if proof.key not in self._held:
                    self._keep(proof)
                    self._exchange.pass_on(proof)

    def _take_second(self, peer: int, held: Item, item: Item) -> None:
        """Something else under a key that is taken; what is signed twice is kept, because it proves who cheats."""
        key = item.key
        what = f"a second {key.kind.name.lower()} of {self.terms.name(key.author)} for attempt {key.attempt}"
        if key.kind.is_signed:
            if not self.terms.verify(item):
                raise Rejected(Reason.SIGNATURE, Sentence.SECOND_UNSIGNED(what=what))
            if key.author == self.me:
                raise self._two_of_ours(peer, key)
            self._keep_evidence(Evidence(held, item))
            if self.terms.deals and self._is_needed(item):
                self._second[key].append(item)
                if (
                    key.kind == ItemKind.VOTE
                ):  # who says two things says them all: what the others voted for is sealed, or not
                    self._cast[key.attempt][item.body].add(key.author)
        elif key.author != peer:
            raise Rejected(Reason.LINK, Sentence.WRONG_LINK(what=self._called(key), peer=self.terms.name(peer)))
        raise Rejected(Reason.SECOND, Sentence.SECOND(what=what))

    def _is_needed(self, item: Item) -> bool:
        """Whether the sum of an attempt may need this, though it is not what came first: at most a few of a key are kept."""
        key, known = item.key, self._second[item.key]
        if key.kind not in (ItemKind.CONTRIBUTION, ItemKind.REVEAL, ItemKind.VOTE):
            return False
        if any(one.body == item.body for one in known) or len(item.body) > self.terms.longest.get(key.kind, -1):
            return False
        if key.kind == ItemKind.VOTE:
            self._check_roster(key.author, vote_of(item.body, self.terms.deals)[0])
            mine = self._held.get(key._replace(author=self.me))
            return len(known) < SECONDS or (mine is not None and mine.body == item.body)
        spread = self._spreads.get(key.attempt)
        return self.terms.fits(item) and (len(known) < SECONDS or (spread is not None and spread.needs(item)))

    def _is_known_cheat(self, key: Key) -> bool:
        """Whether it said two things in some iteration already: one proof is enough, steps may be many and long."""
        return key.kind == ItemKind.STEP and any(
            one.kind == ItemKind.STEP and one.author == key.author for one in self.evidence
        )

    def _is_due(self, key: Key) -> bool:
        """Whether a state or token belongs to a sealed roster; who sends one has sent us all votes of it before."""
        self._seal()
        spread = self._spreads.get(key.attempt)
        return spread is not None and (spread.rounds is None or key.index <= spread.rounds)

    def _check_roster(self, author: int, roster: Roster) -> None:
        name = self.terms.name(author)
        if author not in roster or roster[-1] >= self.terms.n:
            raise Rejected(Reason.ROSTER, Sentence.STRANGE_ROSTER(author=name, roster=self._listed(roster)))
        if len(roster) < self.terms.fewest:
            few = Sentence.SMALL_ROSTER(author=name, size=len(roster), fewest=self.terms.fewest)
            raise Rejected(Reason.ROSTER, few)

    def _keep(self, item: Item) -> None:
        key = item.key
        if key.kind == ItemKind.TOKEN and self._keeps_last_token(key.attempt):
            old = self._tokens.get(key.author)
            if old is not None and old.index > key.index:
                return
            if old is not None:
                self._held.pop(old, None)
            self._tokens[key.author] = key
        self._held.keep(item)
        if key.kind in (ItemKind.REVEAL, ItemKind.ANSWER):
            self._ends[key.kind, key.attempt][key.author] = item
        if key.kind == ItemKind.KEYS and key.author == self.me and key.attempt not in self._openings:
            self._open(key.attempt, roster_of(item.body[KEY_SIZE:]))
        if key.kind == ItemKind.VOTE:
            roster, self._named[key.attempt][key.author] = vote_of(item.body, self.terms.deals)
            self._votes[key.attempt][key.author] = roster
            self._cast[key.attempt][item.body].add(key.author)
        if key.kind in (ItemKind.VOTE, ItemKind.KEYS):
            if key.author == self.me:
                self.attempt = max(self.attempt, key.attempt)
            elif 1 <= self.attempt == key.attempt - 1 and key.author in self._sealed.get(self.attempt, (key.author,)):
                # somebody has given up what we still wait for
                self.deadline = min(self.deadline, self._now + self.terms.patience / 4)
        elif key.kind == ItemKind.CONTRIBUTION and key.author == self.me:
            self._mine[key.attempt] = item
        elif key.kind == ItemKind.FALLBACK:
            self._fallbacks.add(key.attempt)
            unsaid = Key(ItemKind.FALLBACK, key.attempt, self.me) not in self._held  # else we wait for who else is here
            if unsaid and key.attempt == self.attempt and self._may_try_again(self._spreads.get(key.attempt)):
                self.deadline = min(self.deadline, self._now)  # somebody has given it up: say that we are here

    def _keeps_last_token(self, attempt: int) -> bool:
        """Whether a later token of the same author makes all earlier ones superfluous."""
        spread = self._spreads.get(attempt)
        return spread is not None and spread.keeps_last_token

    def _is_passed_on(self, key: Key) -> bool:
        """Whether everybody should get it: all that is signed, but contributions only once their roster is to be flooded."""
        if key.kind != ItemKind.CONTRIBUTION:
            return key.kind.is_signed
        spread = self._spreads.get(key.attempt)
        return spread is not None and spread.passes_on

    # ── deciding ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, attempt: int, roster: Roster) -> None:
        """Begin an attempt among these parties: vote for them, or first deal shares to them."""
        if self.terms.deals:
            self._open(attempt, roster)
            return
        self._say(self._desk.vote(attempt, roster))

    def _open(self, attempt: int, roster: Roster) -> None:
        self._openings[attempt] = self._desk.opening(attempt, roster)
        self.attempt = max(self.attempt, attempt)

    def _say(self, item: Item) -> None:
        """Something of our own that is durable."""
        self._keep(item)
        self._exchange.pass_on(item)

    def _seal(self) -> None:
        """Note rosters that all their members have voted for."""
        for attempt in list(self._votes):
            votes = self._votes[attempt]
            if attempt in self._sealed or len(votes) < self.terms.fewest:  # no roster is smaller
                continue
            complete = []
            for body, voters in self._cast[attempt].items():
                roster, _ = vote_of(body, self.terms.deals)
                if len(voters) >= len(roster) and voters.issuperset(roster):
                    complete.append(roster)
            if not complete:
                continue
            mine = votes.get(self.me)
            roster = mine if mine in complete else complete[0]
            self._sealed[attempt] = roster
            spread = self._spreads[attempt] = self._desk.spread(attempt, roster)
            self._completed[attempt] = spread.completed
            self._pass_on_contributions(attempt)
            if self.me >= self.terms.n:
                self.attempt = max(self.attempt, attempt)
            if attempt == self.attempt:
                self.deadline = self._now + self.terms.patience + self._spreads[attempt].lasts

    def _advance(self) -> None:
        self._seal()
        for attempt, spread in self._spreads.items():
            if attempt in self._fallbacks and spread.can_fall_back and not spread.passes_on:
                self._fall_back(attempt)
        if self.outcome is not None:
            return
        self._deal()
        self._contribute()
        for attempt in sorted(self._spreads):
            spread = self._spreads[attempt]
            if spread.needs_own and attempt not in self._mine and self.me in spread.roster:
                continue
            moves = spread.advance(self._held, self._moment(attempt))
            self.notes += moves.notes
            for u in sorted(spread.blamed):
                self._blame(attempt, u, Sentence.DEALER_CHEATED)
            for peer, item in moves.addressed:
                self._exchange.send_to(peer, item)
            for key, body in moves.published:
                self._say(self._desk.sign(key, body))
            for item in moves.said:
                self._say(item)
            self._exchange.want(moves.wanted)
            self._exchange.want(moves.doubted, DOUBTS)
            for key in moves.shown:
                self._exchange.show(key)
            self._exchange.forget(moves.forgotten)
            if moves.addressed or moves.published or moves.waits:
                self.deadline = max(self.deadline, self._now + self.terms.patience)
            if spread.completed > self._completed[attempt]:
                self._forget_steps(attempt, spread.completed)
            if spread.answer is not None:
                self._finish(spread.answer)
                return
            if spread.over is not None:
                self._end(spread.over, attempt if spread.over.code == "out-of-reach" else 0)
                return
            if spread.free and attempt not in self._free:
                self._go_on_after(attempt)
            if spread.stuck and not spread.passes_on:
                self._call_for_help(attempt)

    def _forget_steps(self, attempt: int, completed: int) -> None:
        """Iterations are over: nobody lacks a step of those before the last of them, and memory stays level."""
        first, self._completed[attempt] = self._completed[attempt], completed
        members = self._sealed[attempt]
        self._exchange.forget(
            Key(ItemKind.STEP, attempt, u, index) for index in range(max(first, 1), completed) for u in members
        )
        # honest neighbours send each step once, most of them when it is known already: that much is no burden
        for peer in self._useless:
            self._useless[peer] = max(0, self._useless[peer] - 4 * len(members) * (completed - first))

    def _moment(self, attempt: int) -> Moment:
        linked = frozenset(peer for peer, link in self._exchange.links.items() if link.greeted)
        # a step is drawn only after every neighbour has answered: all are needed anyway, and another machine or another
        # version of torch may compute other gradients of the same rows, which must not leave under the same pads
        asked = self._greeted.issuperset(self.terms.neighbours)
        second = {key: self._second.get(key, ()) for key in self.evidence}
        mute = attempt in self._mute
        return Moment(self._now, linked, asked, self._steps[attempt], self._returned, self._has_asked, mute, second)

    @property
    def _has_asked(self) -> bool:
        """Whether the neighbours have said what they hold in our name, or were waited for long enough."""
        return self._greeted.issuperset(self.terms.neighbours) or self._now >= self._born + self.terms.grace

    @property
    def _unreturned(self) -> list[int]:
        """Attempts to which others prove to hold a contribution of ours that this folder does not know."""
        return sorted({key.attempt for key in self._claimed} - self._mine.keys())

    def _deal(self) -> None:
        """Where shares are dealt: do what the opening of the present attempt asks for."""
        opening = self._openings.get(self.attempt)
        if opening is None or self.attempt in self._mute or not self._has_asked:
            return
        for item in opening.advance(self._held):
            self._say(item)
        for u in sorted(opening.dealings.bad):
            alike = u in opening.dealings.alike
            self._blame(self.attempt, u, Sentence.SAME_DEALING if alike else Sentence.BAD_DEALING)
        self._exchange.want(opening.doubts(), DOUBTS)
        self._seal()

    def _go_on_after(self, attempt: int) -> None:
        """Nothing of an attempt is opened: it is free, and those who are here begin another one."""
        self._free.add(attempt)
        if attempt in self._mine:
            self._desk.free(attempt, self._sealed[attempt], self._spreads[attempt].realised)
        if attempt == self.attempt and self.me in self._sealed[attempt]:
            self._follow(attempt, self._sealed[attempt])

    @property
    def _gone(self) -> Statement:
        """That what others prove to hold has not come back, and its cost is in no ledger."""
        return Sentence.CONTRIBUTION_GONE(attempts=", ".join(map(str, self._unreturned)))

    def _contribute(self) -> None:
        if self.terms.deals:
            for attempt in sorted(self._sealed):
                self._contribute_dealt(attempt)
            return
        attempt = self.attempt
        roster = self._sealed.get(attempt)
        if roster is None or self.me not in roster or attempt in self._mine:
            return
        if roster != self._votes[attempt].get(self.me):
            return
        if self._unreturned or not self._has_asked:  # it counts as one of ours: it must come back first
            return
        if len(self._mine) >= self.terms.attempts:
            self._end(Sentence.USED_UP(attempts=self.terms.attempts))
            return
        self._say(self._desk.contribute(attempt, roster))

    def _contribute_dealt(self, attempt: int) -> None:
        """Where shares are dealt: under masks that only the shares of enough members open, if nothing of ours may be open yet."""
        roster, opening = self._sealed[attempt], self._openings.get(attempt)
        if self.me not in roster or attempt in self._mine or attempt in self._mute or opening is None:
            return
        if roster != self._votes[attempt].get(self.me) or self._unreturned or not self._has_asked:
            return
        if len(self._mine.keys() - self._free) >= self.terms.attempts or self._spreads[attempt].free:
            return
        if not self._desk.holds_secrets(attempt):  # an earlier life saw that nothing of it is opened, or ended
            return
        if opening.is_dealt(self._held, self._named[attempt][self.me]):
            self._say(self._desk.contribute(attempt, roster))

    def _give_up_dealt(self) -> None:
        """Where shares are dealt: the time to open the present attempt is over. (A sealed roster keeps its own time.)"""
        attempt, opening = self.attempt, self._openings.get(self.attempt)
        waits = any(not spread.free for spread in self._spreads.values())
        if waits or opening is None or attempt in self._mute:
            if not waits and self._listening:
                self._end(Sentence.LEFT_OUT_UNTOLD(attempt=attempt))
            self._listening = True
            self.deadline = self._now + 2 * self.terms.patience
            return
        opening.take(self._held)
        for u in sorted(opening.accused):
            self._blame(attempt, u, Sentence.NOT_DEFENDED)
        strangers = self._strangers[attempt] = opening.strangers()
        if (
            attempt > 1
        ):  # two honest parties may find others there, if somebody came at the last moment; but not for ever
            strangers = strangers & self._strangers.get(attempt - 1, set())
        there = opening.there(self.evidence)
        self._follow(attempt, tuple(u for u in there if u not in strangers))

    def _follow(self, attempt: int, there: Roster) -> None:
        """After an attempt that came to nothing: another one among those who are there, if they are enough."""
        missing = sorted(set(range(self.terms.n)) - set(there))
        missed, counts = self._some(missing), {"there": len(there), "n": self.terms.n, "attempt": attempt}
        if len(there) < self.terms.fewest:
            self._end(Sentence.TOO_FEW(missing=missed, fewest=self.terms.fewest, **counts))
        elif self.me not in there:
            self._end(Sentence.LEFT_OUT(attempt=attempt))
        elif not self.terms.deals and len(self._mine) >= self.terms.attempts:
            self._end(Sentence.USED_UP_WITHOUT(attempts=self.terms.attempts, missing=missed))
        elif attempt >= self.terms.attempts + SPARE:
            self._end(Sentence.ALL_FAILED(attempt=attempt, missing=missed))
        else:
            self.notes.append(Sentence.GIVEN_UP(attempt=attempt, missing=missed, following=attempt + 1))
            self.deadline = self._now + self.terms.patience
            self._begin(attempt + 1, there)

    def _give_up(self) -> None:
        """The time of this attempt is over."""
        if self.terms.deals:
            self._give_up_dealt()
            return
        attempt, spread = self.attempt, self._spreads.get(self.attempt)
        if self._unreturned:
            self._end(self._gone)
            return
        if spread is not None and (late := spread.why_late()) is not None:
            self._end(late)
            return
        if spread is not None and spread.can_fall_back and not spread.passes_on:
            self._call_for_help(attempt)
            return
        if any(later > attempt and self.me not in roster for later, roster in self._sealed.items()):
            if self._listening:
                self._end(Sentence.LEFT_OUT_UNTOLD(attempt=attempt))
            self._listening = True
            self.deadline = self._now + 2 * self.terms.patience
            return
        if self.me >= self.terms.n:
            if self._listening:
                self._end(Sentence.NOTHING_CAME(attempt=attempt) if attempt else Sentence.NOBODY_CAME())
            self._listening = True
            self.deadline = self._now + 2 * self.terms.patience
            return
        if self._may_try_again(spread) and Key(ItemKind.FALLBACK, attempt, self.me) not in self._held:
            self._say_here(attempt)
            return
        if spread is None:
            there = tuple(sorted(self._votes[attempt]))
        elif spread.needs_all:
            there = tuple(sorted(u for u in spread.roster if Key(ItemKind.CONTRIBUTION, attempt, u) in self._held))
        elif self._may_try_again(spread):
            there = tuple(sorted(u for u in spread.roster if Key(ItemKind.FALLBACK, attempt, u) in self._held))
        else:
            there = spread.roster
        if spread is not None and not spread.needs_all and not self._may_try_again(spread):
            self._end(Sentence.BROKE_OFF(there=len(there), n=self.terms.n, attempt=attempt))
        else:
            self._follow(attempt, there)

    def _may_try_again(self, spread: Spread | None) -> bool:
        """Whether numbers that got lost on their way in this attempt may be followed by another attempt."""
        return spread is not None and not spread.needs_all and not spread.can_fall_back and self.terms.tolerates

    def _say_here(self, attempt: int) -> None:
        """The numbers of this attempt are lost: say that we are still here, and wait for who else is."""
        self._say(self._desk.sign(Key(ItemKind.FALLBACK, attempt, self.me), b""))
        self.deadline = self._now + self.terms.patience / 4
        self.notes.append(Sentence.NUMBERS_LOST(attempt=attempt))

    def _call_for_help(self, attempt: int) -> None:
        """Averaging is stuck: let everybody pass contributions on."""
        self._say(self._desk.sign(Key(ItemKind.FALLBACK, attempt, self.me), b""))
        self._fall_back(attempt)
        self.deadline = self._now + self.terms.patience
        self.notes.append(Sentence.STUCK(attempt=attempt))

    def _fall_back(self, attempt: int) -> None:
        self._spreads[attempt].fall_back()
        self._pass_on_contributions(attempt)

    def _pass_on_contributions(self, attempt: int) -> None:
        for key in [key for key in self._held if key.kind == ItemKind.CONTRIBUTION and key.attempt == attempt]:
            self._exchange.pass_on(self._held[key])

    def _finish(self, answer: SpreadResult) -> None:
        self._erase()
        self.outcome = answer
        self._stay()
        self._compare_answers()

    def _stay(self) -> None:
        """The sum is here: say so, and stay until the neighbours have it, too, or patience is over."""
        self._leave_by = self._now + self.terms.patience
        self._stay_until = self._now + 10 * self.terms.patience
        self._stay_for_signatures = self._now + min(MOMENT, self.terms.patience / 8)
        if (done := self._done_message()) is not None:
            self._exchange.tell_all(done)

    def _blame(self, attempt: int, author: int, said: Callable[..., Statement]) -> None:
        """Note by name what somebody did, once an attempt."""
        if author != self.me and (attempt, author) not in self.blamed:
            self.blamed[attempt, author] = said(name=self.terms.name(author), attempt=attempt)
            self.accused.append((author, self.blamed[attempt, author]))

    def _compare_answers(self) -> None:
        """Who signed another answer than the one that is here: honest parties all hold the same one."""
        found = self.outcome
        if isinstance(found, SpreadResult) and self.terms.deals:
            for u, item in self._ends[ItemKind.ANSWER, found.attempt].items():
                if item.body != found.digest and (found.attempt, u) not in self.blamed:
                    self._blame(found.attempt, u, Sentence.SIGNED_ANOTHER)
                    self._exchange.show(item.key)  # perhaps it signed the right one for others

    def _two_of_ours(self, peer: int, key: Key) -> NetdpError:
        kind = key.kind.name.lower()
        return NetdpError(Sentence.TWO_OF_OURS(peer=self.terms.name(peer), kind=kind, attempt=key.attempt))

    def _called(self, key: Key) -> str:
        """An item in words: whose it is by name, where there is somebody of that number."""
        return f"{key.kind.name.lower()} {key.index} of {self._who(key.author)} in attempt {key.attempt}"

    def _who(self, u: int) -> str:
        return self.terms.name(u) if u < self.terms.n + self.terms.others else f"nobody (number {u})"

    def _listed(self, roster: Roster) -> str:
        return "(" + ", ".join(map(self._who, roster)) + ")"

    def _some(self, parties: list[int]) -> str:
        shown = ", ".join(self.terms.name(u) for u in parties[:6])
        return (shown + (f" and {len(parties) - 6} more" if len(parties) > 6 else "")) or "nobody"

    def _erase(self) -> None:
        """Secrets and shares of all attempts: nothing more is said in any of them, and a folder that holds them could be stolen."""
        for attempt in self._openings:
            self._desk.erase(attempt)

    def _end(self, reason: Statement, withheld: int = 0) -> None:
        for spread in self._spreads.values():
            spread.leave()
        self._erase()
        if self._unreturned and self.terms.deals:  # whatever it ended for, this is what its owner must know
            reason = self._gone
        self.outcome = Ended(reason, len(self._mine) + len(self._unreturned), withheld)
        self._leave_by = self._now
        if withheld:
            self._stay()
