"""One look for all pictures: sized for a page of a paper, letters of seven points and more, told apart without colour.

A `Picture` is a matplotlib figure that belongs to nobody: pyplot does not keep it, no window opens, no setting of the process
changes. Notebooks show it by themselves; `save` writes it by the ending of a name. This module loads matplotlib, so others
load it when they draw.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from netdp.report.style import page_around, write_picture

# A column of a two-column paper and the whole of its page, in inches.
COLUMN, PAGE = 3.5, 7.0

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, and knows ε, δ, ★ and ∞
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "hatch.linewidth": 0.4,
    "text.parse_math": False,  # names of parties may hold a dollar sign
    "pdf.fonttype": 42,  # fonts that editors of journals accept, embedded
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "netdp",
}


@contextmanager
def paper_style(look: dict[str, Any] = STYLE) -> Iterator[None]:
    """Draw inside of this; settings of the process are as before afterwards."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name in letters that the font lacks is drawn as boxes
        matplotlib.rcParams.update(matplotlib.rcParamsDefault | {"backend": matplotlib.rcParams["backend"]} | look)
        yield


class Picture(Figure):
    """A figure that notebooks show and that saves itself.

    >>> with paper_style():
    ...     picture = Picture(figsize=(COLUMN, 2.0))
    >>> picture.rendered("svg")[:5]
    b'<?xml'
    """

    def __init__(self, *, look: dict[str, Any] = STYLE, **options: Any) -> None:
        """A figure, to be drawn and written with the settings `look`."""
        super().__init__(**{"layout": "constrained", **options})
        self._look = look
        FigureCanvasAgg(self)

    def rendered(self, kind: str, dpi: int = 220, title: str | None = None) -> bytes:
        """The picture as a "png", "svg" or "pdf": the same bytes every time, without date or machine."""
        no_date: dict[str, Any] = {
            "pdf": {"Creator": "netdp", "CreationDate": None},
            "svg": {"Creator": "netdp", "Date": None},
        }
        about = ({} if title is None else {"Title": title}) | no_date.get(kind, {"Software": None})
        content = io.BytesIO()
        with paper_style(self._look):
            self.savefig(content, format=kind, dpi=dpi, metadata=about)
        return content.getvalue()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture as .png, .svg or .pdf, or inside a page as .html; the file appears whole or not at all."""

        return write_picture(path, lambda: self, lambda: page_around("netdp", self))

    def __repr__(self) -> str:
        titles = [self.get_suptitle(), *(axes.get_title(loc) for axes in self.axes for loc in ("left", "center"))]
        return f"<Picture: {' '.join(next((title for title in titles if title), 'without title').split())}>"

    def _repr_png_(self) -> bytes:
        """For notebooks, which keep their pictures: 256 colours are enough, and a third of the size."""
        from PIL import Image

        content = io.BytesIO()
        with Image.open(io.BytesIO(self.rendered("png", dpi=130))) as image:
            few = image.convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE)
            few.save(content, format="png", optimize=True)
        return content.getvalue()
