"""Mistakes in Muffliato (Cyffers, Even, Bellet and Massoulié, NeurIPS 2022), each with a computation that shows it.

Losses are factors: multiples of local DP's αΔ²/(2σ²). Fractions wherever the statement is about rational numbers. What is
printed is taken from the text of the paper; where its released code settles a question, that is said.

Left out, because the conclusion stands: Theorems 4 and 9 (their proof starts from Theorem 1, but the exact factors have the same
mean); K of Theorem 5 for n = 2. Left out, because the text at hand may have lost a superscript: the caption of Table 1.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np

from netdp.papers.errata.base import Demonstration, erratum

Matrix = list[list[Fraction]]


def gossip(neighbours: list[list[int]]) -> Matrix:
    """Metropolis weights in fractions: 1/(1 + larger degree) on edges, the rest on the diagonal."""
    n = len(neighbours)
    W = [[Fraction(0)] * n for _ in range(n)]
    for u in range(n):
        for w in neighbours[u]:
            W[u][w] = Fraction(1, 1 + max(len(neighbours[u]), len(neighbours[w])))
        W[u][u] = 1 - sum(W[u], Fraction(0))
    return W


def times(A: Matrix, B: Matrix) -> Matrix:
    """The product of two matrices."""
    columns = list(zip(*B, strict=True))
    return [
        [sum((a * b for a, b in zip(row, column, strict=True) if a and b), Fraction(0)) for column in columns]
        for row in A
    ]


def powers(W: Matrix, rounds: int) -> list[Matrix]:
    """I, W, …, W^{T−1}."""
    n = len(W)
    out = [[[Fraction(int(i == j)) for j in range(n)] for i in range(n)]]
    while len(out) < rounds:
        out.append(times(W, out[-1]))
    return out


def share(row: list[Fraction], u: int) -> Fraction:
    """What one message with these weights is said to cost u: the square of its weight over the sum of squares."""
    return row[u] ** 2 / sum((c * c for c in row), Fraction(0))


def true_factor(rows: list[list[Fraction]], u: int, known: set[int]) -> Fraction:
    """The exact factor of u: its leverage score in the span of the messages, the noises in `known` taken out.

    Gram–Schmidt in fractions; each new direction adds the square of its entry at u over its squared length.
    """
    basis: list[list[Fraction]] = []
    total = Fraction(0)
    for row in rows:
        vector = [Fraction(0) if i in known else c for i, c in enumerate(row)]
        for other in basis:
            along = sum((a * b for a, b in zip(vector, other, strict=True)), Fraction(0)) / sum(b * b for b in other)
            vector = [a - along * b for a, b in zip(vector, other, strict=True)]
        if any(vector):
            basis.append(vector)
            total += share(vector, u)
    return total


def ring(n: int) -> list[list[int]]:
    """The neighbours of every node of a ring."""
    return [[(u - 1) % n, (u + 1) % n] for u in range(n)]


@erratum(
    "004-theorem1",
    "004",
    "Theorem 1, Equation (6); likewise Theorem 12",
    printed="f(u, v), the sum of the divergences of all messages that v receives, bounds the loss from u to v; it "
    "is called a tight computation, and falls with distance.",
    true="The messages carry one and the same noise, so their divergences may not be added. On a ring with "
    "weights 1/3 the observer knows its own and its neighbour's noisy value after round 0; the "
    "neighbour's message of round 1 then gives the noisy value of the party two hops away exactly: local "
    "DP's loss, where the formula has a third of it. On a hypercube the antipode is given away in the "
    "same manner. The exact factor is the leverage score of u in the span of the messages; its mean over "
    "u is no larger than the formula's.",
)
def theorem_1() -> Demonstration:
    W = powers(gossip(ring(9)), 2)
    messages = [W[t][w] for t in (0, 1) for w in (1, 8)]  # what party 0 receives from its two neighbours
    formula = sum(share(message, 2) for message in messages)
    exact = true_factor(messages, 2, known={0})
    cube = [[u ^ (1 << k) for k in range(4)] for u in range(16)]
    V = powers(gossip(cube), 4)
    far = [V[t][w] for t in range(4) for w in cube[0]]
    far_formula, far_exact = sum(share(m, 15) for m in far), true_factor(far, 15, known={0})
    lines = (
        ("ring of 9, two rounds, two hops: formula", str(formula)),
        ("the same: exact", str(exact)),
        ("hypercube 2⁴, four rounds, antipode: formula", f"{float(far_formula):.4f}"),
        ("the same: exact", str(far_exact)),
    )
    return Demonstration(lines, formula < exact and far_formula < far_exact)


@erratum(
    "004-above-local",
    "004",
    "Theorem 1",
    printed="Equation (6) gives a tight computation of the privacy loss between every pair of nodes.",
    true="For neighbours it exceeds local DP's loss, which no view can exceed: everything that is sent is "
    "computed from noisy values. (The figures of the paper are clipped.) So the formula is neither an "
    "upper bound nor tight.",
)
def above_local() -> Demonstration:
    W = powers(gossip(ring(9)), 2)
    messages = [W[t][w] for t in (0, 1) for w in (1, 8)]
    formula, exact = sum(share(m, 1) for m in messages), true_factor(messages, 1, known={0})
    return Demonstration(
        (("ring of 9, two rounds, neighbours: formula", str(formula)), ("the same: exact", str(exact))),
        formula > 1 == exact,
    )


@erratum(
    "004-corollary1",
    "004",
    "Corollary 1; likewise Corollary 3",
    printed="The loss from u to v is at most n · max W_vw⁻² · Σ_{t ≤ T} P(Xᵗ = v | X⁰ = u)², in units of αΔ²/(2σ²).",
    true="It is derived from Theorem 1 and fails with it, by any factor: on a ring, a party T hops away is "
    "reached by the walk with probability 3⁻ᵀ, but its noisy value is known exactly after T rounds.",
)
def corollary_1() -> Demonstration:
    n, rounds = 9, 3
    W = powers(gossip(ring(n)), rounds + 1)
    bound = n * 9 * sum(W[t][rounds][0] ** 2 for t in range(1, rounds + 1))
    messages = [W[t][w] for t in range(rounds) for w in (1, n - 1)]
    exact = true_factor(messages, rounds, known={0})
    return Demonstration(
        (("ring of 9, three rounds, three hops: Corollary 1", str(bound)), ("the same: exact", str(exact))),
        bound < exact,
    )


@erratum(
    "004-transposed",
    "004",
    "Equation (6), Corollary 2, Equation (14)",
    printed="The weight of u's value in the message of w is (W_{0:t})_{u,w}, with W_{0:t} = W_{t−1} ⋯ W_0.",
    true="The message of w is row w of W_{0:t}, so the weight is (W_{0:t})_{w,u}. The two agree for a fixed "
    "symmetric matrix; a product of different ones is not symmetric. With randomized gossip the printed "
    "entry can be 0 although the message does depend on u.",
)
def transposed() -> Demonstration:
    # path 0–1–2–3: exchanges {0,1}, {1,2}, then {2,3}; observer 3 receives the value of 2
    state = [[Fraction(int(i == j)) for j in range(4)] for i in range(4)]
    for a, b in ((0, 1), (1, 2)):
        state[a] = state[b] = [(x + y) / 2 for x, y in zip(state[a], state[b], strict=True)]
    printed = state[0][2] ** 2 / sum(c * c for c in state[2])
    return Demonstration(
        (
            ("what 2 sends to 3, weights of 0, 1, 2, 3", ", ".join(map(str, state[2]))),
            ("loss of 0 by the printed entry (W)₀₂", str(printed)),
            ("loss of 0, exact", str(share(state[2], 0))),
        ),
        printed == 0 < share(state[2], 0),
    )


@erratum(
    "004-corollary2",
    "004",
    "Corollary 2",
    printed="Given the edges that were sampled, the sum over the messages that v receives bounds the loss from u to v.",
    true="As Theorem 1, it adds divergences of one and the same noise. Path 0–1–2 with the exchanges {0,1}, "
    "{1,2}, {0,1}: the last message brings (y₀ + y₁)/4 + y₂/2, of which 0 knows y₀ and y₁.",
)
def corollary_2() -> Demonstration:
    state = [[Fraction(int(i == j)) for j in range(3)] for i in range(3)]
    messages = []
    for a, b in ((0, 1), (1, 2), (0, 1)):
        if 0 in (a, b):
            messages.append(state[b])
        state[a] = state[b] = [(x + y) / 2 for x, y in zip(state[a], state[b], strict=True)]
    formula, exact = sum(share(m, 2) for m in messages), true_factor(messages, 2, known={0})
    return Demonstration((("loss of party 2: formula", str(formula)), ("the same: exact", str(exact))), formula < exact)


@erratum(
    "004-collusion-count",
    "004",
    "Theorem 12, Equations (14) and (15)",
    printed="(14) sums over all w that talk to some colluder; consequently (15) the sum over u is at most the "
    "number of messages from outside the coalition, Σ_t |N_t(V)|.",
    true="(14) also counts what colluders send to each other, (15) does not, so (15) does not follow: path "
    "0–1–2, colluders 0 and 1, two rounds. With w outside the coalition in (14), (15) follows.",
)
def collusion_count() -> Demonstration:
    W = powers(gossip([[1], [0, 2], [1]]), 2)
    all_senders = sum(share(W[t][w], 2) for t in (0, 1) for w in (0, 1, 2))
    outside = sum(share(W[t][2], 2) for t in (0, 1))
    return Demonstration(
        (
            ("Σ_u f(u, V) by (14)", str(all_senders)),
            ("Σ_t |N_t(V)| of (15)", "2"),
            ("(14) over w outside V", str(outside)),
        ),
        all_senders > 2 >= outside,
    )


@erratum(
    "004-c3-mean",
    "004",
    "Appendix C.3",
    printed="The mean loss is αΔ²d_vT/(2σ²n²); setting it to ε gives σ² = αΔ²d_vT/(2σ²n²), and a utility of "
    "Õ(αΔ²d_v/(2σ²√λ)).",
    true="Theorem 1 gives n, not n², in the mean: d_vT/n in units of αΔ²/(2σ²). So σ² = αΔ²d_vT/(2nε), and the "
    "utility 3σ²/n is Õ(αΔ²d_v/(n²ε√λ)), as Table 1 has it; σ² cannot stand on the right.",
)
def c3_mean() -> Demonstration:
    n, rounds, degree = 9, 2, 2
    W = powers(gossip(ring(n)), rounds)
    mean = sum(share(W[t][w], u) for t in range(rounds) for w in (1, n - 1) for u in range(1, n)) / n
    return Demonstration(
        (
            ("ring of 9, two rounds: mean of Theorem 1 over u ≠ v", str(mean)),
            ("printed, d·T/n²", str(Fraction(degree * rounds, n * n))),
            ("Theorem 1, d·T/n", str(Fraction(degree * rounds, n))),
        ),
        Fraction(degree * rounds, n * n) < mean <= Fraction(degree * rounds, n),
    )


@erratum(
    "004-theorem3-rate",
    "004",
    "Theorems 3 and 8",
    printed="Randomized gossip contracts the squared distance from the mean by 1 − λ(p) per step, λ(p) = 2λ_W/n.",
    true="Averaging two values is a projection, E‖Wx‖² = xᵀE[W]x = ‖x‖² − xᵀL_p x/2: the factor is 1 − "
    "λ₂(L_p)/2, and T_stop twice as long. On the complete graph of 6 the factor is exactly 4/5; printed "
    "is 11/15 by λ_W, or 3/5 by the Laplacian with weights p. The bound of Theorem 8 is then exceeded, "
    "e.g. n = 20, spread 1000σ², after 40 steps.",
)
def theorem_3_rate() -> Demonstration:
    n = 6
    x = [Fraction(5)] + [Fraction(-1)] * 5  # of mean 0
    pairs = list(combinations(range(n), 2))
    after = Fraction(0)
    for a, b in pairs:
        y = list(x)
        y[a] = y[b] = (x[a] + x[b]) / 2
        after += sum((c * c for c in y), Fraction(0)) / len(pairs)
    rate = after / sum(c * c for c in x)
    by_gap, by_laplacian = 1 - Fraction(2, n) * (1 - Fraction(1, n - 1)), 1 - Fraction(2, n - 1)
    parties, spread, steps = 20, 1000, 40
    true_error = (spread + 1 - 1 / parties) * (1 - 1 / (parties - 1)) ** steps / 2 + 1 / parties / 2
    printed = (spread + 1) * math.exp(-steps * 2 * (1 - 1 / (parties - 1)) / parties) + 1 / parties
    return Demonstration(
        (
            ("complete graph of 6: exact factor of one step", str(rate)),
            ("printed, λ(p) = 2λ_W/n", str(by_gap)),
            ("printed, λ(p) = λ₂ of the Laplacian", str(by_laplacian)),
            ("complete graph of 20, 40 steps, spread 1000: exact utility", f"{true_error:.1f}"),
            ("Theorem 8", f"{printed:.1f}"),
        ),
        rate > max(by_gap, by_laplacian) and true_error > printed,
    )


@erratum(
    "004-theorem3-precision",
    "004",
    "Theorem 3",
    printed="The utility at T_stop is at most 2σ²/n, directly from Equation (10).",
    true="(10) at T_stop is (spread + σ²)·σ²/(n·max(σ², spread)) + σ²/n, which is 3σ²/n when the spread is σ².",
)
def theorem_3_precision() -> Demonstration:
    n, variance, spread = 100, Fraction(1), Fraction(1)
    left = variance / (n * max(variance, spread))  # e^{−Tλ} at T_stop
    bound = (spread + variance) * left + variance / n
    return Demonstration(
        (("Equation (10) at T_stop, σ = 1, spread 1, n = 100", str(bound)), ("printed, 2σ²/n", str(Fraction(2, n)))),
        bound > Fraction(2, n),
    )


@erratum(
    "004-theorem7-exponent",
    "004",
    "Proof of Theorem 7",
    printed="‖P_t(W)y‖² ≤ 2(1 − √λ)²‖y‖².",
    true="The exponent is t, not 2, as in the line after it: 2(1 − √λ)ᵗ.",
)
def theorem_7_exponent() -> Demonstration:
    eigenvalue = Fraction(19, 100)  # two parties, weights 119/200 and 81/200: λ = 81/100, √λ = 9/10
    root = Fraction(9, 10)
    left, printed, meant = eigenvalue**2, 2 * (1 - root) ** 2, 2 * (1 - root)
    return Demonstration(
        (
            ("two parties, t = 1: ‖P₁(W)y‖²/‖y‖²", str(left)),
            ("printed bound", str(printed)),
            ("with the exponent t = 1", str(meant)),
        ),
        printed < left <= meant,
    )


@erratum(
    "004-algorithm1-start",
    "004",
    "Algorithm 1 and Definition 3",
    printed="x^{t+1} = (1 − γ)x^{t−1} + γWx^t from t = 0 on; P_{t+1} defined for t ≥ 2.",
    true="x^{−1} is not defined. Started at 0 the mean is multiplied by γ in the first step and by 1/(2 − γ) "
    "in the end (the released code of the learning experiment starts there). Definition 3's P₁(X) = X is "
    "meant for the first step, and its recursion has to hold from t = 1 on, or P₂ is undefined.",
)
def algorithm_1_start() -> Demonstration:
    # the mean of a run whose values have mean 1; W keeps it
    gamma, before, mean = Fraction(6, 5), Fraction(0), Fraction(1)
    seen = []
    for _ in range(4):
        before, mean = mean, gamma * mean + (1 - gamma) * before
        seen.append(str(mean))
    return Demonstration(
        (
            ("mean after 1, 2, 3, 4 steps from x^{−1} = 0, γ = 6/5", ", ".join(seen)),
            ("its limit 1/(2 − γ)", str(1 / (2 - gamma))),
            ("true mean", "1"),
        ),
        mean > 1,
    )


@erratum(
    "004-table1-gap",
    "004",
    "Table 1, its gossip matrix",
    printed="W_vw = min(1/d_v, 1/d_w), and utilities that need a spectral gap λ_W > 0.",
    true="On regular bipartite graphs (even rings, even tori, hypercubes, the paper's exponential graphs) this "
    "matrix has the eigenvalue −1: its gap is 0 by Definition 2 and gossip never converges. (I + W)/2, or "
    "1/(1 + max(d_v, d_w)), will do.",
)
def table_1_gap() -> Demonstration:
    cube = [[u ^ (1 << k) for k in range(3)] for u in range(8)]
    parity = [Fraction((-1) ** u.bit_count()) for u in range(8)]
    mixed = [sum(parity[w] for w in cube[u]) / 3 for u in range(8)]
    metropolis = [sum(a * b for a, b in zip(row, parity, strict=True)) for row in gossip(cube)]
    return Demonstration(
        (
            ("hypercube 2³, Table 1's W: eigenvalue of the parity of a node", str(mixed[0] / parity[0])),
            ("with 1/(1 + max degree)", str(metropolis[0] / parity[0])),
        ),
        all(m == -p for m, p in zip(mixed, parity, strict=True)),
    )


@erratum(
    "004-table1-ring",
    "004",
    "Table 1, ring, Algorithm 2",
    printed="αΔ²/(nε).",
    true="The general column, αΔ²/(n²ελ_W), gives αΔ²/ε on a ring, whose gap is of order 1/n²; so does the "
    "column of the D-torus, αΔ²/(n^{2−2/D}ε), for D = 1.",
)
def table_1_ring() -> Demonstration:
    general = {n: 1 / (n**2 * (1 - math.cos(math.pi / n))) for n in (11, 101, 1001)}  # odd rings: λ = 1 − cos(π/n)
    return Demonstration(
        (
            ("general column in αΔ²/ε, n = 11, 101, 1001", ", ".join(f"{value:.3f}" for value in general.values())),
            ("printed for the ring", ", ".join(f"{1 / n:.3f}" for n in general)),
            ("power of n of the torus with D = 1", f"{2 - 2 // 1}"),
        ),
        all(value > 1.5 / n for n, value in general.items()),
    )


@erratum(
    "004-d2-mean",
    "004",
    "Appendix D.2",
    printed="π_v = 2/n, hence E[ε̄_v] = αΔ²T/(2n²σ²).",
    true="E[T_v] = Tπ_v = 2T/n, so ε̄_v = αΔ²T_v/(2nσ²) has the mean αΔ²T/(n²σ²), twice what is printed. It "
    "matters: on the hypercube 2⁴ with T = 100 the printed value is below the mean of the true losses.",
)
def d2_mean() -> Demonstration:
    n, steps, runs, prime = 16, 100, 200, 2**61 - 1
    half = pow(2, -1, prime)
    edges = [(u, u ^ (1 << k)) for u in range(n) for k in range(4) if u < u ^ (1 << k)]
    rng, ranks, clipped = np.random.default_rng(0), 0, 0.0
    for _ in range(runs):
        plain, sums = np.eye(n), np.zeros(n)
        state = [[int(i == j) for j in range(n)] for i in range(n)]
        pivots: dict[int, list[int]] = {}
        for drawn in rng.integers(len(edges), size=steps).tolist():
            a, b = edges[drawn]
            if a == 0:  # what 0 receives; its own noise is known
                sums += plain[b] ** 2 / (plain[b] ** 2).sum()
                # the exact factors sum to the rank, which is taken modulo a prime
                row = [0, *state[b][1:]]
                for place in range(n):
                    if row[place] and place in pivots:
                        times_ = row[place]
                        row = [(x - times_ * y) % prime for x, y in zip(row, pivots[place], strict=True)]
                    elif row[place]:
                        inverse = pow(row[place], -1, prime)
                        pivots[place] = [x * inverse % prime for x in row]
                        break
            plain[a] = plain[b] = (plain[a] + plain[b]) / 2
            state[a] = state[b] = [(x + y) * half % prime for x, y in zip(state[a], state[b], strict=True)]
        ranks += len(pivots)
        clipped += float(np.minimum(sums[1:], 1.0).sum())
    true, printed, formula = ranks / runs / n, Fraction(steps, n * n), Fraction(2 * steps, n * n)
    return Demonstration(
        (
            ("hypercube 2⁴, T = 100: printed mean factor T/n²", f"{float(printed):.3f}"),
            ("with E[T_v] = 2T/n: 2T/n²", f"{float(formula):.3f}"),
            ("mean of the exact factors, 200 runs", f"{true:.3f}"),
            ("mean of Corollary 2, clipped at local DP's", f"{clipped / runs / n:.3f}"),
        ),
        printed < true <= formula,
    )


@erratum(
    "004-hamilton",
    "004",
    "Section 5, synthetic graphs",
    printed="The gossip matrix is defined according to the Hamilton scheme.",
    true="The text does not define it. Table 1's weights cannot be meant: they have no spectral gap on the "
    "exponential graph, so T would be infinite. In the released code a loop is added to every node and "
    "the weight is 1/(max degree − 1), where a loop counts twice in the degree: 1/(1 + max(d_u, d_v)), "
    "the Metropolis weights, which reproduce T.",
)
def hamilton() -> Demonstration:
    dimension, n = 11, 2**11
    degree = dimension + 2  # of the node with its loop
    weight = Fraction(1, degree - 1)
    gap = 2 * weight  # 1 − eigenvalue of one coordinate's sign: 2/(m + 1)
    rounds = math.ceil(math.log(n) / math.sqrt(gap))
    table_1 = 1 - abs(1 - Fraction(2 * dimension, dimension))
    return Demonstration(
        (
            ("exponential graph 2¹¹: weight by the code", str(weight)),
            ("gap, and T = ⌈ln(n)/√λ⌉", f"{gap}, {rounds}"),
            ("gap with Table 1's weights", str(table_1)),
        ),
        weight == Fraction(1, dimension + 1) and table_1 == 0,
    )


@erratum(
    "004-table2-connected",
    "004",
    "Table 2 and Theorem 4",
    printed="q = log(n)/n in the experiments; c > 1 in Theorem 4's q = c·ln(n)/n, for graphs that are good expanders.",
    true="At c = 1 a graph is connected with probability near 1/e only; the released code draws again until it "
    "is connected. Graphs drawn so are no longer Erdős–Rényi graphs, and nobody can test connectedness "
    "with local knowledge, which Theorem 4 assumes.",
)
def table_2_connected() -> Demonstration:
    n = 150
    q = math.log(n) / n
    connected = [0.0, 1.0]
    # the component of one node has k nodes with probability C(size−1, k−1)·P_k·(1−q)^{k(size−k)}
    for size in range(2, n + 1):
        connected.append(
            1 - sum(math.comb(size - 1, k - 1) * connected[k] * (1 - q) ** (k * (size - k)) for k in range(1, size))
        )
    return Demonstration(
        (
            ("P(connected), n = 150, q = ln(n)/n", f"{connected[n]:.3f}"),
            ("limit for large n, 1/e", f"{math.exp(-1):.3f}"),
        ),
        connected[n] < 0.45,
    )


@erratum(
    "004-theorem5-n",
    "004",
    "Theorem 5 against Theorem 10",
    printed="E[φ(θ̃) − φ(θ*)] = Õ((σ² + ρ̄²)/(μT)).",
    true="Theorem 10, of which it is the summary, has (σ² + ρ̄²)/(nμT): the noise of the mean of n parties has "
    "variance σ²/n. Theorem 6 needs the factor, too (see 004-appendix-f).",
)
def theorem_5_n() -> Demonstration:
    step, variance = Fraction(1, 2), Fraction(1)  # φ(θ) = θ²/2, perfect gossip: θ ← (1 − ν)θ − ν·(mean of n noises)
    excess = {n: step**2 * variance / n / (1 - (1 - step) ** 2) / 2 for n in (1, 10, 100)}
    return Demonstration(
        (
            ("stationary excess risk, ν = 1/2, σ = 1, n = 1, 10, 100", ", ".join(str(v) for v in excess.values())),
            ("ratio of n = 1 to n = 100", str(excess[1] / excess[100])),
        ),
        excess[1] / excess[100] == 100,
    )


@erratum(
    "004-dimension",
    "004",
    "Theorems 5, 6 and 10",
    printed="The noise contributes σ² to the excess risk, for θ in ℝᵈ.",
    true="Noise N(0, σ²I_d) has E‖η‖² = dσ²: the dimension is missing (the slides of 2023 have it, as p). Õ "
    "hides constants and logarithms, not the dimension.",
)
def dimension() -> Demonstration:
    step = Fraction(1, 2)
    excess = {d: d * step**2 / (1 - (1 - step) ** 2) / 2 for d in (1, 100)}  # φ(θ) = ‖θ‖²/2, n = 1, σ = 1
    return Demonstration(
        (("stationary excess risk, d = 1 and 100", ", ".join(str(v) for v in excess.values())),),
        excess[100] == 100 * excess[1],
    )


@erratum(
    "004-appendix-f",
    "004",
    "Proof of Theorem 11 (Appendix F.2), and the utility in Theorems 6 and 11",
    printed="(1/n)Σ_u ε_{u→v} ≤ KTΔ²α/(2σ²); utility Õ(αΔ²d_v/(nμε√λ)).",
    true="Summing Equation (12) over u gives KTΔ²αd_v/(2nσ²): the factor d_v/n is missing. With it, and with "
    "Theorem 10's 1/n, the utility is Õ(αΔ²d_v/(n²με√λ)), which matches a trusted curator up to d_v/√λ; "
    "the printed one does not. (The slides of 2023 have n².)",
)
def appendix_f() -> Demonstration:
    n, inner, degree = 9, 2, 2
    W = powers(gossip(ring(n)), inner)
    mean = sum(share(W[k][w], u) for k in range(inner) for w in (1, n - 1) for u in range(n)) / n
    return Demonstration(
        (
            ("ring of 9, K = 2, T = 1: mean of Equation (12)", str(mean)),
            ("K·T·d_v/n", str(Fraction(inner * degree, n))),
            ("printed, K·T", str(inner)),
        ),
        mean == Fraction(inner * degree, n) < inner,
    )


@erratum(
    "004-theorem11-log",
    "004",
    "Proof of Theorem 11 (Appendix F.2)",
    printed="T = O(κ ln(σ²/n)) iterations reach the precision (σ² + ρ̄²)/n.",
    true="The logarithm is negative for σ² < n, and knows nothing of the start. Theorem 10 asks for T of order "
    "κ·ln(Lμ‖θ⁰ − θ*‖²n/(σ² + ρ̄²)).",
)
def theorem_11_log() -> Demonstration:
    value = math.log(1 / 100)
    return Demonstration((("ln(σ²/n), σ = 1, n = 100", f"{value:.3f}"),), value < 0)


@erratum(
    "004-theorem6",
    "004",
    "Theorems 6 and 11",
    printed="The loss of T iterations is the sum over iterations of Theorem 1's value for one of them.",
    true="What v has not seen of u's gradient stays in the others' models and comes with later messages: later "
    "iterations are not independent given what v saw. Path 0–1–2, one round per iteration, linear losses: "
    "no message of an iteration contains the gradient that 2 computed in it, so the sum is 0 for any T; "
    "but after two iterations 0 has received y₂/3 + x₁ + η₁′.",
)
def theorem_6() -> Demonstration:
    # noises: η₀, η₁, η₂ of iteration 0, then η₁′ of iteration 1; weights 1/3. Party 0 knows η₀.
    first = [Fraction(0), Fraction(1), Fraction(0), Fraction(0)]  # 1 sends its model after its first step
    second = [Fraction(1, 3), Fraction(1, 3), Fraction(1, 3), Fraction(1)]  # the mix of all three, and a new noisy step
    exact = true_factor([first, second], 2, known={0})
    formula = Fraction(0)  # (W⁰)₂₁ = 0 in each iteration
    return Demonstration(
        (("loss of party 2's first gradient, T = 2: formula", str(formula)), ("the same: exact", str(exact))),
        formula < exact,
    )


@erratum(
    "004-collusion-delta",
    "004",
    "Corollaries 3, 4 and 5",
    printed="The losses are α n/(2σ²)·…, α d_V/(εn²√λ) and α/(2σ²), α/σ²·….",
    true="Δ² is missing in all of them, unlike in Corollary 1 and Theorem 4, which they extend: twice the "
    "values with the same noise cost four times as much. (In Corollary 3, w ~ V should read: there is v ∈ "
    "V, not v ∈ 𝒱.)",
)
def collusion_delta() -> Demonstration:
    alpha, sigma = Fraction(2), Fraction(1)
    printed = alpha / (2 * sigma**2)
    true = {
        delta: alpha * delta**2 / (2 * sigma**2) for delta in (Fraction(1), Fraction(2))
    }  # a neighbour's first message
    return Demonstration(
        (
            ("a neighbour's loss, α = 2, σ = 1, Δ = 1 and 2: exact", ", ".join(map(str, true.values()))),
            ("Corollary 5", str(printed)),
        ),
        true[Fraction(2)] > printed,
    )


@erratum(
    "004-corollary4-sigma",
    "004",
    "Corollary 4",
    printed="A mean loss ε for σ² = d_v/(2αε).",
    true="From (15), the mean loss is αΔ²d_VT/(2nσ²), so σ² = αΔ²d_VT/(2nε). The printed σ² has α in the wrong "
    "place and lacks T and n.",
)
def corollary_4_sigma() -> Demonstration:
    n, rounds, alpha, degree, epsilon = 16, 10, Fraction(4), 4, Fraction(1)
    printed = Fraction(degree) / (2 * alpha * epsilon)
    mean = alpha * degree * rounds / (2 * n * printed)
    right = alpha * degree * rounds / (2 * n * epsilon)
    return Demonstration(
        (
            ("n = 16, T = 10, α = 4, d = 4, ε = 1: mean loss with the printed σ²", str(mean)),
            ("with σ² = αΔ²dT/(2nε)", str(alpha * degree * rounds / (2 * n * right))),
        ),
        mean > epsilon,
    )


@erratum(
    "004-corollary5-count",
    "004",
    "Corollary 5",
    printed="Non-neighbours of the coalition lose at most (α/σ²)·Td_V/(n − d_V).",
    true="The mean is over the parties that are neither in V nor its neighbours: n − |V| − d_V of them. Only "
    "|V| = 1 is covered by n − d_V (up to one). With 18 of 20 colluding, one neighbour w and one party u "
    "beyond it, u's only possible edge is to w. If it is there, with probability q, which the coalition "
    "tells by the weights, u's noisy value is known after two rounds; so the factor is at least q.",
)
def corollary_5_count() -> Demonstration:
    n, rounds = 20, 2
    neighbours: list[list[int]] = [[18]] * 18 + [[*range(18), 19], [18]]
    W = powers(gossip(neighbours), rounds)
    exact = true_factor([W[t][18] for t in range(rounds)], 19, known=set(range(18)))
    printed = Fraction(2 * rounds * 1, n - 1)
    return Demonstration(
        (
            ("|V| = 18, d_V = 1, T = 2: printed factor 2T·d_V/(n − d_V)", str(printed)),
            ("exact, given the edge from u to w", str(exact)),
            ("probability of that edge, c = 6: the factor is at least", f"{6 * math.log(n) / n:.3f}"),
            ("parties that the mean is over, n − |V| − d_V", str(n - 18 - 1)),
        ),
        printed < exact * Fraction(89, 100),
    )


@erratum(
    "004-proposition1-order",
    "004",
    "Proposition 1",
    printed="β_t has the parameter P(∃ v ∈ 𝒱, …); |N_t(V)| is of order c|V|ln(n)/n.",
    true="v ranges over V; and the coalition has about q|V|n = c|V|ln(n) neighbours, n times as many.",
)
def proposition_1_order() -> Demonstration:
    n, c, size = 1000, 2, 5
    q = c * math.log(n) / n
    expected = (n - size) * (1 - (1 - q) ** size)
    return Demonstration(
        (
            ("n = 1000, c = 2, |V| = 5: expected |N_t(V)|", f"{expected:.1f}"),
            ("printed order c|V|ln(n)/n", f"{c * size * math.log(n) / n:.3f}"),
            ("c|V|ln(n)", f"{c * size * math.log(n):.1f}"),
        ),
        expected > 1,
    )
