"""Every protocol that commands know: its name after -p, what it does, what is proved of it, and an example.

A name may stand for several protocols: a token goes round `ring:N`, walks among the users of `complete:N`, or from neighbour
to neighbour on any other graph. Which settings a protocol takes is read off its fields (`netdp.settings.models`).

What each setting of a protocol means, in a line: for `--help`, the studio and the documentation. Both are said by the families
(`words` of `netdp.protocols.family.Family`). Light: no protocol is loaded.
"""

from __future__ import annotations

from netdp.protocols.family import CatalogueEntry, spoken

_ORDER = (
    "gossip", "randomized", "varying", "push-sum", "secret-graph", "secret-ring", "masked", "token", "histogram", "shuffle",
    "faulty-shuffle", "relayed-shuffle", "descent", "walk-descent", "secret-graph-descent", "ring-descent", "masked-descent",
)  # fmt: skip

CATALOGUE: dict[str, CatalogueEntry] = {
    entry.name: entry
    for entry in sorted(
        (entry for _, words in spoken() for entry in words.entries),
        key=lambda entry: _ORDER.index(entry.name) if entry.name in _ORDER else len(_ORDER),
    )
}
"""By name, in the order in which `netdp protocols` lists them."""

RENAMED = {"p": "edge_probability"}
"""Fields whose name alone would not explain a flag."""

LEFT_OUT = {
    "probabilities": "one number per edge",
    "gap": "an assumed spectral gap",
    "modulus": "found from the values",
    "mask_seed": "an agreed public seed",
}
"""Fields that only Python can state, and what they are."""

WORDS: dict[str, str] = {
    "rounds": "How often everybody sends; rounds of a token on a ring; hops of a report.",
    "steps": "token and walks: the length of a walk; randomized: how often an edge wakes.",
    "sigma": "Standard deviation of one noise.",
    "sensitivity": "Δ: all values come from one public interval of this length; 1 by default.",
    "masks": (
        "gossip, descent: κ, every edge shares a secret mask N(0, κσ²). masked: complete (the default), or "
        "with how many partners a party shares pads."
    ),
    "iterations": "descents: how many gradient steps everybody takes.",
    "step": "descents: the length of a gradient step.",
    "clip": "descents: the norm to which gradients are clipped.",
    "expansion": "descents: by how much a step can move two models apart; 1 by default.",
    "absent": (
        "masked: how many parties may be missing from an attempt; 0 by default. faulty-shuffle: what becomes "
        "of the reports at a user who is away, unreachable (the default) or silent."
    ),
    "law": "token, masked: gaussian (the default) or laplace noise; a plan of masked sums takes the better one.",
    "grid": "masked, ring, gossip: values are multiples of this power of two, as on real peers.",
    "dimension": "masked, ring, gossip on a grid: how many numbers a value has at most.",
    **{name: text for _, words in spoken() for name, text in words.settings.items()},
}
"""By the name of the setting: those of several families, then those of one."""

SWITCHES: dict[str, tuple[str, str]] = {
    "accelerated": ("--accelerated", "--plain"),
    "varying": ("--varying", "--fixed"),
    "closing": ("--closing", "--no-closing"),
}
"""Settings that are said by one of two flags: yes, no."""
