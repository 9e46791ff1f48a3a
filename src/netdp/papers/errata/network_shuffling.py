"""Errata of Network Shuffling (seed 003), each with the smallest computation that shows it.

Left out, because the text at hand may be what is damaged: Z_j for S_j in Algorithm 1. Left out, because it is said as one way to
model it: outages as a lazy walk (right for each report on its own; an outage holds back a whole queue).
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np

from netdp.papers.errata.base import Demonstration, erratum

PAPER = "003"


def walk(edges: list[tuple[int, int]], n: int) -> np.ndarray:
    """The transition matrix of the simple walk: row u is the law of the next place of a report at u."""
    A = np.zeros((n, n))
    for u, v in edges:
        A[u, v] = A[v, u] = 1.0
    return np.asarray(A / A.sum(axis=1, keepdims=True))


@erratum(
    "003-table1-rate",
    PAPER,
    "Table 1",
    printed="Network shuffling amplifies like e^{1.5ε₀}/√n; see Theorem 5.3.",
    true="Theorem 5.3 has the factor (e^ε₀ − 1)e^{2ε₀}, so its ε grows like e^{3ε₀}/√n (and like e^{6ε₀}/n where the square "
    "dominates). The truth is better than either: once positions are independent of origins, what the server sees is a "
    "post-processing of a trusted shuffler's output, so the rate is e^{0.5ε₀}/√n.",
)
def table1_rate() -> Demonstration:
    def theorem(epsilon0: float, n: float = 1e24, delta: float = 1e-6) -> float:
        one = math.sqrt(1 / n) + math.sqrt(math.log(1 / delta) / n)
        A = math.expm1(epsilon0) * math.exp(2 * epsilon0)
        return A**2 * one**2 / 2 + A * one * math.sqrt(2 * math.log(1 / delta))

    growth = [math.log(theorem(e + 1) / theorem(e)) for e in (2, 4, 6)]
    lines = tuple(
        (f"ln ε(ε₀ + 1) − ln ε(ε₀) of Theorem 5.3, ε₀ = {e}", f"{g:.2f}")
        for e, g in zip((2, 4, 6), growth, strict=True)
    )
    return Demonstration((*lines, ("by Table 1", "1.50")), min(growth) > 2.9)


@erratum(
    "003-table3-hand",
    PAPER,
    "Section 3.2 and Table 3, memory",
    printed="The memory that a user needs is constant with respect to n, O(1).",
    true="One report is held on average, but a user of degree k holds nk/2m of them once the walk has mixed. On a wheel (a hub "
    "joined to a ring of n − 1 users) that is a quarter of all reports. Even on regular graphs the fullest hand grows like "
    "ln n/ln ln n.",
)
def table3_hand() -> Demonstration:
    lines, held = [], []
    for n in (101, 1001):
        rim = [(i, i % (n - 1) + 1) for i in range(1, n)]
        edges = rim + [(0, i) for i in range(1, n)]
        degree = np.bincount(np.array(edges).ravel(), minlength=n)
        held.append(n * degree[0] / degree.sum())
        lines.append((f"reports expected in the hub's hand, wheel of {n}", f"{held[-1]:.2f}"))
    return Demonstration(tuple(lines), held[1] > 9 * held[0])


@erratum(
    "003-transition",
    PAPER,
    "Section 4.1, transition matrix",
    printed="M = AB⁻¹ with B the degrees, and P(t + 1) = MᵀP(t).",
    true="A report leaves i for each neighbour with probability 1/B_ii, so M = B⁻¹A. With M as printed MᵀP is not a "
    "probability distribution unless the graph is regular. (Section 5.2 expands P in eigenvectors of AB⁻¹, which is Mᵀ.)",
)
def transition() -> Demonstration:
    A = np.array([[0, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0]], dtype=float)  # a triangle with a tail
    B = np.diag(A.sum(axis=1))
    start = np.array([1.0, 0, 0, 0])
    printed = (A @ np.linalg.inv(B)).T @ start
    meant = (np.linalg.inv(B) @ A).T @ start
    return Demonstration(
        (("total probability after one step, as printed", f"{printed.sum():.4f}"), ("with B⁻¹A", f"{meant.sum():.4f}")),
        abs(printed.sum() - 1) > 0.1,
    )


@erratum(
    "003-sum-c",
    PAPER,
    "Section 4.1, before Equation 3 and below Equation 4",
    printed="P(0) = Σc_i e_i with Σc_i = 1, and 1 = Σc_i ≥ Σc_i² by Minkowski's inequality.",
    true="The coefficients in an orthonormal basis need not add up to 1. What is needed, and true, is Σc_i² = ‖P(0)‖² ≤ 1. "
    "Equation 4 stands with that.",
)
def sum_c() -> Demonstration:
    # K₄: these four are orthonormal eigenvectors of its walk
    basis = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    found = [(basis @ np.eye(4)[u]).tolist() for u in (0, 1)]
    lines = [
        (f"Σc_i and Σc_i², report of user {u} on K₄", f"{sum(c):g}, {sum(x * x for x in c):g}")
        for u, c in enumerate(found, 1)
    ]
    return Demonstration(tuple(lines), [sum(c) for c in found] == [2.0, 0.0])


@erratum(
    "003-total-variation",
    PAPER,
    "Definition 4.4",
    printed="The total variation distance is ‖P − Q‖₁.",
    true="That is twice the total variation sup_S |P(S) − Q(S)| which Lemma 5.2 uses and refers to this definition for.",
)
def total_variation() -> Demonstration:
    P, Q = (Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))
    one = sum(abs(p - q) for p, q in zip(P, Q, strict=True))
    best = max(
        abs(sum((p - q for p, q, s in zip(P, Q, S, strict=True) if s), Fraction(0))) for S in product((0, 1), repeat=2)
    )
    return Demonstration((("Definition 4.4, (¾, ¼) and (¼, ¾)", str(one)), ("Lemma 5.2", str(best))), one == 2 * best)


@erratum(
    "003-symmetric",
    PAPER,
    "Section 4.2, symmetric distribution; Theorems 5.4 and 5.6",
    printed="On a k-regular graph one can without loss of generality analyse the first user: P(t) is the position "
    "distribution of any user.",
    true="That needs a vertex-transitive graph, not a regular one: on the cubic graph below ΣP(t)² depends on whose report "
    "it is. The worst user has to be taken.",
)
def symmetric() -> Demonstration:
    ring = [(i, (i + 1) % 8) for i in range(8)]
    M = walk([*ring, (0, 4), (1, 3), (2, 6), (5, 7)], 8)
    squares = (np.linalg.matrix_power(M, 2) ** 2).sum(axis=1)
    return Demonstration(
        (
            ("degrees", "3, all of them"),
            ("ΣP(2)² of users 0 and 2", f"{squares[0]:.4f}, {squares[2]:.4f}"),
        ),
        bool(abs(squares[0] - squares[2]) > 0.01),
    )


@erratum(
    "003-algorithms",
    PAPER,
    "Algorithms 1 and 2",
    printed="In each step every report of S_j is sent to a random neighbour; reports received are added to S_j. Algorithm 2 "
    "draws one neighbour and sends it 'report k'.",
    true="Reports that were sent are never taken out of S_j, so their number doubles in every step, and everybody's own report "
    "stays with its owner, who hands it to the server. In Algorithm 2 k is not defined; read as all reports, they would travel "
    "together. What the analysis needs: each report moves by a draw of its own and is then removed.",
)
def algorithms() -> Demonstration:
    rng, n, steps = np.random.default_rng(0), 5, 3
    hands = [[user] for user in range(n)]  # Algorithm 1 on K₅, line by line
    for _ in range(steps):
        sent = [((user + int(rng.integers(1, n))) % n, report) for user in range(n) for report in hands[user]]
        for to, report in sent:
            hands[to].append(report)
    total = sum(map(len, hands))
    own = sum(user in hands[user] for user in range(n))
    return Demonstration(
        (
            ("reports after three steps, five users", f"{total} instead of {n}"),
            ("users who hand over their own report", f"{own} of {n}"),
        ),
        total == n * 2**steps and own == n,
    )


@erratum(
    "003-finite-time",
    PAPER,
    "Theorems 5.3 and 6.1; Equation 5",
    printed="At t ≃ α⁻¹ ln n the position distribution is close to the stationary one, and the guarantee holds with the bound "
    "on ΣP² at that t.",
    true="The proof permutes all reports uniformly given how many each user holds, which is right only if all reports have one "
    "and the same position law. At that t the laws of two origins still differ, by up to 1/√n in total variation, "
    "far above δ, and the theorem has no term for it. (Where they are mixed well enough, its conclusion holds with room to spare.) "
    "An extreme case: on K_n after one hop no report is with its owner.",
)
def finite_time() -> Demonstration:
    n = 101
    alpha = 1 - math.cos(math.pi / n)
    t = round(math.log(n) / alpha)
    k = np.arange(n)
    power = np.cos(2 * np.pi * k / n) ** t  # eigenvalues of the walk on a ring, to the power of t
    law = np.real(np.fft.ifft(power))  # P(t) of a report that starts at 0
    apart = float(abs(law - np.roll(law, n // 2)).sum() / 2)
    return Demonstration(
        (
            ("ring of 101: t = α⁻¹ ln n", f"{t}"),
            ("total variation of two origins' laws", f"{apart:.4f}"),
            ("1/√n", f"{1 / math.sqrt(n):.4f}"),
        ),
        1e-3 < apart < 1 / math.sqrt(n),
    )


@erratum(
    "003-equation7",
    PAPER,
    "Equation 7",
    printed="ΣP(t)² − Σπ² ≤ (1 − α)^{2t}, by expanding P in orthonormal eigenvectors of AB⁻¹.",
    true="AB⁻¹ is symmetric only if the graph is regular; otherwise its eigenvectors are not orthogonal, the cross term "
    "2Σπ(P − π) remains, and falls like (1 − α)^t. On a clique of ten with a tail of four the bound fails at once, and by any "
    "factor in the long run.",
)
def equation7() -> Demonstration:
    clique = [(i, j) for i in range(10) for j in range(i)]
    M = walk([*clique, *((9 + i, 10 + i) for i in range(4))], 14)
    degree = np.array([(M[u] > 0).sum() for u in range(14)], dtype=float)
    pi = degree / degree.sum()
    root = np.sqrt(degree)
    values = np.linalg.eigvalsh(M * root[:, None] / root[None, :])
    rate = max(abs(values[0]), abs(values[-2]))  # 1 − α
    lines, shown = [], True
    for t in (1, 100, 200):
        excess = float((np.linalg.matrix_power(M, t) ** 2).sum(axis=1).max() - (pi**2).sum())
        lines.append((f"t = {t}: largest ΣP² − Σπ², and the bound", f"{excess:.3g}, {rate ** (2 * t):.3g}"))
        shown &= excess > rate ** (2 * t)
    return Demonstration(tuple(lines), bool(shown))


@erratum(
    "003-equation7-rate",
    PAPER,
    "Below Equation 7",
    printed="ΣP(t)² − Σπ² ≲ α/n² when t ≃ α⁻¹ ln n.",
    true="(1 − α)^{2t} is then just below n⁻²; the factor α is not there, and real graphs have α of a few thousandths.",
)
def equation7_rate() -> Demonstration:
    n, alpha = 10_000, 0.003
    value = (1 - alpha) ** (2 * math.log(n) / alpha)
    return Demonstration(
        (
            ("(1 − α)^{2t}, n = 10⁴, α = 0.003", f"{value:.2e}"),
            ("n⁻²", f"{n**-2:.2e}"),
            ("α/n²", f"{alpha / n**2:.2e}"),
        ),
        value > 300 * alpha / n**2,
    )


@erratum(
    "003-lemma51",
    PAPER,
    "Lemma 5.1",
    printed="With probability at least 1 − δ, ‖L‖₂ ≤ √((n² − n)ΣP²) + √(n ln(1/δ)).",
    true="E‖L‖² is (n² − n)ΣP² + n: the diagonal is lost. √((n² − n)ΣP² + n) + √(n ln(1/δ)) is what McDiarmid's inequality "
    "gives. With two users and two reports the printed statement is false at δ = 0.95; for small δ the second term leaves room.",
)
def lemma51() -> Demonstration:
    delta = 0.95
    counts = [(first + second, 2 - first - second) for first, second in product((0, 1), repeat=2)]
    mean = Fraction(sum(a * a + b * b for a, b in counts), 4)
    bound = math.sqrt((4 - 2) * 0.5) + math.sqrt(2 * math.log(1 / delta))
    within = sum(math.hypot(a, b) <= bound for a, b in counts) / 4
    return Demonstration(
        (
            ("E‖L‖², n = 2, P = (½, ½)", f"{mean} (printed: 1)"),
            ("bound at δ = 0.95", f"{bound:.3f}"),
            ("probability of ‖L‖ within it", f"{within:.2f}, said to be at least 0.05"),
        ),
        within < 1 - delta and mean == 3,
    )


@erratum(
    "003-table4",
    PAPER,
    "Table 4",
    printed="Γ = nΣP² of the stationary distribution: 5.0064 (Facebook), 7.5840 (Twitch), 3.5633 (Deezer), 36.866 (Enron).",
    true="With P_i = k_i/2m they are 4.018, 7.915, 2.468 and 13.266. The printed digits come out when every edge (in the Facebook "
    "file also every self-loop) is counted for its smaller-numbered end only. Shown for Twitch. (Γ does not "
    "matter for the true privacy loss.)",
)
def table4() -> Demonstration:
    from netdp.graphs.named import dataset

    graph = dataset("twitch")
    ends = graph.edges()
    both = np.bincount(ends.ravel(), minlength=graph.n)
    one = np.bincount(ends.min(axis=1), minlength=graph.n)
    defined, counted = (graph.n * float(((k / k.sum()) ** 2).sum()) for k in (both, one))
    return Demonstration(
        (("nΣ(k_i/2m)², Twitch", f"{defined:.4f}"), ("each edge at its smaller number only", f"{counted:.4f}")),
        f"{counted:.4f}" == "7.5840" and f"{defined:.3f}" == "7.915",
    )


@erratum(
    "003-theorem55",
    PAPER,
    "Theorem 5.5",
    printed="For ε₀ ≤ 1 an (ε₀, δ₀) randomizer gives ε′ = 800ε₀²ΣP² + 40ε₀√(2 ln(1/δ)ΣP²).",
    true="The general statement has e^{8ε₀}(e^{8ε₀} − 1) where this has 40ε₀, which is smaller from ε₀ = 0.14 on. (The theorem "
    "also says A_all where A_single is meant, and its δ′ contains a δ₂ that nothing defines there.)",
)
def theorem55() -> Demonstration:
    pairs = [(e, math.exp(8 * e) * math.expm1(8 * e), 40 * e) for e in (0.13, 0.14, 0.5, 1.0)]
    return Demonstration(
        tuple((f"ε₀ = {e:g}: e^(8ε₀)(e^(8ε₀) − 1), and 40ε₀", f"{a:.4g}, {b:.4g}") for e, a, b in pairs),
        [a <= b for _, a, b in pairs] == [True, False, False, False],
    )


@erratum(
    "003-theorem61",
    PAPER,
    "Theorem 6.1",
    printed="ε₁ = √((n − 1)ΣP²) + √(ln(1/δ₂)/n).",
    true="Its proof, and Theorem 5.3, have √((1 − 1/n)ΣP²). As printed it is √n times as large, and nothing is amplified. (In the "
    "proof two ratios are said to be at most e^{−2ε₀} and e^{−ε₀}; at least is meant and used.)",
)
def theorem61() -> Demonstration:
    n = 10_000
    printed, meant = math.sqrt((n - 1) / n), math.sqrt((1 - 1 / n) / n)
    return Demonstration(
        (("first term, n = 10⁴, P uniform, as printed", f"{printed:.4f}"), ("as proved", f"{meant:.4f}")),
        printed > 99 * meant,
    )


@erratum(
    "003-dummies",
    PAPER,
    "Section 5.6",
    printed="The number of dummies is the expected number of users holding less than a sample, 7,080 for Twitch.",
    true="7,080 users expect less than one report (nπ_u < 1); that is not the expected number of users without a report, which "
    "is Σ(1 − π_u)ⁿ = 5,456. On a regular graph the first number is 0 and the second n/e.",
)
def dummies() -> Demonstration:
    from netdp.graphs.named import dataset

    graph = dataset("twitch")
    pi = graph.degrees / graph.degrees.sum()
    few = int((graph.n * pi < 1).sum())
    empty = float(((1 - pi) ** graph.n).sum())
    return Demonstration(
        (("users with nπ_u < 1, Twitch", f"{few}"), ("Σ(1 − π_u)ⁿ", f"{empty:.0f}")),
        few == 7080 and round(empty) == 5456,
    )
