"""One statement of a document held against our numbers: a rule with a tolerance, and what a wrong curve would look like.

    Comparison = what is compared, the document's words, our curves, a rule ──► agrees or not

A `Standard` is inert and can be asked again about other curves. That is how the tests know that a tolerance is worth
something: `wrong` gives every comparison curves that are too large, too small, reversed, bent or exchanged, and the rule must
refuse some of them for each curve that it is said to look at.

Where the words or the number come from is the `Basis`. Only the document itself (`PRINTED`, `STATED`) makes a verdict; a
number that the authors' program prints is called that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, pairwise
from typing import Protocol

import numpy as np

from netdp.numerics.arrays import FloatArray

Curves = Mapping[str, Sequence[float]]
"""Our numbers by the name of the curve that they belong to."""


class Basis(StrEnum):
    """Where the words or the number on the document's side come from."""

    PRINTED = "number in the document"
    STATED = "statement of the document"
    CODE = "number from the authors' code"

    @property
    def document(self) -> bool:
        """Whether it stands in the document itself; only such a comparison makes a verdict."""
        return self is not Basis.CODE


class Standard(Protocol):
    """What has to be true of our curves."""

    def holds(self, curves: Curves) -> bool:
        """Whether it is."""
        ...

    @property
    def tolerance(self) -> str:
        """The rule in words, with its tolerance."""
        ...


def _only(curves: Curves) -> FloatArray:
    (values,) = curves.values()
    return np.asarray(values, dtype=float)


def _number(value: float) -> str:
    return f"{value:.4g}"


@dataclass(frozen=True)
class Close:
    """Every number is the stated one, up to a tolerance; several stated numbers stand for several in their order.

    >>> Close(0.5, relative=0.02).holds({"a": [0.499]}), Close(0.5, relative=0.02).holds({"a": [0.45]})
    (True, False)
    """

    stated: float | tuple[float, ...]
    relative: float = 0.0
    absolute: float = 0.0

    def holds(self, curves: Curves) -> bool:
        ours = np.concatenate([np.asarray(values, dtype=float) for values in curves.values()])
        stated = np.broadcast_to(np.asarray(self.stated, dtype=float), ours.shape)
        return bool(np.all(np.abs(ours - stated) <= self.absolute + self.relative * np.abs(stated)))

    @property
    def tolerance(self) -> str:
        parts = [f"{100 * self.relative:.3g} %"] if self.relative else []
        parts += [_number(self.absolute)] if self.absolute else []
        return f"± {' and '.join(parts)}" if parts else "exactly"


@dataclass(frozen=True)
class Between:
    """Every number lies in a range.

    >>> Between(0.94, 0.97).holds({"a": [0.956]}), Between(0.94, 0.97).holds({"a": [0.9]})
    (True, False)
    """

    low: float
    high: float

    def holds(self, curves: Curves) -> bool:
        ours = np.concatenate([np.asarray(values, dtype=float) for values in curves.values()])
        return bool(np.all((ours >= self.low) & (ours <= self.high)))

    @property
    def tolerance(self) -> str:
        return f"from {_number(self.low)} to {_number(self.high)}"


@dataclass(frozen=True)
class Magnitude:
    """Every number has the stated order of magnitude: it is at most half a power of ten away. For "around 10³" only.

    >>> Magnitude(1000.0).holds({"a": [2500.0]}), Magnitude(1000.0).holds({"a": [3500.0]})
    (True, False)
    """

    stated: float

    def holds(self, curves: Curves) -> bool:
        ours = np.concatenate([np.asarray(values, dtype=float) for values in curves.values()])
        return bool(np.all(np.abs(np.log10(ours / self.stated)) <= 0.5))

    @property
    def tolerance(self) -> str:
        return f"{_number(self.stated / 10**0.5)} to {_number(self.stated * 10**0.5)}, half a power of ten"


@dataclass(frozen=True)
class Ordered:
    """At every point the curves lie one below the other, in the order in which they are named, so far apart.

    `apart` is a difference and `ratio` a factor; both may be below what is neutral (0 and 1) to allow for chance.

    >>> Ordered(apart=0.01).holds({"central": [0.95, 0.96], "local": [0.9, 0.9]})
    True
    >>> Ordered(ratio=2.0).holds({"central": [0.95, 0.96], "local": [0.9, 0.9]})
    False
    """

    apart: float = 0.0
    ratio: float = 1.0

    def holds(self, curves: Curves) -> bool:
        rows = [np.asarray(values, dtype=float) for values in curves.values()]
        return all(bool(np.all(upper >= self.ratio * lower + self.apart)) for upper, lower in pairwise(rows))

    @property
    def tolerance(self) -> str:
        said = [f"at least {_number(self.apart)} apart"] if self.apart > 0 else []
        said += [f"up to {_number(-self.apart)} the wrong way"] if self.apart < 0 else []
        said += [f"at least a factor of {_number(self.ratio)}"] if self.ratio != 1 else []
        return f"in this order, {', '.join(said) or 'everywhere'}"


