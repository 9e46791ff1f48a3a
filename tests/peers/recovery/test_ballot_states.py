"""All that a ballot of few members can come to, by the rules themselves: docs/proofs/peers.md#ballot.

A state is what each honest member has said so far. Members that lie have said everything, to everybody, at any time; the
network delivers whatever subset it likes. So an honest member may do next whatever `Ballot.may_prepare` and
`Ballot.may_commit` allow for *some* set of words that it can have heard. Neither policy nor clock restricts it.
Members are interchangeable, and so are choices; states that differ by that alone are searched once.
"""

from functools import cache
from itertools import permutations, product

import pytest

from netdp.peers.recovery.ballot import NOTHING, Ballot, Choice, Phase

MUTE = -1


def choices(n, many):
    """Nothing, and that many more."""
    whole = {u: bytes([u]) * 32 for u in range(n)}
    return [NOTHING, *(Choice.of({u: digest for u, digest in whole.items() if u != out}) for out in range(many))]


class Search:
    """Of n members c lie; `threshold` equal words count; `values` choices, numbers 1 to `numbers`."""

    def __init__(self, n, c, threshold, values, numbers, rules=Ballot):
        self.n, self.c, self.threshold, self.numbers, self.rules = n, c, threshold, numbers, rules
        self.values = choices(n, values - 1)
        self.enabled = cache(self._enabled)
        self.moves = cache(self._moves)
        self.names = list(permutations(range(values)))
        self.members, self._ids = [], {}
        self.renamed = cache(
            lambda i, name: self.id(tuple(tuple(v if v == MUTE else name[v] for v in row) for row in self.members[i]))
        )
        self.asked = 0
        self.asked_cases = set()

    def id(self, member):
        """A whole number for what a member has said."""
        if member not in self._ids:
            self._ids[member] = len(self.members)
            self.members.append(member)
        return self._ids[member]

    def available(self, state, phase):
        """Of each number, the choices for which `threshold` equal words can be shown, with those of all who lie."""
        found = []
        rows = [self.members[i][phase] for i in state]
        for said in zip(*rows, strict=True):
            found.append(tuple(v for v in sorted(set(said)) if v != MUTE and said.count(v) + self.c >= self.threshold))
        return tuple(found)

    def _moves(self, i, certified):
        """What this member may be after its next word."""
        member = self.members[i]
        self.asked_cases.add((member, certified))
        return [self.id(said(member, act)) for act in sorted(self.enabled(member, certified))]

    def _enabled(self, member, available):
        """What this member may say next, if it heard the right things."""
        found = set()
        for known in product(*((MUTE, *options) for options in available)):
            ballot = self._ballot(member, known)
            if ballot is None:
                continue
            for k, v in product(range(self.numbers), range(len(self.values))):
                self.asked += 1
                if ballot.may_prepare(k + 1, self.values[v]):
                    found.add((0, k, v))
                if ballot.may_commit(k + 1, self.values[v]):
                    found.add((1, k, v))
        return frozenset(found)

    def _ballot(self, member, known):
        """The real object, after its own words and those that make these certificates known."""
        ballot = self.rules(range(self.n), 0, self.threshold, 1)
        for phase in Phase:
            for k, v in enumerate(member[phase - 1]):
                if v != MUTE:
                    ballot.hear(0, phase, k + 1, self.values[v])
        for k, v in enumerate(known):
            if v != MUTE:
                for author in range(1, min(self.n, 1 + self.threshold)):
                    ballot.hear(author, Phase.PREPARE, k + 1, self.values[v])
                if ballot.certificate(k + 1) != self.values[v]:
                    return None  # all others said it, and it takes this member, too
        return ballot

    def canonical(self, state):
        """One of all states that are the same but for names."""
        return min(tuple(sorted([self.renamed(i, name) for i in state])) for name in self.names)

    def is_local(self):
        """Whether what a member may say in a number follows from certificates of that number and lower ones, and of its own
        words: true of the rules if it is so in every case that the search came upon."""
        return self.asked_cases and all(
            {act for act in self.enabled(member, known) if act[1] <= k}
            == {act for act in self.enabled(member, (*known[: k + 1], *[()] * (self.numbers - k - 1))) if act[1] <= k}
            for member, known in list(self.asked_cases)
            for k in range(self.numbers)
        )

    def is_forgetful(self):
        """Whether, of what a member said, only its highest commit and its words of its highest number matter to what it may
        say in that number and above, in every case that the search came upon."""
        return all(
            {act for act in self.enabled(member, known) if act[1] >= level(member)}
            == {act for act in self.enabled(recent(member), known) if act[1] >= level(member)}
            for member, known in list(self.asked_cases)
        )

    def run(self):
        """How many states there are, and one with two seals, or None."""
        nothing = (MUTE,) * self.numbers
        start = (self.id((nothing, nothing)),) * (self.n - self.c)
        seen, todo = {start}, [start]
        while todo:
            state = todo.pop()
            if len({v for options in self.available(state, 1) for v in options}) > 1:
                return len(seen), [self.members[i] for i in state]
            certified = self.available(state, 0)
            for place, i in enumerate(state):
                if place and i == state[place - 1]:
                    continue
                for j in self.moves(i, certified):
                    after = self.canonical((*state[:place], j, *state[place + 1 :]))
                    if after not in seen:
                        seen.add(after)
                        todo.append(after)
        return len(seen), None


