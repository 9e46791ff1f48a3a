"""Learning by a walking token as printed (Cyffers and Bellet, AISTATS 2022): network DP of SGD by amplification by iteration.

For L-Lipschitz, convex, β-smooth losses, η ≤ 2/β and noise σ per coordinate, a contribution of u that is followed by t more
noisy steps before v looks costs 2αL²/(σ²t) at order α (Feldman, Mironov, Talwar, Thakurta 2018; two gradients differ by up
to 2L). t is geometric with mean n, so E[1/t] is about ln n/n; if σ ≥ L√(2α(α−1)) the Rényi divergence is convex up to a
factor 2:

    (α, 4N_u·αL² ln n/(σ²n))-network RDP for N_u contributions of u.

If v sees from whom it gets the token and to whom it goes, some contributions are *spotted*: at most
s = 2N_u/n + √((6N_u/n) ln(1/δ̃)); they are composed apart, each (ε₀, δ₀)-DP.

**Not a guarantee**; see `ERRATA`. Also here: how the authors' public code calibrates σ for the three ways to learn that the
papers compare, re-implemented from what it does: T = 20 000 steps, n = 2000 users, δ = 10⁻⁶, L = 0.4 gives

    ε = 10: central 0.697, network 1.23, local 5.87        ε = 1: central 6.97, network 10.98, local 46.9
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from netdp.accounting.table import published
from netdp.errors import InvalidValue, Unsupported
from netdp.privacy import Claim, Guarantee, RenyiCurve
from netdp.protocols.walk import WalkDescent

from ..random_walks import on_a_graph
from .tokens import (
    GAUSSIAN_ERRATUM,
    advanced_composition,
    local_epsilon,
    local_sigma,
    published_table,
    uniform_draws,
    visits_2022,
)

REFERENCES = (
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS 2022.",
    "V. Feldman, I. Mironov, K. Talwar, A. Thakurta. Privacy Amplification by Iteration. FOCS 2018.",
)
LECTURE = ("A. Bellet. Better Privacy Guarantees for Decentralized Federated Learning. Lecture at FL-Day, 2023.",)
VERSIONS = ("2022", "lecture")
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
    if version not in VERSIONS:
        raise InvalidValue(f"unknown version {version!r} for descent; choose one of {', '.join(VERSIONS)}")
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
    return published_table(epsilon, None, observers, errata, notes, REFERENCES)


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
