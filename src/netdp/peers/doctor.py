"""Checks before the day: would this peer run, and can it talk to its neighbours? Nothing of the data or the study is sent.

Every check is one sentence: ok, warn (it would run, but look at this) or fail (it would not run), with the way out. A check
that needs something which failed before is not made, and says so.

`netdp.peers.reach` looks at the neighbours.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import re
import stat
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from netdp.errors import FileFormatError, InvalidValue, NetdpError
from netdp.privacy.readable import readable

from .identity import Identity
from .ledger.policy import Policy, Verdict, verdict_lines
from .ledger.store import Store
from .reach import Check, Tell, look_around
from .study import Study, Training, signatures

if TYPE_CHECKING:
    from .ledger.entries import Entry

SOON = 30
"""Days before the end of a certificate from which on it is mentioned."""
SLOW_DISK, LITTLE_SPACE = 0.1, 100 << 20
"""Seconds for a durable write, and bytes free, worth a word."""


def examine(
    home: Path,
    study_path: Path,
    data: Path | None = None,
    *,
    listen: str | None = None,
    wait: float = 0.0,
    tell: Tell | None = None,
) -> list[Check]:
    """All checks, in order; `tell` hears each as soon as it is made. Nothing in the home is changed."""
    if not 0 <= wait < float("inf"):
        raise InvalidValue(f"wait is a number of seconds, 0 or more, got {wait!r}")
    found: list[Check] = []

    def add(check: Check) -> None:
        found.append(check)
        if tell is not None:
            tell(check)

    identity = _keys(home, add)
    study = _study(study_path, add)
    me = _place(identity, study, add)
    _dates(identity, study, add)
    if study is not None and study.is_complete:
        _signed(study, study_path, add)
    if study is not None:
        _promise(study, add)
    entries = _ledger(home, identity, add)
    collects = study is not None and me == study.n  # a curator has no data, and nothing to lose
    if collects:
        add(Check("policy", "ok", "none is needed: the curator hands in no data"))
    elif study is not None and me is not None and entries is not None:
        _policy(home, study, me, entries, add)
    else:
        add(Check("policy", "warn", "not checked: it takes keys, a study that lists them, and a ledger in order"))
    if collects and data is not None:
        add(
            Check(
                "data", "fail", f"{data}: a curator has no data in a study", "leave --data out, as for `netdp peer run`"
            )
        )
    elif study is not None and not _code(study, add):
        add(Check("data", "warn", "not checked: the model that reads them is not here"))
    elif study is not None and data is not None:
        _data(study, data, add)
    elif data is None and not collects:
        add(Check("data", "warn", "not checked: no file was given", "give --data FILE"))
    _disk(home, study, add)
    if identity is not None and study is not None and me is not None:
        asyncio.run(look_around(identity, study, me, listen, wait, add))
    else:
        add(Check("neighbours", "warn", "not checked: it takes keys, and a study that lists them"))
    return found


# ── this machine ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _keys(home: Path, add: Tell) -> Identity | None:
    try:
        identity = Identity.load(home)
    except NetdpError as problem:
        add(Check("keys", "fail", str(problem)))
        return None
    mode = stat.S_IMODE(home.stat().st_mode)
    facts = {"party": identity.card.name, "fingerprint": identity.card.fingerprint}
    if mode & 0o077:
        said = f"of {identity.card.name}, for this user only; but others can look into {home} (mode {mode:04o})"
        add(Check("keys", "warn", said, f"chmod 700 {home}", facts))
    else:
        add(Check("keys", "ok", f"of {identity.card.name}, readable by this user only", facts=facts))
    return identity


def _study(path: Path, add: Tell) -> Study | None:
    try:
        study = Study.read(path)
    except NetdpError as problem:
        add(Check("study", "fail", str(problem)))
        return None
    facts = {"study": study.name, "hash": study.hash.hex(), "parties": study.n}
    if not study.is_complete:
        said = f'"{study.name}" is a draft; it lacks {"; ".join(study.lacking)}'
        add(Check("study", "fail", said, "netdp study complete", facts))
    else:
        add(Check("study", "ok", f'"{study.name}", {study.n} parties, {study.hash.hex()[:16]}…', facts=facts))
    return study


def _place(identity: Identity | None, study: Study | None, add: Tell) -> int | None:
    """This party's number in the study, if the study lists this very card."""
    if identity is None or study is None or not study.is_complete:
        return None
    name = identity.card.name
    if name not in study.everybody:
        add(Check("card", "fail", f"{name} is no party of this study", "have your card put in; all sign again"))
        return None
    me = study.index(name)
    if study.card(me) != identity.card:
        said = f"the study lists another card under the name {name}; were the keys made anew?"
        add(Check("card", "fail", said, "have the card in this home put in (card.json); all sign again"))
        return None
    as_whom = f"party {me} of {study.n}" if me < study.n else "its curator"
    add(Check("card", "ok", f"the study lists the card of this home, as {as_whom}", facts={"number": me}))
    return me


