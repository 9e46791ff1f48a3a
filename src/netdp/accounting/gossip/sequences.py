"""Accountants of gossip that changes from step to step: given graphs, given edges, or a sample of them.

With the realised edges (`transcript=run.transcript`) or graphs the loss is exact (`chain`). Beforehand nobody knows which
edges will be drawn, so without them the loss is an *estimate*: the mean factor over sampled sequences.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from netdp.accounting.published.muffliato import randomized as muffliato_randomized
from netdp.accounting.table import certified, published
from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import Progress
from netdp.privacy import Claim, Guarantee
from netdp.protocols import ErdosRenyiGossip, RandomizedGossip, VaryingGossip
from netdp.views import SequenceView, exchanged

from . import chain
from .secret_graph import secret_graph_loss
from .statements import certified_statement, published_statement


@certified.register
def _varying(protocol: VaryingGossip, observers: tuple[int, ...], *, progress: Progress | None = None) -> Guarantee:
    result = chain.factors(SequenceView(protocol, observers), progress)
    notes = ("all graphs are fixed beforehand and public", *result.notes)
    return certified_statement(protocol, result.values, observers, result.claim, result.slack, notes)


@certified.register
def _randomized(
    protocol: RandomizedGossip,
    observers: tuple[int, ...],
    *,
    transcript: Any = None,
    samples: int = 40,
    seed: int = 0,
    progress: Progress | None = None,
) -> Guarantee:
    """`transcript`: of a run, or its edges (steps, 2). Without it: an estimate over `samples` sequences from `seed`."""
    if transcript is None:
        return _estimate(protocol, observers, samples, seed, progress)
    result = chain.factors(SequenceView(protocol, observers, exchanged(protocol, transcript)), progress)
    notes = ("the edges are drawn without regard to the values, and known to the observers", *result.notes)
    return certified_statement(protocol, result.values, observers, result.claim, result.slack, notes)


@published.register
def _corollary2(protocol: RandomizedGossip, observers: tuple[int, ...], *, transcript: Any = None) -> Guarantee:
    if transcript is None:
        raise Unsupported(
            "Corollary 2 holds its formula for given edges only; pass transcript=run.transcript, or protocol.draw(seed)"
        )
    factor = muffliato_randomized.corollary2(protocol, observers, exchanged(protocol, transcript))
    return published_statement(protocol, factor, observers, muffliato_randomized.ERRATA)


@certified.register
def _erdos_renyi(protocol: ErdosRenyiGossip, observers: tuple[int, ...], *, degree: int | None = None) -> Guarantee:
    """A graph that stays secret; `degree` is how many neighbours the observers have. About parties that are none of them."""
    if degree is None:
        raise Unsupported(
            "the graph is not drawn yet. If it will be public, account for a draw: transcript=protocol.draw(seed). "
            "If it stays secret, say how many neighbours the observers have: degree=…"
        )
    if protocol.varying:
        raise Unsupported("the bound for a secret graph is proved for one graph per run (varying=False)")
    return secret_graph_loss(
        protocol.n, degree, protocol.rounds, protocol.sigma, protocol.sensitivity, observers=len(observers)
    )


def _estimate(
    protocol: RandomizedGossip, observers: tuple[int, ...], samples: int, seed: int, progress: Progress | None
) -> Guarantee:
    """The mean factor over sampled sequences, with its interval in words.

    Its curve is the one of the mean factor: an expected loss. A single run may well lose more.
    """
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 2:
        raise InvalidValue(f"samples must be a whole number ≥ 2, got {samples!r}")
    drawn = np.empty((samples, protocol.graph.n))
    seeds = np.random.SeedSequence(seed).generate_state(samples)
    for i, state in enumerate(seeds.tolist()):
        drawn[i] = chain.factors(SequenceView(protocol, observers, protocol.draw(state))).values
        if progress is not None:
            progress(i + 1, samples)
    mean = drawn.mean(axis=0)
    half = 1.96 * drawn.std(axis=0, ddof=1) / np.sqrt(samples)
    worst = int(np.nanargmax(mean))
    each = np.nanmax(drawn, axis=1)
    notes = (
        f"an estimate over {samples} sampled edge sequences (seed {seed}); it is the mean factor over sequences, and the "
        "factor of a run is known when its edges are: account(protocol, observers, transcript=run.transcript)",
        f"largest mean factor: party {worst}, {mean[worst]:.4g} ± {half[worst]:.2g} (95 %); "
        f"widest interval: ± {np.nanmax(half):.2g}",
        f"largest factor of any party in a sampled run: {each.mean():.4g} on average, {each.max():.4g} at most",
    )
    return certified_statement(protocol, mean, observers, Claim.ESTIMATE, 0.0, notes)
