"""Randomized gossip by running parties: own clocks, deaths anywhere, hostile company (docs/proofs/gossip.md#dithered-exchanges)."""

import asyncio
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from netdp import graphs, simulate
from netdp.errors import InvalidValue, NetdpError, Refused
from netdp.families.gossip import simulate as simulated
from netdp.families.gossip.diary import Chance, Decision, Diary, What
from netdp.families.gossip.logs import ExchangeLogs
from netdp.families.gossip.peer_exchanges import learned_in
from netdp.families.gossip.peer_randomized import Pace
from netdp.families.gossip.protocol import LARGEST
from netdp.peers.identity import Identity
from netdp.peers.ledger.store import Store
from netdp.peers.messages import Item, ItemKind, Key, decode
from netdp.peers.outcome import UpResult
from netdp.peers.peer import Peer
from netdp.peers.spread import Moment
from netdp.peers.study import Study
from netdp.peers.study.task import Task
from netdp.peers.transport.memory import MemoryNetwork, VirtualClock
from netdp.protocols.accounting import account

_spec = importlib.util.spec_from_file_location("exchanges", Path(__file__).parent / "exchanges.py")
_exchanges = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_exchanges)
Exchanges, numbers = _exchanges.Exchanges, _exchanges.numbers

EVERYBODY = frozenset(range(10))


# ── parties among themselves ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("graph", [graphs.ring(5), graphs.complete(4), graphs.star(5), graphs.path(2)], ids=str)
def test_replayed_in_the_simulator_it_is_the_same_to_the_last_unit(graph):
    world = Exchanges(graph, wakes=8, dimension=2).start_all().run()
    logs, _ = world.check()
    assert (logs.torn, logs.missing) == ((), ())
    assert logs.exchanges > graph.n
    state, noises, events, _ = world.replayed(logs)
    # the same exchanges, the same noise, through the steps of the simulator
    order = [(e.party, e.hears.sender, e.hears.exchange) for e in events if e.sends is not None and e.hears is not None]
    edges = np.array([(u, w) for u, w, _ in order])
    per_send = {u: iter([x for v, x in noises if v == u]) for u in range(graph.n)}
    began, queue = set(), []
    for u, w in edges.tolist():
        for p in (u, w):
            if p in began:
                queue.append(next(per_send[p]))
            began.add(p)
    first = np.array([np.frombuffer(b.secret[32:], dtype="<i8") for b in world.books])
    assert logs.void == ()
    fresh = iter(queue)
    watch = simulated._Watch(graph.n, ())
    final = simulated.along(edges, first.astype(np.int64), lambda: next(fresh), simulated._halves, watch)
    np.testing.assert_array_equal(final, np.array([state[u] for u in range(graph.n)]))
    assert next(fresh, None) is None


def test_answers_are_distributed_as_in_the_simulator():
    graph = graphs.ring(3)
    errors, simulated_errors = [], []
    for seed in range(60):
        world = Exchanges(graph, wakes=3, seed=seed, sigma=2.0, refresh=1.0).start_all().run()
        mean = world.values.mean()
        errors += [world.outcomes[seed % 3].total[0] / 3 - mean]
        run = simulate(world.protocol, world.values, seed=seed)
        simulated_errors += [run.estimates[seed % 3, 0] - mean]
    assert stats.ks_2samp(errors, simulated_errors).pvalue > 1e-4
    assert np.std(errors) / np.std(simulated_errors) == pytest.approx(1.0, abs=0.4)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("send", range(1, 25, 2))
def test_a_death_at_any_send_changes_nothing_that_was_said(when, send):
    world = Exchanges(graphs.ring(4), wakes=5, seed=send)
    world.deaths = {1: [when, send, 0.7], 2: ["after", send + 3, 0.2]}
    world.start_all().run()
    logs, moved = world.check()
    assert set(world.outcomes) == {0, 1, 2, 3}
    assert not logs.torn  # who comes back gives the answer that it owes
    assert not moved.any()


