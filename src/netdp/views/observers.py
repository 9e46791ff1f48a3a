"""Who looks: a set of parties that pool what they see (one observer is a set of one)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from netdp.errors import InvalidValue
from netdp.graphs import Graph


def observer_set(
    graph: Graph | int, observers: int | str | Iterable[int | str], *, ids: bool = False
) -> tuple[int, ...]:
    """The observers as sorted party numbers, looked up in a graph or among n parties.

    Unknown, repeated, no or too many parties are refused, and so is a number that could mean two parties of a graph
    with names (`Graph.index`). `ids=True` says that the numbers were computed, not typed by a person: they count
    from 0 whatever the parties are called, and nothing is looked up.

    >>> from netdp import graphs
    >>> observer_set(graphs.ring(5), [3, 1])
    (1, 3)
    >>> observer_set(graphs.ring(5), 7)
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: no node 7 in Graph('ring(5)', n=5, m=5); its nodes are 0 to 4
    >>> numbered = graphs.Graph.from_edges(3, [(0, 1), (1, 2)], labels=["1", "2", "3"])
    >>> observer_set(numbered, "1"), observer_set(numbered, [1], ids=True)
    ((0,), (1,))
    """
    single = isinstance(observers, int | str | np.integer)
    given: list[int | str] = [observers] if single else list(observers)  # type: ignore[list-item, arg-type]
    n = graph if isinstance(graph, int) else graph.n
    numbered = ids or isinstance(graph, int)
    members = [_number(n, party) if numbered else graph.index(party) for party in given]  # type: ignore[union-attr]
    if not members:
        raise InvalidValue("observers is empty; name at least one party, for example observers=[0]")
    if len(set(members)) < len(members):
        twice = next(party for party in members if members.count(party) > 1)
        raise InvalidValue(f"observer {twice} is named twice; name each colluding party once")
    if len(members) == n:
        raise InvalidValue(f"all {n} parties observe, so nobody is left whose privacy could be at stake; name fewer")
    return tuple(sorted(members))


def curator_set(graph: Graph, observers: int | str | Iterable[int | str]) -> tuple[str | int, ...]:
    """The curator and the users that collude with it, ("curator", 3, 5).

    >>> from netdp import graphs
    >>> curator_set(graphs.ring(5), "curator"), curator_set(graphs.ring(5), ["curator", 3, 1])
    (('curator',), ('curator', 1, 3))
    """
    given = [observers] if isinstance(observers, int | str | np.integer) else list(observers)
    if "curator" not in given:
        raise InvalidValue(
            f'observers {observers!r}: reports are collected by a curator; say observers="curator", or '
            '["curator", 3] if user 3 colludes with it (relays alone see only encrypted reports)'
        )
    users = [party for party in given if party != "curator"]
    return ("curator", *(observer_set(graph, users) if users else ()))


def _number(n: int, party: int | str) -> int:
    if isinstance(party, bool | str) or not 0 <= party < n or int(party) != party:
        raise InvalidValue(f"no party {party!r}; the parties are 0 to {n - 1}")
    return int(party)
