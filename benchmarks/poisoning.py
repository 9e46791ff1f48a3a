"""Lying users against accuracy, every learning protocol at equal (ε, δ): `python benchmarks/poisoning.py [case …]`.

shares    label flipping and pushing at the clip: share of liars against test accuracy, every protocol clip      the
same for the walk at several clipping levels: what a bound on the influence of one user costs and buys tokens    users
that replace the token: mean, median and trimmed mean over several tokens, short and long walks groups    masked
descent with medians of groups, liars spread over all groups or concentrated in few

Length, rounds and steps as in the estimators' defaults. Needs NETDP_DATA. --table housing:longitude --parties 256
--epsilon 4
"""

from __future__ import annotations

import argparse
from functools import cache

import numpy as np

import netdp
from measure import few, size
from netdp import graphs
from netdp.learn import (
    LogisticParties,
    accuracy,
    attacked,
    combine,
    influence,
    poisoned,
    replaced_tokens,
    table,
    train,
)
from netdp.learn.fitting import longest_step, step_for

DELTA, SEEDS = 1e-6, range(size(3, quick=1))
SHARES = few((0.0, 0.05, 0.1, 0.2, 0.3, 0.4), quick=2)


class Setting:
    def __init__(self, name: str, parties: int, epsilon: float) -> None:
        title, _, label = name.partition(":")
        rows, self.test = table(title, label or None).split(0.2, 0)
        self.data = LogisticParties.deal(rows.X, rows.y, parties, 0)
        self.n, self.epsilon, self.name = parties, epsilon, name
        self.cube = graphs.hypercube(parties.bit_length() - 1)

    @cache  # noqa: B019  one setting per run
    def protocols(self, clip: float = 0.1):
        common = {"sigma": 1.0, "step": 1.0, "clip": clip}
        d = self.data.d
        drafts = {
            "trusted curator": netdp.CentralDescent(self.n, 160, **common),
            "masked": netdp.MaskedDescent(self.cube, 160, dimension=d, **common),
            "gossip, masks 100": netdp.GossipDescent(self.cube, 160, 12, masks=100.0, **common),
            "walk": netdp.WalkDescent(self.n, 50 * self.n, **common),
            "local DP": netdp.LocalDescent(self.n, 160, **common),
        }
        return {name: self.stepped(netdp.calibrate(p, self.epsilon, DELTA)) for name, p in drafts.items()}

    def stepped(self, p):
        """The estimators' rule for the step: noise alone carries the model a set way."""
        if isinstance(p, netdp.GossipDescent | netdp.WalkDescent):
            return p.replace(step=step_for(p, self.data.d))
        noise = p.sigma * np.sqrt(p.iterations / self.n * self.data.d)
        return p.replace(step=min(15.0 / noise, longest_step(p.clip)))

    def right(self, model) -> float:
        return accuracy(model, self.test.X, self.test.y)


def shares(setting: Setting) -> None:
    print(
        f"{setting.name}, {setting.n} parties, ε = {setting.epsilon:g} at δ = {DELTA:g}: test accuracy, mean of "
        f"{len(SEEDS)} runs"
    )
    for attack in ("flip", "push"):
        print(f"{attack:20}" + "".join(f"{share:8.0%}" for share in SHARES) + "   one liar moves the model by at most")
        for name, p in setting.protocols().items():
            average = {} if isinstance(p, netdp.WalkDescent) else {"average": "weighted"}
            found = [
                np.mean(
                    [
                        attacked(p, setting.data, s, seed, attack=attack, test=setting.test, **average).accuracy
                        for seed in SEEDS
                    ]
                )
                for s in SHARES
            ]
            print(f"{name:20}" + "".join(f"{a:8.3f}" for a in found) + f"   {influence(p, [0]).max():.3f}")


def clip(setting: Setting) -> None:
    print(
        f"walk at ε = {setting.epsilon:g}, pushing liars: accuracy by clip; how far one liar moves the model, how "
        "long the model is"
    )
    for level in (0.02, 0.05, 0.1, 0.2, 0.5):
        p = setting.protocols(level)["walk"]
        found, length = [], 0.0
        for s in SHARES:
            runs = [attacked(p, setting.data, s, seed, attack="push", test=setting.test) for seed in SEEDS]
            found.append(np.mean([run.accuracy for run in runs]))
            length = length or float(np.mean([np.linalg.norm(run.model) for run in runs]))
        print(
            f"clip {level:<5g} σ {p.sigma:<6.3g}"
            + "".join(f"{a:8.3f}" for a in found)
            + f"   {influence(p, [0])[0]:.3f}   {length:.1f}"
        )


def tokens(setting: Setting) -> None:
    wrong = -20 * setting.data._lowest(0.1, 0.01) / np.linalg.norm(setting.data._lowest(0.1, 0.01))
    print(
        "one user replaces the token whenever it holds it (20 units the wrong way): accuracy of mean, trimmed mean, "
        "median of 15 tokens"
    )
    for visits in few((1, 2, 5, 50)):
        p = netdp.WalkDescent(
            setting.n, max(visits * setting.n, setting.n), sigma=0.05, step=1.0 / visits, clip=0.1, tokens=15
        )
        for bad in (0, 1, 3):
            rows = [replaced_tokens(p, setting.data, range(bad), wrong, seed) for seed in SEEDS]
            share = np.mean([(met > 0).mean() for _, met in rows])
            found = [
                np.mean([setting.right(combine(models, how)) for models, _ in rows])
                for how in ("mean", "trimmed", "median")
            ]
            print(
                f"{visits:3} visits per user, {bad} deviators: {share:4.0%} of the tokens replaced   "
                + "".join(f"{a:8.3f}" for a in found)
            )


def groups(setting: Setting) -> None:
    print(
        f"masked descent, ε = {setting.epsilon:g}, pushing liars: accuracy of the mean of all and of medians of "
        "groups; σ of a share"
    )
    base = setting.protocols()["masked"]
    for G, how in ((1, "mean"), (4, "median"), (8, "median"), (16, "median"), (16, "trimmed")):
        p = setting.stepped(netdp.calibrate(base.replace(groups=G, aggregate=how), setting.epsilon, DELTA))
        found = []
        for s in (0.0, 0.1, 0.2, 0.3, 0.4):
            for together in (False, True):
                right = []
                for seed in SEEDS:
                    order = np.random.default_rng(seed).permutation(setting.n)
                    who = (np.argsort(np.arange(setting.n) % G, kind="stable") if together else order)[
                        : round(s * setting.n)
                    ]
                    run = train(p, poisoned(setting.data, who, "push"), seed, average="weighted")
                    right.append(setting.right(run.models[0]))
                found.append(np.mean(right))
        pairs = "  ".join(f"{a:.3f}/{b:.3f}" for a, b in zip(found[::2], found[1::2], strict=True))
        print(f"{G:3} groups, {how:8} σ {p.sigma:<6.3g} (liars anywhere/in few groups, 0 to 40 %)  {pairs}")


CASES = {"shares": shares, "clip": clip, "tokens": tokens, "groups": groups}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], default=[])
    parser.add_argument("--table", default="housing:longitude")
    parser.add_argument("--parties", type=int, default=size(256, quick=16))
    parser.add_argument("--epsilon", type=float, default=4.0)
    asked = parser.parse_args()
    setting = Setting(asked.table, asked.parties, asked.epsilon)
    for case in asked.cases or size(list(CASES), quick=["tokens"]):
        CASES[case](setting)
        print()


if __name__ == "__main__":
    main()
