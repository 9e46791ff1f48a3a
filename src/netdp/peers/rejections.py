"""Why a message is not taken: a short, closed list, so that every rejection can be counted, shown and compared.

A neighbour with a valid certificate may send anything. What no honest party of the study would send is noted, counted under
one of these reasons, and has no other effect. A neighbour that goes on and on is not read any more for a while
(`netdp.peers.party`), so that nonsense costs a bounded share of this machine.
"""

from __future__ import annotations

from enum import StrEnum

from netdp.errors import InvalidValue


class Reason(StrEnum):
    """Of a rejection; its value is how metrics name it."""

    FRAME = "frame"
    """The bytes are no frame of messages, or one of them is of no known kind."""
    LINK = "link"
    """It came over a link that was given up, or an item for one neighbour came over another's link."""
    GREETING = "greeting"
    """A second greeting, or anything before the first."""
    STUDY = "study"
    """The neighbour runs another study, or speaks another format."""
    KEY = "key"
    """There is no such attempt, party or step in this study."""
    BODY = "body"
    """Wrong size or shape, no numbers, or numbers that no honest party sends."""
    SIGNATURE = "signature"
    """Not signed by who is said to have said it."""
    ROSTER = "roster"
    """A vote for parties that cannot be a roster."""
    EARLY = "early"
    """A step of an attempt that has not begun here, or beyond its last."""
    SECOND = "second"
    """Something else under a key that is taken: its author says two things, or a relay makes it up."""


class Rejected(InvalidValue):
    """A message that is not taken, and why."""

    def __init__(self, reason: Reason, problem: str) -> None:
        self.reason = reason
        super().__init__(problem)
