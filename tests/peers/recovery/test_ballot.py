"""One member's ballot: what it takes, what it says, and that members who hear each other agree: docs/proofs/peers.md#ballot."""

import heapq
import itertools
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp.errors import InvalidValue
from netdp.peers.recovery.ballot import NOTHING, Ballot, Choice, Lock, Phase

PREPARE, COMMIT = Phase


def digest(u, which=0):
    return bytes([u, which]) * 16


def choice(*members, which=0):
    return Choice.of({u: digest(u, which) for u in members})


# ── choices as bytes ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_choice_is_36_bytes_per_member_and_comes_back():
    for chosen in (NOTHING, choice(0, 2, 5), choice(*range(7))):
        body = chosen.to_bytes()
        assert len(body) == 36 * len(chosen.members)
        assert Choice.from_bytes(body, range(7), 3) == chosen


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"\0", "36 bytes for each of up to 4 members, got 1 bytes"),
        (choice(0, 1, 2).to_bytes()[:-1], "got 107 bytes"),
        (choice(*range(5)).to_bytes(), "up to 4 members, got 180 bytes"),
        (choice(1).to_bytes() + choice(0).to_bytes(), "in increasing order, got 1, 0"),
        (choice(1).to_bytes() * 2, "in increasing order, got 1, 1"),
        (choice(0, 1, 7).to_bytes(), "names 7, who are not in the roster 0, 1, 2, 3"),
        (choice(0).to_bytes(), "a choice of 1 contributions; it has at least 2, or none at all"),
        (b"\xff" * 72, "in increasing order"),
    ],
)
def test_what_is_no_choice_of_the_roster_is_refused(body, problem):
    with pytest.raises(InvalidValue, match=re.escape(problem)):
        Choice.from_bytes(body, range(4), 2)


@given(st.binary(max_size=200) | st.lists(st.sampled_from([choice(u).to_bytes() for u in range(6)])).map(b"".join))
def test_bytes_are_refused_or_are_those_of_the_choice(body):
    try:
        chosen = Choice.from_bytes(body, (0, 2, 3, 5), 2)
    except InvalidValue:
        return
    assert chosen.to_bytes() == body


@pytest.mark.parametrize("parts", [((0, b"short"),), ((1 << 32, bytes(32)),), ((-1, bytes(32)),)])
def test_a_choice_names_members_with_a_sha_256_each(parts):
    with pytest.raises(InvalidValue):
        Choice(parts)


# ── one member ────────────────────────────────────────────────────────────────────────────────────────────────────────

ALL, FEW = choice(0, 1, 2, 3), choice(0, 1, 2)


def ballot(me=0, n=4, threshold=3, fewest=3, unit=1.0):
    return Ballot(range(n), me, threshold, fewest, unit)


def hear_all(member, phase, number, chosen, *authors):
    for author in authors:
        member.hear(author, phase, number, chosen)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (((), 0, 1, 1), "got nobody"),
        (((1, 0), 0, 2, 1), "got 1, 0"),
        ((range(4), 0, 2, 1), "more than half of the 4 members and at most all of them, got 2"),
        ((range(4), 0, 5, 1), "got 5"),
        ((range(4), 0, 3, 5), "fewest must be at most 4"),
        ((range(4), 0, 3, 3, 0.0), "unit must be"),
    ],
)
def test_a_ballot_that_cannot_be_is_refused(arguments, problem):
    with pytest.raises(InvalidValue, match=problem):
        Ballot(*arguments)


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ((4, PREPARE, 1, ALL), "4 has no vote"),
        ((1, PREPARE, 0, ALL), "from 1 to 72, got 0 of member 1"),
        ((1, COMMIT, 73, ALL), "from 1 to 72, got 73 of member 1"),
        ((1, PREPARE, 1, choice(0, 1)), "at least 3"),
        ((1, PREPARE, 1, choice(0, 1, 9)), "not in the roster"),
    ],
)
def test_what_no_honest_member_says_is_refused(word, problem):
    with pytest.raises(InvalidValue, match=problem):
        ballot().hear(*word)


