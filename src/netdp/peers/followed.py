"""What is written down about a running peer for its owner: its status file, and a log and a trace if they are wanted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from netdp import __version__

if TYPE_CHECKING:
    from .log import Log
    from .peer import Peer
    from .status import Standing
    from .trace import Trace


class Followers:
    """Everybody who writes down what a peer reports. Give it to the peer as its `report`."""

    def __init__(self, standing: Standing, log: Log | None = None, trace: Trace | None = None) -> None:
        self.standing, self.log, self.trace = standing, log, trace
        self.began = time.monotonic()

    @property
    def _lines(self) -> list[Callable[[Mapping[str, Any]], None]]:
        return [one for one in (self.log, self.trace) if one is not None]

    def __call__(self, event: dict[str, Any]) -> None:
        self.standing(event)
        for write in self._lines:
            write(event)
            if event["event"] == "outcome" and "spent" in event:
                spent = event["spent"]
                for size, epsilon in spent["epsilon"].items():
                    write({"event": "spent", **spent, "against": int(size), "epsilon": epsilon})

    def begin(self, peer: Peer) -> None:
        """The peer is made: say who it is."""
        study, name = peer.study, peer.identity.card.name
        neighbours = [study.everybody[u] for u in study.neighbours(peer.me)]
        self.standing.begin(name, study.name, study.hash, neighbours)
        if self.log is not None:
            self.log.about(name, study.hash, study.everybody)
        self({
            "event": "starting", "version": __version__, "parties": study.n, "neighbours": len(neighbours),
            "contributed": contributed(peer), "starts": self.standing.starts,
        })  # fmt: skip

    def refresh(self, peer: Peer) -> None:
        """How far it is, for whom it waits."""
        waiting = [peer.study.everybody[u] for u in peer.party.waiting_for]
        self.standing.refresh(peer.party.status, waiting, contributed(peer))

    def close(self, reason: str | None = None) -> None:
        """It did not begin."""
        for write in self._lines:
            if reason is not None:
                write({"event": "failed", "reason": reason})
        self._close()

    def end(self, code: int, entries: int, reason: str | None = None) -> None:
        """It is over."""
        if reason is not None:
            self({"event": "failed", "reason": reason})
        self({
            "event": "stopped", "exit": code, "contributed": entries, "seconds": time.monotonic() - self.began,
        })  # fmt: skip
        self.standing.end(code, entries, reason)
        self._close()

    def _close(self) -> None:
        for one in (self.log, self.trace):
            if one is not None:
                one.close()


def contributed(peer: Peer) -> int:
    """How often this party has published in its study."""
    from .ledger.entries import CORRECTS

    return sum(entry.attempt < CORRECTS for entry in peer.store.entries_of(peer.study.hash))
