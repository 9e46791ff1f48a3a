"""Sealed reports and envelopes: they open where they should, nowhere else, and never after a change."""

import itertools

import pytest

from netdp.errors import InvalidValue
from netdp.peers.streams import ENVELOPE, SEAL, Envelopes, seal, unseal

STUDY, ROSTER = b"s" * 32, (0, 1, 2)


def test_a_report_opens_at_the_curator_only(parties):
    curator, other = parties[0], parties[1]
    report = seal(curator.card, b"12345678", STUDY, 1, ROSTER)
    assert len(report) == 8 + SEAL
    assert unseal(curator, report, STUDY, 1, ROSTER) == b"12345678"
    assert unseal(other, report, STUDY, 1, ROSTER) is None


@pytest.mark.parametrize("where", [(b"t" * 32, 1, ROSTER), (STUDY, 2, ROSTER), (STUDY, 1, (0, 1))])
def test_a_report_opens_in_no_other_study_attempt_or_roster(parties, where):
    assert unseal(parties[0], seal(parties[0].card, b"1", STUDY, 1, ROSTER), *where) is None


def test_every_changed_bit_and_every_cut_is_found(parties):
    report = seal(parties[0].card, b"1234", STUDY, 1, ROSTER)
    for bit in range(8 * len(report)):
        changed = bytearray(report)
        changed[bit // 8] ^= 1 << bit % 8
        assert unseal(parties[0], bytes(changed), STUDY, 1, ROSTER) is None
    for cut in range(len(report)):
        assert unseal(parties[0], report[:cut], STUDY, 1, ROSTER) is None
    assert unseal(parties[0], report + b"\0", STUDY, 1, ROSTER) is None


def test_reports_of_equal_content_share_nothing(parties):
    made = [seal(parties[0].card, b"1234", STUDY, 1, ROSTER) for _ in range(50)]
    assert {len(one) for one in made} == {4 + SEAL}
    # neither the key in front nor any later stretch of eight bytes comes twice
    stretches = [one[at : at + 8] for one in made for at in range(0, len(one) - 8, 8)]
    assert len(set(stretches)) == len(stretches)


def envelopes(parties, me, other, where=(STUDY, 1, ROSTER)):
    return Envelopes(parties[me], me, parties[other].card, other, *where)


def test_an_envelope_opens_for_its_receiver_in_its_round(parties):
    sent = envelopes(parties, 0, 1).enclose(3, b"content")
    assert len(sent) == 7 + ENVELOPE
    assert envelopes(parties, 1, 0).disclose(3, sent) == b"content"
    assert envelopes(parties, 0, 1).enclose(3, b"content") == sent  # after a restart: the same bytes
    assert envelopes(parties, 1, 0).disclose(4, sent) is None
    assert envelopes(parties, 2, 0).disclose(3, sent) is None
    assert envelopes(parties, 0, 1).disclose(3, sent) is None  # it cannot be sent back to where it came from
    assert envelopes(parties, 1, 0, (STUDY, 2, ROSTER)).disclose(3, sent) is None
    assert envelopes(parties, 1, 0, (b"t" * 32, 1, ROSTER)).disclose(3, sent) is None


def test_an_envelope_that_was_changed_does_not_open(parties):
    sent, reader = envelopes(parties, 0, 1).enclose(1, b"content"), envelopes(parties, 1, 0)
    for at in range(len(sent)):
        assert reader.disclose(1, sent[:at] + bytes([sent[at] ^ 1]) + sent[at + 1 :]) is None
        assert reader.disclose(1, sent[:at]) is None


def test_no_key_and_no_nonce_serves_two_envelopes(parties):
    seen = set()
    for round_, content in itertools.product(range(1, 4), (b"aaaa", b"bbbb")):
        for a, b in itertools.permutations(range(3), 2):
            pair = envelopes(parties, a, b)
            key, _ = pair._key(round_, a, b)
            seen.add((key, pair.enclose(round_, content)[:12]))
    assert len(seen) == 3 * 2 * 6


def test_envelopes_are_for_two_members(parties):
    with pytest.raises(InvalidValue, match="two users of the roster"):
        Envelopes(parties[0], 0, parties[3].card, 3, STUDY, 1, ROSTER)
