"""What several of Muffliato's figures share: gossip and its losses, Muffliato-GD on the housing table, the Facebook ego graphs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.families.baselines.protocol import CentralDescent
from netdp.families.gossip.account.descent import loss_energy
from netdp.families.gossip.descent import GossipDescent
from netdp.families.gossip.protocol import Gossip
from netdp.graphs.families import erdos_renyi, geometric, grid, hypercube
from netdp.graphs.graph import Graph
from netdp.graphs.named import dataset, datasets
from netdp.graphs.spectrum import spectral_gap
from netdp.learn.tables import table
from netdp.models.parties import LogisticParties, accuracy
from netdp.numerics.arrays import FloatArray
from netdp.papers.comparison import Between, Comparison, Ordered
from netdp.papers.drawing import COLOURS_OF_LOSS, WIDTH
from netdp.papers.experiment import FigureKind, Panel, Series
from netdp.papers.formulas.muffliato import theorem1_pairwise, theorem12
from netdp.protocols.accounting import account
from netdp.protocols.training import train
from netdp.report.style import RED

# The number of rounds, losses by distance, a network drawn in colours.
#
# Losses are factors: multiples of local DP's αΔ²/(2σ²). Published ones are clipped at 1 in pictures, as in the paper:
# no view costs more than local DP.


# Fresh noise before every send, in all a tenth of the initial variance: the answer's variance grows by at most 10 %.
REFRESH = 0.1


def rounds_to_converge(graph: Graph) -> int:
    """Theorem 2's T for σ = 1 and values of variance at most 1: ⌈ln(n)/√λ⌉.

    >>> from netdp import graphs
    >>> rounds_to_converge(graphs.hypercube(11))
    19
    """
    return math.ceil(math.log(graph.n) / math.sqrt(spectral_gap(graph)))


def connected_erdos_renyi(n: int, seed: int) -> Graph:
    """A graph of parameter ln(n)/n, drawn again until it is connected, as the authors do; about 1/e of the draws are."""
    rng = np.random.default_rng(seed)
    while True:
        graph = erdos_renyi(n, math.log(n) / n, rng)
        if graph.is_connected:
            return graph


def graph_of(name: str, power: int, seed: int = 0) -> Graph:
    """One of the four synthetic graphs, of about 2^power nodes; `seed` draws the Erdős–Rényi graph."""
    n = 2**power
    if name == "exponential":
        return hypercube(power)
    if name == "Erdős–Rényi":
        return connected_erdos_renyi(n, seed)
    if name == "grid":
        side = round(n**0.5)
        return grid(side, side)
    return connected_geometric(n, 0.07 * (2048 / n) ** 0.5)


def connected_geometric(n: int, radius: float) -> Graph:
    """The first random geometric graph of this radius that is connected, by seeds from 1 on."""
    return next(graph for seed in count(1) if (graph := geometric(n, radius, seed)).is_connected)


def factors(
    graph: Graph, rounds: int, observer: int, *, method: str = "certified", refresh: float = 0.0, masks: float = 0.0
) -> FloatArray:
    """What the observer learns of every party, as multiples of local DP's loss; nan at the observer."""
    loss = account(Gossip(graph, rounds=rounds, sigma=1.0, refresh=refresh, masks=masks), [observer], method=method)
    assert loss.factor is not None
    return loss.factor


def three_losses(graph: Graph, rounds: int, observer: int, *, slow: bool = False, fresh: bool = True) -> dict[str, Any]:
    """What the observer learns of every party: by Theorem 1, truly (`slow`: at least), and with fresh noise, or None."""
    return {
        "published": factors(graph, rounds, observer, method="published"),
        "true": at_least(graph, rounds, observer) if slow else factors(graph, rounds, observer),
        "refreshed": factors(graph, rounds, observer, refresh=REFRESH) if fresh else None,
    }


