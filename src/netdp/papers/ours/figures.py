"""Figures of our own that no paper has: short walks by a few more links, coalitions, the cost in bytes, finite precision."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from netdp.errors import Unsupported
from netdp.families.gossip.error import SpectralError
from netdp.families.gossip.protocol import Gossip, response
from netdp.families.masked.error import HEADER
from netdp.families.masked.protocol import MaskedSum, random_rings
from netdp.families.shuffle.account.mixing import fewest_rounds, fewest_rounds_for
from netdp.families.shuffle.account.shuffling import curator_heap
from netdp.families.shuffle.plan import plan_rounds
from netdp.families.shuffle.protocol import Shuffle
from netdp.graphs.families import hypercube, ring, with_links
from netdp.graphs.graph import Graph
from netdp.graphs.spectrum import chebyshev_gamma
from netdp.mechanisms.discrete_gaussian import shift_delta
from netdp.numerics.arrays import FloatArray
from netdp.papers.experiment import Experiment, FigureKind, Observation, Panel, Result, ResultTable, Series, Size, near
from netdp.papers.network_shuffling.common import TITLES, graph_of, present
from netdp.papers.runs import Work
from netdp.privacy.clones import shuffled_epsilon
from netdp.privacy.gaussian import gaussian_delta, gaussian_mu
from netdp.privacy.guarantee import Claim
from netdp.protocols.accounting import account
from netdp.protocols.base import Protocol
from netdp.protocols.simulation import simulate

# Ours: one random ring laid over the users, two more links each, shortens the walk by orders of magnitude.
#
# Hops after which the certified ε (ε₀ = 1, δ = 10⁻⁶) is within 1 % of a trusted shuffler's. Proved from the spectral
# gap alone (`separation`), and with `--full` also from return bounds (`plan_rounds`), which need about half as many.


EPSILON0, DELTA, SHARE = 1.0, 1e-6, 0.01

# noted before by the spectral gap for a slightly stricter closeness: without links, with one ring
BEFORE = {"twitch": (155, 70), "facebook-pages": (6966, 493), "deezer": (10_133, 205), "enron": (8791, 206)}

QUICK = ("twitch",)


@lru_cache(maxsize=8)
def largest_separation(n: int) -> float:
    """The largest separation (to 1 %) at which n users' ε is within SHARE of a trusted shuffler's; the ring has that many users."""
    target = (1 + SHARE) * shuffled_epsilon(n - 1, EPSILON0, DELTA)
    probe = Shuffle(ring(n), 1, EPSILON0, laziness=0.5)
    low, high = -10.0, -4.0  # log₁₀
    for _ in range(11):
        middle = (low + high) / 2
        low, high = (middle, high) if curator_heap(probe, 10**middle).epsilon(DELTA) <= target else (low, middle)
    return float(10**low)


def hops(item: list[Any]) -> dict[str, float]:
    """[data set, rings, whether also by return bounds]."""
    name, rings, careful = item
    graph = with_links(graph_of(name), rings, seed=0)
    most = largest_separation(graph.n)
    out = {"degree": float(graph.degrees.mean()), "gap": float(fewest_rounds(graph, 0.0, most).rounds)}
    if careful:
        out["returns"] = float(plan_rounds(graph, EPSILON0, DELTA, SHARE).protocol.rounds)
    return out


def run_ours_links(size: Size, work: Work) -> Result:
    full = size is Size.FULL
    names, missing = present(BEFORE if full else QUICK)
    rings = [0, 1, 2, 4]
    found = work.by_key(hops, {(name, k): [name, k, full] for name in names for k in rings})
    findings = []
    for name in names:
        plain, linked = (found[name, k]["gap"] for k in (0, 1))
        said = BEFORE[name]
        findings.append(
            Observation(
                f"{TITLES[name]}: hops without links, and with one ring",
                bool(np.allclose([plain, linked], said, rtol=0.12)) and linked < 0.5 * plain,
                certified=f"{plain:.0f} → {linked:.0f}",
                claim=Claim.UPPER,
                note=f"{said[0]:,} → {said[1]} noted before, for a stricter closeness; by return bounds "
                + (
                    f"{found[name, 0]['returns']:.0f} → {found[name, 1]['returns']:.0f}"
                    if "returns" in found[name, 0]
                    else "about half as many before"
                ),
            )
        )
    best = max(names, key=lambda name: found[name, 0]["gap"] / found[name, 1]["gap"])
    findings.append(
        Observation(
            f"{TITLES[best]}: hops saved by one ring, as a factor",
            found[best, 0]["gap"] > 2 * found[best, 1]["gap"],
            certified=found[best, 0]["gap"] / found[best, 1]["gap"],
            note="of the two upper bounds; two more links for everybody, public, drawn after the parties are known",
        )
    )
    return Result(
        settings={"ε₀": EPSILON0, "δ": DELTA, "within": SHARE, "rings": rings, "seed": 0},
        findings=tuple(findings),
        panels=(
            Panel(
                "Hops to a trusted shuffler's ε",
                "random rings laid over the users",
                "hops until ε is within 1 %",
                tuple(
                    Series(TITLES[name], rings, [found[name, k]["gap"] for k in rings], FigureKind.OTHER)
                    for name in names
                ),
                log_y=True,
                limits=(30, 2e4),
            ),
        ),
        tables=(
            ResultTable(
                "Hops",
                ("network", "rings", "mean degree", "by the spectral gap", "by return bounds"),
                tuple(
                    (TITLES[name], k, one["degree"], int(one["gap"]), int(one["returns"]) if "returns" in one else "")
                    for (name, k), one in found.items()
                ),
            ),
        ),
        missing=missing,
    )


OURS_LINKS = Experiment(
    id="ours-links",
    place="Random links",
    title="what one random ring buys",
    shows="Slow graphs, not protocols, make decentralization expensive: one random ring over the users mends it.",
    run=run_ours_links,
    quick="3 s; Twitch, by the spectral gap alone",
    full="5 min; four networks; one, two and four rings, and return bounds for all",
)


# What a coalition of growing size learns about the worst off of the others: masked sums, masked and plain gossip, local
# DP.
#
# All on the hypercube 2⁶. The loss is the factor of μ²: 1 is local DP's, 1/(n − c) that of a curator whose noise c
# parties know. *Left:* the coalition is fixed before masks are drawn, at random. *Right:* the worst there is, chosen by
# somebody who knows both graphs: who has all neighbours of a party in the mask graph of a protocol has cut it off.


DIMENSION, RINGS, KAPPA, ROUNDS = 6, 3, 100.0, 25

N = 2**DIMENSION

SIZES = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32)


def protocol(kind: str, seed: int = 0) -> Protocol:
    """σ = 1; `seed` draws the rings along which pads are shared."""
    graph = hypercube(DIMENSION)
    if kind == "complete":
        return MaskedSum(graph, sigma=1.0)
    if kind == "rings":
        return MaskedSum(graph, sigma=1.0, masks=random_rings(N, RINGS, seed))
    return Gossip(graph, rounds=ROUNDS, sigma=1.0, masks=KAPPA if kind == "masked" else 0.0)


KINDS = ("complete", "rings", "masked", "plain")


def drawn(item: Any) -> list[float]:
    """Worst factor and mean factor of a coalition of so many, drawn at random."""
    kind, members, seed = item
    coalition = np.random.default_rng([seed, members]).choice(N, members, replace=False).tolist()
    factor = account(protocol(kind, seed), coalition).factor
    assert factor is not None
    return [float(np.nanmax(factor)), float(np.nanmean(factor))]


def worst(kind: str, members: int) -> float:
    """The worst factor of any coalition of so many, or a proved upper bound on it."""
    if kind == "plain":  # a neighbour reads the first message, and no loss is above local DP's
        return drawn([kind, 1, 0])[0]
    if kind == "rings":  # all partners of somebody: local DP's loss, and none is above that
        pads = random_rings(N, RINGS, 0)
        few = int(pads.degrees.argmin())
        if members >= pads.degrees[few]:
            factor = account(protocol(kind), pads.neighbors(few).tolist()).factor
            assert factor is not None
            return float(factor[few])
    return account(protocol(kind), colluders=members).worst


def run_coalitions(size: Size, work: Work) -> Result:
    seeds = range(5 if size is Size.QUICK else 100)
    items = [[kind, members, seed] for kind in KINDS for members in SIZES for seed in seeds]
    random = np.array(work.map(drawn, items)).reshape(len(KINDS), len(SIZES), len(seeds), 2)
    bad = [[worst(kind, members) for members in SIZES] for kind in KINDS]
    ideal = [1 / (N - members) for members in SIZES]
    middle = np.median(random[..., 0], axis=2)
    low, high = random[..., 0].min(axis=2), random[..., 0].max(axis=2)
    quarter, half = SIZES.index(16), SIZES.index(32)
    cut_off = float((random[1, quarter, :, 0] > 0.2).mean())
    cut = {
        kind: next((c for c, factor in zip(SIZES, factors, strict=True) if factor > 0.99), None)
        for kind, factors in zip(KINDS, bad, strict=True)
    }
    findings = (
        Observation(
            "masked sum, pads between all: worst coalition of 1 … 32, over 1/(n − c)",
            bool(np.allclose(bad[0], ideal, rtol=1e-9)),
            formula=ideal[half],
            certified=bad[0][half],
            claim=Claim.EXACT,
            note="the ideal, whoever colludes; the last, half of all, is shown",
        ),
        Observation(
            "masked gossip, a random quarter: least, median, largest over the curator's",
            bool(1.0 < middle[2, quarter] / ideal[quarter] < 2.5),
            certified=" / ".join(f"{part[2, quarter] / ideal[quarter]:.3g}" for part in (low, middle, high)),
            claim=Claim.EXACT,
            note=f"κ = {KAPPA:g}, {ROUNDS} rounds",
        ),
        Observation(
            "size from which the worst coalition cuts somebody off: masked gossip",
            cut["masked"] == DIMENSION,
            certified=cut["masked"],
            claim=Claim.EXACT,
            note="all six neighbours; five leave a mask",
        ),
        Observation(
            f"the same: pads along {RINGS} random rings, known to the coalition",
            cut["rings"] == int(random_rings(N, RINGS, 0).degrees.min()),
            certified=cut["rings"],
            claim=Claim.EXACT,
            note="all partners of who has fewest; a coalition fixed before the rings were drawn hardly ever does (left)",
        ),
        Observation(
            f"pads along {RINGS} random rings, a quarter fixed before: share of {len(seeds)} draws that cut somebody off",
            cut_off < 0.15 and bool(near(middle[1, quarter], ideal[quarter], 1e-9)),
            certified=cut_off,
            claim=Claim.ESTIMATE,
            note="else the curator's loss exactly",
        ),
        Observation(
            "plain gossip, one party: worst and mean factor",
            bool(high[3, 0] > 0.999 and 0.1 < random[3, 0, :, 1].mean() < 0.6),
            certified=f"{high[3, 0]:.3g} / {random[3, 0, :, 1].mean():.3g}",
            claim=Claim.EXACT,
            note="a neighbour sees all; half the parties together know nearly everything about everybody",
        ),
    )
    names = ("masked sum, all pads", f"masked sum, {RINGS} rings", "masked gossip", "plain gossip, worst")
    marks = (FigureKind.CERTIFIED, FigureKind.OTHER, FigureKind.MEASURED, FigureKind.PUBLISHED)
    mean = Series("plain gossip, mean", SIZES, random[3, ..., 1].mean(axis=1))
    both = (
        Series("local DP", SIZES, np.ones(len(SIZES)), FigureKind.LOCAL),
        Series("trusted curator", SIZES, ideal, FigureKind.CENTRAL),
    )

    def panel(title: str, series: Iterable[Series], band: str = "") -> Panel:
        axes = "colluding parties c of 64", "loss (1 = local DP)"
        return Panel(title, *axes, (*series, *both), log_x=True, log_y=True, limits=(0.012, 1.3), band=band)

    by_chance = [Series(names[k], SIZES, middle[k], marks[k], low[k], high[k]) for k in range(4)]
    by_choice = [Series(names[k], SIZES, bad[k], marks[k]) for k in range(4)]
    panels = (
        panel("Colluders drawn at random", (*by_chance, mean), "least to largest draw"),
        panel("The worst colluders, graphs known", by_choice),
    )
    rows = tuple(
        (c, *(float(middle[k, i]) for k in range(4)), *(bad[k][i] for k in range(4)), ideal[i])
        for i, c in enumerate(SIZES)
    )
    heads = ("all pads", "rings", "masked gossip", "plain gossip")
    return Result(
        settings={"graph": "hypercube 2⁶", "κ": KAPPA, "rounds": ROUNDS, "rings": RINGS, "draws": len(seeds)},
        findings=findings,
        panels=panels,
        tables=(
            ResultTable(
                "Loss about the worst off (1 = local DP)",
                ("colluders", *(f"{h}, random" for h in heads), *(f"{h}, worst" for h in heads), "curator"),
                rows,
            ),
        ),
    )


COALITIONS = Experiment(
    id="ours-coalitions",
    place="Coalitions",
    title="what a coalition of growing size learns",
    shows="Pads between all pairs face any coalition with the honest parties' noise; masks between neighbours most.",
    run=run_coalitions,
    quick="6 s; 5 draws of each size",
    full="2 min; 100 draws",
)


# Bytes that a party sends and rounds until all know the mean, against the number of parties, on hypercubes.
#
# One number per party; every message has a header besides (key, digest, signature: `netdp.families.masked.error`).
#
#     masked sum, flood     all y to everybody: rounds = the diameter k, copies as counted there
#     masked sum, average   Chebyshev averaging until n·mean is exact in doubles; refused where doubles do not do (n > 1,024)
#     masked gossip         masks κ = 10·n/k, and rounds until they and the values' differences add less than 2 % to the
#                           curator's error at ε = 1, δ = 10⁻⁶. The hypercube has k + 1 different eigenvalues, 1 − 2j/(k+1),
#                           so this is exact for a million parties.
#     token                 five visits each, one message at a time
#     network shuffle       reports walk (half of the steps they stay) until everybody's crowd is 99 %: the least
#                           probability of a place over the largest, at the far corner and at the start
#
# Held against counted messages: the transcript of a simulated run, and a flood that is played through.


COST_EPSILON = 1.0

VISITS, NUMBER, WORD = 5, 8, 4

CROWD = 0.99

SLACK = 0.02

_COUNTED = 12  # dimension up to which a flood's copies are counted on the graph itself

_MOST_ROUNDS = 2000


def gossip_rounds(k: int) -> int:
    """Rounds of masked, accelerated gossip on the hypercube 2ᵏ, from its k + 1 different eigenvalues.

    >>> gossip_rounds(6)
    12
    """
    n = 2**k
    numbers = np.arange(k + 1)
    eigenvalues = 1.0 - 2.0 * numbers / (k + 1)
    many = np.array([float(math.comb(k, j)) for j in range(k + 1)]) / n
    target = 1.0 / (n * float(gaussian_mu(COST_EPSILON, DELTA))) ** 2
    gamma = chebyshev_gamma(1.0 - float(np.abs(eigenvalues[1:]).max()))
    states = response(lambda x: eigenvalues * x, np.ones(k + 1), _MOST_ROUNDS, gamma)
    for rounds, state in enumerate(states):
        left = state**2
        noise = n * float((many * left * (1.0 + 10 * n / k * 2.0 * numbers)).sum()) * target
        if rounds and noise + float(left[1:].max()) / 4 <= target * (1 + SLACK) ** 2:
            return rounds
    raise Unsupported(f"gossip on the hypercube 2^{k} needs more than {_MOST_ROUNDS} rounds")


def shuffle_rounds(k: int) -> int:
    """Rounds until the crowd is CROWD: the least over the largest probability of a place, both from the k + 1 eigenvalues.

    >>> shuffle_rounds(6)
    39
    """
    many = np.array([float(math.comb(k, j)) for j in range(k + 1)])
    signs = (-1.0) ** np.arange(k + 1)
    for rounds in range(1, _MOST_ROUNDS):
        powers = many * (1.0 - np.arange(k + 1) / k) ** rounds
        if float((signs * powers).sum()) >= CROWD * float(powers.sum()):
            return rounds
    raise Unsupported(f"reports on the hypercube 2^{k} need more than {_MOST_ROUNDS} rounds")


def flood_copies(k: int) -> int:
    """Copies of a y that a party sends, at most: `netdp.families.masked.error.copies`, on a graph without triangles.

    >>> from netdp.families.masked.error import copies
    >>> flood_copies(4) == int(copies(hypercube(4)).max())
    True
    """
    n = 1 << k
    return (n - 1) * k - k * (k - 1) - (n - 1 - k - k * (k - 1) // 2)


def flooded(graph: Graph) -> tuple[int, int]:
    """A flood played through: rounds, and messages of all parties. Nobody sends a y to who sent it, or hears its author."""
    near_to = [set(graph.neighbors(u).tolist()) for u in range(graph.n)]
    messages, longest = 0, 0
    for author in range(graph.n):
        known, new, rounds = {author}, {author: set[int]()}, 0
        while new:
            came: dict[int, set[int]] = {}
            for u, senders in new.items():
                skipped = senders | (set() if u == author else near_to[author] | {author})
                for w in near_to[u] - skipped:
                    came.setdefault(w, set()).add(u)
                    messages += 1
            new = {w: senders for w, senders in came.items() if w not in known}
            known |= set(new)
            rounds += bool(new)
        longest = max(longest, rounds)
    return longest, messages


def average_rounds(k: int) -> int | None:
    """Rounds of averaging, None where it is not exact."""
    protocol = MaskedSum(hypercube(k), sigma=4.0 / math.sqrt(2.0**k), spread="average")
    try:
        return protocol.rounds
    except Unsupported:
        return None


def costs(k: int) -> dict[str, Any]:
    """(bytes of a party, rounds) of every way."""
    n = 2**k
    gossip, hops = gossip_rounds(k), shuffle_rounds(k)
    averaging = average_rounds(k) if k <= _COUNTED else None
    return {
        "flood": [flood_copies(k) * (WORD + HEADER), k],
        "average": None if averaging is None else [averaging * k * (NUMBER + HEADER), averaging],
        "masked gossip": [gossip * k * (NUMBER + HEADER), gossip],
        "token": [VISITS * (NUMBER + HEADER), VISITS * n],
        "shuffle": [hops / 2 * (NUMBER + HEADER), hops],
    }


NAMES = {
    "flood": ("masked sum, flood", FigureKind.CERTIFIED),
    "average": ("masked sum, average", FigureKind.OTHER),
    "masked gossip": ("masked gossip", FigureKind.MEASURED),
    "token": ("token walk", FigureKind.LOCAL),
    "shuffle": ("network shuffle", FigureKind.CENTRAL),
}


def _messages(protocol: Any) -> tuple[int, int]:
    """Messages and rounds of a simulated run."""
    run = simulate(protocol, np.linspace(0, 1, protocol.n), seed=0)
    return len(run.transcript), run.transcript.rounds


def run_cost(size: Size, work: Work) -> Result:
    dimensions = list(range(3, 21))
    found = work.by_key(costs, dimensions)
    small = hypercube(6 if size is Size.QUICK else 8)
    k, n = small.n.bit_length() - 1, small.n
    rounds = gossip_rounds(k)
    gossip = Gossip(small, rounds=rounds, sigma=1.0, masks=10.0 * n / k, accelerated=True)
    gossip_sent, gossip_took = _messages(gossip)
    factor = account(gossip, [0]).worst * (n - 1)
    averaging = MaskedSum(small, sigma=4.0 / math.sqrt(n), spread="average")
    average_sent, average_took = _messages(averaging)
    flood_took, flood_sent = flooded(small)
    traces = SpectralError(small, rounds=rounds).traces(True)
    share = n * float(traces.squared_error(10.0 * n / k, 0.0)[rounds])
    walk = fewest_rounds_for(small, 0.5, CROWD).rounds
    kilo = found[10]
    findings = (
        Observation(
            f"masked gossip, n = {n}: messages of a simulated run over predicted",
            gossip_sent == rounds * n * k
            and gossip_took == rounds
            and 1.0 <= share <= (1 + SLACK) ** 2
            and 1.0 <= factor < 1.25,
            formula=rounds * n * k,
            certified=gossip_sent,
            claim=Claim.EXACT,
            note=f"{rounds} rounds; masks add {100 * (math.sqrt(share) - 1):.2g} % to the error, the worst loss is "
            f"{factor:.3f} times the curator's",
        ),
        Observation(
            f"masked sum by averaging, n = {n}: messages of a simulated run",
            average_sent == averaging.rounds * n * k and average_took == averaging.rounds,
            formula=averaging.rounds * n * k,
            certified=average_sent,
            claim=Claim.EXACT,
            note=f"{average_took} rounds to the exact sum",
        ),
        Observation(
            f"masked sum by flooding, n = {n}: messages of a flood played through",
            flood_took == k and 0.5 * flood_copies(k) * n < flood_sent <= flood_copies(k) * n,
            formula=flood_copies(k) * n,
            certified=flood_sent,
            claim=Claim.UPPER,
            note=f"{flood_took} rounds, the diameter; the prediction is an upper bound",
        ),
        Observation(
            f"rounds of a report's walk, n = {n}",
            walk == shuffle_rounds(k),
            formula=shuffle_rounds(k),
            certified=walk,
            claim=Claim.EXACT,
            note="from the eigenvalues, and by powers of the transition matrix",
        ),
        Observation(
            "n = 1,024: bytes of a party by flooding over masked gossip",
            kilo["flood"][0] > 5 * kilo["masked gossip"][0],
            certified=kilo["flood"][0] / kilo["masked gossip"][0],
            claim=Claim.UPPER,
            note="flooding is for hundreds of parties, or for few rounds",
        ),
        Observation(
            "a million parties: rounds of masked gossip, and of a token",
            found[20]["masked gossip"][1] < 200 and found[20]["token"][1] == VISITS * 2**20,
            certified=f"{found[20]['masked gossip'][1]} / {found[20]['token'][1]:,}",
            claim=Claim.EXACT,
            note="a token sends least and takes longest",
        ),
    )

    def panel(title: str, y: str, what: int) -> Panel:
        series = []
        for key, (name, kind) in NAMES.items():
            known = [(2**d, found[d][key][what]) for d in dimensions if found[d][key] is not None]
            series.append(Series(name, [x for x, _ in known], [value for _, value in known], kind))
        return Panel(title, "parties n", y, tuple(series), log_x=True, log_y=True)

    return Result(
        settings={"graph": "hypercubes", "header of a message in bytes": HEADER, "visits of the token": VISITS},
        findings=findings,
        panels=(panel("Traffic", "bytes a party sends", 0), panel("Time", "rounds", 1)),
        tables=(
            ResultTable(
                "Bytes a party sends / rounds",
                ("n", *(name for name, _ in NAMES.values())),
                tuple(
                    (
                        2**d,
                        *("–" if found[d][key] is None else "{:,.0f} / {:,}".format(*found[d][key]) for key in NAMES),
                    )
                    for d in dimensions
                ),
            ),
        ),
    )


COST = Experiment(
    id="ours-cost",
    place="Cost",
    title="bytes and rounds against the number of parties",
    shows="Gossip stays at kilobytes and some dozen rounds up to a million parties; flooding is for few, a token for the patient.",
    run=run_cost,
    quick="3 s; messages counted at n = 64",
    full="10 s; messages counted at n = 256",
)


# Finite precision: an average of noisy numbers on a grid tells more than the analysis in real numbers allows.
#
# Four hidden parties hold whole numbers of grid steps with discrete Gaussian noise y_i, and somebody sees y₁/5 + y₂/7 +
# y₃/11 + y₄/13 once, in exact arithmetic. In real numbers the loss about party 4 is factor 13⁻²/(5⁻² + 7⁻² + 11⁻² +
# 13⁻²) = .079 of local DP's. But multiplied by 5005 what is seen is a whole number, and its residue modulo 13 is that
# of 385·y₄: where the noise is no wider than 13 steps, y₄ itself shows. The law of what is seen is enumerated here, so
# δ is exact up to rounding and tails beyond 9 deviations (10⁻¹⁸). After T rounds of gossip the denominators are T-th
# powers: no grid is fine enough by itself.
#
# Proof of what helps: docs/proofs/masked.md#masked-sum (masks modulo q), or fresh noise before every send.


PRIMES = (5, 7, 11, 13)

PRECISION_EPSILON = 0.5

FACTOR = (1 / PRIMES[-1]) ** 2 / sum(1 / p**2 for p in PRIMES)

# σ in grid steps → δ on the project's page on the mathematics, and its digits
PRINTED = {2: (0.053, 3), 4: (1.5e-3, 4), 8: (8.64e-6, 8), 16: (8.6231e-6, 10)}


def real_delta() -> float:
    """δ(0.5) in real numbers, values Δ = σ/2 apart.

    >>> f"{real_delta():.4e}"
    '8.6231e-06'
    """
    return float(gaussian_delta(math.sqrt(FACTOR) / 2, PRECISION_EPSILON))


def laws(steps: int) -> tuple[FloatArray, FloatArray, int]:
    """The law of 5005·(y₁/5 + y₂/7 + y₃/11 + y₄/13) for the two values of party 4, σ = `steps`, and where 0 stands."""
    weights = [math.prod(PRIMES) // p for p in PRIMES]
    reach = 9 * steps
    one = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2.0 * steps**2))
    one /= one.sum()
    law = np.ones(1)
    for weight in weights:
        grown = np.zeros(len(law) + 2 * reach * weight)
        for place, p in enumerate(one.tolist()):
            grown[place * weight : place * weight + len(law)] += p * law
        law = grown
    shift = weights[3] * (steps // 2)
    return np.append(np.zeros(shift), law), np.append(law, np.zeros(shift)), len(law) // 2


def delta_of_an_average(steps: int) -> float:
    """δ(0.5) about party 4 from y₁/5 + y₂/7 + y₃/11 + y₄/13 in exact arithmetic, values Δ = σ/2 apart, σ = `steps`.

    >>> f"{delta_of_an_average(2):.3f}"
    '0.053'
    """
    after, before, _ = laws(steps)
    return float(np.maximum(after - math.exp(PRECISION_EPSILON) * before, 0.0).sum())


def told(steps: int, points: int) -> tuple[FloatArray, FloatArray]:
    """What is seen, in units of the values, and its privacy loss, at points drawn from its law by quantiles."""
    after, before, middle = laws(steps)
    places = np.unique(np.searchsorted(np.cumsum(after), np.linspace(0.01, 0.99, points)))
    places = places[(after[places] > 0) & (before[places] > 0)]
    return (places - middle) / math.prod(PRIMES) / steps, np.log(after[places] / before[places])


def run_precision(size: Size, work: Work) -> Result:
    grids = [2, 4, 6, 8, 16] if size is Size.QUICK else [2, 4, 6, 8, 10, 12, 14, 16, 20, 24]
    found = work.by_key(delta_of_an_average, grids)
    real = real_delta()
    local = {steps: float(shift_delta(steps**2, steps // 2, [PRECISION_EPSILON])[0]) for steps in grids}
    findings = [
        Observation(
            f"δ at ε = 0.5 for σ = {steps} grid steps",
            round(found[steps], digits) == printed and found[steps] > real * (1.5 if steps < 8 else 1 - 1e-8),
            formula=real,
            certified=found[steps],
            claim=Claim.EXACT,
            note=f"maths page: {printed:g}"
            + ("; as bad as local DP: the residue modulo 13 is read" if steps == 2 else ""),
        )
        for steps, (printed, digits) in PRINTED.items()
    ]
    findings.append(
        Observation(
            "local DP on the same grid, σ = 2",
            near(found[2], local[2], 0.03),
            certified=local[2],
            claim=Claim.EXACT,
            note="nothing is left of the amplification",
        )
    )
    coarse, fine = told(2, 700), told(16 if size is Size.FULL else 8, 60)
    slope = math.sqrt(FACTOR) / 2  # μ: the loss is a line in what is seen
    ends = np.array([coarse[0].min(), coarse[0].max()])
    spread = math.sqrt(sum(1 / p**2 for p in PRIMES))
    line = slope / spread * (ends - 0.25 / 13)
    panels = (
        Panel(
            "Seen once: y₁/5 + y₂/7 + y₃/11 + y₄/13",
            "noise σ in grid steps",
            "δ at ε = 0.5 about party 4",
            (
                Series("truth on the grid", grids, [found[g] for g in grids], FigureKind.CERTIFIED),
                Series("analysis in real numbers", grids, [real] * len(grids), FigureKind.PUBLISHED),
                Series("local DP", grids, [local[g] for g in grids], FigureKind.LOCAL),
            ),
            log_y=True,
            limits=(3e-6, 0.2),
        ),
        Panel(
            "What one sight tells",
            "what is seen, in σ",
            "privacy loss about party 4",
            (
                Series("σ = 2 grid steps", coarse[0], coarse[1], FigureKind.CERTIFIED, points=True),
                Series("analysis in real numbers", ends, line, FigureKind.PUBLISHED),
                Series("σ = 8 grid steps", fine[0], fine[1], FigureKind.MEASURED, points=True),
            ),
        ),
    )
    return Result(
        settings={"Δ": "σ/2", "ε": PRECISION_EPSILON, "factor in real numbers": FACTOR},
        findings=tuple(findings),
        panels=panels,
        tables=(
            ResultTable(
                "δ at ε = 0.5",
                ("σ in grid steps", "truth", "real numbers", "local DP"),
                tuple((g, found[g], real, local[g]) for g in grids),
            ),
        ),
    )


PRECISION = Experiment(
    id="ours-precision",
    place="Finite precision",
    title="averages on a grid tell more than real numbers do",
    shows="On a coarse grid the amplified loss of an average is false: the residues show every number.",
    run=run_precision,
    quick="2 s",
    full="10 s; more and finer grids",
)
