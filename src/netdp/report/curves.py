"""The privacy curves of a comparison as a picture: ε against δ, the certified one beside the alternatives."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from .comparison import Comparison
from .files import matplotlib, picture_path, write_whole

_STYLES: dict[str, dict[str, Any]] = {
    "certified": {"color": "#1d4e89", "linewidth": 2.5},
    "published (not a bound)": {"color": "#888888", "linestyle": "--"},
    "local DP": {"color": "#b3242a"},
    "trusted curator": {"color": "#3a7d44", "linestyle": ":", "linewidth": 2.0},
    "trusted shuffler": {"color": "#3a7d44", "linestyle": ":", "linewidth": 2.0},
    "trusted sampler of √n reports": {"color": "#b8860b", "linestyle": "-."},
}


def save_curves(comparison: Comparison, subject: str, path: str | os.PathLike[str]) -> Path:
    """Write ε(δ) of the protocol and its alternatives to a .png or .svg file."""
    target = picture_path(path, (".png", ".svg"))
    plt = matplotlib()
    figure, axes = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    deltas = np.geomspace(1e-12, 1e-2, 81)
    named = {"certified": comparison.certified, **comparison.alternatives}
    for name, guarantee in named.items():
        if isinstance(guarantee, str):
            continue
        values = np.array([guarantee.worst_epsilon(float(delta)) for delta in deltas])
        if np.isfinite(values).any():
            claim = f" ({guarantee.claim.value})" if name == "certified" else ""
            axes.plot(deltas, np.where(np.isfinite(values), values, np.nan), label=name + claim, **_STYLES[name])
    axes.axvline(comparison.delta, color="#cccccc", linewidth=1, zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="δ", ylabel="ε of the worst-placed party", title=subject)
    axes.title.set_fontsize(10)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    content = io.BytesIO()
    figure.savefig(content, format=target.suffix[1:].lower(), dpi=150)
    plt.close(figure)
    write_whole(target, content.getvalue())
    return target
