"""Local randomizers: each knows how to draw reports, how private one is, and how to average them without bias.

    RandomizedResponse   categories 0 … k−1          pure, histograms
    UnaryEncoding        categories 0 … k−1          pure, histograms of many values: k bits a report
    Laplace              numbers, L1-bounded vectors pure, means
    Gaussian             numbers, L2-bounded vectors (ε₀, δ₀), means
    PrivUnit             unit vectors                pure, means; the error grows with d, not with d² as Laplace's

What leaves a party is drawn in whole numbers, exactly as stated, by `report(values, words)`. RandomizedResponse and
UnaryEncoding have it; GridLaplace, GridGaussian and GridPrivUnit are the other three on a grid, and `on_a_grid` finds the one
that belongs to a randomizer. Laplace, Gaussian and PrivUnit themselves state the privacy of laws on real numbers; their draws
are floating-point approximations, for simulation, whose last digits can give the value away (`netdp.mechanisms.base`).

>>> import numpy as np
>>> from netdp.mechanisms import RandomizedResponse
>>> answers = RandomizedResponse(2, epsilon0=1.0)
>>> print(f"{answers.curve.delta(0.5):.4f}")
0.2876
"""

from netdp.mechanisms.gaussian import GridGaussian
from netdp.mechanisms.laplace import GridLaplace
from netdp.mechanisms.privunit import GridPrivUnit
from netdp.mechanisms.responses import RandomizedResponse, UnaryEncoding, better_response

from .base import ExactMechanism, Mechanism
from .exact import on_a_grid
from .gaussian import Gaussian
from .laplace import Laplace
from .privunit import PrivUnit

__all__ = [
    "ExactMechanism",
    "Gaussian",
    "GridGaussian",
    "GridLaplace",
    "GridPrivUnit",
    "Laplace",
    "Mechanism",
    "PrivUnit",
    "RandomizedResponse",
    "UnaryEncoding",
    "better_response",
    "on_a_grid",
]
