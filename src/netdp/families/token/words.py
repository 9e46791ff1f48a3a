"""What commands and the studio say of tokens: names, examples, and what each setting means. Light: nothing is loaded."""

from __future__ import annotations

from netdp.protocols.family import CatalogueEntry, FamilyWords, Way

WORDS = FamilyWords(
    entries=(
        CatalogueEntry(
            "secret-ring",
            "a token goes round in a new secret order every time: two neighbours that collude are neighbours no more",
            "upper, against colluders who were chosen before the orders",
            "netdp account complete:100 -p secret-ring --rounds 3 --sigma 40 --colluders 2",
            {
                "": Way(
                    "SecretRingSum",
                    "users",
                    only=("complete",),
                    links="between any two users, for orders are drawn anew",
                )
            },
        ),
        CatalogueEntry(
            "token",
            "a token collects noisy contributions: round ring:N, at random among complete:N, or along the links of a graph",
            "ring: exact; walks: upper, before the walk is drawn",
            "netdp account complete:100 -p token --steps 2000 --sigma 20",
            {
                "ring": Way("RingSum", "users", study="ring-sum"),
                "complete": Way("WalkSum", "users", study="walk-sum"),
                "": Way("GraphWalkSum", study="walk-sum"),
            },
            subject="a token on {graph}",
            plan="settings:PlanToken",
        ),
        CatalogueEntry(
            "histogram",
            "a token collects randomized responses: round ring:N, at random among complete:N, or along the links of a graph",
            "upper",
            "netdp account complete:200 -p histogram --steps 2000 --domain 4 --gamma 0.5 --sender hidden",
            {
                "ring": Way("RingHistogram", "users", study="ring-histogram"),
                "complete": Way("WalkHistogram", "users", study="walk-histogram"),
                "": Way("WalkHistogram", study="walk-histogram"),
            },
        ),
        CatalogueEntry(
            "walk-descent",
            "a model walks at random, a noisy gradient step at every visit",
            "upper, before the walk is drawn",
            "netdp account complete:200 -p walk-descent --steps 2000 --sigma 4 --step 0.05 --clip 0.5",
            {"complete": Way("WalkDescent", "users"), "": Way("WalkDescent")},
        ),
        CatalogueEntry(
            "ring-descent",
            "a model goes round a ring; the next user sees every step, so nothing is amplified: the papers' contrast",
            "upper, local DP for the next user",
            "netdp account ring:100 -p ring-descent --rounds 3 --sigma 4 --step 0.05",
            {
                "": Way(
                    "RingDescent", "users", only=("ring", "complete"), links="from every user to the next one on a ring"
                )
            },
        ),
    ),
    settings={
        "radius": "walk-descent: models stay in the ball of this radius around 0.",
        "walk": "token on a graph: metropolis (the default) or simple.",
        "tokens": "walks: how many walk in parallel.",
        "weights": "walks on complete:N: how likely each user is drawn, 1,2,2,…; alike by default.",
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
    },
    choices={
        "noise": "ring:RING_NOISES",
        "response": "ring:RESPONSES",
        "sender": "walk:SENDERS",
        "release": "walk:RELEASES",
        "SecretRingSum.sender": "ring:ORDERS",
    },
)
