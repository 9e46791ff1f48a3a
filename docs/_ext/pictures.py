"""The pictures of the introduction. Every number in them is computed by netdp; none is typed in.

`PICTURES` maps a name to a function that draws it. Where a page shows `images/NAME.svg`, the site draws it anew while it is
built; the files are for those who read the pages without the site. `python docs/_ext/pictures.py` writes them, a test says when
they are old.
"""

import math
from functools import cache
from pathlib import Path

import numpy as np
from drawing import Axes, alone, area, colour, curve, disc, ink, line, svg, text

import netdp
from netdp import graphs
from netdp.privacy import gaussian_delta
from netdp.privacy.wording import readable

DELTA = 1e-6
SIGMA = 4.0
OBSERVER = 6


@cache
def network() -> netdp.Graph:
    """The twenty-five parties of the introduction."""
    return graphs.grid(5, 5)


@cache
def ways() -> dict[str, netdp.Gossip]:
    """The same noise, three ways of gossiping."""
    plain = netdp.Gossip(network(), rounds=24, sigma=SIGMA, accelerated=True)
    return {
        "plain gossip": plain,
        "fresh noise in every round": plain.replace(refresh=0.3),
        "masks between neighbours": plain.replace(masks=100.0),
    }


def three_ways() -> str:
    """Who must be trusted, and how good the answer is, at one and the same promise."""
    plan = netdp.plan(network(), epsilon=1.0, delta=DELTA, protocols="masked")
    cases = [
        ("trusted curator", "all show their values to one", "the curator", plan.curator_rmse),
        ("local DP", "all publish noisy values", "nobody", plan.local_rmse),
        ("a network", "noise and masks, to neighbours", "nobody", plan.best.rmse),
    ]
    parts = []
    for k, (name, how, trusted, error) in enumerate(cases):
        left = 20 + 240 * k
        parts.append(text(left + 110, 26, name, kind="strong"))
        parts += (_star, _board, _mesh)[k](left + 110, 118)
        parts.append(text(left + 110, 214, how, kind="small"))
        parts.append(text(left + 110, 238, f"must be trusted: {trusted}", kind="small"))
        parts.append(text(left + 110, 264, f"error {error:.3f}", kind="strong"))
    return svg(
        740, 280, parts, "A trusted curator, local DP and a network: who must be trusted and how large the error is"
    )


def two_worlds() -> str:
    """One party's value is another; all else is the same. The observer sees messages and asks: which world is it?"""
    places = [(60, 84), (150, 60), (240, 90), (44, 164), (140, 150), (236, 174), (150, 229)]
    edges = [(0, 1), (1, 2), (0, 3), (0, 4), (1, 4), (2, 4), (2, 5), (3, 4), (4, 5), (3, 6), (5, 6), (4, 6)]
    values = ["0.4", "0.7", "0.1", "0.5", "0.9", "0.3", "v"]
    parts = []
    for k, (title, changed) in enumerate((("one world", "0.1"), ("the other", "0.8"))):
        left = 40 + 370 * k
        parts.append(text(left + 145, 16, title, kind="strong"))
        parts += [line(left + places[a][0], places[a][1], left + places[b][0], places[b][1]) for a, b in edges]
        for u, (x, y) in enumerate(places):
            if u == 2:
                parts += [
                    disc(left + x, y, 24, kind="target"),
                    text(left + x, y + 5, changed, fill="#ffffff", kind="strong"),
                ]
                parts.append(text(left + x + 34, y - 14, "u", anchor="start", kind="small"))
            elif u == 6:
                parts += [
                    disc(left + x, y, 22, kind="observer"),
                    text(left + x, y + 5, "v", fill="#ffffff", kind="strong"),
                ]
            else:
                parts += [disc(left + x, y, 20), text(left + x, y + 5, values[u])]
        parts.append(text(left + 150, 274, "what the observer v sees", kind="small"))
    parts.append(text(368, 160, "≈", kind="large"))
    return svg(740, 286, parts, "Two networks that differ in the value of one party, u; another party, v, observes")


