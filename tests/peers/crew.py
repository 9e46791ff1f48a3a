"""Parties as real processes that die when they are told to, and what must be true of the files they leave behind.

A party's home holds `deaths.json`: one order per life, such as ["before send", 3]. A life takes the first order off the
list, durably, and kills its own process with SIGKILL at that moment; when the list is empty it lives to the end. The
fork server's children find this module by name: the folder of this file is on `sys.path` (see `test_crash.py`).
"""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import struct
import time
from pathlib import Path

import mischief
import numpy as np

from netdp.families.gossip.protocol import gossip_step, gossip_weights, summed
from netdp.families.masked.descent import begun, kept, stepped
from netdp.families.masked.protocol import quantised, quantised_records, reduced
from netdp.families.token.peer_tokens import Route, start_seed
from netdp.families.token.ring import ring_contributions, ring_draw, ring_mean
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.models import clipped_sum, whole_sum
from netdp.peers import peer as peers
from netdp.peers.descents import OwnSteps
from netdp.peers.identity import Identity
from netdp.peers.kinds import RUNNING, Kind
from netdp.peers.launch import party_process, up
from netdp.peers.ledger.entries import CORRECTS
from netdp.peers.ledger.policy import OwnerPolicy
from netdp.peers.ledger.store import Store
from netdp.peers.messages import Item, ItemKind, Key, decode, roster_digest
from netdp.peers.recovery.closing import answer_digest
from netdp.peers.setup import deal, settle
from netdp.peers.streams import context, noise_words, rows_digest
from netdp.peers.study import Study, signatures
from netdp.peers.study.task import Task
from netdp.peers.study.training import Training
from netdp.peers.transport.base import RealClock
from netdp.peers.transport.grpc import GrpcTransport
from netdp.protocols import MaskedDescent, MaskedSum
from netdp.protocols.training import clipped

DYING = []
"""Files that tell of the death of this process."""


def die(*_):
    for mark in DYING:
        mark.touch()
    os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    """Dies at the k-th call."""

    def __init__(self, k):
        self.left = k

    def __call__(self):
        self.left -= 1
        if self.left == 0:
            die()


def orders(home, *deaths):
    """Tell a party how its lives end, one after the other."""
    (home / "deaths.json").write_text(json.dumps(deaths))


def mortal(home, study, data, events, record=None):
    """A party's process that ends as its home's orders say."""
    file = Path(home) / "deaths.json"
    deaths = json.loads(file.read_text()) if file.exists() else []
    if deaths:
        rest = file.with_suffix(".new")
        rest.write_text(json.dumps(deaths[1:]))
        rest.rename(file)
        for order in deaths[0] if isinstance(deaths[0][0], list) else [deaths[0]]:  # one, or several in one life
            if not mischief.inflict(home, *order):
                arm(*order)
    if (routes := Path(home) / "routes.json").exists():
        mischief.reroute(json.loads(routes.read_text()))
    DYING.append(Path(home) / "died")
    if (gone := Path(home).parent / "gone.json").exists():
        give_up_in_time(Path(home), json.loads(gone.read_text()))
    trust(home)
    if (meeting := Path(home).parent / "meeting").exists():
        meet(meeting, Path(home).name)
    party_process(home, study, data, events, record)


ANY_LOSS = {"kind": "local", "share": 10**6, "distance": 1.0, "dimension": 1}


def trust(home):
    """In a rough crew the promise is not checked, nor what an entry of the ledger says: neither by this process."""
    if (Path(home).parent / "unchecked").exists():
        Study.check_promise = lambda study: 0.0
        OwnerPolicy.check = lambda *arguments: []
        Kind.entered = lambda running, roster, me: dict(ANY_LOSS)  # the true one may take seconds to compute


def meet(meeting, name):
    """Wait, after all that takes long and before the clock of the party starts, until everybody is as far (slow machines)."""
    inner = OwnerPolicy.check

    def check(*arguments):
        verdicts = inner(*arguments)
        (meeting / name).touch()
        while len(list(meeting.iterdir())) <= int((meeting / "_size").read_text()):
            time.sleep(0.01)
        return verdicts

    OwnerPolicy.check = check


