"""What real peers sent, read again from the files in which they wrote it down, and what a coalition holds of it.

**A recording** is a folder with all that one run of a study left behind:

    study.toml            the study as it was signed (or study-2.toml, …)
    NAME.frames           every frame that NAME sent: 4 bytes receiver, 4 bytes length, the frame
    NAME/data.csv         the data of NAME (or data.parquet)
    NAME/keys, peer.db    its home; may lie in another folder, which homes.txt names

`netdp up study.toml --folder DIR --record DIR` writes it. Who audits a run of its own has all of it; who looks has little of it.

**What a coalition O holds** (`View`): the frames that its members sent and received, and their own homes: their keys, hence
their pads with everybody, and what their ledgers say of the answer. `view_of` opens no other home. Beside it an attack is given
the data of all parties but the target, because the promise is made against observers who know them.

**One file, several studies.** Every link begins with a Hello that names the study, and so does every new one after a restart.
Frames of other studies in the same files are left out, and counted.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from netdp.errors import FileFormatError, InvalidValue, NetdpError
from netdp.numerics.arrays import FloatArray
from netdp.peers.identity import Identity
from netdp.peers.ledger.store import Store
from netdp.peers.messages import Hello, Item, ItemKind, Message, decode, encode, roster_digest
from netdp.peers.study.rows import PARQUET
from netdp.peers.study.study import Study

_HEAD = struct.Struct("<II")

_AGAIN = "record again: netdp up STUDY --folder DIR --record DIR, the same new folder twice"

HOMES = "homes.txt"

DATA = tuple(f"data{end}" for end in (".csv", *PARQUET))


@dataclass(frozen=True)
class Said:
    """One message on its way: from whom to whom, and the how-manieth of all that its sender said."""

    sender: int
    to: int
    place: int
    message: Message

    @property
    def item(self) -> Item:
        """The item that it is; `items` gives only those that are."""
        assert isinstance(self.message, Item)
        return self.message


@dataclass(frozen=True, eq=False)
class Recording:
    """All that was sent in one run of a study, each party's words in its own order.

    odd     (sender, receiver, place) of frames that say more than their messages: bytes that no version of ours writes
    notes   what the reader should know
    """

    folder: Path
    homes: Path
    study: Study
    said: tuple[Said, ...]
    odd: tuple[tuple[int, int, int], ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def items(self) -> tuple[Said, ...]:
        """Those messages that are items."""
        return tuple(one for one in self.said if isinstance(one.message, Item))

    @cached_property
    def rosters(self) -> dict[int, tuple[int, ...]]:
        """Of every attempt in which somebody contributed, the roster it was made to."""
        return rosters_of(self.items)

    @cached_property
    def rows(self) -> dict[int, FloatArray]:
        """Everybody's data, as the task makes numbers of them."""
        return {u: self._rows(name) for u, name in enumerate(self.study.names)}

    def _rows(self, name: str) -> FloatArray:
        for folder in dict.fromkeys((self.folder, self.homes)):
            for file in DATA:
                if (folder / name / file).is_file():
                    return self.study.task.rows(folder / name / file)
        raise FileFormatError(
            self.folder / name / DATA[0],
            None,
            f"the data of {name} are missing: an audit takes known data off; {_AGAIN}",
        )

    def home(self, u: int) -> Path:
        """Where participant u keeps its keys and its ledger."""
        name = self.study.everybody[u]
        for folder in dict.fromkeys((self.folder, self.homes)):
            if (folder / name / "keys").is_dir():
                return folder / name
        raise FileFormatError(
            self.homes / name,
            None,
            f"the home of {name}, with its keys, is missing; name the folder of homes, or {_AGAIN}",
        )

    def names(self, parties: Iterable[int]) -> str:
        """What participants are called, for a sentence."""
        return ", ".join(self.study.everybody[u] for u in parties)


