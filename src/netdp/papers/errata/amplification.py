"""Errata of Privacy Amplification by Decentralization (seed 000, and its later version where it says the same)."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from netdp.papers.errata.base import Demonstration, erratum
from netdp.papers.formulas import amplification as paper
from netdp.privacy.gaussian import gaussian_delta, gaussian_epsilon

PAPER = "000"

# noise that makes one contribution of Δ = 1 (0.1, 1e-8)-DP by the paper's calibration
SIGMA = math.sqrt(2 * math.log(1.25e8)) / 0.1


@erratum(
    "000-ring-release",
    PAPER,
    "Theorems 1 to 3, the view of a user",
    printed="What v sees are the tokens that pass v; the loss is that of these K (or N_v) visits.",
    true="The final token is the output, so v sees it as well. Algorithm 1 adds noise every n − 1 hops, and what was added "
    "after the last noise is then read without any: with n = 10 and K = 3 the last noise is user 8's, so user 9, who saw the token "
    "before user 10, subtracts what it saw from the output and has user 10's value. A closing noise mends it.",
)
def ring_release() -> Demonstration:
    n, rounds, a, noises = 10, 3, 0, []
    for hop in range(n * rounds):  # Algorithm 1, users 1 … n
        if a == 0:
            noises.append(hop)
            a = n - 2
        else:
            a -= 1
    rng = np.random.default_rng(0)
    values = rng.random(n * rounds)
    steps = values + np.isin(range(n * rounds), noises) * rng.normal(0, 100, n * rounds)
    token = steps.cumsum()
    read = token[-1] - token[-2]  # the output minus what user 9 handed on
    return Demonstration(
        (
            ("hops with noise", ", ".join(str(hop + 1) for hop in noises)),
            ("user 10's last value", f"{values[-1]:.6f}"),
            ("what user 9 reads off the output", f"{read:.6f}"),
        ),
        bool(abs(read - values[-1]) < 1e-9),
    )


@erratum(
    "000-ring-noises",
    PAPER,
    "Theorem 1, utility",
    printed="The answer has standard deviation √⌊Kn/(n−1)⌋·σ.",
    true="Algorithm 1 adds its first noise at once and then one every n − 1 hops: ⌈Kn/(n−1)⌉ noises.",
)
def ring_noises() -> Demonstration:
    lines, shown = [], True
    for n, rounds in ((10, 3), (5, 1), (4, 9)):
        noises = len(range(0, n * rounds, n - 1))
        printed = n * rounds // (n - 1)
        lines.append((f"n = {n}, K = {rounds}", f"printed {printed} noises, added {noises}"))
        shown &= noises >= printed
    return Demonstration(tuple(lines), shown and lines[0][1] == "printed 3 noises, added 4")


@erratum(
    "000-remark1",
    PAPER,
    "Remark 1",
    printed="Noise σ/√n at every hop and σ at the first add up to a standard deviation of √(⌊Kn/(n−1)⌋ + 1)·σ.",
    true="They add up to √(K + 1 − 1/n)·σ.",
)
def remark1() -> Demonstration:
    n, rounds = 10, 9
    variance = 1 + (n * rounds - 1) / n
    printed = n * rounds // (n - 1) + 1
    return Demonstration(
        (("variance, n = 10, K = 9, in σ²", f"{variance:.1f}"), ("printed", str(printed))), variance < printed
    )


@erratum(
    "000-gamma-inverted",
    PAPER,
    "Theorem 2, γ",
    printed="γ = L/(exp(12ε√(ln(1/δ)/n)) + L − 1).",
    true="The cited shuffling bound is ε = 12ε₀√(ln(1/δ)/n), so the exponent should be ε₀ = (ε/12)√(n/ln(1/δ)). As printed, "
    "γ protects too little for n < 144 ln(1/δ), and above it costs accuracy for nothing.",
)
def gamma_inverted() -> Demonstration:
    epsilon, delta, lines = 0.1, 1e-6, []
    for n in (1001, 1989, 100_000):
        printed = 12 * epsilon * math.sqrt(math.log(1 / delta) / n)
        allowed = epsilon / 12 * math.sqrt(n / math.log(1 / delta))
        lines.append((f"n = {n}", f"ε₀ as printed {printed:.4f}, as the bound allows {allowed:.4f}"))
    ratio = 144 * math.log(1 / delta) / 1001
    lines.append(("too much by a factor, n = 1001", f"{ratio:.2f}"))
    return Demonstration(tuple(lines), ratio > 1.9)


@erratum(
    "000-debias",
    PAPER,
    "Algorithm 2, last loop",
    printed="The count is corrected by τ[i] ← (τ[i] − γ/L)/(1 − γ) and is unbiased (Theorem 2).",
    true="γn(K + 1)/L random responses fall on every value in expectation: τ[i] ← (τ[i] − γn(K+1)/L)/(1 − γ) is unbiased.",
)
def debias() -> Demonstration:
    n, rounds, gamma, domain = 50, 3, 0.4, 4
    true = np.array([10.0, 20.0, 50.0, 70.0])
    token = (1 - gamma) * true + gamma * n * (rounds + 1) / domain  # its expectation
    printed = (token - gamma / domain) / (1 - gamma)
    right = (token - gamma * n * (rounds + 1) / domain) / (1 - gamma)
    return Demonstration(
        (
            ("true counts", ", ".join(f"{v:.1f}" for v in true)),
            ("as printed", ", ".join(f"{v:.1f}" for v in printed)),
            ("corrected", ", ".join(f"{v:.1f}" for v in right)),
        ),
        bool(np.allclose(right, true) and not np.allclose(printed, true, rtol=0.1)),
    )


@erratum(
    "000-crossing",
    PAPER,
    "Sections 4.1 and 5.1",
    printed="Theorem 3 improves upon local DP as soon as n > 100.",
    true="With ε = 0.1, T = 100n and δ′ = δ̂ = 10⁻⁶ the printed formulas cross at n = 37. (The 'local DP' of that comparison is "
    "itself composed loosely: the same hundred Gaussian contributions have ε = 0.67, below both curves for every n.)",
)
def crossing() -> Demonstration:
    delta, n = 1e-6, 2
    while paper.theorem3_2021(n, 100 * n, 0.1, delta, delta) >= paper.local_analogue(n, 100 * n, 0.1, delta, delta):
        n += 1
    exact = float(gaussian_epsilon(10 / SIGMA, delta))
    return Demonstration(
        (("Theorem 3 is below its local analogue from n", str(n)), ("local DP, exact", f"{exact:.2f}")), n == 37
    )


@erratum(
    "000-visits",
    PAPER,
    "Theorem 3, N_v",
    printed="N_v = T/n + √(1.5·T·ln(1/δ̂)) bounds the number of visits, and the loss falls as n^{−1/4}.",
    true="The deviation of a binomial of mean T/n is of order √(T/n), not √T. With the printed N_v and T/n fixed the bound "
    "does not fall with n at all: it tends to 11.9.",
)
def visits() -> Demonstration:
    values = [(n, paper.theorem3_2021(n, 100 * n, 0.1, 1e-6, 1e-6)) for n in (10**2, 10**4, 10**8, 10**12)]
    quantile = stats.binom.isf(1e-6, 100_000, 1e-3)
    return Demonstration(
        (
            *((f"ε′ for n = {n:.0e}", f"{value:.2f}") for n, value in values),
            (
                "visits at n = 1000, T = 100n, with probability 1 − 10⁻⁶",
                f"{quantile:.0f} (N_v is {paper.visits_2021(1000, 100_000, 1e-6):.0f})",
            ),
        ),
        values[-1][1] > 11.8,
    )


@erratum(
    "000-short-cycles",
    PAPER,
    "Appendix C, Equation 6",
    printed="There are at least twice as many short cycles as expected, N·p, with probability at most e^{−Np/2}; δ does not "
    "count it.",
    true="Chernoff's bound is e^{−(2 ln 2 − 1)Np} = e^{−0.386Np}; for N = 100,000 and p = 0.002 the probability is over a "
    "million times the printed bound. And with its own bound the event has probability 5.7·10⁻⁶ at n = 1000, T = 100n, which "
    "exceeds δ̂ = 10⁻⁶.",
)
def short_cycles() -> Demonstration:
    chance = float(stats.binom.sf(2 * 200 - 1, 100_000, 0.002))
    mean = paper.visits_2021(1000, 100_000, 1e-6) * paper.short_cycle_share(1000)
    return Demonstration(
        (
            ("P(X ≥ 400), X binomial with mean 200", f"{chance:.1e}"),
            ("Equation 6", f"{math.exp(-100):.1e}"),
            ("left out of δ at n = 1000", f"{math.exp(-mean / 2):.1e}"),
        ),
        chance > 1e6 * math.exp(-100),
    )


@erratum(
    "000-groups",
    PAPER,
    "Theorem 3, proof",
    printed="If one contribution is (ε, δ)-DP, k contributions to one sum have δ_{A,k}(ε) ≤ kδ.",
    true="k contributions move the sum k times as far at the same noise.",
)
def groups() -> Demonstration:
    one, two = (float(gaussian_delta(k / SIGMA, 0.1)) for k in (1, 2))
    return Demonstration(
        (("δ(0.1) of one contribution", f"{one:.1e}"), ("of two", f"{two:.1e}"), ("printed", "2.0e-08")), two > 2e-8
    )


@erratum(
    "000-known-ends",
    PAPER,
    "Appendix C, long cycles",
    printed="A cycle of at least √n/2 steps loses at most √2·ε/n^{1/4}, although v knows its first and last contributor.",
    true="If u is first and last, two contributions of it are known to be there, and this is too likely to be ignored: n = 36, "
    "three contributions, ε = 0.1, δ₀ = 10⁻⁸.",
)
def known_ends() -> Demonstration:
    n, m, epsilon = 36, 3, math.sqrt(2) * 0.1 / 36**0.25
    scale = SIGMA * math.sqrt(m)
    x = np.linspace(-12, 12, 20_001) * scale
    total = 0.0
    # how many of the two known places are u's: +1/2 against −1/2 each, a lower bound on the true δ
    for ends in range(3):
        inner = stats.binom.pmf([0, 1], 1, 1 / n)
        sides = [sum(w * stats.norm.pdf(x, s * (k + ends) / 2, scale) for k, w in enumerate(inner)) for s in (1, -1)]
        excess = np.maximum(sides[0] - math.exp(epsilon) * sides[1], 0).sum() * (x[1] - x[0])
        total += stats.binom.pmf(ends, 2, 1 / n) * excess
    return Demonstration(
        (("δ of the cycle, at least", f"{total:.1e}"), ("the proof has", f"{m / n * 1e-8:.1e}")),
        total > 5 * m / n * 1e-8,
    )


@erratum(
    "000-laplace",
    PAPER,
    "Section 3.1 and Theorem 3, Perturb",
    printed="Perturb may add Laplace noise; a cycle of l contributions then loses ε/√l.",
    true="A sum of l Laplace noises is not purely ε/√l-DP: far out its density still falls like one Laplace's, so a shift "
    "loses up to ε; ε/√l holds only at a positive δ.",
)
def laplace() -> Demonstration:
    epsilon, per_unit = 0.1, 25  # grid points per Δ = 1
    grid = np.arange(-(2**17), 2**17) / per_unit
    one = np.exp(-abs(grid) * epsilon) * epsilon / 2 / per_unit
    four = np.fft.fftshift(np.fft.irfft(np.fft.rfft(np.fft.ifftshift(one)) ** 4, len(grid)))
    delta = np.maximum(four - math.exp(epsilon / 2) * np.roll(four, per_unit), 0).sum()
    return Demonstration(
        (("δ(ε/2) of four Laplace noises, ε = 0.1", f"{delta:.1e}"), ("printed", "0")), bool(delta > 1e-5)
    )


@erratum(
    "000-gaussian",
    PAPER,
    "Sections 3 to 5, calibration",
    printed="Gaussian noise of σ = √(2 ln(1.25/δ))Δ/ε is (ε, δ)-DP.",
    true="Proved for ε < 1 only. At ε = 10 the same noise has more, at ε ≤ 1 it has less: the exact curve needs no such formula.",
)
def gaussian() -> Demonstration:
    real = {e: float(gaussian_epsilon(e / math.sqrt(2 * math.log(1.25e6)), 1e-6)) for e in (0.1, 1.0, 10.0)}
    return Demonstration(
        tuple((f"σ for ε = {e:g}, δ = 1e-6 really has", f"{value:.3f}") for e, value in real.items()), real[10.0] > 10.2
    )


@erratum(
    "000-realised-walk",
    PAPER,
    "Section 5.2, Figures 2b to 2d",
    printed="The privacy loss of each pair 'based on the characteristics of the actual walk'.",
    true="The rule looks at the walk that happened and calls its contributors secret at the same time. Whether u is the first "
    "or last of a cycle is itself random, and a pair's guarantee must average over it; conversely the walk, once looked at, "
    "hides nothing. Below, the same pair on thirty walks of the same law: its loss by the rule varies by a factor of two, so it "
    "is no property of the protocol.",
)
def realised_walk() -> Demonstration:
    from netdp.papers.amplification.walks import rule_losses, sum_cycles

    n, found = 20, []
    for seed in range(30):
        path = np.random.default_rng(seed).integers(n, size=100 * n, dtype=np.int32)
        path[0] = 0
        rows = rule_losses(path, n, sum_cycles(0.1, 100 * n))
        found.append(float(next(row[1] for v, row in enumerate(rows) if v == 2)))
    return Demonstration(
        (("least loss of user 1 to user 2 over 30 walks", f"{min(found):.2f}"), ("largest", f"{max(found):.2f}")),
        max(found) > 1.5 * min(found),
    )