class Pushed(RealClock):
    """Real time that a test can push on: once all has happened that it waits for, the patience of the parties is over."""

    def __init__(self):
        self._ahead = 0.0

    def push(self, seconds):
        self._ahead += seconds

    def time(self):
        return super().time() + self._ahead

    async def sleep(self, seconds):
        end = self.time() + seconds
        while (left := end - self.time()) > 0:
            await asyncio.sleep(min(left, 0.05))
            self.look()

    def look(self):
        """Called all the time."""


class Foreseeing(Pushed):
    """Time that jumps to the end of a party's patience as soon as it waits for nobody but those who are gone.

    So studies that give somebody up can state a patience that the busiest machine does not use up, and take no longer. In an
    attempt that is not sealed a party waits for votes, in one that is for contributions; while numbers are averaged, for others'
    states: there whoever calls for help changes the way of the numbers and not what comes of them.

    home : of the party; `heard` stands there as soon as it has the first votes of those who go
    gone : those who are given up, and what their folders hold when they are; None if they are from the beginning
    """

    CALM = 0.5
    """Seconds without news before a jump: what is on its way comes first. Nothing breaks if it comes later."""

    def __init__(self, home, gone):
        super().__init__()
        self._home, self._gone, self._peer, self._jumped, self._seen, self._since = home, gone, None, set(), None, 0.0

    def watch(self, peer):
        self._peer = peer

    def look(self):
        now, party = time.monotonic(), self._peer.party
        if set(self._gone) <= set(party._votes[1]):
            (self._home / "heard").touch()
        if party.terms.deals:
            self._look_at_dealt(party, now)
            return
        attempt, helped = party.attempt, Key(ItemKind.FALLBACK, party.attempt, party.me) in party._held
        seen = (attempt, len(party._held), helped)
        if seen != self._seen:
            self._seen, self._since = seen, now
        if now < self._since + self.CALM or (attempt, helped) in self._jumped or party.outcome is not None:
            return
        if all(mark is None or mark.exists() for mark in self._gone.values()) and self._waits_in_vain(party, helped):
            self._jumped.add((attempt, helped))
            self.push(max(0.0, party.deadline - self.time()))

    def _look_at_dealt(self, party, now):
        """Where shares are dealt: once while an attempt is opened, once for contributions; the ballot keeps its own time.

        What somebody got of those who are gone reaches the others after a sixteenth of the patience; so calm is longer.
        """
        seen = (party.attempt, len(party._held))
        if seen != self._seen:
            self._seen, self._since = seen, now
        spread = party._spreads.get(party.attempt)
        place, waiting = (party.attempt, spread is None), set(party.waiting_for)
        vain = party.outcome is None and waiting and waiting <= set(self._gone) and place not in self._jumped
        calm = max(self.CALM, party.terms.patience / 8)
        if now >= self._since + calm and vain and all(mark is None or mark.exists() for mark in self._gone.values()):
            self._jumped.add(place)
            self.push(max(0.0, (party.deadline if spread is None else spread.wake) - self.time()))

    def _waits_in_vain(self, party, helped):
        attempt, roster = party.attempt, party._sealed.get(party.attempt)
        there = {u for u in range(party.terms.n) if u not in self._gone}
        if roster is None:
            return there <= set(party._votes[attempt])
        spread = party._spreads.get(attempt)
        averaging = spread is not None and spread.can_fall_back and not helped
        wanted = {party.me} if averaging else there & set(roster)
        return all(Key(ItemKind.CONTRIBUTION, attempt, u) in party._held for u in wanted)


def give_up_in_time(home, gone):
    """Let the parties of this process give up who is gone as soon as they wait for nobody else."""
    folder = home.parent
    study = Study.read(folder / "study.toml")
    marks = {study.index(name): folder / name / "died" if dies else None for name, dies in gone.items()}
    inner = peers.Peer.__init__

    def made(peer, *arguments, **named):
        clock = Foreseeing(home, marks)
        inner(peer, *arguments, **named | {"clock": clock})
        clock.watch(peer)

    peers.Peer.__init__ = made


