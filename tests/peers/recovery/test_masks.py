"""Masks hide, cancel and come off: the sum over those who are in it, whoever is away, and nothing if anything is amiss."""

import dataclasses
import hashlib
import hmac
import itertools
import tracemalloc

import numpy as np
import pytest
from dealt import Attempt
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from netdp.errors import InvalidValue
from netdp.peers.recovery import masks as module
from netdp.peers.recovery.dealing import Secret, context, recovered
from netdp.peers.recovery.group import ORDER, base, scalar_bytes, times
from netdp.peers.recovery.masks import mask_key, masks, pad_key, unmask
from netdp.peers.streams import Words

Q = 2**40
FIVE = Attempt((0, 2, 3, 5, 9), 4)


def eight(number):
    return number.to_bytes(8, "big")


def contributions(a, values, modulus=Q):
    columns = len(next(iter(values.values())))
    return {
        u: (values[u] + masks(a.secrets[u], u, a.dealings, a.context, columns, modulus)) & np.uint64(modulus - 1)
        for u in a.roster
    }


def removed(a, total, included, modulus=Q, holders=None):
    """What the parties find: secrets recovered from revealed shares, masks removed."""
    holders = a.roster[-a.threshold :] if holders is None else holders
    away = [u for u in a.roster if u not in included]
    found = {
        kind: {u: recovered(a.context, a.dealings[u], kind, a.shares(u, kind, holders)) for u in group}
        for kind, group in ((Secret.MASK, included), (Secret.PADS, away))
    }
    return unmask(total, included, a.roster, found[Secret.MASK], found[Secret.PADS], a.dealings, a.context, modulus)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 20])
