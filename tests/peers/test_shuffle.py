"""Network shuffling by whole peers: the answer, the walks, deaths, what the curator and the server get to see.

Proof: docs/proofs/shuffle.md#shuffling-peers.
"""

import asyncio
import itertools
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from netdp.errors import Refused
from netdp.families.shuffle.reports import cuts_bytes, expected_empty, hop, pick, take_cuts, unpacked
from netdp.peers.ledger.entries import total
from netdp.peers.messages import Item, ItemKind, decode, encode, roster_digest
from netdp.peers.streams import unseal

sys.path.append(str(Path(__file__).parent))

import shuffled

N = 5
ROSTER = tuple(range(N))
MODES = {
    "all": {},
    "single": {"reporting": "single", "laziness": 0.25},
    "server": {"cover": 7},
    "server, single": {"cover": 1, "reporting": "single"},  # here reports must wait
}


@pytest.fixture(scope="module")
def folder():
    with shuffled.folder() as made:
        yield made


@pytest.fixture
def place(folder, request):
    return folder / re.sub("[^a-z0-9]", "-", request.node.name)


@pytest.fixture(scope="module")
def people(folder):
    return shuffled.identities(folder / "homes", N)


@pytest.fixture(scope="module")
def studies(people):
    return {mode: shuffled.study_of(people, **options) for mode, options in MODES.items()}


@pytest.fixture(scope="module")
def runs(people, studies, folder):
    """Every mode once, with nothing going wrong."""
    return {
        mode: shuffled.Company(study, people, folder / str(number)).run()
        for number, (mode, study) in enumerate(studies.items())
    }


def opened(company, sealed):
    plaintext = unseal(company.people[-1], sealed, company.study.hash, 1, ROSTER)
    return company.study.running.reports().read(plaintext)


def handed(company):
    """Holder → the reports that it handed to the curator, from the recorded frames."""
    size, rounds, out = company.study.running.reports().size, company.study.settings.rounds, {}
    for source, _, item in company.items(to=N):
        if item.key.index == rounds + 1:
            _, rest = take_cuts(item.body, N, rounds)
            out[source] = unpacked(rest, size)
    return out


def walked(company):
    """Holder → reports in the end, computed from what everybody wrote down, report by report."""
    study = company.study
    how = study.settings
    rows = {u: company.written(u) for u in ROSTER}
    hands = {u: {rows[u][1]} for u in ROSTER}
    for r in range(1, how.rounds + 1):
        after = {u: set() for u in ROSTER}
        for u in ROSTER:
            made = hop(hands[u], rows[u][0], r, study.graph.neighbors(u).tolist(), how.laziness, how.cover or None)
            after[u] |= set(made.stays)
            for v, reports in made.bundles.items():
                after[v] |= set(reports)
        hands = after
    if how.reporting == "single":
        return {u: (pick(hand, rows[u][0]) or rows[u][2],) for u, hand in hands.items()}
    return {u: tuple(sorted(hand)) for u, hand in hands.items()}


# ── the answer ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", MODES)
def test_reports_walk_by_their_own_draws_and_the_answer_is_made_of_them(runs, mode):
    company = runs[mode]
    assert all(told["ok"] for told in company.told.values())
    assert len(company.told) == N + 1
    assert handed(company) == walked(company)
    items = [opened(company, sealed) for hand in handed(company).values() for sealed in hand]
    assert len(items) == N  # all arrive; of single ones each hands over one
    counts = np.bincount([int(item[0]) for item in items], minlength=3)
    mechanism = company.study.running.reports().mechanism
    expected = (counts - N * mechanism.other) / (mechanism.keep - mechanism.other)
    if company.study.settings.reporting == "single":
        empty = expected_empty(company.study.graph, ROSTER)
        expected = N * (expected - empty * np.array([1.0, 0.0, 0.0])) / (N - empty)
    for told in company.told.values():
        assert told["total"] == pytest.approx(expected.tolist(), rel=1e-9)
    assert len({told["digest"] for told in company.told.values()}) == 1
    assert company.told[0]["realised"]["accepted"] == N
    assert company.told[0]["worse"] == []


def test_a_mean_of_numbers_on_a_grid(people, place):
    study = shuffled.study_of(people, shuffled.MEAN, rounds=2, epsilon=5.0, nonce="2" * 32)
    company = shuffled.Company(study, people, place, values=[0, 2, 5, 8, 10]).run()
    items = [opened(company, sealed)[0] for hand in handed(company).values() for sealed in hand]
    assert len(items) == N
    middle = 5 + 5 * float(np.mean(items)) * study.settings.grid
    assert company.told[2]["answer"]["value"] == pytest.approx(middle, rel=1e-9)
    assert abs(middle - 5) < 60 * study.running.noise(N) / N


