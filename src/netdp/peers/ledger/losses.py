"""What an entry of a ledger keeps of a protocol, and the privacy curve that is computed from it again.

A loss is a small dictionary. Three kinds belong to nobody in particular:

    {"kind": "nothing", "seal"}                                nothing was opened, as its members have sealed
    {"kind": "local", "share", "distance", "dimension"}        own noise only, against everybody
    {"kind": "profile", "curves", "single", "sizes", "any"}    tables: against each party alone, any so many, all others;
                                                               and "broken": the same, if nobody knows how it ended

Families offer others (`Family.losses`): {"kind": "masked-sum", …}, with the noise of all but the coalition, and
{"kind": "masked-descent", …}, many such sums. Each kind is a `Loss`.

A masked sum with Laplace noise states {"law": "laplace", "rate", "parts"} instead of a share: the rate r of the noise per grid
step, as a fraction [a, b], and how many shares make one such noise; its distance is in L1 norm. One that a threshold of members
opens states "threshold" and "least", the fewest parties that the sum is over: who is in it is not known when a party contributes.

`share` is the variance of one party's discrete Gaussian in squared grid steps, `distance` how far (L2, in grid steps) what a
party adds can move, `dimension` how many numbers it has.

**In a roster of m parties**, me included, c of them in a coalition: a sum under pads shows the noisy sum of m − c parties, at
least of me alone, because nobody else knows my noise. Tables: a named party has its
own; any one party is bounded by the pointwise maximum of the single ones (a maximum of upper bounds bounds each), and so is
an outsider, who sees no more than what everybody in the roster sees; two or more are bounded by the table for so many or,
since more parties learn no less, for the next larger number that has one, all others at last, and by nothing where there is
none.

**Adding up**, if all was fixed beforehand: noisy sums of discrete Gaussians by `netdp.mechanisms.noisy_sums` (μ² adds up, with
margins),
true Gaussians by their μ², tables by their loss distributions (`netdp.privacy.profile`), and the three with each other by
their tables.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.mechanisms.laplace_sums import LaplaceRelease, laplace_curve
from netdp.mechanisms.noisy_sums import Release, releases_curve
from netdp.numerics.arrays import UNIT, FloatArray
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve, SharedCurve
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.profile import ProfileCurve, composed
from netdp.protocols.base import Protocol
from netdp.protocols.coalitions import MARKS, LargestCurve, coalitions_of, how_many
from netdp.protocols.family import families

NO_BOUND = ProfileCurve([0.0], [1.0])
"""The curve of a loss of which nothing is proved: ε is infinite at every δ < 1."""
NOTHING = GaussianCurve(0.0)
"""The curve of having seen nothing."""

_KNOTS = 256
_MOST_COALITIONS = 300


# ── from a protocol to what is kept ───────────────────────────────────────────────────────────────────────────────────


def loss_of(protocol: Protocol, me: int, names: Sequence[str], colluders: int = 1) -> dict[str, Any]:
    """What an entry keeps of a protocol among `names`, seen from its party number `me`.

    Tables are made for coalitions of up to so many `colluders`, and of all others.
    """
    if len(names) != protocol.n:
        raise InvalidValue(f"{len(names)} names for {protocol.n} parties; give one per party of the roster")
    if getattr(protocol, "grid", None) is None:
        raise Unsupported(
            f"no proof says what this {type(protocol).__name__} costs when it runs: it is accounted for in real numbers, and a "
            "wire carries none; state a grid=, or use a masked sum"
        )
    return dict(tables_of(protocol, me, tuple(names), colluders))


@lru_cache(maxsize=1024)
def accounted(protocol: Protocol, members: tuple[int, ...]) -> Guarantee:
    """What these parties together learn. A peer asks this for its promise, for its policy and for its ledger: once is enough."""
    from netdp.protocols.accounting import account

    return account(protocol, members)


@lru_cache(maxsize=64)
def tables_of(protocol: Protocol, me: int, names: tuple[str, ...], colluders: int = 1) -> dict[str, Any]:
    """The loss about party `me` as tables: against each other party alone, any so many together, and all others."""

    def against(members: Sequence[int]) -> Curve:
        return accounted(protocol, tuple(members)).require_certified().curve

    others = [v for v in range(protocol.n) if v != me]
    single = {names[v]: worst_entry([against([v])], me) for v in others}
    sizes = {
        size: worst_entry([against([others[v] for v in members]) for members in coalitions_of(len(others), size)], me)
        for size in range(2, min(colluders, len(others) - 1) + 1)
        if how_many(len(others), size) <= _MOST_COALITIONS  # else: as if all others colluded
    }
    try:
        everybody = worst_entry([against(others)], me)
    except Unsupported:
        everybody = NO_BOUND
    return profile_loss(single, everybody, sizes)


def profile_loss(
    single: Mapping[str, Curve], everybody: Curve | None, sizes: Mapping[int, Curve] | None = None
) -> dict[str, Any]:
    """Tables as an entry keeps them: each different curve once; None if nothing bounds what all others learn together.

    >>> loss = profile_loss({"Bob": GaussianCurve(0.5), "Cy": GaussianCurve(0.5)}, None)
    >>> loss["curves"], loss["single"], loss["sizes"], loss["any"]
    ([{'mu': 0.5}], {'Bob': 0, 'Cy': 0}, {}, None)
    """
    curves: list[dict[str, Any]] = []

    def place(one: Curve) -> int:
        table = _table(one)
        if table not in curves:
            curves.append(table)
        return curves.index(table)

    return {
        "kind": "profile",
        "curves": curves,
        "single": {name: place(one) for name, one in single.items()},
        "sizes": {str(size): place(one) for size, one in (sizes or {}).items()},
        "any": None if everybody is None else place(everybody),
    }


def worst_entry(found: Sequence[Curve], u: int) -> GaussianCurve | ProfileCurve:
    """A curve about party u that lies above all of these (each one curve per party, or one for all), as an entry keeps it."""
    if all(isinstance(one, GaussianCurve) for one in found):
        mu = max(float(np.asarray(one.mu)[u] if one.shape else one.mu) for one in found)  # type: ignore[attr-defined]
        return GaussianCurve(mu) if math.isfinite(mu) else NO_BOUND
    first = found[0]
    plain = isinstance(first, ProfileCurve) and not first.shape and first.formula is None
    if len(found) == 1 and plain and len(first.epsilons) <= _KNOTS:  # type: ignore[attr-defined]
        return first.table if isinstance(first, LargestCurve) else first  # type: ignore[return-value]

    about = [_about(one, u) for one in found]
    marks = [max(float(_only(one.epsilon(_like(one, delta)), u)) for one in about) for delta in MARKS]
    known = [mark for mark in marks if math.isfinite(mark)]
    if not known:
        return NO_BOUND
    # at the marks the table is as good as the curves; between any points its chords lie above
    points = np.unique([*np.linspace(0.0, known[-1], _KNOTS - len(MARKS)), *known])
    deltas = np.max([_at(one, points, u) for one in about], axis=0)
    return ProfileCurve(points, np.minimum.accumulate(deltas))


def _about(one: Curve, u: int) -> Curve:
    """The curve about party u alone, where it can be had: many points at once are quicker of a single one."""
    if isinstance(one, SharedCurve) and isinstance(one.curves, ProfileCurve) and one.curves.shape and one.which[u] >= 0:
        return one.curves.entry(int(one.which[u]))
    return one


def _at(one: Curve, points: FloatArray, u: int) -> FloatArray:
    if not one.shape:
        return np.asarray(one.delta(points), dtype=np.float64)
    return np.array([float(_only(one.delta(_like(one, point)), u)) for point in points])


def _like(one: Curve, value: float) -> FloatArray:
    return np.full(one.shape, value)


def _only(answer: FloatArray, u: int) -> float:
    return float(np.asarray(answer)[u] if np.ndim(answer) else answer)


def _table(one: Curve) -> dict[str, Any]:
    kept = worst_entry([one], 0)
    if isinstance(kept, GaussianCurve):
        return {"mu": float(kept.mu)}
    return {"epsilons": kept.epsilons.tolist(), "deltas": kept.deltas.tolist()}


def _read_table(table: Any) -> GaussianCurve | ProfileCurve:
    if not isinstance(table, dict) or set(table) not in ({"mu"}, {"epsilons", "deltas"}):
        raise InvalidValue("a curve of an entry is {'mu'} or {'epsilons', 'deltas'}")
    if "mu" not in table:
        return ProfileCurve(table["epsilons"], table["deltas"])
    if type(table["mu"]) is not float or not math.isfinite(table["mu"]):
        raise InvalidValue(f"the μ of an entry is a finite number, got {table['mu']!r}")
    return GaussianCurve(table["mu"])


# ── from what is kept to a curve ──────────────────────────────────────────────────────────────────────────────────────


class Loss(ABC):
    """One kind of loss: how entries of it are checked, read and compared."""

    @abstractmethod
    def check(self, loss: Mapping[str, Any], roster: Sequence[str], me: str) -> None:
        """Refuse a loss that this version could not add up."""

    @abstractmethod
    def seen(self, loss: Mapping[str, Any], roster: Sequence[str], against: int | str) -> Release | Curve:
        """What a named party, or any so many together, saw of an attempt among `roster`."""

    def is_covered(self, loss: Mapping[str, Any], by: Mapping[str, Any]) -> bool:
        """Whether one loss is plainly nowhere above another of this kind, which is not the same."""
        return False

    def broken_off(self, loss: Mapping[str, Any], made: int) -> dict[str, Any] | None:
        """The loss of an attempt that ended after `made` steps, however that moment was chosen; None if it is not less."""
        return None


def honest(roster: Sequence[str], against: int | str) -> int:
    """How many of a roster stay out of a coalition, a named party or any so many: at least the one in question."""
    return len(roster) - (int(against in roster) if isinstance(against, str) else min(against, len(roster) - 1))


class SumLoss(Loss):
    """One noisy sum: `shared`, with the noise of everybody who stays out of the coalition, or with one's own only."""

    def __init__(self, *, shared: bool) -> None:
        self.shared = shared

    def check(self, loss: Mapping[str, Any], roster: Sequence[str], me: str) -> None:
        rest = set(loss)
        if self.shared and "threshold" in loss:
            _check_threshold(loss, roster)
            rest -= {"threshold", "least"}
        if self.shared and loss.get("law") == "laplace":
            if rest != {"kind", "law", "rate", "parts", "distance", "dimension"}:
                raise InvalidValue(
                    f"a {loss['kind']} with Laplace noise has a rate, parts, a distance and a dimension; got {loss!r}"
                )
            _laplace_release(loss, 1).checked()
            return
        if rest != {"kind", "share", "distance", "dimension"}:
            raise InvalidValue(f"a {loss['kind']} has a share and a dimension, and a distance; got {loss!r}")
        check_sum(loss)

    def seen(self, loss: Mapping[str, Any], roster: Sequence[str], against: int | str) -> Release | Curve:
        shares = honest(roster, against) if self.shared else 1
        if "threshold" in loss:
            inside = len(roster) - shares
            if 2 * loss["threshold"] <= len(roster) + inside:  # so many might have two sums opened
                return NO_BOUND
            shares = max(1, min(loss["least"], len(roster)) - inside)
        if loss.get("law") == "laplace":
            return laplace_curve(_laplace_release(loss, shares))
        return Release(loss["share"], shares, loss["distance"], loss["dimension"])


