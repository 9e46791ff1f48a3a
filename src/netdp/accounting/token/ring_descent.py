"""Descent on a ring: what observers learn depends on how far behind the others they sit (docs/guarantees.md#ring-descent).

**Theorem.** Let steps not expand. Let u take its step of round k at hop t_k, and let l_k be the number of hops from there to
the next observer on the ring, or to the release if that comes first. What the observers see, the released model included, is
μ_u-Gaussian DP for u with

    μ_u² = (Δ/σ)²·Σ_k 1/l_k.

**Proof.** Between t_k and the next observer u does not come again (the observer sits on the ring too). Given what was seen
before, one step of u followed by l_k − 1 steps of others costs Δ/(σ√l_k) (iteration: `walk`, docs/guarantees.md#secret-walk):
C starts as A and is steered to B by l_k shifts of ηΔ/l_k, each in fresh noise. Costs of adaptive Gaussian mechanisms add up in
μ². ∎ If steps may expand, each step is shown as it is: l_k = 1.

**The neighbour.** l_k = 1 if the observer comes immediately after u: μ = √K·Δ/σ, exactly local DP, and it is attained: by
steps that forget the model (θ − ηg_u(θ) does not depend on θ), and by gradients that do not depend on it. On the path of a
random walk the same l is geometric with mean n/(c+1): that is the whole difference. The last users' last steps have few hops
to the release: user n − 1's last gradient is released with its own noise only, to everybody.
"""

from __future__ import annotations

import numpy as np

from netdp.accounting.baselines import curator, local, said
from netdp.accounting.table import certified
from netdp.numerics.arrays import UNIT, FloatArray, IntArray
from netdp.privacy import Adjacency, Claim, GaussianCurve, Guarantee
from netdp.protocols.ring_descent import RingDescent
from netdp.views import observer_set

REFERENCES = (
    "netdp, docs/guarantees.md#ring-descent: descent on a ring.",
    "V. Feldman, I. Mironov, K. Talwar, A. Thakurta. Privacy Amplification by Iteration. FOCS 2018.",
    "E. Cyffers, A. Bellet. Privacy Amplification by Decentralization. AISTATS 2022.",
)


def hops_to_sight(protocol: RingDescent, observers: tuple[int, ...]) -> IntArray:
    """(rounds, n): from each step, how many hops it is to the next observer or to the release; 0 at the observers.

    >>> hops_to_sight(RingDescent(5, rounds=2, sigma=1.0, step=0.1), (3,)).tolist()
    [[3, 2, 1, 0, 4], [3, 2, 1, 0, 1]]
    """
    n, users = protocol.n, np.arange(protocol.n)
    places = np.sort(np.asarray(observers, dtype=np.int64))
    following = np.append(places, places[0] + n)[np.searchsorted(places, users)]
    ahead = following - users
    hops = np.tile(ahead, (protocol.rounds, 1))
    hops[-1] = np.minimum(ahead, n - users)
    return hops


def ring_energy(protocol: RingDescent, observers: tuple[int, ...]) -> FloatArray:
    """(n,) μ_u² of the theorem; nan at the observers."""
    hops = hops_to_sight(protocol, observers)
    if protocol.expansion > 1:
        hops = np.minimum(hops, 1)
    with np.errstate(divide="ignore"):
        energy = (1.0 / hops).sum(axis=0) * (protocol.sensitivity / protocol.sigma) ** 2
    energy[list(observers)] = np.nan
    return np.asarray(energy * (1 + _slack(protocol)))


def _slack(protocol: RingDescent) -> float:
    return 4.0 * UNIT * (protocol.rounds + 16)


@certified.register
def _descent(protocol: RingDescent, observers: tuple[int, ...]) -> Guarantee:
    energy = ring_energy(protocol, observer_set(protocol.n, observers))
    steps = (
        "θ ↦ θ − η·g_u(θ), clipping and projection included, does not increase distances, for every user u. "
        "netdp.learn.train_ring checks it for logistic rows clipped one by one; for anything else it is the caller's to see to",
    )
    return Guarantee(
        curve=GaussianCurve(np.sqrt(energy)),
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(
            f"every contribution is bounded: the gradients of all users are clipped to norm {protocol.clip:g} before the noise "
            "is added",
            "the ring is public; the token is readable by its holder alone until it is released, then by everybody",
            "all users follow the protocol to its end; the observers pool their own data, noise and all they read",
            "a gradient may depend on the step and on the token that its user holds, on no earlier token",
            *(steps if protocol.expansion == 1 else ()),
            "the starting model does not depend on anybody's data",
            "noise is real-valued Gaussian; a deployment on a grid adds its distance to δ",
        ),
        references=REFERENCES,
        factor=energy / protocol.local_mu**2,
        slack=_slack(protocol),
    )


@local.register
def _local(protocol: RingDescent) -> Guarantee:
    return said(
        GaussianCurve(protocol.local_mu), "every user publishes all its gradients, each with its own noise", Claim.EXACT
    )


@curator.register
def _curator(protocol: RingDescent) -> Guarantee:
    """Only the last model is seen: u's steps are followed by n hops each, until u's next one, the last by n − u."""
    n = protocol.n
    last = n - np.arange(n) if protocol.expansion == 1 else np.ones(n)
    before = (protocol.rounds - 1) / (n if protocol.expansion == 1 else 1)
    energy = (before + 1.0 / last) * (protocol.sensitivity / protocol.sigma) ** 2 * (1 + _slack(protocol))
    return said(
        GaussianCurve(np.minimum(np.sqrt(energy), protocol.local_mu)),
        "a curator that everybody trusts takes the same steps in the same public order and publishes the last model only",
    )