@pytest.mark.parametrize("mode", MODES)
def test_every_party_has_one_entry_and_its_ledger_verifies(runs, mode):
    company = runs[mode]
    terms = company.study.privacy
    for u in ROSTER:
        with company.store(u) as store:
            assert store.verify(company.people[u].card).rows == 1
            entries = store.entries()
        against_one = float(total(entries, 1).epsilon(terms.delta))
        curator = float(total(entries, "curator").epsilon(terms.delta))
        everybody = float(total(entries, N).epsilon(terms.delta))
        room = 1 + 1e-12  # equal curves are read by two ways, which differ in the last bit on some processors
        assert curator <= against_one * room
        assert against_one <= everybody * room
        assert everybody <= company.study.settings.epsilon0 * room
        if company.study.settings.cover != 1:  # so little that reports must wait hides nothing
            assert against_one < everybody
        assert float(total(entries, N).epsilon(0.0)) == pytest.approx(company.study.settings.epsilon0)
    with company.store(N) as store:
        assert not store.entries()


# ── what is seen ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", MODES)
def test_what_the_curator_is_sent_names_no_origin(runs, mode):
    """Every byte on its links is a function of public things and of who holds which sealed reports in the end."""
    company = runs[mode]
    rounds, size = company.study.settings.rounds, company.study.running.reports().size
    digest = roster_digest(ROSTER)
    for source, target, frame in company.frames:
        if target != N:
            continue
        for message in decode(frame):
            if not isinstance(message, Item):
                continue
            key = message.key
            if key.kind == ItemKind.CONTRIBUTION:
                assert message.body == digest  # nothing about the report
            elif key.kind == ItemKind.BUNDLE and key.index == rounds + 1:
                assert key.author == source
                reports = handed(company)[source]
                assert message.body == bytes(4) + b"".join(sorted(reports))
                assert {len(one) for one in reports} <= {size}
            else:
                in_the_server = bool(company.study.settings.cover) and key.kind == ItemKind.BUNDLE
                assert key.kind in (ItemKind.VOTE, ItemKind.TOTAL) or in_the_server
    sealed = [one for hand in handed(company).values() for one in hand]
    assert len(set(sealed)) == len(sealed)
    assert len({one[:32] for one in sealed}) == len(sealed)  # a key of its own in front of each


@pytest.mark.parametrize("mode", MODES)
def test_nothing_in_the_clear_shows_a_report_before_it_is_handed_over(runs, mode):
    """Contributions, votes and, through a server, envelopes hold no report; over direct links only bundles do."""
    company = runs[mode]
    rounds = company.study.settings.rounds
    own = {company.written(u)[1] for u in ROSTER}
    for _, _, frame in company.frames:
        for message in decode(frame):
            if isinstance(message, Item):
                is_bundle = message.key.kind == ItemKind.BUNDLE
                if is_bundle and (message.key.index > rounds or not company.study.settings.cover):
                    continue
                assert not any(report in message.body for report in own)


def test_the_servers_traffic_is_the_same_wherever_reports_go(runs, people, place):
    """Who sent what kind of item to whom, in which round and how long: equal in runs of other walks and other data."""

    def traffic(company):
        rounds = company.study.settings.rounds
        seen = [(source, target, item.key, len(item.body)) for source, target, item in company.items()]
        return Counter(one for one in seen if one[2].index <= rounds)

    first = runs["server"]
    other = shuffled.study_of(people, **MODES["server"], nonce="9" * 32)
    second = shuffled.Company(other, people, place, values=["c"] * N).run()
    assert handed(first) != handed(second)
    assert traffic(first) == traffic(second)
    lengths = {length for (source, _, _, length) in traffic(first) if source != N}
    walk = other.running.walk()
    assert lengths == {(N - 1) * walk.envelope}
    # while the lengths of direct bundles do tell how many reports are in them
    direct = {len(item.body) for _, _, item in runs["all"].items()}
    assert len(direct) > 1


def test_a_bundle_goes_to_every_neighbour_in_every_round(runs):
    company = runs["all"]
    rounds = company.study.settings.rounds
    sent = Counter((source, target, item.key.index) for source, target, item in company.items() if target != N)
    assert sent == {(u, v, r): 1 for u, v in itertools.permutations(ROSTER, 2) for r in range(1, rounds + 1)}


# ── deaths ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_same_bytes(company):
    """Nothing was ever said in two ways, and everybody who lives holds one answer."""
    assert all(len(bodies) == 1 for bodies in company.said().values())
    assert len({told["digest"] for told in company.told.values() if told["ok"]}) == 1


