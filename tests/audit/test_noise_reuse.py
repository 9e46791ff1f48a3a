"""No noise and no pad serves twice: streams whose contexts differ in one field, drawn as peers draw them, and planted reuse.

Proof: docs/proofs/audit.md#noise-tests.
"""

import numpy as np
import pytest

from netdp.audit.samples import no_reuse
from netdp.errors import InvalidValue
from netdp.families.gossip.diary import Chance
from netdp.families.token.peer_tokens import key_words
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.mechanisms.fine_gaussian import FineGaussian
from netdp.peers.identity import Identity
from netdp.peers.streams import Words, context, noise_words, pads_of

WORDS = 2000
SECRET, OTHER = bytes(range(32)), bytes(range(1, 33))
STUDY, DATA = b"s" * 32, b"12345678"
PLACE = (STUDY, 1, (0, 1, 2))

CONTEXTS = {
    "as it is": (SECRET, PLACE, DATA),
    "another study": (SECRET, (b"t" * 32, 1, (0, 1, 2)), DATA),
    "another attempt": (SECRET, (STUDY, 2, (0, 1, 2)), DATA),
    "a smaller roster": (SECRET, (STUDY, 1, (0, 1)), DATA),
    "another roster": (SECRET, (STUDY, 1, (0, 1, 3)), DATA),
    "an iteration": (SECRET, (*PLACE, 1), DATA),
    "another iteration": (SECRET, (*PLACE, 2), DATA),
    "the coins of an iteration": (SECRET, (*PLACE, 1, 1), DATA),
    "the coins of held-out rows": (SECRET, (*PLACE, 0, 2), DATA),
    "other data by one bit": (SECRET, PLACE, b"12345679"),
    "no data": (SECRET, PLACE, b""),
    "another party": (OTHER, PLACE, DATA),
}


def streams(draw):
    return np.stack([draw(noise_words(secret, context(*place), data)) for secret, place, data in CONTEXTS.values()])


def test_words_of_contexts_that_differ_in_one_field_have_nothing_in_common():
    assert no_reuse(streams(lambda words: words(WORDS))).ok


@pytest.mark.parametrize(
    ("sampler", "likeliest"), [(DiscreteGaussian(2500), 0.4 / 50), (FineGaussian(2**60), 0.4 / 2**30)]
)
def test_noise_of_contexts_that_differ_in_one_field_has_nothing_in_common(sampler, likeliest):
    assert no_reuse(streams(lambda words: sampler.sample((300,), words)), likeliest=likeliest).ok


def test_the_same_contribution_gives_the_same_bytes_again():
    """A restart, or an old backup: the same data in the same place are hidden by the same noise, to the last bit."""
    again = [streams(lambda words: DiscreteGaussian(9).sample((50,), words)).tobytes() for _ in range(2)]
    assert again[0] == again[1]


def test_noise_of_visits_and_of_sends_has_nothing_in_common():
    """Within one attempt: a walk's visits have a key and a place, an exchange's sends the diary up to here."""
    noise = DiscreteGaussian(2500)
    visits = [
        noise.sample((200,), key_words(SECRET, label, k, t))
        for label in (b"netdp walk noise 1", b"netdp walk closing 1")
        for k in range(3)
        for t in range(6)
    ]
    sends = [Chance(SECRET).fresh(bytes([i]) * 32, 2500, 200) for i in range(12)]
    assert no_reuse(np.stack(visits + sends), likeliest=0.4 / 50).ok


@pytest.fixture(scope="module")
def parties(tmp_path_factory):
    home = tmp_path_factory.mktemp("identities")
    return [Identity.create(home / f"p{u}", f"p{u}") for u in range(4)]


def test_pads_of_contexts_that_differ_in_one_field_have_nothing_in_common(parties):
    cards = {u: one.card for u, one in enumerate(parties)}
    everybody = (0, 1, 2, 3)
    places = [
        context(STUDY, 1, everybody), context(b"t" * 32, 1, everybody), context(STUDY, 2, everybody),
        context(STUDY, 1, (0, 1, 2)), context(STUDY, 1, everybody, 1), context(STUDY, 1, everybody, 2),
    ]  # fmt: skip
    rows = [pads_of(parties[0], cards, 0, [1, 2, 3], place, WORDS, 2**64) for place in places]
    rows += [pads_of(parties[0], cards, 0, [other], places[0], WORDS, 2**64) for other in (1, 2, 3)]
    rows += [pads_of(parties[1], cards, 1, [2, 3], places[0], WORDS, 2**64)]
    assert no_reuse(np.stack(rows)).ok
    both_ends = pads_of(
        parties[1], cards, 1, [0], places[0], WORDS, 2**64
    )  # the negative of what 0 adds, as it must be
    assert not no_reuse(np.stack([*rows, np.uint64(0) - both_ends])).ok


