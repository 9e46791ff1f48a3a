"""Walks: "(α, ε)-local RDP becomes (α, ε·ln²n/n)-network DP for T = Ω̃(n²)", an informal theorem without constants; and certified.

T = n² steps, noise 40 and clipping 0.4 at every n, so that the local loss, n contributions of each user, grows with n. Local: the
same contributions with everything seen. The informal factor applied to the local Rényi loss is converted to ε at δ = 10⁻⁶.
"""

from __future__ import annotations

import numpy as np

from netdp.accounting import account, local_dp
from netdp.accounting.published.amplification.descent import informal_amplification
from netdp.privacy import Claim
from netdp.protocols import WalkDescent

from ..experiment import Experiment, Finding, Kind, Panel, Result, Series, Size
from ..running import Work

SIGMA, CLIP, STEP, DELTA = 40.0, 0.4, 0.1, 1e-6


def losses(n: int) -> dict[str, float]:
    """ε at δ: informal, certified, local."""
    walk = WalkDescent(n, n * n, sigma=SIGMA, step=STEP, clip=CLIP)
    ways = {
        "informal": account(walk, [0], method="published", version="lecture"),
        "certified": account(walk.replace(sender="hidden"), [0]),
        "known": account(walk.replace(sender="known"), [0]),  # what a real connection shows
        "local": local_dp(walk),
    }
    return {name: float(np.nanmax(loss.epsilon(DELTA))) for name, loss in ways.items()}


def run(size: Size, work: Work) -> Result:
    sizes = [50, 100, 200, 400] + ([1000, 2000] if size is Size.FULL else [])
    found = dict(zip(sizes, work.map(losses, sizes), strict=True))
    # ε is proportional to the root of a small Rényi loss
    factor = {n: (one["certified"] / one["local"]) ** 2 for n, one in found.items()}
    first, last = sizes[0], sizes[-1]
    power = float(np.polyfit(np.log(sizes), np.log([factor[n] for n in sizes]), 1)[0])
    return Result(
        settings={"T": "n²", "σ": SIGMA, "clip": CLIP, "δ": DELTA},
        findings=(
            Finding(
                f"ε at n = {last}",
                all(one["certified"] < one["informal"] for one in found.values()),
                formula=found[last]["informal"],
                certified=found[last]["certified"],
                claim=Claim.UPPER,
                note=f"local DP {found[last]['local']:.3g}; the informal statement, constants left out, is met with room to spare",
            ),
            Finding(
                f"factor on the local Rényi loss, n = {first} and {last}",
                all(value < informal_amplification(n) for n, value in factor.items()),
                printed="ln²n/n",
                formula=f"{informal_amplification(first):.3g} / {informal_amplification(last):.3g}",
                certified=f"{factor[first]:.3g} / {factor[last]:.3g}",
                claim=Claim.UPPER,
                note="the square of the ratio of the two ε",
            ),
            Finding(
                "power of n in the certified factor",
                -1.3 < power < -0.6,
                printed="−1 and logarithms",
                certified=power,
                note="a line through the logarithms of certified upper bounds",
            ),
        ),
        panels=(
            Panel(
                "Walks of T = n² steps",
                "number of users n",
                "ε at δ = 10⁻⁶",
                (
                    Series("local DP", sizes, [one["local"] for one in found.values()], Kind.LOCAL),
                    Series("informal, ln²n/n", sizes, [one["informal"] for one in found.values()], Kind.PUBLISHED),
                    Series(
                        "certified, sender hidden", sizes, [one["certified"] for one in found.values()], Kind.CERTIFIED
                    ),
                    Series("certified, sender known", sizes, [one["known"] for one in found.values()]),
                ),
                log_x=True,
                log_y=True,
            ),
        ),
    )


EXPERIMENT = Experiment(
    id="002-walks",
    paper="002",
    place="Theorem, random walks",
    title="amplification of walks by ln²n/n",
    shows="A walk on the complete graph is said to lose ln²n/n of what local DP loses.",
    run=run,
    quick="5 s; n up to 400",
    full="1 min; n up to 2,000",
)
