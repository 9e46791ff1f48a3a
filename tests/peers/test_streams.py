"""Pads cancel, never repeat and are uniform; noise repeats itself for the same data only; all of it is pinned."""

import dataclasses
import hashlib
import hmac

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from netdp.errors import InvalidValue
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.peers.identity import Card, Identity
from netdp.peers.streams import Words, context, noise_words, pad, pads_of

KEY = bytes(range(32))
PLACE = context(b"study", 1, (0, 1, 2))


def digest(words):
    return hashlib.sha256(np.ascontiguousarray(words, dtype="<u8").tobytes()).hexdigest()[:16]


def eight(number):
    return number.to_bytes(8, "big")


def test_words_are_those_of_the_published_cipher():
    # RFC 8439, appendix A.1, test vectors 1 and 2: key of zeros, nonce of zeros, blocks 0 and 1
    first = bytes.fromhex("76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7")
    second = bytes.fromhex("9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed")
    assert Words(bytes(32))(16).astype("<u8").tobytes()[:32] == first
    assert Words(bytes(32))(16).astype("<u8").tobytes()[64:96] == second


def test_known_answers():
    """If one of these changes, peers of two versions no longer agree: raise the number in the labels instead."""
    assert digest(Words(KEY)(1000)) == "5b163deb403514cc"
    assert b"".join([eight(5), b"study", *map(eight, (1, 3, 0, 1, 2, 0))]) == PLACE
    assert digest(pad(KEY, PLACE, 1000, 2**32)) == "237751eb83b48b1c"
    assert digest(pad(KEY, PLACE, 1000, 2**64)) == "0100468f1070800a"
    assert digest(noise_words(KEY, PLACE, b"x")(1000)) == "20867908de1988c3"


def test_keys_are_derived_as_written_down():
    """HKDF (RFC 5869, no salt, one block) and HMAC by hand."""
    extracted = hmac.digest(bytes(32), KEY, "sha256")
    expanded = hmac.digest(extracted, b"netdp pad 1" + PLACE + b"\x01", "sha256")
    assert (pad(KEY, PLACE, 9, 2**64) == Words(expanded)(9)).all()
    key = hmac.digest(KEY, b"netdp noise 1" + eight(len(PLACE)) + PLACE + hashlib.sha256(b"x").digest(), "sha256")
    assert (noise_words(KEY, PLACE, b"x")(9) == Words(key)(9)).all()


def test_a_stream_goes_on_where_it_stopped():
    whole, parts = Words(KEY)(70_000), Words(KEY)
    assert (np.concatenate([parts(size) for size in (0, 1, 7, 32_768, 32_769, 4_455)]) == whole).all()
    sizes, parts = np.random.default_rng(0).integers(0, 400, 300).tolist(), Words(KEY)
    # words are computed ahead, and none is lost or said twice
    assert (np.concatenate([parts(size) for size in sizes]) == Words(KEY)(sum(sizes))).all()


def test_a_million_words():
    words = Words(KEY)(10**6)
    assert words.dtype == np.uint64
    assert len(np.unique(words)) == 10**6


@pytest.mark.parametrize("modulus", [2, 2**4, 2**10])
def test_pads_are_uniform_modulo_q(modulus):
    counts = np.bincount(pad(KEY, PLACE, 400_000, modulus).astype(np.int64), minlength=modulus)
    assert len(counts) == modulus
    assert 0.001 < stats.chisquare(counts).pvalue < 0.999


def test_high_bits_of_large_moduli_are_uniform():
    for modulus in (2**32, 2**64):
        top = (pad(KEY, PLACE, 400_000, modulus) >> np.uint64(modulus.bit_length() - 1 - 8)).astype(np.int64)
        assert 0.001 < stats.chisquare(np.bincount(top, minlength=256)).pvalue < 0.999


CONTEXTS = st.tuples(
    st.binary(max_size=3),
    st.integers(0, 3),
    st.lists(st.integers(0, 3), unique=True).map(sorted).map(tuple),
    st.lists(st.integers(0, 3), max_size=3).map(tuple),
)


@given(CONTEXTS, CONTEXTS)
def test_contexts_are_the_same_only_if_every_field_is(a, b):
    assert (context(*a[:3], *a[3]) == context(*b[:3], *b[3])) == (a == b)


@pytest.fixture(scope="module")
def parties(tmp_path_factory):
    home = tmp_path_factory.mktemp("parties")
    return [Identity.create(home / str(u), f"p{u}") for u in range(4)]


@pytest.fixture(scope="module")
def cards(parties):
    return {u: party.card for u, party in enumerate(parties)}


def masks(parties, cards, place=PLACE, modulus=2**32, columns=50, members=(0, 1, 2, 3)):
    rows = [pads_of(parties[u], cards, u, [v for v in members if v != u], place, columns, modulus) for u in members]
    return np.array(rows)


