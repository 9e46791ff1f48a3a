"""Members that lie in an attempt whose sum survives dropouts: one right answer for all who are honest, and who lied is named.

Each plot by itself, then plots at random with and without deaths, delays and cuts. What is asked of all of them stands in
`liars.py`; thousands: `python benchmarks/schedules.py --kind liars`. What must hold: docs/proofs/peers.md#ballot,
docs/proofs/peers.md#dealing, docs/proofs/masked.md#one-attempt.
"""

import itertools
import sys
from collections import Counter
from pathlib import Path

import pytest

from netdp.peers.exchange import proves
from netdp.peers.messages import ItemKind, Key
from netdp.peers.party import Party
from netdp.peers.recovery import closing, opening
from netdp.peers.spread import SpreadResult

sys.path.append(str(Path(__file__).parent))

import liars
from liars import Plot, Trick

COMPANY, LIAR = "6, 1 lies, 1 absent", 1
"""The smallest fair company with a party that may be absent."""
OTHERS, SOME = frozenset({0, 2, 3, 4, 5}), frozenset({0, 2})
SEEDS = dict.fromkeys(liars.COMPANIES, 8) | {"7, 2 lie": 3, "11, 2 lie, 2 absent": 2}
"""How many plots of each company are tried, twice each; the larger ones take longer."""


def run(tricks, seed=3, company=COMPANY):
    """A plot of one liar in a company in which nothing else goes wrong."""
    return Plot(company, seed, liars={LIAR: tricks}).go()


def answered(plot):
    """The attempt and the roster that all honest parties agree on."""
    found = {(plot.outcomes[u].attempt, plot.outcomes[u].roster) for u in plot.honest}
    assert len(found) == 1
    return found.pop()


def evidence(plot, u):
    return {(one["party"], one["kind"]) for one in plot.told[u]["evidence"]}


def said_twice(plot, kind):
    return any(
        isinstance(key, Key) and (key.kind, key.author) == (kind, LIAR) and len(bodies) > 1
        for key, bodies in plot.words.said.items()
    )


def two_faced(kind, how):
    """The first plot in which the liar came to say two things of a kind: else the others may be done before."""
    for seed in range(3, 20):
        plot = run([Trick("double", kind, SOME, how)], seed)
        if said_twice(plot, kind):
            return plot
    raise AssertionError("it never came to say it")


@pytest.mark.parametrize("how", [0, 1])
@pytest.mark.parametrize("kind", liars.OWN[:6], ids=lambda kind: kind.name.lower())
def test_who_says_two_things_is_named_by_all(kind, how):
    """Two keys, dealings, votes, contributions, prepares or commits: everybody honest has the answer, and the proof."""
    plot = two_faced(kind, how)
    attempt, roster = answered(plot)
    for u in plot.honest:
        assert evidence(plot, u) == {(f"p{LIAR}", kind.name.lower())}, f"p{u}: {plot.told[u]['evidence']}"
        assert all(proves(plot.study, one) for one in plot.told[u]["evidence"])
    if kind in (ItemKind.KEYS, ItemKind.DEALING):
        assert (attempt, LIAR in roster) == (2, False)
    assert not any(f"party {LIAR}" in note or f"of {LIAR} " in note for note in plot.notes)
    assert any(f"p{LIAR}" in note for note in plot.notes)


@pytest.mark.parametrize("kind", [ItemKind.REVEAL, ItemKind.ANSWER], ids=["reveal", "answer"])
@pytest.mark.parametrize("how", [0, 1])
def test_who_says_two_things_at_the_end_is_named_by_those_who_are_there(kind, how):
    """When most hold the answer already, they may be gone before the proof comes; nobody holds another answer."""
    plot = two_faced(kind, how)
    attempt, _ = answered(plot)
    assert attempt == 1
    assert {(f"p{LIAR}", kind.name.lower())} in [evidence(plot, u) for u in plot.honest]


@pytest.mark.parametrize("what", ["withhold", "stop", "late", "false"])
@pytest.mark.parametrize("kind", liars.OWN, ids=lambda kind: kind.name.lower())
def test_who_withholds_or_says_what_is_wrong_keeps_nobody_from_the_answer(kind, what):
    """A silent member, chair or holder of shares; one that says what does not fit, to all alike."""
    for seed, whom in ((3, OTHERS), (4, SOME)):
        plot = run([Trick(what, kind, whom, 1)], seed)
        attempt, roster = answered(plot)
        assert attempt <= 2
        if what != "false" or whom == OTHERS:  # else it has said two things
            assert not any(evidence(plot, u) for u in plot.honest)
        if what in ("withhold", "stop") and whom is OTHERS and kind in liars.BEFORE:
            assert LIAR not in roster


