"""What hides a contribution until all have agreed whose sum it is, and what remains of a total once masks are removed.

In a roster R party u publishes

    y_u = x_u + η_u + PRG(b_u) + Σ_{v>u} m_uv − Σ_{v<u} m_uv   modulo q

m_uv, a pad, comes from s_u·S_v = s_v·S_u, a point that these two can compute and nobody else; PRG(b_u), its own mask,
from b_u, which it alone knows. Over a set U of parties that are in the sum, the pads between two of them cancel. The
others' s give the pads between U and them, U's b give the own masks: `unmask` removes both (docs/proofs/peers.md#one-sum).

Keys are HKDF-SHA256 of the point or of b, bound to the context (study, attempt, roster, threshold) and to the party or the pair;
they are expanded by `netdp.peers.streams.Words`, one after the other, so that what is held at a time is one mask and the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from netdp.errors import InvalidValue
from netdp.numerics.checks import whole
from netdp.peers.recovery.dealing import CONTEXT, AttemptSecrets, Dealing
from netdp.peers.recovery.group import base, scalar_bytes, times
from netdp.peers.streams import Words, mask_of

WordArray = npt.NDArray[np.uint64]

_PAIR, _OWN = b"netdp pair pad 1\0", b"netdp own mask 1\0"

_STEP = 1 << 16  # words that are expanded at once: they stay in the processor's cache


def pad_key(s: int, S: bytes, context: bytes, u: int, v: int) -> bytes:
    """The key of the pad between u and v, from the secret of one and the point of the other; the same from either end."""
    if u == v:
        raise InvalidValue(f"a pad is between two parties, got {u} and {v}")
    low, high = sorted((u, v))
    return _derived(times(s, S), _PAIR, context, low, high)


def mask_key(b: int, context: bytes, u: int) -> bytes:
    """The key of a party's own mask."""
    return _derived(scalar_bytes(b), _OWN, context, u)


def masks(
    secrets: AttemptSecrets, me: int, dealings: Mapping[int, Dealing], context: bytes, columns: int, modulus: int
) -> WordArray:
    """What party `me` of the roster adds to its numbers: its own mask, and its pads with everybody whose dealing is here.

    The dealings are those of the whole roster, all of them checked.
    """
    low_bits = mask_of(modulus)
    if me not in dealings or base(secrets.s) != dealings[me].S or base(secrets.b) != dealings[me].B:
        raise InvalidValue(f"party {me} did not deal these secrets in this roster; they are of another attempt")
    total: WordArray = np.zeros(whole("columns", columns), dtype=np.uint64)
    _add(total, mask_key(secrets.b, context, me), plus=True)
    for other in _others(dealings, me):
        _add(total, pad_key(secrets.s, dealings[other].S, context, me, other), plus=other > me)
    total &= low_bits
    return total


def unmask(
    total: WordArray,
    included: Iterable[int],
    roster: Iterable[int],
    b: Mapping[int, int],
    s: Mapping[int, int],
    dealings: Mapping[int, Dealing],
    context: bytes,
    modulus: int,
) -> WordArray:
    """Σ_U (x + η) modulo q from Σ_U y, `b` of everybody in U (`included`), and `s` of the roster without U.

    Refuses secrets that are not those that were dealt, missing ones, and ones that must not be known: `b` of the others, `s` of U.
    """
    low_bits = mask_of(modulus)
    members, inside = frozenset(roster), frozenset(included)
    if not inside <= members or members != dealings.keys():
        raise InvalidValue(f"the sum of {sorted(inside)} is not one over a part of the roster {sorted(dealings)}")
    for name, found, wanted in (("b", b, inside), ("s", s, members - inside)):
        if found.keys() != wanted:
            raise InvalidValue(f"{name} is recovered of exactly the parties {sorted(wanted)}, got {sorted(found)}")
    for party, secret in (*b.items(), *s.items()):
        if base(secret) != (dealings[party].B if party in inside else dealings[party].S):
            raise InvalidValue(f"what was recovered of party {party} is not what it dealt; recover it with `recovered`")
    left: WordArray = np.array(total, dtype=np.uint64)
    for u in sorted(inside):
        _add(left, mask_key(b[u], context, u), plus=False)
        for w in sorted(members - inside):
            _add(left, pad_key(s[w], dealings[u].S, context, u, w), plus=w < u)
    left &= low_bits
    return left


def _others(dealings: Mapping[int, Dealing], me: int) -> Iterator[int]:
    return (other for other in sorted(dealings) if other != me)


def _add(total: WordArray, key: bytes, *, plus: bool) -> None:
    """Add or subtract the words of a key, modulo 2⁶⁴, in place."""
    words = Words(key)
    for start in range(0, len(total), _STEP):
        part = total[start : start + _STEP]
        if plus:
            part += words(len(part))
        else:
            part -= words(len(part))


def _derived(secret: bytes, label: bytes, context: bytes, *parties: int) -> bytes:
    if len(context) != CONTEXT:
        raise InvalidValue(f"a context has {CONTEXT} bytes, got {len(context)}; make it with dealing.context()")
    info = label + context + b"".join(party.to_bytes(8, "big") for party in parties)
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=info).derive(secret)
