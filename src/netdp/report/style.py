"""How pictures are written to files, the colours of a loss, and a page around a picture.

**Files**: the ending of a name says the kind of file, and a file appears whole or not at all.

Every picture of netdp is written by `write_picture`: .png for screens, .svg and .pdf as vectors for papers, .html as one page
with nothing from outside. Names and folders are checked before long work (`picture_path`).

**Colours of a loss**: from blue, hardly anything, over cream to red, as much as local DP; nothing and no bound apart.

Blue, cream and red keep their order for colour-blind eyes. The scale is logarithmic, so zero has no place on it: parties about
whom *nothing* is learned are white, and those whose loss has *no finite bound* are black, each with a word in the legend.
The bar says where a trusted curator and local DP lie.

**A page** around a picture that does not move: one file, nothing from outside, no script.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from netdp.errors import InvalidValue, MissingDependency, NetdpError
from netdp.numerics.arrays import FloatArray
from netdp.privacy.wording import readable
from netdp.report.pages import svg, whole_page

if TYPE_CHECKING:
    from markupsafe import Markup

    from netdp.report.figures import Picture


BLUE, ORANGE, GREEN, RED, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
"""Okabe and Ito (2008): told apart by colour-blind eyes."""

INK, GREY = "#1b1f24", "#6b7280"

ENDINGS = (".png", ".svg", ".pdf", ".html")
"""What the name of a picture may end in."""


def picture_path(path: str | os.PathLike[str]) -> Path:
    """The path, if its name ends in one of `ENDINGS`, its folder exists and what draws it is installed.

    >>> picture_path("loss.jpg")
    Traceback (most recent call last):
    netdp.errors.InvalidValue: cannot draw 'loss.jpg': the name must end in .png, .svg, .pdf or .html
    """
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise InvalidValue(
            f"cannot draw {str(path)!r}: the name must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
        )
    if not target.parent.is_dir():
        raise InvalidValue(f"cannot write {str(path)!r}: the folder {str(target.parent)!r} does not exist")
    if target.suffix.lower() != ".html":
        needs_matplotlib()  # say so before the long work
    return target


def write_picture(path: str | os.PathLike[str], draw: Callable[[], Picture], page: Callable[[], str]) -> Path:
    """Write what the ending asks for: the page as .html, or the drawing as .png, .svg or .pdf."""
    target = picture_path(path)
    kind = target.suffix.lower()
    write_whole(target, page().encode() if kind == ".html" else draw().rendered(kind[1:]))
    return target


def needs_matplotlib() -> None:
    """Refuse, with the way out, where the plotting library is missing."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError:
        raise MissingDependency("matplotlib", "drawing", "plot") from None


def write_whole(target: Path, content: bytes) -> None:
    """Write beside, then rename."""
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(temporary, 0o644)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise NetdpError(f"cannot write {str(target)!r}: {error.strerror}") from error


COLOURS = ("#1d4e89", "#5fa8d3", "#f4ead5", "#ee9b6b", "#b3242a")

NOTHING, NO_BOUND, NOBODY = "#ffffff", "#000000", "#c9ccd1"

_DECADES = 4.0  # losses that are smaller by more than this are drawn in the darkest blue