def test_late_answers_are_added_and_nothing_of_the_sum_is_lost():
    """Deaths that last longer than anybody waits for an answer."""
    late = 0
    for seed in range(12):
        world = Exchanges(graphs.complete(4), wakes=8, seed=seed)
        world.deaths = {1: ["before", 4 + seed, 4.0], 3: ["after", 6 + seed, 4.0]}
        world.start_all().run()
        logs, moved = world.check()
        if not logs.torn:
            assert not moved.any()
        late += sum(event.late for event in logs.course[0])
        loss = account(world.protocol, [0], transcript=logs)
        assert loss.worst_epsilon(1e-6) <= account(world.protocol, [0]).worst_epsilon(1e-6) * (1 + 1e-9)
    assert late > 0


@pytest.mark.parametrize("when", ["before", "after"])
def test_it_goes_on_without_who_stays_away(when):
    torn = 0
    for send in range(1, 14):
        world = Exchanges(graphs.complete(4), wakes=5, seed=send)
        world.deaths = {2: [when, send, None]}
        world.start_all().run(alive=[0, 1, 3])
        world.final = {}
        spreads = {u: world.parties[u]._spreads[1] for u in (0, 1, 3)}
        assert all(world.outcomes[u].roster == (0, 1, 2, 3) for u in (0, 1, 3))
        if 2 not in world.outcomes:
            assert all(2 in spread.absent for spread in spreads.values())
        # what it wrote down and nobody got may be in its log only: without the log it is one of those who look
        logs = world.logs(but=[2])
        loss = account(world.protocol, [0], transcript=logs)
        assert loss.factor[2] == 1  # of itself no more is known than that its first value had noise
        assert loss.worst_epsilon(1e-6) <= account(world.protocol, [0]).worst_epsilon(1e-6) * (1 + 1e-9)
        torn += len(world.logs().torn)
    assert torn > 0 or when == "before"


def test_who_comes_back_takes_part_again():
    world = Exchanges(graphs.ring(4), wakes=30, seed=3)
    world.deaths = {1: ["before", 6, 3.0]}
    world.start_all().run()
    logs, _ = world.check()
    deeds = logs.deeds[1]
    assert len(deeds) > 12
    assert not logs.torn


@pytest.mark.parametrize("seed", range(20))
def test_any_schedule_of_deaths_and_broken_links(seed):
    rng = np.random.default_rng(seed)
    graph = [graphs.ring(5), graphs.complete(4), graphs.star(4)][seed % 3]
    world = Exchanges(graph, wakes=5, seed=seed).start_all()
    for u in range(graph.n):
        if rng.random() < 0.5:
            world.at(float(rng.uniform(0.1, 3)), world.kill, u, float(rng.choice([0.05, 0.5, 4.0])))
    for u, v in graph.edges().tolist():
        for when in rng.uniform(0, 3, rng.integers(0, 3)).tolist():
            world.at(when, world.cut, u, v, float(rng.choice([0.05, 0.5, 4.0])))
    world.run()
    logs, _ = world.check()
    assert logs.missing == ()
    again = account(world.protocol, [0], transcript=logs)
    assert again.worst_epsilon(1e-6) <= account(world.protocol, [0]).worst_epsilon(1e-6) * (1 + 1e-5)


def test_ties_and_busy_neighbours():
    """Everybody offers all the time: nobody waits for ever, and offers that cross are settled."""
    world = Exchanges(graphs.complete(5), wakes=12, seed=1)
    world.pace = Pace(0.001, answer=5.0, quiet=20.0)
    world.start_all().run(until=60.0)
    logs, _ = world.check()
    assert world.now < 20  # no answer was waited for until the end
    assert logs.exchanges > 10


def test_who_was_stopped_does_not_take_it_for_silence():
    one = Alone(wakes=1)
    one.go()
    one.go(after=1000.0)  # longer than anybody's patience, and nothing was heard
    assert one.spread.answer is None
    for _ in range(40):
        one.go(after=one.world.pace.quiet / 9)
    assert one.spread.answer is not None  # now it was looking all the time
    assert one.spread.absent == {0, 1, 2}


