"""What openings, Laplace noise, unary encoding and Rényi statements are worth on tokens: tables of certified losses.

    python benchmarks/tokens_more.py            all
    python benchmarks/tokens_more.py a c        some

(a) known senders: the path told (before), openings (now), hidden senders; histograms and sums
(b) Gaussian against Laplace noise of the same deviation, on a ring and on walks
(c) k-ary response against unary encoding: γ and error at a certified ε, on a ring; and at a local ε₀
(d) descent on a ring against a walk: σ at a certified ε, and the loss by distance
(e) Rényi divergences of walks against local DP
(f) rings in secret orders: certified over what the likelihood ratio attains, orders known and hidden
"""

from __future__ import annotations

import sys

import numpy as np

import netdp
from measure import few, size
from netdp.families.token.account import walk
from netdp.families.token.account.ring import ring_energy, ring_profile
from netdp.mechanisms import RandomizedResponse, UnaryEncoding
from netdp.protocols import RingDescent, RingHistogram, RingSum, SecretRingSum, WalkDescent, WalkHistogram, WalkSum

DELTA = 1e-6


def eps(curve: object) -> str:
    return f"{float(curve.epsilon(DELTA)):8.4f}"  # type: ignore[attr-defined]


def known_senders() -> None:
    print("known senders, ε at 1e-6: told | openings | hidden")
    for n, visits in size(((1000, 10), (200, 10)), quick=((20, 2),)):
        p = WalkHistogram(n, visits * n, domain=4, gamma=0.5)
        told = walk.histogram_profile(p.replace(contributions=p.steps))
        hidden = p.replace(sender="hidden", release="anonymous")
        print(
            f"  histogram n={n} T={visits}n",
            eps(told),
            eps(walk.histogram_profile(p)),
            eps(walk.histogram_profile(hidden)),
        )
    for n, visits, sigma in size(
        ((100, 100, 61.0), (1000, 100, 61.0), (1000, 10, 10.0), (1000, 10, 3.0)), quick=((20, 5, 10.0),)
    ):
        p = WalkSum(n, visits * n, sigma=sigma)
        bounds = {bound.__name__: bound for bound in reversed(walk.sum_bounds(p))}
        hidden = p.replace(sender="hidden", release="anonymous")
        found = eps(bounds["in_pieces"]()), eps(bounds["opened"]()), eps(walk.sum_profile(hidden))
        print(f"  sum n={n} T={visits}n σ={sigma:g}", *found)


def laws() -> None:
    print("Gaussian | Laplace of the same deviation, ε at 1e-6")
    cases = [
        RingSum(10, 3, sigma=2.0),
        RingSum(10, 3, sigma=2.0, noise="distributed"),
        WalkSum(100, 1000, sigma=3.0),
        WalkSum(100, 1000, sigma=3.0, sender="hidden"),
    ]
    for p in few(cases):
        found = [netdp.account(p.replace(law=law), [1]).worst_epsilon(DELTA) for law in ("gaussian", "laplace")]
        print(f"  {p}: {found[0]:.3f} | {found[1]:.3f}")
    sigma = [netdp.calibrate(RingSum(10, 3, sigma=2.0, law=law), 1.0, DELTA).sigma for law in ("gaussian", "laplace")]
    print(f"  σ of the ring of 10 at ε = 1: {sigma[0]:.2f} | {sigma[1]:.2f}")


def encodings() -> None:
    print("k-ary | unary: root mean squared error (γ) of a ring of 1,000 at ε = 1; at a local ε₀ = 1, 1,000 reports")
    for domain in few((4, 64, 1024, 16384)):
        row = []
        for response in ("k-ary", "unary"):
            p = netdp.calibrate(
                RingHistogram(size(1000, quick=20), 1, domain=domain, gamma=0.5, response=response), 1.0, DELTA
            )
            row.append(f"{netdp.expected_error(p).rmse:.4f} ({p.gamma:.3f})")
        local = [np.sqrt(kind(domain, 1.0).squared_error(1000)) for kind in (RandomizedResponse, UnaryEncoding)]
        print(f"  L = {domain:6d}: {row[0]} | {row[1]};  local {local[0]:.3f} | {local[1]:.3f}")


