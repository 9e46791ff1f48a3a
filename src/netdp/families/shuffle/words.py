"""What commands and the studio say of network shuffling: names, examples, and what each setting means. Light: nothing is loaded."""

from __future__ import annotations

from netdp.protocols.family import CatalogueEntry, FamilyWords, Way

WORDS = FamilyWords(
    entries=(
        CatalogueEntry(
            "shuffle",
            "encrypted randomized reports hop from friend to friend until nobody knows whose they are",
            "upper, against the curator and users who collude with it",
            "netdp account regular:200,6 -p shuffle --rounds 40 --epsilon0 1",
            {"": Way("Shuffle", study="shuffle")},
            subject="shuffling",
            plan="settings:PlanShuffle",
            run="settings:RunReports",
        ),
        CatalogueEntry(
            "faulty-shuffle",
            "shuffling while users are away for some rounds, go for good, or reports get lost",
            "upper, for a rate of faults beforehand and for the pattern that occurred",
            "netdp account regular:200,6 -p faulty-shuffle --rounds 60 --epsilon0 1 --outages 0.1",
            {"": Way("FaultyShuffle")},
            plan="settings:PlanFaulty",
            run="settings:RunReports",
        ),
        CatalogueEntry(
            "relayed-shuffle",
            "shuffling through a server that passes on all messages and sees how many go where; cover traffic hides that",
            "upper with cover, against server and curator together; without it nothing but the reports' own noise",
            "netdp account regular:200,6 -p relayed-shuffle --rounds 40 --epsilon0 1 --cover 12",
            {"": Way("RelayedShuffle")},
            plan="settings:PlanRelayed",
            run="settings:RunReports",
        ),
    ),
    settings={
        "epsilon0": "shuffle: the local-DP loss of a report.",
        "delta0": "shuffle: δ₀ of an (ε₀, δ₀) randomizer; 0 by default.",
        "values": "shuffle: reports are randomized response over so many values; any randomizer by default.",
        "variation": "shuffle: or the total variation between two reports' laws, at most.",
        "reporting": "shuffle: all or single.",
        "outages": "faulty-shuffle: the probability that a user is away in a round.",
        "crashes": "faulty-shuffle: the probability that a user goes for good in a round.",
        "lost": "faulty-shuffle: the probability that a report gets lost in a hop.",
        "cover": "relayed-shuffle: so many envelopes go over every link at every hop; 0: no cover.",
        "bundles": "relayed-shuffle: instead of --cover, so many bundles of each user to random neighbours.",
        "laziness": "shuffle: probability that a report stays.",
    },
    choices={
        "reporting": "protocol:REPORTINGS",
        "absent": "protocol:ABSENCES",
    },
)
