"""What a party deals at the start of an attempt: two secrets in shares, which every holder can check and nobody else read.

A party has two secrets, numbers modulo ℓ, drawn for this attempt alone: s, from which its pads with all others come,
and b, from which the mask of its own comes. If it vanishes, the others recover s; if it stays, b; never both
(docs/proofs/peers.md#dealing and #one-sum). So each is dealt in shares, t of which give it and t − 1 of which say
nothing.

**A dealing.** For each of the two secrets a polynomial p of degree < t with p(0) the secret, and another one, r, that
is uniform. Holder i's share is p(i + 1). Published are

    S, B          the secrets times the base point, and R, the constant terms of the two r times it
    hashes        of (p(i + 1), r(i + 1)), one per holder and secret, bound to context, dealer, holder and kind
    sealed        the two shares of each holder, under its key of this attempt, bound to context, dealer and holder
    f = r + z·p   t coefficients for each secret; z a hash of everything above but what is sealed

Everybody checks f(0)·G = R + z·S, which proves that the dealer knows its secrets, too. A holder checks that its share
p(i + 1) and r(i + 1) = f(i + 1) − z·p(i + 1) have the hash. Since the values were hashed before z was known, all
shares that fit lie on one polynomial, and its constant term fits S. So does a share that is revealed: whoever sees it
checks it alone, without r, which is never sent. A share that is changed is seen at once and left out; nothing is
guessed from several that contradict each other.

**Each secret has its own r.** With one r for both, r + z·p + z²·p′, two numbers of a holder give the third: a
revealed share of b would be checked against r(i + 1), and the two together give the share of s.

**Disputes.** A holder whose share does not open, or does not fit, says so; the dealer publishes that share in clear
(`defence`), all check it (`check_share`), and the holder takes it from there. A dealer that does not is out. One of
the two is corrupt, so the coalition held that share already, or the dealer's secrets are the coalition's anyway:
nobody learns a thing. An honest dealer can always answer: its polynomials are functions of its secrets of the
attempt, of the context and of the holders' keys.

**Why an honest dealer is never proven a cheat.** Its dealing passes every check, with certainty; so do the shares
that it deals. To show a share of its that has the hash and does not lie on its polynomial is to find a collision of
SHA-256.

**What is erased.** Keys and secrets are drawn afresh, from the system's source, and for one attempt. Who copies a
home later, with all that was ever sent, finds in it nothing that opens a share, if the private key and the shares
that were not revealed are gone by then. They go when this process forgets them: Python cannot wipe its memory, nor a
file system its blocks.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets as source
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from netdp.errors import InvalidValue
from netdp.numerics.checks import whole
from netdp.peers import streams
from netdp.peers.recovery import polynomials
from netdp.peers.recovery.group import ORDER, base, combination, random_scalar, scalar_bytes, scalar_of

KEY = 32
"""Bytes of a key to which shares are sealed, of a point, a scalar and a hash."""

CONTEXT = 32
"""Bytes of a context."""

_POINTS, _PER_HOLDER, _PER_DEGREE = 5 * KEY, 2 * KEY + 2 * KEY + streams.SEAL, 2 * KEY

_CONTEXT, _KEYS, _SHARE, _CHALLENGE = (
    b"netdp attempt 1\0",
    b"netdp holders 1\0",
    b"netdp share 1\0",
    b"netdp challenge 1\0",
)
_SEALED, _COEFFICIENT = b"netdp sealed share 1\0", b"netdp coefficient 1\0"

_FIELD = 2**255 - 19


class Secret(IntEnum):
    """Which of the two secrets of a party."""

    PADS = 1
    """s: the pads with all others come from it. Revealed of who is not in the sum."""
    MASK = 2
    """b: the mask of its own comes from it. Revealed of who is in the sum."""


class BadDealing(InvalidValue):
    """A dealing is not one: who signed it did not follow the protocol."""

    def __init__(self, dealer: int, problem: str) -> None:
        self.dealer = dealer
        super().__init__(f"the dealing of party {dealer} {problem}; leave it out of the roster")


class OtherHolders(InvalidValue):
    """A dealing to other holders, other keys of theirs or another threshold than we know. It proves nothing against its dealer.

    A colluder that states two keys makes honest parties deal to different ones: its two signatures are the proof.
    """

    def __init__(self, dealer: int) -> None:
        self.dealer = dealer
        super().__init__(
            f"the dealing of party {dealer} is to other holders, other keys or another threshold than those that we know; "
            "compare the keys that it and we were told: who signed two is out"
        )


class TooFewShares(InvalidValue):
    """Fewer than t shares of a secret are right; `wrong` are the holders that revealed something else."""

    def __init__(self, dealer: int, needed: int, found: int, wrong: frozenset[int]) -> None:
        self.dealer, self.needed, self.found, self.wrong = dealer, needed, found, wrong
        said = f", parties {sorted(wrong)} revealed something that is no share" if wrong else ""
        super().__init__(
            f"{needed} shares of party {dealer}'s secret are needed, got {found}{said}; wait for those of others"
        )


class DealerCheated(InvalidValue):
    """t shares that a dealer committed itself to do not give the key that it stated: with its dealing they prove it."""

    def __init__(self, dealer: int) -> None:
        self.dealer = dealer
        super().__init__(f"shares that party {dealer} dealt do not give its key, which no honest dealing does")


@dataclass(frozen=True, repr=False)
class AttemptSecrets:
    """What a party draws for one attempt and erases in it; nothing of it comes from what it keeps longer."""

    private_key: bytes
    """X25519: shares are sealed to its public half."""
    s: int
    b: int
    noise: bytes
    """What the noise of this attempt is drawn from."""
    seed: bytes
    """What the polynomials are drawn from, so that a share which is disputed can be shown."""

    SIZE = 5 * KEY

    def __post_init__(self) -> None:
        if any(len(part) != KEY for part in (self.private_key, self.noise, self.seed)):
            raise InvalidValue(f"keys and seeds of an attempt have {KEY} bytes each; draw them with fresh()")
        if not (0 < self.s < ORDER and 0 < self.b < ORDER) or self.s == self.b:
            raise InvalidValue(
                "the two secrets of an attempt are different, and from 1 to ℓ − 1; draw them with fresh()"
            )

    @staticmethod
    def fresh() -> AttemptSecrets:
        """From the operating system's source."""
        return AttemptSecrets(
            source.token_bytes(KEY), random_scalar(), random_scalar(), source.token_bytes(KEY), source.token_bytes(KEY)
        )

    def to_bytes(self) -> bytes:
        """SIZE bytes, for this party's own disk."""
        return self.private_key + scalar_bytes(self.s) + scalar_bytes(self.b) + self.noise + self.seed

    @staticmethod
    def from_bytes(stored: bytes) -> AttemptSecrets:
        """What `to_bytes` wrote.

        >>> AttemptSecrets.from_bytes(bytes(3))
        Traceback (most recent call last):
        netdp.errors.InvalidValue: secrets of an attempt have 160 bytes, got 3; the file was cut off
        """
        if len(stored) != AttemptSecrets.SIZE:
            raise InvalidValue(
                f"secrets of an attempt have {AttemptSecrets.SIZE} bytes, got {len(stored)}; the file was cut off"
            )
        key, s, b, noise, seed = (stored[at : at + KEY] for at in range(0, AttemptSecrets.SIZE, KEY))
        return AttemptSecrets(key, scalar_of("s", s), scalar_of("b", b), noise, seed)


