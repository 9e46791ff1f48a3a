"""Theorem 3 as a table: a random walk on the complete graph; both versions of the bound, and what is certified."""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.accounting import account, local_dp, trusted_curator
from netdp.accounting.published.amplification import tokens as paper
from netdp.privacy import Claim
from netdp.protocols import WalkSum

from ..experiment import Experiment, Finding, Result, Size, Table, near
from ..running import Work

EPSILON0, DELTA, DELTA0, VISITS = 0.1, 1e-6, 1e-8, 100


def row(n: int) -> dict[str, Any]:
    sigma = paper.local_sigma(EPSILON0, DELTA0)
    steps = VISITS * n
    walks = {sender: WalkSum(n, steps, sigma, sender=sender) for sender in ("hidden", "known")}
    return {
        "v1": paper.theorem3_2021(n, steps, EPSILON0, DELTA, DELTA),
        "v2": paper.theorem3_2022(n, steps, EPSILON0, DELTA, DELTA),
        **{sender: float(np.nanmax(account(walk, [0]).epsilon(DELTA))) for sender, walk in walks.items()},
        "curator": float(np.nanmax(trusted_curator(walks["hidden"]).epsilon(DELTA))),
        "local": float(np.nanmax(local_dp(walks["hidden"]).epsilon(DELTA))),
    }


def run(size: Size, work: Work) -> Result:
    sizes = [20, 100, 1000] + ([5000] if size is Size.FULL else [])
    found = work.map(row, sizes)
    at = dict(zip(sizes, found, strict=True))
    quoted = {100: (13.3, 0.0582, 0.0579), 1000: (12.4, 0.0167, 0.0167)}
    findings = [
        Finding(
            f"ε for n = {n}",
            near(at[n]["v1"], v1, 0.005)
            and near(at[n]["hidden"], hidden, 0.01)
            and near(at[n]["curator"], curator, 0.01),
            printed=v1,
            formula=at[n]["v1"],
            certified=at[n]["hidden"],
            claim=Claim.UPPER,
            note=f"a trusted curator with the same noise {at[n]['curator']:.4g}; local DP {at[n]['local']:.3g}; known senders "
            f"{at[n]['known']:.3g}",
        )
        for n, (v1, hidden, curator) in quoted.items()
    ]
    return Result(
        settings={
            "T": "100 n",
            "ε of one contribution": EPSILON0,
            "δ′ = δ̂": DELTA,
            "σ": paper.local_sigma(EPSILON0, DELTA0),
        },
        findings=tuple(findings),
        tables=(
            Table(
                "A walk on the complete graph, δ = 1e-6",
                ("n", "Theorem 3", "AISTATS 2022", "certified, hidden", "certified, known", "curator", "local DP"),
                tuple((n, f["v1"], f["v2"], f["hidden"], f["known"], f["curator"], f["local"]) for n, f in at.items()),
            ),
        ),
    )


EXPERIMENT = Experiment(
    id="000-theorem3",
    paper="000",
    place="Theorem 3",
    title="Sums on the complete graph",
    shows="A random walk hides contributions: the loss is smaller than local DP's by n^{1/4} (later √n).",
    run=run,
    quick="10 s",
    full="1 min",
    errata=("000-groups", "000-visits", "000-ring-release"),
)
