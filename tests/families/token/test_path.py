"""Tokens on public paths as a value: what is accepted, refused, and read back."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdp.errors import InvalidValue
from netdp.families.token.path import PathSum, first_visits


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 1}, "a token needs at least 2 users, got n=1"),
        ({"n": 2.0}, "n must be a whole number ≥ 1, got 2.0"),
        ({"paths": []}, "one path per token"),
        ({"paths": "012"}, "one path per token, got '012'"),
        ({"paths": 3}, "one path per token, got 3"),
        ({"paths": [0, 1, 2]}, r"got 0 in it; for one token write \[path\]"),
        ({"paths": [[0, 1], []]}, "path 1 must be a list of at least one user"),
        ({"paths": [[0.0, 1.0]]}, "path 0 must be a list of at least one user number"),
        ({"paths": [[[0, 1]]]}, r"got shape \(1, 2\)"),
        ({"paths": [[0, 1], [2, 4]]}, "path 1 names user 4 at step 1; the users are 0 to 3"),
        ({"paths": [[-1]]}, "names user -1 at step 0"),
        ({"sigma": 0.0}, "sigma must be a finite number > 0, got 0.0"),
        ({"sensitivity": float("nan")}, "sensitivity must be a finite number > 0, got nan"),
        ({"closing": -1.0}, "closing must be a finite number ≥ 0 .*got -1.0"),
        ({"contributions": 0}, "contributions must be a whole number ≥ 1, got 0"),
    ],
)
def test_refuses_nonsense(changes, message):
    with pytest.raises(InvalidValue, match=message):
        PathSum(**{"n": 4, "paths": [[0, 1, 2, 3]], "sigma": 1.0, **changes})


def test_paths_are_private_and_read_only():
    mine = np.array([0, 1, 2])
    p = PathSum(3, [mine], sigma=1.0)
    mine[0] = 2
    assert p.paths[0].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        p.paths[0][0] = 1
    with pytest.raises(AttributeError):
        p.sigma = 2.0


def test_round_trip_through_json():
    p = PathSum(4, [[0, 1, 2], [3]], sigma=2.0, closing=1.5, contributions=2, sensitivity=0.5)
    back = PathSum.from_dict(json.loads(json.dumps(p.to_dict())))
    assert back.to_dict() == p.to_dict()
    assert [path.tolist() for path in back.paths] == [[0, 1, 2], [3]]
    assert p.replace(sigma=3.0).sigma == 3.0
    with pytest.raises(InvalidValue, match="unknown fields"):
        PathSum.from_dict({**p.to_dict(), "colour": 1})
    with pytest.raises(InvalidValue, match="incomplete"):
        PathSum.from_dict({"protocol": "path-sum", "n": 3})


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.integers(1, 4))
def test_the_cap_keeps_the_first_visits(path, cap):
    seen = [0] * 5
    expected = []
    for u in path:
        seen[u] += 1
        expected.append(seen[u] <= cap)
    assert first_visits(np.array(path, dtype=np.int32), cap).tolist() == expected
    p = PathSum(5, [path, path], sigma=2.0, contributions=cap)
    assert p.given.tolist() == [2 * min(k, cap) for k in seen]
    assert p.local_mu == pytest.approx(np.sqrt(2 * min(max(seen), cap)) / 2)
