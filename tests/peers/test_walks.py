"""Tokens that walk over peers: the same numbers as the pure steps, nothing counted twice, whoever dies when.

Parties live in the world of `world.py` (virtual time, messages as bytes, links that break); their desks draw as
`netdp.families.token.peer_walk` does. Whole peers, with keys and databases, are in the last part.
"""

import asyncio
import hashlib
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from netdp import graphs, simulate
from netdp.families.token.peer_paths import walked_in
from netdp.families.token.peer_tokens import KEY, Route, TokenWalk, load_of, start_seed
from netdp.families.token.peer_walk import grid_for_walk
from netdp.families.token.ring import ring_add
from netdp.families.token.walk import GraphWalkSum, WalkHistogram, WalkSum
from netdp.peers.identity import Identity
from netdp.peers.ledger.store import Store
from netdp.peers.messages import Item, ItemKind, Key, roster_digest
from netdp.peers.noise import least_gamma
from netdp.peers.peer import Peer
from netdp.peers.spread import Moment
from netdp.peers.study import Study
from netdp.peers.study.task import Task
from netdp.peers.terms import Ended
from netdp.peers.transport.memory import MemoryNetwork, VirtualClock
from netdp.privacy import ProfileCurve
from netdp.protocols.accounting import account

from .world import Notebook, World

STEPS = 24


def sums(n=5, **changes):
    return WalkSum(n, STEPS, sigma=1.0, grid=2.0**-8, **changes)


class Pages(Notebook):
    """A notebook with registers, whose rows are functions of (party, attempt, roster) as those of a desk are."""

    def __init__(self, world, me):
        super().__init__(world, me)
        self.registers = {}

    def row(self, attempt, roster):
        drawn = hashlib.sha512(repr((self.world.seed, self.me, attempt, roster)).encode()).digest()
        return drawn[:KEY], drawn[KEY:]

    def contribute(self, attempt, roster):
        assert attempt not in [a for a, _ in self.spent], "drawn twice"
        self.spent.append((attempt, roster))
        body = roster_digest(roster) + self.row(attempt, roster)[1]
        return self._write(Key(ItemKind.CONTRIBUTION, attempt, self.me), body)

    def once(self, attempt, place, body):
        return self.registers.setdefault((attempt, place), body)

    def noted(self, attempt, place):
        return self.registers.get((attempt, place))

    def spread(self, attempt, roster):
        world = self.world
        load, route = world.load(roster), world.route(roster)
        return TokenWalk(
            load, route, attempt, self.me, lambda: (self.row(attempt, roster)[0], world.rows[self.me]), self,
            allowance=max(0, world.absent - (world.n - len(roster))), wait=world.patience / 4, lasts=world.lasts,
        )  # fmt: skip


class WalkWorld(World):
    """Parties among which tokens walk; `protocol(n)` says which."""

    def __init__(self, graph, protocol, *, values, seed=0, lasts=20.0, **settings):
        super().__init__(graph, seed=seed, **settings)
        self.seed, self.protocol, self.lasts = seed, protocol, lasts
        load = self.load(tuple(range(self.n)))
        self.rows = [load.row(np.atleast_1d(np.asarray(value, dtype=float))) for value in values]
        self.books = [Pages(self, u) for u in range(self.n)]
        self.tokens = {}  # every token that ever left: (attempt, index) → {(sender, receiver, body)}

    def load(self, roster):
        return load_of(self.protocol(len(roster)))

    def route(self, roster):
        p = self.protocol(len(roster))
        graph = getattr(p, "graph", None)
        return Route(roster, graph, getattr(p, "walk", "metropolis"))

    def terms(self, u):
        return SimpleNamespace(**vars(super().terms(u)) | {"releases": 3, "tolerates": True})

    def begin(self, watch=None):
        def every(u, to, messages):
            for message in messages:
                if isinstance(message, Item) and message.key.kind == ItemKind.TOKEN:
                    key = message.key
                    self.tokens.setdefault((key.attempt, key.index), set()).add((u, to, message.body))
            return watch(u, to, messages) if watch is not None else None

        self.watch = every
        for u in range(self.n):
            self.start(u)
        return self

    def check(self, answer):
        """The released tokens hold what the pure steps add up to, along the path that the keys draw; nothing left twice."""
        assert not isinstance(answer, Ended), answer
        assert all(len(gone) == 1 for gone in self.tokens.values()), "a token left for two, or with two contents"
        for book in self.books:
            assert len({attempt for attempt, _ in book.spent}) == len(book.spent) <= self.attempts