@dataclass(frozen=True)
class Scale:
    """The ends of the logarithmic colour scale, and the losses to compare with, by name.

    >>> Scale.of([np.array([0.0, 0.02, 0.5])], {"local DP": 1.1, "trusted curator": 0.1}).ticks
    [0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
    """

    low: float
    high: float
    baselines: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, losses: Iterable[FloatArray], baselines: dict[str, float | None]) -> Scale:
        """From the least to the largest finite loss, baselines included; at least a factor of four, at most 10⁴."""
        known = {name: value for name, value in baselines.items() if value is not None and 0 < value < math.inf}
        numbers = np.concatenate([np.ravel(values) for values in losses] + [np.array([*known.values()])])
        found = numbers[np.isfinite(numbers) & (numbers > 0)]
        high = float(found.max()) if found.size else 1.0
        low = max(float(found.min()) if found.size else 0.01, high / 10**_DECADES)
        if high < 4 * low:
            middle = math.sqrt(low * high)
            low, high = middle / 2, middle * 2
        return cls(low, high, tuple(known.items()))

    @property
    def ticks(self) -> list[float]:
        """A few round numbers between the ends: 1, 2, 5 and their tenfolds, or powers of ten where these are many."""
        return ticks_between(self.low, self.high)

    def norm(self) -> Any:
        """For matplotlib."""
        from matplotlib.colors import LogNorm

        return LogNorm(self.low, self.high, clip=True)

    @staticmethod
    def colours() -> Any:
        """For matplotlib; what is not a number is grey."""
        from matplotlib.colors import LinearSegmentedColormap

        return LinearSegmentedColormap.from_list("netdp", COLOURS).with_extremes(bad=NOBODY)

    def painted(self, losses: FloatArray) -> FloatArray:
        """RGBA of every loss: white for nothing, black without a finite bound, grey where nobody is learned about."""
        from matplotlib.colors import to_rgba

        colours: FloatArray = self.colours()(
            self.norm()(np.clip(np.nan_to_num(losses, nan=self.low), self.low, self.high))
        )
        for colour, where in ((NOTHING, losses == 0), (NO_BOUND, np.isposinf(losses)), (NOBODY, np.isnan(losses))):
            colours[where] = to_rgba(colour)
        return colours

    def bar(self, axes: Any, delta: float, losses: Iterable[FloatArray]) -> None:
        """Draw the scale into the axes, lying: ticks below, what to compare with above; pointed where losses go on."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colorbar import Colorbar
        from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

        shown = [np.asarray(values) for values in losses]
        smaller = any(((values > 0) & (values < self.low * (1 - 1e-9))).any() for values in shown)
        mappable = ScalarMappable(self.norm(), self.colours())
        bar = Colorbar(axes, mappable, orientation="horizontal", extend="min" if smaller else "neither")
        bar.ax.xaxis.set_major_locator(FixedLocator(self.ticks))
        bar.ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
        bar.ax.xaxis.set_minor_locator(NullLocator())
        bar.set_label(f"ε at δ = {scientific(delta)}", labelpad=1)
        bar.outline.set_linewidth(0.4)
        for place, level, align, text in self._marks():
            bar.ax.plot(
                [place], [1.0], marker="v", color="black", markersize=4, clip_on=False, transform=bar.ax.transAxes
            )
            bar.ax.annotate(
                text, (place, 1.0), xycoords="axes fraction", xytext=(0, 4 + 8 * level), textcoords="offset points",
                ha=align, va="bottom", fontsize=7,
            )  # fmt: skip

    def _marks(self) -> list[tuple[float, int, str, str]]:
        """Where baselines lie on the bar, 0 to 1, on which line their words stand, how aligned, and the words."""
        width = math.log(self.high / self.low)
        marks: list[tuple[float, int, str, str]] = []
        for name, value in sorted(self.baselines, key=lambda one: one[1]):
            place = min(1.0, max(0.0, math.log(value / self.low) / width))
            level = 1 if marks and place - marks[-1][0] < 0.5 else 0
            align = "left" if place < 0.35 else "right" if place > 0.65 else "center"
            marks.append((place, level, align, f"{name} {readable(value)}"))
        return marks


def ticks_between(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high`, some three to eight.

    >>> ticks_between(0.013, 1.07), ticks_between(1e-5, 2.0)
    ([0.02, 0.05, 0.1, 0.2, 0.5, 1.0], [1e-05, 0.0001, 0.001, 0.01, 0.1, 1.0])
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ratio = high / low
    digits = (1, 2, 3, 4, 5, 7) if ratio < 8 else (1, 2, 5) if ratio < 150 else (1, 3) if ratio < 1500 else (1,)
    return [
        float(f"{digit}e{power}")
        for power in decades
        for digit in digits
        if low * (1 - 1e-9) <= float(f"{digit}e{power}") <= high * (1 + 1e-9)
    ]


def round_step(value: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten.

    >>> [round_step(x) for x in (0.21, 0.3, 1.7)]
    [0.25, 0.5, 2.0]
    """
    power = 10.0 ** math.floor(math.log10(value))
    return float(next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= value * (1 - 1e-9)))


def plain(value: float) -> str:
    """A number on an axis.

    >>> plain(0.2), plain(2000.0), plain(1e-6), plain(30000.0)
    ('0.2', '2,000', '10⁻⁶', '30,000')
    """
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}").replace("-", "−")
    return scientific(value)


def scientific(value: float, places: int = 6) -> str:
    """A power of ten, or a number times one, rounded to so many places.

    >>> scientific(1e-6), scientific(2.5e-5), scientific(0.01)
    ('10⁻⁶', '2.5·10⁻⁵', '0.01')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:g}"
    front, power = f"{value:.{places}e}".split("e")
    mantissa = f"{float(front):g}"
    ten = f"10{raised(int(power))}"
    return ten if mantissa == "1" else f"{mantissa}·{ten}"


def raised(power: int) -> str:
    """An exponent.

    >>> raised(-12)
    '⁻¹²'
    """
    return str(power).translate(_RAISED)


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def page_around(
    title: str,
    picture: Picture,
    words: Sequence[str] = (),
    table: tuple[Sequence[str], Sequence[Sequence[str]]] | None = None,
    notes: Sequence[str] = (),
) -> str:
    """Title, sentences, the picture as vectors, a table of what it shows, notes. All text is escaped."""
    width = f"{8 * picture.get_figwidth():.0f}"
    return whole_page(
        "still.html",
        "still.css",
        title=title,
        words=words,
        width=width,
        picture=inline_svg(picture),
        table=table,
        notes=notes,
    )


def inline_svg(picture: Picture) -> Markup:
    """The picture as SVG inside a page: without the preamble of a file, and without addresses."""
    text = picture.rendered("svg").decode()
    body = text[text.index("<svg") :]
    return svg(re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.S))