@pytest.mark.parametrize("mode", ["single", "server"])
def test_killed_at_every_send_and_back(people, studies, runs, place, mode):
    """A party and the curator die at every one of their sends, one run after the other, and once more soon after."""
    study = studies[mode]
    place.mkdir()
    frames = runs[mode].counts
    for k in range(1, min(frames[2], 26) + 1, 2):  # and at k + 3: at all of them
        company = shuffled.Company(study, people, place / str(k))
        company.deaths = {2: [(k, 0.5), (k + 3, 0.5)], N: [(k * frames[N] // frames[2] + 1, 0.3)]}
        company.run()
        assert all(told["ok"] for told in company.told.values()), company.told
        assert len(company.told) == N + 1
        check_same_bytes(company)
        assert company.told[0]["realised"]["accepted"] == N
        assert not company.told[0]["realised"]["cuts"]
        assert handed(company) == walked(company)
        for u in ROSTER:
            with company.store(u) as store:
                assert store.verify(people[u].card).rows == 1


@pytest.mark.parametrize("mode", ["all", "server"])
def test_who_stays_away_is_gone_on_without_and_what_it_held_is_counted_as_lost(people, studies, place, mode):
    study = studies[mode]
    company = shuffled.Company(study, people, place)
    company.deaths = {2: [((ItemKind.BUNDLE, 1), None)]}  # with its own report, before that ever left
    company.run()
    living = [u for u in range(N + 1) if u != 2]
    assert sorted(company.told) == living
    assert all(company.told[u]["ok"] for u in living)
    check_same_bytes(company)
    arrived = [one for hand in handed(company).values() for one in hand]
    realised = company.told[0]["realised"]
    assert realised["accepted"] == len(set(arrived)) < N
    assert realised["hands"] == N - 1
    assert {u for u, _, _ in realised["cuts"]} == {2}
    assert len(realised["cuts"]) == N - 1
    assert all(company.told[u]["realised"] == realised for u in living)
    # the estimate is that of the reports that arrived
    counts = np.bincount([int(opened(company, one)[0]) for one in set(arrived)], minlength=3)
    mechanism = study.running.reports().mechanism
    shares = (counts / counts.sum() - mechanism.other) / (mechanism.keep - mechanism.other)
    assert company.told[0]["total"] == pytest.approx((N * shares).tolist(), rel=1e-9)
    # fewer to hide among: it is said, and entered
    assert company.told[0]["worse"] == [1]
    with company.store(0) as store:
        assert store.verify(people[0].card).rows == 2
        spent = float(total(store.entries(), 1).epsilon(study.privacy.delta))
    recomputed = study.running.realised(0, realised).worst_epsilon(study.privacy.delta)
    assert study.running.promise(0).worst_epsilon(study.privacy.delta) < recomputed
    assert recomputed == pytest.approx(spent, rel=1e-6)
    assert spent <= study.settings.epsilon0


def test_who_comes_back_when_all_have_gone_enters_the_reports_own_loss(people, studies, place):
    """It contributed, and will never hear what was lost: not even the votes of the others come again."""
    study = studies["all"]
    company = shuffled.Company(study, people, place)
    company.deaths = {0: [((ItemKind.BUNDLE, 3), 20_000.0)]}
    company.run()
    assert not company.told[0]["ok"]
    assert company.told[0]["worse"] == [1]
    with company.store(0) as store:
        spent = total(store.entries(), 1)
    assert float(spent.epsilon(0.0)) == pytest.approx(study.settings.epsilon0)


class Parted(shuffled.MemoryNetwork):
    """Party 0 is cut off from all others when its first bundle leaves, and back 19 seconds later."""

    fired = False

    def transport(self, u, receiver):
        made = super().transport(u, receiver)
        inner = made.send

        async def send(to, frame):
            bundle = any(isinstance(one, Item) and one.key.kind == ItemKind.BUNDLE for one in decode(frame))
            if u == 0 and bundle and not self.fired:
                self.fired = True
                self.partition([0], range(1, N + 1))
                asyncio.get_running_loop().call_later(19.0, self.heal)
            await inner(to, frame)

        made.send = send
        return made


def test_a_hand_that_is_too_late_for_the_total_is_not_shown_and_its_cuts_count(people, place, monkeypatch):
    """Who goes on alone holds its own report or nothing: the curator must not see that, and if it did, it is entered."""
    monkeypatch.setattr(shuffled, "MemoryNetwork", Parted)
    study = shuffled.study_of(people, laziness=0.5, nonce="8" * 32)
    company = shuffled.Company(study, people, place).run()
    realised = company.told[0]["realised"]
    assert realised["hands"] == N - 1
    assert 0 not in handed(company)
    assert realised["unsaid"] == [[v, 0, 1] for v in range(1, N)]
    assert all("unsaid" not in company.told[u]["realised"] for u in range(1, N))
    with company.store(0) as store:
        spent = float(total(store.entries(), 1).delta(0.5))
    assert spent >= 0.5 * (np.e - np.exp(0.5)) / (1 + np.e) * (1 - 1e-9)


class Slandered(shuffled.MemoryNetwork):
    """Party 2 says in all its bundles that everybody has given everybody up, every time in another round."""

    def transport(self, u, receiver):
        made = super().transport(u, receiver)
        inner = made.send

        def lied(one):
            if not (isinstance(one, Item) and one.key.kind == ItemKind.BUNDLE):
                return one
            lies = {(a, b, 1 + one.key.index % 3) for a, b in itertools.permutations(ROSTER, 2)}
            return replace(one, body=cuts_bytes(lies) + take_cuts(one.body, N, 4)[1])

        async def send(to, frame):
            await inner(to, encode([lied(one) for one in decode(frame)]) if u == 2 else frame)

        made.send = send
        return made


def test_one_liar_makes_nobody_give_up_another_and_no_list_too_long(people, studies, place, monkeypatch):
    monkeypatch.setattr(shuffled, "MemoryNetwork", Slandered)
    company = shuffled.Company(studies["all"], people, place).run()
    assert all(told["ok"] for told in company.told.values())
    realised = company.told[0]["realised"]
    assert realised["accepted"] == N  # nothing was lost
    assert len(realised["cuts"]) == N * (N - 1)
    assert not company.notes


def test_without_a_curator_the_study_ends_without_an_answer(people, studies, place):
    company = shuffled.Company(studies["all"], people, place)
    company.deaths = {N: [(8, None)]}
    company.run()
    assert len(company.told) == N
    assert not any(told["ok"] for told in company.told.values())
    assert all("attempts that the study allows are used up" in told["reason"] for told in company.told.values())
    # it may have read what it got, after losses that nobody told us of: the report's own loss is entered
    assert all(told["worse"] == [1] for told in company.told.values())
    with company.store(0) as store:
        assert store.verify(people[0].card).rows == 2
        spent = total(store.entries(), 1)
    assert float(spent.epsilon(0.0)) == pytest.approx(studies["all"].settings.epsilon0)


@pytest.mark.parametrize("mode", ["all", "server"])
def test_who_never_comes_is_left_out_if_the_study_allows_it(people, place, mode):
    study = shuffled.study_of(people, **MODES[mode], privacy={"absent": 1}, nonce="3" * 32)
    company = shuffled.Company(study, people, place)
    company.deaths = {1: [(1, None)]}
    company.run()
    living = [u for u in range(N + 1) if u != 1]
    assert sorted(company.told) == living
    for u in living:
        told = company.told[u]
        assert told["ok"], told
        assert told["roster"] == ["p0", "p2", "p3", "p4"]
        assert told["realised"]["accepted"] == told["realised"]["expected"] == N - 1
        assert not told["worse"]
        assert sum(told["total"]) == pytest.approx(N - 1)
    check_same_bytes(company)


def test_a_second_attempt_has_a_second_report_and_both_are_entered(people, place):
    """The curator is away for so long that everybody begins anew; then it is back, and one of the attempts has an answer."""
    study = shuffled.study_of(people, privacy={"attempts": 2, "epsilon": 2.5}, nonce="4" * 32)
    company = shuffled.Company(study, people, place)
    company.deaths = {N: [((ItemKind.TOTAL, 0), 45.0)]}
    company.run()
    assert all(told["ok"] for told in company.told.values()), company.told
    assert len({told["digest"] for told in company.told.values()}) == 1
    check_same_bytes(company)
    for u in ROSTER:
        with company.store(u) as store:
            assert store.verify(people[u].card).rows == 3  # of one attempt the end was not heard: it counts as ε₀
            entries = store.entries()
            first, second = (store.contribution(study.hash, attempt).secret for attempt in (1, 2))
        assert first[:32] != second[:32]
        assert (
            float(total(entries[:1], 1).epsilon(1e-3)) < float(total(entries, 1).epsilon(1e-3)) <= study.privacy.epsilon
        )


def test_a_second_attempt_with_other_data_is_refused(people, place):
    study = shuffled.study_of(people, privacy={"attempts": 2, "epsilon": 2.5}, nonce="5" * 32)
    company = shuffled.Company(study, people, place)
    company.deaths = {N: [((ItemKind.TOTAL, 0), None)], 0: [((ItemKind.BUNDLE, 5), 1.0)]}
    rows = [study.task.rows([{"x": value}]) for value in "ab"]
    company.rows[0] = rows[0]
    company.between = lambda u: company.rows.__setitem__(u, rows[1])  # whoever comes back has other data
    with pytest.raises(Refused, match="have changed since attempt 1"):
        company.run()