@dataclass(frozen=True)
class Falls:
    """Every curve falls from its first point to its last by at least a factor, and on the way never rises by more than `slack`.

    >>> Falls(2.0).holds({"a": [1.0, 0.6, 0.4]}), Falls(2.0).holds({"a": [0.4, 0.6, 1.0]})
    (True, False)
    """

    by: float = 1.0
    slack: float = 0.0
    """Relative to the point before."""

    def holds(self, curves: Curves) -> bool:
        return all(self._falls(np.asarray(values, dtype=float)) for values in curves.values())

    def _falls(self, values: FloatArray) -> bool:
        steps = bool(np.all(values[1:] <= values[:-1] * (1 + self.slack) + 1e-12))
        return steps and bool(values[0] > values[-1] and values[0] >= self.by * values[-1])

    @property
    def tolerance(self) -> str:
        return _monotone("falls", self.by, self.slack)


@dataclass(frozen=True)
class Rises:
    """The opposite of `Falls`.

    >>> Rises(2.0).holds({"a": [0.4, 0.6, 1.0]})
    True
    """

    by: float = 1.0
    slack: float = 0.0

    def holds(self, curves: Curves) -> bool:
        turned = Falls(self.by, self.slack)
        return turned.holds({name: list(values)[::-1] for name, values in curves.items()})

    @property
    def tolerance(self) -> str:
        return _monotone("rises", self.by, self.slack)


def _monotone(word: str, by: float, slack: float) -> str:
    said = f"{word} at every step" + (f" (a step may go back by {100 * slack:.3g} %)" if slack else "")
    return said + (f", in all by a factor of at least {_number(by)}" if by > 1 else "")


@dataclass(frozen=True)
class Gains:
    """Every curve gains at least so much from its first point to its last, or loses at least so much if it is negative.

    >>> Gains(-0.02).holds({"local": [0.9, 0.85]}), Gains(-0.02).holds({"local": [0.85, 0.9]})
    (True, False)
    """

    change: float

    def holds(self, curves: Curves) -> bool:
        gains = [float(values[-1] - values[0]) for values in curves.values()]
        return all(gain >= self.change if self.change > 0 else gain <= self.change for gain in gains)

    @property
    def tolerance(self) -> str:
        return f"{'gains' if self.change > 0 else 'loses'} at least {_number(abs(self.change))}, first to last"


@dataclass(frozen=True)
class Level:
    """No point of any curve is farther than so much from the curve's first one.

    >>> Level(0.02).holds({"central": [0.953, 0.952, 0.951]}), Level(0.02).holds({"central": [0.953, 0.9]})
    (True, False)
    """

    within: float

    def holds(self, curves: Curves) -> bool:
        return all(float(np.max(np.abs(np.asarray(values) - values[0]))) <= self.within for values in curves.values())

    @property
    def tolerance(self) -> str:
        return f"within {_number(self.within)} of its first point"


@dataclass(frozen=True)
class Together:
    """All curves are the same up to a tolerance, at every point.

    >>> Together(absolute=0.01).holds({"gossip": [0.95], "curator": [0.955]})
    True
    """

    relative: float = 0.0
    absolute: float = 0.0

    def holds(self, curves: Curves) -> bool:
        rows = [np.asarray(values, dtype=float) for values in curves.values()]
        allowed = [self.absolute + self.relative * np.maximum(np.abs(a), np.abs(b)) for a, b in combinations(rows, 2)]
        return all(
            bool(np.all(np.abs(a - b) <= room)) for (a, b), room in zip(combinations(rows, 2), allowed, strict=True)
        )

    @property
    def tolerance(self) -> str:
        parts = [f"{100 * self.relative:.3g} %"] if self.relative else []
        parts += [_number(self.absolute)] if self.absolute else []
        return f"the same within {' and '.join(parts)}"


@dataclass(frozen=True)
class Crosses:
    """The first curve comes below the second at an x between `low` and `high`, and stays there. `x` belongs to the curves.

    >>> Crosses((1.0, 2.0, 3.0), 1.5, 2.5).holds({"a": [3, 1, 0], "b": [2, 2, 2]})
    True
    """

    x: tuple[float, ...]
    low: float
    high: float

    def at(self, curves: Curves) -> float:
        """The x, or infinity."""
        first, second = (np.asarray(values, dtype=float) for values in curves.values())
        below = first < second
        return next((x for place, x in enumerate(self.x) if below[place:].all()), math.inf)

    def holds(self, curves: Curves) -> bool:
        return self.low <= self.at(curves) <= self.high

    @property
    def tolerance(self) -> str:
        high = "" if math.isinf(self.high) else f" to {_number(self.high)}"
        return f"the first is below the second from an x of {_number(self.low)}{high} on"


