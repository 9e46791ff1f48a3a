"""Curves of losses: ε against δ beside the alternatives, and the losses of all parties in order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from netdp.numerics.arrays import FloatArray
from netdp.privacy import GaussianCurve, Guarantee
from netdp.privacy.readable import readable

from .scale import plain, raised, scientific, ticks_between

DELTAS = np.geomspace(1e-12, 1e-2, 41)
_BLUE, _RED, _GREEN, _GREY, _ORANGE = "#0072B2", "#D55E00", "#009E73", "#6b7280", "#E69F00"
_OURS: dict[str, Any] = {"color": _BLUE, "linewidth": 2.6}
_STYLES: dict[str, dict[str, Any]] = {
    "exact, plain gossip": {"color": "#56B4E9"},
    "published (not a bound)": {"color": _GREY, "linestyle": "--"},
    "local DP": {"color": _RED, "linestyle": (0, (4, 1))},
    "trusted curator": {"color": _GREEN, "linestyle": ":", "linewidth": 1.8},
    "trusted shuffler": {"color": _GREEN, "linestyle": ":", "linewidth": 1.8},
    "trusted sampler of √n reports": {"color": _ORANGE, "linestyle": "-."},
}


def worst_curve(loss: Guarantee, deltas: FloatArray = DELTAS) -> FloatArray:
    """ε of the worst placed party at every δ; nan where there is no party."""
    if isinstance(loss.curve, GaussianCurve):  # the largest μ is the worst at every δ
        known = np.asarray(loss.mu)[~np.isnan(loss.mu)]
        return (
            np.asarray(GaussianCurve(float(known.max())).epsilon(deltas))
            if known.size
            else np.full(len(deltas), np.nan)
        )
    return np.array([loss.worst_epsilon(float(delta)) for delta in deltas])


def stated(loss: Guarantee, delta: float) -> str:
    """The worst ε with its claim, for a title, not to be broken: an estimate bounds nothing."""
    sign = "≤" if loss.is_certified else "≈"
    words = f"ε {sign} {readable(loss.worst_epsilon(delta))} at δ = {scientific(delta)}"
    return words.replace(" ", "\u00a0") + f" ({loss.claim.value})"


def curves_of(loss: Guarantee, alternatives: Mapping[str, Guarantee | str]) -> dict[str, FloatArray]:
    """ε against `DELTAS` by name, the loss in question first; those that are nowhere finite are left out."""
    named = {loss.claim.label: loss, **{k: v for k, v in alternatives.items() if not isinstance(v, str)}}
    found = {name: worst_curve(one) for name, one in named.items()}
    return {name: values for name, values in found.items() if np.isfinite(values).any()}


def draw_curves(axes: Any, curves: Mapping[str, FloatArray], delta: float) -> None:
    """ε against δ, both logarithmic, the first curve thick, below the others; a thin line where ε is read off."""
    for k, (name, values) in enumerate(curves.items()):
        shown = np.where(np.isfinite(values) & (values > 0), values, np.nan)
        style = _STYLES.get(name, {"color": _GREY}) if k else _OURS
        axes.plot(DELTAS, shown, label=name, zorder=3 if k else 2, **style)
    axes.axvline(delta, color="#9aa1ab", linewidth=0.8, zorder=1)
    axes.set(xscale="log", yscale="log", xlabel="δ", ylabel="ε, worst party")
    axes.set_xlim(DELTAS[0], DELTAS[-1])
    log_axis(axes.xaxis, few=True)
    log_axis(axes.yaxis)
    axes.grid()
    if not curves:
        axes.text(0.5, 0.5, "no finite ε at any δ", transform=axes.transAxes, ha="center", va="center")
    else:
        below(axes, columns=2 if sum(sorted(map(len, curves))[-2:]) < 50 else 1)


def below(axes: Any, columns: int, inches: float = 0.42) -> None:
    """The legend under the axes and their label, so many inches, where it hides no curve."""
    from matplotlib.transforms import ScaledTranslation

    axes.legend(
        loc="upper center", bbox_to_anchor=(0.44, 0.0), ncols=columns, handlelength=2.0, columnspacing=0.8, borderpad=0,
        bbox_transform=axes.transAxes + ScaledTranslation(0, -inches, axes.figure.dpi_scale_trans), borderaxespad=0,
    )  # fmt: skip


def draw_losses(axes: Any, losses: FloatArray, delta: float, baselines: Mapping[str, float | None]) -> None:
    """The ε of every party, the largest first, between what to compare with; zero and no bound are said in words."""
    known = np.sort(losses[~np.isnan(losses)])[::-1]
    finite = known[np.isfinite(known)]
    rank = np.arange(1, len(known) + 1)
    shown = np.where(np.isfinite(known) & (known > 0), known, np.nan)
    axes.plot(rank, shown, color=_BLUE, marker="o" if len(known) <= 60 else None, markersize=3, linewidth=1.2)
    for name, value in baselines.items():
        if value is not None and 0 < value < np.inf:
            axes.axhline(value, label=name, **{**_STYLES.get(name, {"color": _GREY}), "linewidth": 1.2})
    said = [f"{np.isposinf(known).sum():,} without a finite ε"] if np.isposinf(known).any() else []
    said += [f"{(known == 0).sum():,} of whom nothing is learned"] if (known == 0).any() else []
    axes.set_xlabel("\n".join(["parties, the largest loss first", *said]))
    axes.set_ylabel(f"ε at δ = {scientific(delta)}")
    if (finite > 0).any():
        axes.set_yscale("log")
        log_axis(axes.yaxis)
    axes.grid(axis="y")
    if any(value is not None and 0 < value < np.inf for value in baselines.values()):
        below(axes, columns=2, inches=0.42 + 0.14 * len(said))


def _power(value: float) -> str:
    """A power of ten as one, also a short one.

    >>> _power(0.001), _power(1e-12)
    ('10⁻³', '10⁻¹²')
    """
    return f"10{raised(round(math.log10(value)))}"


def log_axis(axis: Any, *, few: bool = False) -> None:
    """Round numbers, written out, on a logarithmic axis: 0.1, 0.2, 0.5, 1; or a few powers of ten."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.axes.autoscale_view()
    low, high = sorted(axis.get_view_interval())
    if high < 3 * low:
        low, high = low / 1.6, high * 1.6
        axis.set_view_interval(low, high, ignore=True)
    marks = ticks_between(low, high)
    most = 4 if few else 8
    axis.set_major_locator(FixedLocator(marks[:: max(1, -(-len(marks) // most))]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _power(value) if few else plain(value)))
    axis.set_minor_locator(NullLocator())
