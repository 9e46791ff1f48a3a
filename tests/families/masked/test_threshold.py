"""Thresholds of one attempt: safe, fair, and certified against the coalitions that they are safe against, and no others.

Proof: docs/proofs/masked.md#one-attempt.
"""

import itertools
import math

import pytest

import netdp
from netdp import graphs
from netdp.errors import InvalidValue, Unsupported
from netdp.families.masked.protocol import MaskedSum
from netdp.families.masked.threshold import Threshold, fair_threshold, is_safe
from netdp.peers.ledger.losses import check_loss, seen

SMALL = [(n, c, t) for n in range(2, 8) for c in range(n) for t in range(1, n + 1)]


@pytest.mark.parametrize(("n", "c", "t"), SMALL)
def test_safe_thresholds_are_those_whose_quorums_share_somebody_honest(n, c, t):
    quorums = [set(members) for members in itertools.combinations(range(n), t)]
    colluders = set(range(c))
    if is_safe(n, c, t):
        assert all((one & other) - colluders for one in quorums for other in quorums)
    elif c < n - 1 and t > c:  # two quorums that have only colluders in common: two sets can be sealed
        worst = min(len(one & other) for one in quorums for other in quorums)
        assert worst <= c


@pytest.mark.parametrize(("n", "c", "t"), SMALL)
def test_both_secrets_of_nobody_are_known_just_where_it_is_safe(n, c, t):
    """Every honest holder gives one of its two shares of each party's secrets, colluders have both."""
    patterns = itertools.product((True, False), repeat=n - c)
    both = any(c + sum(given) >= t and c + (n - c) - sum(given) >= t for given in patterns)
    assert both == (not is_safe(n, c, t))


def test_fair_thresholds_exist_from_3c_plus_2a_plus_1_parties_on():
    for c, a in itertools.product(range(5), range(5)):
        for n in range(c + a + 1, 30):
            try:
                found = fair_threshold(n, c, a)
            except Unsupported:
                assert (n + c) // 2 + 1 > n - a  # not even all who are left could open it
                continue
            assert is_safe(n, c, found.value)
            assert found.fair == (n >= 3 * c + 2 * a + 1) == (found.value <= n - c - a)
            if found.fair:
                assert found.value == n - c - a
            else:
                assert not is_safe(n, c, found.value - 1)


def test_thresholds_of_the_plan():
    assert [fair_threshold(*case) for case in ((16, 1, 0), (16, 3, 2), (50, 10, 5), (5, 1, 0))] == [
        Threshold(15, True), Threshold(11, True), Threshold(35, True), Threshold(4, True)
    ]  # fmt: skip
    assert "it is not fair" in fair_threshold(5, 1, 1).words(5, 1, 1)
    assert "it is fair" in fair_threshold(16, 3, 2).words(16, 3, 2)
    with pytest.raises(InvalidValue, match="leave nobody"):
        fair_threshold(4, 3, 1)
    with pytest.raises(Unsupported, match="attempts=2"):
        fair_threshold(5, 3, 1)


def test_a_sum_is_certified_against_as_many_as_its_threshold_is_safe_against():
    p = MaskedSum(graphs.complete(16), sigma=2.0, absent=2, threshold=11)
    plain = p.replace(threshold=None)
    for c in range(1, 6):  # 2·11 > 16 + c
        assert netdp.account(p, colluders=c).worst_epsilon(1e-6) == netdp.account(plain, colluders=c).worst_epsilon(
            1e-6
        )
    with pytest.raises(Unsupported, match=r"at most 5 colluders, not against 6.*give a threshold of at least 12"):
        netdp.account(p, colluders=6)
    with pytest.raises(Unsupported, match="allow fewer colluders or absences"):
        netdp.account(p, colluders=13 - 1)
    with pytest.raises(Unsupported, match="certified against"):
        netdp.calibrate(p, 1.0, 1e-6, colluders=6)
    said = " ".join(netdp.account(p, colluders=3).assumptions)
    for words in (
        "any 11 of 16",
        "at least 14 contributions",
        "locks its ballot",
        "at most 5 members",
        "checked its shares",
    ):
        assert words in said


def test_what_a_threshold_does_not_go_with():
    p = MaskedSum(graphs.complete(8), sigma=2.0)
    with pytest.raises(InvalidValue, match="there is one attempt"):
        p.replace(threshold=6, attempts=2)
    with pytest.raises(InvalidValue, match="could never open"):
        p.replace(threshold=7, absent=2)
    with pytest.raises(Unsupported, match="averaging needs everybody"):
        p.replace(threshold=6, spread="average")
    with pytest.raises(Unsupported, match="mask graph"):
        p.replace(threshold=6, masks=4)
    with pytest.raises(InvalidValue, match="threshold"):
        p.replace(threshold=0)


def test_a_ledger_counts_the_fewest_who_can_be_in_the_sum():
    loss = {"kind": "masked-sum", "share": 10**6, "distance": 1000, "dimension": 1, "threshold": 11, "least": 13}
    roster = [f"p{u}" for u in range(15)]
    check_loss(loss, roster, "p0")
    plain = {name: loss[name] for name in ("kind", "share", "distance", "dimension")}
    for c in range(6):
        assert seen(loss, roster, "p0", c).shares == 13 - c
        assert seen(plain, roster, "p0", c).shares == 15 - c
    assert seen(loss, roster, "p0", "p3").shares == 12
    assert seen(loss, roster, "p0", "somebody").shares == 13
    assert math.isinf(float(seen(loss, roster, "p0", 7).epsilon(0.1)))  # 2·11 = 15 + 7: two sums might be opened
    for wrong in ({"threshold": 16}, {"least": 0}, {"threshold": True}, {"least": 13.0}):
        with pytest.raises(InvalidValue, match="of a masked-sum among 15"):
            check_loss(loss | wrong, roster, "p0")
