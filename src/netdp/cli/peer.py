"""`netdp peer`: one party on its own machine. Make its keys, see that all is well before the day, run it, look after its home."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netdp.cli.output import print_lines, working

if TYPE_CHECKING:
    from netdp.cli.peer_progress import Watchers
    from netdp.peers.identity import Card
    from netdp.peers.peer import Peer

app = typer.Typer(
    help="One party on its own machine: make its keys, check everything before the day, run it.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Home = Annotated[Path, typer.Option("--home", help="The folder of this party: keys, policy.toml, peer.db.")]

File = Annotated[Path, typer.Argument(metavar="STUDY", help="The study, a TOML file; signatures beside it.")]

Listen = Annotated[
    str | None,
    typer.Option("--listen", help="HOST:PORT to listen on, if it is not the address in the study (behind a router)."),
]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.", show_default=False)]


PeerCareJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.", show_default=False)]

RUNNING, NOT_RUNNING = 0, 3
"""Exit statuses of `netdp peer status`."""


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@app.command("init")
def init(
    name: Annotated[str, typer.Argument(help="What the party is called in studies.", show_default=False)],
    home: Home,
    days: Annotated[int, typer.Option("--days", help="How long its certificate is good.")] = 825,
    json: Json = False,
) -> None:
    """Make a party: secret keys, a policy to edit, and the public card to send to the others. Overwrites nothing."""
    from netdp.errors import Refused
    from netdp.peers.identity import Identity
    from netdp.peers.ledger.policy import OwnerPolicy

    for there in (home / "keys", home / "card.json"):
        if there.exists():
            raise Refused(
                f"{there} is there already: {home} belongs to a party; `netdp peer card` shows it, or give another --home"
            )
    identity = Identity.create(home, name, days=days)
    policy = home / "policy.toml"
    try:
        with open(os.open(policy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(OwnerPolicy.default_text)
        limits = f"{policy}   (read it, and change it before the first study)"
    except FileExistsError:
        limits = f"{policy}   (it was there, and stays as it is)"
    path = _write_card(home, identity.card)
    lines = [
        f"keys    {home / 'keys'}   (secret: they never leave this machine)",
        f"limits  {limits}",
        f"card    {path}   (send this file to the others)",
        "",
    ]
    print_lines(_about(identity.card, home) | {"policy": str(policy)}, lines + _card_lines(identity.card), json)


@app.command("card")
def card(home: Home, json: Json = False) -> None:
    """Show the public card of a party again: what the others need, and the fingerprint to read to them."""
    from netdp.peers.identity import Identity

    found = Identity.load(home).card
    path = _write_card(home, found)
    lines = [f"card    {path}   (send this file to the others)", "", *_card_lines(found)]
    print_lines(_about(found, home) | {"card": found.to_dict()}, lines, json)


def _write_card(home: Path, found: Card) -> Path:
    """card.json in the home, for the others; written again if it is gone or not what the keys say."""
    import json

    path, text = home / "card.json", json.dumps(found.to_dict(), indent=1) + "\n"
    if not path.is_file() or path.read_text("utf-8", "replace") != text:
        path.write_text(text, "utf-8")
    return path


def _about(found: Card, home: Path) -> dict[str, Any]:
    return {
        "party": found.name,
        "home": str(home),
        "fingerprint": found.fingerprint,
        "file": str(home / "card.json"),
        "until": f"{found.valid[1]:%Y-%m-%d}",
    }


def _card_lines(found: Card) -> list[str]:
    mark = found.fingerprint
    return [
        f"Read this fingerprint of {found.name} to the others, by voice:",
        f"  {mark[:39]}",
        f"  {mark[40:]}",
        f"Its certificate is good until {found.valid[1]:%Y-%m-%d}.",
    ]


# ── its home ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@app.command("status")
def status(home: Home, json: PeerCareJson = False) -> int:
    """Say what a party's peer is doing: study, attempt, links, for whom it waits, outcome, and what is spent. Changes nothing.

    Spent is what others learned from the party's whole ledger, at the δ of its policy. Whether it runs is known from the lock
    of its home, not from what it said last.

    Exit status: 0 it runs, 3 it does not (the last known state is shown).
    """
    from netdp.errors import FileFormatError
    from netdp.peers.status import lines, look

    if not home.is_dir():
        raise FileFormatError(home, None, "is no folder of a party; netdp peer init makes one")
    found = look(home)
    spent, words = _spent(home)
    print_lines({**found.to_dict(), "spent": spent}, [*lines(found, home), *words], json)
    return RUNNING if found.running else NOT_RUNNING


def _spent(home: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """What a home's whole ledger has cost, as plain values and in words; nothing where there is no ledger yet."""
    from netdp.errors import NetdpError
    from netdp.peers.ledger.entries import LedgerBroken, spent_by_size, spent_lines
    from netdp.peers.ledger.policy import OwnerPolicy
    from netdp.peers.ledger.store import Store

    if not (home / "peer.db").exists():
        return None, []
    sizes, delta, unit = {1, 2}, 1e-6, "record"
    try:
        if (home / "policy.toml").exists():
            policy = OwnerPolicy.read(home / "policy.toml")
            sizes, delta, unit = {1, *(limit.against for limit in policy.limits)}, policy.delta, str(policy.unit)
        with Store.open(home / "peer.db", read_only=True) as store:
            store.verify()  # totals of a broken ledger would mean nothing
            told = spent_by_size(store.entries(), sorted(sizes), unit, delta)
    except LedgerBroken as problem:
        return None, [f"spent       BROKEN: {problem}"]
    except (NetdpError, OSError) as problem:
        return None, [f"spent       not known: {problem}"]
    if not told["entries"]:
        return told, ["spent       nothing: its ledger is empty"]
    about = "all data here" if unit == "party" else "any one record"
    rows = "1 entry" if told["entries"] == 1 else f"{told['entries']} entries"
    first = f"spent       {rows} in all; epsilon at delta = {delta:g} about {about}, at most:"
    return told, [first, *spent_lines(told, _who, {})]


