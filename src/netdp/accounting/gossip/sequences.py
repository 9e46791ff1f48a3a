"""Accountants of gossip that changes from step to step: given graphs, given edges, or a sample of them.

With the realised edges (`transcript=run.transcript`) or graphs the loss is exact (`chain`). Beforehand nobody knows which
edges will be drawn, so without them the loss is an *estimate* over sampled sequences.

**What is estimated.** The observers see the edges and the messages. The edges E are drawn without regard to the values, so
for two values of one party the laws of (E, messages) have the same first marginal, and for every ε

    δ(ε) = sup over events of P − e^ε P′ = E_E[ δ(ε given E) ],     δ(ε given E) = δ_μ(ε), μ² = factor_u(E)·Δ²/σ²:

the best event is chosen separately for every E. So δ is the mean of the exact δ over the draws, while an ε read off the mean
*factor* means nothing: far from the observers hardly any sequence reveals anything, and those few carry all of δ.

**How it is stated.** δ is averaged at some hundreds of ε, dense enough that ε(δ) is read within 1 % for δ from 10⁻¹² to 0.1
(`knots`); factors are rounded up by at most 0.02 % first, so that equal ones are computed once. The interval is the
percentile bootstrap: the sequences are drawn again from the sample, with repetition, and whatever is stated is computed
from each such sample. Unlike mean ± 1.96 deviations it follows the skewness of δ; like any interval from a sample it
knows nothing of sequences too rare to be in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from netdp.accounting.published.muffliato import randomized as muffliato_randomized
from netdp.accounting.table import certified, published
from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import FloatArray, IntArray, Progress
from netdp.privacy import Claim, Guarantee, ProfileCurve, gaussian_delta, gaussian_epsilon
from netdp.protocols import PushSum, RandomizedGossip, VaryingGossip
from netdp.views import ExchangeLogs, ExchangeView, MomentumView, PushView, SequenceView, exchanged

from . import chain
from . import exchanges as refreshed
from .exact import Factors
from .statements import certified_statement, published_statement
from .states import state_factors

# How many sequences are sampled: so many that what happens once in a thousand runs is seen often enough to count; fewer
# where one takes long (multiplications in all), and no more once so many could only be decided the slow way.
MOST_SAMPLES, FEWEST_SAMPLES, _WORK = 20_000, 40, 2e10
# A projector of more parties takes too much memory.
_MAX_PROJECTED = 2000
# The δ at which losses are compared in words, and the resamples of their interval.
_DELTA, _RESAMPLES = 1e-6, 1000
# Factors are rounded up to whole powers of e^this.
_FINENESS = 2e-4


@certified.register
def _varying(protocol: VaryingGossip, observers: tuple[int, ...], *, progress: Progress | None = None) -> Guarantee:
    result = chain.factors(SequenceView(protocol, observers), progress)
    notes = ("all graphs are fixed beforehand and public", *result.notes)
    return certified_statement(protocol, result.values, observers, result.claim, result.slack, notes)


@certified.register
def _push_sum(protocol: PushSum, observers: tuple[int, ...], *, progress: Progress | None = None) -> Guarantee:
    result = state_factors(PushView(protocol, observers), progress)
    return certified_statement(protocol, result.values, observers, result.claim, result.slack, result.notes)


@certified.register
def _randomized(
    protocol: RandomizedGossip,
    observers: tuple[int, ...],
    *,
    transcript: Any = None,
    samples: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Guarantee:
    """`transcript`: of a run, its edges (steps, 2) or the logs of its parties. Without it: an estimate over `samples`
    sequences from `seed`; on a grid local DP, which is certain.

    By default 20,000 sequences, fewer for large protocols. On a ring of 32 with 64 steps and σ = 2Δ that takes 4 s, and ε of
    the party five hops away at δ = 1e-6 (0.68; one sequence in 130 reaches the observer at all) came out between 0.55 and
    0.77 with 16 seeds.
    """
    if transcript is None and protocol.grid is None:
        return _estimate(protocol, observers, samples, seed, progress)
    if transcript is None:
        return refreshed.before_the_run(protocol, observers)
    if isinstance(transcript, ExchangeLogs) or protocol.grid is not None or protocol.refresh > 0:
        logs = transcript if isinstance(transcript, ExchangeLogs) else None
        logs = logs or ExchangeLogs.of_edges(protocol.n, exchanged(protocol, transcript))
        return refreshed.loss_of_exchanges(protocol, observers, logs)
    result = _given(protocol, observers, exchanged(protocol, transcript), progress)
    notes = ("the edges are drawn without regard to the values, and known to the observers", *result.notes)
    return certified_statement(protocol, result.values, observers, result.claim, result.slack, notes)


def _given(
    protocol: RandomizedGossip, observers: tuple[int, ...], edges: IntArray, progress: Progress | None = None
) -> Factors:
    """The exact factors on known edges."""
    if protocol.refresh > 0:
        return refreshed.factors(protocol, ExchangeView(ExchangeLogs.of_edges(protocol.n, edges), observers))
    if protocol.accelerated:
        return state_factors(MomentumView(protocol, observers, edges), progress)
    return chain.factors(SequenceView(protocol, observers, edges), progress)


@published.register
def _corollary2(protocol: RandomizedGossip, observers: tuple[int, ...], *, transcript: Any = None) -> Guarantee:
    if transcript is None:
        raise Unsupported(
            "Corollary 2 holds its formula for given edges only; pass transcript=run.transcript, or protocol.draw(seed)"
        )
    if protocol.accelerated:
        raise Unsupported(
            "Corollary 2 is about plain randomized gossip; the paper has no formula for the accelerated one"
        )
    if protocol.refresh > 0 or protocol.grid is not None:
        raise Unsupported("Corollary 2 knows no fresh noise and no grid; ask for it with refresh=0 and grid=None")
    factor = muffliato_randomized.corollary2(protocol, observers, exchanged(protocol, transcript))
    return published_statement(protocol, factor, observers, muffliato_randomized.ERRATA)


def _estimate(
    protocol: RandomizedGossip, observers: tuple[int, ...], samples: int | None, seed: int, progress: Progress | None
) -> Guarantee:
    """δ(ε) averaged over sampled sequences, with an interval in words; see the module."""
    n = protocol.graph.n
    patience = samples or FEWEST_SAMPLES
    if samples is None:
        samples = int(np.clip(_WORK / (protocol.steps * n**2), FEWEST_SAMPLES, MOST_SAMPLES))
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 2:
        raise InvalidValue(f"samples must be a whole number ≥ 2, got {samples!r}")
    drawn = np.empty((samples, n))
    sequence = np.random.SeedSequence(seed)
    for i, state in enumerate(sequence.generate_state(samples).tolist()):
        edges = protocol.draw(state)
        plain = n <= _MAX_PROJECTED and not protocol.accelerated and protocol.refresh == 0
        quick = chain.projected(SequenceView(protocol, observers, edges)) if plain else None
        drawn[i] = _given(protocol, observers, edges).values if quick is None else quick
        if progress is not None:
            progress(i + 1, samples)
        patience -= quick is None
        if patience == 0:
            break
    drawn = drawn[: i + 1]
    samples = len(drawn)
    mixture = Mixture(drawn, protocol.local_mu)
    losses = np.asarray(mixture.curve.epsilon(_DELTA))
    worst = int(np.nanargmax(losses))
    low, high, least, most = mixture.intervals(worst, float(losses[worst]), _DELTA, np.random.default_rng(sequence))
    each = np.nanmax(drawn, axis=1)
    notes = (
        f"an estimate over {samples} sampled edge sequences (seed {seed}): δ at every ε is the mean over them of the exact δ "
        "given the edges, which are drawn without regard to the values and known to the observers; what a run has lost is "
        "exact once its edges are known: account(protocol, observers, transcript=run.transcript)",
        f"at δ = {_DELTA:g} party {worst} loses most: ε = {losses[worst]:.4g}, 95 % interval {low:.4g} to {high:.4g}; δ at "
        f"this ε: {least:.2g} to {most:.2g} (bootstrap percentiles, {_RESAMPLES} resamples; sequences rarer than about one "
        f"in {samples} are not in the sample, and no interval knows of them)",
        "the factor is the mean factor over the sequences; no ε follows from it, since rare sequences carry most of δ",
        f"largest factor of any party in a sampled run: {each.mean():.4g} on average, {each.max():.4g} at most",
    )
    mean = drawn.mean(axis=0)
    return certified_statement(protocol, mean, observers, Claim.ESTIMATE, 0.0, notes, mixture.curve)


class Mixture:
    """The mean over draws of the Gaussian δ(ε) of every party; `drawn` has a factor per draw and party, nan at observers."""

    def __init__(self, drawn: FloatArray, local_mu: float) -> None:
        self._samples, n = drawn.shape
        self._mu, self._knots = local_mu, knots(local_mu)
        # Factors of zero lose nothing at any ε and are left out of the counts.
        draw, party = np.nonzero(drawn > 0)
        levels = np.ceil(np.log(np.minimum(drawn[draw, party], 1.0)) / _FINENESS)
        kinds, which = np.unique(levels, return_inverse=True)
        self._kinds = np.exp(kinds * _FINENESS)
        self._counts = sparse.csc_array((np.ones(len(draw)), (party, which)), shape=(n, len(kinds)))
        deltas = np.zeros((n, len(self._knots)))
        for first in range(0, len(kinds), 2048):  # a table of all would be large
            some = slice(first, first + 2048)
            deltas += self._counts[:, some] @ self._deltas(self._kinds[some])
        deltas = np.minimum.accumulate(deltas / self._samples, axis=1)  # rounding may break the order
        deltas[np.isnan(drawn[0])] = np.nan
        self.curve = ProfileCurve(self._knots, deltas)

    def _deltas(self, factors: FloatArray) -> FloatArray:
        return np.asarray(gaussian_delta(np.sqrt(factors)[:, None] * self._mu, self._knots))

    def intervals(
        self, party: int, epsilon: float, delta: float, rng: np.random.Generator
    ) -> tuple[float, float, float, float]:
        """95 % percentile bootstrap intervals: of ε at `delta`, and of δ at `epsilon`."""
        counts = self._counts[[party], :].toarray()[0]
        present = counts > 0
        factors, counts = self._kinds[present], counts[present]
        chances = np.append(counts, max(self._samples - counts.sum(), 0.0)) / self._samples
        shares = rng.multinomial(self._samples, chances / chances.sum(), size=_RESAMPLES)[:, :-1] / self._samples
        profiles = np.minimum.accumulate(shares @ self._deltas(factors), axis=1)
        # Between knots the chord reads ε too large and a straight line in log δ, which is concave, too small.
        high = np.quantile(ProfileCurve(self._knots, profiles).epsilon(delta), 0.975)
        heights = -np.log(np.maximum(profiles, 1e-300))
        low = np.quantile([np.interp(-np.log(delta), height, self._knots) for height in heights], 0.025)
        failures = shares @ np.asarray(gaussian_delta(np.sqrt(factors) * self._mu, epsilon))
        least, most = np.quantile(failures, [0.025, 0.975])
        return float(low), float(high), float(least), float(most)


def knots(local_mu: float) -> FloatArray:
    """The ε at which a mixture of Gaussian losses of μ ≤ local_mu is tabulated, up to where δ is below 1e-30.

    Between knots δ is read off the chord in e^ε. From one knot to the next ε grows by 1.5 %, so that log δ, which falls like
    (ε/μ)²/2, falls by at most 0.75 for δ ≥ 1e-12, and ε is read at most 0.2 % too large. A chord in e^ε bends only where ε
    changes by about 1, so steps are also at most 1/8 (or 1/600 of the whole, where ε is in the hundreds).
    """
    top = min(float(gaussian_epsilon(local_mu, 1e-30)), 1e6)
    knots, widest = [0.0, min(1e-3, 1e-4 * top)], max(0.125, top / 600)
    while knots[-1] < top:
        knots.append(knots[-1] + min(0.015 * knots[-1], widest))
    return np.asarray(knots)