def test_who_found_neighbours_busy_says_so():
    """Everybody offers all the time, over links that are slower than the pace: the prediction is for offers taken up."""
    world = Exchanges(graphs.complete(5), wakes=12, seed=1)
    world.pace = Pace(0.001, answer=5.0, quiet=20.0)
    world.start_all().run(until=60.0)
    met = [sum(deed.what == "met" for deed in log) for log in world.logs().deeds.values()]
    said = [any("offers were taken up" in note for note in party.notes) for party in world.parties]
    assert said == [2 * count < 12 for count in met]
    assert any(said)


# ── one party against hostile company ─────────────────────────────────────────────────────────────────────────────────


class Alone:
    """One party, number 3 of 0 … 3, that hears what the test says."""

    def __init__(self, *, wakes=3, refresh=1.0):
        self.world = Exchanges(graphs.complete(4), wakes=wakes, refresh=refresh)
        self.book = self.world.books[3]
        self.book.contribute(1, (0, 1, 2, 3))
        self.spread, self.held, self.now, self.said = self.book.spread(1, (0, 1, 2, 3)), {}, 0.0, []

    def hear(self, kind, author, index=0, body=b"", after=0.0):
        key = Key(kind, 1, author, index)
        self.held.setdefault(key, Item(key, body))  # the party keeps the first of a key
        return self.go(after)

    def go(self, after=0.0):
        self.now += after
        moves = self.spread.advance(self.held, Moment(self.now, EVERYBODY))
        self.said += moves.addressed
        return [(to, item.key.kind, item.key.index, len(item.body)) for to, item in moves.addressed]

    @property
    def state(self):
        return self.spread.diary.state.tolist()


def test_two_processes_in_one_folder_stop():
    one = Alone()
    one.go()
    other = one.book.spread(1, (0, 1, 2, 3))
    other.advance({}, Moment(0.0, EVERYBODY))
    one.hear(ItemKind.OFFER, 0, 0)
    offer = {Key(ItemKind.OFFER, 1, 1): Item(Key(ItemKind.OFFER, 1, 1), b"")}
    with pytest.raises(NetdpError, match="two processes"):
        other.advance(offer, Moment(0.0, EVERYBODY))


def test_who_is_not_in_the_roster_has_no_part():
    one = Alone()
    outside = one.book.spread(2, (0, 1, 2))
    moves = outside.advance({}, Moment(0.0, EVERYBODY))
    assert (moves.addressed, moves.published, moves.waits, outside.answer) == ([], [], False, None)


def test_what_was_never_offered_or_asked_is_ignored():
    one = Alone()
    one.go()
    before = one.state
    for kind in (ItemKind.ACCEPT, ItemKind.STATE):
        for index in (0, 1, 2):
            assert one.hear(kind, 0, index, numbers(10**9)) == []
    assert one.state == before
    # an answer that was there before the offer was made counts as the answer, nothing worse
    offer = one.go(after=5.0)
    assert offer[0][1] == ItemKind.OFFER


def test_offers_are_answered_once_and_in_order():
    one = Alone(wakes=1)
    assert one.hear(ItemKind.OFFER, 0, 2) == [(0, ItemKind.ACCEPT, 2, 8)]
    assert one.hear(ItemKind.OFFER, 1, 0) == [(1, ItemKind.ACCEPT, 0, 0)]  # busy
    assert one.hear(ItemKind.OFFER, 0, 1) == []  # older than one that was answered
    assert one.hear(ItemKind.STATE, 0, 1, numbers(5)) == []  # not the one that was taken up
    assert one.hear(ItemKind.STATE, 1, 0, numbers(5)) == []
    before = one.state
    assert one.hear(ItemKind.STATE, 0, 2, numbers(before[0] + 10)) == []
    assert one.state == [before[0] + 5]
    assert one.hear(ItemKind.STATE, 0, 2, numbers(before[0] + 999)) == []  # again: nothing
    assert one.state == [before[0] + 5]
    assert one.spread.realised["deeds"] == [["accepted", 0, 2], ["heard", 0, 2]]


