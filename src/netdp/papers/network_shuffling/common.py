"""What several figures of network shuffling share: which graphs are here, and ε at so many hops, published and certified.

Certified in two ways. **By return bounds** (`netdp.families.shuffle.account.mixing`): the better bound; 5 s on Twitch, 20 s on
the larger graphs. **By the spectral gap alone** (`separation`): proved as well, needs two to three times the hops, and takes
3 s on the larger graphs. Quick runs use it for all but Twitch. Where the walk has not mixed either is ε₀: local privacy is
always there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from netdp.errors import DataNotFound
from netdp.families.shuffle.account.mixing import mixing, separation
from netdp.families.shuffle.account.shuffling import UserCurves, curator_heap
from netdp.families.shuffle.protocol import Shuffle
from netdp.graphs.graph import Graph
from netdp.graphs.named import dataset
from netdp.papers.formulas import network_shuffling as paper

TITLES = {
    "facebook-pages": "Facebook",
    "twitch": "Twitch",
    "deezer": "Deezer",
    "enron": "Enron",
    "web-google": "Google",
}
"""The data sets of Table 4, by the names that they have here."""


PRINTED_USERS = {"facebook-pages": 22_470, "twitch": 9498, "deezer": 28_281, "enron": 33_696, "web-google": 855_802}
"""n in Table 4."""


@lru_cache(maxsize=8)
def graph_of(name: str) -> Graph:
    """A data set, read once."""
    return dataset(name)


def present(names: Iterable[str]) -> tuple[list[str], tuple[str, ...]]:
    """Which of the data sets are on this machine, and a sentence for each that is not; none at all is an error.

    >>> present(["karate"])
    (['karate'], ())
    """
    here: list[str] = []
    missing: list[str] = []
    refused: DataNotFound | None = None
    for name in names:
        try:
            graph_of(name)
            here.append(name)
        except DataNotFound as absent:
            refused = absent
            missing.append(f"{TITLES.get(name, name)} (the data set {name} is not on this machine)")
    if refused is not None and not here:
        raise refused
    return here, tuple(missing)


def certified(
    graph: Graph,
    rounds: int,
    epsilon0s: Sequence[float],
    delta: float,
    *,
    careful: bool = True,
    reporting: str = "all",
) -> list[float]:
    """ε at δ of the worst placed user after so many hops, for each ε₀; `careful` uses the return bounds.

    >>> from netdp.graphs import complete
    >>> careful, plain = (certified(complete(500), 5, [1.0], 1e-4, careful=way)[0] for way in (True, False))
    >>> print(f"{careful:.3f} {plain:.3f}")
    0.145 0.145
    """
    protocols = [Shuffle(graph, rounds, e, reporting=reporting) for e in epsilon0s]
    if careful:
        mixed = mixing(protocols[0])
        tables = [UserCurves.of(p, mixed) for p in protocols]
        return [table.epsilon(table.group_of(1.0), delta) for table in tables]
    s = separation(protocols[0]).value
    return [min(p.epsilon0, curator_heap(p, s).epsilon(delta)) for p in protocols]


def published(n: int, squares: float, epsilon0s: Iterable[float], delta: float, reporting: str = "all") -> list[float]:
    """ε at δ of the paper's theorem for each ε₀, as printed; `squares` is Σp² of where a report may be.

    >>> every, single = (published(10_000, 1e-4, [2.0], 1e-6, way)[0] for way in ("all", "single"))
    >>> single < every                                      # at large ε₀ a single report is better, says the paper
    True
    """
    if reporting == "single":
        return [paper.epsilon_single(e, squares, delta) for e in epsilon0s]
    return [paper.epsilon_all(e, n, squares, delta) for e in epsilon0s]
