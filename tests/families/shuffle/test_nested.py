"""Whoever adds a colluder reads no smaller loss: docs/proofs/shuffle.md#curator-and-users."""

import itertools

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.families.shuffle.account import nested
from netdp.families.shuffle.account.faults import given
from netdp.families.shuffle.account.shuffling import curves, mixed_components
from netdp.families.shuffle.coalitions import coalition_curve, curator_curve, hide
from netdp.protocols.accounting import account

PATH = netdp.Shuffle(graphs.path(16), 24, 1.6953, laziness=0.3)
CALM = netdp.FaultyShuffle(graphs.path(20), 22, 1.336)
AWAY = CALM.replace(outages=0.1)
DELTAS = (1e-9, 1e-6, 1e-4, 3e-3, 0.02, 0.0838, 0.2)


def against(protocol, members, **options):
    if not members and protocol == PATH:  # refused: the walk has hardly mixed
        return curator_curve(PATH, mixed_components(PATH))
    return account(protocol, ["curator", *members], **options).curve


def own(protocol, members, pattern=None):
    """The bound of a coalition itself, whatever its parts have."""
    if isinstance(protocol, netdp.FaultyShuffle):
        return given(protocol, pattern, members)
    return coalition_curve(protocol, members, list(hide(protocol, members)))


def broken(small, large, n=16):
    """By how much of ε the smaller coalition is stated to learn more, at most."""
    over = 0.0
    for delta in DELTAS:
        low, high = (np.broadcast_to(np.asarray(curve.epsilon(delta)), (n,)) for curve in (small, large))
        here = ~np.isnan(high)
        assert not np.isnan(low[here]).any()
        over = max(over, float(((low - high)[here] / np.maximum(high[here], 1e-6)).max()))
    return over


def test_the_bounds_themselves_are_not_in_order():
    """Else the largest of the parts would be a rule without a purpose."""
    assert broken(own(PATH, (3,)), own(PATH, (3, 5))) > 1e-3
    assert broken(given(CALM, None, (13,)), given(CALM, None, (13, 17)), 20) > 0 or (
        broken(given(CALM, None), given(CALM, None, (13,)), 20) > 1e-4
    )


@pytest.mark.parametrize("members", [(3, 5), (3, 13, 14)])
@pytest.mark.parametrize("protocol", [PATH, CALM], ids=["shuffle", "calm"])
def test_nested_coalitions_are_in_order(protocol, members):
    of = {
        part: against(protocol, part)
        for size in range(len(members) + 1)
        for part in itertools.combinations(members, size)
    }
    for small, large in itertools.product(of, repeat=2):
        if set(small) < set(large):
            assert broken(of[small], of[large], protocol.n) <= 1e-9, (small, large)


def test_nested_coalitions_are_in_order_given_who_was_away():
    pattern = AWAY.pattern(seed=4)
    chain = [against(AWAY, part, transcript=pattern) for part in ((), (13,), (13, 17), (5, 13, 17))]
    for small, large in itertools.pairwise(chain):
        assert broken(small, large, 20) <= 1e-9


def test_the_largest_of_the_parts_is_stated_and_nothing_more():
    stated = against(PATH, (3, 5))
    parts = [against(PATH, ()), own(PATH, (3,)), own(PATH, (5,)), own(PATH, (3, 5))]
    for delta in DELTAS:
        largest = np.max([np.broadcast_to(np.asarray(part.epsilon(delta)), (16,)) for part in parts], axis=0)
        np.testing.assert_allclose(stated.epsilon(delta), largest, rtol=1e-12)
    assert np.flatnonzero(np.isnan(stated.epsilon(1e-6))).tolist() == [3, 5]


def test_many_colluders_have_their_own_bound(monkeypatch):
    members = (0, 3, 5, 9, 12)
    asked = []

    def bound(part):
        asked.append(part)
        return own(PATH, part)

    nested.no_less_than_parts(16, members, bound)
    assert asked == [members]
    asked.clear()
    nested.no_less_than_parts(nested.MOST_USERS + 1, members[:2], bound)
    assert asked == [members[:2]]
    asked.clear()
    nested.no_less_than_parts(16, members[1:3], bound)
    assert sorted(asked) == [(), (3,), (3, 5), (5,)]


def test_the_curator_alone_has_the_lower_of_two_bounds():
    protocol = netdp.Shuffle(graphs.path(14), 25, 0.3831, laziness=0.3)
    by_mixing = curves(protocol, mixed_components(protocol))
    other = coalition_curve(protocol, (), list(hide(protocol, ())))
    stated = account(protocol, "curator").curve
    gained = 0.0
    for delta in DELTAS:
        low, one, two = (np.broadcast_to(curve.epsilon(delta), (14,)) for curve in (stated, by_mixing, other))
        assert (low <= np.minimum(one, two) * (1 + 1e-12)).all()
        gained = max(gained, float((1 - low / np.maximum(one, 1e-12)).max()))
    for epsilon in (0.01, 0.1, 0.3, 0.37):  # and nothing below both where one of them is computed
        assert (stated.delta(epsilon) >= 0.5 * np.minimum(by_mixing.delta(epsilon), other.delta(epsilon))).all()
    assert gained > 0.01
