"""Which folder is watched: all homes that a `netdp up` keeps in one folder, or the home of one peer; and which study runs there."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

from netdp.errors import FileFormatError, InvalidValue, NetdpError
from netdp.peers.status import FILE as STATUS
from netdp.peers.study import Study
from netdp.peers.trace import STUDY as TRACED


@dataclass(frozen=True)
class Place:
    """A folder to watch. `me` is the party whose home it is, or None if it holds the homes of all."""

    path: Path
    me: str | None = None

    def home(self, name: str) -> Path:
        """Where the home of a party is, or would be."""
        return self.path if name == self.me else self.path / name

    def watched(self, study: Study) -> tuple[str, ...]:
        """Whose homes are watched."""
        return study.everybody if self.me is None else (self.me,)

    def newest_study(self) -> tuple[float, Path] | None:
        """The study that was begun here last, as (when it was written, its file): in the folder, or beside a trace."""
        found = [self.path / TRACED] if self.me is not None else []
        if self.me is None:
            found = [*self.path.glob("study*.toml"), *self.path.glob(f"*/{TRACED}")]
        dated = []
        for file in found:
            with contextlib.suppress(OSError):
                dated.append((file.stat().st_mtime, file))
        return max(dated, default=None)


def find_place(path: Path, study: Path | None = None) -> tuple[Place, Study]:
    """What a folder is, and the study that runs there, or will; refuses what is neither a home nor a folder of homes."""
    path, given = Path(path), None if study is None else Study.read(study)
    if is_home(path):
        place = Place(path, _party_of(path))
        if given is not None and place.me not in given.everybody:
            raise InvalidValue(f"{path} is the home of {place.me}, who is no party of {given.name!r} ({study})")
        return place, given if given is not None else _study_of(place)
    place = Place(path)
    if given is not None:  # homes may still come
        if path.exists() and not path.is_dir():
            raise InvalidValue(f"{path} is no folder; name the folder of `netdp up --folder`, or a peer's home")
        return place, given
    if not path.is_dir():
        raise InvalidValue(
            f"{path} is no folder; name the folder of `netdp up --folder`, or a peer's home. If `netdp up` will make it, name its "
            "study, too"
        )
    found = _study_of(place)
    if not any(is_home(path / name) for name in found.everybody):
        raise InvalidValue(f"{path} holds a study, but the home of none of its parties; run `netdp up --folder {path}`")
    return place, found


def is_home(path: Path) -> bool:
    """Whether a folder is the home of a party: it has keys, or a ledger."""
    return (path / "keys").is_dir() or (path / "peer.db").is_file()


def _study_of(place: Place) -> Study:
    newest = place.newest_study()
    if newest is not None:
        return Study.read(newest[1])
    if place.me is not None:
        raise InvalidValue(
            f"{place.path} does not say which study runs there: name the study file, too, or run its peer with --trace"
        )
    raise InvalidValue(
        f"{place.path} is neither a peer's home (it has no keys) nor a folder of `netdp up --folder` (it has no study.toml)"
    )


def _party_of(home: Path) -> str:
    """Whose home it is: as its status file or its card says, else its name."""
    for file, key in ((home / STATUS, "party"), (home / "card.json", "name")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            name = json.loads(file.read_bytes()[: 1 << 20])[key]
            if isinstance(name, str) and name:
                return name
    return home.resolve().name


def read_again(path: Path) -> Study | None:
    """A study file that may just be written; None if it cannot be read now."""
    try:
        return Study.read(path)
    except (NetdpError, FileFormatError, OSError):
        return None
