"""What a curator's accuracy costs without a curator: `python benchmarks/planning.py`, one table, minutes.

At (ε, δ) = (1, 1e-6), certified for every ordered pair (neighbours included), and again with a random tenth of the parties
colluding (20 draws, in addition to every single party): the predicted error of the mean of masked, refreshed and plain
gossip, of local DP and of a trusted curator. Errors hold for any values in an interval of length Δ = 1.
The aim: masked within 1.5× of the curator on expanders.
"""

from __future__ import annotations

import time

from measure import few, size
from netdp import graphs
from netdp.families.gossip.plan import plan_gossip

EPSILON, DELTA = 1.0, 1e-6


def main() -> None:
    print(f"error of the mean at certified ε = {EPSILON:g}, δ = {DELTA:g}; in brackets, times the trusted curator's")
    header = f"{'graph':18}{'against':>16}{'curator':>10}{'masked':>18}{'plain':>17}{'refreshed':>17}{'local DP':>17}"
    print(header + "   masked settings, time")
    shapes = (graphs.hypercube(8), graphs.grid(16, 16), graphs.regular(1024, 6, seed=0))
    for graph in size(shapes, quick=(graphs.hypercube(3),)):
        for share in few((None, 0.1)):
            start = time.perf_counter()
            found = plan_gossip(graph, EPSILON, DELTA, coalitions=share, kinds=("plain", "refreshed", "masked"))
            seconds = time.perf_counter() - start
            against = "each alone" if share is None else "+ random tenth"
            cells = f"{graph.name:18}{against:>16}{found.curator_rmse:10.5f}"
            for kind in ("masked", "plain", "refreshed"):
                option = found.option(kind)
                assert option is not None
                assert found.worst_epsilon(option) <= EPSILON
                cells += f"{option.rmse:9.5f} ({option.rmse / found.curator_rmse:5.2f})".rjust(17)
            cells += f"{found.local_rmse:9.5f} ({found.local_rmse / found.curator_rmse:5.2f})".rjust(17)
            masked = found.option("masked")
            assert masked is not None
            p, c = masked.protocol, masked.certificate
            settings = f"T={p.rounds} σ={p.sigma:.3f} κ={p.masks:g}{' accelerated' if p.accelerated else ''}"
            print(
                f"{cells}   {settings}; claim {c.claim.value}, {c.covered} observers and coalitions; {seconds:.0f} s",
                flush=True,
            )
            for note in found.notes:
                if note.startswith("masked"):
                    print(f"    {note}")


if __name__ == "__main__":
    main()
