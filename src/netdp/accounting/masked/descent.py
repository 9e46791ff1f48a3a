"""Learning under one-time pads: the loss of T noisy sums, each of gradients that react to the sums before.

**Theorem.** Fix a coalition O, an honest party u, and let K be u's connected part of the mask graph without O (its
group without O, if there are groups). What O learns about u in T iterations of at most A attempts is at most what T·A
releases tell: sums of the noise of |K| honest parties around values that u's data move by at most `distance` steps,
each chosen after everything that was published before. Proof: docs/guarantees.md#masked-descent.

*Proof.* Take one iteration with everything published before as given. The gradients of all honest parties are then
fixed: each is a function of that party's own data and of θ, which is a function of sums that O has. So the theorem on
masked sums (docs/guarantees.md#masked-sum) holds for this iteration with fresh pads and noise: of the published
numbers O learns the sums over the parts of the mask graph without O; and only the sum over K depends on u's data, by
at most the distance of two clipped gradients on the grid. Sums over other parts, and everybody's later gradients,
react to u only through what O has seen. So the whole is an adaptive composition of T releases; with several attempts
per iteration, of T·A (docs/guarantees.md#masked-attempts, (1) to (4), iteration by iteration). Their loss is bounded
by `netdp.accounting.masked.releases`, whose bounds are on the joint law of the noises and hold for every adaptive
choice. ∎ In Gaussian terms μ² = T·A·Δ²/(|K|σ²): a curator's, with the noise of the honest parties. No bound on hidden
states is needed, and neither convexity nor smoothness: nothing is hidden but the gradients themselves.

**Records, and coins.** With unit "record" u's number is a sum of whole numbers, one rounded vector for each of its records;
one record more or less moves it by that vector, at most `distance` steps. With sampling < 1 the vector is in the sum of an
iteration only if a coin that u alone has seen says so. Given everything published before, u's data and the coins of all
others, an iteration is then one *sampled* release (`netdp.accounting.masked.sampled`): the coin is fresh and independent
of all that was seen. Proof: docs/guarantees.md#sampled-descent.

What everybody makes of the sums (a mean or a median of groups, an average of models along the way) is
post-processing. A random mask graph is drawn once: the probability that the coalition cuts somebody off is added to δ
once, whatever T is.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from netdp.accounting.baselines import curator, local, said
from netdp.accounting.table import certified
from netdp.errors import InvalidValue
from netdp.numerics.arrays import UNIT, FloatArray, IntArray, Progress
from netdp.numerics.checks import switch, whole
from netdp.privacy import Adjacency, Claim, Curve, Guarantee, ProfileCurve, SharedCurve, Unit
from netdp.protocols.masked_descent import MaskedDescent

from .cuts import cut_probability
from .releases import Release, releases_curve, repeated_delta, repeated_points, stacked_delta
from .sampled import sampled_releases_curve
from .sums import REFERENCES as OF_SUMS
from .sums import component_sizes, fewest_honest, release_of

REFERENCES = ("netdp, docs/guarantees.md#masked-descent: iterations as releases.", *OF_SUMS)
OF_SAMPLING = (
    "netdp, docs/guarantees.md#sampled-descent: secret participation, records, and discrete noise.",
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
    one, drawn = protocol.sum, switch("fixed_before_draw", fixed_before_draw)
    if one.mask_graph is None:
        return against_any(protocol, len(observers))
    sizes = component_sizes(one, observers)
    if drawn:
        if protocol.groups > 1:
            raise InvalidValue("fixed_before_draw: groups are not drawn at random; account without it")
        if int(sizes[sizes > 0].min()) < protocol.n - len(observers):
            raise InvalidValue(
                f"fixed_before_draw: on the mask graph that was drawn these {len(observers)} observers do cut "
                "parties off, so what "
                "they learn is known and more; account without it"
            )
        return against_any(protocol, len(observers))
    return component_losses(protocol, sizes, progress=progress)


def component_losses(
    protocol: MaskedDescent, sizes: IntArray, last: str | None = None, *, progress: Progress | None = None
) -> Guarantee:
    """The loss about everybody who hides with so many parties, itself included; 0 for those who look."""
    found = _guarantee(protocol, *_shared(protocol, sizes, progress), among=None)
    return found if last is None else replace(found, assumptions=(*found.assumptions[:-1], last))


def against_any(protocol: MaskedDescent, colluders: int) -> Guarantee:
    """What any so many parties together learn about anybody else, in all iterations: one curve.

    With groups they are taken to sit in the smallest one. With a random mask graph they were fixed before it was
    drawn, and δ has the
    probability added that they cut somebody off.

    >>> from netdp import graphs
    >>> p = MaskedDescent(graphs.ring(200), 50, sigma=4.0, step=0.5, dimension=10)
    >>> [round(float(against_any(q, 40).epsilon(1e-6)), 3) for q in (p, p.replace(attempts=2), p.replace(groups=4))]
    [1.198, 1.744, 5.556]
    """
    honest, missed = hidden_among(protocol, colluders)
    curve = learned_curve(protocol, honest)
    if missed:
        curve = ProfileCurve(curve.epsilons, np.minimum((curve.deltas + missed) * (1 + 4 * UNIT), 1.0))
    return _guarantee(protocol, curve, np.asarray(protocol.attempts / honest), among=colluders, missed=missed)


def hidden_among(protocol: MaskedDescent, colluders: int) -> tuple[int, float]:
    """The fewest honest parties whose noise hides a gradient from any so many colluders, and the probability that
    there are fewer."""
    if protocol.groups == 1:
        return fewest_honest(protocol.sum, colluders), cut_probability(protocol.sum, colluders)
    left = protocol.smallest_group - whole("colluders", colluders)
    if left < 1:
        raise InvalidValue(
            f"{colluders} colluders and {protocol.groups} groups of {protocol.n} parties: they may be all others of "
            "somebody's group, "
            "which then has local DP; form fewer groups"
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
    loss = replace(loss, adjacency=_adjacency(protocol), unit=Unit(protocol.unit))
    return replace(loss, factor=None) if protocol.sampling < 1 else loss


def _shared(protocol: MaskedDescent, sizes: IntArray, progress: Progress | None) -> tuple[Curve, FloatArray]:
    """One curve per size of a component."""
    kinds = np.unique(sizes[sizes > 0])
    which = np.where(sizes > 0, np.searchsorted(kinds, sizes), -1)
    factor = np.where(sizes > 0, protocol.attempts / np.maximum(sizes, 1), np.nan)
    if protocol.sampling < 1:
        curves = []
        for done, size in enumerate(kinds.tolist(), start=1):
            curves.append(learned_curve(protocol, size))
            if progress is not None:
                progress(done, len(kinds))
        points = np.unique(np.concatenate([curve.epsilons for curve in curves]))
        rows = [np.minimum.accumulate(np.asarray(curve.delta(points))) for curve in curves]
        return SharedCurve(ProfileCurve(points, np.stack(rows)), which), factor
    releases = [release_of(protocol.sum, int(size)) for size in kinds]
    times = protocol.releases
    points = np.unique(np.concatenate([repeated_points(release, times) for release in releases]))
    rows = []
    for done, release in enumerate(releases, start=1):
        rows.append(np.minimum.accumulate(_delta(release, times, points)))
        if progress is not None:
            progress(done, len(releases))
    return SharedCurve(ProfileCurve(points, np.stack(rows)), which), factor


def _delta(release: Release, times: int, points: FloatArray) -> FloatArray:
    if release.dimension == 1 or times == 1:
        return repeated_delta(release, times, points)
    return stacked_delta(Counter({release: times}), points)


def _adjacency(protocol: MaskedDescent) -> Adjacency:
    return Adjacency.ADD_REMOVE if protocol.unit == "record" else Adjacency.REPLACE


def _guarantee(
    protocol: MaskedDescent, curve: Curve, factor: FloatArray, *, among: int | None, missed: float = 0.0
) -> Guarantee:
    if among is None:
        last = "for this coalition and the mask graph as it is; another coalition of as many parties may learn more"
    elif protocol.sum.mask_graph is None:
        last = "pads between all pairs: any other coalition of as many parties learns as much, and no more"
    elif protocol.groups > 1:
        last = f"the {among} who collude may all sit in the smallest of the {protocol.groups} groups"
    else:
        last = (
            f"the {among} who collude, and everybody's number, were fixed before the mask graph was drawn, before "
            "anybody could foresee "
            f"its seed ({protocol.mask_seed}), of which SHAKE-256 is as good as random; they cut somebody off with a "
            "probability of at "
            f"most {missed:.2g}, which is part of δ"
        )
    guarantee = Guarantee(
        curve=curve,
        adjacency=_adjacency(protocol),
        unit=Unit(protocol.unit),
        claim=Claim.UPPER,
        assumptions=(*_assumptions(protocol), last),
        references=REFERENCES if protocol.sampling == 1 else (*OF_SAMPLING, *REFERENCES),
        factor=factor,
    )
    # a sampled loss is no multiple of the local one: less noise costs more than in proportion
    return replace(guarantee, factor=None) if missed or protocol.sampling < 1 else guarantee


def _assumptions(protocol: MaskedDescent) -> tuple[str, ...]:
    one = protocol.sum
    often = f"at most {protocol.attempts} times" if protocol.attempts > 1 else "once"
    roster = (
        f", and only among a roster of at least {one.smallest_roster} parties to which all of them have agreed, each "
        "to one roster per "
        "attempt; pads are bound to iteration, attempt and roster"
        if protocol.attempts > 1 or protocol.absent
        else ""
    )
    if protocol.unit == "record":
        assert protocol.max_records is not None
        values = (
            f"a record's gradient has at most {protocol.dimension:,} coordinates, is clipped to an L2 norm of {protocol.clip:g} "
            f"and rounded by itself to whole steps g = {one.step!r}; its rounded vector is at most "
            f"{protocol.distance:g} steps long and depends on that "
            "record and on the model alone, not on the other records; a party adds up these whole numbers, and nothing else that "
            "it sends or does depends on how many there are"
        )
        fixed = "a party's records are fixed beforehand; the gradient of one is a function of it and of sums that were published"
    else:
        values = (
            f"a party's gradient has at most {protocol.dimension:,} coordinates and is clipped to an L2 norm of "
            f"{protocol.clip:g} before it is "
            f"rounded; each coordinate x becomes ⌊x/g + ½⌋, g = {one.step!r}, and by no other rule"
        )
        fixed = (
            "a party's data are fixed beforehand; its gradient is a function of them and of sums that were published, "
            "and of nothing else"
        )
    return (
        values,
        *_coins(protocol),
        f"in each of {protocol.iterations} iterations every party outside the coalition publishes {often}, under "
        "fresh pads and noise of "
        f"its own{roster}; an attempt that is repeated beyond that counts",
        f"{fixed}; the coalition may do what it likes",
        "a pad is uniform, known to its two ends only, used once and never revealed: computational, as good as the "
        "key agreement and the "
        "stream cipher that pads come from",
        f"to every coordinate an honest party adds its own discrete Gaussian of parameter σ² = {one.share} squared "
        "grid steps, drawn "
        "exactly, from a cryptographic source; a simulation with NumPy's generators protects nobody",
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
