"""Who a party is: its secret keys on its own disk, and the public card that it hands to the others.

A party has three pairs of keys, because each is used by an algorithm of its own, and one secret that has no public side:

    signing     Ed25519       it signs studies, votes and contributions: anybody can check who said what
    agreement   X25519        with any other party's card it gives a secret that only these two share: their pads
    tls         ECDSA P-256   its connections (gRPC does not take Ed25519 certificates)
    noise       32 bytes      its noise is derived from it, so that a restart draws the same noise again

**What a certificate may say.** The others compare its bytes with the card in the study, never a name in it. Still it
is made, and every card is checked, so that it can vouch for no other certificate: self-signed, `CA:false`, KeyUsage
digitalSignature only. Its one subject name is TLS_NAME, the same for all, since parties are dialled by address.

**What the files protect.** Whoever reads `keys/` can sign in the party's name and compute its pads and noise. The
files are not encrypted; they are readable by their owner only, and `Identity.load` refuses them when they are not.

**Once on a machine**, even if its folder was copied. The lock beside `peer.db` keeps two processes from one folder. A copy
of the folder has a lock of its own. So a running peer also holds a name that is derived from its keys: an abstract Unix
socket, which Linux gives to one process at a time and takes back when that process ends, however it ends. The name is an
HMAC under the noise secret: it tells nothing, and somebody without the keys cannot take it beforehand.

**Not without its memory.** `peer.db` remembers what was published. Keys that were used are marked (`keys/used`), so if the file
is gone, or somebody copies the keys alone to another folder, the peer does not begin again with an empty memory: it could
publish a second number in an attempt where a first one stands. The way out is a backup, which brings new keys.

The lock and the name do not see copies on other machines, nor in a container with a network of its own. There the peer's
address, which only one of the two can have, its neighbours, who turn an older link into a newer one, and what they hold in
its name are the next guards; docs/proofs/peers.md#real-peers says what is left to the owner.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import errno
import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
import socket
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import Suite
from cryptography.x509.oid import NameOID

from netdp.errors import FileFormatError, InvalidValue, NetdpError, Refused
from netdp.numerics.checks import count
from netdp.peers.events import Sentence, Statement

TLS_NAME = "netdp-peer"
"""The one name in every certificate: parties are told apart by the certificate's bytes, not by a name."""

DAYS = 825
"""How long a certificate lasts unless stated otherwise."""

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")

_CARD_FILE = "card.json"

_KEYS = "keys"

_SIGNING, _AGREEMENT, _NOISE, _TLS = "signing.key", "agreement.key", "noise.key", "tls.key"

_PROBE = X25519PrivateKey.from_private_bytes(bytes([7]) * 32)  # to find public keys that give no secret


