"""Which noise a token carries: Gaussian, or Laplace of the same standard deviation.

The sensitivity Δ of a protocol is an L2 distance under Gaussian noise and an L1 distance under Laplace noise: for single
numbers they are the same.
"""

from __future__ import annotations

from typing import Any

from netdp.errors import InvalidValue, Unsupported

NOISE_LAWS = ("gaussian", "laplace")


def checked_law(law: Any) -> str:
    """The law, or a refusal that names the choices.

    >>> checked_law("cauchy")
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: unknown law 'cauchy'; choose one of gaussian, laplace
    """
    if law not in NOISE_LAWS:
        raise InvalidValue(f"unknown law {law!r}; choose one of {', '.join(NOISE_LAWS)}")
    return str(law)


def only_gaussian(protocol: Any, what: str) -> None:
    """Refuse what is true of Gaussian noise alone."""
    if getattr(protocol, "law", "gaussian") != "gaussian":
        raise Unsupported(
            f"{what} is a number of Gaussian noise; {type(protocol).__name__} has law={protocol.law!r}: ask for epsilon(delta)"
        )


def norm_order(protocol: Any) -> int:
    """The norm in which Δ is measured: 1 under Laplace noise, 2 otherwise."""
    return 1 if getattr(protocol, "law", "gaussian") == "laplace" else 2