def test_who_does_not_answer_is_declined_until_it_does():
    one = Alone(wakes=1)
    one.go()
    one.spread._next = 1e9
    assert one.hear(ItemKind.OFFER, 0, 0) == [(0, ItemKind.ACCEPT, 0, 8)]
    assert one.go(after=one.world.pace.answer) == []  # not waited for any longer
    assert one.hear(ItemKind.OFFER, 0, 1) == [(0, ItemKind.ACCEPT, 1, 0)]
    assert one.hear(ItemKind.OFFER, 1, 0) == [(1, ItemKind.ACCEPT, 0, 8)]
    held = one.state[0]
    assert one.hear(ItemKind.STATE, 0, 0, numbers(one_sent(one, 0, 0) + 100)) == []  # late: half of the difference
    assert one.state == [held + 50]
    assert one.hear(ItemKind.STATE, 1, 0, b"") == []  # withdrawn
    assert one.state == [held + 50]
    assert one.hear(ItemKind.OFFER, 0, 2) == [(0, ItemKind.ACCEPT, 2, 8)]


def test_it_never_wants_to_be_woken_in_the_past():
    """All are through, but one that said so offers again and leaves us bound: we wait for the bond, without spinning."""
    one = Alone(wakes=1)
    one.go()
    one.spread.diary.offers = 1  # ours is spent
    one.hear(ItemKind.OFFER, 0, 0)
    one.go(after=one.world.pace.answer)  # not waited for any longer, and still unheard
    for other in (0, 1, 2):
        one.hear(ItemKind.THROUGH, other)
    one.go(after=0.9 * one.world.pace.answer)
    assert one.hear(ItemKind.OFFER, 1, 0) == [(1, ItemKind.ACCEPT, 0, 8)]
    one.go(after=0.2 * one.world.pace.answer)
    assert one.spread.answer is None
    assert one.spread.wake > one.now
    one.go(after=one.world.pace.answer)
    assert one.spread.answer is not None


def test_after_a_restart_it_says_again_what_was_never_answered():
    """Our state got lost on its way, then we declined, then we died: without it the two would decline each other for ever."""
    one = Alone(wakes=1)
    one.go()
    one.spread._next = 1e9
    assert one.hear(ItemKind.OFFER, 0, 0) == [(0, ItemKind.ACCEPT, 0, 8)]
    one.go(after=one.world.pace.answer)
    assert one.hear(ItemKind.OFFER, 0, 1) == [(0, ItemKind.ACCEPT, 1, 0)]
    before, one.said = {item.key: item.body for _, item in one.said}, []
    one.spread, one.held = one.book.spread(1, (0, 1, 2, 3)), {}
    assert sorted(one.go()) == [(0, ItemKind.ACCEPT, 0, 8), (0, ItemKind.ACCEPT, 1, 0)]
    assert {item.key: item.body for _, item in one.said} == before  # the same bytes
    assert one.hear(ItemKind.STATE, 0, 0, numbers(one_sent(one, 0, 0))) == []
    one.spread, one.held, one.said = one.book.spread(1, (0, 1, 2, 3)), {}, []
    assert one.go() == [(0, ItemKind.ACCEPT, 1, 0)]  # answered by now


def one_sent(one, to, index):
    return next(
        int.from_bytes(item.body, "little", signed=True)
        for other, item in one.said
        if other == to and item.key.kind == ItemKind.ACCEPT and item.key.index == index
    )