def rosters_of(items: Iterable[Said]) -> dict[int, tuple[int, ...]]:
    """Attempt → its roster: the one whose digest contributions begin with; where none are passed on, the one all voted for."""
    votes: dict[int, dict[int, tuple[int, ...]]] = {}
    contributed: dict[int, bytes] = {}
    moved: set[int] = set()
    said = list(items)
    dealt = {one.item.key.attempt for one in said if one.item.key.kind == ItemKind.KEYS}
    for one in said:
        key, body = one.item.key, one.item.body
        if key.kind == ItemKind.VOTE and key.attempt in dealt:
            body = body[:-32]  # which dealings it names
        if key.kind == ItemKind.VOTE and len(body) % 4 == 0:
            votes.setdefault(key.attempt, {})[key.author] = struct.unpack(f"<{len(body) // 4}I", body)
        elif key.kind == ItemKind.CONTRIBUTION:
            contributed.setdefault(key.attempt, body[:32])
        elif not key.kind.is_signed:
            moved.add(key.attempt)
    found = {}
    for attempt in sorted(votes):
        for roster in set(votes[attempt].values()):
            sealed = all(votes[attempt].get(u) == roster for u in roster)
            if contributed.get(attempt) == roster_digest(roster) or (attempt in moved - set(contributed) and sealed):
                found[attempt] = roster
    return found


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_recordings(folder: Path, homes: Path | None = None) -> list[Recording]:
    """The recordings in a folder: one for every study that lies there and that its frames are of."""
    folder = Path(folder)
    if not folder.is_dir():
        raise FileFormatError(folder, None, f"is no folder with a recording; {_AGAIN}")
    if homes is None and (folder / HOMES).is_file():
        homes = Path((folder / HOMES).read_text("utf-8").strip())
    studies = _studies(folder)
    spoken: Counter[bytes] = Counter()
    found: dict[bytes, list[Said]] = {study.hash: [] for study in studies}
    odd: dict[bytes, list[tuple[int, int, int]]] = {study.hash: [] for study in studies}
    names = dict.fromkeys(name for study in studies for name in study.everybody)
    missing = [name for name in names if not (folder / f"{name}.frames").exists()]
    if len(missing) > max(study.privacy.absent for study in studies):
        list(frames_in(folder / f"{missing[0]}.frames"))  # says which
    for name in names:
        if name in missing:
            continue  # it may be away; if it did speak, others passed that on: `_checked` looks
        owners = [study for study in studies if name in study.everybody]
        for to, place, frame, messages, study in _spoken(folder / f"{name}.frames", name, owners):
            spoken[study] += 1
            if study not in found:
                continue
            sender = next(one for one in owners if one.hash == study).index(name)
            found[study] += [Said(sender, to, place, message) for message in messages]
            if not _is_ours(frame, messages):
                odd[study].append((sender, to, place))
    made = [study for study in studies if study.hash in spoken]
    if not made:
        heard = ", ".join(f"{study.hex()[:12]}…" for study in spoken) or "none: they are empty"
        raise FileFormatError(
            folder / "study.toml", None,
            f"is the study {studies[0].hash.hex()[:12]}…, and the frames beside it are of another one ({heard}); put the study "
            f"that was run beside its frames, or {_AGAIN}",
        )  # fmt: skip
    others = sum(count for study, count in spoken.items() if study not in found)
    notes = (f"{others:,} frames of other studies are in the same files and were left out",) if others else ()
    return [
        _checked(
            Recording(folder, Path(homes or folder), study, tuple(found[study.hash]), tuple(odd[study.hash]), notes)
        )
        for study in made
    ]


def read_recording(folder: Path, homes: Path | None = None) -> Recording:
    """The only recording in a folder; refuses where there are several."""
    made = read_recordings(folder, homes)
    if len(made) > 1:
        raise InvalidValue(f"{folder} holds the frames of {len(made)} studies; record each into a folder of its own")
    return made[0]


def _studies(folder: Path) -> list[Study]:
    """The complete studies of a folder."""
    found: dict[bytes, Study] = {}
    paths = sorted(folder.glob("study*.toml"))
    if not paths:
        raise FileFormatError(
            folder / "study.toml", None, f"is missing: which study do these frames belong to? {_AGAIN}"
        )
    problem: NetdpError | None = None
    for path in paths:
        try:
            study = Study.read(path)
        except NetdpError as error:
            problem = error
            continue
        if study.is_complete:
            found.setdefault(study.hash, study)
        else:
            problem = problem or FileFormatError(
                path,
                None,
                f"is a draft without keys, and frames are checked by keys; put the settled study here, or {_AGAIN}",
            )
    if not found:
        assert problem is not None
        raise problem
    return list(found.values())


