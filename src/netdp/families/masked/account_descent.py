"""What a coalition learns from training under one-time pads, certified: the loss of T noisy sums of gradients.

Each sum is of gradients that react to the sums before, which everybody knows: an adaptive composition, with neither hidden states
nor convexity (docs/proofs/masked.md#masked-descent). Records, and secret coins that say who takes part in an iteration, make the
releases sampled ones (docs/proofs/masked.md#sampled-descent). A random mask graph is drawn once: the probability that it is cut
is added to δ once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from netdp.errors import InvalidValue
from netdp.families.masked.account import (
    ALL_PAIRS,
    THIS_COALITION,
    adjacency_of,
    check_not_cut,
    component_sizes,
    curve_of_rows,
    cut_probability,
    factor_of,
    fewest_honest,
    pads_and_noise,
    release_of,
    with_missed,
)
from netdp.families.masked.account import REFERENCES as OF_SUMS
from netdp.families.masked.descent import MaskedDescent
from netdp.mechanisms.noisy_sums import (
    Release,
    releases_curve,
    repeated_delta,
    repeated_points,
    sampled_releases_curve,
    stacked_delta,
)
from netdp.numerics.arrays import FloatArray, IntArray, Progress
from netdp.numerics.checks import switch, whole
from netdp.privacy.curve import Curve
from netdp.privacy.curves import SharedCurve
from netdp.privacy.guarantee import Claim, Guarantee, Unit
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.alternatives import curator, local, said
from netdp.protocols.table import certified

REFERENCES = ("netdp, docs/proofs/masked.md#masked-descent: iterations as releases.", *OF_SUMS)

OF_SAMPLING = (
    "netdp, docs/proofs/masked.md#sampled-descent: secret participation, records, and discrete noise.",
    "Y. Zhu, J. Dong, Y.-X. Wang. Optimal Accounting of Differential Privacy via Characteristic Function. AISTATS 2022.",
    "V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi. Connect the Dots: Tighter Discrete Approximations of Privacy "
    "Loss Distributions. PETS 2022.",
)


@certified.register
def _descent(
    protocol: MaskedDescent,
    observers: tuple[int, ...],
    *,
    fixed_before_draw: bool = False,
    progress: Progress | None = None,
) -> Guarantee:
    drawn = switch("fixed_before_draw", fixed_before_draw)
    if protocol.sum.mask_graph is None:
        return against_any(protocol, len(observers))
    if drawn:
        if protocol.groups > 1:
            raise InvalidValue("fixed_before_draw: groups are not drawn at random; account without it")
        check_not_cut(protocol.sum, observers)
        return against_any(protocol, len(observers))
    return component_losses(protocol, component_sizes(protocol.sum, observers), progress=progress)


def component_losses(
    protocol: MaskedDescent, sizes: IntArray, last: str | None = None, *, progress: Progress | None = None
) -> Guarantee:
    """The loss about everybody who hides with so many parties, itself included; 0 for those who look."""
    loss = _guarantee(protocol, *_shared(protocol, sizes, progress), among=None)
    return loss if last is None else replace(loss, assumptions=(*loss.assumptions[:-1], last))


def against_any(protocol: MaskedDescent, colluders: int) -> Guarantee:
    """What any so many parties together learn about anybody else, in all iterations: one curve.

    With groups they are taken to sit in the smallest one. With a random mask graph they were fixed before it was drawn, and δ
    has the probability added that they cut somebody off.

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(200), 50, sigma=4.0, step=0.5, dimension=10)
    >>> [round(float(against_any(q, 40).epsilon(1e-6)), 3) for q in (p, p.replace(attempts=2), p.replace(groups=4))]
    [1.198, 1.744, 5.556]
    """
    honest, missed = hidden_among(protocol, colluders)
    curve = learned_curve(protocol, honest)
    if missed:
        curve = with_missed(curve, missed)
    return _guarantee(protocol, curve, np.asarray(protocol.attempts / honest), among=colluders, missed=missed)


def hidden_among(protocol: MaskedDescent, colluders: int) -> tuple[int, float]:
    """The fewest honest parties whose noise hides a gradient from any so many colluders, and the chance that there are fewer."""
    if protocol.groups == 1:
        return fewest_honest(protocol.sum, colluders), cut_probability(protocol.sum, colluders)
    left = protocol.smallest_group - whole("colluders", colluders)
    if left < 1:
        raise InvalidValue(
            f"{colluders} colluders and {protocol.groups} groups of {protocol.n} parties: they may be all others of somebody's "
            "group, which then has local DP; form fewer groups"
        )
    return left, 0.0


def learned_curve(protocol: MaskedDescent, size: int) -> ProfileCurve:
    """What all iterations tell about one of `size` honest parties that hide together."""
    return _curve(protocol, size, protocol.releases)


def _curve(protocol: MaskedDescent, size: int, times: int) -> ProfileCurve:
    if protocol.sampling == 1:
        return releases_curve([release_of(protocol.sum, size)] * times)
    return sampled_releases_curve(
        protocol.sum.share, size, protocol.distance, protocol.dimension, protocol.sampling, times, protocol.replaced
    )


@local.register
def _local(protocol: MaskedDescent) -> Guarantee:
    words = "every party publishes its own gradient with its share of the noise, in every iteration"
    return _baseline(protocol, 1, words)


@curator.register
def _curator(protocol: MaskedDescent) -> Guarantee:
    words = "a curator that everybody trusts sees all gradients, and only their sums with everybody's share of the noise are seen"
    return _baseline(protocol, protocol.n, words)


def _baseline(protocol: MaskedDescent, size: int, words: str) -> Guarantee:
    loss = said(_curve(protocol, size, protocol.iterations), words, factor=1.0 / size)
    loss = replace(loss, adjacency=adjacency_of(protocol), unit=Unit(protocol.unit))
    return replace(loss, factor=None) if protocol.sampling < 1 else loss


def _shared(protocol: MaskedDescent, sizes: IntArray, progress: Progress | None) -> tuple[Curve, FloatArray]:
    """One curve per size of a component."""
    kinds = np.unique(sizes[sizes > 0])
    which, factor = np.where(sizes > 0, np.searchsorted(kinds, sizes), -1), factor_of(protocol.attempts, sizes)
    if protocol.sampling < 1:
        curves = []
        for done, size in enumerate(kinds.tolist(), start=1):
            curves.append(learned_curve(protocol, size))
            if progress is not None:
                progress(done, len(kinds))
        points = np.unique(np.concatenate([curve.epsilons for curve in curves]))
        return SharedCurve(curve_of_rows(points, [curve.delta for curve in curves], None), which), factor
    releases = [release_of(protocol.sum, int(size)) for size in kinds]
    times = protocol.releases
    points = np.unique(np.concatenate([repeated_points(release, times) for release in releases]))
    rows = [_delta(release, times) for release in releases]
    return SharedCurve(curve_of_rows(points, rows, progress), which), factor


def _delta(release: Release, times: int) -> Callable[[FloatArray], FloatArray]:
    if release.dimension == 1 or times == 1:
        return partial(repeated_delta, release, times)
    return partial(stacked_delta, Counter({release: times}))


def _guarantee(
    protocol: MaskedDescent, curve: Curve, factor: FloatArray, *, among: int | None, missed: float = 0.0
) -> Guarantee:
    if among is None:
        last = THIS_COALITION
    elif protocol.sum.mask_graph is None:
        last = ALL_PAIRS
    elif protocol.groups > 1:
        last = f"the {among} who collude may all sit in the smallest of the {protocol.groups} groups"
    else:
        last = (
            f"the {among} who collude, and everybody's number, were fixed before the mask graph was drawn, before anybody could "
            f"foresee its seed ({protocol.mask_seed}), of which SHAKE-256 is as good as random; they cut somebody off with a "
            f"probability of at most {missed:.2g}, which is part of δ"
        )
    guarantee = Guarantee(
        curve=curve,
        adjacency=adjacency_of(protocol),
        unit=Unit(protocol.unit),
        claim=Claim.UPPER,
        assumptions=(*_assumptions(protocol), last),
        references=REFERENCES if protocol.sampling == 1 else (*OF_SAMPLING, *REFERENCES),
        factor=factor,
    )
    # a sampled loss is no multiple of the local one: less noise costs more than in proportion
    return replace(guarantee, factor=None) if missed or protocol.sampling < 1 else guarantee


def _assumptions(protocol: MaskedDescent) -> tuple[str, ...]:
    single = protocol.sum
    often = f"at most {protocol.attempts} times" if protocol.attempts > 1 else "once"
    roster = (
        f", and only among a roster of at least {single.smallest_roster} parties to which all of them have agreed, each to one "
        "roster per attempt; pads are bound to iteration, attempt and roster"
        if protocol.attempts > 1 or protocol.absent
        else ""
    )
    if protocol.unit == "record":
        assert protocol.max_records is not None
        values = (
            f"a record's gradient has at most {protocol.dimension:,} coordinates, is clipped to an L2 norm of {protocol.clip:g} "
            f"and rounded by itself to whole steps g = {single.step!r}; its rounded vector is at most {protocol.distance:g} steps "
            "long and depends on that record and on the model alone, not on the other records; a party adds up these whole "
            "numbers, and nothing else that it sends or does depends on how many there are"
        )
        fixed = "a party's records are fixed beforehand; the gradient of one is a function of it and of sums that were published"
    else:
        values = (
            f"a party's gradient has at most {protocol.dimension:,} coordinates and is clipped to an L2 norm of {protocol.clip:g} "
            f"before it is rounded; each coordinate x becomes ⌊x/g + ½⌋, g = {single.step!r}, and by no other rule"
        )
        fixed = (
            "a party's data are fixed beforehand; its gradient is a function of them and of sums that were published, "
            "and of nothing else"
        )
    return (
        values,
        *_coins(protocol),
        f"in each of {protocol.iterations} iterations every party outside the coalition publishes {often}, under fresh pads and "
        f"noise of its own{roster}; an attempt that is repeated beyond that counts",
        f"{fixed}; the coalition may do what it likes",
        *pads_and_noise(single),
        "graphs, grid, modulus, noise level, step and start are public",
    )


def _coins(protocol: MaskedDescent) -> tuple[str, ...]:
    if protocol.sampling == 1:
        return ()
    who = "record" if protocol.unit == "record" else "party"
    return (
        f"in every iteration, and in every attempt of it, each {who} takes part with probability "
        f"{protocol.threshold}/2^32 by a fresh coin of its own, drawn exactly from a cryptographic source by the party that holds "
        f"the data and kept to itself; whoever does not take part adds zero, and nothing else, not the time it takes to answer "
        "either, tells who did",
    )
