"""*Privacy Amplification by Decentralization* as printed (Cyffers and Bellet): tokens on rings and random walks, and learning.

**These are not guarantees**: the `…ERRATA` say where a proof fails; tests/papers/formulas/test_amplification.py shows every
one of them in numbers.

**Sums and histograms.** Two versions: "2021", the preprint (Theorems 1 and 2 on the ring, Theorem 3 on the complete graph),
and "2022", AISTATS, which replaces Theorem 3. All formulas start from one contribution that is (ε, δ₀)-DP by itself and end
with advanced composition,

    A(ε, k, δ′) = √(2k ln(1/δ′))·ε + kε(e^ε − 1).

How a total δ is split (the papers leave it open; `account(…, method="published")` does this):
ring Kδ₀ = δ′ = δ/2; walk 2021 (T/n)δ₀ = δ′ = δ̂ = δ/3; walk 2022 (N_v + T/n)δ₀ = δ′ = δ̂ = δ/3. σ then gives
ε = √(2 ln(1.25/δ₀))·Δ/σ, the papers' calibration of the Gaussian mechanism. For T = 100n, ε = 0.1 Theorem 3 of 2021 is often
quoted as 13.3 (n = 100) and 12.4 (n = 1000): that is δ′ = δ̂ = 10⁻⁶ *each*; with δ₀ = 10⁻⁸ the total is 3·10⁻⁶. Thirds of a
total of 10⁻⁶ give 14.0 and 13.0. c colluders count as one user that is drawn c times as often: n/c replaces n.

**Learning by a walking token** (AISTATS 2022): network DP of SGD by amplification by iteration. For L-Lipschitz, convex,
β-smooth losses, η ≤ 2/β and noise σ per coordinate, a contribution of u that is followed by t more noisy steps before v looks
costs 2αL²/(σ²t) at order α (Feldman, Mironov, Talwar, Thakurta 2018; two gradients differ by up to 2L). t is geometric with
mean n, so E[1/t] is about ln n/n; if σ ≥ L√(2α(α−1)) the Rényi divergence is convex up to a factor 2:

    (α, 4N_u·αL² ln n/(σ²n))-network RDP for N_u contributions of u.

If v sees from whom it gets the token and to whom it goes, some contributions are *spotted*: at most
s = 2N_u/n + √((6N_u/n) ln(1/δ̃)); they are composed apart, each (ε₀, δ₀)-DP.

Also here: how the authors' public code calibrates σ for the three ways to learn that the papers compare, re-implemented from
what it does: T = 20 000 steps, n = 2000 users, δ = 10⁻⁶, L = 0.4 gives

    ε = 10: central 0.697, network 1.23, local 5.87        ε = 1: central 6.97, network 10.98, local 46.9
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.families.token.ring import RingHistogram, RingSum
from netdp.families.token.walk import WalkDescent, WalkHistogram, WalkSum
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import positive, probability
from netdp.papers.formulas.random_walks import on_a_graph
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.profile import ProfileCurve
from netdp.privacy.renyi import RenyiCurve
from netdp.protocols.table import published

TOKENS_VERSIONS = ("2021", "2022")

TOKENS_REFERENCES = (
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. HAL hal-03100005v1, 2021 (version 2021).",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS 2022 (version 2022).",
)

GAUSSIAN_ERRATUM = (
    "ε = √(2 ln(1.25/δ₀))Δ/σ is proved for ε < 1 only. At ε = 10, δ₀ = 1e-6 the same σ really has ε = 10.25; at ε < 1 it "
    "wastes noise (ε = 1: really 0.78)."
)

LAPLACE_ERRATUM = (
    "Perturb may be the Laplace mechanism, one contribution being purely ε-DP. The sum of l of them is not purely ε/√l-DP, as the "
    "long cycles of Theorem 3 have it: a shift loses up to ε in any sum of Laplace noises, and ε/√l only at a δ: ε = 0.1, l = 16: "
    "δ(ε/4) = 0.00058."
)

RING_ERRATA = (
    "Theorems 1 and 2: the view stops at v's last visit. When the token is released, what was added after that visit "
    "may carry no noise at all: n = 10, K = 3 puts the last noise on user 7, so user 8 reads user 9's last value exactly.",
    "Theorem 1 counts ⌊Kn/(n−1)⌋ noises; Algorithm 1 adds ⌈Kn/(n−1)⌉ (n = 10, K = 3: 4, not 3), so the printed standard "
    "deviation is too small.",
    "Remark 1: K rounds of σ/√n and σ at the first hop add up to √(K + 1 − 1/n)·σ, not √(⌊Kn/(n−1)⌋ + 1)·σ.",
    "Theorem 1 is about a single observer; two colluders may leave no noise between them.",
)

RING_HISTOGRAM_ERRATA = (
    *RING_ERRATA[:1],
    "Theorem 2's γ inverts the shuffling bound: ε = 12ε₀√(ln(1/δ)/n) gives ε₀ = (ε/12)√(n/ln(1/δ)), printed is "
    "12ε√(ln(1/δ)/n). For n < 144 ln(1/δ) the printed γ protects too little (n = 1001, δ = 1e-6: twice the ε₀ allowed), "
    "beyond it wastes noise. Read backwards, a smaller δ would mean a smaller ε.",
    "Theorem 2 needs ε₀ < 1/2 for the shuffling bound and states ε < 1/2 instead; the bound needs n ≥ 1000, printed is 100.",
    "Theorem 2: v's own report is no cover against v: n − 1 reports are shuffled, not n; before v's first visit there "
    "are only γn random elements and the reports of the users before v, fewer than n.",
    "Algorithm 2 subtracts γ/L; the unbiased estimate is (τ_i − γn(K+1)/L)/(1 − γ).",
)

AS_PRINTED = "the formula of the paper, as printed; it is not a bound"

RING_HISTOGRAM_FORMULA = (
    "the formula of the paper with one correction: ε of a round is 12ε₀√(ln(1/δ)/n), the shuffling bound that the proof "
    "of Theorem 2 cites and its γ turns upside down; it is not a bound"
)

WALK_ERRATA = {
    "2021": (
        "Theorem 3: N_v = T/n + √(1.5·T ln(1/δ̂)) grows like √T, not √(T/n): with T/n fixed the bound does not fall "
        "with n (T = 100n, ε = 0.1: 13.3 at n = 100, 11.9 at n = 10¹²), where local DP with the same noise has ε = 0.67. "
        "The proof's own inequality would give √(T ln(2/δ̂)/2).",
        "Theorem 3: by its own (6) there are more than 2N_vγ_n short cycles with probability up to e^{−N_vγ_n/2}, which "
        "δ leaves out (n = 1000, T = 100n, δ̂ = 1e-6: 5.7e-6); and (6) fails: Chernoff gives e^{−0.386·N_vγ_n}.",
        "Theorem 3: long cycles are said to lose √2ε/n^{1/4} although v knows who was first and last. If both are u, "
        "the loss is that of two contributions, and this is too likely to ignore: n = 36, ε = 0.1, δ₀ = 1e-8, three "
        "contributions: δ = 5.6e-9 where the proof has 8.3e-10.",
        "Theorem 3: δ_{A,k}(ε) ≤ kδ is false: k contributions have k times the shift. Gaussian noise for (0.1, 1e-8) and "
        "k = 2: δ = 1.1e-5.",
        "Theorem 3: the sum after v's last visit is read off the released token; this cycle is not counted.",
    ),
    "2022": (
        "N_v = T/n + √(3(T/n) ln(1/δ̂)) rests on a Chernoff bound for deviations of at most the mean: T/n ≥ 3 ln(1/δ̂). "
        "Below it fails: n = T = 2000, δ̂ = 1e-6: more visits than N_v with probability 1.0e-5.",
        "The sum after v's last visit is read off the released token; this cycle is not counted among the N_v + T/n.",
        "It assumes that v knows neither the sender nor the next holder of the token; direct connections show both.",
        "The authors' code for Figure 1(a) still uses N_v of the first version, with δ′ = δ̂ = 1e-7 each.",
    ),
}

# δ at which a published curve is tabulated: every power of ten, and more of them where people ask.
DELTAS = tuple(
    sorted({10.0**-k for k in range(1, 13)} | {m * 10.0**-k for k in (5, 6, 7, 8) for m in (2, 5)}, reverse=True)
)


# ---- ingredients


def local_epsilon(sigma: float, delta0: float, sensitivity: float = 1.0) -> float:
    """√(2 ln(1.25/δ₀))·Δ/σ: one Gaussian contribution, as the papers calibrate it.

    >>> round(local_epsilon(61.06, 1e-8), 4)
    0.1
    """
    probability("delta0", delta0)
    positive("sigma", sigma)
    return math.sqrt(2.0 * math.log(1.25 / delta0)) * positive("sensitivity", sensitivity) / sigma


def laplace_epsilon(sigma: float, sensitivity: float = 1.0) -> float:
    """√2·Δ/σ: one Laplace contribution of standard deviation σ, purely.

    >>> round(laplace_epsilon(10.0), 4)
    0.1414
    """
    return math.sqrt(2.0) * positive("sensitivity", sensitivity) / positive("sigma", sigma)


def local_sigma(epsilon: float, delta0: float, sensitivity: float = 1.0) -> float:
    """The inverse of `local_epsilon` in σ.

    >>> round(local_sigma(0.1, 1e-8), 2)
    61.06
    """
    return local_epsilon(positive("epsilon", epsilon), delta0, sensitivity)


def advanced_composition(epsilon: float, times: float, delta: float) -> float:
    """√(2k ln(1/δ′))·ε + kε(e^ε − 1); `times` need not be whole, as in the papers.

    >>> round(advanced_composition(0.1, 100, 1e-6), 3)
    6.308
    """
    probability("delta", delta)
    if epsilon > 700:
        return math.inf
    return math.sqrt(2.0 * times * math.log(1.0 / delta)) * epsilon + times * epsilon * math.expm1(epsilon)


# ---- the ring


def ring_sum_deviation(n: int, rounds: int, sigma: float) -> float:
    """Theorem 1: √⌊Kn/(n−1)⌋·σ, as printed; the algorithm adds ⌈Kn/(n−1)⌉ noises.

    >>> ring_sum_deviation(10, 3, 1.0) ** 2, int((RingSum(10, 3, 1.0).hop_noise > 0).sum())
    (2.9999999999999996, 4)
    """
    return math.sqrt(rounds * n // (n - 1)) * sigma


def remark1_deviation(n: int, rounds: int, sigma: float) -> float:
    """Remark 1, distributed noise: √(⌊Kn/(n−1)⌋ + 1)·σ, as printed."""
    return math.sqrt(rounds * n // (n - 1) + 1) * sigma


def theorem1(epsilon: float, rounds: int, delta_prime: float) -> float:
    """Theorems 1 and 2: ε′ = A(ε, K, δ′), at Kδ₀ + δ′.

    >>> round(theorem1(0.1, 3, 1e-6), 4)
    0.942
    """
    return advanced_composition(positive("epsilon", epsilon), rounds, delta_prime)


def theorem2_local(epsilon: float, delta: float, n: int, *, corrected: bool = False) -> float:
    """The local ε₀ that Theorem 2 asks for: 12ε√(ln(1/δ)/n) as printed, (ε/12)√(n/ln(1/δ)) corrected.

    >>> [round(theorem2_local(0.1, 1e-6, 1001, corrected=c), 4) for c in (False, True)]
    [0.141, 0.0709]
    """
    probability("delta", delta)
    root = math.sqrt(math.log(1.0 / delta) / n)
    return positive("epsilon", epsilon) / (12.0 * root) if corrected else 12.0 * epsilon * root


def theorem2_shuffled(epsilon0: float, delta: float, n: int, *, corrected: bool = False) -> float:
    """The inverse of `theorem2_local`: ε of one round from the ε₀ of a report. Corrected: 12ε₀√(ln(1/δ)/n)."""
    return theorem2_local(epsilon0, delta, n, corrected=not corrected)


def theorem2_gamma(epsilon: float, delta: float, n: int, domain: int, *, corrected: bool = False) -> float:
    """γ = L/(e^{ε₀} + L − 1) with Theorem 2's ε₀, as printed or corrected.

    >>> [round(theorem2_gamma(0.1, 1e-6, 10_000, 5, corrected=c), 4) for c in (False, True)]
    [0.991, 0.9521]
    """
    return domain / (math.exp(theorem2_local(epsilon, delta, n, corrected=corrected)) + domain - 1)


def debias(counts: npt.ArrayLike, n: int, rounds: int, gamma: float, *, corrected: bool = False) -> FloatArray:
    """Algorithm 2's last line: (τ_i − γ/L)/(1 − γ) as printed, (τ_i − γn(K+1)/L)/(1 − γ) corrected.

    >>> debias([30.0, 20.0], n=20, rounds=1, gamma=0.5, corrected=True).tolist()
    [40.0, 20.0]
    """
    tau = np.asarray(counts, dtype=np.float64)
    reports = n * (rounds + 1) if corrected else 1
    estimate: FloatArray = (tau - gamma * reports / len(tau)) / (1.0 - gamma)
    return estimate


# ---- the walk, first version


def visits_2021(n: float, steps: int, delta_hat: float) -> float:
    """N_v = T/n + √(1.5·T ln(1/δ̂))."""
    probability("delta_hat", delta_hat)
    return steps / n + math.sqrt(1.5 * steps * math.log(1.0 / delta_hat))


def short_cycle_share(n: float) -> float:
    """γ_n = 1 − (1 − 1/n)^{√n/2}: how likely a cycle is shorter than √n/2 steps."""
    return -math.expm1(0.5 * math.sqrt(n) * math.log1p(-1.0 / n)) if n > 1 else 1.0


def theorem3_2021(
    n: float, steps: int, epsilon: float, delta_prime: float, delta_hat: float | None, *, visits: float | None = None
) -> float:
    """Theorem 3 of the preprint: ε′ at (T/n)δ₀ + δ′ + δ̂. `visits` replaces N_v (section 5.1: fixed contributions, T/n).

    >>> [round(theorem3_2021(n, 100 * n, 0.1, 1e-6, 1e-6), 1) for n in (100, 1000)]
    [13.3, 12.4]
    >>> [round(theorem3_2021(n, 100 * n, 0.1, 1e-6 / 3, 1e-6 / 3), 1) for n in (100, 1000)]
    [14.0, 13.0]
    """
    positive("epsilon", epsilon)
    probability("delta_prime", delta_prime)
    if epsilon > 700:
        return math.inf
    count = _visits(visits_2021, n, steps, delta_hat, visits)
    log, share = math.log(1.0 / delta_prime), short_cycle_share(n)
    long = math.sqrt(2.0) * epsilon / math.pow(n, 0.25)
    return (
        math.sqrt(2.0 * count * log) * long
        + 2.0 * math.sqrt(2.0 * count * share * log) * epsilon
        + count * long * math.expm1(long)
        + 4.0 * count * share * epsilon * math.expm1(epsilon)
    )


def local_analogue(
    n: float, steps: int, epsilon: float, delta_prime: float, delta_hat: float | None, *, visits: float | None = None
) -> float:
    """Section 5.1: local DP of N_v contributions by advanced composition, with N_v of the first version; or `visits` of them.

    >>> round(local_analogue(100, 10_000, 0.1, 1e-6, 1e-6), 2)
    18.23
    >>> round(local_analogue(100, 10_000, 0.1, 1e-6, None, visits=100), 2)
    6.31
    """
    return advanced_composition(epsilon, _visits(visits_2021, n, steps, delta_hat, visits), delta_prime)


# ---- the walk, AISTATS version


def visits_2022(n: float, steps: int, delta_hat: float) -> float:
    """N_v = T/n + √(3(T/n) ln(1/δ̂))."""
    probability("delta_hat", delta_hat)
    return steps / n + math.sqrt(3.0 * steps / n * math.log(1.0 / delta_hat))


def theorem3_2022(
    n: float, steps: int, epsilon: float, delta_prime: float, delta_hat: float | None, *, visits: float | None = None
) -> float:
    """Sums: A(3ε/√n, N_v + T/n, δ′), for ε < 1, at (N_v + T/n)δ₀ + δ′ + δ̂.

    >>> [round(theorem3_2022(n, 100 * n, 0.1, 1e-6 / 3, 1e-6 / 3), 3) for n in (100, 1000)]
    [2.921, 0.871]
    """
    if not positive("epsilon", epsilon) < 1:
        raise Unsupported(f"the theorem of 2022 is stated for ε < 1, got {epsilon:.4g}; add noise")
    count = _visits(visits_2022, n, steps, delta_hat, visits)
    return advanced_composition(3.0 * epsilon / math.sqrt(n), count + steps / n, delta_prime)


def histogram_2022(
    n: float, steps: int, epsilon: float, delta0: float, delta_prime: float, delta_hat: float | None
) -> float:
    """Histograms: A(21√(ln(4/δ₀))·ε/√n, N_v + T/n, δ′), for ε < 1 and n ≥ 14² ln(4/δ₀).

    >>> round(histogram_2022(10_000, 10_000, 0.1, 1e-8, 1e-7, 1e-7), 3)
    1.67
    """
    if not positive("epsilon", epsilon) < 1:
        raise Unsupported(f"the theorem of 2022 is stated for ε < 1, got {epsilon:.4g}; choose a larger gamma")
    probability("delta0", delta0)
    least = 196.0 * math.log(4.0 / delta0)
    if n < least:
        raise Unsupported(f"the histogram theorem needs n ≥ 14² ln(4/δ₀) = {least:.0f} users per colluder, got {n:g}")
    count = visits_2022(n, steps, delta_hat) if delta_hat is not None else steps / n
    return advanced_composition(
        21.0 * math.sqrt(math.log(4.0 / delta0)) * epsilon / math.sqrt(n), count + steps / n, delta_prime
    )


# ---- as guarantees


@published.register
def _ring_sum(protocol: RingSum, observers: tuple[int, ...]) -> Guarantee:
    _alone(observers)

    if protocol.law == "laplace":
        pure = laplace_epsilon(protocol.sigma, protocol.sensitivity)
        return published_table(
            lambda delta: theorem1(pure, protocol.rounds, delta),
            protocol.n,
            observers,
            RING_ERRATA,
            ("δ₀ = 0, δ′ = δ",),
        )

    def epsilon(delta: float) -> float:
        one = local_epsilon(protocol.sigma, delta / (2 * protocol.rounds), protocol.sensitivity)
        return theorem1(one, protocol.rounds, delta / 2)

    return published_table(epsilon, protocol.n, observers, (*RING_ERRATA, GAUSSIAN_ERRATUM), ("Kδ₀ = δ′ = δ/2",))


@published.register
def _ring_histogram(protocol: RingHistogram, observers: tuple[int, ...]) -> Guarantee:
    """Theorem 2 with one correction, and so it says: ε of a round by the shuffling bound that the proof cites.

    As printed γ inverts that bound, and ε would grow with δ: no curve could be drawn.
    """
    _alone(observers)
    _has_loss(protocol)
    if protocol.n <= 1000:
        raise Unsupported(f"Theorem 2 is stated for n > 1000, got n = {protocol.n}; ask for method='certified'")
    if protocol.epsilon0 >= 0.5:
        raise Unsupported(
            f"the shuffling bound of Theorem 2 needs ε₀ < 1/2, got {protocol.epsilon0:.4g}; choose a larger gamma or ask "
            "for method='certified'"
        )

    def epsilon(delta: float) -> float:
        share = delta / (2 * protocol.rounds)
        one = theorem2_shuffled(protocol.epsilon0, share, protocol.n, corrected=True)
        if one >= 0.5 or share >= 0.01:
            raise Unsupported(f"Theorem 2 is stated for ε < 1/2 and δ < 1/100 per round, got {one:.4g} and {share:.2g}")
        return theorem1(one, protocol.rounds, delta / 2)

    return published_table(
        epsilon, protocol.n, observers, RING_HISTOGRAM_ERRATA, ("Kδ₀ = δ′ = δ/2",), formula=RING_HISTOGRAM_FORMULA
    )


@published.register
def _walk_sum(protocol: WalkSum, observers: tuple[int, ...], *, version: str | None = None) -> Guarantee:
    """`version`: "2022" where the sender is hidden, else "2021", the one whose view shows the sender."""
    version = ("2022" if protocol.sender == "hidden" else "2021") if version is None else _version(version)
    uniform_draws(protocol)
    if protocol.tokens > 1:
        raise Unsupported(f"the papers analyse one token, got tokens={protocol.tokens}; ask for method='certified'")
    if version == "2022":
        _hidden(protocol.sender)
    n, steps = protocol.n / len(observers), protocol.steps
    if protocol.law == "laplace":
        if version == "2022":
            raise Unsupported("the theorem of 2022 is stated for Gaussian noise; version='2021' leaves the noise open")
        pure, errata = laplace_epsilon(protocol.sigma, protocol.sensitivity), (*WALK_ERRATA[version], LAPLACE_ERRATUM)
        return published_table(
            lambda delta: theorem3_2021(n, steps, pure, delta / 2, delta / 2),
            None,
            observers,
            errata,
            ("δ₀ = 0, δ′ = δ̂ = δ/2", f"version {version}"),
        )

    def epsilon(delta: float) -> float:
        third = delta / 3
        cycles = steps / n + (visits_2022(n, steps, third) if version == "2022" else 0.0)
        one = local_epsilon(protocol.sigma, third / cycles, protocol.sensitivity)
        theorem = theorem3_2022 if version == "2022" else theorem3_2021
        return theorem(n, steps, one, third, third)

    split = "(N_v + T/n)δ₀ = δ′ = δ̂ = δ/3" if version == "2022" else "(T/n)δ₀ = δ′ = δ̂ = δ/3"
    errata = (*WALK_ERRATA[version], GAUSSIAN_ERRATUM)
    return published_table(epsilon, None, observers, errata, (split, f"version {version}"))


@published.register
def _walk_histogram(protocol: WalkHistogram, observers: tuple[int, ...], *, version: str | None = None) -> Guarantee:
    if version is not None and _version(version) == "2021":
        raise Unsupported("the version of 2021 has no theorem for histograms on a walk; version='2022' has")
    if protocol.graph is not None or protocol.tokens > 1:
        raise Unsupported("the papers have histograms for one token on the complete graph; ask for method='certified'")
    uniform_draws(protocol)
    _hidden(protocol.sender)
    _has_loss(protocol)
    n, steps = protocol.n / len(observers), protocol.steps

    def epsilon(delta: float) -> float:
        third = delta / 3
        delta0 = third / (steps / n + visits_2022(n, steps, third))
        return histogram_2022(n, steps, protocol.epsilon0, delta0, third, third)

    split = ("(N_v + T/n)δ₀ = δ′ = δ̂ = δ/3", "version 2022")
    return published_table(epsilon, None, observers, WALK_ERRATA["2022"], split)


def uniform_draws(protocol: WalkSum | WalkHistogram | WalkDescent) -> None:
    """The papers draw all users alike."""
    if protocol.weights is not None:
        raise Unsupported("the papers draw all users alike, got weights; ask for method='certified'")


def published_table(
    epsilon: Callable[[float], float],
    n: int | None,
    observers: tuple[int, ...],
    errata: tuple[str, ...],
    notes: tuple[str, ...],
    references: tuple[str, ...] = TOKENS_REFERENCES,
    formula: str = AS_PRINTED,
) -> Guarantee:
    """A formula δ ↦ ε tabulated at `DELTAS`, the same for every target; where it refuses every δ, its refusal.

    One row for each of n parties, nan at the observers; for n = None a single curve that holds for any of them. `formula`
    says whether it is the printed one.

    Where it refuses only the small δ, nothing is stated for them (ε = inf). Between two entries the curve is the chord.
    """
    knots: list[tuple[float, float]] = [(0.0, 1.0)]
    refusal: Unsupported | None = None
    for delta in DELTAS:
        try:
            value = epsilon(delta)
        except Unsupported as problem:
            refusal = problem
            continue
        if knots[-1][0] < value < math.inf:
            knots.append((value, delta))
    if len(knots) == 1 and refusal is not None:
        raise refusal
    table = np.array([delta for _, delta in knots])
    if n is not None:
        table = np.tile(table, (n, 1))
        table[list(observers)] = np.nan
    return Guarantee(
        curve=ProfileCurve([value for value, _ in knots], table),
        adjacency=Adjacency.REPLACE,
        claim=Claim.PUBLISHED,
        assumptions=(formula, *notes),
        references=references,
        errata=errata,
    )


# ---- checks


def _visits(
    bound: Callable[[float, int, float], float], n: float, steps: int, delta_hat: float | None, visits: float | None
) -> float:
    if visits is not None:
        return positive("visits", visits)
    if delta_hat is None:
        raise InvalidValue("give delta_hat, the probability of more visits than N_v, or the number of visits itself")
    return bound(n, steps, delta_hat)


def _version(version: str) -> str:
    if version not in TOKENS_VERSIONS:
        raise InvalidValue(f"unknown version {version!r}; choose one of {', '.join(TOKENS_VERSIONS)}")
    return version


def _alone(observers: tuple[int, ...]) -> None:
    if len(observers) > 1:
        raise Unsupported(
            f"the papers' ring formulas are about one observer, got {len(observers)}; ask for method='certified'"
        )


def _hidden(sender: str) -> None:
    if sender != "hidden":
        raise Unsupported(
            "the theorems of 2022 assume that a user does not see from whom it got the token nor who gets it next; for "
            f"sender={sender!r} ask for version='2021' (sums) or method='certified'"
        )


def _has_loss(protocol: RingHistogram | WalkHistogram) -> None:
    if protocol.gamma == 1:
        raise Unsupported("gamma = 1: all answers are random and there is no loss to bound; choose gamma < 1")


DESCENT_REFERENCES = (
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS 2022.",
    "V. Feldman, I. Mironov, K. Talwar, A. Thakurta. Privacy Amplification by Iteration. FOCS 2018.",
)

LECTURE = ("A. Bellet. Better Privacy Guarantees for Decentralized Federated Learning. Lecture at FL-Day, 2023.",)

DESCENT_VERSIONS = ("2022", "lecture")

ERRATA = (
    "The number of spotted contributions, s = 2N_u/n + √((6N_u/n) ln(1/δ̃)), uses a Chernoff bound where it does not hold: "
    "n = 2000, 12 contributions, δ̃ = 1e-6 gives s < 1; two or more are spotted with probability 6.6e-5.",
    "E[1/t] of the geometric law is ln n/(n − 1), printed is ln n/n: too small.",
    "The final model is released, so the last steps have few others behind them; the geometric law ignores the end of the "
    "walk. With T = 10n the mean of 1/t is a tenth larger.",
    "The number N_u of contributions is random unless it is capped; its bound by T/n + √(3(T/n) ln(1/δ̂)) costs δ̂.",
)

CODE_ERRATA = (
    "The authors' code calibrates with the sensitivity L; two gradients of norm L differ by up to 2L, as Algorithm 4 has it "
    "(variance 8L² ln(1.25/δ)/ε²).",
    "The code's Rényi bound is 2KαL² ln n/(σ²n), half the theorem's.",
    "The code clips the sum of gradient and noise to norm L, after the noise: the sensitivity of the gradient itself is "
    "never enforced, and the step is no longer the one that was analysed.",
    "δ is spent several times over: on every spotted contribution (δ/K each), on their composition (δ/K), on their number "
    "(δ), on the conversion from Rényi DP (δ).",
    "Users stop contributing after conf·T/n visits with conf = 1.25, the calibration has 1.2; at n = 2000, T = 20 000 "
    "both are 12, and a fifth of all users reaches the cap.",
    "The code's search for the best step size starts from an objective of 0, which no loss undercuts, and tries every method "
    "with the central σ: the steps in use are the ones written into it.",
    "Local: δ/K is spent K times on the contributions and once more on their composition, (K + 1)/K·δ in total.",
)

CONFIDENCE = 1.2


def largest_order(sigma: float, clip: float) -> float:
    """The largest α with σ ≥ L√(2α(α−1)): (1 + √(1 + 2σ²/L²))/2.

    >>> largest_order(2.0, 1.0)
    2.0
    """
    return (1.0 + math.sqrt(1.0 + 2.0 * (sigma / clip) ** 2)) / 2.0


def iteration_rdp(alpha: float, n: float, contributions: float, sigma: float, clip: float) -> float:
    """4N_u·αL² ln n/(σ²n), for orders α that the theorem covers.

    >>> round(iteration_rdp(2.0, n=2000, contributions=12, sigma=4.0, clip=0.4), 6)
    0.003648
    """
    if not alpha > 1:
        raise InvalidValue(f"a Rényi order must be > 1, got {alpha!r}")
    most = largest_order(sigma, clip)
    if alpha > most * (1 + 1e-12):
        raise Unsupported(
            f"the theorem needs σ ≥ L√(2α(α−1)): alpha = {alpha:g} with sigma = {sigma:g}, clip = {clip:g} is out; the "
            f"largest order is {most:.4g}"
        )
    return alpha * _slope(n, contributions, sigma, clip)


def iteration_epsilon(n: float, contributions: float, sigma: float, clip: float, delta: float) -> float:
    """ε(α) + ln(1/δ)/(α−1), least over the orders covered: it is convex in α.

    >>> round(iteration_epsilon(2000, 12, 1.227, 0.4, 1e-6), 2)
    8.06
    """
    log, slope = math.log(1.0 / delta), _slope(n, contributions, sigma, clip)
    order = min(largest_order(sigma, clip), 1.0 + math.sqrt(log / slope))
    return slope * order + log / (order - 1.0)


def _slope(n: float, contributions: float, sigma: float, clip: float) -> float:
    return 4.0 * contributions * clip**2 * math.log(n) / (sigma**2 * n)


def spotted_contributions(n: float, contributions: float, delta: float) -> float:
    """s = 2N_u/n + √((6N_u/n) ln(1/δ̃)).

    >>> round(spotted_contributions(2000, 12, 1e-6), 3)
    0.717
    """
    share = contributions / n
    return 2.0 * share + math.sqrt(6.0 * share * math.log(1.0 / delta))


def spotted_epsilon(epsilon0: float, times: int, delta_prime: float) -> float:
    """Basic or advanced composition of the spotted contributions, whichever is less."""
    return min(times * epsilon0, advanced_composition(epsilon0, times, delta_prime))


def informal_amplification(n: int) -> float:
    """ln²(n)/n: what a local Rényi loss is multiplied by when T is of order n², in words of the authors' lecture.

    >>> round(informal_amplification(2000), 4)
    0.0289
    """
    return math.log(n) ** 2 / n


@published.register
def _walk_descent(protocol: WalkDescent, observers: tuple[int, ...], *, version: str | None = None) -> Guarantee:
    """The theorem of 2022, every δ budgeted in equal parts; or version="lecture", the authors' informal statement. On a graph
    the formulas of 2024 and 2025 (`random_walks`).

    Parts: the conversion from Rényi DP; the number of contributions unless it is capped; with known senders the number of
    spotted ones, their own δ₀, and their composition.
    """
    if protocol.graph is not None:
        return on_a_graph(protocol, observers, version)
    if protocol.tokens > 1:
        raise Unsupported(f"the papers analyse one token, got tokens={protocol.tokens}; ask for method='certified'")
    version = "2022" if version is None else version
    if version not in DESCENT_VERSIONS:
        raise InvalidValue(f"unknown version {version!r} for descent; choose one of {', '.join(DESCENT_VERSIONS)}")
    uniform_draws(protocol)
    if version == "lecture":
        return _lecture(protocol, observers)
    if protocol.expansion > 1:
        raise Unsupported(
            f"amplification by iteration needs steps that do not expand, got expansion={protocol.expansion:g}; "
            "choose step ≤ 2/β"
        )
    n, sigma, clip = protocol.n / len(observers), protocol.sigma, protocol.clip
    capped, known = protocol.contributions, protocol.sender != "hidden"
    if n < 2:
        raise Unsupported(f"{len(observers)} of {protocol.n} users collude: the theorem needs n/c ≥ 2")
    parts = 1 + (capped is None) + 3 * known

    def epsilon(delta: float) -> float:
        part = delta / parts
        count = visits_2022(protocol.n, protocol.steps, part) if capped is None else float(capped)
        loss = iteration_epsilon(n, count, sigma, clip, part)
        if known:
            spotted = math.ceil(spotted_contributions(n, count, part))
            loss += spotted_epsilon(local_epsilon(sigma, part / spotted, protocol.sensitivity), spotted, part)
        return loss

    notes = (
        f"δ in {parts} equal part{'s' if parts > 1 else ''}",
        "convex smooth losses, step ≤ 2/β, gradients clipped before the noise",
    )
    errata = (*ERRATA, GAUSSIAN_ERRATUM) if known else ERRATA
    return published_table(epsilon, None, observers, errata, notes, DESCENT_REFERENCES)


def _lecture(protocol: WalkDescent, observers: tuple[int, ...]) -> Guarantee:
    """The local Rényi loss of T/n contributions, times ln²(n)/n."""
    if len(observers) > 1:
        raise Unsupported(
            f"the lecture speaks of one observer, got {len(observers)}; version='2022' has n/c for coalitions"
        )
    local = protocol.steps / protocol.n * protocol.sensitivity**2 / (2 * protocol.sigma**2)
    return Guarantee(
        curve=RenyiCurve.linear(local * informal_amplification(protocol.n)),
        claim=Claim.PUBLISHED,
        assumptions=("an informal statement, constants left out, for T of order n²; it is not a bound",),
        references=LECTURE,
        errata=ERRATA,
    )


# ---- the authors' calibrations


@dataclass(frozen=True)
class NetworkCalibration:
    """What the authors' search ends with: σ, and how it came about. `errata`: where their code departs from the theorem."""

    errata: ClassVar[tuple[str, ...]] = CODE_ERRATA

    sigma: float
    sigma_spotted: float
    sigma_rest: float
    share: float
    contributions: int
    spotted: int