def _check_threshold(loss: Mapping[str, Any], roster: Sequence[str]) -> None:
    for name in ("threshold", "least"):
        if type(loss.get(name)) is not int or not 1 <= loss[name] <= len(roster):
            raise InvalidValue(
                f"the {name} of a {loss['kind']} among {len(roster)} parties is one of 1 … {len(roster)}, got {loss.get(name)!r}"
            )


def _laplace_release(loss: Mapping[str, Any], shares: int) -> LaplaceRelease:
    """What an entry states of a sum with Laplace noise; refuses a rate that is none."""
    rate, distance = loss["rate"], loss["distance"]
    if not (isinstance(rate, list | tuple) and len(rate) == 2 and all(type(one) is int and one >= 1 for one in rate)):
        raise InvalidValue(f"the rate of Laplace noise is a fraction [a, b] of whole numbers from 1 on, got {rate!r}")
    return LaplaceRelease(Fraction(*rate), loss["parts"], shares, distance, loss["dimension"])


def check_sum(part: Mapping[str, Any]) -> None:
    """Refuse a share, a distance or a dimension that no noisy sum has."""
    if not all(type(part[name]) is int and part[name] >= 1 for name in ("share", "dimension")):
        raise InvalidValue(f"a sum has a share and a dimension, whole numbers from 1 on; got {part!r}")
    distance = part["distance"]
    if type(distance) not in (int, float) or not (math.isfinite(distance) and distance >= 0):
        raise InvalidValue(f"the distance of a sum is a number ≥ 0, got {distance!r}")
    if part["dimension"] == 1 and distance != int(distance):
        raise InvalidValue(f"the distance of single numbers is a whole number of grid steps, got {distance!r}")


