"""Shares of a number modulo a prime: values of a polynomial whose constant term is the number (Shamir 1979).

A polynomial of degree < t with uniform coefficients but the first: any t values at points other than 0 give it, and
any t − 1 of them are uniform, whatever the constant term is. The prime is an argument, so that tests can list all
polynomials over a small one. Points are different numbers from 1 to the prime less one.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from functools import lru_cache

from netdp.errors import InvalidValue


def value(coefficients: Sequence[int], point: int, prime: int) -> int:
    """Σ coefficients[k]·pointᵏ modulo a prime.

    >>> value((3, 1, 2), 2, 11)
    2
    """
    return int(sum(map(operator.mul, coefficients, _powers(point, len(coefficients), prime)))) % prime


def constant(shares: Mapping[int, int], prime: int) -> int:
    """What the polynomial of least degree through these points has at 0.

    >>> constant({1: 6, 2: 2, 5: 3}, 11)
    3
    """
    if not shares:
        raise InvalidValue("a number is recovered from at least one share, got none")
    points = tuple(sorted(shares))
    return sum(weight * shares[point] for weight, point in zip(_weights(points, prime), points, strict=True)) % prime


@lru_cache(maxsize=1024)
def _powers(point: int, count: int, prime: int) -> tuple[int, ...]:
    powers, power = [], 1
    for _ in range(count):
        powers.append(power)
        power = power * point % prime
    return tuple(powers)


@lru_cache(maxsize=16)  # the same holders reveal shares of all dealings
def _weights(points: tuple[int, ...], prime: int) -> tuple[int, ...]:
    """Lagrange's, for the value at 0."""
    if points[0] < 1 or points[-1] >= prime:
        raise InvalidValue(f"shares stand at points from 1 to the prime less one, got {points[0]} to {points[-1]}")
    weights = []
    for point in points:
        above, below = 1, 1
        for other in points:
            if other != point:
                above = above * other % prime
                below = below * (other - point) % prime
        weights.append(above * pow(below, -1, prime) % prime)
    return tuple(weights)