def test_huge_numbers_stop_nobody_and_never_leave():
    one = Alone(wakes=1, refresh=0.0)
    one.spread._pace = Pace(1e6, 1.0, 1e5)
    for index in range(3):
        assert one.hear(ItemKind.OFFER, 0, index)
        one.hear(ItemKind.STATE, 0, index, numbers(LARGEST))
    assert abs(one.state[0]) <= LARGEST
    # a late answer whose difference would go beyond: it is left out
    assert one.hear(ItemKind.OFFER, 1, 0) == [(1, ItemKind.ACCEPT, 0, 8)]
    one.go(after=2.0)
    for index in range(3, 60):
        if one.hear(ItemKind.OFFER, 0, index)[0][3]:
            one.hear(ItemKind.STATE, 0, index, numbers(LARGEST))
    before = one.state[0]
    one.spread.diary.unheard[1] = (0, np.array([-LARGEST]))  # as if it had sent something very small then
    one.hear(ItemKind.STATE, 1, 0, numbers(LARGEST))
    assert one.state[0] == before
    assert one.spread._is_large


def test_a_crossing_offer_of_a_smaller_number_stands():
    one = Alone(wakes=1)
    one.go()
    (offer,) = one.go(after=30.0)[:1] or one.go(after=30.0)[:1]
    to = offer[0]
    assert offer[1] == ItemKind.OFFER
    assert one.hear(ItemKind.OFFER, to, 0) == [(to, ItemKind.ACCEPT, 0, 8)]  # 3 is the largest number of all
    assert one.hear(ItemKind.ACCEPT, to, 0, b"") == []
    assert one.hear(ItemKind.STATE, to, 0, numbers(0)) == []
    assert one.spread.realised["deeds"] == [["accepted", to, 0], ["heard", to, 0]]


def test_noise_follows_from_the_whole_diary():
    def diary(*entries):
        one = Diary(0, 1, bytes(range(32)) + numbers(100), 2**20)
        said = [one.write(entry) for entry in entries]
        return one, [item.body for _, item in filter(None, said)]

    first = (Decision(What.ACCEPTED, 1, 0), Decision(What.HEARD, 1, 0, numbers(50)))
    _, said = diary(*first, Decision(What.ACCEPTED, 2, 0))
    _, same = diary(*first, Decision(What.ACCEPTED, 2, 0))
    assert said == same
    assert said[0] == numbers(100)  # the first send carries the noise that was drawn with the value
    _, different = diary(first[0], Decision(What.HEARD, 1, 0, numbers(51)), Decision(What.ACCEPTED, 2, 0))
    fresh = [int.from_bytes(s[-1], "little", signed=True) - 75 for s in (said, different)]
    assert fresh[0] != fresh[1]
    assert 1 < abs(fresh[0]) < 2**14
    chance = Chance(bytes(32))
    waits = [chance.wait(k) for k in range(2000)]
    assert np.mean(waits) == pytest.approx(1.0, abs=0.1)
    assert np.mean(np.square(waits)) == pytest.approx(2.0, abs=0.5)
    counts = np.bincount([chance.one_of([4, 7, 9], k) for k in range(3000)], minlength=10)
    assert stats.chisquare(counts[[4, 7, 9]]).pvalue > 1e-4


def test_a_diary_that_cannot_be_read_stops_the_party():
    for body in (b"", b"\x09" + bytes(8), b"x"):
        with pytest.raises(NetdpError, match="cannot be read"):
            Decision.from_bytes(body)


# ── whole peers ───────────────────────────────────────────────────────────────────────────────────────────────────────

NAMES = tuple(f"p{u}" for u in range(5))
TASK = Task(kind="mean", column="x", bounds=(0, 10))


def planned(**options):
    settings = {
        "graph": "ring:5",
        "epsilon": 1.0,
        "delta": 1e-6,
        "timing": {"gather": 30.0, "patience": 30.0},
    } | options
    return Study.plan("five", TASK, NAMES, kind="randomized-gossip", **settings)


