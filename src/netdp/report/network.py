"""The network as a picture: parties coloured by what is learned about them, observers as stars, names where there are few.

**Where parties are drawn**: the same places whoever observes, in about a second for 30,000 of them.

A family's own drawing is taken where it has one. Otherwise two steps, both deterministic:

*Pivots.* Hops from some fifty parties far apart, squared and centred in rows and columns: the two leading axes are nearly those of
classical scaling of all distances (Brandes and Pich, "Eigensolver methods for progressive multidimensional scaling of large
data", GD 2006).

*Forces.* Links pull in proportion to their length; all pairs push as 1/distance and in proportion to their degrees, so that
groups come apart and hubs get room (the forces of Jacomy et al., "ForceAtlas2", PLoS ONE 2014); a weak pull to the middle keeps
outliers near. At rest Σ length² over the links equals Σ of the products of masses over the pairs (the virial theorem), which
says at what size to start. Pushes among many come from a mesh: masses are laid on a grid, the field is a convolution
(one Fourier transform each way), and every party reads it off between the grid's points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from netdp.graphs.graph import Graph
from netdp.numerics.arrays import FloatArray
from netdp.report.style import NO_BOUND, NOTHING, Scale

_PIVOTS = 50

_STEPS = 200

_WORK = 6e6  # parties times steps; more than 30,000 parties get fewer steps

_PULL = 0.06  # to the middle, as a share of the pull of a party's links

_EXACT = 300  # up to here every pair pushes; above, the mesh does

_OUTLIERS = 0.98  # farther out than so many, distances are drawn logarithmically


def placed(graph: Graph) -> FloatArray:
    """(n, 2) places in the unit square, independent of who observes: the family's own drawing, else pivots and forces.

    >>> from netdp import graphs
    >>> placed(graphs.dataset("karate")).shape
    (34, 2)
    """
    if graph.positions is not None:
        points = np.array(graph.positions, dtype=np.float64)
    elif graph.m == 0:
        points = _spiral(graph.n)
    else:
        points = _with_outliers_nearer(_by_forces(graph, _by_pivots(graph)))
    low, high = points.min(axis=0), points.max(axis=0)
    centred: FloatArray = (points - (low + high) / 2) / max(float((high - low).max()), 1e-12) + 0.5
    return centred


def _by_pivots(graph: Graph) -> FloatArray:
    """Places whose distances are nearly the numbers of hops, with parties that would coincide a little apart."""
    squared = _hops_from_pivots(graph) ** 2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()
    axes = np.linalg.eigh(centred.T @ centred)[1]
    points: FloatArray = -centred @ axes[:, [-1, -2]]
    farthest = points[np.abs(points).argmax(axis=0), [0, 1]]
    points *= np.where(farthest < 0, -1.0, 1.0)  # an axis has no sign of its own
    return points / max(float(np.sqrt((points**2).sum(axis=1).mean())), 1e-12) + 0.02 * _spiral(graph.n)


def _hops_from_pivots(graph: Graph) -> FloatArray:
    """(n, k) hops from k parties, each as far as possible from those before; another component is beyond all of its own."""
    pivot, columns = int(graph.degrees.argmax()), []
    nearest = np.full(graph.n, np.iinfo(np.int64).max)
    for _ in range(max(2, min(_PIVOTS, graph.n, int(_WORK / graph.n)))):
        hops = graph.distances(pivot).astype(np.int64)
        hops[hops < 0] = hops.max() + 2
        columns.append(hops)
        nearest = np.minimum(nearest, hops)
        pivot = int(nearest.argmax())
    return np.array(columns, dtype=np.float64).T


def _spiral(n: int) -> FloatArray:
    """n places spread evenly over a disc of radius 1, no two alike (a sunflower's)."""
    turn = np.arange(n) * np.pi * (3 - np.sqrt(5))
    disc: FloatArray = np.sqrt((np.arange(n) + 0.5) / n)[:, None] * np.column_stack((np.cos(turn), np.sin(turn)))
    return disc


def _by_forces(graph: Graph, start: FloatArray) -> FloatArray:
    """Pulls along links and pushes between all pairs, in steps that become shorter and shorter."""
    degrees, adjacency = graph.degrees.astype(np.float64)[:, None], graph.adjacency()
    mass = degrees + 1
    ends = start[graph.edges()]
    length = float(((ends[:, 0] - ends[:, 1]) ** 2).sum())
    points: FloatArray = start * np.sqrt(float(mass.sum()) ** 2 / 2 / max(length, 1e-12))
    longest = 0.1 * float(np.sqrt((points**2).sum(axis=1).mean()))
    push = _pushes_of_pairs if graph.n <= _EXACT else _mesh(64 if graph.n < 4000 else 128)
    steps = int(np.clip(_WORK / graph.n, 10, _STEPS))
    for step in range(steps):
        pull = (adjacency @ points - degrees * points) / mass
        force = push(points, mass[:, 0]) + pull - _PULL * (points - points.mean(axis=0))
        size = np.sqrt((force**2).sum(axis=1)) + 1e-12
        limit = longest * (1 - step / steps) ** 1.5
        points = points + 0.9 * force * np.minimum(1.0, limit / size)[:, None]
    if graph.n > _EXACT:  # the mesh does not tell leaves of the same party apart
        points = points + float(np.ptp(points, axis=0).max()) / (3 * np.sqrt(graph.n)) * _spiral(graph.n)
    return points


def _pushes_of_pairs(points: FloatArray, mass: FloatArray) -> FloatArray:
    """The push on every party: Σ of mass · direction / distance over all others."""
    apart = points[:, None] - points[None]
    pushes: FloatArray = np.einsum("uvk,uv->uk", apart, mass / ((apart**2).sum(axis=-1) + 1e-9))
    return pushes


def _mesh(cells: int) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """The same pushes by way of a grid of cells × cells, softened below the size of a cell."""
    from scipy.fft import irfft2, rfft2

    offset = np.concatenate((np.arange(cells), np.arange(-cells, 0))).astype(np.float64)
    square = offset[:, None] ** 2 + offset**2 + 0.5
    kernels = [rfft2(np.broadcast_to(offset[:, None], square.shape) / square), rfft2(offset / square)]

    def pushes(points: FloatArray, mass: FloatArray) -> FloatArray:
        low = points.min(axis=0)
        width = max(float((points.max(axis=0) - low).max()), 1e-12) / (cells - 2) * 1.0001
        place = (points - low) / width
        corner = place.astype(np.int64)
        part = place - corner
        corners: list[tuple[Any, Any]] = [
            ((corner[:, 0] + a) * cells + corner[:, 1] + b,
             np.abs(1 - a - part[:, 0]) * np.abs(1 - b - part[:, 1]))
            for a in (0, 1) for b in (0, 1)
        ]  # fmt: skip
        laid = sum(np.bincount(where, share * mass, minlength=cells * cells) for where, share in corners)
        spectrum = rfft2(np.reshape(laid, (cells, cells)), square.shape)
        fields = [irfft2(spectrum * kernel, square.shape)[:cells, :cells].ravel() / width for kernel in kernels]
        return np.column_stack([sum(field[where] * share for where, share in corners) for field in fields])

    return pushes


def _with_outliers_nearer(points: FloatArray) -> FloatArray:
    """Parties far outside all others are drawn nearer, in the same order: they would leave little room for the rest."""
    if len(points) <= _EXACT:
        return points
    middle = np.median(points, axis=0)
    far = np.sqrt(((points - middle) ** 2).sum(axis=1)) + 1e-12
    usual = float(np.quantile(far, _OUTLIERS))
    nearer = np.where(far > usual, usual * (1 + 0.5 * np.log(np.maximum(far, usual) / usual)), far)
    drawn: FloatArray = middle + (points - middle) * (nearer / far)[:, None]
    return drawn


NAMED = 40
"""Up to so many parties have their names beside them."""

_VECTORS = 6000  # more lines or dots than this are an image also inside a vector file, which stays small

_LONGEST = 18  # letters of a name

_ROOM = 0.1  # beside the outermost parties, for their names


def draw_network(
    axes: Any,
    graph: Graph,
    losses: FloatArray | None = None,
    scale: Scale | None = None,
    observers: Sequence[int] = (),
    *,
    found: Sequence[int] = (),
    inches: float = 3.6,
) -> None:
    """Draw the graph into the axes, `inches` wide: links, parties with the colours of their losses, observers as stars.

    found   a coalition that is pointed out (hollow stars), while `losses` hold against any of its size
    """
    from matplotlib.collections import LineCollection

    points, edges = placed(graph), graph.edges()
    m, n = len(edges), graph.n
    alpha, width = float(np.clip(9 / max(m, 1) ** 0.5, 0.015, 0.6)), 0.8 if m < 300 else 0.5 if m < 5000 else 0.3
    axes.add_collection(
        LineCollection(
            list(points[edges]), colors="#3c4450", alpha=alpha, linewidths=width, zorder=1, rasterized=m > _VECTORS
        )
    )
    size = float(np.clip((0.3 * 72 * inches / np.sqrt(n)) ** 2, 1.6, 70))
    colours = np.full((n, 4), (0.114, 0.306, 0.537, 1.0)) if losses is None or scale is None else scale.painted(losses)
    looking = np.zeros(n, dtype=bool)
    looking[list(observers)] = True
    order = np.arange(n)[~looking]
    if losses is not None:  # who loses most is drawn last, and is not covered
        order = order[np.argsort(np.nan_to_num(losses[order], nan=-1.0, posinf=np.inf), kind="stable")]
    axes.scatter(
        *points[order].T, s=size, c=colours[order], zorder=2, rasterized=n > _VECTORS,
        edgecolors="#1b1f24", linewidths=0.5 if n <= 300 else 0.25 if n <= 2000 else 0.0,
    )  # fmt: skip
    star = float(np.clip(2.6 * size, 40, 150))
    if looking.any():
        axes.scatter(*points[looking].T, marker="*", c="black", s=star, zorder=4, edgecolors="white", linewidths=0.4)
    if found:
        axes.scatter(
            *points[list(found)].T, marker="*", s=star, zorder=4, facecolors="none", edgecolors="black", linewidths=0.9
        )
    if n <= NAMED and graph.labels is not None:
        _names(axes, graph, points, [*observers, *found], (np.sqrt(size) / 2, np.sqrt(star) / 2), inches)
    span = np.ptp(points, axis=0) / 2
    room = _ROOM if n <= NAMED and graph.labels is not None else 0.04
    axes.set_xlim(0.5 - span[0] - room, 0.5 + span[0] + room)
    axes.set_ylim(0.5 - span[1] - room, 0.5 + span[1] + room)
    axes.set_aspect("equal")
    axes.axis("off")


def legend_entries(losses: FloatArray, observers: Sequence[int], found: Sequence[int] = ()) -> list[Any]:
    """What a legend must explain: stars, nothing at all, no bound."""
    from matplotlib.lines import Line2D

    def mark(label: str, **look: Any) -> Line2D:
        return Line2D([], [], linestyle="none", label=label, **look)

    entries = []
    if len(observers):
        entries.append(
            mark("observer" if len(observers) == 1 else "observers, colluding", marker="*", color="black", markersize=8)
        )
    if len(found):
        entries.append(mark("worst coalition found", marker="*", markersize=8, markerfacecolor="none", color="black"))
    if (losses == 0).any():
        entries.append(
            mark("nothing learned (ε = 0)", marker="o", markerfacecolor=NOTHING, color="#1b1f24", markersize=5)
        )
    if np.isposinf(losses).any():
        entries.append(mark("no finite ε", marker="o", color=NO_BOUND, markersize=5))
    return entries


def _names(
    axes: Any, graph: Graph, points: FloatArray, bold: Sequence[int], radii: tuple[float, float], inches: float
) -> None:
    """Names beside the parties: each where it covers the fewest other names, parties and links, of eight places."""
    point = (1 + 2 * _ROOM) / (72 * inches)  # one point of type, in the units of the square
    links = points[graph.edges()].mean(axis=1) if graph.m else np.empty((0, 2))
    boxes: list[tuple[float, float, float, float]] = []
    for u in np.argsort(-graph.degrees, kind="stable").tolist():
        name = shortened(graph.labels[u] if graph.labels is not None else str(u))
        wide, high = (5.2 if u in bold else 4.6) * len(name) * point, 8 * point
        best, least, radius = None, np.inf, radii[u in bold]
        for turn in range(8):
            angle = turn * np.pi / 4
            away = (radius + 2.5) * point * np.array([np.cos(angle), np.sin(angle)])
            middle = (
                points[u] + away + 0.5 * np.array([wide * np.sign(np.round(np.cos(angle), 6)), high * np.sin(angle)])
            )
            box = (middle[0] - wide / 2, middle[1] - high / 2, middle[0] + wide / 2, middle[1] + high / 2)
            cost = sum(_overlap(box, other) for other in boxes) / (wide * high) * 4
            inside = (np.abs(points - middle) < np.array([wide, high]) / 2 + radius * point).all(axis=1)
            inside[u] = False
            cost += 2.0 * inside.sum() + 0.2 * (np.abs(links - middle) < np.array([wide, high]) / 2).all(axis=1).sum()
            cost += 0.5 * max(0.0, -box[0] - 0.06, box[2] - 1.06) / point + 0.01 * turn
            if cost < least:
                best, least = box, cost
        assert best is not None
        boxes.append(best)
        axes.text(
            (best[0] + best[2]) / 2, (best[1] + best[3]) / 2, name, ha="center", va="center", fontsize=7, zorder=5,
            fontweight="bold" if u in bold else "normal",
        )  # fmt: skip


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> float:
    """The area that two boxes share."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def shortened(name: str, most: int = _LONGEST) -> str:
    """A name that fits beside a dot.

    >>> shortened("Sankt Georg Spital am Rhein")
    'Sankt Georg Spita…'
    """
    return name if len(name) <= most else name[: most - 1] + "…"
