"""What redoing one figure or table of a paper is: settings in, numbers and a comparison out, nothing drawn yet.

    Experiment ── run(Size, Work) ──► Result ──► `runs` writes CSV, PDF, PNG and JSON ──► `page` gathers them

An `Experiment` is inert: its name, the place in the paper, what it costs, and a function. The function fills a `Result`:
`panels` (curves, drawn by `drawing`, and a CSV), `tables` (a CSV), `comparisons` and `findings`.

A `Comparison` (see `comparison`) holds a number or a statement *of the document* against our curves, with a tolerance that a
wrong curve would not meet. An `Observation` is a check of our own: it sets side by side what a formula gives when computed as
printed and what is true, with which claim, and says whether what we say about them `holds` in this run.

The verdict is not chosen, it follows from the comparisons with the document:

    not reproducible here       the data is missing, nothing was compared
    not compared                nothing of the document was held against anything
    not reproduced              nothing that was compared comes out
    reproduced in part          something does not come out and no erratum explains it, or some of the data is missing
    reproduced with erratum     what does not come out is explained by an erratum (see `errata/`)
    reproduced                  everything that was compared comes out

A check of our own cannot make a verdict better; one that fails makes it `DIFFERS`, a bug of ours or news about the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from netdp.papers.comparison import Comparison
from netdp.privacy.guarantee import Claim

if TYPE_CHECKING:
    from netdp.papers.runs import Work


class Size(StrEnum):
    """How much of an experiment is run."""

    QUICK = "quick"
    """Smaller sizes or fewer repetitions: seconds, the same finding."""

    FULL = "full"
    """The paper's sizes."""


class Agreement(StrEnum):
    """What became of a figure or table."""

    REPRODUCED = "reproduced"
    WITH_ERRATUM = "reproduced with erratum"
    IN_PART = "reproduced in part"
    NOT_REPRODUCED = "not reproduced"
    UNCOMPARED = "not compared"
    NOT_HERE = "not reproducible here"
    DIFFERS = "differs"
    OURS = "our own"


class FigureKind(StrEnum):
    """What a curve is; the picture gives every kind its own colour and dash, the same on all pages."""

    PUBLISHED = "published"
    """A paper's formula, computed as printed, or the authors' rule."""
    CERTIFIED = "certified"
    """Exact or a proved bound."""
    LOCAL = "local"
    """Local differential privacy: everybody adds all the noise."""
    CENTRAL = "central"
    """A trusted curator."""
    MEASURED = "measured"
    """Monte Carlo: a mean over runs, an accuracy."""
    OTHER = "other"


@dataclass(frozen=True, eq=False)
class Series:
    """One curve: y over x, perhaps with the ends of a range or an error bar (`low`, `high`)."""

    label: str
    x: npt.ArrayLike
    y: npt.ArrayLike
    kind: FigureKind = FigureKind.OTHER
    low: npt.ArrayLike | None = None
    high: npt.ArrayLike | None = None
    points: bool = False
    """Draw marks alone, without a line: scattered values."""


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes and what is drawn in it. `draw`, if given, draws instead of the curves, which still go to the CSV."""

    title: str
    x: str
    y: str
    series: Sequence[Series]
    log_x: bool = False
    log_y: bool = False
    limits: tuple[float | None, float | None] | None = None
    """The lowest and highest y shown."""
    draw: Callable[[Any, Any], None] | None = None
    """`draw(figure, axes)`: a network or a heat map."""
    band: str = ""
    """What the shaded ranges (`low`, `high`) are, for the legend: least to largest, one deviation."""
    scale: tuple[float, float, str] | None = None
    """Of a panel whose dots are coloured: the lowest and highest colour (logarithmic) and what it means. One bar per figure."""


@dataclass(frozen=True)
class ResultTable:
    """A table as the paper has it, ours beside it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.title!r}: a row has {len(row)} cells, there are {len(self.columns)} columns"
                )