def _who(size: int) -> str:
    return "any single party" if size == 1 else f"any {size} parties together"


@app.command("backup")
def backup(
    home: Home,
    to: Annotated[Path, typer.Option("--to", help="The new file to write. Nothing is overwritten.")],
    json: PeerCareJson = False,
) -> None:
    """Write a backup of what a party must remember: its ledger, results, policy and card. No secret keys are in it.

    It can be made while the peer runs. What is restored from it has new keys and can take part in no study that was made
    before: so it can never be used to send a second number where a first one stands.
    """
    from netdp.peers.backup import make

    made = make(home, to)
    rows = len(made.ledger.rows)
    lines = [
        f"backup  {to}   ({_number(rows, 'row')} of the ledger, {_number(len(made.ledger.results), 'result')}; no secret keys)",
        f"of      {made.card.name}, {made.time}",
        "Keep this fingerprint with it; restore shows it again:",
        f"  {made.card.fingerprint[:39]}",
        f"  {made.card.fingerprint[40:]}",
        "What is spent from now on is not in it: make another one after every study.",
    ]
    told = {
        "file": str(to),
        "party": made.card.name,
        "time": made.time,
        "rows": rows,
        "fingerprint": made.card.fingerprint,
    }
    print_lines(told, lines, json)


@app.command("restore")
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.")],
    home: Annotated[Path, typer.Option("--home", help="The new folder to make. It must not exist, or be empty.")],
    fingerprint: Annotated[
        str | None,
        typer.Option(
            "--fingerprint", help="Of the card that made the backup; another one is refused.", show_default=False
        ),
    ] = None,
    json: PeerCareJson = False,
) -> None:
    """Make a new home from a backup: the ledger as it was, and NEW keys under the same name.

    Studies list the old card, so this home can take part in none of them. It takes part in nothing at all until what was
    spent after the backup is entered: netdp ledger admit.
    """
    from netdp.peers.backup import restore

    found, identity = restore(file, home, fingerprint=fingerprint)
    path = _write_card(home, identity.card)
    rows = len(found.ledger.rows)
    old = found.card.fingerprint
    lines = [
        f"home    {home}   ({_number(rows, 'row')} of the ledger, as of {found.time})",
        f"card    {path}   (NEW keys: send this file to the others)",
        "",
        f"The backup was signed by the card {old[:39]}",
        f"                                  {old[40:]}",
        "Is this the one that you kept? If not, throw this home away.",
        "",
        f"MISSING: whatever was spent after {found.time} is not in this ledger.",
        "  for each study since then:  netdp ledger admit STUDY.toml --home " + str(home),
        "  when that is all:           netdp ledger admit --complete --home " + str(home),
        "Until then this home takes part in nothing. Never start the old home again.",
        "",
        *_card_lines(identity.card),
    ]
    told = {
        "party": identity.card.name, "home": str(home), "rows": rows, "backup": found.time, "old_fingerprint": old,
        "fingerprint": identity.card.fingerprint, "complete": False,
    }  # fmt: skip
    print_lines(told, lines, json)


