"""The two classical ways, with the same interface: everybody publishes (local), or a trusted curator (central).

σ means the same everywhere: the noise that one party's value would carry on its own. Local: party u publishes x_u + N(0, σ²).
Central: the curator publishes the mean plus N(0, σ²/n), what perfect averaging of the local noises would leave. So equal σ
means equal error of the mean, and the privacy differs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from netdp.numerics.checks import count, scale
from netdp.protocols.base import Protocol


@dataclass(frozen=True)
class _Averaging(Protocol):
    n: int
    sigma: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", count("n", self.n))
        for name in ("sigma", "sensitivity"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))

    @property
    def local_mu(self) -> float:
        """μ of local DP, Δ/σ."""
        return self.sensitivity / self.sigma


@dataclass(frozen=True)
class Local(_Averaging):
    """Everybody publishes its value with noise N(0, σ²); all take the mean.

    >>> Local(100, sigma=2.0).local_mu
    0.5
    """

    kind: ClassVar[str] = "local"

    def describe(self) -> str:
        return f"{self.n:,} parties; everybody publishes its value with noise σ={self.sigma:g}, Δ={self.sensitivity:g}"


@dataclass(frozen=True)
class Central(_Averaging):
    """A curator that everybody trusts publishes the mean with noise N(0, σ²/n)."""

    kind: ClassVar[str] = "central"

    def describe(self) -> str:
        return (
            f"{self.n:,} parties; a curator that everybody trusts publishes the mean with noise "
            f"{self.sigma / math.sqrt(self.n):g}, Δ={self.sensitivity:g}"
        )


@dataclass(frozen=True)
class _Descent(Protocol):
    answer: ClassVar[str] = "a model"
    n: int
    iterations: int
    sigma: float
    step: float
    clip: float = 1.0

    def __post_init__(self) -> None:
        for name in ("n", "iterations"):
            object.__setattr__(self, name, count(name, getattr(self, name)))
        for name in ("sigma", "step", "clip"):
            object.__setattr__(self, name, scale(name, getattr(self, name)))

    @property
    def sensitivity(self) -> float:
        """Δ = 2L: two clipped gradients."""
        return 2.0 * self.clip

    @property
    def local_mu(self) -> float:
        """μ of local DP over all iterations, √T·Δ/σ."""
        return math.sqrt(self.iterations) * self.sensitivity / self.sigma

    def _steps(self) -> str:
        return f"{self.n:,} parties; {self.iterations} gradient steps of size {self.step:g}, clipped to {self.clip:g}"


@dataclass(frozen=True)
class LocalDescent(_Descent):
    """Every party publishes its clipped gradient with noise N(0, σ²) per coordinate, in every iteration."""

    kind: ClassVar[str] = "local-descent"

    def describe(self) -> str:
        return f"{self._steps()}; everybody publishes its gradients with noise σ={self.sigma:g}"


@dataclass(frozen=True)
class CentralDescent(_Descent):
    """A trusted curator publishes the mean of the clipped gradients with noise N(0, σ²/n), in every iteration."""

    kind: ClassVar[str] = "central-descent"

    def describe(self) -> str:
        return f"{self._steps()}; a trusted curator publishes their mean with noise {self.sigma / math.sqrt(self.n):g}"
