"""The few strokes that the introduction's pictures are made of: SVG whose ink follows the page, light or dark.

Text and lines take their colours from the page's style (`site.css`); only what stands for a number has a colour of its own.
"""

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

STYLE = Path(__file__).parents[1] / "_static" / "site.css"
LIGHT = (
    "--back: #ffffff; --color-foreground-primary: #111111; --color-foreground-secondary: #5a5c63;"
    " --color-foreground-muted: #6b6f76; --color-background-secondary: #f8f9fb; --color-background-border: #e3e5e9;"
    " --ink-one: #0b6e7c; --ink-other: #c2571a;"
)
DARK = (
    "--back: #131416; --color-foreground-primary: #cfd0d0; --color-foreground-secondary: #9ca0a5;"
    " --color-foreground-muted: #81868d; --color-background-secondary: #1a1c1e; --color-background-border: #303335;"
    " --ink-one: #63cbd7; --ink-other: #f0a060;"
)
# From little to much, distinguishable without colours as well: the first is light, the last is dark.
SCALE = (
    (0.0, (226, 240, 217)),
    (0.25, (153, 212, 190)),
    (0.5, (69, 163, 177)),
    (0.75, (40, 105, 150)),
    (1.0, (66, 28, 92)),
)


def svg(width: float, height: float, parts: Iterable[str], title: str) -> str:
    """A picture for the page, with words for those who do not see it; no blank line in it, which would end it in Markdown."""
    inside = "\n".join(parts)
    return (
        f'<svg class="picture" role="img" viewBox="0 0 {width:g} {height:g}" aria-label="{escape(title)}"'
        f' xmlns="http://www.w3.org/2000/svg">\n{inside}\n</svg>'
    )


def framed(picture: str) -> str:
    """In a page: on a small screen it can be moved sideways."""
    words = re.search(r'aria-label="([^"]*)"', picture)[1]
    return f'<div class="frame" tabindex="0" role="group" aria-label="{words}">{picture}</div>'


def alone(picture: str) -> str:
    """As a file of its own: the rules of the site's style in it, with colours for light and dark screens."""
    rules = [rule for rule in STYLE.read_text("utf-8").splitlines() if re.match(r"svg\.picture [.t]", rule)]
    style = "\n".join(["svg {" + LIGHT + "}", "@media (prefers-color-scheme: dark) { svg {" + DARK + "} }", *rules])
    head, _, inside = picture.partition("\n")
    back = '<rect width="100%" height="100%" rx="6" style="fill: var(--back)"/>'
    return f"{head}\n<style>\n{style}\n</style>\n{back}\n{inside}\n"


def text(x: float, y: float, words: str, *, anchor: str = "middle", kind: str = "", fill: str = "") -> str:
    """Words at a point; `kind` is a class of the style: small, strong, faint."""
    style = f' style="fill:{fill}"' if fill else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}"{style}>{escape(words)}</text>'


def line(x: float, y: float, to_x: float, to_y: float, kind: str = "edge") -> str:
    """A straight line."""
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" class="{kind}"/>'


def disc(x: float, y: float, radius: float, *, fill: str = "", kind: str = "node") -> str:
    """A filled circle."""
    style = f' style="fill:{fill}"' if fill else ""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{kind}"{style}/>'


def curve(points: Iterable[tuple[float, float]], kind: str) -> str:
    """A line through points."""
    return f'<polyline class="{kind}" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>'


def area(points: Iterable[tuple[float, float]], kind: str) -> str:
    """The inside of a line through points."""
    return f'<polygon class="{kind}" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>'


def colour(share: float) -> str:
    """The colour of a share of the whole, from 0 to 1.

    >>> colour(0.0), colour(1.0)
    ('#e2f0d9', '#421c5c')
    """
    share = min(max(share, 0.0), 1.0)
    for (low, dark), (high, light) in pairwise(SCALE):
        if share <= high:
            part = (share - low) / (high - low)
            return "#" + "".join(f"{round(a + part * (b - a)):02x}" for a, b in zip(dark, light, strict=True))
    raise AssertionError(share)


def ink(share: float) -> str:
    """What can be read on that colour."""
    return "#ffffff" if share > 0.4 else "#10222e"


class Axes:
    """A frame for a chart: where numbers are on the picture, and the numbers along its sides."""

    def __init__(
        self,
        box: tuple[float, float, float, float],
        across: tuple[float, float],
        up: tuple[float, float],
        log: bool = False,
    ):
        self.left, self.top, self.width, self.height = box
        self.across, self.up, self.log = across, up, log

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a pair of numbers."""
        low, high = map(self._level, self.up)
        share = (self._level(y) - low) / (high - low)
        return (
            self.left + self.width * (x - self.across[0]) / (self.across[1] - self.across[0]),
            self.top + self.height * (1 - share),
        )

    def frame(
        self, across: Sequence[tuple[float, str]], up: Sequence[tuple[float, str]], names: tuple[str, str]
    ) -> list[str]:
        """Lines and numbers at the given places, and what they are."""
        bottom = self.top + self.height
        parts = [line(self.left, bottom, self.left + self.width, bottom, "axis")]
        for x, words in across:
            parts.append(text(self.at(x, self.up[0])[0], bottom + 18, words, kind="small"))
        for y, words in up:
            height = self.at(self.across[0], y)[1]
            parts.append(line(self.left, height, self.left + self.width, height, "grid"))
            parts.append(text(self.left - 8, height + 4, words, anchor="end", kind="small"))
        parts.append(text(self.left + self.width / 2, bottom + 38, names[0], kind="small"))
        parts.append(text(self.left - 36, self.top - 14, names[1], anchor="start", kind="small"))
        return parts

    def _level(self, value: float) -> float:
        return math.log10(value) if self.log else value