def _number(count: int, what: str) -> str:
    """So many of something.

    >>> _number(1, "row"), _number(2, "row")
    ('1 row', '2 rows')
    """
    return f"{count} {what}{'' if count == 1 else 's'}"


# ── before the day ────────────────────────────────────────────────────────────────────────────────────────────────────


@app.command("doctor")
def doctor(
    study: File,
    home: Home,
    data: Annotated[Path | None, typer.Option("--data", help="This party's rows, a CSV or Parquet file.")] = None,
    listen: Listen = None,
    wait: Annotated[
        float, typer.Option("--wait", help="Listen for so many seconds, so that the neighbours' doctors see this one.")
    ] = 0.0,
    json: Json = False,
) -> int:
    """Check before the day that this party could run, and reach its neighbours. Sends nothing of the data.

    Exit status: 0 nothing fails (warnings may be there), 1 something does.
    """
    _need("cryptography", "google.protobuf", "grpc")
    from netdp.peers.doctor import ReachCheck, as_lines, examine

    def tell(check: ReachCheck) -> None:
        if not json:
            print("\n".join(as_lines(check)), flush=True)

    found = examine(home, study, data, listen=listen, wait=wait, tell=tell)
    count = {status: sum(check.status == status for check in found) for status in ("ok", "warn", "fail")}
    lines = ["", f"{count['ok']} ok, {count['warn']} to look at, {count['fail']} failed"]
    print_lines({"ok": not count["fail"], "counts": count, "checks": [check.to_dict() for check in found]}, lines, json)
    return 1 if count["fail"] else 0


