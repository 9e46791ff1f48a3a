"""Sealed messages: reports that only the curator opens, and envelopes that only the next user opens.

**Reports** are sealed with HPKE (RFC 9180, base mode: X25519, HKDF-SHA256, ChaCha20-Poly1305) to the curator's agreement
key. Nothing in the bytes says who sealed them: the first 32 are a public key drawn for this report alone, and everybody
could have made them. `info` binds study, attempt and roster, so a report opens in no other study. All reports of a study
have one length. Of a changed ciphertext nothing opens, so a copy is a copy byte for byte, and is counted once.

**Envelopes** carry reports from one user to the next through a server that must not read, count or forge them. HPKE's
base mode does not say who sent something, and the server could slip in envelopes of its own. So the two users' common
secret (X25519, as for pads) gives a key for (study, attempt, roster, round, from, to), and ChaCha20-Poly1305 seals under
it: whoever has neither secret key can neither open an envelope nor make one. The nonce is an HMAC of the content: the
same content gives the same bytes, so that a restarted party sends again what it sent before, and two different contents
(which an honest party never has for one key) have different nonces.

**What is assumed.** HPKE is secure against chosen ciphertexts (with ciphertexts that do not show their receiver's inputs:
indistinguishable from those of any other content of the same length); ChaCha20-Poly1305, HKDF and HMAC-SHA256 are what
they are believed to be. Keys last as long as the study: who gets the curator's secret key later can open reports it kept
from earlier hops, and with them see the way of these.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from netdp.errors import InvalidValue

from .identity import Card, Identity
from .streams import context

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
