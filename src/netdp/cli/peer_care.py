"""`netdp peer status`, `backup` and `restore`: looking after a party's home."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Home = Annotated[Path, typer.Option("--home", help="The folder of this party: keys, policy.toml, peer.db.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.", show_default=False)]

RUNNING, NOT_RUNNING = 0, 3


def status(home: Home, json: Json = False) -> int:
    """Say what a party's peer is doing: study, attempt, links, for whom it waits and how long, outcome. Changes nothing.

    Whether it runs is known from the lock of its home, not from what it said last.

    Exit status: 0 it runs, 3 it does not (the last known state is shown).
    """
    from netdp.errors import FileFormatError
    from netdp.peers.status import lines, look

    from .peer import _show

    if not home.is_dir():
        raise FileFormatError(home, None, "is no folder of a party; netdp peer init makes one")
    found = look(home)
    _show(found.to_dict(), lines(found, home), json)
    return RUNNING if found.running else NOT_RUNNING


def backup(
    home: Home,
    to: Annotated[Path, typer.Option("--to", help="The new file to write. Nothing is overwritten.")],
    json: Json = False,
) -> None:
    """Write a backup of what a party must remember: its ledger, results, policy and card. No secret keys are in it.

    It can be made while the peer runs. What is restored from it has new keys and can take part in no study that was made
    before: so it can never be used to send a second number where a first one stands.
    """
    from netdp.peers.backup import make

    from .peer import _show

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
    _show(told, lines, json)


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.")],
    home: Annotated[Path, typer.Option("--home", help="The new folder to make. It must not exist, or be empty.")],
    fingerprint: Annotated[
        str | None,
        typer.Option(
            "--fingerprint", help="Of the card that made the backup; another one is refused.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Make a new home from a backup: the ledger as it was, and NEW keys under the same name.

    Studies list the old card, so this home can take part in none of them. It takes part in nothing at all until what was
    spent after the backup is entered: netdp ledger admit.
    """
    from netdp.peers.backup import restore

    from .peer import _card_lines, _show, _write_card

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
    _show(told, lines, json)


def _number(count: int, what: str) -> str:
    """So many of something.

    >>> _number(1, "row"), _number(2, "row")
    ('1 row', '2 rows')
    """
    return f"{count} {what}{'' if count == 1 else 's'}"