def code_contributions(n: int, steps: int, confidence: float = CONFIDENCE) -> int:
    """K = ⌈1.2·T/n⌉, the cap on a user's contributions."""
    return math.ceil(confidence * steps / n)


def local_calibration(epsilon: float, delta: float, n: int, steps: int, clip: float) -> float:
    """σ of local DP-SGD: A(ε₀, K, δ/K) = ε, σ = √(2 ln(1.25K/δ))·L/ε₀.

    >>> [round(local_calibration(e, 1e-6, 2000, 20_000, 0.4), 2) for e in (10.0, 1.0)]
    [5.87, 46.87]
    """
    _check(epsilon, delta)
    K = code_contributions(n, steps)
    return local_sigma(_advanced_root(epsilon, K, delta / K), delta / K, clip)


def central_calibration(epsilon: float, delta: float, n: int, steps: int, clip: float) -> float:
    """σ of central DP-SGD (Bassily, Smith, Thakurta 2014): 16L√(T ln(2/δ) ln(1.25T/(δn)))/(nε).

    >>> [round(central_calibration(e, 1e-6, 2000, 20_000, 0.4), 3) for e in (10.0, 1.0)]
    [0.697, 6.968]
    """
    _check(epsilon, delta)
    logs = math.log(2.0 / delta) * math.log(1.25 * steps / (delta * n))
    return 16.0 * clip * math.sqrt(steps * logs) / (n * epsilon)