def test_agreement_of_all_takes_two_steps():
    member = ballot()
    assert member.wants(None, 0.0) == []
    assert member.wants(ALL, 0.0) == [(PREPARE, 1, ALL)]
    assert member.hear(0, PREPARE, 1, ALL)
    assert not member.hear(0, PREPARE, 1, ALL)
    assert member.wants(ALL, 0.0) == []
    hear_all(member, PREPARE, 1, ALL, 1, 2)
    assert member.certificate(1) == ALL
    assert member.wants(ALL, 0.1) == [(COMMIT, 1, ALL)]
    member.hear(0, COMMIT, 1, ALL)
    assert member.lock == Lock(1, ALL)
    hear_all(member, COMMIT, 1, ALL, 3)
    assert member.sealed is None
    assert member.seal() is None
    hear_all(member, COMMIT, 1, ALL, 2)
    assert member.sealed == ALL
    assert member.seal() == (1, ALL, (0, 2, 3), ())
    assert member.wants(ALL, 9.0) == []


def test_nothing_can_be_sealed_too():
    member = ballot()
    hear_all(member, COMMIT, 2, NOTHING, 1, 2, 3)
    assert member.sealed == NOTHING
    assert member.sealed is not None


def test_a_commit_needs_no_prepare_of_ones_own_and_bars_one():
    member = ballot()
    hear_all(member, PREPARE, 1, ALL, 1, 2, 3)
    assert member.wants(FEW, 0.0) == [(COMMIT, 1, ALL)]
    member.hear(0, COMMIT, 1, ALL)
    assert not member.may_prepare(1, ALL)


def test_a_lock_gives_way_to_a_younger_certificate_only():
    member = ballot()
    hear_all(member, PREPARE, 1, FEW, 1, 2, 3)
    hear_all(member, PREPARE, 2, ALL, 1, 2, 3)
    member.hear(0, COMMIT, 2, ALL)
    assert member.may_prepare(3, ALL)
    assert not member.may_prepare(3, FEW)  # its certificate is older
    assert not member.may_prepare(3, NOTHING)
    hear_all(member, PREPARE, 4, NOTHING, 1, 2, 3)
    assert not member.may_prepare(4, NOTHING)  # that is the certificate of this number itself
    assert member.may_prepare(5, NOTHING)
    assert member.may_commit(4, NOTHING)
    assert not member.may_commit(4, ALL)
    assert not member.may_commit(2, ALL)  # once


def test_nobody_commits_in_a_number_below_its_own():
    member = ballot()
    member.hear(0, PREPARE, 3, ALL)
    hear_all(member, PREPARE, 2, ALL, 1, 2, 3)
    assert not member.may_commit(2, ALL)
    assert not member.may_prepare(3, ALL)
    assert not member.may_prepare(2, ALL)


def test_who_said_two_things_counts_as_having_said_everything():
    member = ballot()
    hear_all(member, PREPARE, 1, ALL, 0, 1)
    hear_all(member, PREPARE, 1, FEW, 2, 3)
    assert member.certificate(1) is None
    assert not member.hear(3, PREPARE, 1, ALL)
    assert member.liars == {3}
    assert member.certificate(1) == ALL
    assert member.voters(PREPARE, 1, ALL) == (0, 1)
    hear_all(member, COMMIT, 1, ALL, 0, 1)
    assert member.seal() == (1, ALL, (0, 1), (3,))


def test_with_more_liars_than_it_bears_nothing_is_said():
    member = ballot()
    assert member.bearable == 1
    member.lied(1)
    assert member.wants(ALL, 0.0)
    member.lied(2)
    assert member.is_void
    assert member.wants(ALL, 0.0) == []
    assert not member.may_prepare(1, ALL)
    hear_all(member, COMMIT, 1, ALL, 0, 3)
    assert member.sealed is None


def test_who_is_no_member_only_listens():
    member = ballot(me=9)
    assert member.wants(ALL, 0.0) == []
    hear_all(member, COMMIT, 1, ALL, 1, 2, 3)
    assert member.sealed == ALL


