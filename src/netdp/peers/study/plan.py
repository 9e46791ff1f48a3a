"""From a privacy target to a study: the noise that keeps the promise.

The loss of a study is computed by its kind (`netdp.peers.kinds`); planning only searches for the least noise with which it
meets the target, so a planned study keeps its promise by construction, and `Study.check_promise` computes the same again
from what the file states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netdp.errors import InvalidValue
from netdp.graphs import Graph, parse

from ..kinds import KINDS, RUNNING, Wish
from ..model import Misfit
from .scaling import Scaling
from .sections import Privacy, is_fixed
from .study import Study
from .task import Task
from .training import Training

LEARNING = "masked-descent"
"""What trains a model."""


def plan(
    name: str,
    task: Task | Training | Scaling,
    names: Sequence[str],
    *,
    graph: str | Graph,
    epsilon: float,
    delta: float,
    colluders: int | None = None,
    attempts: int = 1,
    absent: int = 0,
    kind: str | None = None,
    timing: dict[str, float] | None = None,
    nonce: str = "",
    curator: str | None = None,
    **options: Any,
) -> Study:
    """A draft for these parties whose certified loss meets ε at δ against any `colluders` of them, with the least noise.

    graph : who talks to whom: a text such as "ring:16" or "regular:16,6,seed=1", or a `Graph`, in the order of the names.
        Graphs with chance in them are written out edge by edge.
    colluders : as few as the kind allows, by default: one, or none besides a curator.
    kind : what is run; masked sums by default, and masked descent to train a model.
    attempts, absent : how often a party may publish, and how many parties may be missing from an attempt, for kinds that
        allow it. The noise is chosen so that the promise covers all of it.
    curator : the name of the curator, for kinds that have one.
    options : what the kind alone understands (`Running.options`), such as spread="average" of masked sums.
    """
    if kind is None:
        kind = LEARNING if isinstance(task, Training) else KINDS[0]
    if kind not in RUNNING:
        raise InvalidValue(f"unknown protocol {kind!r}; choose one of {', '.join(KINDS)}")
    running = RUNNING[kind]
    colluders = running.least_colluders if colluders is None else colluders
    given = {key: value for key, value in options.items() if value is not None}
    for key in given:
        if key not in running.options:
            whose = [other for other, made in RUNNING.items() if key in made.options]
            belongs = f"belongs to {' and '.join(whose)}, not to {kind}" if whose else "is no option of any protocol"
            raise InvalidValue(f"{key}={given[key]!r} {belongs}; leave it out")
    try:  # nonsense is refused before any noise is looked for
        Privacy(epsilon=epsilon, delta=delta, colluders=colluders, attempts=attempts, absent=absent)
    except Misfit as problem:
        raise Misfit(("privacy", *problem.place), problem.problem) from None
    fixed = isinstance(graph, str) and is_fixed(graph)
    made = parse(graph) if isinstance(graph, str) else graph
    if made.n != len(names):
        raise InvalidValue(f"the graph {made.name} has {made.n} nodes, and there are {len(names)} parties")
    edges = [[names[u], names[v]] for u, v in made.edges().tolist()]
    if curator is not None and not running.has_curator:
        raise InvalidValue(f"curator={curator!r}: {kind} has none; leave it out")
    fields: dict[str, Any] = {
        "name": name, "nonce": nonce, "task": task.model_dump(mode="json", by_alias=True),
        "privacy": {"epsilon": epsilon, "delta": delta, "colluders": colluders, "attempts": attempts, "absent": absent},
        "network": {"graph": graph} if fixed else {"edges": edges},
        "timing": timing or {}, "party": [{"name": one} for one in names],
    }  # fmt: skip
    if running.has_curator:
        fields["curator"] = {"name": "curator" if curator is None else curator}
    wish = Wish(task, made, epsilon, delta, colluders, attempts, absent, given)
    # With noise that is surely drawable, so that everything else is checked before the search starts.
    rough = Study(**fields | {"protocol": running.start(wish)})
    return rough.replace(protocol=rough.running.least())