class Levels(Search):
    """The same for more members, number by number.

    Members speak in rising numbers, and what one may say in a number follows from certificates of that number and lower ones
    (`is_local`). So the words of any run may be put in the order of their numbers. Then of all numbers that are over only the
    certificates, the seals and each member's lock matter (`is_forgetful`). Both are tested of the rules.
    """

    def run(self):
        """How many states there are, and one with two seals, or None."""
        nothing = (MUTE,) * self.numbers
        start = ((), (), (self.id((nothing, nothing)),) * (self.n - self.c))
        seen, todo = {start}, [start]
        while todo:
            state = todo.pop()
            over, seals, members = state
            now = len(over)
            certified, sealed = (self.available(members, phase) for phase in (0, 1))
            if len({*seals, *sealed[now]}) > 1:
                return len(seen), state
            known = (*over, certified[now], *[()] * (self.numbers - now - 1))
            for after in self._next(known, seals, sealed, members, now):
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
        return len(seen), None

    def _moves(self, i, certified):
        now = max((k for k, options in enumerate(certified) if options is not None), default=0)
        known = tuple(options or () for options in certified)
        member = self.members[i]
        return [self.id(said(member, act)) for act in sorted(self.enabled(member, known)) if act[1] == now]

    def _next(self, known, seals, sealed, members, now):
        told = (*known[: now + 1], *[None] * (self.numbers - now - 1))
        for place, i in enumerate(members):
            if place and i == members[place - 1]:
                continue
            for j in self.moves(i, told):
                yield self._named(known[:now], seals, (*members[:place], j, *members[place + 1 :]))
        if now + 1 < self.numbers:
            forgotten = tuple(self.id(locked(self.members[i])) for i in members)
            yield self._named(known[: now + 1], {*seals, *sealed[now]}, forgotten)

    def _named(self, over, seals, members):
        return min(
            (
                tuple(tuple(sorted(name[v] for v in options)) for options in over),
                tuple(sorted(name[v] for v in seals)),
                tuple(sorted([self.renamed(i, name) for i in members])),
            )
            for name in self.names
        )


def said(member, act):
    """A member after one more word."""
    phase, k, v = act
    rows = list(member)
    rows[phase] = (*rows[phase][:k], v, *rows[phase][k + 1 :])
    return tuple(rows)


def level(member):
    """The highest number in which it said anything."""
    return max((k for row in member for k, v in enumerate(row) if v != MUTE), default=0)