def at_least(graph: Graph, rounds: int, observer: int, most: int = 400) -> FloatArray:
    """A lower bound on the exact factors, for graphs so slow that the exact ones take hours; nan at the observer.

    The exact factor of u is its leverage score in the space of all messages, spanned by W′ᵗe_w for the neighbours w, W′
    without the observer. Any part of that space gives less. Directions that rounding could have made (a millionth of
    their vector left after the others are taken out) are dropped, and only so many neighbours are followed that `most`
    directions last for all rounds.

    >>> from netdp import graphs
    >>> at_least(graphs.ring(9), 2, 0).round(6).tolist()
    [nan, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    """
    W = Gossip(graph, rounds=1, sigma=1.0).matrix
    neighbours = graph.neighbors(observer)[: max(1, most // rounds)]
    block = np.zeros((graph.n, len(neighbours)))
    block[neighbours, np.arange(len(neighbours))] = 1.0
    basis = np.zeros((graph.n, most))
    found = 0
    for t in range(rounds):
        if t:
            block = W @ block
            block[observer] = 0.0
        kept = []
        for vector in block.T:
            size = float(np.linalg.norm(vector))
            for _ in range(2):
                vector = vector - basis[:, :found] @ (basis[:, :found].T @ vector)
            left = float(np.linalg.norm(vector))
            if left > 1e-6 * size and found < most:
                basis[:, found] = vector / left
                kept.append(basis[:, found])
                found += 1
        if not kept:
            break
        block = np.column_stack(kept)
    scores: FloatArray = np.asarray((basis[:, :found] ** 2).sum(axis=1))
    scores[observer] = np.nan
    return scores


def unlabelled(graph: Graph) -> Graph:
    """The same graph with its nodes numbered and without names."""
    ends = np.column_stack([np.repeat(np.arange(graph.n), np.diff(graph.indptr)), graph.indices])
    return Graph.from_edges(graph.n, ends[ends[:, 0] < ends[:, 1]], name=graph.name)


def springs(graph: Graph) -> FloatArray:
    """Positions by springs, so that communities lie together."""
    import networkx

    placed = networkx.spring_layout(graph.to_networkx(), seed=7, iterations=60, k=1.6 / math.sqrt(graph.n))
    return np.array([placed[node] for node in sorted(placed)])


def by_distance(values: FloatArray, distance: Any) -> dict[str, list[float]]:
    """Mean, least and largest value at each distance 1, 2, …"""
    rows = [values[distance == d] for d in range(1, int(distance.max()) + 1)]
    return {
        "x": list(range(1, len(rows) + 1)),
        "mean": [float(row.mean()) for row in rows],
        "low": [float(row.min()) for row in rows],
        "high": [float(row.max()) for row in rows],
    }


def curve(
    label: str,
    found: dict[str, list[float]],
    kind: FigureKind,
    *,
    clip: bool = False,
    spread: bool = True,
    upto: int = 1000,
) -> Series:
    """The means by distance with their range, as a curve; up to some distance."""
    top = 1.0 if clip else math.inf
    mean, low, high = ([min(value, top) for value in found[part][:upto]] for part in ("mean", "low", "high"))
    return Series(label, found["x"][:upto], mean, kind, low if spread else None, high if spread else None)


def loss_panel(
    title: str,
    series: Iterable[Series],
    x: str = "shortest path length",
    *,
    limits: tuple[float, float] = (1e-5, 2.0),
    band: str = "",
) -> Panel:
    """Losses over a distance, as multiples of local DP's."""
    return Panel(title, x, "loss (1 = local DP)", tuple(series), log_y=True, limits=limits, band=band)


def agrees(value: float, printed: str) -> bool:
    """Whether a printed decimal is the value, rounded; "<.0001", "≈0" and fractions included.

    >>> agrees(0.16612, "0.1661"), agrees(2 / 7, "2/7"), agrees(0.3, "2/7"), agrees(1e-12, "≈0"), agrees(0.99, "1")
    (True, True, False, True, False)
    """
    if printed.startswith("<"):
        return value < float(printed[1:])
    if printed == "≈0":
        return value < 1e-9
    if "/" in printed:
        top, bottom = printed.split("/")
        return abs(value - int(top) / int(bottom)) < 1e-9
    places = len(printed.split(".")[1]) if "." in printed else 0
    return abs(value - float(printed)) <= (0.5 * 10**-places if places else 1e-9) * (1 + 1e-6)


def network(
    title: str,
    graph: Graph,
    places: npt.ArrayLike,
    values: npt.ArrayLike,
    chosen: int,
    *,
    kind: FigureKind,
    least: float = 1e-4,
) -> Panel:
    """A graph whose parties are coloured by their loss, on a logarithmic scale up to local DP's; a star marks `chosen`."""
    where, losses = np.asarray(places), np.asarray(values, dtype=float)

    def draw(figure: Any, axes: Any) -> None:
        from matplotlib.collections import LineCollection
        from matplotlib.colors import LogNorm

        edges = np.column_stack([np.repeat(np.arange(graph.n), np.diff(graph.indptr)), graph.indices])
        edges = edges[edges[:, 0] < edges[:, 1]]
        faint = min(0.4, 300 / max(len(edges), 1))
        axes.add_collection(
            LineCollection(where[edges].tolist(), colors="#888888", linewidths=0.3, alpha=faint, rasterized=True)
        )
        others = np.arange(graph.n) != chosen
        shown = np.clip(losses[others], least, 1.0)
        order = np.argsort(shown)
        room = min(1.0, axes.bbox.width / figure.dpi / WIDTH)  # smaller panels, smaller dots
        axes.scatter(
            *where[others][order].T,
            c=shown[order],
            s=max(2.0, min(20.0, 4000 / graph.n) * room),
            cmap=COLOURS_OF_LOSS,
            norm=LogNorm(least, 1.0),
            linewidths=0,
            zorder=2,
            rasterized=True,
        )
        axes.scatter(
            *where[chosen], marker="*", s=max(40, 70 * room), c=RED, edgecolors="white", linewidths=0.5, zorder=3
        )
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(False)
        for side in axes.spines.values():
            side.set_visible(False)

    series = Series("loss of each party", np.arange(graph.n), np.minimum(losses, 1.0), kind)
    return Panel(title, "", "", (series,), draw=draw, scale=(least, 1.0, "loss (1 = local DP)"))


# Muffliato-GD on the housing table as in Figure 1c and Table 2: a fresh Erdős–Rényi graph per iteration, step 0.7.
#
# Facts of the authors' code: 10 iterations; noise of deviation 1.5 · 0.5 = 0.75 per coordinate; gradients cut to length
# 1 after the noise (here: before it, so that the noise hides what is sent); graphs of parameter ln(n)/n drawn again
# until connected; K = ⌈ln(n)/√λ⌉ rounds of accelerated gossip for the gap of the graph drawn; the loss per iteration by
# Theorem 4, capped at local DP's.


ITERATIONS, STEP, SIGMA, CLIP, TEST = 10, 0.7, 0.75, 1.0, 0.2


def graphs_of(n: int, seed: int, *, redraw: bool = True) -> tuple[Graph, ...]:
    """One graph per iteration: drawn until connected, as the authors do, or kept as it comes, as ours may be."""
    if redraw:
        return tuple(connected_erdos_renyi(n, 1000 * seed + t) for t in range(ITERATIONS))
    return tuple(erdos_renyi(n, math.log(n) / n, seed=1000 * seed + t) for t in range(ITERATIONS))


def muffliato(n: int, seed: int, *, redraw: bool = True) -> GossipDescent:
    """K as in Theorem 5, for the spectral gap of the (largest component of the) first graph."""
    drawn = graphs_of(n, seed, redraw=redraw)
    gap = spectral_gap(drawn[0].largest_component())
    rounds = math.ceil(math.log(n) / math.sqrt(gap))
    return GossipDescent(drawn, ITERATIONS, rounds, sigma=SIGMA, step=STEP, clip=CLIP, accelerated=True, gap=gap)


def trial(item: list[Any]) -> dict[str, list[float]]:
    """Accuracy on the test rows after each iteration, of party 0's model: [n, seed]."""
    n, seed = item
    rows, test = table("housing").split(TEST, seed)
    data = LogisticParties.deal(rows.X, rows.y, n, seed)
    found: dict[str, list[float]] = {}
    for name, protocol in (
        ("muffliato", muffliato(n, seed)),
        ("kept", muffliato(n, seed, redraw=False)),
        ("central", CentralDescent(n, ITERATIONS, SIGMA, STEP)),
    ):
        scores = [accuracy(np.zeros(data.d), test.X, test.y)]

        def after(t: int, models: FloatArray, scores: list[float] = scores) -> None:
            scores.append(accuracy(models[0], test.X, test.y))

        train(protocol, data, seed, after=after)
        found[name] = scores
    return found


def published(n: int) -> dict[str, Any]:
    """Losses of all parties towards party 0 over the run, as multiples of local DP's: Theorem 4 as coded, and Theorem 11."""
    protocol = muffliato(n, 0)
    coded, theorem11 = np.zeros(n - 1), np.zeros(n - 1)
    for t, graph in enumerate(protocol.graphs):
        degrees = graph.degrees.astype(float)
        per_round = np.minimum(1.0, 2 * protocol.gossip_rounds * degrees / (n - degrees))
        per_round[graph.neighbors(0)] = 1.0
        coded += per_round[1:]
        theorem11 += theorem12(protocol.rounds_of(t), [0])[1:]
    return {
        "K": protocol.gossip_rounds,
        "coded": np.sort(coded / ITERATIONS),
        "theorem11": np.sort(np.minimum(theorem11 / ITERATIONS, 1.0)),
    }


def certified(item: list[Any]) -> dict[str, Any]:
    """Certified losses towards party 0, as multiples of local DP's: [n, targets, rounds of gossip or 0 for Theorem 5's]."""
    n, targets, rounds = item
    protocol = muffliato(n, 0)
    if rounds:
        protocol = GossipDescent(protocol.graph, ITERATIONS, rounds, sigma=SIGMA, step=STEP, clip=CLIP)
    chosen = np.random.default_rng(0).choice(np.arange(1, n), targets, replace=False)
    energy = np.asarray(loss_energy(protocol, (0,), targets=chosen))
    energy = energy[~np.isnan(energy)]
    return {"K": protocol.gossip_rounds, "loss": np.sort(energy / ITERATIONS)}


# The ten Facebook ego graphs of Figures 1b and 5: what all others learn about one user of the largest component.
#
# Facts of the authors' code: graph 1912 and a random user for Figure 1b; the first user with one friend for each graph
# of Figure 5; T = ⌈ln(n)/√λ⌉. The exact loss towards every single user takes hours on these graphs (most users see
# nearly everything), so a lower bound on it is drawn: what the messages of one neighbour alone tell. With L_w(u) the
# leverage score of u in the space spanned by e_w, We_w, …, W^{k−1}e_w, the messages of w in k ≤ T rounds, the factor of
# u towards v is at least L_w(u) for every neighbour w of v: v may forget all other messages and its own noise.


EGOS = (0, 107, 348, 414, 686, 698, 1684, 1912, 3437, 3980)

# Rounds whose messages the lower bound uses; more of them only raise it.
_MOST = 40


def available(ego: int) -> bool:
    """Whether the file of that ego graph is on this machine."""
    return next(entry.available for entry in datasets() if entry.name == f"facebook-ego-{ego}")


def ego_graph(ego: int) -> Graph:
    """Friends of a Facebook user, who is left out: the largest component, nodes numbered."""
    return unlabelled(dataset(f"facebook-ego-{ego}"))


def first_with_one_friend(graph: Graph) -> int:
    """The first user with the fewest friends."""
    return int(np.flatnonzero(graph.degrees == graph.degrees.min())[0])


def scores_of(graph: Graph, rounds: int, target: int) -> FloatArray:
    """L_w(target) for all w: leverage scores in what w says in `rounds` rounds, directions that rounding may have made left out.

    >>> from netdp import graphs
    >>> scores_of(graphs.ring(5), 2, 0).round(4).tolist()                       # e_w, and e_{w−1} + e_{w+1} over √2
    [1.0, 0.5, 0.0, 0.0, 0.5]
    """
    W = Gossip(graph, rounds=1, sigma=1.0).matrix
    n, scores = graph.n, np.zeros(graph.n)
    for first in range(0, n, 64):
        start = np.arange(first, min(first + 64, n))
        basis = np.zeros((len(start), rounds, n))
        basis[np.arange(len(start)), 0, start] = 1.0
        alive = np.ones(len(start), dtype=bool)
        for k in range(1, rounds):
            block = (W @ basis[:, k - 1, :].T).T
            size = np.linalg.norm(block, axis=1)
            known = basis[:, :k, :]
            for _ in range(2):
                part = np.matmul(known, block[:, :, None])
                block = block - np.matmul(known.transpose(0, 2, 1), part)[:, :, 0]
            left = np.linalg.norm(block, axis=1)
            alive &= left > 1e-6 * size
            basis[:, k, :] = np.where(alive[:, None], block / np.where(alive, left, 1.0)[:, None], 0.0)
        scores[start] = (basis[:, :, target] ** 2).sum(axis=1)
    return scores


def measure(item: list[Any]) -> dict[str, Any]:
    """Losses of one user towards all others, and positions: [ego, user or None for the first with one friend]."""
    ego, user = item
    graph = ego_graph(ego)
    target = first_with_one_friend(graph) if user is None else user
    rounds = rounds_to_converge(graph)
    scores = scores_of(graph, min(rounds, _MOST), target)
    true = np.array([scores[graph.neighbors(v)].max() for v in range(graph.n)])
    true[target] = np.nan
    return {
        "target": target,
        "degree": int(graph.degrees[target]),
        "n": graph.n,
        "rounds": rounds,
        "places": springs(graph),
        "distance": graph.distances([target]),
        "far": graph.distances([target]) >= 3,
        "published": theorem1_pairwise(Gossip(graph, rounds=rounds, sigma=1.0))[target],
        "true": true,
    }


def watched(ego: int) -> dict[str, Any]:
    """The other direction, exactly: what the first user with one friend learns of all others, plain and with fresh noise."""
    graph = ego_graph(ego)
    observer, rounds = first_with_one_friend(graph), rounds_to_converge(graph)
    return {
        "observer": observer,
        "far": graph.distances([observer]) >= 3,
        **three_losses(graph, rounds, observer),
    }


def farther(found: dict[str, Any], part: str) -> float:
    """Mean loss, clipped at local DP's, of those at least three hops away."""
    values: FloatArray = np.minimum(np.array(found[part], dtype=float), 1.0)
    return float(values[np.array(found["far"])].mean())


def community_comparisons(who: str, losses: Any, distance: Any) -> list[Comparison]:
    """What Figures 1b and 5 are said to show of one user's loss by Theorem 1, towards all others."""
    values = np.minimum(np.array(losses, dtype=float), 1.0)
    distances = np.array(distance)
    others = ~np.isnan(values)
    far = distances >= 0.8 * distances.max()
    share = float(np.mean(values[others & (distances > 1)] > 0.5))
    return [
        Comparison(
            f"{who}: mean loss by Theorem 1 towards friends and towards the farthest fifth of the distances",
            "the privacy loss fades in the other communities",
            {"friends": [float(values[distances == 1].mean())], "farthest": [float(values[far].mean())]},
            Ordered(ratio=5.0),
        ),
        Comparison(
            f"{who}: share of those who are no friends, towards whom Theorem 1 gives more than half of local DP's loss",
            "the privacy loss is often limited to the cluster of direct neighbors",
            {"share": [share]},
            Between(0.0, 0.25),
            note="after the theoretical number of rounds the formula itself is at local DP's for nearly everybody up to two hops "
            "away, friend or not; it fades from three to five hops on",
        ),
    ]


def understated(found: dict[str, Any]) -> tuple[float, float, float]:
    """Those towards whom the formula is below the true loss: its mean, the true one's, and their share of all."""
    others = np.arange(found["n"]) != found["target"]
    published, true = (np.array(found[part], dtype=float)[others] for part in ("published", "true"))
    below = true > published
    return float(published[below].mean()), float(true[below].mean()), float(below.mean())
