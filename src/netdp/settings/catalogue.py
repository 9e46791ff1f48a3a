"""Every protocol that commands know: its name after -p, what it does, what is proved of it, and an example.

A name may stand for several protocols: a token goes round `ring:N`, walks among the users of `complete:N`, or from neighbour
to neighbour on any other graph. Which settings a protocol takes is read off its fields (`netdp.settings.models`).
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Way:
    """A protocol of `netdp.protocols` and what GRAPH stands for: the graph, the number of users, one graph per round, or links."""

    protocol: str
    first: str = "graph"


@dataclass(frozen=True)
class Entry:
    """What `netdp protocols` says of one name.

    ways      by the family of the graph, "" for any other
    claims    what is known about its certified loss
    example   a command that works as it stands
    """

    name: str
    does: str
    claims: str
    example: str
    ways: dict[str, Way] = field(compare=False)

    def way(self, graph: str) -> Way:
        """What to do on this graph."""
        family = "" if "+rings:" in graph else graph.partition(":")[0]  # a ring with links over it is any other graph
        return self.ways.get(family, self.ways[""])


_RING = "ring"
_COMPLETE = "complete"

CATALOGUE: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "gossip",
            "parties average noisy values with their neighbours, round after round; masks and fresh noise on request",
            "exact for every pair and coalition; the published formula is no bound",
            "netdp account hypercube:6 --rounds 20 --sigma 4 --masks 100",
            {"": Way("Gossip")},
        ),
        Entry(
            "randomized",
            "one random edge wakes at a time and its two ends average",
            "exact given the edges that woke; before the draw an estimate with its interval",
            "netdp account ring:6 -p randomized --steps 20 --sigma 4",
            {"": Way("RandomizedGossip")},
        ),
        Entry(
            "varying",
            "gossip on one public graph after another: GRAPH is ring:8+hypercube:3, taken in turns for --rounds",
            "exact",
            "netdp account ring:8+hypercube:3 -p varying --rounds 6 --sigma 4",
            {"": Way("VaryingGossip", "graphs")},
        ),
        Entry(
            "push-sum",
            "averaging along one-way links: GRAPH is a file of links, from and to; the links of another graph go both ways",
            "exact",
            "netdp account grid:3x3 -p push-sum --rounds 6 --sigma 4",
            {"": Way("PushSum", "links")},
        ),
        Entry(
            "secret-graph",
            "gossip on a random graph that nobody knows but by its own links, drawn once or for every round",
            "upper, before the graph is drawn",
            "netdp account complete:1000 -p secret-graph --edge-probability 0.01 --rounds 4 --varying --sigma 4",
            {"": Way("ErdosRenyiGossip", "users")},
        ),
        Entry(
            "secret-ring",
            "a token goes round in a new secret order every time: two neighbours that collude are neighbours no more",
            "upper, against colluders who were chosen before the orders",
            "netdp account complete:100 -p secret-ring --rounds 3 --sigma 40 --colluders 2",
            {"": Way("SecretRingSum", "users")},
        ),
        Entry(
            "masked",
            "parties publish under one-time pads that cancel in the sum; what real peers run by default",
            "upper, within a thousandth of a trusted curator; against any coalition, malice included",
            "netdp account hypercube:4 -p masked --sigma 1",
            {"": Way("MaskedSum")},
        ),
        Entry(
            "token",
            "a token collects noisy contributions: round ring:N, at random among complete:N, or along the links of a graph",
            "ring: exact; walks: upper, before the walk is drawn",
            "netdp account complete:100 -p token --steps 2000 --sigma 20",
            {_RING: Way("RingSum", "users"), _COMPLETE: Way("WalkSum", "users"), "": Way("GraphWalkSum")},
        ),
        Entry(
            "histogram",
            "a token collects randomized responses: round ring:N, at random among complete:N, or along the links of a graph",
            "upper",
            "netdp account complete:200 -p histogram --steps 2000 --domain 4 --gamma 0.5 --sender hidden",
            {_RING: Way("RingHistogram", "users"), _COMPLETE: Way("WalkHistogram", "users"), "": Way("WalkHistogram")},
        ),
        Entry(
            "shuffle",
            "encrypted randomized reports hop from friend to friend until nobody knows whose they are",
            "upper, against the curator and users who collude with it",
            "netdp account regular:200,6 -p shuffle --rounds 40 --epsilon0 1",
            {"": Way("Shuffle")},
        ),
        Entry(
            "faulty-shuffle",
            "shuffling while users are away for some rounds, go for good, or reports get lost",
            "upper, for a rate of faults beforehand and for the pattern that occurred",
            "netdp account regular:200,6 -p faulty-shuffle --rounds 60 --epsilon0 1 --outages 0.1",
            {"": Way("FaultyShuffle")},
        ),
        Entry(
            "relayed-shuffle",
            "shuffling through a server that passes on all messages and sees how many go where; cover traffic hides that",
            "upper with cover, against server and curator together; without it nothing but the reports' own noise",
            "netdp account regular:200,6 -p relayed-shuffle --rounds 40 --epsilon0 1 --cover 12",
            {"": Way("RelayedShuffle")},
        ),
        Entry(
            "descent",
            "every party takes noisy gradient steps and averages its model with its neighbours (Muffliato-GD)",
            "upper; exact for quadratic losses is within 1.65 of it",
            "netdp account hypercube:4 -p descent --iterations 6 --gossip-rounds 4 --sigma 4 --step 0.5 --masks 100",
            {"": Way("GossipDescent")},
        ),
        Entry(
            "walk-descent",
            "a model walks at random, a noisy gradient step at every visit",
            "upper, before the walk is drawn",
            "netdp account complete:200 -p walk-descent --steps 2000 --sigma 4 --step 0.05 --clip 0.5",
            {_COMPLETE: Way("WalkDescent", "users"), "": Way("WalkDescent")},
        ),
        Entry(
            "secret-graph-descent",
            "gradient steps and gossip on a random graph that is drawn anew for every step and known only by one's own links",
            "upper, before the graphs are drawn",
            "netdp account complete:2000 -p secret-graph-descent --edge-probability 0.004 --iterations 10 --sigma 4 --step 0.5",
            {"": Way("ErdosRenyiDescent", "users")},
        ),
        Entry(
            "ring-descent",
            "a model goes round a ring; the next user sees every step, so nothing is amplified: the papers' contrast",
            "upper, local DP for the next user",
            "netdp account ring:100 -p ring-descent --rounds 3 --sigma 4 --step 0.05",
            {"": Way("RingDescent", "users")},
        ),
        Entry(
            "masked-descent",
            "every gradient step is one masked sum of all clipped gradients: a curator's noisy descent without a curator",
            "upper, a curator's; against any coalition",
            "netdp account hypercube:4 -p masked-descent --iterations 20 --sigma 4 --step 0.5 --dimension 10",
            {"": Way("MaskedDescent")},
        ),
        Entry(
            "local",
            "everybody publishes its noisy value: local differential privacy, the baseline without trust",
            "exact",
            "netdp account complete:200 -p local --sigma 4",
            {"": Way("Local", "users")},
        ),
        Entry(
            "central",
            "a trusted curator publishes the noisy mean: the baseline with trust",
            "exact",
            "netdp account complete:200 -p central --sigma 0.02",
            {"": Way("Central", "users")},
        ),
        Entry(
            "local-descent",
            "everybody publishes its noisy gradient in every step",
            "exact",
            "netdp account complete:200 -p local-descent --iterations 20 --sigma 4 --step 0.5",
            {"": Way("LocalDescent", "users")},
        ),
        Entry(
            "central-descent",
            "a trusted curator takes noisy gradient steps",
            "exact",
            "netdp account complete:200 -p central-descent --iterations 20 --sigma 4 --step 0.5",
            {"": Way("CentralDescent", "users")},
        ),
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
