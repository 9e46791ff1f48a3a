"""What each setting of a protocol means, in a line: for `--help`, the studio and the documentation. Light: nothing is loaded."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "rounds": "How often everybody sends; rounds of a token on a ring; hops of a report.",
    "steps": "token and walks: the length of a walk; randomized: how often an edge wakes.",
    "sigma": "Standard deviation of one noise.",
    "sensitivity": "Δ: all values come from one public interval of this length; 1 by default.",
    "refresh": "gossip, randomized: variance r·σ² of fresh noise, before later sends.",
    "masks": (
        "gossip, descent: κ, every edge shares a secret mask N(0, κσ²). masked: complete (the default), or "
        "with how many partners a party shares pads."
    ),
    "accelerated": "gossip: Chebyshev acceleration.",
    "mixing": "gossip: metropolis (the default), maximum-degree, hamilton, or lazy- before one of them.",
    "edge_probability": "secret-graph: the probability of every link.",
    "varying": "secret-graph: another graph for every round.",
    "iterations": "descents: how many gradient steps everybody takes.",
    "gossip_rounds": "descent: rounds of gossip after each gradient step.",
    "step": "descents: the length of a gradient step.",
    "clip": "descents: the norm to which gradients are clipped.",
    "radius": "walk-descent: models stay in the ball of this radius around 0.",
    "expansion": "descents: by how much a step can move two models apart; 1 by default.",
    "walk": "token on a graph: metropolis (the default) or simple.",
    "tokens": "walks: how many walk in parallel.",
    "weights": "walks on complete:N: how likely each user is drawn, 1,2,2,…; alike by default.",
    "law": "token: gaussian (the default) or laplace noise.",
    "contributions": "walks: at most so many of each user.",
    "domain": "histogram: how many values there are.",
    "response": "histogram: k-ary (the default) or unary.",
    "gamma": "histogram: the probability of a random answer.",
    "sender": (
        "walks on complete:N: known (the default: plain connections), receiver-known (anonymous sending) or "
        "hidden (a mix network that draws the next holder)."
    ),
    "release": (
        "walks on complete:N: the last holder publishes under its name (named) or not (anonymous); as the channel does."
    ),
    "noise": "token on a ring: single or distributed.",
    "closing": "token on a ring or any graph: noise before the release.",
    "spread": "masked: flood or average.",
    "attempts": "masked: how often a party may publish in all; 1 by default.",
    "absent": (
        "masked: how many parties may be missing from an attempt; 0 by default. faulty-shuffle: what becomes "
        "of the reports at a user who is away, unreachable (the default) or silent."
    ),
    "grid": "masked, ring, gossip: values are multiples of this power of two, as on real peers.",
    "dimension": "masked, ring, gossip on a grid: how many numbers a value has at most.",
    "groups": "masked-descent: sums of so many groups of parties, put together robustly.",
    "aggregate": "masked-descent: mean (the default), median or trimmed, over the groups.",
    "unit": "masked: whose data is protected, party (the default) or record.",
    "sampling": (
        "masked-descent: the secret probability to take part in a step, of each party or record; 1 by default."
    ),
    "max_records": "masked-descent, unit record: how many records a party may have; public.",
    "records": "masked-descent, unit record: about how many there are in all; public.",
    "momentum": "masked-descent: how much of a step goes on in the next; 0 by default.",
    "average": "masked-descent: keep the last model (the default), or the mean of the later half.",
    "reach": "masked, unit record: each coordinate of a party's sum is clipped to this.",
    "centre": "masked: the middle of the values.",
    "epsilon0": "shuffle: the local-DP loss of a report.",
    "delta0": "shuffle: δ₀ of an (ε₀, δ₀) randomizer; 0 by default.",
    "reporting": "shuffle: all or single.",
    "outages": "faulty-shuffle: the probability that a user is away in a round.",
    "crashes": "faulty-shuffle: the probability that a user goes for good in a round.",
    "lost": "faulty-shuffle: the probability that a report gets lost in a hop.",
    "cover": "relayed-shuffle: so many envelopes go over every link at every hop; 0: no cover.",
    "bundles": "relayed-shuffle: instead of --cover, so many bundles of each user to random neighbours.",
    "laziness": "shuffle: probability that a report stays.",
}
"""By the name of the setting."""

SWITCHES: dict[str, tuple[str, str]] = {
    "accelerated": ("--accelerated", "--plain"),
    "varying": ("--varying", "--fixed"),
    "closing": ("--closing", "--no-closing"),
}
"""Settings that are said by one of two flags: yes, no."""