def _dates(identity: Identity | None, study: Study | None, add: Tell) -> None:
    """Certificates of everybody: one line for each that ends soon or is not good today, else one for all."""
    cards = [] if identity is None else [identity.card]
    if study is not None:
        cards += [study.card(u) for u, one in enumerate(study.participants) if one.signing]
    cards = list(dict.fromkeys(cards))
    now = datetime.datetime.now(datetime.UTC)
    for card in cards:
        end = card.valid[1]
        if problem := card.date_problem(now):
            add(Check("certificates", "fail", problem, facts={"party": card.name}))
        elif (left := (end - now).days) < SOON:
            said = f"the certificate of {card.name} ends in {left} day{'' if left == 1 else 's'}, on {end:%Y-%m-%d}"
            way_out = "it needs new keys (netdp peer init in a new folder), and the next study its new card"
            add(Check("certificates", "warn", said, way_out, {"party": card.name, "days": left}))
    good = [card.valid[1] for card in cards if card.date_problem(now) is None and (card.valid[1] - now).days >= SOON]
    if good:
        said = f"{len(good)} of {len(cards)} good for {SOON} days and more, until {min(good):%Y-%m-%d} at least"
        add(Check("certificates", "ok", said, facts={"until": f"{min(good):%Y-%m-%d}"}))


def _signed(study: Study, path: Path, add: Tell) -> None:
    try:
        wrong = signatures.problems(study, signatures.read_all(path))
    except NetdpError as problem:
        add(Check("signatures", "fail", str(problem)))
        return
    if wrong:
        said = "; ".join(f"{name}: {problem}" for name, problem in list(wrong.items())[:5])
        more = f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        way_out = f"collect the missing ones in {signatures.folder(path)} (netdp study verify)"
        add(Check("signatures", "fail", said + more, way_out, {"missing": sorted(wrong)}))
    else:
        add(Check("signatures", "ok", f"all {len(study.everybody)} parties have signed exactly this study"))


def _promise(study: Study, add: Tell) -> None:
    terms = study.privacy
    try:
        epsilon = study.check_promise()
    except NetdpError as problem:
        add(Check("promise", "fail", str(problem)))
        return
    looking = terms.colluders + study.running.has_curator
    who = study.running.who(looking)
    said = (
        f"certified: {who} learn{'s' if looking == 1 else ''} at most epsilon {readable(epsilon)}, promised "
        f"{terms.epsilon:g}, at delta = {terms.delta:g}"
    )
    add(Check("promise", "ok", said, facts={"epsilon": epsilon, "delta": terms.delta}))


def _ledger(home: Path, identity: Identity | None, add: Tell) -> list[Entry] | None:
    path = home / "peer.db"
    if not path.exists():
        add(Check("ledger", "ok", "none yet: nothing was revealed by this party", facts={"entries": 0}))
        return []
    try:
        with Store.open(path, read_only=True) as store:
            checked = store.verify(None if identity is None else identity.card)
            entries = store.entries()
    except NetdpError as problem:
        add(Check("ledger", "fail", str(problem), "docs/deploy.md says what may be restored"))
        return None
    count = f"{len(entries)} entr{'y' if len(entries) == 1 else 'ies'}"
    if any(not seam.complete for seam in checked.seams):
        said = f"in order, {count}, but restored from a backup of {checked.seams[-1].taken}: what was spent since may be missing"
        way_out = f"netdp ledger admit STUDY.toml --home {home}, then netdp ledger admit --complete --home {home}"
        add(Check("ledger", "fail", said, way_out, {"entries": len(entries)}))
        return entries
    add(Check("ledger", "ok", f"in order, {count} so far", facts={"entries": len(entries)}))
    return entries


