"""What a study needs on one machine before it runs: homes with keys, addresses, signatures, and everybody's own data.

Everything that can be wrong with the data is found here, before any process starts, and named with the line of the table
that the user gave.
"""

from __future__ import annotations

import contextlib
import csv
import fcntl
import os
import random
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from netdp.errors import FileFormatError, InvalidValue, NetdpError, Refused
from netdp.models.schema import text_of
from netdp.peers.identity import Identity
from netdp.peers.runs import place_for
from netdp.peers.study import signatures
from netdp.peers.study.rows import PARQUET, read_rows
from netdp.peers.study.study import Study


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody uses just now, below those that outgoing connections are given."""
    sockets: list[socket.socket] = []
    candidates = list(range(10_000, 32_000))
    random.SystemRandom().shuffle(candidates)
    try:
        for port in candidates:
            if len(sockets) == count:
                break
            one = socket.socket()
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                one.close()
                continue
            sockets.append(one)
        if len(sockets) < count:
            raise NetdpError(f"this machine has only {len(sockets)} free ports from 10000 to 32000, {count} are needed")
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def settle(draft: Study, folder: Path) -> tuple[Study, Path]:
    """Make what a draft lacks: a home with keys for every party, loopback addresses, all signatures. Keys that are there stay.

    Returns the complete study and where it was written.
    """
    homes = {name: folder / name for name in draft.everybody}
    known = [Identity.load(home) if (home / "keys").exists() else None for home in homes.values()]
    identities = [one or Identity.create(home, name) for one, (name, home) in zip(known, homes.items(), strict=True)]
    ports = free_ports(len(draft.everybody))
    fresh = draft.replace(nonce="").complete(
        [identity.card for identity in identities], [f"127.0.0.1:{port}" for port in ports]
    )
    path = place_for(folder)
    fresh.write(path)
    for identity in identities:
        signatures.write(path, identity.card.name, signatures.sign(fresh, identity))
        policy = identity.home / "policy.toml"
        if not policy.exists():
            with open(os.open(policy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
                out.write(_policy_for(fresh))
    return fresh, path


def _policy_for(study: Study) -> str:
    """The policy of a party that exists for this study only: exactly what the study promises, once."""
    epsilon, against = study.privacy.epsilon, study.privacy.colluders + study.running.has_curator
    return (
        "# Written by `netdp up` for a party that it made itself: it allows what the study promises, and no more.\n"
        f"delta = {study.privacy.delta!r}\nunit = \"{study.task.unit}\"\n\n"
        f"[[limit]]\nagainst = {against}\nper = \"study\"\nepsilon = {epsilon!r}\n"
    )  # fmt: skip


def deal(study: Study, data: Path, folder: Path) -> dict[str, Path]:
    """Everybody's own file: NAME.csv of a folder, or the rows of one table whose column `party` says whose they are.

    Parquet will do as well as CSV.
    """
    if data.is_dir():
        files = {name: _own_file(data, name) for name in study.names}
        missing = [name for name, file in files.items() if not file.is_file()]
        if missing:
            raise InvalidValue(
                f"{data} has no {missing[0]}.csv; every party needs its file ({len(missing)} are missing)"
            )
        for name, file in files.items():
            try:
                study.task.rows(file)  # refuses what the study does not take
            except FileFormatError:
                raise  # names the file
            except InvalidValue as problem:
                raise InvalidValue(f"the data of {name}, {file}: {problem}") from None
        return files
    rows = read_rows(data, ["party", *study.task.read])
    own: dict[str, list[Mapping[str, Any]]] = {name: [] for name in study.names}
    for row in rows:
        whose = text_of(row["party"])
        if whose not in own:
            raise InvalidValue(f"{row.place}: {whose!r} is no party of the study; its column party names one")
        own[whose].append(row)
    for name, its in own.items():
        try:
            study.task.rows(its)
        except InvalidValue as problem:
            raise InvalidValue(f"the data of {name}: {problem}") from None
    files = {}
    for name, its in own.items():
        files[name] = folder / name / "data.csv"
        with open(os.open(files[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", newline="") as out:
            writer = csv.DictWriter(out, study.task.read or ["party"], extrasaction="ignore")
            writer.writeheader()
            # as a table of texts says it: true for True
            writer.writerows(
                {key: text_of(cell) if isinstance(cell, bool) else cell for key, cell in row.items()} for row in its
            )
    return files


def _own_file(folder: Path, name: str) -> Path:
    """A party's file in a folder: CSV or Parquet, if there is no doubt."""
    found = [folder / f"{name}{end}" for end in (".csv", *PARQUET) if (folder / f"{name}{end}").is_file()]
    if len(found) > 1:
        raise InvalidValue(f"{folder} has {' and '.join(file.name for file in found)}; every party has one file")
    return found[0] if found else folder / f"{name}.csv"


@contextlib.contextmanager
def workplace(folder: Path | None) -> Iterator[Path]:
    """The folder given, for nobody else meanwhile; or one that is gone afterwards."""
    if folder is not None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(folder / ".lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Refused(f"another `netdp up` runs in {folder}; wait for it, or take another folder") from None
            yield folder
        return
    made = Path(tempfile.mkdtemp(prefix="netdp-up-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