def test_in_a_first_number_that_is_split_nobody_waits():
    member = ballot(me=1)
    hear_all(member, PREPARE, 1, ALL, 0, 1)
    hear_all(member, PREPARE, 1, FEW, 2)
    assert member.wants(ALL, 0.0) == []
    assert (member.number, member.wake) == (1, 1.0)
    member.hear(3, PREPARE, 1, FEW)
    assert member.wants(ALL, 0.5) == []
    assert (member.number, member.chair(2), member.wake) == (2, 0, 2.5)
    member.hear(0, PREPARE, 2, FEW)
    assert member.wants(ALL, 0.6) == [(PREPARE, 2, FEW)]  # it follows the chair, whose choice is in what it has


def test_the_chair_listens_first_and_then_speaks():
    member = ballot(me=0)
    hear_all(member, PREPARE, 1, ALL, 0, 1)
    hear_all(member, PREPARE, 1, FEW, 2, 3)
    assert member.wants(ALL, 0.0) == []
    assert (member.number, member.wake) == (2, 1.0)
    assert member.wants(ALL, 0.99) == []
    assert member.wants(ALL, 1.0) == [(PREPARE, 2, ALL)]


def test_nobody_leaves_a_number_before_enough_are_in_it():
    member = ballot(me=3)
    member.hear(3, PREPARE, 1, ALL)
    for now in (0.0, 10.0, 1000.0):
        assert member.wants(ALL, now) == []
        assert member.number == 1
    hear_all(member, PREPARE, 7, ALL, 1)
    assert member.wants(ALL, 1000.0) == []
    assert member.number == 1  # one may lie
    hear_all(member, PREPARE, 5, ALL, 2)
    assert member.wants(ALL, 1000.0) == []
    assert member.number == 5


def test_a_number_that_has_had_its_time_is_left_and_a_silent_chair_is_not_waited_for():
    member = ballot(me=3)
    hear_all(member, PREPARE, 1, ALL, 3, 1)
    hear_all(member, PREPARE, 1, FEW, 2)
    assert member.wants(ALL, 5.0) == []
    assert member.wants(ALL, 5.9) == []
    assert (member.number, member.wake) == (1, 6.0)
    assert member.wants(ALL, 6.0) == []
    assert (member.number, member.wake) == (2, 8.0)
    assert member.wants(ALL, 8.0) == [(PREPARE, 2, ALL)]


def test_nothing_of_a_past_number_is_committed_to():
    """Else a certificate held back would lock a member after its chair had listened."""
    member = ballot(me=3)
    hear_all(member, PREPARE, 1, ALL, 3, 1)
    hear_all(member, PREPARE, 1, FEW, 2)
    member.wants(ALL, 0.0)
    member.wants(ALL, 1.0)
    assert member.number == 2
    member.hear(0, PREPARE, 1, ALL)
    assert member.may_commit(1, ALL)
    assert member.wants(ALL, 1.0) == []


# ── many members, with a virtual clock ────────────────────────────────────────────────────────────────────────────────

DELAY = 0.25
"""What a message takes at most once the network is timely, if nothing else is said: a quarter of the unit."""