@pytest.mark.parametrize("modulus", [2, 2**20, 2**32, 2**64])
def test_the_pads_of_a_roster_add_up_to_zero(parties, cards, modulus):
    rows = masks(parties, cards, modulus=modulus)
    assert (rows.sum(axis=0, dtype=np.uint64) & np.uint64(modulus - 1) == 0).all()
    assert int(rows.max()) < modulus
    assert rows.any(axis=1).all()


def test_both_ends_of_a_pair_have_the_same_pad_and_opposite_signs(parties, cards):
    ahead, behind = (pads_of(parties[u], cards, u, [1 - u], PLACE, 9, 2**32) for u in (0, 1))
    assert (ahead == (np.uint64(2**32) - behind) % np.uint64(2**32)).all()


def test_every_field_of_the_context_changes_every_pad(parties, cards):
    base = (b"study", 1, (0, 1, 2, 3), 0)
    others = [(b"studz", 1, (0, 1, 2, 3), 0), (b"study", 2, (0, 1, 2, 3), 0), (b"study", 1, (0, 1, 2), 0),
              (b"study", 1, (0, 1, 2, 3), 1), (b"study", 1, (0, 1, 2, 3)), (b"study", 1, (0, 1, 2, 3), 0, 0)]  # fmt: skip
    first = masks(parties, cards, context(*base), 2**64)
    for other in others:
        assert (masks(parties, cards, context(*other), 2**64) != first).all(), other


def test_the_two_numbers_of_a_pair_are_bound(parties, cards):
    """The same two parties at other places of a list share other pads."""
    moved = {0: cards[0], 2: cards[1]}
    at_first = pads_of(parties[0], cards, 0, [1], PLACE, 20, 2**64)
    assert (pads_of(parties[0], moved, 0, [2], PLACE, 20, 2**64) != at_first).all()


def test_a_third_party_cannot_compute_the_pads_of_a_pair(parties, cards):
    assert parties[0].shared(cards[1]) == parties[1].shared(cards[0])
    assert parties[2].shared(cards[0]) != parties[1].shared(cards[0]) != parties[2].shared(cards[1])


def test_noise_repeats_itself_for_the_same_data_only():
    base = noise_words(KEY, PLACE, b"x")(20)
    assert (noise_words(KEY, PLACE, b"x")(20) == base).all()
    for other in ((bytes(32), PLACE, b"x"), (KEY, context(b"study", 2, (0, 1, 2)), b"x"), (KEY, PLACE, b"y")):
        assert (noise_words(*other)(20) != base).all()
    assert (pad(KEY, PLACE, 20, 2**64) != base).all()


def test_noise_words_feed_the_exact_sampler():
    law = DiscreteGaussian(100)
    first, again = (law.sample((20_000,), noise_words(KEY, PLACE, b"x")) for _ in range(2))
    assert (first == again).all()
    assert first.std() == pytest.approx(10, rel=0.03)


@pytest.mark.parametrize("modulus", [0, 1, 3, 10**6, 2**65, 2.0])
def test_moduli_that_are_no_power_of_two_are_refused(modulus):
    with pytest.raises(InvalidValue, match="modulus"):
        pad(KEY, PLACE, 3, modulus)


def test_refusals_name_the_value(parties, cards):
    with pytest.raises(InvalidValue, match=r"in order, got \(1, 0\)"):
        context(b"", 1, (1, 0))
    with pytest.raises(InvalidValue, match=r"once, in order, got \(0, 0\)"):
        context(b"", 1, (0, 0))
    with pytest.raises(InvalidValue, match="attempt must be a whole number ≥ 0, got -1"):
        context(b"", -1, (0, 1))
    with pytest.raises(InvalidValue, match=r"one pad with every other party, got \[1, 1\]"):
        pads_of(parties[0], cards, 0, [1, 1], PLACE, 3, 2)
    with pytest.raises(InvalidValue, match="no card of party 9"):
        pads_of(parties[0], cards, 0, [9], PLACE, 3, 2)
    with pytest.raises(InvalidValue, match="party 1 is not p0"):
        pads_of(parties[0], cards, 1, [0], PLACE, 3, 2)
    with pytest.raises(InvalidValue, match="32 bytes, got 3"):
        Words(b"abc")
    with pytest.raises(InvalidValue, match="2³² words"):
        Words(KEY)(2**32 + 1)


def test_a_card_that_shares_no_secret_is_refused(parties, cards):
    empty = dataclasses.replace(cards[1], agreement=bytes(32))
    assert isinstance(empty, Card)
    with pytest.raises(InvalidValue, match="shares no secret"):
        empty.check()