class TableLoss(Loss):
    """Tables: against each party alone, any so many, and all others."""

    def check(self, loss: Mapping[str, Any], roster: Sequence[str], me: str) -> None:
        if set(loss) != {"kind", "curves", "single", "sizes", "any"}:
            raise InvalidValue(f"a profile has curves, single, sizes and any; got {sorted(loss)}")
        if not (isinstance(loss["single"], dict) and isinstance(loss["sizes"], dict)):
            raise InvalidValue("single and sizes of a profile say by name, or by number, which curve holds")
        if not all(re.fullmatch("[1-9][0-9]*", size) and int(size) >= 2 for size in loss["sizes"]):
            raise InvalidValue(f"the sizes of a profile are numbers from 2 on, got {sorted(loss['sizes'])}")
        if me in loss["single"] or not set(loss["single"]) >= set(roster) - {me}:  # a curator may come on top
            raise InvalidValue(
                f"a profile has a curve against everybody in the roster but {me!r}, got {sorted(loss['single'])}"
            )
        known = len([_read_table(table) for table in loss["curves"]])
        which = [*loss["single"].values(), *loss["sizes"].values(), *([] if loss["any"] is None else [loss["any"]])]
        if not all(type(i) is int and 0 <= i < known for i in which):
            raise InvalidValue(f"a profile points to curves that it does not have: {which}")

    def seen(self, loss: Mapping[str, Any], roster: Sequence[str], against: int | str) -> Curve:
        if isinstance(against, str) and against in loss["single"]:
            return _read_table(loss["curves"][loss["single"][against]])
        # a curator is in no roster
        inside = int(against in roster) if isinstance(against, str) else min(against, len(loss["single"]))
        if inside <= 1:
            return highest([_read_table(loss["curves"][i]) for i in sorted(set(loss["single"].values()))])
        enough = [size for size in map(int, loss["sizes"]) if size >= inside]  # more parties learn no less
        which = loss["sizes"][str(min(enough))] if enough else loss["any"]
        return NO_BOUND if which is None else _read_table(loss["curves"][which])

    def is_covered(self, loss: Mapping[str, Any], by: Mapping[str, Any]) -> bool:
        if set(loss["single"]) != set(by["single"]):
            return False
        others = tuple(loss["single"])

        def below(who: int | str) -> bool:
            one, other = (self.seen(some, ("", *others), who) for some in (loss, by))
            if isinstance(one, GaussianCurve) and isinstance(other, GaussianCurve):
                return float(one.mu) <= float(other.mu)
            if not (isinstance(one, ProfileCurve) and isinstance(other, ProfileCurve)):
                return False
            # between these both are straight
            points = np.union1d(one.epsilons, other.epsilons)
            return bool(np.all(one.delta(points) <= other.delta(points)))

        return all(below(who) for who in (*others, *range(2, len(others) + 1)))