def test_who_withholds_its_contribution_does_not_get_the_answer_alone():
    plot = run([Trick("withhold", ItemKind.CONTRIBUTION, OTHERS)])
    assert answered(plot) == (1, (0, 2, 3, 4, 5))
    assert all(isinstance(plot.outcomes[u], SpreadResult) for u in plot.honest)


def test_who_withholds_shares_does_not_get_the_answer_alone():
    plot = run([Trick("withhold", ItemKind.REVEAL, OTHERS), Trick("withhold", ItemKind.ANSWER, OTHERS)])
    assert answered(plot) == (1, (0, 1, 2, 3, 4, 5))


def test_who_splits_the_others_and_is_silent_when_it_is_the_chair():
    """Two contributions make number 1 fail; a later number has the liar as its chair, whoever it is."""
    numbers = set()
    for liar in range(6):
        some, others = frozenset({(liar + 1) % 6, (liar + 3) % 6}), frozenset(range(6)) - {liar}
        tricks = [Trick("double", ItemKind.CONTRIBUTION, some), Trick("withhold", ItemKind.PREPARE, others)]
        plot = Plot(COMPANY, 3, liars={liar: tricks}).go()
        assert answered(plot)[0] == 1
        said = (key for key in plot.words.said if isinstance(key, Key) and key.kind == ItemKind.PREPARE)
        numbers |= {key.index for key in said}
    assert max(numbers) > 1


@pytest.mark.parametrize("how", [0, 1, 2, 3])
def test_shares_that_nobody_can_open_are_defended_or_their_dealer_is_out(how):
    plot = run([Trick("share", ItemKind.DEALING, OTHERS, how)])
    assert answered(plot)[0] == 2
    assert LIAR not in answered(plot)[1] or how == 3


def test_a_copied_dealing_and_false_complaints():
    for trick in (
        Trick("copy", ItemKind.DEALING, frozenset({0})),
        Trick("accuse", ItemKind.DEALING, OTHERS),
        Trick("accuse", ItemKind.CONTRIBUTION, OTHERS),
    ):
        plot = run([trick])
        assert answered(plot)[0] <= 2
        assert not any(plot.told[u]["evidence"] for u in plot.honest)


def test_a_false_answer_is_blamed_by_name():
    plot = run([Trick("false", ItemKind.ANSWER, OTHERS, 1)])
    blamed = {(one["party"], one["code"]) for u in plot.honest for one in plot.told[u]["blamed"]}
    assert blamed == {(f"p{LIAR}", "other-answer")}
    signed = {name for u in plot.honest for name in plot.told[u]["signatures"]}
    assert signed == {f"p{u}" for u in plot.honest}


# ── at random ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("company", liars.COMPANIES)
def test_any_plot(company):
    """Random tricks of as many liars as the study bears, with and without deaths, delays and cuts at the same time."""
    came = Counter()
    for seed, calm in itertools.product(range(SEEDS[company]), (True, False)):
        plot, problem = liars.attempt(company, seed, calm=calm)
        assert problem is None, f"{company}, seed {seed}, calm {calm}: {plot.tricks}\n{problem}"
        came["answers"] += sum(told["ok"] for told in plot.told.values())
        came["promised"] += plot.promised
    if liars.COMPANIES[company]["absent"]:
        assert came["answers"] > 0
        assert came["promised"] > 0 or "unfair" in company


# ── without a defence ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_proofs_that_are_not_passed_on_are_noticed(monkeypatch):
    keep = Party._keep_evidence

    def alone(party, found):
        pass_on, party._exchange.pass_on = party._exchange.pass_on, lambda item: None
        try:
            keep(party, found)
        finally:
            party._exchange.pass_on = pass_on

    monkeypatch.setattr(Party, "_keep_evidence", alone)
    plot = two_faced(ItemKind.COMMIT, 0)
    assert {()} < {tuple(evidence(plot, u)) for u in plot.honest}


def test_contrary_words_that_are_not_shown_are_noticed(monkeypatch):
    monkeypatch.setattr(closing.Closing, "_contrary", lambda *arguments: [])
    plot = two_faced(ItemKind.COMMIT, 0)
    assert not any(evidence(plot, u) for u in plot.honest)


def test_dealings_that_are_not_checked_are_noticed(monkeypatch):
    """Without the check of shares a dealer of nonsense stays, and the sum cannot be opened, or comes out wrong."""
    monkeypatch.setattr(opening.Opening, "accused", property(lambda self: set()))
    plot = Plot(COMPANY, 3, liars={LIAR: [Trick("share", ItemKind.DEALING, OTHERS, 0)]})
    with pytest.raises(AssertionError):
        plot.go()