def descents() -> None:
    n = size(1000, quick=30)
    ring, free = (
        RingDescent(n, 10, sigma=1.0, step=0.1, clip=0.5),
        WalkDescent(n, 10 * n, 1.0, step=0.1, clip=0.5),
    )
    sigmas = {"ring": netdp.calibrate(ring, 1.0, DELTA).sigma}
    for sender in ("known", "hidden"):
        sigmas[f"walk, {sender}"] = netdp.calibrate(free.replace(sender=sender, release=None), 1.0, DELTA).sigma
    print(f"σ/Δ at ε = 1, {n:,} users, ten steps each:", {k: round(v, 3) for k, v in sigmas.items()})
    energy = ring_energy(ring, (n // 2,)) / ring.local_mu**2
    print(
        "  factor of local DP by hops to the observer:",
        {h: round(float(energy[n // 2 - h]), 4) for h in (1, 2, 10, 100, 499) if h < n // 2},
    )


def renyi() -> None:
    print("Rényi divergence of order 2, one observer: hidden | known senders | local DP")
    for n, visits, sigma in size(((1000, 100, 61.0), (1000, 10, 10.0)), quick=((20, 5, 10.0),)):
        found = []
        for sender in ("hidden", "known"):
            p = WalkSum(n, visits * n, sigma=sigma, sender=sender)
            found.append(float(netdp.account(p, [0], statement="renyi").rdp(2.0)[1]))
        print(f"  n={n} T={visits}n σ={sigma:g}: {found[0]:.2e} | {found[1]:.2e} | {visits / sigma**2:.2e}")


def secret_rings() -> None:
    delta, runs = 1e-3, size(20_000, quick=300)
    print(f"ε at δ = {delta:g}: certified (× attacked); orders known | hidden")
    for n, rounds, sigma in size(((20, 3, 3.0), (20, 10, 10.0), (60, 5, 5.0)), quick=((20, 3, 3.0),)):
        for colluders in (1, 2, 5, 10):
            said = []
            for sender in ("known", "hidden"):
                p = SecretRingSum(n, rounds, sigma=sigma, sender=sender)
                found, told = float(ring_profile(p, colluders).epsilon(delta)), attacked(p, colluders, runs, delta)
                said.append(f"{found:6.3f} (×{found / told:.2f})")
            print(f"  n={n} K={rounds} σ={sigma:g}, {colluders:2} colluders: {' | '.join(said)}")


def attacked(p: SecretRingSum, colluders: int, runs: int, delta: float) -> float:
    """ε of the likelihood ratio of the sums of all stretches, all others at the lower end, by simulation.

    Known orders: the two ends of a stretch next to an observer have a name. Hidden: none has.
    """
    draw, n, c = np.random.default_rng(0), p.n, colluders
    losses = np.zeros((2, runs))
    rows = np.arange(runs)
    for world in (0, 1):
        for _ in range(p.rounds):
            place = draw.random((runs, n)).argsort(
                axis=1
            )  # of every user; the last ones collude, the first is the target
            at, seen = place[:, 0], np.sort(place[:, n - c :], axis=1)
            ends = np.column_stack([np.full(runs, -1), seen, np.full(runs, n)])
            lengths, which = np.diff(ends, axis=1) - 1, (seen < at[:, None]).sum(axis=1)
            shift, noise = np.zeros((runs, c + 1)), p.sigma * np.sqrt(np.maximum(lengths, 1) / n)
            shift[rows, which] = world
            ratios = (shift + noise * draw.standard_normal((runs, c + 1)) - 0.5) / noise**2
            named = np.minimum(lengths, np.where(np.isin(np.arange(c + 1), (0, c)), 1, 2)) * (p.sender == "known")
            free = lengths - named
            with np.errstate(divide="ignore"):
                hidden = np.logaddexp.reduce(np.log(free / np.maximum(free.sum(axis=1), 1)[:, None]) + ratios, axis=1)
            edge = ((which > 0) & (at == ends[rows, which] + 1)) | ((which < c) & (at == ends[rows, which + 1] - 1))
            losses[world] += np.where(edge & (p.sender == "known"), ratios[rows, which], hidden)
    low, high = 0.0, 300.0
    for _ in range(50):
        eps = (low + high) / 2
        lost = max(np.maximum(-np.expm1(eps - one), 0).mean() for one in (losses[1], -losses[0]))
        low, high = (eps, high) if lost > delta else (low, eps)
    return low


CASES = {"a": known_senders, "b": laws, "c": encodings, "d": descents, "e": renyi, "f": secret_rings}

if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        CASES[name]()
