"""Which format two neighbours use, if they are of different versions.

Everything on the wire has a *format*, a whole number. A version of netdp speaks a range of them, OLDEST to NEWEST, and its
`Hello` says which. Both ends use the highest one that both speak; they find the same one, because they look at the same two
ranges. If there is none, each turns the other away with both ranges and what to do, before anything else is said.

    1   before the range was stated: a Hello with one number
    2   the range is stated; remarks may be made
    3   who says in its Hello that it holds something in the other's name proves it

**What a newer version may say to an older one:** on a link only what its format has. From format 2 on there is room for more
without a new format: messages and kinds of items numbered REMARKS and above are *remarks*, which who does not know them
ignores and does not pass on. So nothing that matters may ever be a remark. Anything else that is unknown is a fault of
the other end: it is counted, noted, and the whole frame is ignored. In a Hello, which is said before a format is agreed on,
keys of unknown kinds are left out.

Fields that are unknown are ignored at every format, as protobuf does. That is safe here: what is signed, kept and passed on
is made from the known fields, never from the bytes that came.

Why not simply ignore all that is unknown: an item that one party uses and another one drops could make the two find
different answers. Who cannot understand must say so.
"""

from __future__ import annotations

import re

Range = tuple[int, int]

OLDEST, NEWEST = 3, 3
"""The formats that this version speaks. (No version that speaks 1 or 2 was ever released.)"""
REMARKS = 128
"""Messages and kinds from this number on are remarks."""

_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,20}")


def agreed(ours: Range, theirs: Range) -> int | None:
    """The format to use; None if there is none that both speak.

    >>> agreed((2, 4), (3, 9)), agreed((2, 4), (1, 2)), agreed((2, 2), (3, 4))
    (4, 2, None)
    """
    highest = min(ours[1], theirs[1])
    return highest if max(ours[0], theirs[0]) <= highest else None


def stated(oldest: int, newest: int) -> Range:
    """The range in a Hello; one of format 1 has a single number.

    >>> stated(1, 0), stated(2, 5)
    ((1, 1), (2, 5))
    """
    return (oldest, max(oldest, newest))


def words(formats: Range) -> str:
    """A range in words.

    >>> words((2, 2)), words((2, 5))
    ('format 2', 'formats 2 to 5')
    """
    return f"format {formats[0]}" if formats[0] == formats[1] else f"formats {formats[0]} to {formats[1]}"


def refusal(ours: Range, theirs: Range, version: str = "") -> str:
    """Why two versions cannot talk, and what to do.

    >>> refusal((2, 2), (3, 4), "9.1")
    'it speaks formats 3 to 4 (netdp 9.1), we speak format 2: none in common; install a newer netdp here'
    """
    which = f" (netdp {version})" if _VERSION.fullmatch(version) else ""
    where = "here" if theirs[0] > ours[1] else "there"
    return f"it speaks {words(theirs)}{which}, we speak {words(ours)}: none in common; install a newer netdp {where}"


def ignores_remarks(format: int) -> bool:
    """Whether who does not know a remark ignores it, on a link of this format."""
    return format >= 2
