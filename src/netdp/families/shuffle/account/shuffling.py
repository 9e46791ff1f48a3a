"""What the curator of network shuffling learns about every user, from how far its report has mixed.

Every other report w is in the crowd of u with probability (1 − low_w)/(1 + high_u), the numbers of
`netdp.families.shuffle.account.mixing`; δ_u(ε) is at most that of a uniform shuffler of the crowd
(docs/proofs/shuffle.md#network-shuffling and #crowds). Where the older bound by one common law, or with reporting="single"
that of one item per holder (docs/proofs/shuffle.md#single-reports), is smaller, that counts. Users are put into few groups,
each stated by its worst; the components of a graph are shuffled each by itself.

Also the classical alternatives: local DP, a trusted shuffler, a trusted sampler. Users who collude with the curator:
`netdp.families.shuffle.coalitions`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.families.shuffle.account.hiding import crowd_heap, groups
from netdp.families.shuffle.account.mixing import Mixing, failure_words, fewest_rounds_for, mixing
from netdp.families.shuffle.account.randomizer import Randomizer
from netdp.families.shuffle.protocol import FaultyShuffle, RelayedShuffle, Shuffle
from netdp.graphs.graph import Graph
from netdp.mechanisms.base import IDEAL_DRAWS
from netdp.numerics.arrays import FloatArray, Progress
from netdp.numerics.checks import between
from netdp.privacy.clones import Heap
from netdp.privacy.curve import Curve
from netdp.privacy.curves import SharedCurve
from netdp.privacy.guarantee import Adjacency, Claim, Guarantee
from netdp.privacy.profile import ProfileCurve
from netdp.protocols.alternatives import curator, local, said, sampler
from netdp.protocols.table import certified
from netdp.protocols.views import observer_set, realised

NETWORK_SHUFFLING_REFERENCES = (
    "S. P. Liew, T. Takahashi, S. Takagi, F. Kato, Y. Cao, M. Yoshikawa. Network Shuffling: Privacy Amplification via "
    "Random Walks. SIGMOD 2022.",
)


@local.register
def _local_reports(protocol: Shuffle | FaultyShuffle | RelayedShuffle) -> Guarantee:
    curve = Randomizer.of(protocol).alone
    return said(curve, "every user publishes its report", more=(IDEAL_DRAWS,))


@curator.register
def _trusted_shuffler(protocol: Shuffle | FaultyShuffle | RelayedShuffle) -> Guarantee:
    curve = Randomizer.of(protocol).heap(protocol.n - 1).profile()
    arriving = ", and none is lost" if isinstance(protocol, FaultyShuffle) else ""
    return said(curve, f"a trusted shuffler permutes all reports uniformly{arriving}", more=(IDEAL_DRAWS,))


@sampler.register
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
    top = q * Randomizer.of(protocol).distance
    keep, fails = 1 - protocol.delta0, q * protocol.delta0
    curve = ProfileCurve([0.0, end * (1 + 1e-14)], [min(1.0, (fails + keep * top) * (1 + 1e-14)), fails])
    return said(
        curve,
        f"a trusted server draws {drawn} of the {n} reports, every such set with the same probability, and hides who was drawn",
        more=(IDEAL_DRAWS,),
    )


_MARGIN = 1e-9  # added to the exponent: rounding of sums of ≤ 10⁷ terms

_HIDDEN = 60.0  # of larger ε₀ the blanket is less than 10⁻²⁵ of a report: nothing is hidden; e^2ε₀ must fit in a double


def single_deltas(
    places: Sequence[tuple[int, float, float]], randomizer: Randomizer, epsilons: npt.ArrayLike
) -> FloatArray:
    """δ at every ε of a report that ends up at places of (how many, p_u(i) at most, others there on average at least).

    >>> spread = single_deltas([(1000, 0.001, 0.999)], Randomizer(1.0), [0.1, 0.12, 1.0])
    >>> print(" ".join(f"{delta:.1e}" for delta in spread))
    4.3e-06 2.0e-07 0.0e+00
    """
    eps = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
    counts = np.array([count for count, _, _ in places], dtype=np.float64)
    weight, often, start = _weights(places)
    epsilon0, blanket = randomizer.epsilon0, Blanket.of(randomizer)
    out = blanket.q * np.maximum(-np.expm1(eps - epsilon0), 0.0)
    if epsilon0 > _HIDDEN:
        return out
    squares = float(counts @ np.add.reduceat(often * weight**2, start))
    for j in np.flatnonzero((eps > 0) & (eps < epsilon0)).tolist():
        gamma = math.exp(eps[j])
        # the least for a normal law of the same variance is where to look first; every θ gives a bound
        variance = sum(chance * value**2 for value, chance in blanket.steps(gamma))
        centre, best = math.log(math.expm1(eps[j]) / (variance * squares)), math.inf
        for width in (2.0, 0.3, 0.05):
            logs = centre + width * np.linspace(-1.0, 1.0, 11)
            log_h = _log_factor(np.exp(logs)[:, None] * weight[None, :], blanket, gamma)
            top = np.maximum.reduceat(log_h, start, axis=1)
            lengths = np.diff(np.append(start, len(weight)))
            inside = np.add.reduceat(often * np.exp(log_h - np.repeat(top, lengths, axis=1)), start, axis=1)
            total = (top + np.log(inside)) @ counts
            values = total * (1 + 1e-13) + _MARGIN - np.exp(logs) * (gamma - 1) - 1 - logs
            centre, best = float(logs[int(np.argmin(values))]), min(best, float(values.min()))
        out[j] = min(out[j], math.exp(min(best, 0.0)))
    return out


def _weights(places: Sequence[tuple[int, float, float]]) -> tuple[FloatArray, FloatArray, npt.NDArray[np.int64]]:
    """All weights p/(1 + k) with the probabilities of k others there; numbers beyond a window count as its end.

    Also where the part of each place begins.
    """
    from scipy.stats import poisson

    weight, often = [], []
    for _, share, mean in places:
        top = int(mean + 9 * math.sqrt(mean) + 12)
        k = np.arange(top + 1)
        chance = np.asarray(poisson.pmf(k, mean), dtype=np.float64) * (1 + 1e-11)
        chance[-1] += float(poisson.sf(top, mean)) * (1 + 1e-9)  # a smaller number is on the safe side
        chance[-1] += max(0.0, 1 - float(chance.sum()))
        weight.append(share / (1.0 + k))
        often.append(chance)
    start = np.cumsum([0, *map(len, weight[:-1])])
    return np.concatenate(weight), np.concatenate(often), start.astype(np.int64)


class Blanket(NamedTuple):
    """What another's report may be, whatever the data: a symbol with p each, a blank with `blank`, else it is revealed.

    The victim's own symbol has q, its blanks have what its two symbols leave of 1.
    """

    e: float
    p: float
    q: float
    blank: float

    @classmethod
    def of(cls, randomizer: Randomizer) -> Blanket:
        e = math.exp(randomizer.epsilon0)
        made = randomizer.makeup
        return cls(e, made.get("p", 1 / (e + 1)), made.get("q", e / (e + 1)), made.get("blank", 0.0))

    def steps(self, gamma: float) -> list[tuple[float, float]]:
        """The values of Y = Z − (1 − γ) and their probabilities: the symbols, a blank, and 0 − (1 − γ) for what is revealed."""
        e, p, q, blank = self
        left = max(1 - q - q / e, 0.0)
        blanks = [((left / blank - 1) * (1 - gamma), blank)] if blank else []
        return [(e - 1, p), (-gamma * (e - 1), p), *blanks, (gamma - 1, 1 - 2 * p - blank)]


def _log_factor(x: FloatArray, blanket: Blanket, gamma: float) -> FloatArray:
    """ln E e^{xY}, rounded up."""
    with np.errstate(over="ignore"):
        grown = sum((chance * np.expm1(x * value) for value, chance in blanket.steps(gamma)), np.zeros_like(x))
    slack = 1e-15 * (np.abs(x) * (blanket.e * gamma) + 1e-3 * x * x)
    return np.where(np.isfinite(grown), np.log1p(np.maximum(grown, 0.0) + slack), x * (blanket.e - 1))


def least_deltas(n: int, handed: float, epsilon0: float, epsilons: npt.ArrayLike) -> FloatArray:
    """A lower bound on δ for binary response, if the report of u is handed over with probability `handed`.

    >>> low = least_deltas(1000, 0.632, 1.0, [0.05, 0.1])
    >>> print(" ".join(f"{delta:.1e}" for delta in low))
    6.4e-05 5.7e-09
    """
    from scipy.stats import binom

    p = 1 / (math.exp(epsilon0) + 1)
    k = np.arange(n + 1)
    zero = binom.pmf(k, n, p)
    rest = np.append(binom.pmf(k[:-1], n - 1, p), 0.0)
    one = (1 - handed) * zero + handed * (p * rest + (1 - p) * np.insert(rest[:-1], 0, 0.0))
    grow = np.exp(np.atleast_1d(np.asarray(epsilons, dtype=np.float64)))[:, None]
    both = [np.maximum(a - grow * b, 0).sum(axis=1) for a, b in ((zero, one), (one, zero))]
    return np.asarray(np.maximum(*both))


_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999, 1.0)

_NEAR = 1.004  # and ε within half of that

_PLACES = 40


@dataclass(frozen=True, eq=False)
class Part:
    """The users of one component, the protocol on it, and how far it has mixed."""

    users: npt.NDArray[np.int64]
    protocol: Shuffle
    mixed: Mixing

    @classmethod
    def of(cls, users: npt.NDArray[np.int64], protocol: Shuffle) -> Part:
        return cls(users, protocol, mixing(protocol))

    @cached_property
    def table(self) -> UserCurves:
        """The curves of its users."""
        return UserCurves.of(self.protocol, self.mixed)


def mixed_components(protocol: Shuffle) -> list[Part]:
    """The components, each with its own walk."""
    return [Part.of(users, component) for users, component in components(protocol)]


def components(protocol: Shuffle) -> list[tuple[npt.NDArray[np.int64], Shuffle]]:
    """The users of every component, and the protocol among them."""
    if protocol.graph.is_connected:
        return [(np.arange(protocol.n), protocol)]
    label = protocol.graph.components()
    members = [np.flatnonzero(label == c) for c in range(int(label.max()) + 1)]
    return [(users, protocol.replace(graph=protocol.graph.subgraph(users.tolist()))) for users in members]


def curves(protocol: Shuffle, parts: list[Part], *, knots: npt.ArrayLike = ()) -> Curve:
    """One curve for all if all are alike, else a curve per user; `knots` are ε where no chord shall be in the way."""
    sharp = np.asarray(knots, dtype=np.float64)
    eps = np.unique(np.concatenate([sharp, *(part.table.knots() for part in parts)]))
    which = np.zeros(protocol.n, dtype=np.int64)
    rows: list[FloatArray] = []
    for part in parts:
        which[part.users] = part.table.group + sum(len(row) for row in rows)
        rows.append(np.minimum.accumulate(part.table.deltas(eps, sharp), axis=1))
    curve = ProfileCurve(eps, np.concatenate(rows))
    if len(curve.deltas) == 1:
        return ProfileCurve(eps, curve.deltas[0])
    return SharedCurve(curve, which)


@dataclass(frozen=True, eq=False)
class UserCurves:
    """The users of a connected graph in groups; `high` and `low` are the largest of each group."""

    protocol: Shuffle
    group: npt.NDArray[np.int64]
    high: FloatArray
    low: FloatArray
    others: FloatArray
    """1 − low of all others: the victim is taken for the best of them."""

    @classmethod
    def of(cls, protocol: Shuffle, mixed: Mixing) -> UserCurves:
        group = _grouped(mixed.high)
        count = int(group.max()) + 1
        high, low = np.zeros(count), np.zeros(count)
        np.maximum.at(high, group, mixed.high)
        np.maximum.at(low, group, mixed.low)
        low = np.maximum.accumulate(low)  # so that nobody in a group is worse off than the next
        return cls(protocol, group, high, low, np.sort(1 - mixed.low)[:-1])

    @property
    def randomizer(self) -> Randomizer:
        """What is known of all reports."""
        return Randomizer.of(self.protocol)

    def crowd(self, g: int) -> Heap:
        """The heap of a user of group g among its crowd."""
        shares = self.others / (1 + self.high[g]) * (1 - 1e-15)
        return crowd_heap(shares, self.randomizer)

    def common(self, revealed: float = 0.0) -> Heap:
        """The heap of those who are mixed, by one common law; the victim is revealed with a probability that differs by group."""
        return self.randomizer.heap(crowd=groups(self.others), revealed=revealed)

    def knots(self) -> FloatArray:
        """ε at which the curves bend."""
        top = self.protocol.epsilon0
        chosen = sorted({0, len(self.high) // 2, len(self.high) - 1})
        found = [np.asarray(self.crowd(g).profile().epsilons) for g in chosen]
        for low in {float(self.low.min()), float(self.low.max())}:
            found.append(np.asarray(self.common(low).profile().epsilons))
        if self.single:
            found.append(self._bends())
        eps = np.unique(np.concatenate([[0.0, top], *found]))
        return np.asarray(eps[eps <= top])

    @property
    def single(self) -> bool:
        """Is the gain of single reporting claimed? It is proved for pure randomizers."""
        return self.protocol.reporting == "single" and not self.protocol.delta0

    def _bends(self) -> FloatArray:
        """Some ε where the curve of single reporting is looked at: along chords it is within 0.3 % for δ from 1e-15 on."""
        scales = self.crowd(0).epsilon(1e-6), self.crowd(len(self.high) - 1).epsilon(1e-6)
        steps = np.append(np.linspace(0.0, 1.4, 71), np.linspace(1.4, 2.4, 21))
        return np.unique(np.concatenate([*(steps * scale for scale in scales), [self.protocol.epsilon0]]))

    def deltas(self, eps: FloatArray, sharp: FloatArray | None = None) -> FloatArray:
        """δ of every group at every ε; of single reporting along chords, but not at the ε in `sharp`."""
        common = self.common()
        hidden = common.hidden(eps)
        bends = self._bends() if self.single else np.zeros(0)
        if sharp is not None and self.single:
            bends = np.unique(np.append(bends, sharp))
        rows = []
        for g in range(len(self.high)):
            row = np.minimum(self.crowd(g).deltas(eps), common.finished(hidden, eps, float(self.low[g])))
            if self.single:
                found = np.minimum.accumulate(single_deltas(self.places(g), self.randomizer, bends))
                row = np.minimum(row, ProfileCurve(bends, found).delta(eps))
            rows.append(row)
        return np.stack(rows)

    def delta(self, g: int, epsilon: float) -> float:
        """δ of group g at one ε."""
        asked = np.array([epsilon])
        heap, revealed = self.crowd(g), float(self.low[g])
        row = float(heap.deltas(asked)[0])
        if revealed * float(heap.local(asked)[0]) < row:  # else the older bound is no better
            row = min(row, float(self.common(revealed).deltas(asked)[0]))
        if self.single and row > 0:
            row = min(row, float(single_deltas(self.places(g), self.randomizer, asked)[0]))
        return row

    def epsilon(self, g: int, delta: float) -> float:
        """The least ε at δ of group g, rounded up."""
        heap, revealed = self.crowd(g), float(self.low[g])
        best = heap.epsilon(delta)
        if best > 0 and revealed * float(heap.local(np.array([min(best, self.protocol.epsilon0)]))[0]) < delta:
            best = min(best, self.common(revealed).epsilon(delta))
        if self.single and 0 < best < math.inf:
            best = min(best, _single_epsilon(self.places(g), self.randomizer, delta, best))
        return best

    def group_of(self, users: float) -> int:
        """The group of the worst of the best placed share `users` of all users."""
        n = len(self.group)
        return int(np.sort(self.group)[min(n - 1, max(0, math.ceil(users * n - 1e-9) - 1))])

    def places(self, g: int) -> list[tuple[int, float, float]]:
        """Where a report of group g may be: (how many places, p_u at most, others there on average at least)."""
        share = np.sort(self.protocol.graph.degrees / self.protocol.graph.degrees.sum())[::-1]
        top, reports = float(1 + self.high[g]), float(self.others.sum())
        step = math.log(float(share[0] / share[-1]) + 1e-12) / _PLACES
        number = np.floor(np.log(share[0] / share) / max(step, 1e-3)).astype(np.int64)
        cuts = np.flatnonzero(np.diff(number, prepend=-1))
        ends = np.append(cuts[1:], len(share))
        return [
            (int(b - a), min(1.0, top * float(share[a]) * (1 + 1e-14)), reports * float(share[b - 1]) * (1 - 1e-12))
            for a, b in zip(cuts, ends, strict=True)
        ]


def _single_epsilon(
    places: list[tuple[int, float, float]], randomizer: Randomizer, delta: float, known: float
) -> float:
    """The least ε at δ, rounded up; `known` if that is better."""
    low, high = 0.0, known
    if single_deltas(places, randomizer, [known])[0] > delta:
        return known
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if single_deltas(places, randomizer, [middle])[0] <= delta else (middle, high)
    return high


def _grouped(high: FloatArray) -> npt.NDArray[np.int64]:
    """A number per user, 0 for the best placed: cut at quantiles, unless 1 + high is nearly the same on both sides."""
    n, ordered = len(high), np.sort(high)
    cuts: list[float] = []
    base = 0.0
    for share in _QUANTILES:
        value = float(ordered[min(n - 1, max(0, math.ceil(share * n - 1e-9) - 1))])
        if cuts and 1 + value <= (1 + base) * _NEAR:
            cuts[-1] = value
        else:
            cuts.append(value)
            base = value
    return np.searchsorted(np.array(cuts), high).astype(np.int64)


WORTH = 0.9
"""A guarantee is refused if at δ = 1/n it says more than this share of ε₀ and better mixing would help."""

REFERENCES = (
    "netdp, docs/proofs/shuffle.md#network-shuffling and #crowds: network shuffling by the mixing of the walk.",
    "V. Feldman, A. McMillan, K. Talwar. Stronger Privacy Amplification by Shuffling for Rényi and Approximate "
    "Differential Privacy. SODA 2023.",
    "B. Balle, J. Bell, A. Gascón, K. Nissim. The Privacy Blanket of the Shuffle Model. CRYPTO 2019.",
    *NETWORK_SHUFFLING_REFERENCES,
)

INDEPENDENT = (
    "every report moves by draws of its own, independent of all others: two reports in one hand do not travel together"
)
ENCRYPTED = (
    "contents are encrypted for the curator; relays that do not collude with it can neither read nor tell apart nor "
    "mark reports"
)
UNWATCHED = (
    "no traffic analysis: of the way a report came, only who handed it over and what passed through colluders' hands "
    "is seen"
)
"""What guarantees of shuffling over direct links assume, with and without faults."""


@certified.register
def _shuffle(protocol: Shuffle, observers: Any, *, progress: Progress | None = None) -> Guarantee:
    from netdp.families.shuffle.coalitions import against_coalition, curator_curve

    members = curator_and(protocol.graph, observers)
    if members:
        return against_coalition(protocol, members, progress)
    parts = mixed_components(protocol)
    _refuse_if_idle(parts)
    return curator_statement(protocol, sum(part.mixed.failure for part in parts), curator_curve(protocol, parts))


def curator_statement(protocol: Shuffle, failure: float, curve: Curve) -> Guarantee:
    """What is said of a curve that holds against the curator but for this probability."""
    return Guarantee(
        curve=curve,
        adjacency=Adjacency.REPLACE,
        claim=Claim.UPPER,
        assumptions=(*statements(protocol), "no user colludes with the curator", *failure_words(failure)),
        references=REFERENCES,
    )


def curator_and(graph: Graph, observers: Any) -> tuple[int, ...]:
    """The users who collude with the curator: none for "curator", those numbered after it in ("curator", 3, 5).

    `netdp.protocols.views.who_looks` finds the parties and the role in what a person typed.

    >>> from netdp import graphs
    >>> curator_and(graphs.complete(6), ("curator", 5, 3))
    (3, 5)
    """
    named: list[Any] = [observers] if isinstance(observers, str | int | np.integer) else list(observers)
    if not named or not isinstance(named[0], str) or named[0] != "curator":
        raise InvalidValue(
            "shuffled reports are read by the curator: observers must be 'curator' or start with it, as in "
            f"('curator', 3, 5) for users 3 and 5 colluding with it; got {observers!r}"
        )
    return observer_set(graph, named[1:], ids=True) if len(named) > 1 else ()


def curator_heap(protocol: Shuffle, s: float) -> Heap:
    """The heap that bounds what the curator sees at separation s."""
    return Randomizer.of(protocol).heap(protocol.n - 1, keep=1 - s, revealed=s)


def uniform_heap(protocol: Shuffle) -> Heap:
    """The same reports through a trusted uniform shuffler."""
    return curator_heap(protocol, 0.0)


def _refuse_if_idle(parts: list[Part]) -> None:
    """Refuse where walking longer would help and the walk as it is gives nobody more than next to nothing at δ = 1/n."""
    advice = []
    for part in parts:
        protocol = part.protocol
        enough, goal = WORTH * protocol.epsilon0, 1.0 / protocol.n
        if part.table.epsilon(0, goal) <= enough or uniform_heap(protocol).epsilon(goal) > enough:
            return
        try:
            better = fewest_rounds_for(protocol.graph, protocol.laziness, 0.9).rounds
            advice.append((better, f"rounds={better} would do"))
        except Unsupported:
            advice.append((1 << 62, "its walk mixes too slowly for any number of rounds to be proved enough"))
    first = parts[0].protocol
    raise Unsupported(
        f"after {first.rounds} rounds a report's position may still tell its origin (separation s ≤ "
        f"{max(part.mixed.value for part in parts):.3g}): at δ = 1/n nothing better than epsilon0 = {first.epsilon0:g} can be "
        f"claimed; {max(advice)[1]}"
    )


def statements(protocol: Shuffle) -> tuple[str, ...]:
    """What every guarantee of a `Shuffle` assumes."""
    dummies = "who holds nothing hands over a report of a null value fixed beforehand, from the same randomizer"
    return (
        Randomizer.of(protocol).words,
        IDEAL_DRAWS,
        INDEPENDENT,
        ENCRYPTED,
        UNWATCHED,
        "all users follow the protocol to its end; graph, rounds, laziness and randomizer are public",
        *([dummies] if protocol.reporting == "single" else []),
    )


realised.refuse(
    Shuffle,
    RelayedShuffle,
    why="where the reports really went is nobody's knowledge; what the curator learns is stated before the run",
)