@dataclass(frozen=True)
class Power:
    """The last points of every curve grow like a power of x: the slope of the logarithms. `x` belongs to the curves.

    >>> Power((1.0, 10.0, 100.0), -2, 0.1).holds({"a": [1, 1e-2, 1e-4]})
    True
    """

    x: tuple[float, ...]
    exponent: float
    below: float
    above: float | None = None
    """How much larger the slope may be; as much as smaller if it is left out."""

    def slope(self, values: Sequence[float]) -> float:
        return float(np.polyfit(np.log(self.x), np.log(np.asarray(values, dtype=float)), 1)[0])

    def holds(self, curves: Curves) -> bool:
        above = self.below if self.above is None else self.above
        slopes = [self.slope(values) for values in curves.values()]
        return all(self.exponent - self.below <= slope <= self.exponent + above for slope in slopes)

    @property
    def tolerance(self) -> str:
        above = self.below if self.above is None else self.above
        return f"power of x from {_number(self.exponent - self.below)} to {_number(self.exponent + above)}"


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's rank correlation of the two curves lies between two numbers.

    >>> RankCorrelation(-1.0, -0.9).holds({"distance": [1, 2, 3], "loss": [3, 2, 1]})
    True
    """

    low: float
    high: float

    def of(self, curves: Curves) -> float:
        from scipy.stats import spearmanr

        first, second = curves.values()
        return float(spearmanr(first, second).statistic)

    def holds(self, curves: Curves) -> bool:
        return self.low <= self.of(curves) <= self.high

    @property
    def tolerance(self) -> str:
        return f"rank correlation from {_number(self.low)} to {_number(self.high)}"


@dataclass(frozen=True)
class Comparison:
    """A statement of the document, our curves, and whether they agree."""

    what: str
    says: str
    """The document's words or number, with the place if it is not the figure itself."""
    ours: Curves
    rule: Standard
    basis: Basis = Basis.STATED
    erratum: str = ""
    """Which erratum explains it if it does not come out."""
    note: str = ""
    """Why it does not come out, if no erratum explains it; or what else is to be known."""

    @property
    def agrees(self) -> bool:
        """Whether the document's statement comes out."""
        return self.rule.holds(self.ours)

    @property
    def explained(self) -> bool:
        """Whether it does not, and an erratum says why."""
        return not self.agrees and bool(self.erratum)

    @property
    def shown(self) -> str:
        """Our numbers in a few words: all of a short curve, the ends of a long one; the crossing or the slope where that counts."""
        if isinstance(self.rule, Crosses):
            at = self.rule.at(self.ours)
            return "never" if math.isinf(at) else f"from {_number(at)} on"
        if isinstance(self.rule, Power):
            return ", ".join(f"{name}: power {self.rule.slope(values):.2f}" for name, values in self.ours.items())
        if isinstance(self.rule, RankCorrelation):
            return f"{self.rule.of(self.ours):.3f}"
        said = {name: " / ".join(map(_number, _ends(values))) for name, values in self.ours.items()}
        return (
            "; ".join(f"{name}: {numbers}" for name, numbers in said.items())
            if len(said) > 1
            else "".join(said.values())
        )

    @property
    def outcome(self) -> str:
        """agrees, erratum …, or does not come out."""
        if self.agrees:
            return "agrees"
        return f"does not come out: erratum {self.erratum}" if self.erratum else "does not come out"

    def with_curves(self, ours: Curves) -> Comparison:
        """The same statement held against other curves."""
        return Comparison(self.what, self.says, ours, self.rule, self.basis, self.erratum, self.note)

    def to_dict(self) -> dict[str, str | bool]:
        """What JSON and CSV have of it."""
        return {
            "what": self.what,
            "basis": self.basis.value,
            "document": self.says,
            "ours": self.shown,
            "tolerance": self.rule.tolerance,
            "agrees": self.agrees,
            "erratum": self.erratum,
            "note": self.note,
        }


def _ends(values: Sequence[float]) -> Sequence[float]:
    return values if len(values) <= 4 else [values[0], values[len(values) // 2], values[-1]]


FACTOR = 1.3
"""How wrong a wrong curve is."""


def wrong(ours: Curves, factor: float = FACTOR) -> Iterator[tuple[str, Curves]]:
    """What went wrong, by the curves that it touches (joined by " and "), and the curves then; `factor` too large or small.

    >>> sorted({name for name, _ in wrong({"a": [1.0, 2.0], "b": [2.0, 4.0]})})
    ['a', 'a and b', 'b']
    """
    for name, values in ours.items():
        line = np.asarray(values, dtype=float)
        bent = np.geomspace(1 / factor, factor, len(line)) if len(line) > 1 else np.ones(1)
        for other in (line * factor, line / factor, line[::-1], line * bent, line / bent):
            yield name, {**ours, name: other.tolist()}
    for one, two in combinations(ours, 2):
        yield f"{one} and {two}", {**ours, one: ours[two], two: ours[one]}
