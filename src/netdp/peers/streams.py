"""What a party makes with its secret keys: pads that two compute alike, noise that one computes again, and sealed messages.

**Pads.** For every pair u < v of a roster, K = HKDF-SHA256 of their X25519 secret, the study, the attempt, the roster
and (u, v); the pad is the key stream of ChaCha20 under K, in 64-bit words, modulo q. q divides 2⁶⁴, so uniform words
give a pad uniform on Z_q. Both ends compute it and nobody else can; u adds it, v subtracts it (maths: masks modulo
q). Every field of the context changes the key, so no pad serves twice.

**Noise.** As deterministic signatures do: the key is HMAC-SHA256, under the party's noise secret, of the context *and
the contribution* without noise. The same data in the same attempt gives the same noise, even from an old backup;
other data gives other, independent noise. So two runs never show one noise around two values.

**What pads and noise assume.** X25519 shared secrets look random to those without either key; HMAC-SHA256 (as in HKDF) and
ChaCha20 are pseudorandom functions. With uniform words in their place everything said above is exact.

**Why ChaCha20.** Measured here with cryptography 50 (`update_into`): ChaCha20 against AES-256-CTR, microseconds for 10
/ 1,000 / 10⁴ / 10⁶ words: 4.0 / 5.5 / 19 / 1,540 against 4.7 / 5.8 / 14 / 990. So AES wins from some thousands of
words on, where the processor has instructions for it; ChaCha20 needs none, and wins below. Its blocks are of a
function, not of a permutation: no birthday term. What is computed is pinned by tests/peers/test_streams.py: two
versions that differ would not cancel.

**Reports** are opened by the curator only. They are sealed with HPKE (RFC 9180, base mode: X25519, HKDF-SHA256,
ChaCha20-Poly1305) to the curator's agreement key. Nothing in the bytes says who sealed them: the first 32 are a public key
drawn for this report alone, and everybody could have made them. `info` binds study, attempt and roster, so a report opens in
no other study. All reports of a study have one length. Of a changed ciphertext nothing opens, so a copy is a copy byte for
byte, and is counted once.

**Envelopes** carry reports from one user to the next through a server that must not read, count or forge them. HPKE's
base mode does not say who sent something, and the server could slip in envelopes of its own. So the two users' common
secret (X25519, as for pads) gives a key for (study, attempt, roster, round, from, to), and ChaCha20-Poly1305 seals under
it: whoever has neither secret key can neither open an envelope nor make one. The nonce is an HMAC of the content: the
same content gives the same bytes, so that a restarted party sends again what it sent before, and two different contents
(which an honest party never has for one key) have different nonces.

**What sealing assumes.** HPKE is secure against chosen ciphertexts (with ciphertexts that do not show their receiver's inputs:
indistinguishable from those of any other content of the same length); ChaCha20-Poly1305, HKDF and HMAC-SHA256 are what
they are believed to be. Keys last as long as the study: who gets the curator's secret key later can open reports it kept
from earlier hops, and with them see the way of these.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import whole
from netdp.peers.identity import Card, Identity

WordArray = npt.NDArray[np.uint64]

_ZEROS = bytes(1 << 18)

_AHEAD = 1 << 15  # words that are computed before they are asked for, at most

_LONGEST = 1 << 32  # words of one key: 32 GB; the cipher's block counter has room for eight times as many

_PAD, _NOISE = b"netdp pad 1", b"netdp noise 1"


class Words:
    """Uniform 64-bit words from a key of 32 bytes; every call goes on where the last one stopped.

    >>> words = Words(bytes(32))
    >>> [f"{int(word):016x}" for word in words(2)]
    ['903df1a0ade0b876', '28bd8653e56a5d40']
    >>> bool(words(1)[0] == Words(bytes(32))(3)[2])
    True
    """

    def __init__(self, key: bytes) -> None:
        if len(key) != 32:
            raise InvalidValue(f"a key has 32 bytes, got {len(key)}")
        self._left, self._drawn = _LONGEST, 0
        self._ready: WordArray = np.empty(0, dtype=np.uint64)
        self._cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()

    def __call__(self, size: int) -> WordArray:
        size = whole("size", size)
        self._left -= size
        if self._left < 0:
            raise InvalidValue(f"more than 2³² words of one key are asked for (now {size}); use a context of its own")
        if size <= len(self._ready):
            words, self._ready = self._ready[:size], self._ready[size:]
            return words
        # whoever has asked often asks again: a few thousand words at once cost little more than a few
        lacking = size - len(self._ready)
        fresh = self._next(max(lacking, min(self._drawn, _AHEAD)))
        words = np.concatenate([self._ready, fresh[:lacking]]) if len(self._ready) else fresh[:lacking]
        self._ready = fresh[lacking:]
        return words

    def _next(self, size: int) -> WordArray:
        """The next words of the cipher; each is handed out once."""
        self._drawn += size
        words = np.empty(size, dtype="<u8")
        room = words.data.cast("B")
        for start in range(0, len(room), len(_ZEROS)):
            part = room[start : start + len(_ZEROS)]
            self._cipher.update_into(memoryview(_ZEROS)[: len(part)], part)
        return words.astype(np.uint64, copy=False)


def context(study: bytes, attempt: int, roster: Sequence[int], *more: int) -> bytes:
    """What a pad or a noise belongs to, as bytes that no other study, attempt, roster or further numbers have.

    >>> context(b"s", 1, (0, 2)) == context(b"s", 1, (0,), 2)
    False
    """
    members = [_number("a party of the roster", party) for party in roster]
    if any(a >= b for a, b in itertools.pairwise(members)):
        raise InvalidValue(f"a roster lists every party once, in order, got {tuple(roster)}")
    parts = [len(study), _number("attempt", attempt), len(members), *members, len(more)]
    parts += [_number("a number of the context", number) for number in more]
    return b"".join([_eight(parts[0]), bytes(study), *map(_eight, parts[1:])])


def pad(shared: bytes, context: bytes, columns: int, modulus: int) -> WordArray:
    """`columns` numbers uniform modulo `modulus` (a power of two), the same for everybody with the same secret and context."""
    mask = mask_of(modulus)
    return Words(_derive(shared, _PAD + context))(columns) & mask


def pads_of(
    identity: Identity,
    cards: Mapping[int, Card],
    me: int,
    others: Iterable[int],
    context: bytes,
    columns: int,
    modulus: int,
) -> WordArray:
    """What party `me` adds to its numbers: its pads with later parties minus those with earlier ones, modulo `modulus`.

    Over a whole roster, where `others` is a symmetric relation, these add up to zero.
    """
    mask, me = mask_of(modulus), _number("me", me)
    if me not in cards or cards[me] != identity.card:
        raise InvalidValue(f"party {me} is not {identity.card.name} in the study's list; load the identity it names")
    partners = [_number("a party", other) for other in others]
    if me in partners or len(set(partners)) != len(partners):
        raise InvalidValue(f"a party shares one pad with every other party, got {partners} for party {me}")
    total = np.zeros(whole("columns", columns), dtype=np.uint64)
    for other in partners:
        if other not in cards:
            raise InvalidValue(f"no card of party {other}; the study lists {sorted(cards)}")
        pair = _eight(len(context)) + context + _eight(min(me, other)) + _eight(max(me, other))
        words = pad(identity.shared(cards[other]), pair, columns, modulus)
        if other > me:
            total += words
        else:
            total -= words
    return total & mask


def noise_words(secret: bytes, context: bytes, contribution: bytes) -> Words:
    """The words a party's noise is drawn from: a function of its secret, of what they are for and of what they hide."""
    if len(secret) != 32:
        raise InvalidValue(f"a noise secret has 32 bytes, got {len(secret)}")
    message = _NOISE + _eight(len(context)) + context + hashlib.sha256(contribution).digest()
    return Words(hmac.digest(secret, message, "sha256"))


