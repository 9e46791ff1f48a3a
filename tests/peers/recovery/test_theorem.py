"""One sum over at least h parties, and nothing else: every coalition, set, threshold and pattern of reveals of up to five parties.

docs/proofs/peers.md#one-sum and #dealing. Two steps of linear algebra over a small field. *Which secrets are known*: the
coefficients of a dealer's polynomial and of its blind are unknown; f, and the shares that the coalition holds or sees, are known
combinations of them. *What is learned*: x + η, PRG(b) and pads are unknown; all contributions are known; a mask or a pad is
known if its secret is, and otherwise anything. The functions of the honest x + η that follow are computed, not counted. (Where
fewer than n advertised, the roster is one of fewer parties.)
"""

import itertools
import math
from functools import cache

import pytest

from netdp.peers.recovery import polynomials

PRIME = 11
Z = 3  # of f = r + z·p


def reduced(rows):
    """The row space, in its one echelon form."""
    rows, found, width = [list(row) for row in rows], [], len(rows[0]) if rows else 0
    for column in range(width):
        pivot = next((row for row in rows if row[column]), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        inverse = pow(pivot[column], -1, PRIME)
        pivot = [entry * inverse % PRIME for entry in pivot]

        def cleared(row, pivot=pivot, column=column):
            return [(entry - row[column] * other) % PRIME for entry, other in zip(row, pivot, strict=True)]

        rows, found = [cleared(row) for row in rows], [*(cleared(row) for row in found), pivot]
    return found


@cache
def is_known(t, holders):
    """Whether the secret follows from f and the shares of these holders."""
    rows = [[Z * (k == j) for k in range(t)] + [int(k == j) for k in range(t)] for j in range(t)]
    for holder in holders:
        # the share is a value of p; what blinds it, a value of r, follows from f
        rows.append([pow(holder + 1, k, PRIME) for k in range(t)] + [0] * t)
    space = reduced(rows)
    return len(reduced([*space, [1] + [0] * (2 * t - 1)])) == len(space)


@cache
def learned(roster, coalition, contributed, known_b, known_s):
    """A basis, in echelon form, of the functions of the honest x + η that the coalition can compute."""
    honest = [u for u in roster if u not in coalition]
    own = [u for u in honest if u not in known_b]
    secret = known_s | coalition
    pads = [pair for pair in itertools.combinations(roster, 2) if not secret.intersection(pair)]
    unknowns = [("b", u) for u in own] + pads + [("x", u) for u in honest]
    rows = []
    for u in contributed:
        row = {("x", u): 1, ("b", u): 1} | {pair: (1 if pair[0] == u else -1) for pair in pads if u in pair}
        rows.append([row.get(unknown, 0) for unknown in unknowns])
    hidden = len(own) + len(pads)
    return honest, [tuple(row[hidden:]) for row in reduced(rows) if not any(row[:hidden])]


def known(t, seen, parties):
    """Of which parties a secret is known, if these holders' shares of it were seen."""
    return frozenset(u for u in parties if is_known(t, tuple(sorted(seen.get(u, ())))))


def subsets(items, least=0):
    return itertools.chain.from_iterable(itertools.combinations(items, k) for k in range(least, len(items) + 1))


@pytest.mark.parametrize("n", range(1, 6))
def test_one_sum_over_at_least_h_parties_and_nothing_else(n):
    patterns = sums = 0
    roster = tuple(range(n))
    for coalition in map(frozenset, subsets(roster)):
        honest = [u for u in roster if u not in coalition]
        c = len(coalition)
        for t in range((n + c) // 2 + 1, n + 1):
            for U in map(frozenset, subsets(roster, least=1)):
                a = n - len(U)
                h, K = n - c - a, U - coalition
                if h < 1:
                    continue
                for revealing in subsets(honest):
                    holders = coalition | set(revealing)
                    for late in ((), tuple(u for u in honest if u not in U)):
                        contributed = tuple(sorted({*K, *late}))
                        b = known(t, {u: holders if u in U else coalition for u in honest}, honest)
                        s = known(t, {u: coalition if u in U else holders for u in honest}, honest)
                        assert not b & s
                        names, found = learned(roster, coalition, contributed, b, s)
                        enough = len(holders) >= t
                        expected = [tuple(int(u in K) for u in names)] if enough else []
                        assert found == expected
                        assert len(K) >= h
                        patterns += 1
                        sums += enough
    # nothing was left out: coalitions × thresholds × sets × who reveals × whether those outside the set contributed
    assert patterns == sum(
        math.comb(n, c) * (n - (n + c) // 2) * sum(math.comb(n, k) for k in range(c + 1, n + 1)) * 2 ** (n - c) * 2
        for c in range(n)
    )
    assert 0 < sums < patterns


@pytest.mark.parametrize(("n", "c"), [(2, 0), (3, 1), (4, 0), (4, 2), (5, 1), (5, 3)])
def test_at_2t_equal_to_n_plus_c_two_sets_give_two_sums(n, c):
    """Half of the honest parties reveal for one set and half for another: with a share less in the threshold both are complete."""
    roster, coalition = tuple(range(n)), frozenset(range(n - c, n))
    honest = [u for u in roster if u not in coalition]
    half = len(honest) // 2
    groups = (honest[:half], honest[half:])
    sets = (frozenset(roster), frozenset(roster[1:]))

    def both(t):
        b = {u: set(coalition) for u in honest}
        s = {u: set(coalition) for u in honest}
        for U, group in zip(sets, groups, strict=True):
            for u in honest:
                (b if u in U else s)[u].update(group)
        return known(t, b, honest), known(t, s, honest)

    t = (n + c) // 2
    assert 2 * t == n + c
    b, s = both(t)
    assert b & s  # both secrets of party 0
    _, found = learned(roster, coalition, tuple(honest), b, s)
    assert len(found) == 2
    assert [1] + [0] * (len(honest) - 1) in map(list, found)  # and its value
    b, s = both(t + 1)
    assert not b & s


@pytest.mark.parametrize("n", [3, 4])
def test_even_two_sealed_sets_never_give_both_secrets_of_a_party(n):
    """The second defence: were the ballots broken and every honest party told another set, b and s would still not meet."""
    roster = tuple(range(n))
    broken = 0
    for coalition in map(frozenset, subsets(roster)):
        honest = [u for u in roster if u not in coalition]
        c = len(coalition)
        for t in range((n + c + 1) // 2, n + 1):
            for U, V in itertools.combinations([frozenset(U) for U in subsets(roster, least=1)], 2):
                for told in itertools.product((U, V, None), repeat=len(honest)):
                    b = {u: set(coalition) for u in honest}
                    s = {u: set(coalition) for u in honest}
                    for holder, seal in zip(honest, told, strict=True):
                        if seal is not None:
                            for u in honest:
                                (b if u in seal else s)[u].add(holder)
                    met = known(t, b, honest) & known(t, s, honest)
                    if 2 * t > n + c:
                        assert not met
                    broken += bool(met)
    assert broken  # at 2t = n + c they do meet


def test_a_secret_is_known_from_t_shares_and_from_no_fewer():
    for t in range(1, 6):
        for holders in subsets(range(5)):
            assert is_known(t, holders) == (len(holders) >= t)
            shares = {u + 1: polynomials.value(tuple(range(3, 3 + t)), u + 1, PRIME) for u in holders}
            if len(holders) >= t:
                assert polynomials.constant(shares, PRIME) == 3


def test_one_blind_for_both_secrets_would_give_the_one_for_the_other():
    """f = r + z·p_s + z²·p_b, and a share of b that is shown with the value of r: t of them, and s is known. Ours: it is not."""
    t = 2

    def s_follows(rows):
        space = reduced(rows)
        return len(reduced([*space, [1] + [0] * (len(rows[0]) - 1)])) == len(space)

    def at(holder, block, blocks):
        powers = [pow(holder + 1, k, PRIME) for k in range(t)]
        return [entry for other in range(blocks) for entry in (powers if other == block else [0] * t)]

    def unit(k, factors):
        return [factor * (j == k) for factor in factors for j in range(t)]

    draft = [unit(k, (Z, Z * Z, 1)) for k in range(t)]  # p_s, p_b, r
    shown = [at(holder, 1, 3) for holder in range(t)]
    checked = [at(holder, 2, 3) for holder in range(t)]
    assert not s_follows(draft + shown)
    assert s_follows(draft + shown + checked)
    ours = [unit(k, (Z, 0, 1, 0)) for k in range(t)] + [unit(k, (0, Z, 0, 1)) for k in range(t)]  # p_s, p_b, r_s, r_b
    shown = [at(holder, 1, 4) for holder in range(t)]
    checked = [at(holder, 3, 4) for holder in range(t)]
    assert not s_follows(ours + shown + checked)