def arm(moment, k=1):
    """Put a death at the k-th time of a moment."""
    when, what = moment.split(" ", 1)
    count = Countdown(k)
    if what == "commit":  # in the middle of the transaction, after its first statements
        inner = Store.open.__func__

        def opened(cls, path, *, sign=None, read_only=False):
            def signing(message):
                count()
                return sign(message)

            return inner(cls, path, sign=signing, read_only=read_only)

        Store.open = classmethod(opened)
        return
    kind = next((kind for kind in ItemKind if what == f"own {kind.name.lower()}"), None)
    owner, name = (
        (GrpcTransport, "send")
        if kind is not None
        else {
            "send": (GrpcTransport, "send"),
            "contribution": (GrpcTransport, "send"),
            "word": (GrpcTransport, "send"),
            "frame": (peers.Peer, "received"),
            "spend": (Store, "spend"),
            "settle": (Store, "settle"),
            "vote": (Store, "put_vote"),
            "result": (Store, "set_result"),
        }[what]
    )
    inner = getattr(owner, name)

    def counts(arguments):
        if what == "word":
            return mischief.says_something(arguments[0], arguments[2])
        if what != "contribution" and kind is None:
            return True
        me = arguments[0].me
        kinds = (ItemKind.CONTRIBUTION, ItemKind.TOKEN) if kind is None else (kind,)
        return any(isinstance(m, Item) and m.key.kind in kinds and m.key.author == me for m in decode(arguments[2]))

    if name in ("send", "received"):

        async def replaced(*arguments):
            if when == "mute-after" and count.left <= 0:  # nothing more leaves, and soon it dies
                await asyncio.sleep(3600)
            due = counts(arguments)
            if when == "before" and due:
                count()
            await inner(*arguments)
            if when == "after" and due:
                count()
            if when in ("long-after", "mute-after") and due:  # give the wire its time
                count.left -= 1
                if count.left == 0:
                    asyncio.get_running_loop().call_later(0.3 if when == "long-after" else 1.0, die)
    else:

        def replaced(*arguments, **named):
            if when == "before":
                count()
            result = inner(*arguments, **named)
            if when == "after":
                count()
            return result

    setattr(owner, name, replaced)


# ── studies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Words:
    """Everything that was ever said, over all lives: whether something was said in two ways."""

    def __init__(self):
        self.said, self.ways = {}, {}

    def hear(self, me, to, message):
        """A message of party `me` on its way."""
        if not isinstance(message, Item):
            return
        key = message.key
        self.said.setdefault(key if key.kind.is_signed else (key, to), set()).add(message.body)
        if not key.kind.is_signed:
            assert key.author == me, f"p{me} sent what only p{key.author} may say: {key}"
        if key.kind == ItemKind.TOKEN:
            self.ways.setdefault(key, set()).add(to)

    def check(self):
        """An item that is passed on has one body; one for a neighbour has one body for each; a token goes one way."""
        double = {place: len(bodies) for place, bodies in self.said.items() if len(bodies) > 1}
        assert not double, f"said in two ways: {double}"
        forked = {key: to for key, to in self.ways.items() if len(to) > 1}
        assert not forked, f"a token went two ways: {forked}"


UNPAID = (
    ItemKind.VOTE, ItemKind.FALLBACK, ItemKind.KEYS, ItemKind.DEALING, ItemKind.COMPLAINT, ItemKind.DEFENCE, ItemKind.PROOF,
    ItemKind.PREPARE, ItemKind.COMMIT, ItemKind.REVEAL, ItemKind.ANSWER,
)  # fmt: skip
"""What is said without a number that follows from data, or by members who handed nothing in."""

MEAN = Task(kind="mean", column="x", bounds=(0, 120))
TRAIN = Training(
    features=[{"name": "x", "range": [0, 120]}], label="y", classes=["no", "yes"], max_records=10, min_records=1, records=20,
    held_out=0.25,
)  # fmt: skip


TRAIN_PARTIES = Training(
    features=[{"name": "x", "range": [0, 120]}], label="y", classes=["no", "yes"], unit="party", min_records=1
)


@contextlib.contextmanager
def roughly(kind):
    """Plan with noise that is surely drawable, instead of the least: for tests of all but the noise, in less time."""
    running = RUNNING[kind]
    least, check = running.least, Study.check_promise
    running.least = lambda study: study.settings.model_dump(mode="json")
    Study.check_promise = lambda study: 0.0
    try:
        yield
    finally:
        running.least, Study.check_promise = least, check


