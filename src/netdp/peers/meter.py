"""Counts of what a running peer does: frames, bytes and messages by kind, refusals by reason, links, time since progress.

Plain numbers, always on; `netdp.peers.metrics` shows them. No count is kept per neighbour, and none depends on what a
message holds, only on its kind and size. Kinds and reasons are closed lists, so there are finitely many counts whatever
anybody sends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from netdp.peers.events import PeerEvent, fields_of
from netdp.peers.messages import Message, kind_of

_PROGRESS = ("attempt", "links", "votes", "contributions", "round", "rounds", "iteration", "done", "progress")


class Meter:
    """What one peer has done since it was started.

    >>> from netdp.peers.events import Statement
    >>> from netdp.peers.messages import Done
    >>> meter = Meter(0.0)
    >>> meter.frame("in", 120, [Done(1, b"x")])
    >>> meter.event({"event": "refused", "peer": "birch", "reason": Statement("it runs another study", "other-study")}, now=3.0)
    >>> meter.bytes["in"], meter.messages["in", "done"], meter.refusals["other-study"], meter.idle(5.0)
    (120, 1, 1, 5.0)
    """

    def __init__(self, now: float) -> None:
        self.started = self.progressed = now
        self.frames: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.messages: Counter[tuple[str, str]] = Counter()
        self.refusals: Counter[str] = Counter()
        """Who was turned away, by reason. (What was ignored of who was not: `netdp.peers.exchange`.)"""
        self.lost: Counter[str] = Counter()
        """Links that ended, by reason."""
        self.linked = 0
        """Links that were made."""
        self.attempt = self.votes = self.contributions = self.links = 0
        self.outcome: bool | None = None
        self.withheld = 0
        """1: the answer is here and is not told, because honest parties cannot have come to it."""
        self._last: tuple[Any, ...] = ()

    def frame(self, direction: str, size: int, messages: Iterable[Message]) -> None:
        """A frame came ("in") or left ("out")."""
        self.frames[direction] += 1
        self.bytes[direction] += size
        for message in messages:
            self.messages[direction, kind_of(message)] += 1

    def event(self, event: PeerEvent, now: float) -> None:
        """What the peer reports."""
        if event["event"] == "status":
            self.status(event, now)
        elif event["event"] == "linked":
            self.linked += 1
            self.progressed = now
        elif event["event"] in ("lost", "refused"):
            (self.lost if event["event"] == "lost" else self.refusals)[fields_of(event).get("reason", "other")] += 1
        elif event["event"] == "outcome":
            self.outcome, self.progressed = event["ok"], now
            self.withheld = int(event.get("withheld", False))

    def status(self, status: Mapping[str, Any], now: float) -> None:
        """How far the party is; anything that changed is progress."""
        found = tuple(status.get(key) for key in _PROGRESS)
        if found != self._last:
            self._last, self.progressed = found, now
        self.attempt, self.links = int(status.get("attempt", 0)), int(status.get("links", 0))
        self.votes, self.contributions = int(status.get("votes", 0)), int(status.get("contributions", 0))

    def idle(self, now: float) -> float:
        """Seconds since anything went forward."""
        return max(0.0, now - self.progressed)
