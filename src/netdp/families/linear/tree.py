"""The tree sum: partial sums go up a binary tree, and the root publishes.

Party 0 is the root; the children of u are 2u + 1 and 2u + 2. Everybody adds its noisy value to what its children sent and
passes the sum up to its parent. Siblings share a secret mask that one adds and the other subtracts, so that it cancels at their
parent. All messages are linear in values and Gaussian noises, so they are stated as matrices; the loss, error, calibration, run
and attack are those of every `LinearProtocol` (docs/proofs/linear.md#linear-gaussian). The two classical ways are stated here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from netdp.numerics.checks import finite_variance, non_negative, scale, whole
from netdp.privacy.guarantee import Guarantee
from netdp.protocols.alternatives import curator, gaussian_curator, gaussian_local, local

from .protocol import LinearGaussianView, LinearProtocol


@dataclass(frozen=True)
class TreeSum(LinearProtocol):
    """Partial sums go up a binary tree with party 0 at its root; siblings may share masks that cancel at their parent.

    Parameters
    ----------
    n : parties, at least 2.
    sigma : σ, the standard deviation of the noise that every party adds to its value.
    masks : κ ≥ 0; each pair of siblings shares a secret N(0, κσ²), added by one and subtracted by the other. With n even the
        last party has no sibling, and no mask.
    sensitivity : Δ, the largest L2 distance of two values of one party.

    Party 1 adds up what 3 and 4 send. Without masks it reads the noisy value of each; with large ones little more than the sum:

    >>> import netdp
    >>> p = TreeSum(7, sigma=2.0)
    >>> print(p)
    tree of 7 parties; partial sums go up, σ=2, Δ=1
    >>> netdp.account(p, [1]).mu.round(3).tolist()
    [0.25, nan, 0.25, 0.5, 0.5, 0.25, 0.25]
    >>> netdp.account(p.replace(masks=100.0), [1]).mu.round(3).tolist()
    [0.25, nan, 0.25, 0.354, 0.354, 0.25, 0.25]
    """

    kind: ClassVar[str] = "tree-sum"
    n: int
    sigma: float
    masks: float = 0.0
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        self._set(
            n=whole("n", self.n, 2, "a tree needs a root and somebody below it"),
            sigma=scale("sigma", self.sigma),
            masks=non_negative("masks", self.masks),
            sensitivity=scale("sensitivity", self.sensitivity),
        )
        finite_variance("masks", self.masks, self.sigma)

    def view(self) -> LinearGaussianView:
        parent = [(u - 1) // 2 for u in range(self.n)]
        sums = np.eye(self.n)  # row u: whose values are in what u passes on
        for u in range(self.n - 1, 0, -1):
            sums[parent[u]] += sums[u]
        siblings = [(u, u + 1) for u in range(1, self.n - 1, 2)] if self.masks else []
        masks = np.zeros((self.n, len(siblings)))  # they cancel at the parent, so each is in two messages only
        for k, (u, w) in enumerate(siblings):
            masks[u, k], masks[w, k] = 1.0, -1.0
        return LinearGaussianView(
            self.n,
            data=sums,
            noise=self.sigma * np.hstack([sums, np.sqrt(self.masks) * masks]),
            readers=(None, *((parent[u],) for u in range(1, self.n))),  # the root publishes
            known=(*((u,) for u in range(self.n)), *siblings),
            reading=np.eye(1, self.n) / self.n,  # the root's message, divided by n
            sensitivity=self.sensitivity,
        )

    def describe(self) -> str:
        masks = f", masks={self.masks:g}" if self.masks else ""
        return f"tree of {self.n:,} parties; partial sums go up, σ={self.sigma:g}{masks}, Δ={self.sensitivity:g}"


@local.register
def _local(protocol: TreeSum) -> Guarantee:
    return gaussian_local(protocol.sensitivity / protocol.sigma)


@curator.register
def _curator(protocol: TreeSum) -> Guarantee:
    return gaussian_curator(protocol.sensitivity / protocol.sigma, protocol.n)
