"""Whether what peers sent is what the study allows them to send: checks that need no statistics.

A proof about a protocol is a proof about its messages. So every message of a recording is held against the study: that it is of a
kind that the protocol has, signed where it must be, as long as it should be, said once, after its author's vote, over a link that
there is; that a contribution belongs to a roster which all its members voted for, and is paid for in its author's ledger. What
depends on the kind of protocol (rounds, hops, who may send what to whom) is asked of the kind (`netdp.peers.recordings.kinds`).

**One body per key.** An honest author makes one item of a key. A second body under the same key is noise drawn anew around the same
value, or another value under the same pads: two of them are worth more than one, and all that was promised is about one. What is
for one neighbour (a bundle, an answer to an offer) has one body per receiver; a state that goes to all neighbours has one for all.

**Nothing else.** A frame must be exactly what its messages are written as: a pad or a key could be hidden in a field that no
reader looks at.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict

from netdp.audit.findings import Check
from netdp.errors import InvalidValue, NetdpError
from netdp.peers.ledger.entries import CORRECTS
from netdp.peers.ledger.store import Store
from netdp.peers.messages import Done, ItemKind, Remark, roster_digest, signed_bytes, vote_of
from netdp.peers.recordings.recording import Recording, Said

_SHOWN = 3


OPENING = (ItemKind.KEYS, ItemKind.DEALING, ItemKind.COMPLAINT, ItemKind.DEFENCE, ItemKind.PROOF)
"""What is said before a vote, where shares are dealt."""

UNPAID = (
    *OPENING,
    ItemKind.VOTE,
    ItemKind.FALLBACK,
    ItemKind.PREPARE,
    ItemKind.COMMIT,
    ItemKind.REVEAL,
    ItemKind.ANSWER,
)
"""What depends on nobody's data: who handed nothing in says it, too."""


def conformance(recording: Recording) -> list[Check]:
    """Every message against the study; the checks that all kinds of protocols share."""
    return [
        check(recording)
        for check in (_frames, _links, _kinds, _signatures, _lengths, _one_body, _votes, _rosters, _paid, _answers)
    ]


def told(name: str, problems: list[str], fine: str) -> Check:
    """A check that names the first few of what is wrong, or says what was looked at."""
    if not problems:
        return Check(name, True, fine)
    more = f"; and {len(problems) - _SHOWN:,} more" if len(problems) > _SHOWN else ""
    return Check(name, False, "; ".join(problems[:_SHOWN]) + more)


def named(recording: Recording, one: Said) -> str:
    """An item, for people."""
    key = one.item.key
    who = recording.study.everybody
    author = who[key.author] if key.author < len(who) else f"participant {key.author}"
    return f"{key.kind.name.lower()} {key.index} of {author} in attempt {key.attempt}"


def _frames(recording: Recording) -> Check:
    names = recording.study.everybody
    problems = [
        f"frame {place} of {names[u]} to {names[v]} says more than its messages" for u, v, place in recording.odd
    ]
    problems += [
        f"{names[one.sender]} sent something of kind {one.message.number}, which this version does not know"
        for one in recording.said
        if isinstance(one.message, Remark)
    ]
    return told("nothing else is in the frames", problems, f"{len(recording.said):,} messages, and not a byte more")


def _links(recording: Recording) -> Check:
    study, problems = recording.study, []
    near = {u: frozenset(study.neighbours(u)) for u in range(len(study.everybody))}
    used = {(one.sender, one.to) for one in recording.said}
    for u, v in sorted(used):
        if v not in near[u]:
            problems.append(f"{study.everybody[u]} sent to {study.everybody[v]}, and the study has no such link")
    return told("only along the links", problems, f"{len(used):,} links, one way each, all in the study")


def _kinds(recording: Recording) -> Check:
    study = recording.study
    may = study.running.items()
    problems = [
        f"{named(recording, one)}: {study.settings.kind} has none"
        for one in recording.items
        if one.item.key.kind not in may
    ]
    return told("only messages of the protocol", problems, f"{len(recording.items):,} items of kinds that it has")


