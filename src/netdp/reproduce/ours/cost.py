"""Bytes that a party sends and rounds until all know the mean, against the number of parties, on hypercubes.

One number per party; every message has a header besides (key, digest, signature: `netdp.utility.descent_cost`).

    masked sum, flood     all y to everybody: rounds = the diameter k, copies as counted there
    masked sum, average   Chebyshev averaging until n·mean is exact in doubles; refused where doubles do not do (n > 1,024)
    masked gossip         masks κ = 10·n/k, and rounds until they and the values' differences add less than 2 % to the
                          curator's error at ε = 1, δ = 10⁻⁶. The hypercube has k + 1 different eigenvalues, 1 − 2j/(k+1),
                          so this is exact for a million parties.
    token                 five visits each, one message at a time
    network shuffle       reports walk (half of the steps they stay) until everybody's crowd is 99 %: the least
                          probability of a place over the largest, at the far corner and at the start

Held against counted messages: the transcript of a simulated run, and a flood that is played through.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netdp.accounting import account
from netdp.accounting.shuffle.mixing import fewest_rounds_for
from netdp.errors import Unsupported
from netdp.graphs import Graph, hypercube
from netdp.graphs.spectrum import chebyshev_gamma
from netdp.privacy import Claim, gaussian_mu
from netdp.protocols import Gossip, MaskedSum, response
from netdp.simulate import simulate
from netdp.utility.descent_cost import HEADER
from netdp.utility.spectral import SpectralError

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size, Table
from ..running import Work

EPSILON, DELTA = 1.0, 1e-6
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
    target = 1.0 / (n * float(gaussian_mu(EPSILON, DELTA))) ** 2
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
    """Copies of a y that a party sends, at most: `netdp.utility.descent_cost.copies`, on a graph without triangles.

    >>> from netdp.utility.descent_cost import copies
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
    "flood": ("masked sum, flood", Kind.CERTIFIED),
    "average": ("masked sum, average", Kind.OTHER),
    "masked gossip": ("masked gossip", Kind.MEASURED),
    "token": ("token walk", Kind.LOCAL),
    "shuffle": ("network shuffle", Kind.CENTRAL),
}


def _messages(protocol: Any) -> tuple[int, int]:
    """Messages and rounds of a simulated run."""
    run = simulate(protocol, np.linspace(0, 1, protocol.n), seed=0)
    return len(run.transcript), run.transcript.rounds


def run(size: Size, work: Work) -> Result:
    dimensions = list(range(3, 21))
    found = dict(zip(dimensions, work.map(costs, dimensions), strict=True))
    small = hypercube(6 if size is Size.QUICK else 8)
    k, n = small.n.bit_length() - 1, small.n
    rounds = gossip_rounds(k)
    gossip = Gossip(small, rounds=rounds, sigma=1.0, masks=10.0 * n / k, accelerated=True)
    gossip_sent, gossip_took = _messages(gossip)
    told = account(gossip, [0]).factor
    assert told is not None
    factor = float(np.nanmax(told)) * (n - 1)
    averaging = MaskedSum(small, sigma=4.0 / math.sqrt(n), spread="average")
    average_sent, average_took = _messages(averaging)
    flood_took, flood_sent = flooded(small)
    traces = SpectralError(small, rounds=rounds).traces(True)
    share = n * float(traces.squared_error(10.0 * n / k, 0.0)[rounds])
    walk = fewest_rounds_for(small, 0.5, CROWD).rounds
    kilo = found[10]
    findings = (
        Finding(
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
        Finding(
            f"masked sum by averaging, n = {n}: messages of a simulated run",
            average_sent == averaging.rounds * n * k and average_took == averaging.rounds,
            formula=averaging.rounds * n * k,
            certified=average_sent,
            claim=Claim.EXACT,
            note=f"{average_took} rounds to the exact sum",
        ),
        Finding(
            f"masked sum by flooding, n = {n}: messages of a flood played through",
            flood_took == k and 0.5 * flood_copies(k) * n < flood_sent <= flood_copies(k) * n,
            formula=flood_copies(k) * n,
            certified=flood_sent,
            claim=Claim.UPPER,
            note=f"{flood_took} rounds, the diameter; the prediction is an upper bound",
        ),
        Finding(
            f"rounds of a report's walk, n = {n}",
            walk == shuffle_rounds(k),
            formula=shuffle_rounds(k),
            certified=walk,
            claim=Claim.EXACT,
            note="from the eigenvalues, and by powers of the transition matrix",
        ),
        Finding(
            "n = 1,024: bytes of a party by flooding over masked gossip",
            kilo["flood"][0] > 5 * kilo["masked gossip"][0],
            certified=kilo["flood"][0] / kilo["masked gossip"][0],
            claim=Claim.UPPER,
            note="flooding is for hundreds of parties, or for few rounds",
        ),
        Finding(
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
            Table(
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


EXPERIMENT = Experiment(
    id="ours-cost",
    paper="ours",
    place="Cost",
    title="bytes and rounds against the number of parties",
    shows="Gossip stays at kilobytes and some dozen rounds up to a million parties; flooding is for few, a token for the patient.",
    run=run,
    quick="3 s; messages counted at n = 64",
    full="10 s; messages counted at n = 256",
)
