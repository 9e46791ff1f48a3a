"""`netdp evidence`: whether a proof that somebody signed two different things is one, and what it proves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netdp.cli.output import print_lines

if TYPE_CHECKING:
    from netdp.peers.study.study import Study

app = typer.Typer(
    help="Proofs that somebody signed two different things: check them.", rich_markup_mode=None, no_args_is_help=True
)


@app.callback()
def _root() -> None:
    """A group, also while it has a single command."""


@app.command("verify")
def verify(
    file: Annotated[
        Path,
        typer.Argument(
            help="A proof, or a file with some: HOME/evidence.json, or what peer run --json or up --json printed.",
            show_default=False,
        ),
    ],
    study: Annotated[
        Path | None,
        typer.Option("--study", help="The study, which says whose keys they are; without it nothing is proved."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.", show_default=False)] = False,
) -> int:
    """Check proofs that a party signed two different things, and say what is proved.

    Exit status: 0 all that the file holds is proved; 1 something is not, or it holds nothing.
    """
    from netdp.peers.study.study import Study

    proofs = _read(file)
    known = None if study is None else Study.read(study)
    if known is not None and not known.is_complete:
        from netdp.errors import InvalidValue

        raise InvalidValue(
            f"{study} is a draft, which has no keys to check signatures with; give the one that was signed"
        )
    found = [_checked(one, known) for one in proofs]
    lines = [line for one in found for line in _words(one)]
    if not found:
        lines = [f"{file} holds no proof: nobody is shown to have signed two different things."]
    ok = bool(found) and all(one["proved"] for one in found)
    print_lines({"ok": ok, "proofs": found}, lines, json)
    return 0 if ok else 1


def _read(file: Path) -> list[Any]:
    """The proofs in a file: one, a list of them, or the list in an outcome."""
    import json

    from netdp.errors import FileFormatError

    try:
        told = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise FileFormatError(file, None, f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise FileFormatError(file, None, "is no JSON; a proof is in HOME/evidence.json of a party") from None
    if isinstance(told, dict):
        told = told.get("evidence", [told] if "said" in told else [])
    return told if isinstance(told, list) else [told]


def _checked(one: Any, study: Study | None) -> dict[str, Any]:
    """A proof with what came of checking it."""
    from netdp.peers.exchange import proves

    fields = one if isinstance(one, Mapping) else {}
    told = {key: fields.get(key) for key in ("study", "party", "kind", "attempt", "index")}
    if study is None:
        return told | {
            "proved": False,
            "why": "without the study nobody knows whose keys these are: give --study STUDY",
        }
    if not proves(study, fields):
        other = told["study"] is not None and told["study"] != study.hash.hex()
        why = f"it is about another study ({str(told['study'])[:16]}…)" if other else "the signatures do not show it"
        return told | {"proved": False, "why": why}
    return told | {"proved": True, "why": None, "name": study.name}


def _words(one: Mapping[str, Any]) -> list[str]:
    """What a proof proves, in plain words."""
    import textwrap

    from netdp.peers.status import words_of

    who, what = _shown(one["party"]), words_of(one)
    if not one["proved"]:
        said = [f"NOT PROVED that {who} signed {what}: {one['why']}."]
    else:
        said = [
            f'PROVED: {who} signed {what} of the study "{one["name"]}".',
            f"An honest party signs one. So {who} cheats, or its keys are in use elsewhere: in a copy of its folder, or by a "
            "thief. It is not proved which of the two it meant, nor that a number of it is untrue.",
        ]
    return [line for sentence in said for line in textwrap.wrap(sentence, 79, subsequent_indent="  ")]


def _shown(name: Any) -> str:
    """A name that may be put on a terminal."""
    return name if isinstance(name, str) and name.isprintable() and 0 < len(name) <= 64 else "somebody"
