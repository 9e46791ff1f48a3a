"""Sums and descents under one-time pads: what is published means nothing by itself, all of it together is the noisy answer."""

from netdp.protocols.family import Family

FAMILY = Family(
    name="masked",
    protocols={
        "descent": ("MaskedDescent",),
        "protocol": ("MaskedSum",),
    },
    parts={
        "account": ("account", "account_descent", "coalitions"),
        "error": ("error",),
        "plan": ("plan",),
        "simulate": ("simulate",),
        "attack": ("attack",),
        "learn": ("training",),
    },
    kinds={
        "masked-sum": "peer:MaskedRunning",
        "masked-descent": "peer_descent:DescentRunning",
    },
    recordings={
        "masked-sum": "recordings:SumRecording",
        "masked-descent": "recordings:DescentRecording",
    },
    words="words:WORDS",
    plan="plan:plan_masked",
    offer="plan:offer",
    links={"flood": "plan:flooded"},
    training={"masked": "learning:learn_masked"},
    losses={
        "masked-sum": "peer:SUM",
        "masked-descent": "peer:DESCENT",
    },
)
