"""What openings, Laplace noise, unary encoding and Rényi statements are worth on tokens: tables of certified losses.

    python benchmarks/tokens_more.py            all
    python benchmarks/tokens_more.py a c        some

(a) known senders: the path told (before), openings (now), hidden senders; histograms and sums
(b) Gaussian against Laplace noise of the same deviation, on a ring and on walks
(c) k-ary response against unary encoding: γ and error at a certified ε, on a ring; and at a local ε₀
(d) descent on a ring against a walk: σ at a certified ε, and the loss by distance
(e) Rényi divergences of walks against local DP
"""

from __future__ import annotations

import sys

import numpy as np

import netdp
from measure import few, size
from netdp.families.token.account import walk
from netdp.families.token.account.ring import ring_energy
from netdp.mechanisms import RandomizedResponse, UnaryEncoding
from netdp.protocols import RingDescent, RingHistogram, RingSum, WalkDescent, WalkHistogram, WalkSum

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


CASES = {"a": known_senders, "b": laws, "c": encodings, "d": descents, "e": renyi}

if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        CASES[name]()