def run_peers(home, *, away=(), **options):
    """Five whole peers on a virtual clock, but for those away: the study, what they told, what they wrote and entered."""
    ones = [Identity.create(home / name, name) for name in NAMES]
    study = planned(wakes=6, **options).complete(
        [one.card for one in ones], [f"127.0.0.1:{7001 + u}" for u in range(5)], nonce="1" * 32
    )
    here = [u for u in range(5) if u not in away]
    stores = {u: Store.open(home / f"{NAMES[u]}.db", sign=ones[u].sign) for u in here}
    clock = VirtualClock()

    async def everybody():
        network = MemoryNetwork(5, clock, edges=study.graph.edges().tolist(), delay=0.01)
        peers = [
            Peer(
                ones[u], study, stores[u], study.task.rows([{"x": str(u)}]),
                lambda receiver, u=u: network.transport(u, receiver), clock=clock, record=home / f"{u}.frames",
            )
            for u in here
        ]  # fmt: skip
        return await asyncio.gather(*(peer.run() for peer in peers))

    told = clock.run(everybody())
    secrets, kept = [], []
    for u, store in stores.items():
        entries = store.entries()
        secrets += [store.contribution(study.hash, entry.attempt).secret for entry in entries]
        kept.append([(entry.attempt, entry.loss) for entry in entries])
        assert store.verify(ones[u].card).rows == 1
        store.close()
    return study, told, secrets, kept, home


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    return run_peers(tmp_path_factory.mktemp("five"))


def test_who_never_comes_is_left_out_if_the_study_allows_it(tmp_path):
    study, told, _, kept, _ = run_peers(tmp_path, away=[4], absent=1)
    assert all(one["ok"] and one["roster"] == list(NAMES[:4]) for one in told)
    assert all(
        len(entries) == 1 and entries[0][0] == 2 for entries in kept
    )  # attempt 1 was given up before anybody drew
    found = learned_in(study, dict(zip(NAMES[:4], told, strict=True)))
    assert found.epsilons.shape == (4, 4)
    assert found.logs.missing == ()


def test_whole_peers_come_to_an_answer(ran):
    study, told, secrets, kept, home = ran
    assert all(one["ok"] for one in told)
    protocol = study.protocol()
    world = Exchanges(study.graph, wakes=6)
    for u, secret in enumerate(secrets):
        world.books[u].secret = secret
        for to, frame in frames(home / f"{u}.frames"):
            for message in decode(frame):
                if isinstance(message, Item) and message.key.kind in (ItemKind.ACCEPT, ItemKind.STATE):
                    world._note(u, to, message)
    logs = ExchangeLogs(5, {u: one["realised"]["deeds"] for u, one in enumerate(told)})
    state, noises, _, _ = world.replayed(logs)
    for u, one in enumerate(told):
        assert one["total"] == (state[u].astype(np.float64) * (protocol.step * 5)).tolist()
    assert len(noises) > 20
    deviation = np.sqrt(np.mean([float(x[0]) ** 2 for _, x in noises]) / protocol.fresh_variance)
    assert 0.4 < deviation < 1.8
    local = {"kind": "local", "share": protocol.start_variance, "distance": protocol.distance, "dimension": 1}
    assert kept == [[(1, local)]] * 5
    assert all(one["spent"]["epsilon"]["1"] <= 1.0 for one in told)


def frames(file):
    import struct

    data, at = file.read_bytes(), 0
    while at + 8 <= len(data):
        to, size = struct.unpack_from("<II", data, at)
        yield to, data[at + 8 : at + 8 + size]
        at += 8 + size