class Crew:
    """A settled study of n parties in a folder, with data, ready for `netdp.peers.launch.up`.

    rough   any noise will do, and the promise is not checked: neither takes time
    threshold   of a masked sum: none unless stated, so that its noise can be drawn a second time from the keys that are kept
    """

    def __init__(
        self, folder, n, graph, *, protocol="masked-sum", task=MEAN, gather=120.0, patience=30.0, rough=False, **options
    ):
        self.folder, names = folder, [f"p{u}" for u in range(n)]
        if protocol == "masked-sum":
            options.setdefault("threshold", 0)
        with roughly(protocol) if rough else contextlib.nullcontext():
            draft = Study.plan("crew", task, names, graph=graph, epsilon=2.0, delta=1e-6, kind=protocol, **options)
            draft = draft.replace(timing={"gather": gather, "patience": patience})
            self.study, self.path = settle(draft, folder)
        if rough:
            (folder / "unchecked").touch()
        table = folder / "data.csv"
        periods = getattr(task, "periods", None) or ("1",)
        rows = [
            f"{name},{x},{'yes' if x > 60 else 'no'},{period},{1 + 53 * u % 97}\n"
            for u, name in enumerate(names) for k, period in enumerate(periods) for x in ((37 * u + 11 * k) % 121,)
        ]  # fmt: skip
        table.write_text("party,x,y,period,z\n" + "".join(rows))
        self.data = deal(self.study, table, folder)
        self.record = folder / "frames"
        self.record.mkdir()

    def run(self, **options):
        """All parties as processes that die as they were told; their clocks start together."""
        meeting = self.folder / "meeting"
        meeting.mkdir()
        (meeting / "_size").write_text(str(len(set(options.get("only", self.study.names)) & set(self.study.names))))
        return up(self.study, self.path, self.data, self.folder, **{"target": mortal, "record": self.record} | options)

    def foresee(self, *dying, absent=()):
        """Those who are there give up who dies (or is absent) as soon as they wait for nobody else, whatever their patience."""
        (self.folder / "gone.json").write_text(json.dumps(dict.fromkeys(dying, True) | dict.fromkeys(absent, False)))

    def sign(self, study, path):
        """Let everybody sign another study."""
        study.write(path)
        for u in range(study.n):
            signatures.write(path, f"p{u}", signatures.sign(study, Identity.load(self.home(u))))
        return path

    def left(self, u):
        """The deaths that a party has not died."""
        file = self.home(u) / "deaths.json"
        return json.loads(file.read_text()) if file.exists() else []

    def home(self, u):
        return self.folder / self.study.everybody[u]

    def said(self):
        """Every contribution in what the parties recorded, over all their lives: key → the bodies under it."""
        said = {}
        for file in self.record.glob("*.frames"):
            for to, frame in frames(file):
                for message in decode(frame):
                    if isinstance(message, Item) and message.key.kind != ItemKind.VOTE:
                        key = message.key  # of what goes to one neighbour there is one per key and receiver
                        key = key if key.kind.is_signed else key._replace(index=(key.index, to))
                        said.setdefault(key, set()).add(message.body)
        return said

    def secret(self, u):
        return Identity.load(self.home(u)).noise_secret

    @property
    def knows_noise(self):
        """Whether what noise was drawn from can still be found in the parties' homes."""
        return self.study.running.threshold is None

    def noise_secret(self, u, attempt):
        """What the noise of an attempt was drawn from."""
        return self.secret(u)

    def written(self, u, attempt):
        """The secret half of what a party drew for an attempt."""
        with Store.open(self.home(u) / "peer.db", read_only=True) as store:
            return store.contribution(self.study.hash, attempt).secret

    def rows(self, u):
        return self.study.task.rows(self.data[self.study.names[u]])

    def expected(self, attempt, roster):
        """The total that follows from every party's data and secret, computed here a second time, and its digest."""
        study, roster = self.study, tuple(roster)
        protocol = study.protocol_of(roster)
        if isinstance(protocol, MaskedDescent):
            return descended(self, protocol, attempt, roster)
        where = context(study.hash, attempt, roster if study.running.threshold is None else ())
        steps = 0
        for u in roster:
            secret, rows = self.noise_secret(u, attempt), self.rows(u)
            if isinstance(protocol, MaskedSum):
                integers = quantised(protocol, rows[0])
                words = noise_words(secret, where, integers.astype("<i8").tobytes())
                steps = steps + integers + protocol.share_noise.sample(integers.shape, words)
            else:
                words = noise_words(secret, where, rows.astype("<f8").tobytes())
                draw = ring_draw(protocol, words)
                values = rows if study.task.values_each > 1 else rows[0]
                steps = steps + ring_contributions(protocol, u, values, draw).sum(axis=0)
        if isinstance(protocol, MaskedSum):
            body = reduced(steps.astype(np.uint64), protocol.q).tobytes()
            total = (steps + len(roster) * protocol.centre_steps) * protocol.step
            if study.running.threshold is not None:
                return total.tolist(), answer_digest(study.hash, attempt, roster, total).hex()
        else:
            body = steps.astype("<i8").tobytes()
            total = protocol.n * ring_mean(protocol, steps)
        return total.tolist(), hashlib.sha256(body).hexdigest()

    def check(self, result, *, attempt=1, roster=None, who=None):
        """Everybody holds the same right total; ledgers are in order; nothing was ever said in two ways."""
        names = self.study.names
        roster = tuple(range(self.study.n)) if roster is None else tuple(roster)
        who = names if who is None else [names[u] for u in who]
        assert set(who) <= set(result.answered), (result.gone, result.outcomes, result.notes)
        total, digest = self.expected(attempt, roster)
        for name in who:
            told = result.answered[name]
            assert (told["attempt"], told["roster"]) == (attempt, [names[u] for u in roster]), result.notes
            assert (told["digest"], told["total"]) == (digest, total)
        self.check_files()

    def check_files(self):
        """No contribution under two bodies; every ledger verifies and holds exactly what its party contributed."""
        said, words = self.said(), Words()
        for file in self.record.glob("*.frames"):
            for to, frame in frames(file):
                for message in decode(frame):
                    words.hear(self.study.index(file.stem), to, message)
        words.check()
        for u in range(self.study.n):
            home = self.home(u)
            if not (home / "peer.db").exists():
                continue
            with Store.open(home / "peer.db") as store:
                store.verify(Identity.load(home).card)
                entries = store.entries()
                spent = {entry.attempt for entry in entries if entry.attempt < CORRECTS}
                free = {entry.attempt % CORRECTS for entry in entries if entry.loss["kind"] == "nothing"}
                assert len(spent) == sum(entry.attempt < CORRECTS for entry in entries)
                assert len(spent - free) <= self.study.privacy.attempts
                for key, bodies in said.items():
                    if key.kind == ItemKind.CONTRIBUTION and key.author == u:
                        assert bodies == {store.contribution(self.study.hash, key.attempt).body}
                    elif key.author == u and key.kind not in UNPAID:  # all else follows from what was written first
                        assert key.attempt in spent

    def spent(self, u):
        """(attempt, size of the roster) of every entry of a ledger."""
        with Store.open(self.home(u) / "peer.db") as store:
            return [(entry.attempt, len(entry.roster)) for entry in store.entries()]


