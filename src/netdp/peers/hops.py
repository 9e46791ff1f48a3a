"""One round of one user: the reports in its hand, and where each of them goes.

**Every report moves by its own draw.** The draws for a report in a round are the words of a cipher whose key is an HMAC,
under a secret of the holder, of the round and of the report's bytes. So two reports in one hand do not travel together,
nobody else can foresee a hop, and a party that comes back after a crash draws the same again. With uniform words:

    stays       with probability ℓ, exactly: a word is below ℓ·2⁶⁴, which is a whole number for ℓ = 0 and ℓ ≥ 2⁻¹¹
    moves       to each neighbour with the same probability, exactly: words beyond the last multiple of their number are
                drawn again

**Room.** Through a server a user has room for so many reports on every link. If more draw it, those that wait are chosen by
a further word of each, whatever it says and wherever it came from.

**Order carries nothing.** What goes into a bundle is sorted by its bytes, which are as good as random: a bundle is a set.
A hand is a set too: a copy of a report in the same hand is the report itself.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from netdp.errors import InvalidValue

from .streams import Words

LEAST_LAZY = 2.0**-11
"""A smaller laziness has no exact number of 64-bit words; 0 does."""

_HOP, _PICK = b"netdp hop 1", b"netdp pick 1"
_WORD = 1 << 64


@dataclass(frozen=True)
class Hop:
    """What a round makes of a hand: one bundle for each neighbour, perhaps empty, and what stays."""

    bundles: dict[int, tuple[bytes, ...]]
    stays: tuple[bytes, ...]
    waited: int = 0
    """How many of those that stay found their link full."""


def check_laziness(laziness: float) -> float:
    """`laziness` if it can be drawn exactly."""
    if laziness != 0 and not LEAST_LAZY <= laziness < 1:
        raise InvalidValue(
            f"laziness must be 0 or lie in [2⁻¹¹, 1), to be drawn exactly from words of 64 bits; got {laziness!r}"
        )
    return laziness


def hop(
    hand: Iterable[bytes],
    key: bytes,
    round_: int,
    neighbours: Sequence[int],
    laziness: float = 0.0,
    room: int | None = None,
    closed: Collection[int] = (),
) -> Hop:
    """Move every report of a hand in round 1, 2, …; `room` is how many fit on one link (None: all).

    closed : neighbours that are given up; a report that draws one of them stays, and draws again in the next round.

    >>> found = hop([b"a", b"b", b"c"], bytes(32), 1, (4, 7))
    >>> found.bundles, found.stays
    ({4: (b'a', b'c'), 7: (b'b',)}, ())
    >>> found == hop([b"c", b"b", b"b", b"a"], bytes(32), 1, (4, 7))
    True
    """
    if not neighbours:
        raise InvalidValue("a user without neighbours cannot pass reports on")
    lazy = int(Fraction(check_laziness(laziness)) * _WORD)
    chosen: dict[int, list[tuple[int, bytes]]] = {v: [] for v in neighbours}
    stays: list[bytes] = []
    for report in sorted(set(hand)):
        words = Words(hmac.digest(key, _HOP + round_.to_bytes(8, "big") + report, "sha256"))
        if _word(words) < lazy:
            stays.append(report)
            continue
        to = neighbours[below(words, len(neighbours))]
        if to in closed:
            stays.append(report)
            continue
        chosen[to].append((_word(words), report))
    waited = 0
    bundles = {}
    for to, drawn in chosen.items():
        drawn.sort()
        fit = len(drawn) if room is None else room
        bundles[to] = tuple(sorted(report for _, report in drawn[:fit]))
        stays += [report for _, report in drawn[fit:]]
        waited += len(drawn[fit:])
    return Hop(bundles, tuple(sorted(stays)), waited)


def pick(hand: Iterable[bytes], key: bytes) -> bytes | None:
    """One report of a hand, each with the same probability; None of an empty one."""
    reports = sorted(set(hand))
    if not reports:
        return None
    return reports[below(Words(hmac.digest(key, _PICK, "sha256")), len(reports))]


def below(words: Words, count: int) -> int:
    """A whole number from 0 to count − 1, each with the same probability."""
    end = _WORD - _WORD % count
    while (word := _word(words)) >= end:
        pass
    return word % count


def _word(words: Words) -> int:
    return int(words(1)[0])


# ── bundles as bytes ──────────────────────────────────────────────────────────────────────────────────────────────────


def packed(reports: Iterable[bytes], size: int, slots: int | None = None) -> bytes:
    """Reports of one size, one after the other; with `slots`, a number first and then so many places, the rest zeros.

    >>> packed([b"ab", b"cd"], 2), packed([b"ab"], 2, slots=3)
    (b'abcd', b'\\x01\\x00ab\\x00\\x00\\x00\\x00')
    """
    given = list(reports)
    if any(len(report) != size for report in given):
        raise InvalidValue(f"reports of this study have {size} bytes, got {sorted({len(one) for one in given})}")
    content = b"".join(given)
    if slots is None:
        return content
    if len(given) > slots:
        raise InvalidValue(f"{len(given)} reports do not fit into {slots} slots")
    return len(given).to_bytes(2, "little") + content + bytes(size * (slots - len(given)))


def unpacked(content: bytes, size: int, slots: int | None = None) -> tuple[bytes, ...] | None:
    """The reports again; None if that is no bundle.

    >>> unpacked(b"abcd", 2), unpacked(b"abc", 2), unpacked(packed([b"ab"], 2, slots=3), 2, slots=3)
    ((b'ab', b'cd'), None, (b'ab',))
    """
    if slots is not None:
        count = int.from_bytes(content[:2], "little")
        if len(content) != 2 + size * slots or count > slots or any(content[2 + size * count :]):
            return None
        content = content[2 : 2 + size * count]
    if len(content) % size:
        return None
    found = tuple(content[at : at + size] for at in range(0, len(content), size))
    return found if list(found) == sorted(set(found)) else None
