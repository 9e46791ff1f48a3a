"""Tokens seen: the transcript, the cut into segments, and the written-out view it must agree with."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdp.errors import InvalidValue
from netdp.families.token.path import PathSum
from netdp.families.token.ring import RingSum
from netdp.families.token.views import TokenTranscript, TokenView

_spec = importlib.util.spec_from_file_location("written_view", Path(__file__).with_name("written_view.py"))
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
written_view = _module.written_view


def test_transcript_counts_real_messages():
    t = TokenTranscript(3, [[0, 0, 1, 2, 2], [2, 1]])
    assert t.rounds == 5
    assert len(t) == 3  # 0→1, 1→2, 2→1: a token that stays is no message
    assert t.received_by([0]).shape == (0, 3)
    assert t.received_by([1, 2]).tolist() == [[1, 2, 1], [2, 0, 1], [3, 1, 2]]
    assert t == TokenTranscript(3, [np.array([0, 0, 1, 2, 2]), np.array([2, 1])])
    assert t != TokenTranscript(3, [[0, 0, 1, 2, 2]])
    with pytest.raises(InvalidValue, match="names user 3"):
        TokenTranscript(3, [[3]])


def test_known_closing_noise_is_no_cover():
    p = PathSum(3, [[0, 1, 2]], sigma=1.0, closing=9.0)
    assert TokenView.of(p, [2]).segments.variances.tolist() == [2.0, 0.0]  # 2 closes: nothing after its visit
    assert TokenView.of(p, [1]).segments.variances.tolist() == [1.0, 10.0]


def test_ring_segments_hold_each_other_user_once():
    view = TokenView.of(RingSum(5, rounds=3, sigma=2.0), [3])
    s = view.segments
    table = np.zeros((5, len(s.variances)), dtype=int)
    np.add.at(table, (s.users, s.places), 1)
    assert table.tolist() == [[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0], [0, 1, 1, 1]]
    assert s.variances.tolist() == [1.0, 1.0, 1.0, 1.0 + 0.0]


@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=9), min_size=1, max_size=2), st.integers(1, 3))
def test_readings_and_increments_tell_the_same(paths, cap):
    """The differences of the readings, one token after the other, are the increments of the segments."""
    view = TokenView.of(PathSum(5, paths, sigma=1.0, closing=2.0, contributions=cap), [1, 3])
    out, s = written_view(view), view.segments
    lengths = [sum(u in (1, 3) for u in path) + 1 for path in paths]
    starts = np.cumsum([0, *lengths[:-1]])
    difference = np.diff(out.data, axis=0, prepend=0.0)
    noise = np.diff(out.noise, axis=0, prepend=0.0)
    difference[starts], noise[starts] = out.data[starts], out.noise[starts]
    np.testing.assert_allclose((noise**2).sum(axis=1), s.variances)
    expected = np.zeros((5, len(s.variances)))
    np.add.at(expected, (s.users, s.places), 1.0)
    got = np.zeros_like(expected)
    np.add.at(got, out.owners, difference.T)
    np.testing.assert_array_equal(got, expected)
    covariance = noise @ noise.T
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)))