# ── reuse ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def rows():
    return streams(lambda words: words(WORDS))


@pytest.fixture(scope="module")
def noise():
    return streams(lambda words: DiscreteGaussian(2500).sample((128,), words))


def test_a_context_that_forgets_a_field_is_caught(rows):
    """The attempt is left out: two attempts draw from one stream."""
    forgetful = [noise_words(SECRET, context(STUDY, 1, (0, 1, 2)), DATA)(WORDS) for _attempt in (1, 2)]
    found = no_reuse(np.vstack([rows[1:], forgetful]))
    assert not found.ok
    assert "come more than once" in found.words


@pytest.mark.parametrize("shift", [1, 7, 500, 1999])
def test_a_stream_that_goes_on_from_another_place_is_caught(rows, shift):
    longer = noise_words(*_first())(WORDS + shift)
    assert not no_reuse(np.vstack([rows, longer[shift:]])).ok


def _first():
    secret, place, data = CONTEXTS["as it is"]
    return secret, context(*place), data


def test_a_single_word_that_comes_twice_is_caught(rows):
    changed = rows.copy()
    changed[3, 17] = rows[8, 1200]
    assert not no_reuse(changed).ok


def test_words_that_are_moved_by_one_number_or_turned_round_are_caught(rows):
    assert not no_reuse(np.vstack([rows, rows[4] + np.uint64(12345)])).ok
    assert not no_reuse(np.vstack([rows, ~rows[4]])).ok


def test_one_noise_around_two_values_is_caught(noise):
    assert no_reuse(noise, likeliest=0.4 / 50).ok
    found = no_reuse(np.vstack([noise, noise[2] + 31]), likeliest=0.4 / 50)
    assert not found.ok
    assert "one noise around two values" in found.words
    contributions = noise + 1000 * np.arange(len(noise))[:, None]  # values far apart, so that signs are no noise's
    assert no_reuse(contributions, likeliest=0.4 / 50, symmetric=False).ok
    assert not no_reuse(np.vstack([contributions, noise[2] - 77]), likeliest=0.4 / 50, symmetric=False).ok


def test_noise_that_is_used_again_in_part_shifted_negated_or_scaled_is_caught(noise):
    fresh = DiscreteGaussian(2500).sample((128,), Words(bytes(32)))
    sparse = np.where(np.arange(128) % 2 == 0, noise[5], fresh)
    for planted in (sparse, np.append(noise[5][3:], fresh[:3]), -noise[5], 2 * noise[5], noise[5] + fresh // 16):
        assert not no_reuse(np.vstack([noise, planted]), likeliest=0.4 / 50).ok
    itself = np.append(fresh[:64], fresh[:64])
    assert no_reuse(np.vstack([noise, fresh]), likeliest=0.4 / 50).ok
    assert not no_reuse(np.vstack([noise, itself]), likeliest=0.4 / 50, shifts=64).ok


def test_coarse_noise_is_judged_by_how_likely_its_numbers_are():
    """With one step of deviation numbers agree often by chance: rows that do are no reuse, and equal rows are."""
    drawn = streams(lambda words: DiscreteGaussian(1).sample((256,), words))
    assert no_reuse(drawn, likeliest=0.4).ok
    assert not no_reuse(np.vstack([drawn, drawn[1]]), likeliest=0.4).ok
    assert not no_reuse(np.vstack([drawn, drawn[1]])).ok


def test_sound_rows_are_seldom_called_wrong():
    """At a doubt of a fifth a sound source may be called wrong in a fifth of all runs, and is in fewer."""
    wrong = 0
    for seed in range(60):
        drawn = np.random.default_rng(seed).integers(-20, 21, (4, 40))
        wrong += not no_reuse(drawn, likeliest=1 / 41, shifts=1, doubt=0.2).ok
    assert wrong <= 25


def test_rows_that_cannot_be_judged_are_refused():
    for bad in (np.zeros((1, 20), dtype=int), np.zeros((3, 4), dtype=int), np.zeros((3, 20)), np.zeros(20, dtype=int)):
        with pytest.raises(InvalidValue, match="rows of eight whole numbers"):
            no_reuse(bad)
    with pytest.raises(InvalidValue, match="likeliest"):
        no_reuse(np.zeros((3, 20), dtype=int), likeliest=2.0)
