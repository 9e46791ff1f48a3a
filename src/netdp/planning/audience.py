"""Against whom a target must hold: every party alone, some parties alone, sets that collude, or any so many parties."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.graphs.mixing import Mixing
from netdp.graphs.symmetry import vertex_transitive
from netdp.numerics.checks import count, whole
from netdp.views import observer_set

# Above this many parties "every pair" is refused: name the observers, and the result holds for them.
MAX_EVERYBODY = 4096
DRAWS = 20


@dataclass(frozen=True)
class Audience:
    """Sets of observers; `same` says that one of the single observers stands for all (vertex-transitive graphs).

    `any_of` parties, whoever they are, if it is more than 1; the sets are then only those that were named besides.
    """

    singles: tuple[int, ...]
    coalitions: tuple[tuple[int, ...], ...]
    everybody: bool
    same: bool
    words: str
    any_of: int = 1

    def sets(self, *, symmetric: bool) -> list[tuple[int, ...]]:
        """The sets to account for; `symmetric` says that the target treats all pairs at one distance alike."""
        singles = self.singles[:1] if self.same and symmetric else self.singles
        return [*((v,) for v in singles), *self.coalitions]


def audience(
    graph: Graph,
    observers: Iterable[int | str] | int | str | None = None,
    coalitions: float | Sequence[Iterable[int | str]] | None = None,
    *,
    colluders: int = 1,
    seed: int = 0,
    draws: int = DRAWS,
    mixing: Mixing = "metropolis",
) -> Audience:
    """Who looks.

    observers : each of these alone; None means every party alone.
    coalitions : in addition, sets that pool what they see; or a share such as 0.1: that many parties drawn at random,
        `draws` times, from `seed`. A drawn coalition says nothing about other coalitions of that size, only about
        its own subsets.
    colluders : how many parties may pool what they see, any of them: the worst coalition of that size counts.
    mixing : with weights of one's own no party stands for another, however symmetric the graph is.

    >>> from netdp import graphs
    >>> audience(graphs.ring(6), coalitions=[[0, 2]]).words
    'every single party; 1 named coalition'
    >>> audience(graphs.ring(6), colluders=3).words
    'any 3 parties together'
    """
    number = count("colluders", colluders)
    if number > 1:
        return _any(graph, number, observers, coalitions, mixing)
    same = False
    if observers is None:
        same = vertex_transitive(graph, mixing)
        if graph.n > MAX_EVERYBODY and not same:
            raise Unsupported(
                f"every pair of {graph.n:,} parties is more than is certified at once (limit {MAX_EVERYBODY:,} parties); "
                "name observers=[…], and the result will hold for those observers only"
            )
        singles = tuple(range(graph.n))
        words = ["every single party"]
    else:
        singles = observer_set(graph, observers)
        many = len(singles)
        words = [f"{'this single party' if many == 1 else f'these {many} single parties'} only"]
    sets: tuple[tuple[int, ...], ...] = ()
    if isinstance(coalitions, float | int):
        size = _size(graph.n, float(coalitions))
        rng = np.random.default_rng(whole("seed", seed))
        sets = tuple(
            tuple(sorted(rng.choice(graph.n, size, replace=False).tolist())) for _ in range(count("draws", draws))
        )
        words.append(
            f"{draws} coalitions of {size} parties drawn at random (seed {seed}), other coalitions may learn more"
        )
    elif coalitions is not None:
        sets = tuple(observer_set(graph, members) for members in coalitions)
        if not sets:
            raise InvalidValue("coalitions is empty; give sets such as [[0, 1]], a share such as 0.1, or None")
        words.append(f"{len(sets)} named coalition{'s' if len(sets) > 1 else ''}")
    return Audience(singles, sets, observers is None, same, "; ".join(words))


def _any(graph: Graph, number: int, observers: object, coalitions: object, mixing: Mixing) -> Audience:
    """Any so many parties: nobody is named besides, for the worst of all is among them."""
    if observers is not None or coalitions is not None:
        raise InvalidValue(
            f"colluders={number} are any {number} parties; leave out observers={observers!r} and coalitions={coalitions!r}, or "
            "colluders"
        )
    if number >= graph.n:
        raise InvalidValue(f"colluders={number} leaves nobody of {graph.n} parties whose privacy could be at stake")
    return Audience((), (), False, vertex_transitive(graph, mixing), f"any {number} parties together", number)


def _size(n: int, fraction: float) -> int:
    if not 0 < fraction < 1:
        raise InvalidValue(f"coalitions must be a share strictly between 0 and 1 or a list of sets, got {fraction!r}")
    return min(max(1, round(fraction * n)), n - 1)
