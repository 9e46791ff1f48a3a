"""The classical alternatives to network shuffling: local DP, a trusted shuffler, a trusted sampler."""

from __future__ import annotations

import math

from netdp.accounting.baselines import curator, local, said, single_response
from netdp.accounting.heap.clones import shuffled_profile
from netdp.mechanisms.base import IDEAL_DRAWS
from netdp.numerics.checks import between
from netdp.privacy import Guarantee, ProfileCurve
from netdp.protocols import Shuffle


@local.register
def _local_reports(protocol: Shuffle) -> Guarantee:
    pure, delta0 = single_response(protocol.epsilon0, 2), protocol.delta0
    curve = ProfileCurve(pure.epsilons, delta0 + (1 - delta0) * pure.deltas)
    return said(curve, "every user publishes its report", more=(IDEAL_DRAWS,))


@curator.register
def _curator_shuffle(protocol: Shuffle) -> Guarantee:
    curve = shuffled_profile(protocol.n - 1, protocol.epsilon0, delta0=protocol.delta0)
    return said(curve, "a trusted shuffler permutes all reports uniformly", more=(IDEAL_DRAWS,))


def trusted_sampler(protocol: Shuffle, share: float | None = None) -> Guarantee:
    """A trusted server draws `share` (1/√n) of all reports, a fixed number, and shows them; who was drawn stays secret.

    With k of n drawn and q = k/n, (1 − q)B + qR_x stands against the same with R_x′, and the report of somebody else takes the
    place of u's in B: δ(ε′) = q·δ_ε₀(ε) with e^ε′ = 1 + q(e^ε − 1) (Balle, Barthe and Gaboardi 2018), which is a single
    chord in e^ε′. (If each report were drawn by a coin of its own, all of them might be shown: at δ = 0 the loss would be
    ε₀.) It is the "uniform subsampling" of the paper's Table 1, e^ε₀/√n there. The price: an estimate from √n reports.

    >>> from netdp import graphs
    >>> loss = trusted_sampler(Shuffle(graphs.regular(10_000, 3, seed=0), rounds=3, epsilon0=1.0))
    >>> print(f"{loss.worst_epsilon(0.0):.4f}")
    0.0170
    """
    n, e0 = protocol.n, protocol.epsilon0
    wanted = math.sqrt(n) if share is None else n * between("share", share, 0.0, 1.0, open_low=True)
    drawn = min(n, math.ceil(wanted - 1e-9 * n)) or 1
    q = drawn / n
    end = math.log1p(q * math.expm1(e0)) if e0 < 30 else e0 + math.log(q + (1 - q) * math.exp(-e0))
    top = q * math.tanh(e0 / 2)
    keep, told = 1 - protocol.delta0, q * protocol.delta0
    curve = ProfileCurve([0.0, end * (1 + 1e-14)], [min(1.0, (told + keep * top) * (1 + 1e-14)), told])
    return said(
        curve,
        f"a trusted server draws {drawn} of the {n} reports, every such set with the same probability, and hides who was drawn",
        more=(IDEAL_DRAWS,),
    )
