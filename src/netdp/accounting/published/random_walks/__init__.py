"""Learning by a token that walks on a graph, as published. None of it is a guarantee.

pairwise    Cyffers, Bellet, Upadhyay: Differentially Private Decentralized Learning with Random Walks (ICML 2024)
tradeoff    Li, Su, Wang, Long, Su: Mitigating Privacy–Utility Trade-off in Decentralized Federated Learning via f-DP (NeurIPS 2025)
"""

from __future__ import annotations

from netdp.errors import InvalidValue, Unsupported
from netdp.privacy import Guarantee
from netdp.protocols.walk import WalkDescent

from .pairwise import pairwise_loss
from .tradeoff import tradeoff_loss

VERSIONS = ("2024", "2025")


def on_a_graph(protocol: WalkDescent, observers: tuple[int, ...], version: str | None) -> Guarantee:
    """The formula of 2024, or of 2025, for a `WalkDescent` on a graph."""
    if version not in (None, *VERSIONS):
        raise InvalidValue(f"unknown version {version!r} for descent on a graph; choose one of {', '.join(VERSIONS)}")
    if len(observers) > 1:
        raise Unsupported(
            f"the papers on walks over graphs are about one observer, got {len(observers)}; ask for method='certified'"
        )
    if protocol.walk != "metropolis":
        raise Unsupported("the papers are about walks with a symmetric matrix; take walk='metropolis'")
    if protocol.tokens > 1:
        raise Unsupported(f"the papers analyse one token, got tokens={protocol.tokens}; ask for method='certified'")
    if protocol.expansion > 1:
        raise Unsupported("amplification by iteration needs steps that do not expand; choose step ≤ 2/β")
    return (tradeoff_loss if version == "2025" else pairwise_loss)(protocol, observers[0])


__all__ = ["VERSIONS", "on_a_graph", "pairwise_loss", "tradeoff_loss"]
