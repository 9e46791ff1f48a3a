"""Gossip: noisy values, or models, averaged along the links of a graph."""

from netdp.protocols.family import Family

FAMILY = Family(
    name="gossip",
    protocols={
        "descent": ("GossipDescent", "ErdosRenyiDescent"),
        "protocol": ("Gossip", "RandomizedGossip"),
        "varying": ("PushSum", "VaryingGossip", "ErdosRenyiGossip"),
    },
    parts={
        "account": (
            "account.descent",
            "account.grid",
            "account.secret_graphs",
            "account.sequences",
            "coalitions",
            "views",
        ),
        "error": ("error",),
        "plan": ("plan",),
        "simulate": ("simulate",),
        "attack": ("attack",),
        "learn": ("learning",),
        "published": ("netdp.papers.formulas.muffliato",),
    },
    kinds={
        "gossip": "peer:GossipRunning",
        "randomized-gossip": "peer_randomized:RandomizedRunning",
        "gossip-descent": "peer_descent:GossipDescentRunning",
    },
    recordings={
        "gossip": "recordings:GossipRecording",
        "randomized-gossip": "recordings:ExchangeRecording",
        "gossip-descent": "recordings:GossipDescentRecording",
    },
    words="words:WORDS",
    plan="plan:plan_gossip",
    offer="plan:offer",
    links={"gossip": "plan:gossiped"},
    training={"gossip": "learning:learn_gossip"},
)