def two_bells() -> str:
    """All that an observer can find out is one noisy number; it lies a little further right in the other world."""
    cases = [
        ("local DP", *_strongest(netdp.local_dp(ways()["plain gossip"]))),
        ("a network that masks", *_strongest(netdp.account(ways()["masks between neighbours"], [OBSERVER]))),
    ]
    parts = []
    for k, (name, shift, epsilon) in enumerate(cases):
        axes = Axes((40 + 370 * k, 40, 290, 150), (-3.5, 3.5), (0.0, 0.42))
        xs = np.linspace(-3.5, 3.5, 120)
        for mean, kind in ((0.0, "bell one"), (shift, "bell other")):
            heights = np.exp(-((xs - mean) ** 2) / 2) / math.sqrt(2 * math.pi)
            points = [axes.at(x, y) for x, y in zip(xs, heights, strict=True)]
            parts += [area([axes.at(-3.5, 0), *points, axes.at(3.5, 0)], kind + " fill"), curve(points, kind)]
        parts.append(line(*axes.at(-3.5, 0), *axes.at(3.5, 0), "axis"))
        parts.append(text(185 + 370 * k, 24, name, kind="strong"))
        parts.append(text(185 + 370 * k, 216, f"shifted by {shift:.3f} deviations", kind="small"))
        parts.append(text(185 + 370 * k, 238, f"ε = {readable(epsilon)} at δ = 10⁻⁶", kind="small"))
    return svg(740, 250, parts, "Two bell curves, one for each world: apart under local DP, nearly the same with masks")


def failures() -> str:
    """δ against ε for what the observer learns: one curve says more than one pair of numbers."""
    axes = Axes((70, 34, 620, 210), (0.0, 1.6), (1e-12, 1.0), log=True)
    parts = axes.frame(
        [(x, f"{x:g}") for x in (0, 0.4, 0.8, 1.2, 1.6)],
        [(10.0**-k, f"10{_raised(-k)}" if k else "1") for k in (0, 3, 6, 9, 12)],
        ("ε", "δ"),
    )
    local = netdp.local_dp(ways()["plain gossip"])
    masked = netdp.account(ways()["masks between neighbours"], [OBSERVER])
    for name, mu, epsilon, kind in (
        ("local DP", *_strongest(local), "bell other"),
        ("masked gossip", *_strongest(masked), "bell one"),
    ):
        xs = np.linspace(0.0, 1.6, 200)
        deltas = [float(gaussian_delta(mu, x)) for x in xs]
        parts.append(curve([axes.at(x, d) for x, d in zip(xs, deltas, strict=True) if d >= 1e-12], kind))
        x, y = axes.at(epsilon, DELTA)
        parts += [
            disc(x, y, 5, kind=kind + " dot"),
            text(x + 10, y - 8, f"{name}: ε = {readable(epsilon)}", anchor="start", kind="small"),
        ]
    return svg(
        740, 290, parts, "The probability of failure, δ, falls as ε grows; masked gossip lies far left of local DP"
    )