class Share(NamedTuple):
    """A holder's share of a dealer's two secrets. Never both of them are revealed."""

    s: int
    b: int

    def __repr__(self) -> str:
        return "Share(…)"

    def to_bytes(self) -> bytes:
        """64 bytes: what is sealed, and what a defence says."""
        return scalar_bytes(self.s) + scalar_bytes(self.b)

    @staticmethod
    def from_bytes(said: bytes) -> Share:
        """What `to_bytes` wrote."""
        if len(said) != 2 * KEY:
            raise InvalidValue(f"a share has {2 * KEY} bytes, got {len(said)}; who sent it did not follow the protocol")
        return Share(scalar_of("a share of s", said[:KEY]), scalar_of("a share of b", said[KEY:]))

    def of(self, kind: Secret) -> int:
        """One of the two."""
        return self.s if kind is Secret.PADS else self.b


def context(study: bytes, attempt: int, roster: Sequence[int], threshold: int) -> bytes:
    """32 bytes that no other study, attempt, roster or threshold has; everything in a dealing is bound to them.

    >>> context(b"s", 1, (0, 1, 2), 2) == context(b"s", 2, (0, 1, 2), 2)
    False
    """
    return hashlib.sha256(_CONTEXT + streams.context(study, attempt, roster, threshold)).digest()


