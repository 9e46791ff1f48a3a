"""What commands and the studio say of gossip: names, examples, and what each setting means. Light: nothing is loaded."""

from __future__ import annotations

from netdp.protocols.family import CatalogueEntry, FamilyWords, Way

WORDS = FamilyWords(
    entries=(
        CatalogueEntry(
            "gossip",
            "parties average noisy values with their neighbours, round after round; masks and fresh noise on request",
            "exact for every pair and coalition; the published formula is no bound",
            "netdp account hypercube:6 --rounds 20 --sigma 4 --masks 100",
            {"": Way("Gossip", study="gossip")},
            plan="settings:PlanGossip",
        ),
        CatalogueEntry(
            "randomized",
            "one random edge wakes at a time and its two ends average",
            "exact given the edges that woke; before the draw an estimate with its interval",
            "netdp account ring:6 -p randomized --steps 20 --sigma 4",
            {"": Way("RandomizedGossip", study="randomized-gossip")},
        ),
        CatalogueEntry(
            "varying",
            "gossip on one public graph after another: GRAPH is ring:8+hypercube:3, taken in turns for --rounds",
            "exact",
            "netdp account ring:8+hypercube:3 -p varying --rounds 6 --sigma 4",
            {"": Way("VaryingGossip", "graphs")},
        ),
        CatalogueEntry(
            "push-sum",
            "averaging along one-way links: GRAPH is a file of links, from and to; the links of another graph go both ways",
            "exact",
            "netdp account grid:3x3 -p push-sum --rounds 6 --sigma 4",
            {"": Way("PushSum", "links")},
        ),
        CatalogueEntry(
            "secret-graph",
            "gossip on a random graph that nobody knows but by its own links, drawn once or for every round",
            "upper, before the graph is drawn",
            "netdp account complete:1000 -p secret-graph --edge-probability 0.01 --rounds 4 --varying --sigma 4",
            {"": Way("ErdosRenyiGossip", "users")},
        ),
        CatalogueEntry(
            "descent",
            "every party takes noisy gradient steps and averages its model with its neighbours (Muffliato-GD)",
            "upper; exact for quadratic losses is within 1.65 of it",
            "netdp account hypercube:4 -p descent --iterations 6 --gossip-rounds 4 --sigma 4 --step 0.5 --masks 100",
            {"": Way("GossipDescent")},
        ),
        CatalogueEntry(
            "secret-graph-descent",
            "gradient steps and gossip on a random graph that is drawn anew for every step and known only by one's own links",
            "upper, before the graphs are drawn",
            "netdp account complete:2000 -p secret-graph-descent --edge-probability 0.004 --iterations 10 --sigma 4 --step 0.5",
            {"": Way("ErdosRenyiDescent", "users")},
        ),
    ),
    settings={
        "refresh": "gossip, randomized, descent on a grid: variance r·σ² of fresh noise, before later sends.",
        "accelerated": "gossip: Chebyshev acceleration.",
        "mixing": "gossip: metropolis (the default), maximum-degree, hamilton, or lazy- before one of them.",
        "edge_probability": "secret-graph: the probability of every link.",
        "varying": "secret-graph: another graph for every round.",
        "gossip_rounds": "descent: rounds of gossip after each gradient step.",
        "batch": "descent: so many rows of a party, drawn anew, make a gradient; all of them, if left out.",
    },
)