class World:
    """n members; the last `liars` of them say what they like. From `timely` on all that an honest one holds reaches all.

    Honest ones pass everything on. They have contributions of their own, deadlines of their own, and clocks of their own;
    they die and come back with what was durable.
    """

    def __init__(self, n, threshold, liars, silent, seed, timely, rules=Ballot, reveals=True, loss=0.5, delay=DELAY):
        self.random = random.Random(seed)
        self.n, self.threshold, self.timely, self.rules, self.loss, self.delay = (
            n,
            threshold,
            timely,
            rules,
            loss,
            delay,
        )
        self.fewest = max(1, n - liars - silent)
        self.honest = list(range(n - liars - silent))
        self.lying = list(range(n - liars, n))
        self.reveals = reveals
        self.now, self._events, self._order = 0.0, [], itertools.count()
        self.durable = {i: [] for i in self.honest}
        self.grounds = {i: [] for i in self.honest}  # what its commits rest on, as durable as they are
        self.held = {i: {} for i in self.honest}
        self.variants = {i: set() for i in self.honest}
        self.contributions = {i: {i: digest(i)} for i in self.honest}
        self.cheats = {i: set() for i in self.honest}
        self.deadline = {i: self.random.uniform(0, 5) for i in self.honest}
        self.drift = {i: self.random.uniform(-100, 100) for i in self.honest}
        self.dead, self.seals, self.restarts = set(), {}, 0
        self.members = {i: self._fresh(i) for i in self.honest}
        self.numbers = dict.fromkeys(self.honest, 0)

    def _fresh(self, i):
        member = self.rules(range(self.n), i, self.threshold, self.fewest)
        for word in self.durable[i]:
            member.hear(i, *word)
        return member

    # ── time and network

    def later(self, delay, do, *arguments):
        heapq.heappush(self._events, (self.now + delay, next(self._order), do, arguments))

    def send(self, to, do, *arguments):
        """Lost or late before the network is timely; but honest ones keep saying what they hold, so it comes in the end."""
        if self.now >= self.timely:
            self.later(self.random.uniform(0, self.delay), do, to, *arguments)
        elif self.random.random() < self.loss:
            self.later(self.timely - self.now + self.random.uniform(0, self.delay), do, to, *arguments)
        else:
            self.later(self.random.expovariate(1.0), do, to, *arguments)

    def to_all(self, do, *arguments):
        for i in self.honest:
            self.send(i, do, *arguments)

    # ── honest members

    def view(self, i):
        got = {u: body for u, body in self.contributions[i].items() if u not in self.cheats[i]}
        if len(got) == self.n:
            return Choice.of(got)
        if self.now < self.deadline[i]:
            return None
        return Choice.of(got) if len(got) >= self.fewest else NOTHING

    def contributed(self, i, author, body):
        first = self.contributions[i].setdefault(author, body)
        if first == body and (author, body) not in self.variants[i]:
            self.variants[i].add((author, body))
            self.to_all(self.contributed, author, body)
        elif first != body:
            self.proved(i, author)
        self.step(i)

    def proved(self, i, author):
        """Evidence that somebody said two things, which is passed on."""
        if author not in self.cheats[i]:
            self.cheats[i].add(author)
            self.members[i].lied(author)
            self.to_all(self.proved, author)
            self.step(i)

    def heard(self, i, author, *word):
        if i in self.dead:
            self.send(i, self.heard, author, *word)
            return
        member = self.members[i]
        new = member.hear(author, *word)
        if new:
            self.held[i][author, word[0], word[1]] = word[2]
            self.to_all(self.heard, author, *word)
        for liar in sorted(member.liars - self.cheats[i]):
            self.proved(i, liar)
        self.step(i)

    def step(self, i):
        if i in self.dead:
            return
        member, clock = self.members[i], self.now + self.drift[i]
        member.wants(None, clock)
        if member.number != self.numbers[i]:
            self.numbers[i] = member.number
            self.attack(i)
        while wanted := member.wants(self.view(i), clock):
            ((phase, number, chosen),) = wanted
            assert (member.may_prepare if phase == PREPARE else member.may_commit)(number, chosen)
            self.durable[i].append(wanted[0])
            if phase == COMMIT:
                self.grounds[i] += [
                    (author, PREPARE, number, chosen) for author in member.voters(PREPARE, number, chosen)
                ]
            if self.now < self.timely and self.random.random() < 0.05:
                self.die(i)
                return
            member.hear(i, *wanted[0])
            self.held[i][i, phase, number] = chosen
            self.to_all(self.heard, i, *wanted[0])
            if phase == COMMIT:  # what its certificate is made of is shown also to those who hold something else
                for author in member.voters(PREPARE, number, chosen):
                    self.to_all(self.heard, author, PREPARE, number, chosen)
        if member.wake < float("inf"):
            self.later(max(1e-9, member.wake - clock), self.step, i)
        if member.sealed is not None:
            self.seals.setdefault(i, member.seal())

    def die(self, i):
        self.dead.add(i)
        self.restarts += 1
        self.later(self.random.expovariate(0.5), self.rise, i)

    def rise(self, i):
        self.dead.discard(i)
        self.held[i] = {}
        self.members[i] = member = self._fresh(i)
        for author in self.cheats[i]:
            member.lied(author)
        words = [(i, *word) for word in self.durable[i]] + self.grounds[i]
        for author, phase, number, chosen in words:
            member.hear(author, phase, number, chosen)
            self.held[i][author, phase, number] = chosen
            self.to_all(self.heard, author, phase, number, chosen)
        for j in self.honest:  # all else is forgotten; others say what they hold
            for (author, phase, number), chosen in self.held[j].items() if j != i else ():
                self.send(i, self.heard, author, phase, number, chosen)
        self.step(i)

    # ── those who lie

    def attack(self, i):
        """Somebody enters a number: show it, and it alone, a certificate that no one knew of."""
        if not self.reveals or self.random.random() < 0.4:
            return
        hidden = [
            (number, chosen)
            for number in range(1, self.numbers[i])
            for chosen in {
                word for j in self.honest for (_, p, k), word in self.held[j].items() if (p, k) == (1, number)
            }
            if self.members[i].certificate(number) is None
        ]
        if hidden:
            number, chosen = max(hidden, key=lambda entry: entry[0])
            for liar in self.lying:
                self.heard(i, liar, PREPARE, number, chosen)
            for j in self.honest:  # the network is theirs, too
                if self.held[j].get((j, PREPARE, number)) == chosen:
                    self.heard(i, j, PREPARE, number, chosen)

    def babble(self):
        """Anything, to anybody."""
        if not self.lying or len(self.seals) == len(self.honest):
            return
        self.later(self.random.expovariate(1.0), self.babble)
        liar, to = self.random.choice(self.lying), self.random.choice(self.honest)
        if to in self.dead:
            return
        if self.random.random() < 0.2:
            self.contributed(to, liar, digest(liar, self.random.randrange(2)))
            return
        known = {word for i in self.honest for word in self.held[i].values()}
        words = sorted(known | {NOTHING}, key=Choice.to_bytes)
        number = max(1, min(self.members[to].most, self.members[to].number + self.random.randint(-2, 2)))
        self.heard(to, liar, self.random.choice(list(Phase)), number, self.random.choice(words))

    def run(self, until):
        for i in self.honest:
            self.to_all(self.contributed, i, digest(i))
            self.later(self.deadline[i], self.step, i)
            self.step(i)
        self.babble()
        while self._events and len(self.seals) < len(self.honest):
            self.now, _, do, arguments = heapq.heappop(self._events)
            if self.now > until:
                break
            do(*arguments)
            assert len({seal.choice for seal in self.seals.values()}) <= 1
        return self