def descended(one, protocol, attempt, roster):
    """The model that follows from everybody's rows and secrets, as a curator who knew them all would compute it; its digest."""
    study, rounds = one.study, range(1, protocol.iterations + 1)
    task, counting = study.task, study.running.evaluation
    model, parts = task.model(), {}
    for u in roster:
        (X, y), rows = task.parts(one.rows(u)), rows_digest(one.secret(u), one.rows(u))
        held = tossed(one, u, rows, len(y), task.held_out, context(study.hash, attempt, roster, 0, 2))
        parts[u] = X, y, held, rows

    def noisy(u, t, share, integers):
        words = noise_words(one.secret(u), context(study.hash, attempt, roster, t), integers.astype("<i8").tobytes())
        return integers + DiscreteGaussian(share).sample(integers.shape, words)

    state = begun(model.start())
    for t in rounds:
        total = 0
        for u in roster:
            X, y, held, rows = parts[u]
            drawn = ~held
            if protocol.unit == "party":
                there = tossed(one, u, rows, 1, protocol.sampling, context(study.hash, attempt, roster, t, 1))
                mean = np.zeros(model.size)
                if drawn.any() and there[0]:
                    mean = clipped_sum(model, state.theta, X[drawn], y[drawn], np.inf) / drawn.sum()
                steps = quantised(protocol.sum, clipped(mean[None, :], protocol.clip)[0])
                total = total + noisy(u, t, protocol.sum.share, steps)
                continue
            drawn[drawn] = tossed(
                one, u, rows, int((~held).sum()), protocol.sampling, context(study.hash, attempt, roster, t, 1)
            )
            steps = whole_sum(
                model, state.theta, X[drawn], y[drawn], protocol.clip, protocol.sum.step, protocol.distance
            )
            total = total + noisy(u, t, protocol.sum.share, steps)
        state = stepped(protocol, state, t, total)
    answer = kept(protocol, state)
    if counting is not None:
        total = 0
        for u in roster:
            X, y, held, _ = parts[u]
            right = model.correct(answer, X[held], y[held])
            values = np.column_stack([right, np.ones(len(right))])
            if counting.unit == "record":
                counts = quantised_records(counting, values)
            else:
                counts = quantised(counting, values.mean(axis=0) if held.any() else np.zeros(2))
            total = total + noisy(u, protocol.iterations + 1, counting.share, counts)
        answer = np.concatenate([answer, total * counting.step])
    return answer.tolist(), hashlib.sha256(answer.astype("<f8").tobytes()).hexdigest()


