"""Predicted against measured excess risk of learning: `python benchmarks/learning_predicted.py`.

For every learning protocol at the same certified (ε, δ): what `plan_learning` chooses, the excess risk it predicts,
the one that training finds (mean over seeds, clipped loss minus the least), and the test accuracy. The landscape
(distance and how far behind) is computed from the data, as the best over a path of penalties: that is for this
comparison only. Needs NETDP_DATA.

    --table housing:longitude   --parties 256   --epsilon 1 4   --seeds 3
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import netdp
from measure import few, size
from netdp import graphs
from netdp.learn import LogisticParties, accuracy, plan_learning, table, train, train_walk

DELTA, CLIP = 1e-6, 0.1
PENALTIES = few((0.1, 0.03, 0.01, 0.003, 0.001, 0.0003))


def drafts(n: int, d: int):
    common = {"sigma": 1.0, "step": 1.0, "clip": CLIP}
    cube = graphs.hypercube(n.bit_length() - 1)
    yield "trusted curator", netdp.CentralDescent(n, 1, **common), {}
    yield "masked", netdp.MaskedDescent(cube, 1, dimension=d, **common), {}
    yield "gossip, masks 100", netdp.GossipDescent(cube, 1, 1, masks=100.0, **common), {"most": 100}
    yield "gossip", netdp.GossipDescent(cube, 1, 1, **common), {"most": 100}
    yield "walk, sender known", netdp.WalkDescent(n, n, **common), {"most": 64}
    yield "local DP", netdp.LocalDescent(n, 1, **common), {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", default="housing:longitude")
    parser.add_argument("--parties", type=int, default=size(256, quick=16))
    parser.add_argument("--epsilon", type=float, nargs="+", default=few([1.0, 4.0]))
    parser.add_argument("--seeds", type=int, default=size(3, quick=1))
    asked = parser.parse_args()
    name, _, label = asked.table.partition(":")
    rows, test = table(name, label or None).split(0.2, 0)
    data = LogisticParties.deal(rows.X, rows.y, asked.parties, 0)
    least = data.risk(data._lowest(CLIP, 0.0), CLIP)
    valleys = [data.landscape(CLIP, penalty=penalty) for penalty in PENALTIES]
    start = data.risk(np.zeros(data.d), CLIP)
    print(f"{asked.table}: {data.n} parties, {data.d} features, clip {CLIP}, δ = {DELTA:g}")
    print(f"the least (clipped) risk is {least:.4f}, that of the model 0 {start:.4f}")
    print(f"{'':20}{'ε':>4} {'T':>7} {'K':>3} {'step':>8} {'σ':>8}  predicted  measured  accuracy  seconds")
    for epsilon in asked.epsilon:
        for title, draft, options in few(drafts(data.n, data.d), quick=2):
            began = time.perf_counter()
            plan = plan_learning(draft, epsilon, DELTA, valleys, **options)
            p, took = plan.protocol, time.perf_counter() - began
            risks, right = [], []
            for seed in range(asked.seeds):
                if isinstance(p, netdp.WalkDescent):
                    models = train_walk(p, data, seed).model[None]
                else:
                    models = train(p, data, seed, average=plan.average).models[:: max(data.n // 16, 1)]
                risks.append(np.mean([data.risk(model, CLIP) for model in models]) - least)
                right.append(np.mean([accuracy(model, test.X, test.y) for model in models]))
            length = p.steps if isinstance(p, netdp.WalkDescent) else p.iterations
            print(f"{title:20}{epsilon:4g} {length:7,} {getattr(p, 'gossip_rounds', ''):>3} {p.step:8.3g} {p.sigma:8.3g}  "
                  f"{plan.risk.total:9.3f}  {np.mean(risks):8.3f}  {np.mean(right):8.3f}  {took:7.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
