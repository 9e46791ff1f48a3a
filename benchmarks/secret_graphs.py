"""Secret graphs: what is certified before they are drawn, against local DP, the printed formulas and realised runs.

    python benchmarks/secret_graphs.py

Muffliato-GD's setting: n = 2000 and 4000, Erdős–Rényi graphs of parameter ln(n)/n drawn anew in every iteration; ε at δ =
10⁻⁶. The noise is such that local DP costs the same ε in every row. Realised: the certified loss of three draws that have
become public, worst and median over 199 parties, against one observer.
"""

from __future__ import annotations

import math

import numpy as np

from measure import few, size
from netdp.families.gossip.account.descent import loss_energy
from netdp.families.gossip.account.secret_graphs import floor
from netdp.families.gossip.descent import ErdosRenyiDescent
from netdp.families.gossip.varying import ErdosRenyiGossip
from netdp.privacy import gaussian_epsilon
from netdp.protocols.accounting import account
from netdp.protocols.alternatives import local_dp

DELTA = 1e-6


def averaging() -> None:
    print("averaging, sigma = 4, local DP 1.061")
    print(f"{'n':>5} {'T':>3} {'colluders':>9} {'redrawn':>8} {'one graph':>9} {'floor':>6} {'printed':>8}")
    for n in size((2000, 4000), quick=(50,)):
        for rounds, colluders in few(((6, 1), (20, 1), (6, 20))):
            protocol = ErdosRenyiGossip(n, math.log(n) / n, rounds, 4.0, varying=True)
            who = list(range(colluders))
            redrawn = account(protocol, who).worst_epsilon(DELTA)
            once = account(protocol.replace(varying=False), who).worst_epsilon(DELTA)
            low, high = 0.0, 2.0
            for _ in range(40):
                middle = (low + high) / 2
                low, high = (middle, high) if floor(protocol, colluders, middle) > DELTA else (low, middle)
            printed = account(protocol.replace(varying=False), who, method="published").worst_epsilon(DELTA)
            print(f"{n:5} {rounds:3} {colluders:9} {redrawn:8.3f} {once:9.3f} {high:6.3f} {printed:8.3f}")


def learning(realised: bool = True) -> None:
    print("\nlearning, one round of gossip per gradient; realised: three draws, one observer")
    print(
        f"{'n':>5} {'T':>5} {'colluders':>9} {'K':>2} {'before the draw':>15} {'local':>6} {'printed':>8} realised (worst, median)"
    )
    for n in size((2000, 4000), quick=(50,)):
        for iterations in few((10, 100)):
            for colluders, rounds in few(((1, 1), (20, 1), (n // 10, 1), (1, 2))):
                protocol = ErdosRenyiDescent(
                    n,
                    math.log(n) / n,
                    iterations,
                    sigma=4 * math.sqrt(iterations),
                    step=0.7,
                    clip=0.5,
                    gossip_rounds=rounds,
                )
                who = list(range(colluders))
                found = account(protocol, who).worst_epsilon(DELTA)
                printed = account(protocol, who, method="published").worst_epsilon(DELTA)
                local = local_dp(protocol).worst_epsilon(DELTA)
                line = f"{n:5} {iterations:5} {colluders:9} {rounds:2} {found:15.3f} {local:6.3f} {printed:8.3f}"
                if realised and colluders == 1 and iterations == 10 and n == 2000:
                    line += " " + ", ".join(f"{worst:.3f} {median:.3f}" for worst, median in _realised(protocol))
                print(line, flush=True)


def _realised(protocol: ErdosRenyiDescent) -> list[tuple[float, float]]:
    found = []
    for seed in range(3):
        energy = loss_energy(protocol.draw(seed), (0,), targets=np.arange(1, 200))
        mu = np.sqrt(energy) * protocol.sensitivity / protocol.sigma
        found.append((float(gaussian_epsilon(mu.max(), DELTA)), float(gaussian_epsilon(np.median(mu), DELTA))))
    return found


def density() -> None:
    print(
        "\nlearning, n = 2000: eps by the mean degree of the graphs; denser ones hide more in one mixing and are met more often"
    )
    degrees = few((7.6, 15, 30, 60, 120))
    print(f"{'T':>5} {'colluders':>9} " + " ".join(f"{degree:>6}" for degree in degrees))
    for iterations in few((10, 100)):
        for colluders in few((1, 20)):
            row = []
            for degree in degrees:
                sigma = 4 * math.sqrt(iterations)
                protocol = ErdosRenyiDescent(2000, degree / 2000, iterations, sigma=sigma, step=0.7, clip=0.5)
                row.append(account(protocol, list(range(colluders))).worst_epsilon(DELTA))
            print(f"{iterations:5} {colluders:9} " + " ".join(f"{epsilon:6.3f}" for epsilon in row), flush=True)


if __name__ == "__main__":
    averaging()
    learning()
    density()
