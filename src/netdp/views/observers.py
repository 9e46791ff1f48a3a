"""Who looks: parties that pool what they see (one observer is a set of one), and roles such as a curator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from netdp.errors import InvalidValue
from netdp.graphs import Graph
from netdp.privacy import Observers
from netdp.protocols import Protocol


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
    _room_left(n, len(members))
    return tuple(sorted(members))


def _number(n: int, party: int | str) -> int:
    if isinstance(party, bool | str) or not 0 <= party < n or int(party) != party:
        raise InvalidValue(f"no party {party!r}; the parties are 0 to {n - 1}")
    return int(party)


def who_looks(protocol: Protocol, observers: Any) -> Observers:
    """What a person typed, as parties and roles of this protocol, with the parties' names.

    >>> from netdp import graphs
    >>> from netdp.protocols import Shuffle
    >>> who_looks(Shuffle(graphs.complete(5), rounds=3, epsilon0=1.0), ["curator", 3])
    Observers(parties=(3,), roles=('curator',), names=None, each=False, any_of=0)
    """
    if isinstance(observers, Observers):
        chosen = observers
        if chosen.any_of:
            raise InvalidValue(
                f"observers {observers!r} name nobody: any {chosen.any_of} parties are account(…, colluders=)"
            )
        if chosen.each or (not chosen.parties and not chosen.roles):
            raise InvalidValue(f"observers must name parties or a role, got {observers!r}; all pairs: netdp.pairwise")
        if chosen.parties and not 0 <= min(chosen.parties) <= max(chosen.parties) < protocol.n:
            raise InvalidValue(f"observers {chosen.parties} are not all among the parties 0 to {protocol.n - 1}")
        if len(set(chosen.parties)) < len(chosen.parties):
            raise InvalidValue(f"observers {chosen.parties} name a party twice; name each colluding party once")
        chosen = replace(chosen, parties=tuple(sorted(chosen.parties)))
        _room_left(protocol.n, len(chosen.parties))
    else:
        if observers is None or not isinstance(observers, int | str | np.integer | Iterable):
            raise InvalidValue(f"observers must name who looks, for example [0], got {observers!r}")
        given: list[Any] = [observers] if isinstance(observers, int | str | np.integer) else list(observers)
        roles = tuple(role for role in protocol.roles if role in given)
        people = [party for party in given if party not in roles]
        network = protocol.network
        parties = observer_set(protocol.n if network is None else network, people) if people or not roles else ()
        chosen = Observers(parties, roles)
    foreign = [role for role in chosen.roles if role not in protocol.roles]
    if foreign:
        known = f"its roles are {', '.join(protocol.roles)}" if protocol.roles else "it has parties only"
        raise InvalidValue(f"observers {observers!r}: {type(protocol).__name__} has no {foreign[0]!r}; {known}")
    missing = [role for role in protocol.roles if role not in chosen.roles]
    if missing:
        raise InvalidValue(
            f'observers {observers!r}: reports are collected by a {missing[0]}; say observers="{missing[0]}", or '
            f'["{missing[0]}", 3] if user 3 colludes with it (relays alone see only encrypted reports)'
        )
    labels = protocol.network.labels if protocol.network is not None else None
    return replace(chosen, names=None if labels is None else tuple(labels[v] for v in chosen.parties))


def _room_left(n: int, members: int) -> None:
    if members == n:
        raise InvalidValue(f"all {n} parties observe, so nobody is left whose privacy could be at stake; name fewer")
