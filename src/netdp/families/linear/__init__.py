"""Protocols given by matrices: anything that is seen is a linear function of values and Gaussian noise."""

from netdp.protocols.family import Family

FAMILY = Family(
    name="linear",
    protocols={
        "protocol": ("LinearGaussianView", "LinearProtocol"),
        "tree": ("TreeSum",),
    },
    parts={
        "account": ("account",),
        "error": ("account",),
        "plan": ("account",),
        "simulate": ("account",),
        "attack": ("account",),
    },
)