def sizes(draw):
    n = draw(st.integers(4, 7))
    liars = draw(st.integers(0, (n - 1) // 3))
    least, largest = (n + liars) // 2 + 1, n - liars
    threshold = draw(st.integers(least, largest))
    return n, threshold, liars, draw(st.integers(0, n - liars - threshold))


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(0, 1 << 32), st.floats(0, 40), st.booleans(), st.sampled_from([DELAY, 2.0]))
def test_one_choice_is_sealed_by_all_once_messages_are_timely(data, seed, timely, reveals, delay):
    """Also if messages take eight times as long as was thought: numbers grow."""
    n, threshold, liars, silent = sizes(data.draw)
    world = World(n, threshold, liars, silent, seed, timely, reveals=reveals, delay=delay).run(timely + 2000)
    assert sorted(world.seals) == world.honest
    (sealed,) = {seal.choice for seal in world.seals.values()}
    assert not sealed or len(sealed.members) >= world.fewest
    assert max(world.numbers.values()) < world.members[0].most


# ── what the policy is for: attacks that go on for ever without it ────────────────────────────────────────────────────


class Attacked(World):
    """Four members with threshold 3, one of whom lies; the network is timely throughout, and held by the liar.

    Views are what they are: members 0 and 1 begin with nothing, and have all contributions of honest members once number 1
    is over; member 2 has them at once.
    """

    LIAR = 3

    def __init__(self, rules, seed=1):
        super().__init__(4, 3, 1, 0, seed, 0.0, rules)

    def view(self, i):
        return NOTHING if i < 2 and self.members[i].number == 1 else FEW

    def babble(self):
        pass

    def attack(self, i):
        pass

    def show(self, i, number, chosen):
        """The liar's word that completes a certificate, to one member alone; honest ones' words arrive in time for it."""
        for author in (*self.honest, self.LIAR):
            if author == self.LIAR or self.held[author].get((author, PREPARE, number)) == chosen:
                self.members[i].hear(author, PREPARE, number, chosen)
                self.held[i][author, PREPARE, number] = chosen
                self.to_all(self.heard, author, PREPARE, number, chosen)

    def hidden(self, i, below):
        """The youngest choice that lacks the liar's word alone, in a number below this one."""
        member = self.members[i]
        for number in range(below - 1, 0, -1):
            said = [self.held[j].get((j, PREPARE, number)) for j in self.honest]
            for chosen in said:
                if chosen is not None and said.count(chosen) == 2 and member.certificate(number) is None:
                    return number, chosen
        return None


class Apart(Attacked):
    """Whoever enters a number last is shown a certificate that the others, who have spoken there, do not know."""

    def attack(self, i):
        number = self.numbers[i]
        if all(self.numbers[j] >= number for j in self.honest) and (hidden := self.hidden(i, number)):
            self.show(i, *hidden)


class Overtaken(Attacked):
    """Somebody is shown a certificate of the number before, when the chair has spoken and its word is on its way."""

    def heard(self, i, author, *word):
        phase, number, _ = word
        member = self.members[i]
        victim = 2 if author != 2 else 1
        led = author == member.chair(number) and (author, phase, number) not in self.held[i]
        if led and (i, phase, member.number) == (victim, PREPARE, number):
            if self.members[3 - victim - author].entered < number:
                self.later(0.01, self.heard, i, author, *word)
                return
            self.show_hidden(i)
        super().heard(i, author, *word)

    def step(self, i):
        number = self.members[i].number
        others = [j for j in self.honest if j != i]
        if self.members[i].chair(number) == self.LIAR and all(self.members[j].entered >= number for j in others):
            self.show_hidden(i)
        super().step(i)

    def show_hidden(self, i):
        member = self.members[i]
        if member.entered < member.number and (hidden := self.hidden(i, member.number)):
            self.show(i, *hidden)


class TwoFaced(Attacked):
    """It says one thing to member 0, who is locked by that, and first another thing to all others."""

    def run(self, until):
        for i in self.honest:
            self.heard(i, self.LIAR, PREPARE, 1, FEW if i else NOTHING)
        return super().run(until)


class NoChairs(Ballot):
    def chair(self, number):
        return None


class Forgiving(Ballot):
    def lied(self, author):
        pass


class Eager(Ballot):
    """Commits to whatever the rules of safety allow, in past numbers too."""

    def wants(self, view, now):
        for number in sorted(self._certified):
            if self._seal is None and self.may_commit(number, self._certified[number]):
                return [(COMMIT, number, self._certified[number])]
        return super().wants(view, now)


@pytest.mark.parametrize(("attack", "without"), [(Apart, NoChairs), (Overtaken, Eager), (TwoFaced, Forgiving)])
def test_each_part_of_the_policy_ends_an_attack(attack, without):
    for seed in range(10):
        world = attack(Ballot, seed).run(1e5)
        assert sorted(world.seals) == world.honest
        assert max(world.numbers.values()) <= 5
    world = attack(without).run(1e5)
    assert world.seals == {}
    assert set(world.numbers.values()) == {world.members[0].most}  # it lasted as long as there were numbers


def test_a_chair_cannot_lead_to_contributions_that_nobody_has():
    for led, follows in [(choice(0, 1, 2, which=1), False), (NOTHING, False), (FEW, True), (ALL, True)]:
        member = ballot(me=3)
        hear_all(member, PREPARE, 1, ALL, 3, 1)
        hear_all(member, PREPARE, 1, FEW, 0, 2)
        assert member.wants(ALL, 0.0) == []
        member.hear(0, PREPARE, 2, led)
        assert member.wants(ALL, 0.1) == ([(PREPARE, 2, led)] if follows else [])
        assert member.wants(ALL, 2.0) == [(PREPARE, 2, led if follows else ALL)]
    member = ballot(me=3)
    hear_all(member, PREPARE, 1, NOTHING, 0, 1, 2)
    hear_all(member, PREPARE, 2, FEW, 1)
    hear_all(member, PREPARE, 2, NOTHING, 0)
    assert member.wants(None, 0.0) == [(PREPARE, 2, NOTHING)]  # of a certificate: somebody honest has what it names