def check_name(name: object) -> str:
    """`name` if it can be a party's name: it stands in files and file names.

    >>> check_name("st-mary.ward_3")
    'st-mary.ward_3'
    >>> check_name("St Mary")
    Traceback (most recent call last):
    netdp.errors.InvalidValue: a party's name is 1 to 64 letters (a–z, A–Z), digits and ._- and no dot first, got 'St Mary'
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.startswith("."):
        raise InvalidValue(
            f"a party's name is 1 to 64 letters (a–z, A–Z), digits and ._- and no dot first, got {name!r}"
        )
    return name


@dataclass(frozen=True)
class Card:
    """What a party shows of itself: its name and its three public keys, the last inside a certificate (DER)."""

    name: str
    signing: bytes
    agreement: bytes
    certificate: bytes

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all of the card, in groups of four, for people to read to each other."""
        digest = hashlib.sha256(b"netdp card 1")
        for part in (self.name.encode(), self.signing, self.agreement, self.certificate):
            digest.update(len(part).to_bytes(4, "big") + part)
        text = digest.hexdigest()
        return " ".join(text[i : i + 4] for i in range(0, len(text), 4))

    def to_dict(self) -> dict[str, str]:
        """The card as plain text: the name, and the keys in base64."""
        keys = {key: getattr(self, key) for key in ("signing", "agreement", "certificate")}
        return {"name": self.name, **{key: base64.b64encode(value).decode() for key, value in keys.items()}}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Card:
        """The card that `to_dict` wrote, checked."""
        names = [field.name for field in fields(cls)]
        if not isinstance(data, Mapping) or set(data) != set(names):
            found = sorted(map(str, data)) if isinstance(data, Mapping) else data
            raise InvalidValue(f"a card has exactly the entries {', '.join(names)}; got {found!r}")
        card = cls(check_name(data["name"]), *(_bytes(key, data[key]) for key in names[1:]))
        card.check()
        return card

    def check(self) -> None:
        """Refuse a card that no `Identity` makes: it would fail later, or trust more than one party."""
        check_name(self.name)
        for key in ("signing", "agreement"):
            value = getattr(self, key)
            if not isinstance(value, bytes) or len(value) != 32:
                raise InvalidValue(
                    f"the {key} key of {self.name} must be 32 bytes, got {_size(value)}; ask for a new card"
                )
        try:
            _PROBE.exchange(X25519PublicKey.from_public_bytes(self.agreement))
        except ValueError:
            raise InvalidValue(
                f"the agreement key of {self.name} shares no secret with anybody; ask for a new card"
            ) from None
        _check_certificate(self.name, self.certificate)

    @cached_property
    def _verifier(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(self.signing)

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Whether this party signed the message."""
        try:
            self._verifier.verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True

    @property
    def valid(self) -> tuple[datetime.datetime, datetime.datetime]:
        """From when until when the certificate is good."""
        certificate = x509.load_der_x509_certificate(self.certificate)
        return certificate.not_valid_before_utc, certificate.not_valid_after_utc

    def date_problem(self, now: datetime.datetime | None = None) -> Statement | None:
        """Why the certificate cannot be used today, with its date; None if it can."""
        start, end = self.valid
        now = now or datetime.datetime.now(datetime.UTC)
        if now > end:
            return Sentence.EXPIRED(name=self.name, date=f"{end:%Y-%m-%d %H:%M}")
        if now < start:
            return Sentence.NOT_YET_GOOD(name=self.name, date=f"{start:%Y-%m-%d %H:%M}")
        return None


class Identity:
    """One party's secret keys, from the folder where it keeps them.

    `create` makes them once, `load` reads them; nothing else builds one. Its text shows the name and the card's
    fingerprint, never a secret.
    """

    def __init__(
        self,
        home: Path,
        card: Card,
        signing: Ed25519PrivateKey,
        agreement: X25519PrivateKey,
        noise_secret: bytes,
        tls: ec.EllipticCurvePrivateKey,
    ) -> None:
        self.home, self.card = home, card
        self._signing, self._agreement, self._noise_secret, self._tls = signing, agreement, noise_secret, tls

    def __repr__(self) -> str:
        return f"Identity({self.card.name!r}, {self.card.fingerprint})"

    def __reduce__(self) -> str:
        raise Refused(f"the secret keys of {self.card.name} are not copied; load them from their folder where needed")

    @classmethod
    def create(cls, home: Path, name: str, *, days: int = DAYS, force: bool = False) -> Identity:
        """New keys in the folder `home`, readable by its owner only; with `force` keys that are there are set aside."""
        home, name = Path(home), check_name(name)
        keys = home / _KEYS
        if keys.exists() and not force:
            raise Refused(f"{home} has an identity already; choose another folder, or move its keys away first")
        tls = ec.generate_private_key(ec.SECP256R1())
        signing, agreement = Ed25519PrivateKey.generate(), X25519PrivateKey.generate()
        card = Card(
            name,
            signing.public_key().public_bytes_raw(),
            agreement.public_key().public_bytes_raw(),
            certificate(name, tls, days=days),
        )
        made = cls(home, card, signing, agreement, secrets.token_bytes(32), tls)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        made._write(home, keys)
        return made

    def _write(self, home: Path, keys: Path) -> None:
        """All files at once: a folder made beside it takes its place, so that a crash leaves old keys, new keys or none."""
        fresh = home / f"{_KEYS}.new-{secrets.token_hex(4)}"
        fresh.mkdir(mode=0o700)
        try:
            _secret_file(fresh / _SIGNING, _pem(self._signing))
            _secret_file(fresh / _AGREEMENT, _pem(self._agreement))
            _secret_file(fresh / _TLS, self.tls_key_pem)
            _secret_file(fresh / _NOISE, base64.b64encode(self._noise_secret) + b"\n")
            _secret_file(fresh / _CARD_FILE, json.dumps(self.card.to_dict(), indent=1).encode() + b"\n")
            if keys.exists():
                number = 1
                while (aside := home / f"{_KEYS}.old-{number}").exists():
                    number += 1
                keys.rename(aside)
            fresh.rename(keys)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise

    @classmethod
    def load(cls, home: Path) -> Identity:
        """The identity in a folder; refuses files that are missing, damaged, or open to other users."""
        home = Path(home)
        keys = home / _KEYS
        if not keys.is_dir():
            raise FileFormatError(home, None, "no identity here; create one first (netdp peer init)")
        _check_private(keys, 0o700)
        path = keys / _CARD_FILE
        try:
            card = Card.from_dict(json.loads(_read(path)))
        except ValueError as problem:  # JSON, text, and InvalidValue
            raise FileFormatError(
                path, None, f"damaged card ({problem}); make a new home (netdp peer restore)"
            ) from None
        signing, agreement, tls = (_private_key(keys / file) for file in (_SIGNING, _AGREEMENT, _TLS))
        if not isinstance(signing, Ed25519PrivateKey):
            raise _damaged(keys / _SIGNING, "an Ed25519 key")
        if not isinstance(agreement, X25519PrivateKey):
            raise _damaged(keys / _AGREEMENT, "an X25519 key")
        if not isinstance(tls, ec.EllipticCurvePrivateKey):
            raise _damaged(keys / _TLS, "an ECDSA key")
        try:
            noise = base64.b64decode(_read(keys / _NOISE).strip(), validate=True)
        except binascii.Error:
            noise = b""
        if len(noise) != 32:
            raise _damaged(keys / _NOISE, "32 bytes in base64")
        certified = x509.load_der_x509_certificate(card.certificate).public_key()
        for file, fits in (
            (_SIGNING, signing.public_key().public_bytes_raw() == card.signing),
            (_AGREEMENT, agreement.public_key().public_bytes_raw() == card.agreement),
            (_TLS, tls.public_key() == certified),
        ):
            if not fits:
                raise FileFormatError(
                    keys / file, None, f"not the key of the card {path}; make a new home (netdp peer restore)"
                )
        return cls(home, card, signing, agreement, noise, tls)

    def sign(self, message: bytes) -> bytes:
        """An Ed25519 signature: the same bytes for the same message, always."""
        return self._signing.sign(message)

    def shared(self, card: Card) -> bytes:
        """The secret of 32 bytes that this party and the owner of the card can compute, and nobody else."""
        try:
            return self._agreement.exchange(X25519PublicKey.from_public_bytes(card.agreement))
        except ValueError:
            raise Refused(
                f"the agreement key of {card.name} shares no secret with anybody; ask for a new card"
            ) from None

    def unseal(self, suite: Suite, sealed: bytes, info: bytes) -> bytes:
        """What was sealed with HPKE to this party's agreement key; raises InvalidTag if it was not."""
        return bytes(suite.decrypt(sealed, self._agreement, info))

    @property
    def noise_secret(self) -> bytes:
        """What this party's noise is derived from."""
        return self._noise_secret

    @property
    def tls_key_pem(self) -> bytes:
        """The secret key of the certificate, as gRPC wants it."""
        return _pem(self._tls)

    @property
    def tls_certificate_pem(self) -> bytes:
        """The certificate, as gRPC wants it."""
        return pem(self.card.certificate)


def certificate(
    name: str, key: ec.EllipticCurvePrivateKey, *, days: int = DAYS, now: datetime.datetime | None = None
) -> bytes:
    """A self-signed certificate (DER) that can vouch for itself only; backdated one day, since clocks differ."""
    now = now or datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, check_name(name))])
    try:
        end = now + datetime.timedelta(days=count("days", days))
    except OverflowError:
        raise InvalidValue(f"days must lead to a date before the year 10000, got {days}") from None
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_SIGNATURES_ONLY, critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(TLS_NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.DER)