def advertised(secrets: AttemptSecrets) -> bytes:
    """The public key of an attempt, to which others seal shares."""
    return X25519PrivateKey.from_private_bytes(secrets.private_key).public_key().public_bytes_raw()


def check_keys(body: bytes) -> bytes:
    """A public key of an attempt, from anybody; refuses what is not 32 bytes, has a second name, or shares no secret.

    >>> check_keys(bytes(32))
    Traceback (most recent call last):
    netdp.errors.InvalidValue: a key of an attempt shares no secret with anybody; refuse who sent it
    """
    key = _key(body)
    try:
        _ANY.exchange(key)
    except ValueError:
        raise InvalidValue("a key of an attempt shares no secret with anybody; refuse who sent it") from None
    return bytes(body)


_ANY = X25519PrivateKey.from_private_bytes(bytes(range(KEY)))


def _key(body: bytes) -> X25519PublicKey:
    if len(body) != KEY:
        raise InvalidValue(f"a key of an attempt has {KEY} bytes, got {len(body)}; refuse who sent it")
    if int.from_bytes(body, "little") >= _FIELD:
        raise InvalidValue("a key of an attempt is not in its one canonical encoding; refuse who sent it")
    return X25519PublicKey.from_public_bytes(bytes(body))


def dealing_size(holders: int, threshold: int) -> int:
    """Bytes of a dealing.

    >>> dealing_size(16, 11), dealing_size(50, 35), dealing_size(200, 133)
    (3680, 11200, 43872)
    """
    return _POINTS + whole("holders", holders, 1) * _PER_HOLDER + whole("threshold", threshold, 1) * _PER_DEGREE


def deal(context: bytes, dealer: int, threshold: int, holders: Mapping[int, bytes], secrets: AttemptSecrets) -> bytes:
    """The dealing of a party: the same secrets, context and keys give the same polynomials, and so the same shares, always.

    `holders` has the key of this attempt of every member of the roster, the dealer's own included.
    """
    place = _Place.of(context, dealer, threshold, holders)
    if holders[dealer] != advertised(secrets):
        raise InvalidValue(
            f"party {dealer} advertised another key than that of these secrets; they are of another attempt"
        )
    parts = _Polynomials.of(place, secrets)
    points = [base(secrets.s), base(secrets.b), base(parts.rs[0]), base(parts.rb[0])]
    hashes, sealed = [], []
    for holder, key in place.holders.items():
        share, at = parts.share(holder), holder + 1
        hashes.append(place.hash(holder, Secret.PADS, share.s, polynomials.value(parts.rs, at, ORDER)))
        hashes.append(place.hash(holder, Secret.MASK, share.b, polynomials.value(parts.rb, at, ORDER)))
        try:
            sealed.append(bytes(streams.SUITE.encrypt(share.to_bytes(), _key(key), place.info(holder))))
        except ValueError:
            raise InvalidValue(f"the key of party {holder} shares no secret with anybody; leave it out") from None
    z = place.challenge(points, hashes)
    f = [
        (r + z * p) % ORDER
        for rs, ps in ((parts.rs, parts.ps), (parts.rb, parts.pb))
        for r, p in zip(rs, ps, strict=True)
    ]
    return b"".join([place.keys, *points, *hashes, *sealed, *map(scalar_bytes, f)])


def defence(
    context: bytes, dealer: int, threshold: int, holders: Mapping[int, bytes], secrets: AttemptSecrets, holder: int
) -> Share:
    """The share of a holder that says it got none: what the dealer then publishes, as `to_bytes` writes it.

    An honest party does that for a complaint that the holder itself has signed, and only before it has contributed.
    """
    place = _Place.of(context, dealer, threshold, holders)
    return _Polynomials.of(place, secrets).share(place.holder(holder))


