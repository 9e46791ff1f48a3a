"""The pictures of a report, drawn by hand as SVG: no library, sharp on paper, light or dark by the page's own colours.

Every picture has a title and a description; colours come from classes of the page's style, so that nothing needs a style attribute
(the page allows none).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from netdp.privacy.wording import readable
from netdp.report.network import placed
from netdp.report.style import round_step

from .wording import small

if TYPE_CHECKING:
    from netdp.peers.study.study import Study

NAMED = 40
"""Up to so many parties have their names beside them."""
MOST_LINKS = 6_000
"""More links than these are not drawn."""
_W, _H, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 340, 58, 24, 64, 52


def loss_chart(said: Mapping[str, Any]) -> str:
    """ε against how many put together what they saw: certified beforehand, promised, and spent, if that is known."""
    curve = [(int(k), float(e)) for k, e in said["curve"] if math.isfinite(float(e))]
    extra = said["has_curator"]
    spent = _spent(said)
    terms = said["promised"]
    aim = (int(terms["colluders"]), float(terms["epsilon"]))
    xs = [int(k) for k, _ in [*curve, *spent, aim]]
    low, high = min(xs), max(*xs, min(xs) + 1)
    step = round_step(1.08 * max(e for _, e in [*curve, *spent, aim]) / 5)
    marks = math.ceil(1.04 * max(e for _, e in [*curve, *spent, aim]) / step)
    top = marks * step

    def x(k: float) -> float:
        return _LEFT + 14 + (_W - _LEFT - _RIGHT - 28) * (k - low) / (high - low)

    def y(e: float) -> float:
        return _H - _BOTTOM - (_H - _BOTTOM - _TOP) * e / top

    body = []
    for i in range(marks + 1):
        at = y(i * step)
        body.append(f'<line class="grid" x1="{_LEFT}" x2="{_W - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        body.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{i * step:g}</text>')
    for k in _ticks(low, high):
        body.append(f'<text x="{x(k):.1f}" y="{_H - _BOTTOM + 20}" text-anchor="middle">{k}</text>')
    line = " ".join(f"{x(k):.1f},{y(e):.1f}" for k, e in curve)
    body.append(f'<line class="promise" x1="{_LEFT}" x2="{x(aim[0]):.1f}" y1="{y(aim[1]):.1f}" y2="{y(aim[1]):.1f}"/>')
    body.append(f'<polyline class="certified" points="{line}"/>')
    for k, e in curve:
        body.append(
            f'<circle class="dot" cx="{x(k):.1f}" cy="{y(e):.1f}" r="4"><title>{k + extra} together: ε = {readable(e)}, '
            "certified</title></circle>"
        )
    for k, e in spent:
        body.append(_square(x(k), y(e), f"{k + extra} together: ε = {readable(e)}, if all had been fixed beforehand"))
    body.append(_diamond(x(aim[0]), y(aim[1]), f"promised: at most {terms['epsilon']:g}"))
    body.append(_legend(bool(spent)))
    who = "parties, besides the curator," if extra else "parties"
    body.append(
        f'<text x="{(_W + _LEFT) / 2:.0f}" y="{_H - 8}" text-anchor="middle">how many {who} put together what they saw</text>'
    )
    body.append(f'<text x="4" y="{_TOP - 14}">ε at δ = {small(terms["delta"])}</text>')
    told = "; ".join(f"{k + extra} together {readable(e)}" for k, e in curve)
    return _svg("losses", "What any so many can learn about anybody else", f"Certified ε: {told}.", _W, _H, body)


def _spent(said: Mapping[str, Any]) -> list[tuple[int, float]]:
    found = said["happened"]["spent"] if said["happened"] is not None else {}
    return [(int(k), float(e)) for k, e in found.items() if e != "no bound"]


def _legend(spent: bool) -> str:
    parts = [
        f'<line class="certified" x1="{_LEFT}" x2="{_LEFT + 26}" y1="18" y2="18"/><circle class="dot" cx="{_LEFT + 13}" cy="18" '
        f'r="4"/><text x="{_LEFT + 34}" y="22">certified beforehand</text>',
        f'{_diamond(_LEFT + 235, 18)}<text x="{_LEFT + 249}" y="22">promised</text>',
    ]
    if spent:
        parts.append(
            f'{_square(_LEFT + 370, 18)}<text x="{_LEFT + 384}" y="22">spent, if all had been fixed beforehand</text>'
        )
    return "".join(parts)


def _square(x: float, y: float, told: str = "") -> str:
    return f'<rect class="spent" x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10">{_title(told)}</rect>'


def _diamond(x: float, y: float, told: str = "") -> str:
    return f'<path class="aim" d="M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7z">{_title(told)}</path>'


def _title(told: str) -> str:
    return f"<title>{escape(told)}</title>" if told else ""


def _ticks(low: int, high: int) -> list[int]:
    """Whole numbers below the axis, not more than a dozen.

    >>> _ticks(1, 5), _ticks(1, 199)
    ([1, 2, 3, 4, 5], [1, 20, 40, 60, 80, 100, 120, 140, 160, 180, 199])
    """
    if high - low <= 12:
        return list(range(low, high + 1))
    step = int(max(1, round_step((high - low) / 10)))
    inner = range(step * (low // step + 1), high, step)
    return [low, *(k for k in inner if k - low >= step / 2 and high - k >= step / 2), high]


# ── the network ───────────────────────────────────────────────────────────────────────────────────────────────────────


def network_picture(study: Study) -> str:
    """Who talks to whom; names where there are few parties."""
    graph, named = study.graph, study.n <= NAMED
    width, height = 720, 460 if named else 560
    margin = 60 if named else 16
    points = placed(graph)
    size = min(width - 2 * margin, height - 2 * margin)
    stretch = (
        (width - 2 * margin) / size if graph.positions is None else 1.0
    )  # springs may be pulled apart; a family's own may not
    at = [
        ((width / 2 + (x - 0.5) * size * min(stretch, 1.5)), (height / 2 + (0.5 - y) * size))
        for x, y in points.tolist()
    ]
    body = []
    if graph.m <= MOST_LINKS:
        lines = "".join(
            f"M{at[u][0]:.0f} {at[u][1]:.0f}L{at[v][0]:.0f} {at[v][1]:.0f}" for u, v in graph.edges().tolist()
        )
        faint = " faint" if graph.m > 400 else ""
        body.append(f'<path class="link{faint}" d="{lines}"/>')
    radius = 7 if named else max(2.5, 6 - study.n / 200)
    for (x, y), name in zip(at, study.names, strict=True):
        body.append(f'<circle class="party" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">{_title(name)}</circle>')
    if named:
        body += [_label(x, y, name, height) for (x, y), name in zip(at, study.names, strict=True)]
    return _svg("network", "Who talks to whom", _in_words(study), width, height, body)


def _label(x: float, y: float, name: str, height: float) -> str:
    short = name if len(name) <= 16 else f"{name[:15]}…"
    below = y + (21 if y >= height / 2 else -13)
    return f'<text class="name" x="{x:.1f}" y="{below:.1f}" text-anchor="middle">{escape(short)}</text>'


def _in_words(study: Study) -> str:
    degrees: Sequence[int] = study.graph.degrees.tolist()
    few, many = min(degrees), max(degrees)
    each = f"{few}" if few == many else f"{few} to {many}"
    return f"{study.n:,} parties with {study.graph.m:,} links; every party is linked to {each} others."


def network_words(study: Study) -> str:
    """What the picture of the network shows, in a sentence or two."""
    out = _in_words(study)
    if study.graph.m > MOST_LINKS:
        out += " So many links are not drawn."
    if study.curator is not None:
        out += f" The curator, {study.curator.name}, is linked to everybody and not drawn."
    return out


def _svg(name: str, title: str, told: str, width: int, height: int, body: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(told)}</desc>{"".join(body)}</svg>'
    )