def rows_digest(secret: bytes, rows: FloatArray) -> bytes:
    """A keyed hash of a party's rows: tells whether they are the same, and nobody without the key what they are."""
    shape = np.array(rows.shape, dtype="<i8").tobytes()
    content = hashlib.sha256(np.ascontiguousarray(rows, dtype="<f8").tobytes()).digest()
    return hmac.digest(secret, b"netdp rows 1" + shape + content, "sha256")


def _derive(shared: bytes, info: bytes) -> bytes:
    if len(shared) != 32:
        raise InvalidValue(f"a shared secret has 32 bytes, got {len(shared)}")
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=info).derive(shared)


def mask_of(modulus: int) -> np.uint64:
    """The bits that are left modulo a power of two: words of these are uniform if the words were."""
    modulus = whole("modulus", modulus, 2)
    if modulus > 1 << 64 or modulus & (modulus - 1):
        raise InvalidValue(f"modulus must be a power of two from 2 to 2⁶⁴ (pads are then uniform), got {modulus}")
    return np.uint64(modulus - 1)


def _number(name: str, value: int) -> int:
    number = whole(name, value)
    if number >= 1 << 64:
        raise InvalidValue(f"{name} must be below 2⁶⁴, got {value}")
    return number


def _eight(number: int) -> bytes:
    return number.to_bytes(8, "big")


SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)

SEAL = 48
"""Bytes that sealing adds to a report: an X25519 key and a tag."""

ENVELOPE = 28
"""Bytes that an envelope adds: a nonce and a tag."""

_REPORT, _ENVELOPE, _NONCE = b"netdp report 1", b"netdp envelope 1", b"netdp nonce 1"


def seal(curator: Card, plaintext: bytes, study: bytes, attempt: int, roster: Sequence[int]) -> bytes:
    """A report that only this curator opens, and only in this attempt of this study; other bytes every time."""
    return bytes(
        SUITE.encrypt(plaintext, X25519PublicKey.from_public_bytes(curator.agreement), _info(study, attempt, roster))
    )


def unseal(curator: Identity, sealed: bytes, study: bytes, attempt: int, roster: Sequence[int]) -> bytes | None:
    """What a report says; None if it does not open: changed, cut off, or made for somebody or something else."""
    if len(sealed) < SEAL:
        return None
    try:
        return curator.unseal(SUITE, sealed, _info(study, attempt, roster))
    except (InvalidTag, ValueError):
        return None


class Envelopes:
    """The envelopes between one user and another, both ways, in one attempt of a study."""

    def __init__(
        self, identity: Identity, me: int, card: Card, other: int, study: bytes, attempt: int, roster: Sequence[int]
    ) -> None:
        if me == other or me not in roster or other not in roster:
            raise InvalidValue(f"envelopes go between two users of the roster {tuple(roster)}, got {me} and {other}")
        self.me, self.other = me, other
        self._shared = identity.shared(card)
        self._where = (study, attempt, tuple(roster))

    def enclose(self, round_: int, content: bytes) -> bytes:
        """The envelope from me to the other in a round: the same bytes for the same content."""
        key, name = self._key(round_, self.me, self.other)
        nonce = hmac.digest(key, _NONCE + content, "sha256")[:12]
        return nonce + ChaCha20Poly1305(key).encrypt(nonce, content, name)

    def disclose(self, round_: int, envelope: bytes) -> bytes | None:
        """What the other enclosed for me in a round; None if it did not make this envelope."""
        key, name = self._key(round_, self.other, self.me)
        if len(envelope) < ENVELOPE:
            return None
        try:
            return ChaCha20Poly1305(key).decrypt(envelope[:12], envelope[12:], name)
        except InvalidTag:
            return None

    def _key(self, round_: int, sender: int, receiver: int) -> tuple[bytes, bytes]:
        study, attempt, roster = self._where
        name = _ENVELOPE + context(study, attempt, roster, round_, sender, receiver)
        return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=name).derive(self._shared), name


def _info(study: bytes, attempt: int, roster: Sequence[int]) -> bytes:
    return _REPORT + context(study, attempt, roster)