def _policy(home: Path, study: Study, me: int, entries: list[Entry], add: Tell) -> None:
    path = home / "policy.toml"
    verdicts: list[Verdict] = []
    try:
        policy = Policy.read(path)
        verdicts = policy.verdicts(study, entries, me)
        policy.check(study, entries, me)
    except NetdpError as problem:
        sentence = str(problem).removesuffix("; nothing was sent")
        table = ["", *(f"      {line}" for line in verdict_lines(verdicts))] if verdicts else []
        way_out = f"change {path}, or do not take part"
        facts = {"verdicts": [verdict.to_dict() for verdict in verdicts]}
        add(Check("policy", "fail", sentence + "\n".join(table), way_out, facts))
        return
    tightest = max(verdicts, key=lambda one: one.together / one.limit.epsilon if one.limit.epsilon else 0.0)
    said = (
        f"allows it; tightest limit, {tightest.words}: {readable(tightest.together)} of {tightest.limit.epsilon:g} "
        f"(delta = {policy.delta:g})"
    )
    add(Check("policy", "ok", said, facts={"verdicts": [verdict.to_dict() for verdict in verdicts]}))


def _code(study: Study, add: Tell) -> bool:
    """Whether the module of a model that is code is here, and the agreed one. Nothing of it runs."""
    if not isinstance(study.task, Training) or not study.task.is_code:
        return True
    try:
        path = study.task.check_source()
    except NetdpError as problem:
        add(Check("code", "fail", str(problem), "put the agreed file there, and read it before you do"))
        return False
    add(Check("code", "ok", f"{path} is the module that was agreed upon ({study.task.source[:16]}…)"))
    return True


def _data(study: Study, path: Path, add: Tell) -> None:
    """Whether the task can read the file. No value of it is shown: people send these lines to each other."""
    try:
        columns = study.task.rows(path).shape[1]
    except NetdpError as problem:
        if isinstance(problem, FileFormatError) and problem.line is None:  # about the file, not about what is in it
            add(Check("data", "fail", str(problem), "give --data, the file that the peer will read"))
            return
        # which line, and nothing that stands in it or follows from how many there are
        line = re.match(re.escape(str(path)) + r":\d+", str(problem))
        where = line[0] if line else str(path)
        sentence = f"{where}: the study does not take this file as it is (what is wrong is not shown here)"
        add(
            Check(
                "data", "fail", sentence, "`netdp peer run` says what is wrong, on this screen only; correct the file"
            )
        )
        return
    numbers = f"{columns} number{'' if columns == 1 else 's'}"
    add(
        Check(
            "data", "ok", f"{path} fits the question; it becomes {numbers}, none is shown", facts={"numbers": columns}
        )
    )


def _disk(home: Path, study: Study | None, add: Tell) -> None:
    """A few durable writes, and the space left."""
    times = []
    try:
        with tempfile.NamedTemporaryFile(dir=home, prefix=".doctor-") as file:
            for _ in range(5):
                file.write(b"\0" * 4096)
                file.flush()
                began = time.perf_counter()
                os.fsync(file.fileno())
                times.append(time.perf_counter() - began)
        room = os.statvfs(home)
    except OSError as problem:
        way_out = f"give this user the right to write there, and room (df {home})"
        add(Check("disk", "fail", f"{home} cannot be written: {problem.strerror or problem}", way_out))
        return
    usual, free = statistics.median(times), room.f_bavail * room.f_frsize
    facts = {"fsync_seconds": round(usual, 6), "free_bytes": free}
    # every attempt writes its numbers, of gossip those of all rounds: what is published, what is kept, and the journal
    numbers = 0 if study is None else study.task.dimension * (1 + getattr(study.settings, "rounds", 0))
    needed = (1 << 20) + 32 * numbers * (1 if study is None else study.privacy.attempts)
    said = f"a durable write takes {1000 * usual:.3g} ms, {_bytes(free)} free"
    if free < needed:
        add(Check("disk", "fail", f"{said}, {_bytes(needed)} may be needed", "make room", facts))
    elif free < LITTLE_SPACE:
        add(Check("disk", "warn", said, "make room: a full disk ends the peer", facts))
    elif usual > SLOW_DISK:
        add(Check("disk", "warn", f"{said}: slow", "a local disk is better than a network share", facts))
    else:
        add(Check("disk", "ok", said, facts=facts))


def _bytes(size: float) -> str:
    """A size for people.

    >>> _bytes(5 << 20), _bytes(3 << 30)
    ('5.0 MB', '3 GB')
    """
    return f"{size / (1 << 30):,.0f} GB" if size >= 1 << 30 else f"{size / (1 << 20):,.1f} MB"


def as_lines(check: Check) -> list[str]:
    """A check for people: one line, and a second one with the way out."""
    said = f"{check.status:<5} {check.what:<13} {check.said}"
    return [said, *([f"      → {check.way_out}"] if check.way_out and check.status != "ok" else [])]


__all__ = ["Check", "as_lines", "examine"]
