"""Shares that all can check: what is dealt comes back, what is changed is seen, and each defence is what stops its attack."""

import contextlib
import dataclasses
import hashlib
import hmac
import itertools
import random
import secrets as source

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from dealt import STUDY, Attempt
from hypothesis import given, settings
from hypothesis import strategies as st

from netdp.errors import InvalidValue
from netdp.peers.recovery import dealing as module
from netdp.peers.recovery import polynomials
from netdp.peers.recovery.dealing import (
    AttemptSecrets,
    BadDealing,
    DealerCheated,
    Dealing,
    OtherHolders,
    SameDealing,
    Secret,
    Share,
    TooFewShares,
    advertised,
    check_keys,
    check_share,
    check_together,
    context,
    deal,
    dealing_size,
    defence,
    is_share,
    recovered,
)
from netdp.peers.recovery.group import ORDER, base, combination, plus, random_scalar, scalar_bytes, times
from netdp.peers.streams import context as place_of

FIVE = Attempt((0, 2, 3, 5, 9), 4)
KINDS = pytest.mark.parametrize("kind", Secret)


def eight(number):
    return number.to_bytes(8, "big")


# --- what is dealt comes back


@pytest.mark.parametrize("n", range(1, 21))
def test_any_t_of_the_shares_give_the_secrets(n):
    rng = random.Random(n)
    roster = tuple(sorted(rng.sample(range(60), n)))
    for t in {n // 2 + 1, n}:
        attempt = Attempt(roster, t)
        attempt.check()
        dealer = rng.choice(roster)
        for kind in Secret:
            shares = attempt.shares(dealer, kind, roster)
            groups = itertools.combinations(roster, t) if n <= 6 else (rng.sample(roster, t) for _ in range(3))
            for group in groups:
                some = {holder: shares[holder] for holder in group}
                assert recovered(attempt.context, attempt.dealings[dealer], kind, some) == attempt.secret(dealer, kind)
            with pytest.raises(TooFewShares, match="wait for those of others"):
                recovered(attempt.context, attempt.dealings[dealer], kind, dict(list(shares.items())[: t - 1]))


@pytest.mark.parametrize(("prime", "t"), [(5, 1), (5, 2), (5, 3), (7, 3)])
def test_fewer_than_t_shares_say_nothing(prime, t):
    """All polynomials over a small field: the shares at any t − 1 points are uniform, whatever the secret; t give it."""
    points = range(1, prime)
    for group in itertools.combinations(points, t - 1):
        for secret in range(prime):
            seen = [
                tuple(polynomials.value((secret, *rest), point, prime) for point in group)
                for rest in itertools.product(range(prime), repeat=t - 1)
            ]
            assert len(set(seen)) == len(seen) == prime ** (t - 1)
    for coefficients in itertools.product(range(prime), repeat=t):
        for group in itertools.combinations(points, t):
            shares = {point: polynomials.value(coefficients, point, prime) for point in group}
            assert polynomials.constant(shares, prime) == coefficients[0]


def test_points_of_shares():
    for points in ({0: 1}, {1: 1, 11: 2}, {-1: 3}):
        with pytest.raises(InvalidValue, match="from 1 to the prime less one"):
            polynomials.constant(points, 11)
    with pytest.raises(InvalidValue, match="at least one"):
        polynomials.constant({}, 11)


def test_what_everybody_sees_of_a_blinded_polynomial_is_uniform():
    """f, z and fewer than t shares, over a small field, all coefficients listed: the same whatever the secret is."""
    prime, z, t = 5, 3, 2
    seen = {secret: [] for secret in range(prime)}
    for secret, slope, *r in itertools.product(range(prime), repeat=4):
        f = tuple((blind + z * p) % prime for blind, p in zip(r, (secret, slope), strict=True))
        seen[secret].append((f, polynomials.value((secret, slope), 1, prime)))
    assert all(sorted(views) == sorted(seen[0]) for views in seen.values())
    assert len(set(seen[0])) == prime**3
    assert t == 2


# --- formulas


def test_the_bytes_of_a_dealing_are_as_written_down():
    """Every part computed by hand; if this changes, peers of two versions do not understand each other."""
    a, secrets = FIVE, FIVE.secrets[3]
    body, n, t = a.bodies[3], 5, 4
    cut, at = [], 0
    for length in [32] * 15 + [112] * 5 + [32] * 8:
        cut.append(body[at : at + length])
        at += length
    assert at == len(body) == dealing_size(n, t) == 160 + 176 * n + 64 * t
    keys, S, B, Rs, Rb, *rest = cut
    hashes, sealed, f = rest[:10], rest[10:15], [int.from_bytes(part, "little") for part in rest[15:]]
    assert a.context == hashlib.sha256(b"netdp attempt 1\0" + place_of(STUDY, 1, a.roster, t)).digest()
    listed = b"netdp holders 1\0" + eight(t) + eight(n) + b"".join(eight(u) + a.keys[u] for u in a.roster)
    assert keys == hashlib.sha256(listed).digest()

    def drawn(which, k):
        said = b"netdp coefficient 1\0" + a.context + eight(3) + keys + bytes([which]) + eight(k)
        return int.from_bytes(hmac.digest(secrets.seed, said, "sha512"), "little") % ORDER

    p = {1: [secrets.s] + [drawn(1, k) for k in range(t - 1)], 2: [secrets.b] + [drawn(2, k) for k in range(t - 1)]}
    r = {1: [drawn(3, k) for k in range(t)], 2: [drawn(4, k) for k in range(t)]}
    assert [S, B, Rs, Rb] == [base(secrets.s), base(secrets.b), base(r[1][0]), base(r[2][0])]

    def at_point(coefficients, x):
        return sum(c * x**k for k, c in enumerate(coefficients)) % ORDER

    for i, holder in enumerate(a.roster):
        for kind in (1, 2):
            said = b"netdp share 1\0" + a.context + eight(3) + eight(holder) + bytes([kind])
            said += scalar_bytes(at_point(p[kind], holder + 1)) + scalar_bytes(at_point(r[kind], holder + 1))
            assert hashes[2 * i + kind - 1] == hashlib.sha256(said).digest()
        info = b"netdp sealed share 1\0" + a.context + eight(3) + eight(holder)
        key = X25519PrivateKey.from_private_bytes(a.secrets[holder].private_key)
        assert module.streams.SUITE.decrypt(sealed[i], key, info) == scalar_bytes(
            at_point(p[1], holder + 1)
        ) + scalar_bytes(at_point(p[2], holder + 1))
    said = b"netdp challenge 1\0" + a.context + eight(3) + b"".join([keys, S, B, Rs, Rb, *hashes])
    z = int.from_bytes(hashlib.sha512(said).digest(), "little") % (ORDER - 1) + 1
    assert f == [(r[kind][k] + z * p[kind][k]) % ORDER for kind in (1, 2) for k in range(t)]


def test_every_part_of_the_place_changes_every_hash():
    """No two places have one hash, and what is sealed for one opens in no other."""

    def place(study=STUDY, attempt=1, roster=(0, 1, 2), threshold=2, dealer=0, holder=1, kind=Secret.PADS):
        where = context(study, attempt, roster, threshold)
        return module._hash(where, dealer, holder, kind, 5, 6), module._info(where, dealer, holder)

    others = [
        {"study": b"another"},
        {"attempt": 2},
        {"roster": (0, 1, 3)},
        {"threshold": 3},
        {"dealer": 1},
        {"holder": 2},
    ]
    places = [place(), *(place(**other) for other in others)]
    assert len({hashed for hashed, _ in places}) == len({info for _, info in places}) == 7
    assert place(kind=Secret.MASK)[0] != place()[0]
    where = context(STUDY, 1, (0, 1), 2)
    assert module._hash(where, 0, 1, Secret.PADS, 5, 6) != module._hash(where, 0, 1, Secret.PADS, 6, 5)
    labels = [
        getattr(module, name) for name in ("_CONTEXT", "_KEYS", "_SHARE", "_CHALLENGE", "_SEALED", "_COEFFICIENT")
    ]
    assert not any(a.startswith(b) for a, b in itertools.permutations(labels, 2))


@pytest.mark.parametrize("change", [{"number": 2}, {"study": b"another"}, {"threshold": 5}])
def test_a_dealing_is_of_one_attempt(change):
    """Put into another attempt, with the same secrets and keys, it neither passes nor opens."""
    other = Attempt(FIVE.roster, **({"threshold": FIVE.threshold} | change), secrets=FIVE.secrets)
    with pytest.raises(BadDealing, match="does not show"):
        FIVE.dealings[0].check(other.context)
    with pytest.raises(BadDealing, match="that party 2 can open"):
        FIVE.dealings[0].open_share(other.context, 2, FIVE.secrets[2].private_key)
    share = FIVE.share(0, 2)
    assert check_share(FIVE.context, FIVE.dealings[0], 2, share)
    assert not check_share(other.context, FIVE.dealings[0], 2, share)
    assert other.dealings[0].f != FIVE.dealings[0].f  # other polynomials: f for two z would show p
    if "threshold" in change:
        with pytest.raises(InvalidValue):
            other.read(0, FIVE.bodies[0])


def test_the_same_is_dealt_again_but_for_the_sealing():
    again = FIVE.read(3, deal(FIVE.context, 3, 4, FIVE.keys, FIVE.secrets[3]))
    assert dataclasses.replace(again, sealed=()) == dataclasses.replace(FIVE.dealings[3], sealed=())
    assert not set(again.sealed) & set(FIVE.dealings[3].sealed)


# --- secrets


def test_secrets_on_disk_and_in_print():
    secrets = AttemptSecrets.fresh()
    stored = secrets.to_bytes()
    assert len(stored) == AttemptSecrets.SIZE == 160
    assert AttemptSecrets.from_bytes(stored) == secrets != AttemptSecrets.fresh()
    shown = [repr(secrets), str(secrets), f"{Share(secrets.s, secrets.b)} {[Share(secrets.s, secrets.b)]}"]
    for text in shown:
        for part in (secrets.s, secrets.b, secrets.private_key, secrets.noise, secrets.seed):
            assert str(part) not in text
            assert isinstance(part, int) or part.hex() not in text
    parts = [stored[at : at + 32] for at in range(0, 160, 32)]
    assert len(set(parts)) == 5


@pytest.mark.parametrize("change", [{"s": 0}, {"b": ORDER}, {"s": 5, "b": 5}, {"seed": b""}, {"noise": b"x" * 31}])
def test_secrets_that_are_none(change):
    with pytest.raises(InvalidValue, match=r"fresh\(\)"):
        dataclasses.replace(FIVE.secrets[0], **change)


@given(st.binary(max_size=200))
def test_secrets_from_any_file(stored):
    with contextlib.suppress(InvalidValue):
        assert AttemptSecrets.from_bytes(stored).to_bytes() == stored


def test_the_secrets_of_another_attempt_are_not_dealt():
    with pytest.raises(InvalidValue, match="of another attempt"):
        deal(FIVE.context, 0, 4, FIVE.keys, AttemptSecrets.fresh())
    with pytest.raises(InvalidValue, match="nobody is to blame but us"):
        FIVE.dealings[0].open_share(FIVE.context, 2, AttemptSecrets.fresh().private_key)


LOW = [0, 1, 2**255 - 20, 2**255 - 19, 2**255 - 18,
       325606250916557431795983626356110631294008115727848805560023387167927233504,
       39382357235489614581723060781553021112529911719440698176882885853963445705823]  # fmt: skip


@pytest.mark.parametrize(
    "key", [*(low.to_bytes(32, "little") for low in LOW), bytes([255] * 32), b"", bytes(31), bytes(33)]
)
def test_keys_that_share_no_secret_or_have_a_second_name(key):
    with pytest.raises(InvalidValue, match="refuse who sent it"):
        check_keys(key)
    with pytest.raises(InvalidValue):
        deal(FIVE.context, 0, 4, FIVE.keys | {2: key}, FIVE.secrets[0])


@given(st.binary(max_size=40))
def test_keys_from_anybody(key):
    with contextlib.suppress(InvalidValue):
        assert check_keys(key) == key
    assert check_keys(FIVE.keys[0]) == FIVE.keys[0]


@pytest.mark.parametrize(("n", "t"), [(2, 1), (4, 2), (5, 2), (5, 0), (5, 6), (3, 1)])
def test_thresholds_with_which_two_groups_could_reveal_both_secrets(n, t):
    secrets = [AttemptSecrets.fresh() for _ in range(n)]
    keys = {u: advertised(secrets[u]) for u in range(n)}
    with pytest.raises(InvalidValue, match="threshold must be"):
        deal(bytes(32), 0, t, keys, secrets[0])


def test_places_that_are_none():
    with pytest.raises(InvalidValue, match="not among the holders"):
        deal(FIVE.context, 1, 4, FIVE.keys, FIVE.secrets[0])
    with pytest.raises(InvalidValue, match=r"make it with context\(\)"):
        deal(b"short", 0, 4, FIVE.keys, FIVE.secrets[0])
    with pytest.raises(InvalidValue, match="party 7 holds no share of party 0"):
        FIVE.dealings[0].open_share(FIVE.context, 7, FIVE.secrets[0].private_key)
    with pytest.raises(InvalidValue, match="party 7 holds no share"):
        recovered(FIVE.context, FIVE.dealings[0], Secret.PADS, {7: 1})
    with pytest.raises(InvalidValue, match="party 7 holds no share"):
        defence(FIVE.context, 0, 4, FIVE.keys, FIVE.secrets[0], 7)
    with pytest.raises(InvalidValue, match=r"from 0|≥ 0|below 2"):
        deal(FIVE.context, 1 << 32, 2, {0: FIVE.keys[0], 1 << 32: FIVE.keys[2]}, FIVE.secrets[2])


# --- bytes from anybody


@given(st.binary(max_size=2000) | st.binary(min_size=1296, max_size=1296))
def test_any_bytes_are_no_dealing(body):
    with pytest.raises(InvalidValue):
        FIVE.read(0, body)


@settings(max_examples=300)
@given(st.integers(0, dealing_size(5, 4) - 1), st.integers(1, 255))
def test_whatever_is_changed_is_seen(at, change):
    """By everybody; a sealed share by its holder, and by nobody else."""
    body = bytearray(FIVE.bodies[0])
    body[at] ^= change
    sealed = range(480, 480 + 5 * 112)
    try:
        changed = FIVE.read(0, bytes(body))
        changed.check(FIVE.context)
    except InvalidValue:
        assert at not in sealed
        return
    spoilt = [holder for i, holder in enumerate(FIVE.roster) if at in sealed[112 * i : 112 * (i + 1)]]
    slope = at >= dealing_size(5, 4) - 8 * 32  # a coefficient of f but its first: no holder's share fits
    for holder in FIVE.roster:
        if holder in spoilt or slope:
            with pytest.raises(BadDealing):
                changed.open_share(FIVE.context, holder, FIVE.secrets[holder].private_key)
        else:
            assert changed.open_share(FIVE.context, holder, FIVE.secrets[holder].private_key) == FIVE.share(0, holder)
    assert spoilt or slope


@given(st.integers(0, dealing_size(5, 4)))
def test_a_dealing_that_is_cut_off(length):
    if length < dealing_size(5, 4):
        with pytest.raises(BadDealing, match=f"has {length} bytes"):
            FIVE.read(0, FIVE.bodies[0][:length])


@KINDS
def test_everybody_sees_that_f_fits_the_key(kind):
    """f is not hashed: the equation at 0 is what binds it to S, and to B."""
    body = FIVE.bodies[0]
    at = dealing_size(5, 4) - 32 * 4 * (3 - kind)
    other = scalar_bytes((int.from_bytes(body[at : at + 32], "little") + 1) % ORDER)
    with pytest.raises(BadDealing, match="party 0 does not show"):
        FIVE.read(0, body[:at] + other + body[at + 32 :]).check(FIVE.context)


def test_a_scalar_with_a_second_name_and_points_that_are_none():
    body = FIVE.bodies[0]
    last = int.from_bytes(body[-32:], "little") + ORDER
    with pytest.raises(BadDealing, match="not reduced"):
        FIVE.read(0, body[:-32] + last.to_bytes(32, "little"))
    for at, bad in itertools.product(range(32, 160, 32), (bytes(32), (1).to_bytes(32, "little"), bytes([255] * 32))):
        changed = FIVE.read(0, body[:at] + bad + body[at + 32 :])
        with pytest.raises(BadDealing, match=r"party 0 .* leave it out"):
            changed.check(FIVE.context)


@KINDS
def test_a_zero_key_or_an_identity_cannot_be_dealt(kind):
    """s = 0, with f and R to match: the point is refused."""
    d = FIVE.dealings[0]
    identity = (1).to_bytes(32, "little")
    names = ("S", "B")
    for blind in (identity, base(5)):
        blinds = tuple(blind if k == kind else old for k, old in zip(Secret, d.blinds, strict=True))
        f = tuple((5, *old[1:]) if k == kind else old for k, old in zip(Secret, d.f, strict=True))
        with pytest.raises(BadDealing):
            dataclasses.replace(d, blinds=blinds, f=f, **{names[kind - 1]: identity}).check(FIVE.context)


@given(st.binary(max_size=80))
def test_a_defence_from_anybody(said):
    try:
        share = Share.from_bytes(said)
    except InvalidValue:
        return
    assert share.to_bytes() == said
    assert not check_share(FIVE.context, FIVE.dealings[0], 2, share)


@KINDS
def test_a_revealed_share_is_one_or_it_is_not(kind):
    d, share = FIVE.dealings[0], FIVE.share(0, 2)
    assert is_share(FIVE.context, d, 2, kind, share.of(kind))
    other = share.of(Secret.MASK if kind is Secret.PADS else Secret.PADS)
    for value in (other, share.of(kind) + 1, share.of(kind) + ORDER, -1, 0, ORDER, None, "7", 2.0, True,
                  FIVE.share(0, 3).of(kind), FIVE.share(2, 2).of(kind)):  # fmt: skip
        assert not is_share(FIVE.context, d, 2, kind, value)


# --- shares that are wrong


@KINDS
@pytest.mark.parametrize("wrong", [1, 2])
def test_wrong_shares_do_no_harm_and_are_named(kind, wrong):
    a = Attempt(tuple(range(7)), 5)
    shares = a.shares(1, kind, a.roster)
    for liars in itertools.combinations(a.roster, wrong):
        said = shares | dict.fromkeys(liars, 12345)
        assert recovered(a.context, a.dealings[1], kind, said) == a.secret(1, kind)
        few = {holder: value for holder, value in said.items() if holder in (*liars, *range(wrong, 4))}
        with pytest.raises(TooFewShares, match="is no share") as refused:
            recovered(a.context, a.dealings[1], kind, few)
        assert refused.value.wrong == frozenset(liars)
        assert refused.value.dealer == 1
    with pytest.raises(TooFewShares):  # they give 0
        recovered(a.context, a.dealings[1], kind, dict.fromkeys(a.roster, 0))
    for value in (None, -5, ORDER, 10**100):
        assert recovered(a.context, a.dealings[1], kind, shares | {0: value, 6: value}) == a.secret(1, kind)


class Cheat:
    """A dealer that may choose every number by itself: it says what its shares and their blinds are, and what f is."""

    def __init__(self, attempt, dealer, z=None):
        self.a, self.dealer = attempt, dealer
        self.secrets = attempt.secrets[dealer]
        self.place = module._Place.of(attempt.context, dealer, attempt.threshold, attempt.keys)
        self.parts = module._Polynomials.of(self.place, self.secrets)
        self.z = z

    def dealing(self, off, *, fitting):
        """The share of s of one holder is off by one; with `fitting`, r too, so that f fits for the challenge z."""
        points = [base(self.secrets.s), base(self.secrets.b), base(self.parts.rs[0]), base(self.parts.rb[0])]
        hashes, sealed = [], []
        for holder, key in self.a.keys.items():
            share = self.parts.share(holder)
            rs = polynomials.value(self.parts.rs, holder + 1, ORDER)
            if holder == off:
                share = Share((share.s + 1) % ORDER, share.b)
                rs = (rs - fitting * (self.z or 0)) % ORDER
            rb = polynomials.value(self.parts.rb, holder + 1, ORDER)
            hashes += [
                self.place.hash(holder, Secret.PADS, share.s, rs),
                self.place.hash(holder, Secret.MASK, share.b, rb),
            ]
            sealed.append(module.streams.SUITE.encrypt(share.to_bytes(), module._key(key), self.place.info(holder)))
        z = self.place.challenge(points, hashes)
        f = [
            (r + z * p) % ORDER
            for rs, ps in ((self.parts.rs, self.parts.ps), (self.parts.rb, self.parts.pb))
            for r, p in zip(rs, ps, strict=True)
        ]
        return self.a.read(self.dealer, b"".join([self.place.keys, *points, *hashes, *sealed, *map(scalar_bytes, f)]))

    def share(self, holder):
        return self.parts.share(holder)


def test_shares_that_fit_their_hashes_but_no_polynomial():
    """The holder sees it, and a revealed share too is left out: the others recover the secret."""
    a = Attempt((0, 1, 2, 3, 4), 4)
    d = Cheat(a, 0).dealing(off=2, fitting=False)
    d.check(a.context)
    with pytest.raises(BadDealing, match="that does not fit"):
        d.open_share(a.context, 2, a.secrets[2].private_key)
    wrong = (Cheat(a, 0).share(2).s + 1) % ORDER
    assert not is_share(a.context, d, 2, Secret.PADS, wrong)
    shares = {holder: d.open_share(a.context, holder, a.secrets[holder].private_key).s for holder in (0, 1, 3, 4)}
    assert recovered(a.context, d, Secret.PADS, shares | {2: wrong}) == a.secrets[0].s


def test_the_challenge_is_what_stops_them(monkeypatch):
    """Were z known before the shares are hashed, a share off the polynomial would pass, and t shares would give two secrets."""
    a = Attempt((0, 1, 2, 3, 4), 4)
    monkeypatch.setattr(module, "_challenge", lambda context, dealer, keys, points, hashes: 77)
    d = Cheat(a, 0, z=77).dealing(off=2, fitting=True)
    d.check(a.context)
    shares = {holder: d.open_share(a.context, holder, a.secrets[holder].private_key).s for holder in a.roster}
    assert recovered(a.context, d, Secret.PADS, {u: shares[u] for u in (0, 1, 3, 4)}) == a.secrets[0].s
    with pytest.raises(DealerCheated) as proven:
        recovered(a.context, d, Secret.PADS, {u: shares[u] for u in (0, 1, 2, 3)})
    assert proven.value.dealer == 0


def forged(attempt, dealer, **rogue):
    """A dealing with a point that its dealer does not know the secret of: R is chosen to fit f(0) and the z it hopes for."""
    d = dataclasses.replace(attempt.dealings[dealer], **rogue)
    z = d._challenge(attempt.context)
    f = tuple((random_scalar(), *old[1:]) for old in d.f)
    blinds = tuple(plus(base(new[0]), times(ORDER - z, d.key(kind))) for kind, new in zip(Secret, f, strict=True))
    return dataclasses.replace(d, blinds=blinds, f=f)


@pytest.mark.parametrize("name", ["S", "B"])
def test_a_key_made_from_another_ones(monkeypatch, name):
    """S_v = S_w + δG would open the pad of two honest parties once s_v is asked for: only who knows s can deal."""
    a = FIVE
    rogue = {name: plus(getattr(a.dealings[2], name), base(99))}
    with pytest.raises(BadDealing, match="knows what it dealt"):
        forged(a, 0, **rogue).check(a.context)
    # with a challenge that the dealer knows before it chooses R it would pass
    monkeypatch.setattr(module, "_challenge", lambda *said: 77)
    forged(a, 0, **rogue).check(a.context)


# --- a dealing that is copied under another name


def names_left_out(monkeypatch):
    """Take the dealer out of everything that binds a dealing to it."""
    monkeypatch.setattr(module, "_info", lambda context, dealer, holder: context + eight(holder))
    kept = module._hash
    monkeypatch.setattr(module, "_hash", lambda context, dealer, *more: kept(context, 0, *more))
    said = module._challenge
    monkeypatch.setattr(module, "_challenge", lambda context, dealer, *more: said(context, 0, *more))


def both_secrets_of_a_victim(a, victim, thief):
    """The thief deals its victim's dealing under its own name, and vanishes: then all reveal b of the one and s of the other."""
    a.dealings[thief] = a.read(thief, a.bodies[victim])
    a.dealings[thief].check(a.context)
    honest = [u for u in a.roster if u != thief]
    s = recovered(a.context, a.dealings[thief], Secret.PADS, a.shares(thief, Secret.PADS, honest))
    b = recovered(a.context, a.dealings[victim], Secret.MASK, a.shares(victim, Secret.MASK, honest))
    return s, b


def test_a_copied_dealing_does_not_open_the_one_it_was_copied_from():
    a = Attempt((0, 1, 2, 3, 4), 4)
    with pytest.raises(BadDealing, match="party 4 does not show"):
        both_secrets_of_a_victim(a, 1, 4)
    with pytest.raises(BadDealing, match="no share that party 2 can open"):
        a.share(4, 2)
    assert not check_share(a.context, a.dealings[4], 2, a.share(1, 2))


def test_the_name_is_what_stops_a_copy_and_equal_keys_are_the_second_defence(monkeypatch):
    names_left_out(monkeypatch)
    a = Attempt((0, 1, 2, 3, 4), 4)
    assert both_secrets_of_a_victim(a, 1, 4) == (a.secrets[1].s, a.secrets[1].b)
    with pytest.raises(SameDealing, match="parties 1 and 4") as refused:
        check_together(a.dealings.values())
    assert refused.value.dealers == (1, 4)


@pytest.mark.parametrize("which", ["S", "B", "crossed", "blind"])
def test_no_two_parties_have_one_secret(which):
    one, other = FIVE.dealings[0], FIVE.dealings[2]
    check_together([one, other])
    changed = {"S": {"S": one.S}, "B": {"B": one.B}, "crossed": {"B": one.S}, "blind": {"blinds": one.blinds}}[which]
    with pytest.raises(SameDealing):
        check_together([one, dataclasses.replace(other, **changed)])
    with pytest.raises(BadDealing, match="one secret in place of two"):
        check_together([dataclasses.replace(one, B=one.S)])


def test_a_copied_hash_takes_nobody_along():
    """What nobody has to prove that it knows may be copied: it must not exclude the one it was copied from."""
    one, other = FIVE.dealings[0], FIVE.dealings[2]
    check_together([one, dataclasses.replace(other, hashes=one.hashes, sealed=one.sealed)])


def test_who_copies_a_key_reads_nothing_and_takes_nobody_along():
    secrets = {u: AttemptSecrets.fresh() for u in range(3)}
    keys = {u: advertised(secrets[u]) for u in range(3)}
    keys[2] = keys[1]  # 2 colludes
    where = context(STUDY, 1, range(3), 2)
    d = Dealing.read(deal(where, 0, 2, keys, secrets[0]), 0, 2, keys)
    d.check(where)
    assert d.open_share(where, 1, secrets[1].private_key) != d.open_share(where, 2, secrets[1].private_key)
    with pytest.raises(InvalidValue, match="nobody is to blame"):
        d.open_share(where, 2, secrets[2].private_key)


def test_who_states_two_keys_proves_nothing_against_the_dealer():
    keys = FIVE.keys | {9: advertised(AttemptSecrets.fresh())}
    dealt = deal(FIVE.context, 0, 4, keys, FIVE.secrets[0])
    for body, told in ((dealt, FIVE.keys), (FIVE.bodies[0], keys), (FIVE.bodies[0], FIVE.keys)):
        if body == FIVE.bodies[0] and told is FIVE.keys:
            Dealing.read(body, 0, 4, told).check(FIVE.context)
            continue
        with pytest.raises(OtherHolders, match="who signed two is out") as refused:
            Dealing.read(body, 0, 4, told)
        assert refused.value.dealer == 0
        assert not isinstance(refused.value, BadDealing)


def test_other_holders_of_the_same_number():
    keys = {u: FIVE.keys[v] for u, v in zip((0, 2, 3, 5, 8), FIVE.roster, strict=True)}
    with pytest.raises(OtherHolders):
        Dealing.read(FIVE.bodies[0], 0, 4, keys)
    swapped = FIVE.keys | {2: FIVE.keys[3], 3: FIVE.keys[2]}
    with pytest.raises(OtherHolders):
        Dealing.read(FIVE.bodies[0], 0, 4, swapped)


# --- disputes


def test_a_dispute_shows_the_share_of_the_one_who_complained_and_no_other():
    a = Attempt((0, 1, 2, 3, 4), 4)
    said = defence(a.context, 0, 4, a.keys, a.secrets[0], 2).to_bytes()
    assert len(said) == 64
    assert check_share(a.context, a.dealings[0], 2, Share.from_bytes(said))
    assert Share.from_bytes(said) == a.share(0, 2)  # a colluder that complains for nothing learns what it held
    assert not any(check_share(a.context, a.dealings[0], other, Share.from_bytes(said)) for other in (0, 1, 3, 4))
    assert not check_share(a.context, a.dealings[1], 2, Share.from_bytes(said))


def test_a_holder_whose_share_was_garbage_takes_it_from_the_defence():
    a = Attempt((0, 1, 2, 3, 4), 4)
    d = a.dealings[0]
    d = dataclasses.replace(d, sealed=(*d.sealed[:2], source.token_bytes(112), *d.sealed[3:]))
    d.check(a.context)
    with pytest.raises(BadDealing, match="no share that party 2 can open"):
        d.open_share(a.context, 2, a.secrets[2].private_key)
    share = defence(a.context, 0, 4, a.keys, a.secrets[0], 2)
    assert check_share(a.context, d, 2, share)
    assert recovered(a.context, d, Secret.PADS, a.shares(0, Secret.PADS, (0, 1, 3)) | {2: share.s}) == a.secrets[0].s


def test_a_cheat_cannot_defend_a_share_that_fits_nothing():
    a = Attempt((0, 1, 2, 3, 4), 4)
    cheat = Cheat(a, 0)
    d = cheat.dealing(off=2, fitting=False)
    for s in (cheat.share(2).s, (cheat.share(2).s + 1) % ORDER):
        assert not check_share(a.context, d, 2, Share(s, cheat.share(2).b))


# --- homes copied afterwards


def opened(a, home):
    """What somebody finds who tries every key of a home on every share that was ever sent."""
    found = {}
    for dealer, d in a.dealings.items():
        for (i, holder), key in itertools.product(enumerate(a.roster), home):
            try:
                info = module._info(a.context, dealer, holder)
                plain = module.streams.SUITE.decrypt(d.sealed[i], X25519PrivateKey.from_private_bytes(key), info)
            except Exception:
                continue
            found.setdefault(dealer, {})[holder] = Share.from_bytes(plain)
    return found


def test_all_homes_copied_after_the_attempt_open_nothing():
    """The keys of the attempt are gone; were shares sealed to the keys that a party keeps, t homes would give everything."""
    lasting = {u: X25519PrivateKey.generate().private_bytes_raw() for u in range(5)}
    a = Attempt((0, 1, 2, 3, 4), 4)
    home_after = list(lasting.values())  # s, b, the seed, the private key and the shares that were not revealed: erased
    assert opened(a, home_after) == {}
    before = {u: dataclasses.replace(AttemptSecrets.fresh(), private_key=lasting[u]) for u in range(5)}
    careless = Attempt((0, 1, 2, 3, 4), 4, secrets=before)
    found = opened(careless, home_after[:4])
    for u in range(5):
        for kind in Secret:
            shares = {holder: share.of(kind) for holder, share in found[u].items()}
            assert recovered(careless.context, careless.dealings[u], kind, shares) == careless.secret(u, kind)


def test_no_secret_of_an_attempt_comes_from_what_a_party_keeps():
    """Two attempts of one party share nothing, and `fresh` takes no argument that it could derive anything from."""
    one, other = AttemptSecrets.fresh(), AttemptSecrets.fresh()
    assert not {one.to_bytes()[at : at + 32] for at in range(0, 160, 32)} & {
        other.to_bytes()[at : at + 32] for at in range(0, 160, 32)
    }
    assert advertised(one) != advertised(other)


# --- why each secret has a blind of its own


def test_a_blind_that_both_secrets_share_gives_one_away_for_the_other():
    """f = r + z·p_s + z²·p_b, as once drafted: the revealed share of b, and the r that would check it, give the share of s."""
    prime, z = 101, 7
    s, b, r = 13, 57, 91
    f = (r + z * s + z * z * b) % prime
    assert (f - r - z * z * b) * pow(z, -1, prime) % prime == s


def test_a_revealed_share_of_one_secret_says_nothing_of_the_other():
    """Over Z₅, t = 2, everything listed: f of both, the share of b with its blind at all points; the share of s stays uniform."""
    prime, z = 5, 2
    seen = {}
    for s0, s1, r0, r1 in itertools.product(range(prime), repeat=4):
        f = ((r0 + z * s0) % prime, (r1 + z * s1) % prime)
        seen.setdefault(f, []).append(s0)
    # b, its polynomial and its blind are drawn apart from all of these, so a view is f of s and anything of b
    assert all(sorted(found) == sorted(list(range(prime)) * prime) for found in seen.values())


def test_the_blind_of_a_share_is_found_by_whoever_has_the_share_so_it_is_not_sent():
    a = FIVE
    d, share = a.dealings[0], a.share(0, 2)
    z = d._challenge(a.context)
    r = (polynomials.value(d.f[0], 3, ORDER) - z * share.s) % ORDER
    assert r == polynomials.value(
        module._Polynomials.of(module._Place.of(a.context, 0, 4, a.keys), a.secrets[0]).rs, 3, ORDER
    )
    assert (polynomials.value(d.f[0], 3, ORDER) - r) * pow(z, -1, ORDER) % ORDER == share.s  # and r gives the share
    assert combination(d.f[0][0], ORDER - z, d.S) == d.blinds[0]
    assert scalar_bytes(r) not in a.bodies[0]