class NothingLoss(Loss):
    """An attempt of which nothing was opened, with the ballot that its members sealed empty as proof."""

    def check(self, loss: Mapping[str, Any], roster: Sequence[str], me: str) -> None:
        seal = loss.get("seal")
        if set(loss) != {"kind", "seal"} or not isinstance(seal, list) or not seal:
            raise InvalidValue(f"an attempt that cost nothing has the seal that says so; got {sorted(loss)}")
        for commit in seal:
            if not isinstance(commit, dict) or set(commit) != {"party", "number", "body", "signature"}:
                raise InvalidValue(f"a seal lists signed commits: party, number, body, signature; got {commit!r}")

    def seen(self, loss: Mapping[str, Any], roster: Sequence[str], against: int | str) -> Curve:
        return NOTHING


_OWN: Mapping[str, Loss] = {"local": SumLoss(shared=False), "profile": TableLoss(), "nothing": NothingLoss()}


def kind_of(loss: Any) -> Loss:
    """The kind of a loss, by the word in it; refuses one that this version does not know."""
    word = loss.get("kind") if isinstance(loss, dict) else None
    offered = {name: one for one in families() for name in one.losses}
    if isinstance(word, str) and word in offered:
        found: Loss = offered[word].named(offered[word].losses[word])
        return found
    if isinstance(word, str) and word in _OWN:
        return _OWN[word]
    raise InvalidValue(
        f"unknown kind of loss {word!r} in an entry; this netdp knows {', '.join(offered)}, {' and '.join(_OWN)}"
    )