def network_calibration(epsilon: float, delta: float, n: int, steps: int, clip: float) -> NetworkCalibration:
    """σ of network DP-SGD: βε for the spotted contributions, the rest for all others; β in steps of 1 % until both ask for σ
    within 5 % of each other; the larger counts.

    >>> [round(network_calibration(e, 1e-6, 2000, 20_000, 0.4).sigma, 2) for e in (10.0, 1.0)]
    [1.23, 10.98]
    """
    _check(epsilon, delta)
    K = code_contributions(n, steps)
    spotted = math.ceil(spotted_contributions(n, K, delta))
    share = 0.5
    for _ in range(5000):
        if not 0 < share < 1:
            break
        one = max(share * epsilon / spotted, _advanced_root(share * epsilon, spotted, delta / K))
        first = local_sigma(one, delta / K, clip)
        rest = _rest_sigma((1.0 - share) * epsilon, delta, n, K, clip)
        if max(first / rest, rest / first) <= 1.05:
            return NetworkCalibration(max(first, rest), first, rest, share, K, spotted)
        share *= 1.01 if first > rest else 0.99
    raise Unsupported(
        f"the authors' search does not end for epsilon={epsilon:g}, n={n}, steps={steps}: its steps of σ are coarser than "
        "the agreement that it asks for; calibrate with netdp's certified accountant instead"
    )


