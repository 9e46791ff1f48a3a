"""`to_frame()` of losses and plans: tables for pandas, which is loaded only here."""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.errors import MissingDependency
from netdp.numerics.checks import positive
from netdp.planning.base import Plan
from netdp.privacy import Guarantee


def loss_frame(loss: Guarantee, delta: float = 1e-6) -> Any:
    """One row per party: whether it observes, ε at δ, its factor of the local-DP loss, its distance; of all pairs one row each.

    An observer has no loss to itself: nan. Numbers are as certified, not rounded.
    """
    pandas = _pandas()
    positive("delta", delta)
    epsilon = np.asarray(loss.epsilon(delta))
    names = np.array(loss.names if loss.names is not None else [str(u) for u in range(len(epsilon))])
    factor = None if loss.factor is None else np.asarray(loss.factor)
    if epsilon.ndim == 2:
        u, v = np.indices(epsilon.shape).reshape(2, -1)
        columns: dict[str, Any] = {"party": names[u], "observer": names[v], "epsilon": epsilon.ravel()}
        if factor is not None:
            columns["factor"] = factor.ravel()
        frame = pandas.DataFrame(columns)[u != v].reset_index(drop=True)
    else:
        observers = np.zeros(len(epsilon), dtype=bool)
        observers[list(loss.observers.parties)] = True
        columns = {"party": names, "observer": observers, "epsilon": epsilon}
        if factor is not None:
            columns["factor"] = factor
        if loss.network is not None and loss.observers.parties and loss.network.n == len(epsilon):
            columns["hops"] = loss.network.distances(list(loss.observers.parties))
        frame = pandas.DataFrame(columns)
    frame.attrs = {"delta": delta, "claim": loss.claim.value, "observers": loss.observers.words}
    return frame


def plan_frame(plan: Plan) -> Any:
    """One row per way, then local DP and a trusted curator: certified ε at the plan's δ, claim, error, messages, chosen or not."""
    pandas = _pandas()
    rows: list[dict[str, Any]] = [
        {
            "way": option.name,
            "epsilon": plan.worst_epsilon(option),
            "claim": option.guarantee.claim.value,
            "rmse": option.rmse,
            "times_curator": option.rmse / plan.curator_rmse,
            "messages_per_party": option.messages,
            "chosen": option is plan.best,
        }
        for option in plan.options
    ]
    for name, rmse in (("local DP", plan.local_rmse), ("trusted curator", plan.curator_rmse)):
        rows.append({"way": name, "rmse": rmse, "times_curator": rmse / plan.curator_rmse, "chosen": False})
    frame = pandas.DataFrame(rows)
    frame.attrs = {"epsilon": plan.epsilon, "delta": plan.delta, "holds": plan.holds}
    return frame


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingDependency("pandas", "to_frame()", "notebook") from None
    return pandas
