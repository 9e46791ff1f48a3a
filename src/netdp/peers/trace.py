"""What a party sent to whom and got from whom, while it happens: a small file in its home, for its owner to watch.

A line of `trace.jsonl` is a line of the log (`netdp.peers.events`): what the peer reports, and beside that one line for every frame
that left or came,

    {"time": …, "party": "ash", …, "event": "sent", "peer": "elm", "items": [["contribution", 1, 4, 0], …], "words": {"done": 1}}

An item is named by its key: kind, attempt, number of its author, index (round, step or iteration); other messages are counted by
kind. Bodies, signatures and sizes have no field, so no value, noise, pad, key or answer can get in: the closed list of the log
decides, as for every other line.

**Whose eyes it is for.** A party sees who brought it a token and whom it passed it to; that is part of its view in every proof, and
its registers hold it anyway. Where the way of a token or of a report is what hides people (walks, shuffles), the traces of all
parties side by side give that way away. So the file is its owner's alone (mode 600), is written only if the owner asks for it
(`netdp peer run --trace`) or owns all parties anyway (`netdp up`), is never sent, and takes a bounded room: `SIZE` bytes twice.

A copy of the study lies beside it, so that whoever watches the home knows the names and links that the lines speak of. Like a
log, a trace never ends a peer: what cannot be written is counted and left out.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from netdp.errors import NetdpError
from netdp.peers.events import LISTED, Log, PeerEvent, RotatingFile
from netdp.peers.messages import Item, Message, kind_of

if TYPE_CHECKING:
    from netdp.peers.study.study import Study

FILE, STUDY = "trace.jsonl", "traced-study.toml"

SIZE, KEPT = 4 << 20, 1
"""Bytes after which the file is moved aside, and how many old ones are kept."""


class Trace:
    """Hears what a peer reports and what it sends and gets, and writes lines about it into the peer's home."""

    def __init__(self, home: Path, *, now: Callable[[], float] = time.time) -> None:
        self._home, self._log = Path(home), None
        with contextlib.suppress(NetdpError):  # it may not be writable: the peer goes on without
            self._log = Log(RotatingFile(self._home / FILE, SIZE, KEPT), now=now)

    def begin(self, study: Study, party: str) -> None:
        """Of whom and of which study the next lines are."""
        if self._log is None:
            return
        self._log.about(party, study.hash, study.everybody)
        path, fresh = self._home / STUDY, self._home / f".{STUDY}.{os.getpid()}"
        with contextlib.suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
            with open(os.open(fresh, flags, 0o600), "w", encoding="utf-8") as file:
                file.write(study.text)
            os.replace(fresh, path)

    def __call__(self, event: PeerEvent) -> None:
        """What the peer reports."""
        if self._log is not None:
            self._log(event)

    def moved(self, direction: str, peer: str, messages: Sequence[Message]) -> None:
        """A frame with these messages was sent to a neighbour, or received from it."""
        if self._log is None:
            return
        items = [message.key for message in messages if isinstance(message, Item)]
        words = Counter(kind_of(message) for message in messages if not isinstance(message, Item))
        more = max(0, len(items) - LISTED)
        self._log({
            "event": direction, "peer": peer, "more": more or None, "words": dict(words) or None,
            "items": [[key.kind.name.lower(), *key[1:]] for key in items[:LISTED]] or None,
        })  # fmt: skip

    def close(self) -> None:
        """Nothing more will be written."""
        if self._log is not None:
            self._log.close()