def test_the_sum_of_those_who_are_in_it(n):
    rng = np.random.default_rng(n)
    a = Attempt(tuple(range(1, 2 * n, 2)), n // 2 + 1)
    values = {u: rng.integers(0, Q, 7, dtype=np.uint64) for u in a.roster}
    y = contributions(a, values)
    sets = itertools.chain.from_iterable(itertools.combinations(a.roster, k) for k in range(1, n + 1))
    for included in sets if n <= 4 else (rng.permutation(a.roster)[:k].tolist() for k in (1, n // 2, n - 1, n)):
        total = sum((y[u] for u in included), np.zeros(7, dtype=np.uint64)) % np.uint64(Q)
        expected = sum((values[u] for u in included), np.zeros(7, dtype=np.uint64)) % np.uint64(Q)
        assert (removed(a, total, included) == expected).all()


@pytest.mark.parametrize("modulus", [2, 2**33, 2**64])
def test_every_modulus(modulus):
    values = {u: np.array([u % modulus, modulus - 1], dtype=np.uint64) for u in FIVE.roster}
    y = contributions(FIVE, values, modulus)
    top = np.uint64(modulus - 1)
    assert all((contribution <= top).all() for contribution in y.values())
    assert len({tuple(contribution.tolist()) for contribution in y.values()}) > 1
    total = sum(y.values(), np.zeros(2, dtype=np.uint64)) & top
    found = removed(FIVE, total, FIVE.roster, modulus)
    assert found.tolist() == [sum(FIVE.roster) % modulus, (5 * (modulus - 1)) % modulus]


def test_keys_are_derived_as_written_down():
    """HKDF (RFC 5869, no salt, one block) by hand: peers of two versions must find the same."""
    a, (u, v) = FIVE, (2, 9)
    point = times(a.secrets[u].s, a.dealings[v].S)
    extracted = hmac.digest(bytes(32), point, "sha256")
    info = b"netdp pair pad 1\0" + a.context + eight(u) + eight(v)
    key = hmac.digest(extracted, info + b"\x01", "sha256")
    assert pad_key(a.secrets[u].s, a.dealings[v].S, a.context, u, v) == key
    assert pad_key(a.secrets[v].s, a.dealings[u].S, a.context, v, u) == key
    extracted = hmac.digest(bytes(32), scalar_bytes(a.secrets[u].b), "sha256")
    info = b"netdp own mask 1\0" + a.context + eight(u)
    assert mask_key(a.secrets[u].b, a.context, u) == hmac.digest(extracted, info + b"\x01", "sha256")
    expected = Words(mask_key(a.secrets[3].b, a.context, 3))(9)
    for other in (0, 2, 5, 9):
        words = Words(pad_key(a.secrets[3].s, a.dealings[other].S, a.context, 3, other))(9)
        expected = expected + words if other > 3 else expected - words
    assert (masks(a.secrets[3], 3, a.dealings, a.context, 9, 2**64) == expected).all()
    assert (masks(a.secrets[3], 3, a.dealings, a.context, 9, 8) == expected % np.uint64(8)).all()


def test_a_long_mask_is_the_beginning_of_a_longer_one():
    step = module._STEP
    one = masks(FIVE.secrets[3], 3, FIVE.dealings, FIVE.context, 2 * step + 3, Q)
    other = masks(FIVE.secrets[3], 3, FIVE.dealings, FIVE.context, step + 1, Q)
    assert (one[: step + 1] == other).all()
    key = mask_key(5, FIVE.context, 3)
    total = np.zeros(step + 9, dtype=np.uint64)
    module._add(total, key, plus=True)
    assert (total == Words(key)(step + 9)).all()


def test_no_key_serves_twice():
    s, S = 5, base(7)
    places = [context(b"s", 1, (0, 1, 2), 2), context(b"z", 1, (0, 1, 2), 2), context(b"s", 2, (0, 1, 2), 2),
              context(b"s", 1, (0, 1, 3), 2), context(b"s", 1, (0, 1, 2), 3)]  # fmt: skip
    pairs = [(0, 1), (0, 2), (1, 2)]
    keys = {pad_key(s, S, place, u, v) for place in places for u, v in pairs}
    own = {mask_key(s, place, u) for place in places for u in range(3)}
    assert len(keys) == len(own) == len(places) * 3
    assert not keys & own


def test_masks_look_uniform():
    words = masks(FIVE.secrets[3], 3, FIVE.dealings, FIVE.context, 40_000, 16)
    assert stats.chisquare(np.bincount(words.astype(int), minlength=16)).pvalue > 1e-6


def test_what_is_no_pad_is_refused():
    with pytest.raises(InvalidValue, match="between two parties"):
        pad_key(3, base(5), FIVE.context, 2, 2)
    with pytest.raises(InvalidValue, match="no point"):
        pad_key(3, bytes(32), FIVE.context, 2, 3)
    with pytest.raises(InvalidValue, match=r"make it with dealing\.context\(\)"):
        mask_key(3, b"short", 2)
    with pytest.raises(InvalidValue, match="power of two"):
        masks(FIVE.secrets[3], 3, FIVE.dealings, FIVE.context, 3, 12)


def test_masks_are_of_the_secrets_that_were_dealt():
    for secrets, me in ((FIVE.secrets[0], 3), (FIVE.secrets[3], 4), (dataclasses.replace(FIVE.secrets[3], b=5), 3)):
        with pytest.raises(InvalidValue, match="of another attempt"):
            masks(secrets, me, FIVE.dealings, FIVE.context, 3, Q)


def test_what_must_not_be_known_is_not_taken():
    a, inside, away = FIVE, (0, 2, 3, 5), (9,)
    b, s = {u: a.secrets[u].b for u in inside}, {u: a.secrets[u].s for u in away}
    total = np.zeros(2, dtype=np.uint64)

    def refused(match, included=inside, roster=a.roster, b=b, s=s):
        with pytest.raises(InvalidValue, match=match):
            unmask(total, included, roster, b, s, a.dealings, a.context, Q)

    refused("b is recovered of exactly", b=b | {9: 5})
    refused("b is recovered of exactly", b={0: b[0]})
    refused("s is recovered of exactly", s={})
    refused("s is recovered of exactly", s=s | {0: a.secrets[0].s})
    refused("not what it dealt", b=b | {0: a.secrets[0].s})
    refused("not what it dealt", s={9: a.secrets[9].b})
    refused("not one over a part of the roster", included=(0, 2, 3, 7))
    refused("not one over a part of the roster", roster=(0, 2, 3, 5))
    refused("between 1 and", b=b | {0: ORDER})
    assert total.tolist() == [0, 0]
    unmask(total, inside, a.roster, b, s, a.dealings, a.context, Q)
    assert total.tolist() == [0, 0]


@given(st.data())
def test_another_set_or_place_gives_noise(data):
    """A total of some with the masks of others, or of another attempt, is not the sum of anything."""
    a = FIVE
    values = {u: np.full(4, u, dtype=np.uint64) for u in a.roster}
    y = contributions(a, values)
    sets = st.sets(st.sampled_from(a.roster), min_size=1)
    one, other = data.draw(sets), data.draw(sets)
    total = sum((y[u] for u in one), np.zeros(4, dtype=np.uint64))
    found = removed(a, total, sorted(other))
    assert ((found == sum(one)).all()) == (one == other)


def test_memory_is_that_of_the_sum_and_of_one_piece():
    columns = 10**6
    tracemalloc.start()
    try:
        masks(FIVE.secrets[3], 3, FIVE.dealings, FIVE.context, columns, Q)
        assert tracemalloc.get_traced_memory()[1] < 8 * columns + 8 * 2**20
    finally:
        tracemalloc.stop()


def test_a_context_is_a_hash_of_all_of_it():
    assert FIVE.context != hashlib.sha256(b"").digest()
    assert len({context(b"s", 1, (0, 1), 2), context(b"s1", 1, (0, 1), 2), context(b"s", 1, (0, 1, 2), 2)}) == 3