def check_loss(loss: Any, roster: Sequence[str], me: str) -> None:
    """Refuse a loss that this version could not add up."""
    if isinstance(loss, dict) and "broken" in loss:
        rest = {key: value for key, value in loss.items() if key != "broken"}
        if isinstance(loss["broken"], dict) and "broken" in loss["broken"]:
            raise InvalidValue("what an attempt costs if it breaks off is one loss, not two")
        for one in (rest, loss["broken"]):
            check_loss(one, roster, me)
    else:
        kind_of(loss).check(loss, roster, me)


def seen(loss: Mapping[str, Any], roster: Sequence[str], me: str, against: int | str) -> Release | Curve:
    """What a named party, or any so many together (0: outsiders only), saw of an attempt among `roster`."""
    if against == me:
        raise InvalidValue(f"{against!r} is this party itself; name another one")
    if not isinstance(against, str) and (type(against) is not int or against < 0):
        raise InvalidValue(f"a coalition is a whole number of parties ≥ 0, or a name, got {against!r}")
    return kind_of(loss).seen(loss, roster, against)


def is_covered(loss: Mapping[str, Any], by: Mapping[str, Any]) -> bool:
    """Whether one loss is nowhere above another one of the same attempt, against whomever; False where that is not plain to see."""
    return loss == by or (loss["kind"] == by["kind"] and kind_of(loss).is_covered(loss, by))


def highest(curves: Sequence[GaussianCurve | ProfileCurve]) -> GaussianCurve | ProfileCurve:
    """A curve that lies above all of these."""
    gaussians = [float(one.mu) for one in curves if isinstance(one, GaussianCurve)]
    if len(gaussians) == len(curves):
        return GaussianCurve(max(gaussians, default=0.0))
    tables = [one if isinstance(one, ProfileCurve) else _sampled(one) for one in curves]
    points = np.unique(np.concatenate([one.epsilons for one in tables]))
    # at every knot of any of them the largest; between knots the chord of the largest lies above every chord
    largest = np.max([one.delta(points) for one in tables], axis=0)
    # chords are rounded: what comes later is never more
    return ProfileCurve(points, np.maximum.accumulate(largest[::-1])[::-1])


def together(parts: Iterable[Release | Curve]) -> Curve:
    """The curve of having seen all of it; the order does not matter, not even to the last bit."""
    releases: list[Release] = []
    squares: list[float] = []
    tables: dict[tuple[bytes, bytes], tuple[ProfileCurve, int]] = {}
    for part in parts:
        if isinstance(part, Release):
            releases.append(part)
        elif isinstance(part, GaussianCurve):
            squares.append(float(part.mu) ** 2 * (1 + 4 * UNIT))
        elif isinstance(part, ProfileCurve):
            if part.deltas[-1] == 1:
                return NO_BOUND
            text = (part.epsilons.tobytes(), part.deltas.tobytes())
            tables[text] = (part, tables.get(text, (part, 0))[1] + 1)
        else:
            raise Unsupported(f"a ledger adds up Gaussian curves and tables, not a {part.kind} curve")
    whole = [tables[text] for text in sorted(tables)]
    if squares:
        gaussian = GaussianCurve(math.sqrt(math.fsum(squares)) * (1 + 4 * UNIT))
        if not releases and not tables:
            return gaussian
        whole.append((_sampled(gaussian), 1))
    if releases:
        whole.append((releases_curve(sorted(releases)), 1))
    if not whole:
        return NOTHING
    return whole[0][0] if len(whole) == 1 and whole[0][1] == 1 else composed(whole)


def equal_together(parts: Iterable[Release | Curve]) -> list[tuple[Curve, int]]:
    """The curve of each part, with how many parts have that very curve."""
    found: dict[Any, tuple[Curve, int]] = {}
    for part in parts:
        if isinstance(part, ProfileCurve):
            key: Any = (part.epsilons.tobytes(), part.deltas.tobytes())
        else:
            key = part if isinstance(part, Release) else float(part.mu) if isinstance(part, GaussianCurve) else id(part)
        known = found.get(key)
        found[key] = (together([part]), 1) if known is None else (known[0], known[1] + 1)
    return list(found.values())


def _sampled(one: GaussianCurve) -> ProfileCurve:
    """A Gaussian curve as a table, up to δ = 10⁻³⁰."""
    points = np.linspace(0.0, max(float(one.epsilon(1e-30)), 1e-9), 2001)
    return ProfileCurve(points, np.minimum.accumulate(np.asarray(one.delta(points))))
