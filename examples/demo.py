"""`make demo`: a private mean over a network, no server; what does each way of doing it reveal?"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import netdp
from netdp import graphs
from netdp.privacy.readable import readable
from netdp.report import save_picture, summarise

DELTA = 1e-6
OBSERVER = 0


def main() -> None:
    console = Console(highlight=False, width=max(110, Console().width))
    graph = graphs.hypercube(6)
    masked = netdp.Gossip(graph, rounds=20, sigma=2.0, masks=100.0)
    plain = masked.replace(masks=0.0)
    rng = np.random.default_rng(2026)
    values = rng.beta(2, 3, graph.n)  # each party's private number, between 0 and 1

    console.print(
        f"[bold]{graph.n} parties each hold a private number from 0 to 1 and want the mean. No server is trusted.[/bold]\n"
        f"They sit on a network, {graph.name}, and talk only to their {graph.degrees[0]} neighbours. Each adds noise of\n"
        f"size σ = {masked.sigma:g} to its number; then all average with their neighbours, {masked.rounds} times over.\n"
        f"What can a party learn about another one? ε at δ = {DELTA:g}: the smaller, the more private.\n"
    )

    distance = graph.distances([OBSERVER])
    farthest = int(distance.max())
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title, justify in (
        ("", "left"),
        ("what the worst-placed\nparty learns", "right"),
        ("…about a direct\nneighbour", "right"),
        (f"…about a party\n{farthest} hops away", "right"),
        ("error of the\nanswer", "right"),
    ):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]

    local, curator = netdp.local_dp(masked), netdp.trusted_curator(masked)
    ideal = masked.sigma / np.sqrt(graph.n)

    def flat(name: str, guarantee: netdp.Guarantee) -> None:
        epsilon = readable(guarantee.worst_epsilon(DELTA))
        table.add_row(name, epsilon, epsilon, epsilon, f"{ideal:.3f}")

    def gossip(name: str, protocol: netdp.Gossip, style: str | None = None) -> float:
        epsilon = netdp.pairwise(protocol).epsilon(DELTA)
        seen = epsilon[:, OBSERVER]
        error = netdp.expected_error(protocol, values).rmse
        columns = (np.nanmax(epsilon), seen[distance == 1].max(), seen[distance == farthest].max())
        table.add_row(name, *(readable(float(e)) for e in columns), f"{error:.3f}", style=style)
        return float(np.nanmax(epsilon))

    flat("local DP: all publish", local)
    gossip("plain gossip", plain)
    worst = gossip("masked gossip", masked, "bold green")
    flat("trusted curator sees all", curator)
    console.print(table)

    colluders = sorted(np.random.default_rng(1).choice(graph.n, 6, replace=False).tolist())
    together = netdp.account(masked, colluders)
    surrounding = netdp.account(masked, graph.neighbors(OBSERVER).tolist())
    console.print(
        "\nMasked gossip: every edge shares a secret number; one end adds it, the other subtracts it: they cancel.\n"
        f"The worst-placed party learns ε = {readable(worst)}: nearly as little as if a curator that everybody trusts\n"
        f"had computed the mean ({readable(curator.worst_epsilon(DELTA))}), with the same error. There is no curator.\n\n"
        f"claim: {together.claim.value}, for every single observer; computed before anything is sent.\n"
        f"Six parties drawn at random collude: ε = {readable(together.worst_epsilon(DELTA))}. "
        f"All six neighbours of one party collude: "
        f"ε = {readable(surrounding.worst_epsilon(DELTA))},\nno better than local DP (why: docs/guarantees.md)."
    )
    picture = save_picture(summarise(masked, [OBSERVER], DELTA), Path(os.environ.get("NETDP_DEMO", "demo.html")))
    console.print(f"picture: {picture} (open it in a browser; click a party to look through its eyes)", soft_wrap=True)


if __name__ == "__main__":
    main()