@dataclass(frozen=True)
class Observation:
    """One check of our own: printed, computed as printed, true. Numbers where there are numbers, else words, else None."""

    what: str
    holds: bool
    """Whether what the note and the verdict say of these numbers is so in this run."""
    printed: float | str | None = None
    formula: float | str | None = None
    certified: float | str | None = None
    claim: Claim | None = None
    """Of `certified`."""
    note: str = ""


@dataclass(frozen=True, eq=False)
class Result:
    """What an experiment found."""

    settings: dict[str, Any]
    findings: tuple[Observation, ...]
    comparisons: tuple[Comparison, ...] = ()
    panels: tuple[Panel, ...] = ()
    tables: tuple[ResultTable, ...] = ()
    missing: tuple[str, ...] = ()
    """What could not be done here, and why: a data set that is not on this machine."""
    columns: int = 2
    """Panels side by side."""

    def __post_init__(self) -> None:
        if not self.findings:
            raise ValueError("a result without a finding is a picture without a verdict")


@dataclass(frozen=True)
class Experiment:
    """One figure or table: where it stands, what it shows, what it costs, and how it is redone."""

    id: str
    """What users type: 000-fig2a, the paper (a key of `catalogue.PAPERS`) first."""
    place: str
    """Figure 2a."""
    title: str
    shows: str
    """What the paper says that it shows, in one sentence of ours."""
    run: Callable[[Size, Work], Result]
    quick: str
    """What `--quick` costs on two cores, and what is smaller in it."""
    full: str
    errata: tuple[str, ...] = ()
    """Names of errata that touch this figure or table; those that explain a comparison are named there, too."""

    @property
    def paper(self) -> str:
        """The document it stands in."""
        return self.id.partition("-")[0]

    def verdict(self, result: Result) -> Agreement:
        """What follows from the comparisons; see the module's text."""
        if not all(finding.holds for finding in result.findings):
            return Agreement.DIFFERS
        if self.paper == "ours":
            return Agreement.OURS
        if not any(one.basis.document for one in result.comparisons):
            return Agreement.UNCOMPARED
        if not any(one.agrees for one in result.comparisons if one.basis.document):
            return Agreement.NOT_REPRODUCED
        if result.missing or any(not one.agrees and not one.erratum for one in result.comparisons):
            return Agreement.IN_PART
        if any(not one.agrees for one in result.comparisons):
            return Agreement.WITH_ERRATUM
        return Agreement.REPRODUCED


def curves(
    x: npt.ArrayLike, found: Iterable[Mapping[str, Any]], *lines: tuple[str, str, FigureKind]
) -> tuple[Series, ...]:
    """A curve for each (label, key, kind): over x, what every one of `found` has under the key.

    >>> [one.y for one in curves([1, 2], [{"a": 3.0, "b": 5.0}, {"a": 4.0, "b": 6.0}], ("B", "b", FigureKind.LOCAL))]
    [[5.0, 6.0]]
    """
    rows = list(found)
    return tuple(Series(label, x, [row[key] for row in rows], kind) for label, key, kind in lines)


def near(value: float, other: float, relative: float = 0.02, absolute: float = 0.0) -> bool:
    """Whether two numbers agree; a printed digit or a point read off a picture is no more exact than that.

    >>> near(0.4998, 0.5), near(0.45, 0.5)
    (True, False)
    """
    return math.isclose(value, other, rel_tol=relative, abs_tol=absolute)


def columns(series: Series) -> dict[str, npt.NDArray[np.float64]]:
    """x, y, low and high as arrays of one length; nan where there is no range."""
    x, y = (np.asarray(part, dtype=float).ravel() for part in (series.x, series.y))
    out = {"x": x, "y": y}
    for name, part in (("low", series.low), ("high", series.high)):
        out[name] = np.full(len(x), np.nan) if part is None else np.asarray(part, dtype=float).ravel()
    if len({len(part) for part in out.values()}) != 1:
        raise ValueError(f"series {series.label!r}: x, y, low and high have different lengths")
    return out