_SIGNATURES_ONLY = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=False,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


def pem(certificate: bytes) -> bytes:
    """A certificate's DER as PEM text."""
    return x509.load_der_x509_certificate(certificate).public_bytes(serialization.Encoding.PEM)


@lru_cache(maxsize=4096)
def _check_certificate(name: str, der: bytes) -> None:
    def refuse(problem: str) -> InvalidValue:
        return InvalidValue(f"the certificate of {name} {problem}; ask for a card made by netdp")

    try:
        found = x509.load_der_x509_certificate(der)
        extensions = {extension.value.oid: extension for extension in found.extensions}
        key = found.public_key()
    except (ValueError, TypeError, x509.DuplicateExtension) as failure:
        raise refuse(f"cannot be read ({failure})") from None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise refuse("is not for an ECDSA P-256 key")
    try:
        found.verify_directly_issued_by(found)
    except (InvalidSignature, ValueError, TypeError):
        raise refuse("is not signed by its own key") from None
    wanted = {
        x509.BasicConstraints.oid: (x509.BasicConstraints(ca=False, path_length=None), "says it may issue others"),
        x509.KeyUsage.oid: (_SIGNATURES_ONLY, "is not for signatures only"),
        x509.SubjectAlternativeName.oid: (
            x509.SubjectAlternativeName([x509.DNSName(TLS_NAME)]),
            f"is not made out to {TLS_NAME!r}",
        ),
    }
    for oid, (value, problem) in wanted.items():
        if oid not in extensions or extensions[oid].value != value:
            raise refuse(problem)
    if not extensions[x509.KeyUsage.oid].critical or not extensions[x509.BasicConstraints.oid].critical:
        raise refuse("does not mark its limits as critical")
    if set(extensions) != set(wanted):
        raise refuse("carries extensions that netdp does not make")