@dataclass(frozen=True)
class Dealing:
    """A dealing as it was read. `check` it before anything else is believed of it."""

    dealer: int
    threshold: int
    holders: Mapping[int, bytes]
    """Whom it is to, in order, and their keys."""
    S: bytes
    B: bytes
    blinds: tuple[bytes, bytes]
    hashes: tuple[bytes, ...]
    sealed: tuple[bytes, ...]
    f: tuple[tuple[int, ...], tuple[int, ...]]
    keys: bytes
    """The digest of the holders, their keys and the threshold."""

    @staticmethod
    def read(body: bytes, dealer: int, threshold: int, holders: Mapping[int, bytes]) -> Dealing:
        """Read a dealing from anybody. One body has one reading, and one dealing one body."""
        place = _Place.of(bytes(CONTEXT), dealer, threshold, holders)
        size = dealing_size(len(holders), threshold)
        if len(body) != size:
            raise BadDealing(dealer, f"has {len(body)} bytes instead of {size}")
        parts = iter(_cut(bytes(body), len(holders), threshold))
        keys, S, B, first, second = (next(parts) for _ in range(5))
        if keys != place.keys:
            raise OtherHolders(dealer)
        hashes = tuple(next(parts) for _ in range(2 * len(holders)))
        sealed = tuple(next(parts) for _ in holders)
        try:
            f = [scalar_of("a coefficient", part) for part in parts]
        except InvalidValue:
            raise BadDealing(dealer, "has a coefficient that is not reduced modulo ℓ") from None
        return Dealing(
            dealer, threshold, place.holders, S, B, (first, second), hashes, sealed,
            (tuple(f[:threshold]), tuple(f[threshold:])), keys,
        )  # fmt: skip

    def key(self, kind: Secret) -> bytes:
        """S or B."""
        return self.S if kind is Secret.PADS else self.B

    def check(self, context: bytes) -> None:
        """What everybody can check: that the dealer knows what it dealt, and that f fits it; BadDealing if not."""
        z = self._challenge(context)
        for kind, blind in zip(Secret, self.blinds, strict=True):
            try:
                # f(0)G − zS is a point of the subgroup; what equals it, byte for byte, is one, too
                expected = combination(self.f[kind - 1][0], ORDER - z, self.key(kind))
            except InvalidValue as problem:
                raise BadDealing(self.dealer, f"has a point that is none ({problem})") from None
            if expected != blind:
                raise BadDealing(self.dealer, "does not show that its dealer knows what it dealt")

    def open_share(self, context: bytes, holder: int, private_key: bytes) -> Share:
        """A holder's share, opened and checked; BadDealing if there is none for it: then it complains."""
        number = self._number(holder)
        info = _info(_checked(context), self.dealer, holder)
        if len(private_key) != KEY:
            raise InvalidValue(f"the private key of an attempt has {KEY} bytes, got {len(private_key)}")
        key = X25519PrivateKey.from_private_bytes(private_key)
        try:
            share = Share.from_bytes(bytes(streams.SUITE.decrypt(self.sealed[number], key, info)))
        except (InvalidTag, ValueError):
            if key.public_key().public_bytes_raw() != self.holders[holder]:
                raise InvalidValue(
                    f"this is not the key that party {holder} advertised; nobody is to blame but us"
                ) from None
            raise BadDealing(self.dealer, f"has no share that party {holder} can open") from None
        if not check_share(context, self, holder, share):
            raise BadDealing(self.dealer, f"has a share for party {holder} that does not fit")
        return share

    def _check_holders(self, holders: Iterable[int]) -> None:
        for holder in holders:
            if holder not in self.holders:
                raise InvalidValue(
                    f"party {holder} holds no share of party {self.dealer}, parties {tuple(self.holders)} do"
                )

    def _number(self, holder: int) -> int:
        self._check_holders((holder,))
        return _numbers(tuple(self.holders))[holder]

    def _challenge(self, context: bytes) -> int:
        points = [self.S, self.B, *self.blinds]
        return _challenge(_checked(context), self.dealer, self.keys, points, self.hashes)


def check_together(dealings: Iterable[Dealing]) -> None:
    """Refuse two parties with one secret. Every dealing must have passed `check` before.

    Only then both parties know it, so neither is honest. (Without, a copy that its author could not have made would take
    the honest party that it was copied from along.)
    """
    owners: dict[bytes, int] = {}
    for dealing in dealings:
        for part in (dealing.S, dealing.B, *dealing.blinds):
            owner = owners.setdefault(part, dealing.dealer)
            if owner != dealing.dealer:
                raise SameDealing(owner, dealing.dealer)
        if dealing.S == dealing.B:
            raise BadDealing(dealing.dealer, "has one secret in place of two")