def who_learns_what() -> str:
    """Every party, coloured by what the observer can learn about it."""
    top = netdp.local_dp(ways()["plain gossip"]).worst_epsilon(DELTA)
    parts = []
    for k, (name, protocol) in enumerate(ways().items()):
        left = 12 + 245 * k
        epsilon = netdp.account(protocol, [OBSERVER]).epsilon(DELTA)
        places = [(left + 27 + 44 * (u % 5), 58 + 44 * (u // 5)) for u in range(25)]
        parts.append(text(left + 115, 22, name, kind="strong"))
        parts += [line(*places[u], *places[v]) for u, v in network().edges().tolist()]
        for u, (x, y) in enumerate(places):
            if u == OBSERVER:
                parts += [disc(x, y, 18, kind="observer"), text(x, y + 4, "v", fill="#ffffff", kind="strong")]
                continue
            share = float(epsilon[u]) / top
            parts += [
                disc(x, y, 18, fill=colour(share)),
                text(x, y + 4, _two_digits(epsilon[u]), fill=ink(share), kind="tiny"),
            ]
        parts.append(
            text(left + 115, 284, f"error of the answer {netdp.expected_error(protocol).rmse:.2f}", kind="small")
        )
    return svg(740, 296, parts, "Three networks; each party is coloured by the epsilon that party v can reach about it")


def colluders() -> str:
    """What any so many parties together can learn."""
    masked, summed = ways()["masks between neighbours"], netdp.MaskedSum(network(), sigma=SIGMA)
    counts = range(1, 13)
    local = netdp.local_dp(summed).worst_epsilon(DELTA)
    lines = [
        ("masks on the links", [netdp.account(masked, colluders=k).worst_epsilon(DELTA) for k in counts], "bell other"),
        (
            "pads between all pairs",
            [netdp.account(summed, colluders=k).worst_epsilon(DELTA) for k in counts],
            "bell one",
        ),
    ]
    axes = Axes((70, 34, 620, 190), (1, 12), (0.0, 1.2))
    parts = axes.frame(
        [(k, str(k)) for k in counts],
        [(y, f"{y:g}") for y in (0.0, 0.4, 0.8, 1.2)],
        ("how many parties pool what they see", "ε at δ = 10⁻⁶"),
    )
    parts += [
        line(*axes.at(1, local), *axes.at(12, local), "dashed"),
        text(686, axes.at(1, local)[1] - 7, "local DP", anchor="end", kind="small"),
    ]
    for name, values, kind in lines:
        points = [axes.at(k, y) for k, y in zip(counts, values, strict=True)]
        parts += [curve(points, kind), *(disc(x, y, 4, kind=kind + " dot") for x, y in points)]
        x, y = points[4]
        parts.append(text(x + 6, y + (22 if kind == "bell other" else -12), name, anchor="start", kind="small"))
    return svg(
        740, 270, parts, "Epsilon against the number of colluders, for masks on links and for pads between all pairs"
    )


def claims() -> str:
    """The formula from the literature beside the exact loss, by distance on a ring."""
    protocol = netdp.Gossip(graphs.ring(16), rounds=6, sigma=SIGMA)
    exact = netdp.account(protocol, [0]).epsilon(DELTA)
    published = netdp.account(protocol, [0], method="published").epsilon(DELTA)
    axes = Axes((70, 34, 620, 190), (0.4, 8.6), (0.0, 2.4))
    parts = axes.frame(
        [(k, str(k)) for k in range(1, 9)],
        [(y, f"{y:g}") for y in (0.0, 0.8, 1.6, 2.4)],
        ("hops away from the observer", "ε at δ = 10⁻⁶"),
    )
    for hops in range(1, 9):
        for shift, values, kind in ((-0.18, exact, "bar one"), (0.18, published, "bar other")):
            x, y = axes.at(hops + shift, float(values[hops]))
            base = axes.at(hops, 0.0)[1]
            parts.append(f'<rect class="{kind}" x="{x - 12:.1f}" y="{y:.1f}" width="24" height="{base - y:.1f}"/>')
    for y, kind, words in (
        (40, "bar one", "exact: the loss itself"),
        (62, "bar other", "published: a formula as printed"),
    ):
        parts.append(f'<rect class="{kind}" x="470" y="{y}" width="14" height="14"/>')
        parts.append(text(492, y + 12, words, anchor="start", kind="small"))
    return svg(
        740,
        270,
        parts,
        "On a ring the published formula is above the exact loss nearby and below it from three hops on",
    )


PICTURES = {
    "three-ways": three_ways,
    "two-worlds": two_worlds,
    "two-bells": two_bells,
    "failures": failures,
    "who-learns-what": who_learns_what,
    "colluders": colluders,
    "claims": claims,
}


def _strongest(loss: netdp.Guarantee) -> tuple[float, float]:
    """Shift and ε of the party about whom most is learned."""
    return float(np.nanmax(loss.mu)), float(loss.worst_epsilon(DELTA))


def _two_digits(epsilon: float) -> str:
    """Rounded up, as every printed ε is."""
    return f"{math.ceil(100 * float(epsilon)) / 100:.2f}"


def _raised(number: int) -> str:
    return str(number).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _circle(x: float, y: float, count: int = 8, radius: float = 66) -> list[tuple[float, float]]:
    angles = [2 * math.pi * k / count + 0.3 for k in range(count)]
    return [(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles]


def _star(x: float, y: float) -> list[str]:
    around = _circle(x, y)
    parts = [line(x, y, *place) for place in around] + [disc(*place, 11) for place in around]
    return [*parts, f'<rect class="target" x="{x - 18:g}" y="{y - 18:g}" width="36" height="36" rx="5"/>']


def _board(x: float, y: float) -> list[str]:
    around = _circle(x, y)
    parts = [line(*place, x + 0.45 * (place[0] - x), y + 0.45 * (place[1] - y), "cry") for place in around]
    parts += [disc(*place, 11) for place in around]
    return [*parts, *(disc(x + 14 * (k % 3 - 1), y + 14 * (k // 3 - 1), 4, kind="dot-faint") for k in range(9))]


def _mesh(x: float, y: float) -> list[str]:
    around = _circle(x, y)
    ends = [(k, (k + 1) % 8) for k in range(8)] + [(k, k + 4) for k in range(4)] + [(0, 3), (2, 5), (4, 7), (6, 1)]
    return [line(*around[a], *around[b]) for a, b in ends] + [disc(*place, 11) for place in around]


if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (Path(__file__).parents[1] / "images" / f"{name}.svg").write_text(alone(draw()), "utf-8")
