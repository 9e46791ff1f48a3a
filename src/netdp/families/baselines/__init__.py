"""What every protocol is compared with: local differential privacy and a trusted curator."""

from netdp.protocols.family import Family

FAMILY = Family(
    name="baselines",
    protocols={
        "protocol": ("Local", "Central", "LocalDescent", "CentralDescent"),
    },
    parts={
        "account": ("account",),
        "error": ("account",),
        "plan": ("account",),
        "simulate": ("simulate",),
        "attack": ("attack",),
        "learn": ("simulate",),
    },
    words="words:WORDS",
    training={"central": "simulate:learn_central", "local": "simulate:learn_local"},
)