def locked(member):
    """A member that said nothing but its highest commit."""
    prepared, committed = member
    lock = max((k for k, v in enumerate(committed) if v != MUTE), default=-1)
    return (MUTE,) * len(prepared), tuple(v if k == lock else MUTE for k, v in enumerate(committed))


def recent(member):
    """A member that said nothing but its highest commit and its prepare of its highest number."""
    top = level(member)
    return tuple(v if k == top else MUTE for k, v in enumerate(member[0])), locked(member)[1]


@pytest.mark.parametrize(
    ("n", "c", "threshold", "values", "numbers"), [(4, 1, 3, 2, 3), (4, 1, 3, 3, 2), (5, 1, 4, 2, 3), (6, 1, 4, 2, 2)]
)
def test_at_most_one_choice_is_ever_sealed(n, c, threshold, values, numbers):
    """Every state, in any order; and what the search number by number leaves out does not matter."""
    search = Search(n, c, threshold, values, numbers)
    states, two = search.run()
    print(f"n = {n}, c = {c}, t = {threshold}: {states:,} states, {search.asked:,} questions")
    assert two is None
    assert states > 800
    assert search.is_local()
    assert search.is_forgetful()
    assert Levels(n, c, threshold, values, numbers).run()[1] is None


@pytest.mark.parametrize(("n", "c"), [(4, 2), (4, 1), (5, 2), (6, 3)])
def test_at_most_one_choice_is_ever_sealed_if_it_takes_all_words(n, c):
    assert Search(n, c, n, 2, 3).run()[1] is None


SIZES = [(n, c, t) for n in (4, 5, 6) for c in (0, 1, 2) for t in range(n // 2 + 1, n) if 2 * t > n + c]


@pytest.mark.parametrize(("n", "c", "threshold"), SIZES)
@pytest.mark.parametrize(("values", "numbers"), [(2, 3), (3, 3)])
def test_at_most_one_choice_is_ever_sealed_number_by_number(n, c, threshold, values, numbers):
    search = Levels(n, c, threshold, values, numbers)
    states, two = search.run()
    print(f"n = {n}, c = {c}, t = {threshold}, {values} choices, {numbers} numbers: {states:,} states")
    assert two is None


# ── without any one of the rules, two are ─────────────────────────────────────────────────────────────────────────────


class NoLock(Ballot):
    """Prepares anything in a new number."""

    def may_prepare(self, number, choice):
        return number > self.entered


class AnyCertificate(Ballot):
    """A certificate releases the lock, however old it is."""

    def _is_released(self, number, choice):
        return any(self.certificate(k) == choice for k in range(1, number))


class LooksBack(Ballot):
    """Commits in a number after having entered a higher one."""

    def may_commit(self, number, choice):
        return (Phase.COMMIT, number) not in self._own_words() and self.certificate(number) == choice

    def _own_words(self):
        return {key for key, said in self._said.items() if self.me in said}


class NoCertificate(Ballot):
    """Commits to anything."""

    def may_commit(self, number, choice):
        return number >= max(1, self.entered) and (Phase.COMMIT, number) not in self._own_words()

    def _own_words(self):
        return {key for key, said in self._said.items() if self.me in said}


@pytest.mark.parametrize("rules", [NoLock, AnyCertificate, LooksBack, NoCertificate])
def test_without_one_of_the_rules_two_choices_are_sealed(rules):
    assert Search(4, 1, 3, 2, 3).run()[1] is None
    assert Search(4, 1, 3, 2, 3, rules).run()[1] is not None


class OnePhase(Search):
    """What is prepared by enough is sealed."""

    def available(self, state, phase):
        return super().available(state, 0)


def test_with_one_phase_two_choices_are_sealed():
    assert OnePhase(4, 1, 3, 2, 2).run()[1] is not None


@pytest.mark.parametrize(("n", "c", "threshold"), [(4, 2, 3), (5, 1, 3), (6, 2, 4)])
def test_with_a_threshold_one_too_small_two_choices_are_sealed(n, c, threshold):
    assert 2 * threshold == n + c
    assert Search(n, c, threshold, 2, 2).run()[1] is not None
