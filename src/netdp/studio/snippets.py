"""What is on the page as a command line, as Python, and as a study file: each says the same as the page."""

from __future__ import annotations

import shlex
from typing import Any

from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.graphs.graph import Graph
from netdp.peers.identity import check_name
from netdp.peers.kinds import RUNNING
from netdp.peers.study.study import Study
from netdp.peers.study.task import Task
from netdp.protocols.base import Protocol
from netdp.protocols.family import Way
from netdp.settings.catalogue import CATALOGUE, RENAMED, SWITCHES
from netdp.settings.models import Accounting, protocol_fields, turns_of

KINDS = {way.protocol: way.study for entry in CATALOGUE.values() for way in entry.ways.values()}
"""What runs between processes, by the class of the protocol; None if it does not."""

MOST_IN_A_STUDY = 1000
"""Parties of a study that the studio plans; `netdp study new` takes more."""


def command_line(settings: dict[str, Any]) -> str:
    """`netdp account …` with these settings.

    >>> command_line({"graph": "ring:8", "protocol": "token", "rounds": 3, "closing": False, "observer": ["0", "2"]})
    'netdp account ring:8 -p token --rounds 3 --no-closing -o 0 -o 2'
    """
    words = ["netdp", "account", str(settings["graph"])]
    if settings.get("protocol", "gossip") != "gossip":
        words += ["-p", settings["protocol"]]
    for name, value in settings.items():
        if name in ("graph", "protocol", "observer") or value is None:
            continue
        if isinstance(value, bool):
            words.append(SWITCHES[name][0 if value else 1])
        else:
            words += [f"--{name}", _typed(value)]
    for party in settings.get("observer") or ():
        words += ["-o", str(party)]
    return shlex.join(words)


def _typed(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(_typed(one) for one in value)
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if not isinstance(value, float) or float(short) == value else repr(value)


def python(settings: Accounting, protocol: Protocol, observers: list[int | str] | None, uploaded: bool) -> str:
    """The same in Python, ready to run."""
    way, graph = settings.way, settings.graph
    back = {new: old for old, new in RENAMED.items()}
    given = {back.get(n, n): getattr(settings, n) for n in protocol_fields(way) if n in settings.model_fields_set}
    first, lines = _first(way, graph, protocol, uploaded)
    rounds = given.pop("rounds") if way.first == "graphs" else None
    if rounds is not None:
        lines = [
            f"turns = [graphs.parse(name) for name in {turns_of(graph)!r}]",
            f"graph = tuple(turns[t % len(turns)] for t in range({rounds}))",
        ]
    words = ", ".join([first, *(f"{name}={_literal(value)}" for name, value in given.items())])
    make = f"netdp.{way.protocol}.on" if way.first == "links" else f"netdp.{way.protocol}"
    against = f"colluders={settings.colluders}" if observers is None else f"observers={observers!r}"
    return "\n".join(
        [
            "import netdp",
            *(["from netdp import graphs"] if lines else []),
            "",
            *lines,
            f"protocol = {make}({words})",
            f"loss = netdp.account(protocol, {against})",
            f"print(loss.describe(delta={settings.delta!r}))",
            f"print(loss.epsilon(delta={settings.delta!r}))  # one number per party",
            "",
        ]
    )


def _literal(value: Any) -> str:
    return repr(tuple(value)) if isinstance(value, list) else repr(value)


def _first(way: Way, graph: str, protocol: Protocol, uploaded: bool) -> tuple[str, list[str]]:
    """The first argument of the protocol, and the lines that make it."""
    if way.first == "users":
        return str(protocol.n), []
    made = f'graphs.read("{graph}")' if uploaded else f'graphs.parse("{graph}")'
    if way.first == "links":
        return "links", [f"links = {made}.to_networkx().to_directed()"]
    return "graph", [f"graph = {made}"]


def study(
    protocol: Protocol, graph: str | Graph | None, epsilon: float, delta: float, colluders: int, about: str
) -> str:
    """A draft of a study that promises this ε against any so many colluders, with the least noise that keeps it."""
    kind = KINDS.get(type(protocol).__name__)
    if kind is None:
        running = ", ".join(RUNNING)
        raise Unsupported(
            f"{type(protocol).__name__} does not run between real parties; what does: {running}. For sums and means, masked "
            "sums are what peers run by default: choose the protocol masked"
        )
    if protocol.n > MOST_IN_A_STUDY:
        raise InvalidValue(
            f"{protocol.n:,} parties: the studio plans studies of up to {MOST_IN_A_STUDY:,}; `netdp study new` takes more"
        )
    if not 0 < epsilon < 50:
        raise InvalidValue(f"epsilon = {epsilon:g} is no promise that a study could make; add noise, or set a target")
    names = _names(protocol.n, None if isinstance(graph, str) else graph)
    options = {name: getattr(protocol, name) for name in RUNNING[kind].options if hasattr(protocol, name)}
    network = graph or f"{'ring' if kind.startswith('ring') else 'complete'}:{protocol.n}"
    # of a shuffle, users besides the curator; of everything else at least one party looks
    besides = colluders if RUNNING[kind].has_curator else max(colluders, RUNNING[kind].least_colluders)
    made = Study.plan(
        "From the studio", _task(protocol, kind), names, graph=network, epsilon=epsilon, delta=delta, colluders=besides,
        kind=kind, **options,
    )  # fmt: skip
    return (
        f"# Drafted by netdp studio. What was on the page: {about}\n"
        f"# Put your own question into [task] and your own names below, then: netdp study explain FILE\n{made.text}"
    )


def _task(protocol: Protocol, kind: str) -> Task:
    if kind in ("shuffle", "ring-histogram", "walk-histogram"):
        cells = int(getattr(protocol, "domain", 2))
        categories = tuple(f"answer{i + 1}" for i in range(cells))
        return Task(kind="histogram", column="answer", categories=(categories,))
    return Task(kind="mean", column="value", bounds=(0.0, float(getattr(protocol, "sensitivity", 1.0))))


def _names(n: int, graph: Graph | None) -> list[str]:
    """The parties' own names where a study allows them, else p00, p01, …"""
    if graph is not None and graph.labels:
        try:
            return [check_name(label) for label in graph.labels]
        except NetdpError:
            pass
    return [f"p{u:0{max(2, len(str(n - 1)))}}" for u in range(n)]