# ── the day ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@app.command("run")
def run(
    study: File,
    home: Home,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", help="This party's rows, a CSV or Parquet file. A curator has none.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Where a trained model goes, with its card; it is in the home in any case."),
    ] = None,
    code: Annotated[
        Path | None,
        typer.Option("--code", help="The folder with the module of a model that is code; else this folder."),
    ] = None,
    listen: Listen = None,
    record: Annotated[
        Path | None, typer.Option("--record", help="Append every frame sent to this file, for audits.")
    ] = None,
    log: Annotated[
        str | None,
        typer.Option("--log", help="Append a line of JSON per event to this file; - for standard error. No secrets."),
    ] = None,
    trace: Annotated[
        bool,
        typer.Option(
            "--trace",
            help="Write into the home who sent what kind of message when, for `netdp studio` to show. No secrets.",
            show_default=False,
        ),
    ] = False,
    metrics: Annotated[
        str | None, typer.Option("--metrics", help="HOST:PORT on this machine to show Prometheus metrics on.")
    ] = None,
    metrics_anywhere: Annotated[
        bool, typer.Option("--metrics-anywhere", help="Let other machines read the metrics, too.", show_default=False)
    ] = False,
    json: Json = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, only the end.", show_default=False)
    ] = False,
) -> int:
    """Take part in a study with this party's data, until everybody near holds the answer.

    Refuses, before anything is sent, what is not signed by all, not what it promises, or over this party's limits. Ended or
    killed at any moment, the same command goes on from where it was.

    Exit status: 0 the answer is here; 2 refused, nothing new was sent; 3 the study ended without an answer; 4 the answer is none
    that honest parties can have come to, and is withheld; 1 a failure, start it again; 130 or 143 stopped by a signal, start it
    again.
    """
    with contextlib.nullcontext() if quiet or json else working("loading what runs a party"):
        _need("cryptography", "google.protobuf", "grpc", *(["prometheus_client"] if metrics is not None else []))
        from netdp.errors import FileFormatError, InvalidValue, NetdpError, Refused
        from netdp.peers.events import statement_of
        from netdp.peers.ledger.policy import PolicyRefused, verdict_lines
        from netdp.peers.outcome import FAILED, REFUSED, status_of
        from netdp.peers.peer import prepare
        from netdp.peers.status import Standing
        from netdp.peers.trace import Trace

    from netdp.cli.peer_progress import (  # needs the extra `peers`
        Progress,
        Watchers,
        check_apart,
        live,
        make_log,
        outcome_lines,
        signals,
        stopped_words,
    )
    from netdp.cli.training import before, model_lines, use_code

    use_code(code)
    progress = Progress(quiet or log == "-")
    running, stopped = False, list[int]()
    if record is not None:
        check_apart(home, "--record", record)
    traced = Trace(home) if trace else None
    watchers = Watchers(progress, Standing(home), make_log(log, home), traced)
    try:
        with signals() as stopped, contextlib.ExitStack() as stack:
            with (
                contextlib.nullcontext() if progress.quiet else working("checking keys, study, data, ledger and policy")
            ):
                peer = prepare(home, study, data, listen=listen, report=watchers, record=record, trace=traced)
            try:
                for line in before(peer.study, out):
                    progress.say(line)
                if metrics is not None:
                    port = stack.enter_context(_metrics(peer, home, metrics, metrics_anywhere, watchers))
                    progress.say(f"metrics on port {port}")
                watchers.begin(peer)
                earlier = peer.store.result(peer.study.hash)
            except BaseException:
                peer.store.close()
                raise
            running, stay = True, None
            if earlier is not None:
                earlier.pop("resume", None)  # what the peer serves others with, not for people
                # so short that it never gives an attempt up: who holds the answer publishes nothing new
                stay = min(peer.study.timing.gather, peer.study.timing.patience) / 4
                progress.say(
                    f"the answer is here already; staying {stay:g} s, in case a neighbour still needs something"
                )
            told, entries = live(peer, watchers, stopped, stay, earlier)
    except KeyboardInterrupt:  # while preparing
        watchers.close()
        return _stopped(stopped, stopped_words(None, 0, 0.0), 0, json)
    except NetdpError as problem:
        progress.clear()
        if not running:
            watchers.close(statement_of(problem))
        # what was given does not fit, and would not at the next start either; else the machine is to blame
        refused = isinstance(problem, Refused | InvalidValue | FileFormatError)
        verdicts = problem.verdicts if isinstance(problem, PolicyRefused) else ()
        print("\n".join([f"netdp: {problem}", *(verdict_lines(verdicts) if verdicts else ())]), file=sys.stderr)
        if json:
            limits = {"limits": [verdict.to_dict() for verdict in verdicts]} if verdicts else {}
            kind = "refused" if refused else "failed"
            print_lines({"ok": False, "status": kind, "reason": str(problem), "running": running, **limits}, [], True)
        return REFUSED if refused else FAILED
    progress.clear()
    if told is None:
        sentence = stopped_words(entries, peer.meter.linked, peer.study.timing.patience, peer.party.steps_made)
        return _stopped(stopped, sentence, entries, json)
    files, lines = model_lines(peer.study, home, out) if told["ok"] else ({}, [])
    status = "answered" if told["ok"] else "withheld" if told.get("withheld") else "ended"
    print_lines(
        {"status": status, **told, "ledger": str(home / "peer.db"), **files},
        [*outcome_lines(peer.study, told, home), *lines],
        json,
    )
    return status_of(told)


def _metrics(
    peer: Peer, home: Path, address: str, anywhere: bool, watchers: Watchers
) -> contextlib.AbstractContextManager[int]:
    """Show the counts of a peer while this lasts."""
    from netdp.peers.ledger.policy import OwnerPolicy
    from netdp.peers.metrics import Collector, Spent, shown, where

    host, port = where(address, anywhere=anywhere)
    file = home / "policy.toml"
    delta, unit = (
        (found.delta, str(found.unit)) if file.exists() and (found := OwnerPolicy.read(file)) else (1e-6, "record")
    )
    spent = Spent(peer.store, delta, unit)
    collector = Collector(
        peer.meter, spent, rejections=peer.party.rejections, starts=lambda: watchers.standing.starts,
        cheats=lambda: len({key.author for key in peer.party.evidence}),
    )  # fmt: skip
    return shown(collector, host, port)


def _stopped(signals: list[int], sentence: str, entries: int, json: bool) -> int:
    """Ended by a signal, without an answer."""
    print(f"netdp: {sentence}", file=sys.stderr)
    if json:
        print_lines({"ok": False, "status": "stopped", "contributed": entries}, [], True)
    return 128 + (signals[0] if signals else signal.SIGINT)


def _need(*packages: str) -> None:
    """Say which package is missing, before a deep import does."""
    import importlib

    from netdp.errors import MissingDependency

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # as netdp.peers.transport.grpc does, which is loaded later
    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError:
            raise MissingDependency(package, "a peer", "peers") from None
