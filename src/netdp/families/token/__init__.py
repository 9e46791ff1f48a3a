"""Tokens: a sum, a histogram or a model that walks from party to party."""

from netdp.protocols.family import Family

FAMILY = Family(
    name="token",
    protocols={
        "path": ("PathSum",),
        "ring": ("RingSum", "RingHistogram", "RingDescent", "SecretRingSum"),
        "walk": ("WalkSum", "WalkHistogram", "WalkDescent", "GraphWalkSum"),
    },
    parts={
        "account": (
            "account.alternatives",
            "account.graph_walk",
            "account.path",
            "account.ring",
            "account.walk",
            "coalitions",
            "views",
        ),
        "error": ("error",),
        "plan": ("calibration",),
        "simulate": ("simulate", "training"),
        "attack": ("attack", "attack_descents"),
        "learn": ("learning",),
        "published": ("netdp.papers.formulas.amplification",),
    },
    kinds={
        "ring-sum": "peer_ring:RingRunning",
        "ring-histogram": "peer_ring:RingHistogramRunning",
        "walk-sum": "peer_walk:WalkSumRunning",
        "walk-histogram": "peer_walk:WalkHistogramRunning",
        "walk-descent": "peer_descent:WalkDescentRunning",
    },
    recordings={
        "ring-sum": "recordings:RingRecording",
        "ring-histogram": "recordings:HeapRingRecording",
        "walk-sum": "recordings:WalkRecording",
        "walk-histogram": "recordings:HeapWalkRecording",
        "walk-descent": "recordings:WalkDescentRecording",
    },
    words="words:WORDS",
    plan="plan:plan_token_on",
    offer="plan:offer",
    training={"walk": "learning:learn_walk"},
)