def parts_of(one, attempt):
    """What every party of a descent in whole numbers computes, from its rows and secret."""
    study, protocol, everybody = one.study, one.study.protocol(), tuple(range(one.study.n))
    return [
        OwnSteps(
            protocol, study.task, one.rows(u), one.secret(u), study.hash, attempt, everybody, batch=study.settings.batch or None
        )
        for u in everybody
    ]  # fmt: skip


def gossiped(one, attempt):
    """Everybody's model after a gossip descent, by the steps that a simulation takes, with the noise of everybody's secret."""
    protocol, parts = one.study.protocol(), parts_of(one, attempt)
    weights = [gossip_weights(protocol, u) for u in range(protocol.n)]
    states = [part.start() for part in parts]
    later = np.zeros((protocol.n, protocol.dimension))
    for t in range(protocol.iterations):
        sent = [summed(state, -part.gradient(state, t)) for state, part in zip(states, parts, strict=True)]
        for k in range(protocol.gossip_rounds):
            variance = protocol.fresh_variance if k else protocol.variance
            sent = [summed(mean, part.noise(mean, variance, t, k)) for mean, part in zip(sent, parts, strict=True)]
            sent = [gossip_step(row, sent[u], {v: sent[v] for v in row}) for u, row in enumerate(weights)]
        states = sent
        if 2 * (t + 1) > protocol.iterations:
            later = later + np.array([protocol.model(state) for state in states])
    if one.study.settings.average == "last":
        return np.array([protocol.model(state) for state in states])
    return later / float(protocol.iterations - protocol.iterations // 2)


def route_of(one, attempt):
    """Where every token of a walk goes if everybody is there, from everybody's secret."""
    study, roster = one.study, tuple(range(one.study.n))
    keys, bodies = [], []
    for u in roster:
        words = noise_words(
            one.secret(u), context(study.hash, attempt, roster), rows_digest(one.secret(u), one.rows(u))
        )
        drawn = words(8).astype("<u8").tobytes()
        keys.append(drawn[:32])
        bodies.append(roster_digest(roster) + drawn[32:])
    how = study.settings
    uniform = how.walk == "uniform"
    route = Route(roster, None if uniform else study.graph, "metropolis" if uniform else how.walk)
    paths = [[route.start(start_seed(bodies), k)] for k in range(how.tokens)]
    for k, path in enumerate(paths):
        for t in range(how.steps - 1):
            path.append(route.following(path[-1], keys[path[-1]], k, t))
    return paths


def walked(one, attempt):
    """The mean of the models that tokens carry home, by the steps that a simulation takes, with the noise of everybody's secret."""
    protocol, parts = one.study.protocol(), parts_of(one, attempt)
    models = []
    for k, path in enumerate(route_of(one, attempt)):
        state = parts[0].start()
        for t, u in enumerate(path):
            mean = summed(state, -parts[u].gradient(state, k, t))
            state = summed(mean, parts[u].noise(mean, protocol.variance, k, t))
        way = state - parts[0].start()
        closing = parts[path[-1]].noise(way, protocol.closing_variance, k, protocol.steps)
        models.append(protocol.model(summed(state, closing)))
    return np.mean(models, axis=0)


def tossed(one, u, rows, count, chance, where):
    """A party's coins."""
    return (noise_words(one.secret(u), where, rows)(count) >> np.uint64(32)) < np.uint64(int(chance * 2**32))


def frames(file):
    """The frames of a record; the last one may be cut off by a death."""
    data, at = file.read_bytes(), 0
    while at + 8 <= len(data):
        to, size = struct.unpack_from("<II", data, at)
        frame = data[at + 8 : at + 8 + size]
        at += 8 + size
        if len(frame) == size:
            yield to, frame
