"""Figure 1b: Facebook ego graph 1912 coloured by the loss with respect to one user drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.accounting.published.muffliato.theorems import theorem1_pairwise
from netdp.graphs import dataset
from netdp.privacy import Claim
from netdp.protocols import Gossip

from ..experiment import Experiment, Finding, Kind, Panel, Result, Size
from ..running import Work
from .common import at_least, network, rounds_to_converge, springs
from .ego import ego_graph, farther, watched

EGO = 1912


def sampled(user: int) -> dict[str, Any]:
    """Six of the quarter towards whom Theorem 1 gives the user's least loss: its losses, and lower bounds on the true ones."""
    graph = ego_graph(EGO)
    rounds = rounds_to_converge(graph)
    losses = theorem1_pairwise(Gossip(graph, rounds=rounds, sigma=1.0))[user]
    order = np.argsort(np.where(np.isnan(losses), np.inf, losses))
    chosen = order[: graph.n // 4][:: graph.n // 24][:6]
    true = [float(at_least(graph, rounds, int(v), 550)[user]) for v in chosen]
    return {"losses": losses, "published": losses[chosen], "true": true, "rounds": rounds}


def run(size: Size, work: Work) -> Result:
    dataset(f"facebook-ego-{EGO}")  # says what is missing
    graph = ego_graph(EGO)
    user = int(np.random.default_rng(1).integers(graph.n))
    (found,) = work.map(sampled, [user])
    (leaf,) = work.map(watched, [EGO])
    places = springs(graph)

    def panel(title: str, values: Any, who: int, kind: Kind = Kind.CERTIFIED) -> Panel:
        return network(title, graph, places, np.array(values, dtype=float), who, kind=kind)

    formula, true = np.array(found["published"]), np.array(found["true"])
    findings = (
        Finding(
            f"a random user with {graph.degrees[user]} friends: loss towards six of those for whom the formula says least",
            bool((true > formula).all()),
            printed="fades in other communities",
            formula=" / ".join(f"{value:.2f}" for value in formula),
            certified=" / ".join(f"{value:.2f}" for value in true),
            note="at least this; most users see nearly everybody's noisy value",
        ),
        Finding(
            "what a user with one friend learns of those three and more hops away, mean",
            farther(leaf, "true") > 2 * farther(leaf, "published"),
            printed="limited outside the community",
            formula=farther(leaf, "published"),
            certified=farther(leaf, "true"),
            claim=Claim.EXACT,
        ),
        Finding(
            "the same with a tenth of fresh noise",
            farther(leaf, "refreshed") < 0.1 * farther(leaf, "published"),
            certified=farther(leaf, "refreshed"),
            claim=Claim.EXACT,
            note="refreshed gossip (ours) does limit the loss to the community",
        ),
    )
    star = leaf["observer"]
    return Result(
        settings={"graph": graph.name, "n": graph.n, "T": found["rounds"], "σ": 1, "user": user},
        findings=findings,
        panels=(
            panel("As in the paper: Theorem 1, loss of the star", found["losses"], user, Kind.PUBLISHED),
            panel("A user with one friend learns: Theorem 1", leaf["published"], star, Kind.PUBLISHED),
            panel("A user with one friend learns: truly", leaf["true"], star),
            panel("The same with fresh noise (ours)", leaf["refreshed"], star),
        ),
    )


EXPERIMENT = Experiment(
    id="004-fig1b",
    paper="004",
    place="Figure 1b",
    title="a Facebook ego graph coloured by privacy loss",
    shows="The loss is said to be limited outside the node's own community.",
    run=run,
    quick="8 s, all of it",
    full="8 s",
    errata=("004-theorem1",),
)
