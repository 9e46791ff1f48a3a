"""Local randomizers: each knows how to draw reports, how private one is, and how to average them without bias.

    RandomizedResponse   categories 0 … k−1          pure, histograms
    UnaryEncoding        categories 0 … k−1          pure, histograms of many values: k bits a report
    Laplace              numbers, L1-bounded vectors pure, means
    Gaussian             numbers, L2-bounded vectors (ε₀, δ₀), means
    PrivUnit             unit vectors                pure, means; the error grows with d, not with d² as Laplace's

Privacy is stated of the laws on real numbers. The draws are for simulation: those of Laplace, Gaussian and PrivUnit are
floating-point approximations whose last digits can give the value away; RandomizedResponse draws what it states, or
something more private, as far as its generator's words are random (`netdp.mechanisms.base`).

>>> import numpy as np
>>> from netdp.mechanisms import RandomizedResponse
>>> answers = RandomizedResponse(2, epsilon0=1.0)
>>> print(f"{answers.curve.delta(0.5):.4f}")
0.2876
"""

from .base import Mechanism
from .gaussian import Gaussian
from .laplace import Laplace
from .privunit import PrivUnit
from .randomized_response import RandomizedResponse
from .unary import UnaryEncoding, better_response

__all__ = ["Gaussian", "Laplace", "Mechanism", "PrivUnit", "RandomizedResponse", "UnaryEncoding", "better_response"]