def _signatures(recording: Recording) -> Check:
    study, problems = recording.study, []
    seen: set[tuple[bytes, bytes]] = set()
    unsigned = 0
    for one in recording.items:
        key, item = one.item.key, one.item
        if not key.kind.is_signed:
            unsigned += 1
            if key.author != one.sender:
                problems.append(f"{named(recording, one)} was sent by {study.everybody[one.sender]}")
            continue
        if key.kind == ItemKind.PROOF:  # holds two signatures of its own
            continue
        message = signed_bytes(study.hash, key, item.body)
        if (message, item.signature) in seen:
            continue
        seen.add((message, item.signature))
        if key.author >= len(study.everybody) or not study.cards[key.author].verify(message, item.signature):
            problems.append(f"{named(recording, one)} is not signed by its author")
    return told(
        "signed by their authors", problems,
        f"{len(seen):,} different signed items, and {unsigned:,} for neighbours, all from their authors",
    )  # fmt: skip


def _lengths(recording: Recording) -> Check:
    running, problems = recording.study.running, []
    longest = running.longest()
    for one in _each_once(recording):
        item = one.item
        if len(item.body) > longest.get(item.key.kind, -1) or not running.is_legible(item):
            problems.append(f"{named(recording, one)} has {len(item.body):,} bytes, or numbers, that it cannot have")
    return told(
        "bodies as long as they should be", problems, "all numbers whole, and as many and as large as they may be"
    )


def _each_once(recording: Recording) -> list[Said]:
    """Every different item once."""
    found: dict[tuple[object, bytes], Said] = {}
    for one in recording.items:
        found.setdefault((one.item.key, one.item.body), one)
    return list(found.values())


def _one_body(recording: Recording) -> Check:
    alike = recording.study.running.sends_all_the_same
    bodies: dict[object, dict[bytes, Said]] = defaultdict(dict)
    ways: dict[object, set[int]] = defaultdict(set)
    for one in recording.items:
        key = one.item.key
        for_all = key.kind.is_signed or (alike and key.kind == ItemKind.STATE) or key.kind == ItemKind.TOKEN
        bodies[key if for_all else (key, one.to)][one.item.body] = one
        if key.kind == ItemKind.TOKEN:
            ways[key].add(one.to)
    problems = [
        f"{named(recording, next(iter(said.values())))} was said in {len(said)} ways: drawn more than once"
        for said in bodies.values()
        if len(said) > 1
    ]
    problems += [
        f"token {key.index} of attempt {key.attempt} went to {len(to)} parties"  # type: ignore[attr-defined]
        for key, to in ways.items()
        if len(to) > 1
    ]
    return told("said once", problems, f"{len(bodies):,} keys, one body each")


def _votes(recording: Recording) -> Check:
    """Each party's own words in its own order: nothing of an attempt before its vote for it."""
    study, problems = recording.study, []
    voted: set[tuple[int, int]] = set()
    looked = 0
    for one in recording.items:  # by sender, in the order of its file
        key = one.item.key
        if key.author != one.sender or key.author >= study.n:
            continue
        if key.kind == ItemKind.VOTE:
            voted.add((key.author, key.attempt))
        elif key.kind not in OPENING:
            looked += 1
            if (key.author, key.attempt) not in voted:
                problems.append(f"{named(recording, one)} was sent before its vote")
    return told(
        "nothing before the vote", problems, f"{looked:,} own words, each after its author's vote in that attempt"
    )