def test_what_single_parties_learned(ran):
    study, told, *_ = ran
    outcomes = {name: json.loads(json.dumps(one)) for name, one in zip(NAMES, told, strict=True)}
    found = learned_in(study, outcomes)
    assert found.logs.torn == ()
    assert found.epsilons.shape == (5, 5)
    assert np.nanmax(found.epsilons) <= study.promise().worst_epsilon(1e-6) * (1 + 1e-9)
    assert np.nanmin(found.epsilons) < 0.9
    assert found.by_distance[2][0] < found.by_distance[1][0] + 0.05
    assert len(found.transcript.exchanges()) == found.logs.exchanges
    fewer = learned_in(study, {name: one for name, one in outcomes.items() if name != "p4"})
    assert fewer.logs.missing == (4,)
    known = ~np.isnan(fewer.epsilons)
    assert (fewer.epsilons[known] >= found.epsilons[known] - 1e-5).all()
    assert fewer.epsilons[[0, 2], 4] == pytest.approx(study.promise().worst_epsilon(1e-6), rel=1e-3)
    single = learned_in(study, {"p0": outcomes["p0"]})  # all others failed
    assert (single.problem, single.logs.missing) == ("", (1, 2, 3, 4))
    assert np.nanmin(single.epsilons) == pytest.approx(study.promise().worst_epsilon(1e-6), rel=1e-3)
    lie = next(deed for deed in outcomes["p0"]["realised"]["deeds"] if deed[0] == "met")
    lie[2] += 10**6
    liar = learned_in(study, outcomes)
    assert "contradict" in liar.problem
    assert liar.epsilons is None
    assert learned_in(study, {}) is None


def test_the_transcript_of_a_run_holds_what_was_torn(ran):
    """As mere edges a torn exchange looks whole, and the loss too small: what is handed to the accountant are the logs."""
    study, told, *_ = ran
    outcomes = {name: json.loads(json.dumps(one)) for name, one in zip(NAMES, told, strict=True)}
    first = next(deed for deed in outcomes["p1"]["realised"]["deeds"] if deed[0] == "heard")
    outcomes["p1"]["realised"]["deeds"].remove(first)
    result = UpResult(study, outcomes, restarts={}, gone={}, notes=(), seconds={})
    loss = account(study.protocol(), [0], transcript=result.transcript)
    assert any("1 exchanges were torn" in text for text in loss.assumptions)


def test_bodies_that_no_honest_party_sends_are_illegible(ran):
    running, protocol = ran[0].running, ran[0].protocol()
    most = running.largest
    assert 16 * protocol.sigma < most * protocol.step < 100 * protocol.sigma
    legible = [
        (ItemKind.STATE, b""),
        (ItemKind.ACCEPT, numbers(-most)),
        (ItemKind.STATE, numbers(most)),
        (ItemKind.OFFER, b""),
    ]
    for kind, body in legible:
        assert running.is_legible(Item(Key(kind, 1, 0), body))
    for body in (b"\x00", numbers(1, 2), numbers(most + 1), numbers(LARGEST), numbers(-(2**63))):
        assert not running.is_legible(Item(Key(ItemKind.STATE, 1, 0), body))
        assert not running.is_legible(Item(Key(ItemKind.ACCEPT, 1, 0), body))
    assert running.longest()[ItemKind.OFFER] == running.longest()[ItemKind.THROUGH] == 0
    assert ItemKind.TOKEN not in running.longest()


def test_studies_are_planned_and_checked():
    study = planned()
    how = study.running.settings
    assert study.promise().worst_epsilon(1e-6) <= 1.0
    looser = study.replace(protocol=how.model_dump() | {"sigma": how.sigma * 0.99})
    with pytest.raises(Refused, match="more noise"):
        looser.check_promise()
    assert "go on without it" in " ".join(study.explain().split())
    assert planned(wakes=7, refresh=0.5, pace=0.1).running.settings.wakes == 7
    assert planned(graph="complete:5").running.settings.wakes < how.wakes
    with pytest.raises(InvalidValue, match="attempts"):
        planned(attempts=2)
    with pytest.raises(InvalidValue, match="not connected"):
        planned(absent=2)
    allowed = planned(absent=1)
    assert allowed.running.protocol_of((0, 1, 2, 4)).n == 4
    with pytest.raises(InvalidValue, match="pace"):
        planned(pace=5.0)
    with pytest.raises(InvalidValue, match="wakes"):
        planned(wakes=20_000)