class SameDealing(InvalidValue):
    """Two parties dealt the same; `dealers` are both. Both proved to know it, so neither is honest."""

    def __init__(self, one: int, other: int) -> None:
        self.dealers = (one, other)
        super().__init__(f"parties {one} and {other} dealt the same secret; leave both out of the roster")


def check_share(context: bytes, dealing: Dealing, holder: int, share: Share) -> bool:
    """Whether both shares of a holder are those that the dealer committed itself to: for the holder, and for a defence."""
    return all(is_share(context, dealing, holder, kind, share.of(kind)) for kind in Secret)


def is_share(context: bytes, dealing: Dealing, holder: int, kind: Secret, value: int) -> bool:
    """Whether a revealed value is the holder's share of one secret: it lies on the dealer's polynomial, and no other does."""
    return _is_share(context, dealing, dealing._challenge(context), holder, Secret(kind), value)


def recovered(context: bytes, dealing: Dealing, kind: Secret, shares: Mapping[int, int]) -> int:
    """A dealer's secret from the shares that holders revealed; wrong ones among them do no harm if t are right.

    Raises TooFewShares, which names who revealed something else, or DealerCheated.
    """
    dealing._check_holders(shares)
    t, key, kind = dealing.threshold, dealing.key(kind), Secret(kind)
    likely = sorted(holder for holder, value in shares.items() if _is_scalar(value))[:t]
    if len(likely) == t and _fits(secret := _constant(likely, shares), key):
        return secret  # most often nobody lies: then no share is looked at by itself
    z = dealing._challenge(context)
    right: list[int] = []
    wrong: list[int] = []
    for holder in sorted(shares):
        (right if _is_share(context, dealing, z, holder, kind, shares[holder]) else wrong).append(holder)
        if len(right) == t:
            break
    else:
        raise TooFewShares(dealing.dealer, t, len(right), frozenset(wrong))
    if not _fits(secret := _constant(right, shares), key):
        raise DealerCheated(dealing.dealer)
    return secret


def _is_share(context: bytes, dealing: Dealing, z: int, holder: int, kind: Secret, value: int) -> bool:
    number = dealing._number(holder)
    if not _is_scalar(value):
        return False
    r = (polynomials.value(dealing.f[kind - 1], holder + 1, ORDER) - z * value) % ORDER
    expected = _hash(_checked(context), dealing.dealer, holder, kind, value, r)
    return hmac.compare_digest(expected, dealing.hashes[2 * number + kind - 1])


def _is_scalar(value: object) -> bool:
    return type(value) is int and 0 <= value < ORDER


def _constant(holders: Sequence[int], shares: Mapping[int, int]) -> int:
    return polynomials.constant({holder + 1: shares[holder] for holder in holders}, ORDER)


def _fits(secret: int, key: bytes) -> bool:
    return secret != 0 and hmac.compare_digest(base(secret), key)


class _Place(NamedTuple):
    """Where a dealing belongs: its context, its dealer, and to whom it goes, all of them checked."""

    context: bytes
    dealer: int
    threshold: int
    holders: Mapping[int, bytes]
    keys: bytes

    @staticmethod
    def of(context: bytes, dealer: int, threshold: int, holders: Mapping[int, bytes]) -> _Place:
        members, keys = _listed(tuple(sorted((holder, bytes(key)) for holder, key in holders.items())), threshold)
        if dealer not in members:
            raise InvalidValue(f"party {dealer} deals to itself, too, and is not among the holders {tuple(members)}")
        return _Place(_checked(context), dealer, threshold, members, keys)

    def holder(self, holder: int) -> int:
        if holder not in self.holders:
            raise InvalidValue(
                f"party {holder} holds no share of party {self.dealer}, parties {tuple(self.holders)} do"
            )
        return holder

    def info(self, holder: int) -> bytes:
        return _info(self.context, self.dealer, holder)

    def hash(self, holder: int, kind: Secret, share: int, blind: int) -> bytes:
        return _hash(self.context, self.dealer, holder, kind, share, blind)

    def challenge(self, points: Sequence[bytes], hashes: Sequence[bytes]) -> int:
        return _challenge(self.context, self.dealer, self.keys, points, hashes)


