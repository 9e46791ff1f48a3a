"""The per-walk experiment: the paper's rule against a plain transcription of it, and the exact losses."""

import math

import numpy as np
import pytest

from netdp.errors import InvalidValue
from netdp.families.token.account.path import path_energy_pairwise
from netdp.families.token.path import PathSum
from netdp.papers.amplification.walks import rule_losses, sum_cycles, walk_losses
from netdp.privacy import gaussian_epsilon


def plain_rule(path, n, epsilon0):
    """The rule, pair by pair and cycle by cycle: [v][u]."""
    out = np.full((n, n), np.nan)
    for v in range(n):
        for u in range(n):
            if u == v:
                continue
            losses, last, sent_to = [], 0, path[1] if v == 0 else 0
            for i in range(1, len(path)):
                if path[i] != v:
                    continue
                m = i - last
                e = epsilon0 / math.sqrt(m)
                hits = (u == path[i - 1]) + (u == sent_to)
                losses.append(hits * e if hits else math.log(1 + (1 - (1 - 1 / n) ** m) * (math.exp(e) - 1)))
                last, sent_to = i, path[i + 1] if i + 1 < len(path) else None
            if not losses:
                out[v, u] = 0.0
                continue
            S, slack = sum(e * e for e in losses), len(losses) * 1e-7
            inside = math.e + math.sqrt(S) / slack
            inside = 1 / slack if inside > 1 / slack else inside
            drift = sum((math.exp(e) - 1) * e / (math.exp(e) + 1) for e in losses)
            out[v, u] = min(sum(losses), drift + math.sqrt(2 * S * math.log(inside)))
    return out


@pytest.mark.parametrize(("n", "steps", "epsilon0"), [(2, 5, 1.0), (5, 40, 0.1), (9, 500, 0.3), (6, 7, 0.1)])
def test_the_rule_is_the_rule(n, steps, epsilon0):
    path = np.random.default_rng(n).integers(n, size=steps, dtype=np.int32)
    path[0] = 0
    rows = np.array([row.copy() for row in rule_losses(path, n, sum_cycles(epsilon0, steps))])
    np.testing.assert_allclose(rows, plain_rule(path.tolist(), n, epsilon0), rtol=1e-9)


def test_summary_of_the_rule_and_of_the_exact_losses():
    n, runs = 30, 2
    w = walk_losses(n, 0.2, runs=runs, seed=5, sigma=3.0, delta=1e-5)
    rule, exact = [], []
    for child in np.random.SeedSequence(5).spawn(runs):
        path = np.random.default_rng(child).integers(n, size=100 * n, dtype=np.int32)
        path[0] = 0
        rule.append(plain_rule(path.tolist(), n, 0.2))
        exact.append(gaussian_epsilon(np.sqrt(path_energy_pairwise(PathSum(n, [path], 3.0))), 1e-5))
    np.testing.assert_allclose([w.mean, w.best, w.worst], [f(rule) for f in (np.nanmean, np.nanmin, np.nanmax)])
    np.testing.assert_allclose([w.exact_best, w.exact_worst], [np.nanmin(exact), np.nanmax(exact)], rtol=1e-9)
    assert np.nanmean(exact) <= w.exact_mean <= np.nanmean(exact) * 1.003


def test_the_published_figure():
    """n = 400, ε₀ = 0.1, T = 100n: mean .1109; best .091 and worst .528 are extremes of ten walks and vary more."""
    w = walk_losses(400, 0.1, runs=3)
    assert w.mean == pytest.approx(0.1109, rel=5e-3)
    assert w.best == pytest.approx(0.091, rel=0.1)
    assert w.worst == pytest.approx(0.528, rel=0.15)
    assert w.exact_mean < w.mean  # even with the path known to everybody


def test_default_noise_and_refusals():
    w = walk_losses(10, 0.1, runs=1)
    assert w.steps == 1000
    assert w.sigma == pytest.approx(math.sqrt(2 * math.log(1.25e8)) / 0.1)
    assert walk_losses(10, runs=1) == w
    assert walk_losses(10, runs=1, seed=1) != w
    with pytest.raises(InvalidValue, match="got n=1"):
        walk_losses(1)
    with pytest.raises(InvalidValue, match=r"delta must lie in \(0, 1\), got 0"):
        walk_losses(10, delta=0)
    with pytest.raises(InvalidValue, match="epsilon0"):
        walk_losses(10, -0.1)