def _rest_sigma(epsilon: float, delta: float, n: int, K: int, clip: float) -> float:
    """The first σ = σ₀·1.15ʲ whose Rényi bound, with *half* the theorem's constant, is below ε at the largest order."""
    log = math.log(1.0 / delta)
    if n * log <= 2.0 * K * math.log(n):
        return 4.0 * clip * math.sqrt(2.0 * K * math.log(n) * log / n) / epsilon
    sigma = local_sigma(epsilon, delta, clip)
    while True:
        order = largest_order(sigma, clip)
        if 2.0 * K * clip**2 * order * math.log(n) / (sigma**2 * n) + log / (order - 1.0) < epsilon:
            return sigma
        sigma *= 1.15


def _advanced_root(epsilon: float, times: int, delta: float) -> float:
    """ε₀ with A(ε₀, k, δ) = ε."""
    from scipy.optimize import brentq  # slow to load

    top = epsilon / math.sqrt(2.0 * times * math.log(1.0 / delta))
    return float(brentq(lambda one: advanced_composition(one, times, delta) - epsilon, 0.0, top, xtol=1e-14 * top))


def _check(epsilon: float, delta: float) -> None:
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise InvalidValue(f"epsilon must be a finite number > 0, got {epsilon!r}")
    if not 0 < delta < 1:
        raise InvalidValue(f"delta must lie strictly between 0 and 1, got {delta!r}")