def frames_in(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """(receiver, place, frame) of a file of frames; refuses one that is cut off."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FileFormatError(path, None, f"is missing: the frames of one who took part; {_AGAIN}") from None
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror or error}") from None
    at = place = 0
    while at < len(content):
        to, size = _HEAD.unpack_from(content, at) if at + _HEAD.size <= len(content) else (0, -1)
        if size < 0 or at + _HEAD.size + size > len(content):
            raise FileFormatError(
                path, None,
                f"is cut off in frame {place}, at byte {at:,} of {len(content):,}: the disk was full, or it was copied while it "
                f"was written; copy it again, or {_AGAIN}",
            )  # fmt: skip
        yield to, place, content[at + _HEAD.size : at + _HEAD.size + size]
        at, place = at + _HEAD.size + size, place + 1


def _spoken(path: Path, name: str, owners: Sequence[Study]) -> Iterator[tuple[int, int, bytes, list[Message], bytes]]:
    """(receiver, place, frame, its messages, the study that the link is of)."""
    most = max(len(study.everybody) for study in owners)
    links: dict[int, bytes] = {}
    for to, place, frame in frames_in(path):
        where = f"frame {place} of {name}"
        if to >= most:
            raise FileFormatError(
                path, None, f"{where} is for participant {to}, and there are {most}; it is damaged: {_AGAIN}"
            )
        try:
            messages = decode(frame)
        except InvalidValue as problem:
            raise FileFormatError(path, None, f"{where} cannot be read ({problem}); it is damaged: {_AGAIN}") from None
        for message in messages:
            if isinstance(message, Hello):
                links[to] = message.study
        if to not in links:
            raise FileFormatError(
                path, None, f"{where} comes before any Hello to its receiver: the beginning is missing; {_AGAIN}"
            )
        yield to, place, frame, messages, links[to]


def _is_ours(frame: bytes, messages: Sequence[Message]) -> bool:
    """Whether a frame is what these messages are written as: nothing else is hidden in it."""
    try:
        return encode(messages) == frame
    except TypeError:  # a remark of another version
        return False


def _checked(recording: Recording) -> Recording:
    """Refuse a recording in which the frames of somebody who spoke are missing."""
    study = recording.study
    spoke = {one.sender for one in recording.said}
    heard = {one.item.key.author for one in recording.items}
    silent = [u for u in range(len(study.everybody)) if u not in spoke]
    for u in silent:
        if u in heard:
            path = recording.folder / f"{study.everybody[u]}.frames"
            raise FileFormatError(path, None, f"holds no frames of this study, and others have its words; {_AGAIN}")
    if not silent:
        return recording
    note = f"nothing was sent by {recording.names(silent)}"
    return Recording(recording.folder, recording.homes, study, recording.said, recording.odd, (*recording.notes, note))


# ── what a coalition holds ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class View:
    """What observers hold together: what they sent and received, and their own homes; nothing else.

    identities   their keys
    answers      what their own ledgers say of the outcome, by party; nothing of one that has none
    """

    study: Study
    observers: tuple[int, ...]
    items: tuple[Said, ...]
    identities: Mapping[int, Identity]
    answers: Mapping[int, dict[str, Any]]

    def bodies(self, kind: ItemKind, attempt: int) -> dict[tuple[int, int], bytes]:
        """(author, index) → what stands under it, of all items of a kind that they hold."""
        found: dict[tuple[int, int], bytes] = {}
        for one in self.items:
            key = one.item.key
            if (key.kind, key.attempt) == (kind, attempt):
                found.setdefault((key.author, key.index), one.item.body)
        return found

    @cached_property
    def rosters(self) -> dict[int, tuple[int, ...]]:
        """Of every attempt that they know of, the roster."""
        return rosters_of(self.items)


def view_of(study: Study, said: Iterable[Said], homes: Mapping[int, Path]) -> View:
    """What the owners of these homes hold together, of all that was said."""
    observers = tuple(sorted(homes))
    identities = {u: Identity.load(home) for u, home in homes.items()}
    for u, identity in identities.items():
        if identity.card != study.card(u):
            raise InvalidValue(
                f"the keys in {homes[u]} are not those of {study.everybody[u]} in the study; give the home it took part with"
            )
    seen = tuple(
        one for one in said if isinstance(one.message, Item) and (one.sender in identities or one.to in identities)
    )
    answers = {u: answer for u, home in homes.items() if (answer := _answer(home, study.hash)) is not None}
    return View(study, observers, seen, identities, answers)


def _answer(home: Path, study: bytes) -> dict[str, Any] | None:
    if not (home / "peer.db").exists():
        return None
    with Store.open(home / "peer.db", read_only=True) as store:
        return store.result(study)


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def keep_beside(
    record: Path, study: Study, study_path: Path, data: Mapping[str, Path], homes: Path | None = None
) -> None:
    """Put what frames alone do not say into the folder of a recording, for their owner only: the study, everybody's data.

    homes   where the homes are kept, if they are: where else that is, is noted down
    """
    record.mkdir(mode=0o700, parents=True, exist_ok=True)
    if homes is not None and homes.resolve() != record.resolve():
        (record / HOMES).write_text(f"{homes.resolve()}\n", "utf-8")
    if study_path.parent.resolve() != record.resolve():
        number = 1
        while (path := record / ("study.toml" if number == 1 else f"study-{number}.toml")).exists():
            if Study.read(path).hash == study.hash:
                break
            number += 1
        study.write(path)
    for name, file in data.items():
        place = record / name / f"data{file.suffix}"
        if file.resolve() == place.resolve():
            continue
        place.parent.mkdir(mode=0o700, exist_ok=True)
        for other in DATA:  # of an earlier run
            (place.parent / other).unlink(missing_ok=True)
        with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(file.read_bytes())
