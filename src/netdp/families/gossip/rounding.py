"""What rounding to a grid adds to the error of gossip: an estimate, from runs with and without it on the same noise.

The error in real numbers is known exactly (`netdp.families.gossip.error`). What a run on a grid is off by differs from that by a
difference D of the two; the mean squared error grows by E[2·error·D + D²], which is all that is estimated here, by some hundreds
of runs side by side. The seed is fixed, so the same question has the same answer. Where there is no room for that many runs
nothing is estimated, and only the bound is known (docs/proofs/gossip.md#gossip-error).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from netdp.families.gossip.protocol import Gossip, RandomizedGossip, gossip_steps
from netdp.numerics.arrays import BoolArray, FloatArray, IntArray

RUNS = 1024
"""Runs side by side, numbers of a vector included; fewer where they would take more than a moment."""

_WORK = 4e7  # numbers that are touched
_FEWEST = 64
_SMOOTH = 500
_LARGEST = 1 << 40  # the least common multiple of weights whose ties are rounded exactly


def added_error(protocol: Gossip | RandomizedGossip, values: FloatArray | None, edges: IntArray | None) -> float | None:
    """By how much the mean squared error grows, for one number: in squared grid steps; None if that takes too long.

    values  (n, d) numbers, of which some are followed; None: the worse of two kinds, those that are all rounded by half a step
            the same way, and those at the two ends of their interval on the two sides of the graph that mix slowest
    edges   of a randomized gossip whose exchanges are known; None: drawn
    """
    if isinstance(protocol, Gossip):
        work = 2.0 * protocol.rounds * (protocol.n + protocol.graph.m)
    else:
        work = 40.0 * protocol.steps
    runs = min(RUNS, int(_WORK / work))
    if runs < _FEWEST:
        return None
    if values is None:
        return _drawn(protocol, runs)
    return _between(protocol, runs, _shown(values, runs), edges)


@lru_cache(maxsize=256)
def _drawn(protocol: Gossip | RandomizedGossip, runs: int) -> float:
    spread = np.random.default_rng(1).uniform(-0.5, 0.5, (protocol.n, runs)) * protocol.sensitivity
    halves = (np.floor(spread / protocol.step) + 0.5) * protocol.step  # all of them are rounded by half a step, one way
    # on a coarse grid the rounds stop before two sides are level: neighbours' states differ by less than a step
    ends = np.where(_sides(protocol), 0.5, -0.5)[:, None] * protocol.sensitivity
    return max(_between(protocol, runs, values, None) for values in (halves, np.repeat(ends, runs, axis=1)))


def _sides(protocol: Gossip | RandomizedGossip) -> BoolArray:
    """Which parties are on one of the two sides between which values mix slowest, nearly: signs of smoothed coins."""
    graph = protocol.graph
    slow, coins = graph.laplacian() / (2.0 * float(graph.degrees.max())), np.random.default_rng(2)
    at = coins.standard_normal(graph.n)
    for _ in range(_SMOOTH):
        at = at - slow @ at
        at -= at.mean()
        at /= float(np.abs(at).max()) or 1.0
    return np.asarray(at > 0)


def _shown(values: FloatArray, runs: int) -> FloatArray:
    """(n, runs): every run with one of the numbers of the vectors."""
    return values[:, np.arange(runs) % values.shape[1]]


def _between(protocol: Gossip | RandomizedGossip, runs: int, values: FloatArray, edges: IntArray | None) -> float:
    rng = np.random.default_rng(0)
    exact = values / protocol.step
    noise = _whole(rng, protocol.start_variance, exact.shape)
    grid = np.stack([gossip_steps(protocol, row).astype(np.float64) for row in values]) + noise
    real = exact + noise
    if isinstance(protocol, Gossip):
        grid, real = _rounds(protocol, rng, grid, real)
    else:
        grid, real = _exchanges(protocol, rng, grid, real, edges)
    away, off = grid - real, real - exact.mean(axis=0)
    return float(np.mean((2 * off + away) * away))


def _whole(rng: np.random.Generator, variance: float, shape: tuple[int, ...]) -> FloatArray:
    return (
        np.rint(rng.standard_normal(shape) * math.sqrt(max(variance - 1 / 12, 0.0) or variance))
        if variance
        else np.zeros(shape)
    )


def _rounds(
    protocol: Gossip, rng: np.random.Generator, grid: FloatArray, real: FloatArray
) -> tuple[FloatArray, FloatArray]:
    W, rows = protocol.matrix, np.diff(protocol.graph.indptr)
    common = np.ones(protocol.n)
    owner = np.repeat(np.arange(protocol.n), rows)
    for u in range(protocol.n):
        multiple = math.lcm(*protocol.denominators[owner == u].tolist()) if protocol.n <= 1000 else 0
        common[u] = multiple if 0 < multiple < _LARGEST else 0
    whole = W.multiply(np.maximum(common, 1.0)[:, None]).tocsr()
    whole.data = np.where(np.repeat(common > 0, np.diff(whole.indptr)), np.rint(whole.data), whole.data)
    gamma, before = protocol.chebyshev, None
    for t in range(protocol.rounds):
        if t and protocol.fresh_variance:
            fresh = _whole(rng, protocol.fresh_variance, grid.shape)
            grid, real = grid + fresh, real + fresh
            before = None if before is None else (before[0] + fresh, before[1] + fresh)
        if gamma is not None:
            mixed = W @ grid, W @ real
            if before is not None:
                mixed = gamma * mixed[0] + (1 - gamma) * before[0], gamma * mixed[1] + (1 - gamma) * before[1]
            before, (grid, real) = (grid, real), (np.floor(mixed[0] + 0.5), mixed[1])
            continue
        times = np.maximum(common, 1.0)[:, None]
        grid, real = np.floor((2 * (whole @ grid) + times) / (2 * times)), W @ real
    return grid, real


def _exchanges(
    protocol: RandomizedGossip, rng: np.random.Generator, grid: FloatArray, real: FloatArray, edges: IntArray | None
) -> tuple[FloatArray, FloatArray]:
    runs = np.arange(grid.shape[1])
    sent = np.zeros(grid.shape, dtype=bool)
    ends = np.append(protocol.graph.edges(), [[-1, -1]], axis=0)
    cumulated = np.cumsum(protocol.edge_probabilities)
    for t in range(protocol.steps):
        if edges is None:
            pairs = ends[np.searchsorted(cumulated, rng.random(runs.size), side="right")]
        else:
            pairs = np.broadcast_to(edges[t], (runs.size, 2))
        awake = np.flatnonzero(pairs[:, 0] >= 0)
        u, w = np.sort(pairs[awake], axis=1).T
        for end in (u, w):
            if protocol.fresh_variance:
                fresh = _whole(rng, protocol.fresh_variance, (awake.size,)) * sent[end, awake]
                grid[end, awake] += fresh
                real[end, awake] += fresh
            sent[end, awake] = True
        whole = grid[u, awake] + grid[w, awake]
        grid[u, awake] = np.floor(whole / 2)
        grid[w, awake] = whole - grid[u, awake]
        mean = (real[u, awake] + real[w, awake]) / 2
        real[u, awake] = real[w, awake] = mean
    return grid, real