def walked(load, route, keys, rows, bodies, away=()):
    """Paths and released tokens, by the pure steps: what parties with these keys do if those `away` never answer."""
    seed, paths, tokens = start_seed(bodies), [], []
    for k in range(load.tokens):
        holder, token, path = route.start(seed, k), np.zeros(load.width, dtype=np.int64), []
        for t in range(load.steps):
            path.append(holder)
            token = load.add(token, rows[holder], keys[holder], k, t)
            if t == load.steps - 1:
                token = load.close(token, keys[holder], k)
                break
            skipped = ()
            while (to := route.following(holder, keys[holder], k, t, skipped)) in away:
                skipped = (*skipped, to)
            holder = to
        paths.append(path)
        tokens.append(token)
    return paths, tokens


def expected(world, attempt, roster, away=()):
    keys = {u: world.books[u].row(attempt, roster)[0] for u in roster}
    bodies = [roster_digest(roster) + world.books[u].row(attempt, roster)[1] for u in roster]
    load = world.load(roster)
    paths, tokens = walked(load, world.route(roster), keys, world.rows, bodies, away)
    return paths, load.total(tokens, len(roster))


VALUES = [-1.0, -0.5, 0.0, 0.5, 1.0]
LABELS = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]
CASES = {
    "sum": (graphs.complete(5), lambda n: sums(n, tokens=2), VALUES),
    "histogram": (graphs.complete(5), lambda n: WalkHistogram(n, STEPS, domain=3, gamma=0.5, tokens=2), LABELS),
    "graph": (
        graphs.path(5),
        lambda n: GraphWalkSum(graphs.path(5), STEPS, sigma=1.0, grid=2.0**-8, tokens=2),
        VALUES,
    ),
    "simple": (
        graphs.star(5),
        lambda n: WalkHistogram(graphs.star(5), STEPS, domain=3, gamma=0.5, walk="simple"),
        LABELS,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_numbers_as_the_pure_steps(case):
    graph, protocol, values = CASES[case]
    for seed in range(4):
        world = WalkWorld(graph, protocol, values=values, seed=seed).begin().run()
        for u in range(5):
            world.check(world.outcomes[u])
        paths, total = expected(world, 1, tuple(range(5)))
        np.testing.assert_array_equal(world.outcomes[0].total, total)
        assert len({answer.digest for answer in world.outcomes.values()}) == 1
        for u in range(5):  # everybody knows its own visits
            mine = sorted([k, t] for k, path in enumerate(paths) for t in range(STEPS) if path[t] == u)
            assert sorted(world.parties[u].realised(1)["visits"]) == mine


@pytest.mark.parametrize(("case", "most"), [("sum", 16), ("graph", 8)])
def test_a_death_before_any_send_changes_nothing(case, most):
    """Any frame kills its sender (of many frames evenly chosen ones; the fault matrix takes all)."""
    graph, protocol, values = CASES[case]
    count = itertools.count()
    world = WalkWorld(graph, protocol, values=values, seed=3).begin(lambda *_: next(count) and None).run()
    total, frames = world.outcomes[0].total, next(count)
    for which in range(0, frames, -(-frames // most)):
        left = itertools.count()
        world = WalkWorld(graph, protocol, values=values, seed=3)
        world.begin(lambda *_, left=left, which=which: "kill" if next(left) == which else None).run()
        world.check(world.outcomes[0])
        np.testing.assert_array_equal(world.outcomes[0].total, total)


def test_many_deaths_and_broken_links():
    """Every tenth frame kills its sender; links break now and then. The path and all numbers are the same."""
    graph, protocol, values = CASES["sum"]
    truth = WalkWorld(graph, protocol, values=values, seed=5).begin().run().outcomes[0].total
    for chaos in range(3):
        rng = np.random.default_rng([7, chaos])
        world = WalkWorld(graph, protocol, values=values, seed=5, patience=60.0)
        world.begin(lambda *_, rng=rng: "kill" if rng.random() < 0.1 else None)
        for _ in range(20):
            world.at(float(rng.uniform(0, 10)), world.cut, *rng.choice(5, 2, replace=False).tolist())
        world.run(until=2000.0)
        world.check(world.outcomes[0])
        np.testing.assert_array_equal(world.outcomes[0].total, truth)


def test_who_stays_away_is_skipped_and_nobody_is_counted_for_it():
    for seed in range(4):
        world = WalkWorld(graphs.complete(5), sums, values=VALUES, seed=seed, absent=1, attempts=1)
        gone = 4

        def watch(u, to, messages, world=world, gone=gone):
            """Party 4 dies for good as soon as the walk is about to begin: it has contributed."""
            contributed = any(isinstance(m, Item) and m.key.kind == ItemKind.CONTRIBUTION for m in messages)
            if u == gone and contributed and world.parties[gone] is not None:
                world.at(0.2, world.kill, gone)
            return

        paths, total = expected(world, 1, tuple(range(5)), away=(gone,))
        if paths[0][0] == gone:  # then there is no answer: nobody else may begin
            continue
        world.begin(watch).run(alive=range(4))
        came = {item[1] for gone_tokens in world.tokens.values() for item in gone_tokens}
        for u in range(4):
            world.check(world.outcomes[u])
        if gone not in came:  # it had no token while it lived
            np.testing.assert_array_equal(world.outcomes[0].total, total)
        told = world.parties[0].realised(1)
        assert told["most_skipped"] == (1 if told["skips"] else 0)


def test_a_party_that_vanishes_with_the_token_costs_an_attempt():
    world = WalkWorld(graphs.complete(5), sums, values=VALUES, seed=1, absent=1, attempts=2, lasts=2.0)
    gone = []

    def watch(u, to, messages):
        for message in messages:
            if isinstance(message, Item) and message.key.kind == ItemKind.TOKEN and not gone:
                gone.append(to)
                world.at(0.0, world.kill, to)  # it is on its way to it, and nobody else has it
        return

    world.begin(watch)
    while not gone:
        world.run(until=world.now + 0.05)
    alive = [u for u in range(5) if u not in gone]
    world.run(until=3000.0, alive=alive)
    roster = tuple(alive)
    for u in alive:
        answer = world.outcomes[u]
        world.check(answer)
        assert (answer.attempt, answer.roster) == (2, roster)
    _, total = expected(world, 2, roster)
    np.testing.assert_array_equal(world.outcomes[alive[0]].total, total)
    # fresh keys: no number of the first attempt is used again
    assert len({world.books[u].row(a, r)[0] for u in alive for a, r in ((1, tuple(range(5))), (2, roster))}) == 8


def test_without_absences_a_holder_waits():
    """Nobody is skipped that the study does not pay for: the attempt comes to nothing."""
    world = WalkWorld(graphs.complete(5), sums, values=VALUES, seed=2, lasts=1.0)

    def watch(u, to, messages):
        if u == 3 and any(isinstance(m, Item) and m.key.kind == ItemKind.CONTRIBUTION for m in messages):
            world.at(0.1, world.kill, 3)
        return

    world.begin(watch).run(until=3000.0, alive=[0, 1, 2, 4])
    assert all(isinstance(world.outcomes[u], Ended) for u in (0, 1, 2, 4))
    assert not any(world.parties[u].realised(1)["skipped"] for u in (0, 1, 2, 4))


# ── one party by itself ───────────────────────────────────────────────────────────────────────────────────────────────


class Book(dict):
    def once(self, attempt, place, body):
        return self.setdefault((attempt, place), body)

    def noted(self, attempt, place):
        return self.get((attempt, place))


def alone(protocol, me=1, book=None, key=bytes(32), **options):
    roster = tuple(range(protocol.n))
    load = load_of(protocol)
    row = load.row(np.array([0.5] if isinstance(protocol, WalkSum) else [0, 1, 0]))
    return (
        TokenWalk(load, Route(roster), 1, me, lambda: (key, row), Book() if book is None else book, **options),
        load,
        row,
    )


def token(load, author, index, numbers, most=0, skips=0):
    body = np.array(numbers, dtype="<i8").tobytes() + np.array([most, skips], dtype="<u4").tobytes()
    key = Key(ItemKind.TOKEN, 1, author, index)
    return {key: Item(key, body)}


NOW = Moment(0.0, frozenset(range(10)))


def test_an_offer_is_accepted_and_a_token_goes_to_whom_the_key_draws():
    walk, load, row = alone(sums())
    offer = Key(ItemKind.OFFER, 1, 0, 3)
    held = {offer: Item(offer, b"")}
    ((to, accept),) = walk.advance(held, NOW).addressed
    assert (to, accept.key) == (0, Key(ItemKind.ACCEPT, 1, 1, 3))
    held |= token(load, 0, 3, [100])
    t, numbers = 3, np.array([100])
    while (drawn := Route(tuple(range(5))).following(1, bytes(32), 0, t)) == 1:
        numbers, t = load.add(numbers, row, bytes(32), 0, t), t + 1
    ((to, asked),) = walk.advance(held, NOW).addressed
    assert (to, asked.key, asked.body) == (drawn, Key(ItemKind.OFFER, 1, 1, t + 1), b"")
    assert not walk.advance(held, NOW).addressed  # asked once
    yes = Key(ItemKind.ACCEPT, 1, drawn, t + 1)
    ((to, sent),) = walk.advance(held | {yes: Item(yes, b"")}, NOW).addressed
    assert (to, sent.key) == (drawn, Key(ItemKind.TOKEN, 1, 1, t + 1))
    np.testing.assert_array_equal(np.frombuffer(sent.body[:8], dtype="<i8"), load.add(numbers, row, bytes(32), 0, t))


def test_a_token_that_left_never_leaves_for_another():
    """The first process sent it to whom it drew; a later one, for which that one is away, sends the same bytes again."""
    book = Book()
    walk, load, _ = alone(sums(), book=book, allowance=2, wait=1.0)
    held = token(load, 0, 3, [100])
    moves = walk.advance(held, NOW)
    to, offer = moves.addressed[-1]
    yes = Key(ItemKind.ACCEPT, 1, to, offer.key.index)
    sent = walk.advance(held | {yes: Item(yes, b"")}, NOW).addressed
    again, *_ = alone(sums(), book=book, allowance=2, wait=1.0)
    for now in (0.0, 100.0, 200.0):  # nothing was heard again: neither the token nor the acceptance
        moves = again.advance({}, Moment(now, frozenset()))
        assert moves.addressed == (sent if now == 0.0 else [])


class Crash(Exception):
    pass


class Brittle(Book):
    """The process dies at the k-th write: before it is durable, or right after."""

    def __init__(self, k, *, after):
        super().__init__()
        self.left, self.after = k, after

    def once(self, attempt, place, body):
        self.left -= 1
        if self.left == 0 and not self.after:
            raise Crash
        found = super().once(attempt, place, body)
        if self.left == 0:
            raise Crash
        return found


@pytest.mark.parametrize("after", [False, True])
def test_a_death_at_any_write_says_the_same_in_the_end(after):
    """Two tokens come and are accepted onwards; whenever the process dies, the next one says what the first would have."""
    p = sums(tokens=2)

    def story(book):
        said, walk = set(), None
        held = {}
        events = [token(load_of(p), 0, 3, [100]), token(load_of(p), 4, STEPS + 7, [-5]), {}]
        while events or walk is None:
            try:
                walk = walk or alone(p, book=book)[0]
                if events:
                    held |= events[0]
                for _ in range(3):  # everybody who is asked accepts at once
                    for to, item in walk.advance(held, NOW).addressed:
                        if item.key.kind == ItemKind.OFFER:
                            key = Key(ItemKind.ACCEPT, 1, to, item.key.index)
                            held[key] = Item(key, b"")
                        elif item.key.kind == ItemKind.TOKEN:
                            said.add((to, item.key, item.body))
                events = events[1:]
            except Crash:
                walk = None
        return said

    whole = story(Book())
    assert len(whole) == 2
    for k in range(1, 6):
        assert story(Brittle(k, after=after)) == whole


def test_a_late_acceptance_of_somebody_who_was_skipped_changes_nothing():
    walk, load, _ = alone(sums(), allowance=1, wait=1.0)
    held = token(load, 0, 3, [0])
    first, offer = walk.advance(held, NOW).addressed[-1]
    assert walk.wake == 1.0
    moves = walk.advance(held, Moment(2.0, NOW.linked))
    assert walk.absent == {first}
    assert "goes to another" in moves.notes[0]
    late = Key(ItemKind.ACCEPT, 1, first, offer.key.index)
    moves = walk.advance(held | {late: Item(late, b"")}, Moment(3.0, NOW.linked))
    assert not any(item.key.kind == ItemKind.TOKEN and to == first for to, item in moves.addressed)


def test_nobody_is_skipped_while_more_are_away_than_was_paid_for():
    """Three of five away, one may be skipped: a token went to whoever was there with chance 0.35; certified is 1/(5 − 1)."""
    there, went = frozenset({0, 1}), 0
    for seed in range(600):
        key = hashlib.sha256(seed.to_bytes(8, "big")).digest()
        walk, load, _ = alone(sums(), me=0, key=key, allowance=1, wait=1.0)
        held = token(load, 1, 20, [0])
        for now in (0.0, 2.0, 4.0, 6.0):
            for to, item in walk.advance(held, Moment(now, there)).addressed:
                if item.key.kind == ItemKind.OFFER and item.key.index == 21 and to in there:
                    yes = Key(ItemKind.ACCEPT, 1, to, 21)
                    held[yes] = Item(yes, b"")
        assert not walk.absent
        went += Key(ItemKind.ACCEPT, 1, 1, 21) in held
    assert stats.binomtest(went, 600, 0.2).pvalue > 1e-9  # drawn at once, and 0.35 is refused:
    assert stats.binomtest(round(0.35 * 600), 600, 0.2).pvalue < 1e-9
    walk, load, _ = alone(sums(), me=0, allowance=1, wait=1.0)  # once only one is away, it is skipped
    held = token(load, 1, 3, [0])
    away = walk.advance(held, Moment(0.0, there)).addressed[-1][0]
    walk.advance(held, Moment(9.0, frozenset({0, 1})))
    assert not walk.absent
    walk.advance(held, Moment(10.0, frozenset(range(5)) - {away}))
    walk.advance(held, Moment(12.0, frozenset(range(5)) - {away}))
    assert walk.absent == {away}


def staying(step, onward):
    """A key with which party 1 keeps the token at this step, and passes it on at the next, or does not look further."""
    route = Route(tuple(range(5)))
    keys = (number.to_bytes(32, "big") for number in itertools.count())
    stays = lambda key, t: route.following(1, key, 0, t) == 1  # noqa: E731
    return next(key for key in keys if stays(key, step) and not (onward and stays(key, step + 1)))


def test_a_forged_token_after_a_restart_changes_nothing_that_was_said():
    """A token stayed here for a step; after a restart somebody forges a token of that very step, and it is heard first."""
    key, book = staying(3, onward=True), Book()
    walk, load, _ = alone(sums(), book=book, key=key)
    held = token(load, 0, 3, [100])
    to, offer = walk.advance(held, NOW).addressed[-1]
    yes = Key(ItemKind.ACCEPT, 1, to, offer.key.index)
    sent = walk.advance(held | {yes: Item(yes, b"")}, NOW).addressed
    again, *_ = alone(sums(), book=book, key=key)
    assert again.advance(token(load, 2, 4, [7777]), NOW).addressed == sent

    key, book = staying(STEPS - 2, onward=False), Book()
    walk, load, _ = alone(sums(), book=book, key=key)
    released = walk.advance(token(load, 0, STEPS - 2, [100]), NOW).published
    assert [place for place, _ in released] == [Key(ItemKind.TOTAL, 1, 1, 0)]
    again, *_ = alone(sums(), book=book, key=key)
    assert again.advance(token(load, 2, STEPS - 1, [7777]), NOW).published == released


def test_a_first_holder_that_comes_back_knows_that_it_was_visited():
    """Even if the contributions that made it the first holder do not come again."""
    p, book = sums(), Book()
    roster = tuple(range(5))
    bodies = [roster_digest(roster) + bytes([u] * KEY) for u in roster]
    held = {}
    for u in roster:
        contribution = Key(ItemKind.CONTRIBUTION, 1, u)
        held[contribution] = Item(contribution, bodies[u])
    first = Route(roster).start(start_seed(bodies), 0)
    walk, *_ = alone(p, me=first, book=book)
    (to, offer) = walk.advance(held, NOW).addressed[-1]
    yes = Key(ItemKind.ACCEPT, 1, to, offer.key.index)
    walk.advance(held | {yes: Item(yes, b"")}, NOW)
    assert walk.realised["visits"]
    again, *_ = alone(p, me=first, book=book)
    again.advance({}, NOW)
    assert again.realised["visits"] == walk.realised["visits"]


def test_skips_that_cannot_have_been_are_refused():
    """2³² − 1 of them and one more do not fit into what a token carries."""
    for skips, fits in ((3, True), (4, False), (2**32 - 1, False)):
        walk, load, _ = alone(sums(), allowance=1, wait=1.0)
        moves = walk.advance(token(load, 0, 3, [0], most=1, skips=skips), NOW)
        assert bool(moves.notes) != fits
        walk, load, _ = alone(sums(), allowance=1, wait=1.0)
        key = Key(ItemKind.TOTAL, 1, 0, 0)
        released = token(load, 0, 3, [0], most=1, skips=min(skips * 8, 2**32 - 1))[Key(ItemKind.TOKEN, 1, 0, 3)].body
        walk.advance({key: Item(key, released)}, NOW)
        assert (walk.answer is None) == (skips * 8 > STEPS - 1)


@pytest.mark.parametrize(
    ("index", "author", "numbers", "most"),
    [
        (0, 0, [0], 0),  # the first step is nobody's to hand over
        (STEPS, 0, [0], 0),  # there is one token only
        (10**6, 0, [0], 0),
        (3, 7, [0], 0),  # not in the roster
        (3, 0, [2**63 - 1], 0),
        (3, 0, [-(2**63)], 0),
        (3, 0, [0], 1),  # more skipped than the study pays for
    ],
)
def test_hostile_tokens_are_refused_and_nothing_is_added(index, author, numbers, most):
    walk, load, _ = alone(sums())
    moves = walk.advance(token(load, author, index, numbers, most, most), NOW)
    assert not moves.addressed
    assert not moves.published
    assert walk.realised["visits"] == []
    assert len(moves.notes) == 1
    assert walk.advance(token(load, author, index, numbers, most, most), NOW).notes == []


def test_numbers_that_nobody_can_have_added_up_to_are_refused():
    """After three visits of values in [−1, 1] with σ = 1 a token holds at most 3·(1 + 13) and a bit."""
    load = load_of(sums(), reach=1.0)
    assert load.fits(np.array([3 * 14 * 256]), 3)
    assert not load.fits(np.array([3 * 14 * 256 + 100]), 3)
    assert load_of(sums()).fits(np.array([2**61]), 3)


def test_counts_that_do_not_add_up_are_refused():
    p = WalkHistogram(5, STEPS, domain=3, gamma=0.5)
    for numbers, fits in (([1, 1, 1], True), ([2, 1, 1], False), ([4, 0, -1], False), ([1, 1, 0], False)):
        walk, load, _ = alone(p)
        moves = walk.advance(token(load, 0, 3, numbers), NOW)
        assert bool(moves.notes) != fits


def test_the_first_token_of_a_step_stands_and_forged_visits_end():
    walk, load, _ = alone(sums(), most=3)
    held = token(load, 0, 3, [100])
    walk.advance(held, NOW)
    before = list(walk.realised["visits"])
    moves = walk.advance(held | token(load, 2, 3, [999]), NOW)  # the same step from another
    assert not moves.addressed
    assert walk.realised["visits"] == before
    for number, index in enumerate(range(5, 20)):  # none of them is accepted by anybody yet: they wait here
        held |= token(load, 0, index, [number])
        moves = walk.advance(held, NOW)
    assert "more than chance brings" in moves.notes[0]
    assert len(walk._here) <= 3


def test_a_token_released_twice_gives_no_answer():
    walk, load, _ = alone(sums())
    held = {}
    for author in (0, 2):
        key = Key(ItemKind.TOTAL, 1, author, 0)
        held[key] = Item(key, token(load, 0, 3, [author])[Key(ItemKind.TOKEN, 1, 0, 3)].body)
    moves = walk.advance(held, NOW)
    assert walk.answer is None
    assert "somebody cheats" in moves.notes[0]


def test_an_attempt_that_was_given_up_gets_nothing_more():
    walk, load, _ = alone(sums())
    vote = Key(ItemKind.VOTE, 2, 1)
    moves = walk.advance({vote: Item(vote, b"")} | token(load, 0, 3, [1]), NOW)
    assert not moves.addressed
    assert walk.realised["visits"] == []


def test_thousands_of_steps_that_stay_here_are_one_loop():
    """With two parties half of all steps stay; a key whose first steps all stay is as good as a long one."""
    p = WalkSum(2, 1_500, sigma=1.0, grid=2.0**-8)
    walk, load, _ = alone(p, me=0)

    class Stays(Route):
        def following(self, holder, key, k, t, skipped=()):
            return holder

    walk._route = Stays((0, 1))
    moves = walk.advance(token(load, 1, 1, [0]), NOW)
    assert len(moves.published) == 1
    assert len(walk.realised["visits"]) == 1_499


# ── the law of the walk ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_law_of_what_peers_do_is_the_simulators():
    """Keys drawn anew again and again: visits and answers against `simulate`."""
    p, n, runs = sums(4), 4, 90
    load, route = load_of(p), Route((0, 1, 2, 3))
    rows = [load.row(np.array([value])) for value in (-1.0, 0.0, 0.5, 1.0)]
    rng = np.random.default_rng(11)
    moves, totals = np.zeros((n, n), dtype=int), []
    for _ in range(runs):
        keys = [rng.bytes(32) for _ in range(n)]
        paths, tokens = walked(load, route, keys, rows, [rng.bytes(64) for _ in range(n)])
        np.add.at(moves, (paths[0][:-1], paths[0][1:]), 1)
        totals.append(float(load.total(tokens, 1)[0]))
    assert stats.chisquare(moves.ravel()).pvalue > 1e-3
    simulated = [
        float(simulate(p.replace(sensitivity=2.0), np.array([-1.0, 0.0, 0.5, 1.0]), seed=seed).estimates[0, 0])
        for seed in range(runs)
    ]
    assert stats.ks_2samp(totals, simulated).pvalue > 1e-3


def test_metropolis_and_simple_moves_have_the_stated_chances():
    graph = graphs.star(4)
    for walk in ("metropolis", "simple"):
        p = GraphWalkSum(graph, 8, sigma=1.0, walk=walk)
        route, found = Route((0, 1, 2, 3), graph, walk), np.zeros((4, 4))
        for holder, t in itertools.product(range(4), range(1500)):
            found[holder, route.following(holder, bytes(32), 0, t)] += 1
        wanted = p.transition.toarray()
        assert (found[wanted == 0] == 0).all()
        for holder in range(4):
            some = wanted[holder] > 0
            if some.sum() > 1:
                assert stats.chisquare(found[holder, some], 1500 * wanted[holder, some]).pvalue > 1e-3
        starts = np.bincount([route.start(t.to_bytes(32, "big"), 0) for t in range(3000)], minlength=4)
        assert stats.chisquare(starts, 3000 * np.asarray(p.stationary)).pvalue > 1e-3


def test_skipping_leaves_the_rest_uniform():
    route, found = Route((0, 1, 2, 3, 4)), np.zeros(5)
    for t in range(3000):
        skipped = ()
        while (to := route.following(0, bytes(32), 0, t, skipped)) in (2, 4):
            skipped = (*skipped, to)
        found[to] += 1
    assert found[[2, 4]].sum() == 0
    assert stats.chisquare(found[[0, 1, 3]]).pvalue > 1e-3


# ── studies and whole peers ───────────────────────────────────────────────────────────────────────────────────────────

NAMES = tuple(f"p{u}" for u in range(5))
MEAN = {"kind": "mean", "column": "x", "bounds": (0.0, 4.0)}
COLOURS = {"kind": "histogram", "column": "x", "categories": ("r", "g", "b")}
HOURS = {"period": "h", "periods": ("1", "2", "3", "4")}
PROTOCOLS = {
    "walk-sum": {"sigma": 2.0, "grid": 2.0**-10, "steps": 20, "tokens": 2},
    "walk-histogram": {"gamma": 0.5, "steps": 20},
    "ring-histogram": {"gamma": 0.5, "rounds": 2},
}


def study_of(kind, graph="complete:5", privacy=None, task=None, **protocol):
    task = task or (MEAN if kind == "walk-sum" else COLOURS)
    return Study(
        name="w", task=task, privacy={"epsilon": 90.0, "delta": 1e-6, "colluders": 1} | (privacy or {}),
        protocol={"kind": kind, **PROTOCOLS[kind], **protocol}, network={"graph": graph},
        party=[{"name": name} for name in NAMES], timing={"gather": 20.0, "patience": 8.0},
    )  # fmt: skip


@pytest.fixture(scope="module")
def identities(tmp_path_factory):
    home = tmp_path_factory.mktemp("homes")
    return [Identity.create(home / name, name) for name in NAMES]


def run_peers(identities, draft, folder, data, absent=(), dies=None):
    """`dies`: (party, seconds after which it is gone for good)."""
    study = draft.complete(
        [one.card for one in identities], [f"127.0.0.1:{7001 + u}" for u in range(5)], nonce="1" * 32
    )
    stores = [Store.open(folder / f"{name}.db", sign=one.sign) for name, one in zip(NAMES, identities, strict=True)]
    each = [cell if study.task.values_each > 1 else [cell] for cell in data]
    rows = [
        study.task.rows([{"x": str(x), "h": h} for h, x in zip(HOURS["periods"], cells, strict=False)])
        for cells in each
    ]
    clock = VirtualClock()

    async def everybody():
        network = MemoryNetwork(5, clock, edges=study.graph.edges().tolist(), delay=0.01)
        peers = [
            Peer(one, study, store, row, lambda receiver, u=u: network.transport(u, receiver), clock=clock)
            for u, (one, store, row) in enumerate(zip(identities, stores, rows, strict=True))
            if u not in absent
        ]
        tasks = [asyncio.ensure_future(peer.run()) for peer in peers]
        if dies is not None:
            await clock.sleep(dies[1])
            tasks.pop(dies[0]).cancel()
        return await asyncio.gather(*tasks)

    there = [name for u, name in enumerate(NAMES) if u not in absent and (dies is None or u != dies[0])]
    told = dict(zip(there, clock.run(everybody()), strict=True))
    return study, told, stores


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("walk-sum", {}),
        ("walk-sum", {"walk": "metropolis", "graph": "ring:5", "closing": 5.0, "tokens": 1}),
        ("walk-histogram", {}),
        ("walk-sum", {"task": MEAN | HOURS}),
        ("walk-histogram", {"task": COLOURS | HOURS}),
    ],
    ids=["complete", "ring", "histogram", "values over time", "cells over time"],
)
def test_whole_peers_do_what_the_steps_say(identities, tmp_path, kind, options):
    data = range(5) if kind == "walk-sum" else "rgbrg"
    if "task" in options:
        data = [[data[(u + k) % 5] for k in range(4)] for u in range(5)]
    study, told, stores = run_peers(identities, study_of(kind, **options), tmp_path, data)
    assert all(one["ok"] for one in told.values()), told
    roster = tuple(range(5))
    p, load = study.protocol_of(roster), load_of(study.protocol_of(roster))
    secrets = [store.contribution(study.hash, 1).secret for store in stores]
    bodies = [store.contribution(study.hash, 1).body for store in stores]
    rows = [np.frombuffer(one[KEY:], dtype="<i8").astype(np.int64) for one in secrets]
    route = Route(roster, getattr(p, "graph", None), study.settings.walk)
    paths, tokens = walked(load, route, [one[:KEY] for one in secrets], rows, bodies)
    assert {tuple(one["total"]) for one in told.values()} == {tuple(load.total(tokens, 5).tolist())}
    assert len({one["digest"] for one in told.values()}) == 1
    assert not any(one["worse"] for one in told.values())
    found = walked_in(study, told)
    assert [path.tolist() for path in found.transcript.paths] == paths
    assert sum(found.visits) == p.steps * p.tokens
    assert found.skips == 0
    promised = study.running.promise(1).worst_epsilon(1e-6)
    for store, one, name in zip(stores, identities, NAMES, strict=True):
        assert store.verify(one.card).rows == 1
        assert told[name]["spent"]["epsilon"]["1"] == pytest.approx(promised, rel=0.02)
        store.close()
    if kind == "walk-sum":
        again = account(p, [0], transcript=found.transcript).epsilon(1e-6)
        np.testing.assert_allclose(found.epsilons[1:, 0], again[1:], rtol=1e-3)


def test_a_ring_of_counts_agrees_and_closes_over_who_is_missing(identities, tmp_path):
    study, told, stores = run_peers(identities, study_of("ring-histogram"), tmp_path, "rgbrg")
    assert all(one["ok"] for one in told.values()), told
    p = study.protocol()
    token = np.zeros(3, dtype=np.int64)
    for store in stores:
        for added in np.frombuffer(store.contribution(study.hash, 1).secret, dtype="<i8").reshape(2, 3):
            token = ring_add(token, added)
        store.close()
    assert token.sum() == 10 + p.blanket + p.closing_blanket
    counts = (token - (0.5 * 10 + p.blanket + p.closing_blanket) / 3) / 0.5 / 2
    np.testing.assert_allclose(told["p0"]["answer"]["counts"], counts, rtol=1e-12)
    (tmp_path / "again").mkdir()
    draft = study_of("ring-histogram", privacy={"absent": 1, "attempts": 2})
    study, told, stores = run_peers(identities, draft, tmp_path / "again", "rgbrg", absent=(2,))
    assert all(one["ok"] and one["roster"] == ["p0", "p1", "p3", "p4"] for one in told.values()), told
    for store in stores:
        store.close()


def test_a_walk_run_once_that_breaks_off_is_entered_with_its_path_told():
    """The secrecy of the path was counted; who vanished, and when, may tell of it."""
    running = study_of("walk-sum").running
    roster = tuple(range(5))
    broken = {"visits": [[0, 3]], "released": False}
    told = running.recomputed(1, roster, 0, broken)
    charged = running.loss(roster, 0)
    at = [ProfileCurve(**loss["curves"][loss["single"]["p1"]]).epsilon(1e-6) for loss in (charged, told)]
    assert at[0] <= at[1] * (1 + 1e-9)
    assert running.recomputed(1, roster, 0, broken | {"released": True}) is None
    assert running.recomputed(1, roster, 0, broken | {"visits": []}) is None  # nothing of it has left
    assert (
        study_of("walk-sum", privacy={"attempts": 2}).running.recomputed(1, roster, 0, broken) is None
    )  # told already


def test_who_was_visited_before_it_broke_off_says_so_loudly(identities, tmp_path):
    _, told, stores = run_peers(identities, study_of("walk-sum", steps=200), tmp_path, range(5), dies=(3, 2.0))
    assert not any(one["ok"] for one in told.values())
    assert any(one["worse"] == [1] for one in told.values())
    for name, store, one in zip(NAMES, stores, identities, strict=True):
        if name in told and told[name]["worse"]:
            assert store.verify(one.card).rows == 2  # what was charged before, and what it really cost
            assert [entry.attempt > 1 for entry in store.entries()] == [False, True]
        store.close()


def test_studies_say_what_does_not_fit():
    with pytest.raises(Exception, match="complete:5"):
        study_of("walk-sum", graph="ring:5")
    with pytest.raises(Exception, match="everybody must be there"):
        study_of("walk-sum", graph="ring:5", walk="metropolis", privacy={"absent": 1})
    with pytest.raises(Exception, match="here 1 to 4, so some would count more than"):
        study_of("walk-sum", graph="star:5", walk="simple", closing=5.0)
    assert study_of("walk-sum", graph="ring:5", walk="simple", closing=5.0).settings.walk == "simple"
    with pytest.raises(Exception, match="fewer than one visit"):
        study_of("walk-sum", steps=3)
    with pytest.raises(Exception, match="if 1 in between are missing"):
        study_of("ring-histogram", graph="ring:5", privacy={"absent": 1})
    with pytest.raises(Exception, match="answers histogram, table"):
        study_of("walk-histogram", task=MEAN)


def test_planned_noise_keeps_the_promise_and_less_would_not():
    task = Task(kind="mean", column="x", bounds=(0, 4))
    asked = {"graph": "complete:5", "epsilon": 2.0, "delta": 1e-6, "kind": "walk-sum", "steps": 20}
    study = Study.plan("w", task, NAMES, **asked, attempts=2, absent=1)
    assert 1.99 < study.check_promise() <= 2.0
    less = study.replace(settings={"sigma": study.settings.sigma * 0.99})
    assert less.running.worst_epsilon(1, 1e-6) > 2.0
    assert "skip more" in " ".join(study.running.promise(1).assumptions)
    strict = study.replace(privacy={"attempts": 1, "absent": 0})
    assert strict.running.worst_epsilon(1, 1e-6) < 0.75 * 2.0
    assert grid_for_walk(10.0, 100, 5.0, task, 1.0) <= 2.0**-8
    assert least_gamma(lambda gamma: gamma > 0.7) == 0.7001