class _Polynomials(NamedTuple):
    """Of both secrets, and what blinds them in f: their coefficients."""

    ps: list[int]
    pb: list[int]
    rs: list[int]
    rb: list[int]

    @staticmethod
    def of(place: _Place, secrets: AttemptSecrets) -> _Polynomials:
        label = _COEFFICIENT + place.context + _eight(place.dealer) + place.keys

        def drawn(which: int, count: int) -> list[int]:
            return [
                int.from_bytes(hmac.digest(secrets.seed, label + bytes([which]) + _eight(k), "sha512"), "little")
                % ORDER
                for k in range(count)
            ]

        t = place.threshold
        return _Polynomials([secrets.s, *drawn(1, t - 1)], [secrets.b, *drawn(2, t - 1)], drawn(3, t), drawn(4, t))

    def share(self, holder: int) -> Share:
        return Share(polynomials.value(self.ps, holder + 1, ORDER), polynomials.value(self.pb, holder + 1, ORDER))


@lru_cache(maxsize=8)  # all dealings of an attempt are to the same
def _listed(holders: tuple[tuple[int, bytes], ...], threshold: int) -> tuple[Mapping[int, bytes], bytes]:
    """The holders with their keys, checked, and a digest of them and the threshold."""
    members = {_party(holder): bytes(key) for holder, key in holders}
    n, t = len(members), whole("threshold", threshold, 1)
    if not n < 2 * t <= 2 * n:
        raise InvalidValue(
            f"threshold must be more than half of the {n} holders, and no more than all, got {threshold}: else two "
            "groups of them could reveal both secrets of a party"
        )
    for key in members.values():
        _key(key)
    # two equal keys are let pass: a colluder that copies an honest party's key cannot read what is sealed to it, and to
    # refuse both would give it the power to exclude that party
    listed = b"".join([_KEYS, _eight(t), _eight(n), *(_eight(holder) + key for holder, key in members.items())])
    return MappingProxyType(members), hashlib.sha256(listed).digest()


@lru_cache(maxsize=8)
def _numbers(holders: tuple[int, ...]) -> dict[int, int]:
    return {holder: number for number, holder in enumerate(holders)}


def _cut(body: bytes, holders: int, threshold: int) -> list[bytes]:
    """The parts of a body, in order; their lengths are known."""
    lengths = [KEY] * (5 + 2 * holders) + [2 * KEY + streams.SEAL] * holders + [KEY] * (2 * threshold)
    parts, at = [], 0
    for length in lengths:
        parts.append(body[at : at + length])
        at += length
    return parts


def _hash(context: bytes, dealer: int, holder: int, kind: Secret, share: int, blind: int) -> bytes:
    where = _SHARE + context + _eight(dealer) + _eight(holder) + bytes([kind])
    return hashlib.sha256(where + scalar_bytes(share) + scalar_bytes(blind)).digest()


def _challenge(context: bytes, dealer: int, keys: bytes, points: Sequence[bytes], hashes: Sequence[bytes]) -> int:
    """z: 512 bits modulo ℓ, so within 2⁻²⁵⁹ of uniform; `keys` stands for threshold, holders and their keys."""
    said = b"".join([_CHALLENGE, context, _eight(dealer), keys, *points, *hashes])
    # 0 would have no product with a point; it comes up with probability 2⁻²⁵²
    return int.from_bytes(hashlib.sha512(said).digest(), "little") % (ORDER - 1) + 1


def _info(context: bytes, dealer: int, holder: int) -> bytes:
    return _SEALED + context + _eight(dealer) + _eight(holder)


def _checked(context: bytes) -> bytes:
    if len(context) != CONTEXT:
        raise InvalidValue(f"a context has {CONTEXT} bytes, got {len(context)}; make it with context()")
    return bytes(context)


def _party(party: int) -> int:
    if whole("a party", party) >= 1 << 32:
        raise InvalidValue(f"a party's number is below 2³², got {party}")
    return int(party)


def _eight(number: int) -> bytes:
    return number.to_bytes(8, "big")