def _rosters(recording: Recording) -> Check:
    study, problems = recording.study, []
    votes: dict[tuple[int, int], bytes] = {}
    contributed: dict[int, set[int]] = defaultdict(set)
    free = {u: _free(recording, u) for u in range(study.n)}
    for one in recording.items:
        key = one.item.key
        if key.kind == ItemKind.VOTE:
            votes[key.attempt, key.author] = one.item.body
    for one in _each_once(recording):
        key, body = one.item.key, one.item.body
        if key.kind != ItemKind.CONTRIBUTION:
            continue
        contributed[key.author].add(key.attempt)
        own = votes.get((key.attempt, key.author))
        try:
            roster, _ = vote_of(own or b"", study.running.threshold is not None)
        except InvalidValue:
            roster = ()
        if not roster or body[:32] != roster_digest(roster):
            problems.append(f"{named(recording, one)} is to another roster than its author voted for")
        elif any(votes.get((key.attempt, u)) != own for u in roster):
            problems.append(f"{named(recording, one)} is to a roster that not all its members voted for")
        elif len(roster) < study.smallest_roster:
            problems.append(f"{named(recording, one)} is to {len(roster)} parties, fewer than {study.smallest_roster}")
    for u, attempts in contributed.items():
        if len(attempts - free[u]) > study.privacy.attempts:
            problems.append(
                f"{study.everybody[u]} contributed to {len(attempts)} attempts, and the study allows {study.privacy.attempts}"
            )
    number = sum(map(len, contributed.values()))
    rosters = "; ".join(f"attempt {attempt}: {len(roster)} parties" for attempt, roster in recording.rosters.items())
    return told("to rosters that all voted for", problems, f"{number:,} contributions ({rosters})")


def _free(recording: Recording, u: int) -> set[int]:
    """Attempts that a party's ledger says were sealed empty: nothing of them was opened."""
    file = recording.home(u) / "peer.db"
    if not file.exists():
        return set()
    with Store.open(file, read_only=True) as store:
        entries = store.entries_of(recording.study.hash)
    return {entry.attempt % CORRECTS for entry in entries if entry.loss["kind"] == "nothing"}


def _paid(recording: Recording) -> Check:
    """What left is in its author's ledger, attempt by attempt."""
    study, problems, looked = recording.study, [], 0
    spoke: dict[int, set[int]] = defaultdict(set)
    for one in recording.items:
        key = one.item.key
        if key.kind not in UNPAID and key.author < study.n:
            spoke[key.author].add(key.attempt)
    for u, attempts in sorted(spoke.items()):
        file = recording.home(u) / "peer.db"
        if not file.exists():
            continue
        try:
            with Store.open(file, read_only=True) as store:
                paid = {entry.attempt for entry in store.entries_of(study.hash) if entry.attempt < CORRECTS}
        except NetdpError as problem:
            problems.append(f"the ledger of {study.everybody[u]} cannot be read: {problem}")
            continue
        looked += 1
        problems += [
            f"{study.everybody[u]} sent numbers in attempt {attempt} that its ledger has no entry for"
            for attempt in sorted(attempts - paid)
        ]
    return told("paid for", problems, f"{looked:,} ledgers hold every attempt that their owners sent numbers in")


def _answers(recording: Recording) -> Check:
    """Those who say that they are done hold the same, where all should; on a ring, what was released."""
    study, problems = recording.study, []
    said: dict[int, set[bytes]] = defaultdict(set)
    for one in recording.said:
        if isinstance(one.message, Done):
            said[one.message.attempt].add(one.message.digest)
    for attempt, digests in said.items():
        if len(digests) > 1:
            problems.append(f"parties hold {len(digests)} different answers to attempt {attempt}")
    released = {
        one.item.key.attempt: hashlib.sha256(one.item.body).digest()
        for one in recording.items
        if one.item.key.kind == ItemKind.TOTAL and study.running.releases_the_answer
    }
    problems += [
        f"the answer to attempt {attempt} is not what was released"
        for attempt, digest in released.items()
        if attempt in said and digest not in said[attempt]
    ]
    if not said:
        return Check("one answer", True, "nobody said to hold an answer")
    return told("one answer", problems, f"all who were done hold the same answer to attempt {max(said)}")