def _pem(key: Ed25519PrivateKey | X25519PrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _bytes(name: str, text: object) -> bytes:
    try:
        return base64.b64decode(str(text).encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise InvalidValue(f"{name} must be base64 text, got {str(text)[:40]!r}; copy the card again") from None


def _size(value: object) -> str:
    return f"{len(value)} bytes" if isinstance(value, bytes) else repr(value)


def _secret_file(path: Path, content: bytes) -> None:
    """A new file that only its owner can read from its first moment on, on the disk when this returns."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _check_private(path: Path, mode: int) -> None:
    found = stat.S_IMODE(path.stat().st_mode)
    if found & ~mode:
        raise Refused(f"{path} is open to other users (mode {found:04o}); run: chmod {mode:o} {path}")


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise FileFormatError(path, None, "this part of the identity is missing; make a new home (netdp peer restore)")
    _check_private(path, 0o600)
    return path.read_bytes()


def _damaged(path: Path, wanted: str) -> FileFormatError:
    return FileFormatError(path, None, f"damaged: it should hold {wanted}; make a new home (netdp peer restore)")


def _private_key(path: Path) -> object:
    try:
        return serialization.load_pem_private_key(_read(path), None)
    except (ValueError, TypeError):
        raise _damaged(path, "a secret key in PEM") from None


def alone(identity: Identity) -> socket.socket | None:
    """Hold the name of this identity until the socket is closed; refuses if another process has it. None but on Linux."""
    if not sys.platform.startswith("linux"):
        return None
    name = "\0netdp-" + hmac.new(identity.noise_secret, b"netdp alone 1", hashlib.sha256).hexdigest()[:32]
    held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        held.bind(name)
    except OSError as error:
        held.close()
        if error.errno != errno.EADDRINUSE:
            raise
        raise Refused(Statement(
            f"another process on this machine runs {identity.card.name} with the very same keys, from another folder: "
            f"{identity.home} is a copy, or was copied. Two of them could publish different numbers under one pad. End one of "
            "them and never start the older folder again",
            "already-running",
        )) from None  # fmt: skip
    return held


def check_memory(home: Path) -> None:
    """Refuse keys that were used, without the file that remembers for what."""
    if (home / "keys" / "used").exists() and not (home / "peer.db").exists():
        raise Refused(Statement(
            f"{home / 'peer.db'} is gone, and the keys in {home} were used before: what they published is not known here, and to "
            "publish again could uncover data. Put nothing back by hand; make a new home from a backup (netdp peer restore), or a "
            "new party (netdp peer init)",
            "memory",
        ))  # fmt: skip


def mark_used(home: Path) -> None:
    """Mark the keys as used, durably, before anything is sent. A folder of keys that is read-only stays as it is."""
    try:
        with os.fdopen(os.open(home / "keys" / "used", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as mark:
            os.fsync(mark.fileno())
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EEXIST, errno.EACCES, errno.EPERM):
            raise NetdpError(
                f"{home / 'keys'} cannot be marked as used: {error.strerror}; nothing was sent, start again when that is cured"
            ) from None
    else:
        folder = os.open(home / "keys", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
