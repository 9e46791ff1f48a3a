"""`netdp ledger`: what a party's studies have cost it so far, and whether its ledger is as it was written."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import flags

if TYPE_CHECKING:
    from netdp.peers.ledger.entries import Entry

app = typer.Typer(
    help="What a party's studies have cost it so far, and whether its ledger is as it was written.",
    rich_markup_mode=None,
)

Home = Annotated[Path, typer.Option("--home", help="The folder with the party's keys, policy and peer.db.")]
_SIZES = (1, 2, 3)
_NAMED = 20


@app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command("show")
def show_ledger(
    home: Home,
    against: Annotated[
        str | None,
        typer.Option("--against", help="Who looks: a party's name, or a number, any so many parties together."),
    ] = None,
    year: Annotated[int | None, typer.Option("--year", help="This calendar year only (UTC).")] = None,
    since: Annotated[str | None, typer.Option("--since", help="From this day on, such as 2026-07-01.")] = None,
    delta: Annotated[
        float | None,
        typer.Option("--delta", help="δ of the ε(δ) in question; that of the policy by default, else 1e-6."),
    ] = None,
    json: flags.Json = None,
) -> None:
    """List the entries of a ledger, and what others have learnt from all of them together."""
    from netdp.cli.output import show
    from netdp.errors import InvalidValue
    from netdp.numerics.checks import check_delta
    from netdp.peers.ledger import entries as book
    from netdp.peers.ledger.policy import OwnerPolicy
    from netdp.peers.ledger.store import Store

    if year is not None and since is not None:
        raise InvalidValue("--year and --since both say when to begin; give one of them")
    start, end = book.year(year) if year is not None else (None if since is None else book.utc_text(since), None)
    policy = OwnerPolicy.read(home / "policy.toml") if (home / "policy.toml").exists() else None
    level = float(check_delta(delta if delta is not None else policy.delta if policy is not None else 1e-6))
    with Store.open(home / "peer.db", read_only=True) as store:
        checked = store.verify()  # totals of a broken ledger would mean nothing
        whole = store.entries()
    kept = {id(entry) for entry in book.between(whole, start, end)}
    chosen = [(row, entry) for row, entry in enumerate(whole, 1) if id(entry) in kept]
    entries = [entry for _, entry in chosen]
    if against is not None:
        wanted: list[int | str] = [_who(against, book.observers(whole))]
    else:
        wanted = sorted({*_SIZES, *(limit.against for limit in (policy.limits if policy is not None else ()))})
    totals = [_total(entries, who, level) for who in wanted]
    named = [_total(entries, who, level) for who in book.observers(entries)] if against is None else []
    named.sort(key=lambda one: -_order(one["record"]))
    alone = [_finite(float(book.total([entry], wanted[0], "record").epsilon(level))) for entry in entries]
    data: dict[str, Any] = {
        "home": str(home),
        "delta": level,
        "since": start,
        "until": end,
        "entries": [
            {"row": row, **_plain(entry), "epsilon": epsilon}
            for (row, entry), epsilon in zip(chosen, alone, strict=True)
        ],
        "totals": totals,
        "observers": named,
        "worst": named[0]["against"] if named else None,
        "seams": [seam.to_dict() for seam in checked.seams],
        "admitted": list(checked.admitted),
    }
    lines = _lines(data, wanted[0], len(whole))
    show(data, lines + _seam_lines(data["seams"], data["admitted"], home), bool(json))


@app.command("verify")
def verify(
    home: Home,
    studies: Annotated[
        list[Path] | None,
        typer.Option("--study", help="A study of which attempts are entered as free: check their seals; repeat it."),
    ] = None,
    json: flags.Json = None,
) -> None:
    """Check that nothing was changed, removed or added: the chain of hashes, its signature, and every contribution.

    An entry of an attempt that was free holds its members' signatures that nothing was opened: --study checks them.
    An older copy of the whole file cannot be told from the file alone.
    """
    from netdp.cli.output import show
    from netdp.peers.identity import Identity
    from netdp.peers.ledger.entries import LedgerBroken
    from netdp.peers.ledger.store import Store
    from netdp.peers.recovery.seal import check_seals, is_free
    from netdp.peers.study.study import Study

    card = Identity.load(home).card
    known = [Study.read(path) for path in studies or ()]
    try:
        with Store.open(home / "peer.db", read_only=True) as store:
            found = store.verify(card)
            entries = store.entries()
        for study in known:
            check_seals(study, entries)
    except LedgerBroken as error:
        show({"ok": False, "row": error.row, "problem": error.problem}, [f"BROKEN: {error}"], bool(json))
        raise typer.Exit(1) from None
    rows = f"{found.rows} row{'' if found.rows == 1 else 's'}"
    adopted = f"; {found.adopted} taken back from neighbours" if found.adopted else ""
    signed = f"signed by {card.name}" if found.signed else "nothing to sign yet"
    each = "each with its contribution"
    if found.seams or found.admitted:
        each = "each with its contribution, but for those named below"
    hashes = {study.hash.hex() for study in known}
    free = [entry for entry in entries if is_free(entry)]
    sealed = sum(entry.study in hashes for entry in free)
    seals = []
    if free:
        seals = [f"{len(free)} of them free; the seals of {sealed} were checked"]
        unchecked = sorted({entry.name for entry in free if entry.study not in hashes})
        seals += [f"  to check those of {', '.join(map(repr, unchecked))}: --study STUDY"] if unchecked else []
    lines = [
        f"{home / 'peer.db'}: in order",
        f"{rows}, {each}{adopted}",
        *seals,
        f"head {found.head[:16]}…, {signed}",
        *_seam_lines([seam.to_dict() for seam in found.seams], list(found.admitted), home),
    ]
    show(
        {"ok": True, "rows": found.rows, "head": found.head, "signed": found.signed, "adopted": found.adopted,
         "free": len(free), "seals": sealed, "seams": [seam.to_dict() for seam in found.seams], "admitted": list(found.admitted)},
        lines,
        bool(json),
    )  # fmt: skip


@app.command("admit")
def admit(
    home: Home,
    studies: Annotated[
        list[Path] | None, typer.Argument(metavar="[STUDY]...", help="Signed studies that this party took part in.")
    ] = None,
    complete: Annotated[
        bool,
        typer.Option(
            "--complete", help="Say that nothing else was spent: a restored home may run.", show_default=False
        ),
    ] = False,
    times: Annotated[
        int, typer.Option("--times", help="Enter it so many times, if its end said that it was worse than promised.")
    ] = 1,
    json: flags.Json = None,
) -> None:
    """Enter the full cost of studies whose entries were lost with a machine, and say when that is all.

    A study is entered with everything that it could cost this party in attempts that are not in the ledger yet, whoever was
    missing. That is never less than the truth. It cannot be taken back, and a study that was entered by hand
    cannot be run from this home.
    """
    from netdp.cli.output import show
    from netdp.errors import InvalidValue, Refused
    from netdp.peers.identity import Identity, check_memory
    from netdp.peers.ledger import continuity as carrying
    from netdp.peers.ledger.store import Store
    from netdp.peers.study import signatures
    from netdp.peers.study.study import Study

    if not studies and not complete:
        raise InvalidValue("nothing to enter: name the studies (TOML files, signatures beside them), or say --complete")
    identity = Identity.load(home)
    check_memory(home)  # a new, empty ledger in the place of one that is gone would pass for its memory
    lines, entered = [], {}
    read = [(path, Study.read(path)) for path in studies or ()]
    with Store.open(home / "peer.db", sign=identity.sign) as store:
        found = store.verify(identity.card)
        own = [identity.card, *(seam.card for seam in found.seams)]
        for path, study in read:
            signatures.verify_all(study, signatures.read_all(path))  # signed by all: these are its terms
            name = identity.card.name
            if name not in study.names or study.card(study.index(name)) not in own:
                raise Refused(
                    f"{path}: no party of the study {study.name!r} has a card of this home, now or before; nothing was entered"
                )
        for path, study in read:
            new = carrying.promised(study, store, study.index(identity.card.name), times)
            rows = carrying.admit(store, new)
            entered[str(path)] = rows
            lines.append(
                f'"{study.name}": {rows} row{"" if rows == 1 else "s"} entered: all that it could still cost'
                if rows
                else f'"{study.name}": all that it can cost is in the ledger already'
            )
        if complete:
            asked = carrying.say_complete(store)
            lines.append(
                "Complete: this home may take part again."
                if asked
                else "Nothing was missing: no backup was restored here."
            )
        found = store.verify(identity.card)
    left = [seam.to_dict() for seam in found.seams]
    lines += _seam_lines(left, list(found.admitted), home)
    show({"entered": entered, "rows": found.rows, "seams": left, "admitted": list(found.admitted)}, lines, bool(json))


def _seam_lines(seams: list[dict[str, Any]], admitted: list[int], home: Path) -> list[str]:
    """What was carried over, what was entered by hand, and what may be missing."""
    lines = []
    for seam in seams:
        rows = (
            f"rows 1 … {seam['rows']} come"
            if seam["rows"] > 1
            else f"row {seam['rows']} comes"
            if seam["rows"]
            else "no rows come"
        )
        lines += [
            f"seam: {rows} from a backup of {seam['backup']},",
            f"      signed by the old card {seam['old_fingerprint'][:19]} …",
        ]
        if not seam["complete"]:
            lines += [
                f"OPEN: what was spent between {seam['backup']} and {seam['restored']}",
                f"      may be missing. Enter it: netdp ledger admit STUDY.toml --home {home}",
                f"      when that is all:         netdp ledger admit --complete --home {home}",
            ]
    if admitted:
        shown = ", ".join(map(str, admitted[:10])) + (" …" if len(admitted) > 10 else "")
        lines.append(f"entered by hand: row{'' if len(admitted) == 1 else 's'} {shown}")
    return lines


def _who(text: str, known: list[str]) -> int | str:
    from netdp.errors import InvalidValue

    if text in known:
        return text
    if text.isdecimal():
        return int(text)
    raise InvalidValue(
        f"--against {text}: no roster names such a party; give a number of parties, or one of {', '.join(known) or 'nobody yet'}"
    )


def _total(entries: list[Entry], against: int | str, delta: float) -> dict[str, Any]:
    """ε about one record and about all data, whatever was chosen and if all had been fixed beforehand; None: no bound."""
    from netdp.peers.ledger.entries import spent

    found = {unit: spent(entries, against, unit, delta) for unit in ("record", "party")}
    return {
        "against": against,
        **{unit: _finite(both.epsilon) for unit, both in found.items()},
        "fixed": {unit: _finite(both.fixed) for unit, both in found.items()},
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _order(value: float | None) -> float:
    return math.inf if value is None else value


def _plain(entry: Entry) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(entry), "roster": list(entry.roster)}


def _lines(data: dict[str, Any], first: int | str, rows: int) -> list[str]:
    """At most 80 columns."""
    when = "" if data["since"] is None else f" since {data['since'][:10]}"
    when += "" if data["until"] is None else f" and before {data['until'][:10]}"
    lines = [
        f"{data['home']}: {len(data['entries'])} of {rows} entries{when}"
        if when
        else f"{data['home']}: {rows} entr{'y' if rows == 1 else 'ies'}"
    ]
    if not data["entries"]:
        return [*lines, "Nothing was revealed."]
    lines += ["", f"{'row':>4}  {'day':<10}  {'study':<26}{'attempt':>8}{'parties':>9}  {'protects':<9}{'epsilon':>8}"]
    for entry in data["entries"]:
        name = entry["name"] if len(entry["name"]) <= 25 else entry["name"][:24] + "…"
        lines.append(
            f"{entry['row']:>4}  {entry['time'][:10]}  {name:<26}{_attempt(entry['attempt']):>8}{len(entry['roster']):>9}  "
            f"{entry['unit']:<9}{'free' if _is_free(entry) else _epsilon(entry['epsilon']):>8}"
        )
    if any(_attempt(entry["attempt"])[-1] == "*" for entry in data["entries"]):
        lines.append("      *: what that attempt really cost; it counts in place of the row before")
    if free := [entry for entry in data["entries"] if _is_free(entry)]:
        lines.append("      free: its members sealed that nothing of it is opened, so it cost nothing")
        lines += [
            f"            row {entry['row']}: signed by {len(entry['loss']['seal'])} of {len(entry['roster'])}"
            for entry in free
        ]
    lines += [f"      epsilon: of this entry alone, to {_words(first)}, at delta = {data['delta']:g}", ""]
    lines.append(f"{'All of these together, to':<36}{'about one record':>22}{'about all data':>22}")
    lines.append(f"{'':<36}{'whatever':>11}{'fixed':>11}{'whatever':>11}{'fixed':>11}")
    shown = [(_words(one["against"]), one) for one in data["totals"]]
    named = [one["against"] + (" (the most)" if place == 0 else "") for place, one in enumerate(data["observers"])]
    shown += list(zip(named, data["observers"], strict=True))[:_NAMED]
    for name, one in shown:
        cells = (one["record"], one["fixed"]["record"], one["party"], one["fixed"]["party"])
        lines.append(f"{name[:35]:<36}" + "".join(f"{_epsilon(cell):>11}" for cell in cells))
    lines.append("whatever: whatever was chosen after looking at answers; so it is what counts")
    lines.append("fixed: if all had been fixed beforehand")
    if len(data["observers"]) > _NAMED:
        lines.append(f"and {len(data['observers']) - _NAMED} others, who learnt no more (--json lists them)")
    if any(entry["unit"] == "record" for entry in data["entries"]):
        lines.append("Entries that protect single records bound nothing about all data together.")
    return lines


def _is_free(entry: dict[str, Any]) -> bool:
    return bool(entry["loss"].get("kind") == "nothing")


def _attempt(number: int) -> str:
    """The number of an attempt; marked, if the row says what it really cost."""
    from netdp.peers.ledger.entries import CORRECTS

    return f"{number % CORRECTS}*" if number > CORRECTS else str(number)


def _words(who: int | str) -> str:
    if isinstance(who, str):
        return who
    return {0: "outsiders", 1: "any 1 party"}.get(who, f"any {who} parties together")


def _epsilon(value: float | None) -> str:
    from netdp.privacy.wording import readable

    return "no bound" if value is None else readable(value)
