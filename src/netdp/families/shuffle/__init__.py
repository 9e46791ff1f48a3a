"""Network shuffling: randomized reports hop from friend to friend until the curator cannot tell whose they are."""

from netdp.protocols.family import Family

FAMILY = Family(
    name="shuffle",
    protocols={
        "protocol": ("FaultyShuffle", "Shuffle", "RelayedShuffle"),
    },
    parts={
        "account": ("account.faults", "account.relay", "account.shuffling", "coalitions"),
        "error": ("error",),
        "plan": ("plan",),
        "simulate": ("simulate",),
        "attack": ("attack",),
        "published": ("netdp.papers.formulas.network_shuffling",),
    },
    kinds={
        "shuffle": "peer:ShuffleRunning",
    },
    recordings={
        "shuffle": "recordings:ShuffleRecording",
    },
    words="words:WORDS",
    plan="plan:calibrate_epsilon0",
    offer="plan:offer",
    links={"shuffle": "plan:shuffled"},
)
