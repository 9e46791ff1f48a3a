"""One round of one user: the law of a hop, its independence, and what a bundle may carry."""

import hashlib

import numpy as np
import pytest
from scipy import stats

from netdp.errors import InvalidValue
from netdp.families.shuffle.reports import below, hop, packed, pick, unpacked
from netdp.peers.streams import Words

KEY = hashlib.sha256(b"a key").digest()
REPORTS = [hashlib.sha256(bytes([a, b])).digest() for a in range(40) for b in range(100)]


def where(found):
    """Report → where it went; −1 for those that stay."""
    out = {report: to for to, reports in found.bundles.items() for report in reports}
    return out | dict.fromkeys(found.stays, -1)


@pytest.mark.parametrize("lazy", [0.0, 0.25, 0.5])
def test_every_report_moves_with_the_stated_law(lazy):
    neighbours = (3, 8, 9, 11, 20)
    went = where(hop(REPORTS, KEY, 1, neighbours, lazy))
    assert set(went) == set(REPORTS)
    places = [-1, *neighbours] if lazy else list(neighbours)
    law = [lazy, *[(1 - lazy) / 5] * 5] if lazy else [0.2] * 5
    counts = [sum(to == place for to in went.values()) for place in places]
    assert stats.chisquare(counts, len(REPORTS) * np.array(law)).pvalue > 1e-6
    # a planted error in the law is seen
    wrong = np.array(law) * np.where(np.arange(len(law)) == 0, 1.5, 1.0)
    assert stats.chisquare(counts, len(REPORTS) * wrong / wrong.sum()).pvalue < 1e-6


def test_reports_in_one_hand_move_independently_and_so_do_rounds():
    neighbours = (0, 1, 2)
    first, second = (where(hop(REPORTS, KEY, r, neighbours)) for r in (1, 2))
    pairs = np.zeros((3, 3))
    for a, b in zip(REPORTS[::2], REPORTS[1::2], strict=True):
        pairs[first[a], first[b]] += 1
    rounds = np.zeros((3, 3))
    for report in REPORTS:
        rounds[first[report], second[report]] += 1
    for table in (pairs, rounds):
        assert stats.chi2_contingency(table).pvalue > 1e-6
    together = np.diag([500.0, 500.0, 500.0])  # what a hand that moves as one would give
    assert stats.chi2_contingency(together).pvalue < 1e-6


def test_a_hop_is_a_function_of_key_round_and_report_alone():
    small = REPORTS[:7]
    alone = {report: where(hop([report], KEY, 5, (1, 2, 3), 0.5))[report] for report in small}
    assert where(hop(reversed(small), KEY, 5, (1, 2, 3), 0.5)) == alone
    assert where(hop(small, KEY, 6, (1, 2, 3), 0.5)) != alone
    assert where(hop(small, bytes(32), 5, (1, 2, 3), 0.5)) != alone


def test_bundles_are_sets_in_the_order_of_their_bytes():
    found = hop([*REPORTS[:60], *REPORTS[:60]], KEY, 1, (1, 2))
    for reports in found.bundles.values():
        assert list(reports) == sorted(set(reports))
    assert sum(map(len, found.bundles.values())) == 60


def test_surplus_waits_and_is_chosen_at_random():
    few = REPORTS[:12]
    counts = dict.fromkeys(few, 0)
    for r in range(1, 600):
        found = hop(few, KEY, r, (1, 2), room=4)
        assert all(len(reports) <= 4 for reports in found.bundles.values())
        went = where(found)
        assert set(went) == set(few)
        assert found.waited == len(found.stays) >= 4
        free = hop(few, KEY, r, (1, 2))
        assert all(went[report] in (-1, where(free)[report]) for report in few)  # nobody is moved elsewhere
        for report in found.stays:
            counts[report] += 1
    assert stats.chisquare(list(counts.values())).pvalue > 1e-6
    assert hop(few, KEY, 1, (1, 2), room=12).waited == 0


def test_one_of_a_hand_is_picked_uniformly():
    few = REPORTS[:5]
    counts = dict.fromkeys(few, 0)
    for r in range(4000):
        counts[pick(few, hashlib.sha256(r.to_bytes(4, "big")).digest())] += 1
    assert stats.chisquare(list(counts.values())).pvalue > 1e-6
    assert pick([], KEY) is None
    assert pick([b"x"], KEY) == b"x"


class Given:
    """Words that are what a test says."""

    def __init__(self, *words):
        self.words = list(words)

    def __call__(self, size):
        return np.array([self.words.pop(0)], dtype=np.uint64)


def test_words_beyond_the_last_multiple_are_drawn_again():
    last = 2**64 - 1  # 2⁶⁴ = 3·… + 1: the last word alone would make 0 likelier
    assert below(Given(last, 7), 3) == 1
    assert below(Given(last - 1), 3) == 2
    assert below(Given(last), 4) == 3


def test_laziness_that_has_no_exact_words_is_refused():
    for lazy in (2.0**-12, 1.0, -0.1, float("nan")):
        with pytest.raises(InvalidValue, match="drawn exactly"):
            hop(REPORTS[:1], KEY, 1, (1,), lazy)
    with pytest.raises(InvalidValue, match="without neighbours"):
        hop(REPORTS[:1], KEY, 1, ())


def test_bundles_as_bytes():
    few = sorted(REPORTS[:3])
    assert unpacked(packed(few, 32), 32) == tuple(few)
    for slots in (3, 5):
        content = packed(few, 32, slots)
        assert len(content) == 2 + 32 * slots
        assert unpacked(content, 32, slots) == tuple(few)
    assert len(packed([], 32, 5)) == len(packed(few, 32, 5))
    assert unpacked(packed(few[::-1], 32), 32) is None  # in no order of the sender's choice
    assert unpacked(packed([few[0], few[0]], 32), 32) is None
    assert unpacked(b"\x04\x00" + bytes(96), 32, 3) is None
    assert unpacked(packed(few[:1], 32, 3)[:-1] + b"\1", 32, 3) is None  # nothing hides behind the reports
    for bad in ([*few, b"short"], few):
        with pytest.raises(InvalidValue, match=r"have 32 bytes|do not fit"):
            packed(bad, 32, 2)


def test_words_are_those_of_the_cipher():
    assert int(Words(bytes(32))(1)[0]) == 0x903DF1A0ADE0B876
