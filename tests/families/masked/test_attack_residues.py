"""Lattice attacks: what whole numbers give away that real numbers would not. docs/proofs/masked.md#masked-sum."""

import numpy as np
import pytest

from netdp.audit import collect, measure
from netdp.errors import InvalidValue
from netdp.families.masked.attack import AverageAttack
from netdp.privacy import GaussianCurve

PRIMES = (5, 7, 11, 13)


@pytest.mark.parametrize(("steps", "refuted"), [(2, True), (4, True), (16, False)])
def test_an_average_on_a_coarse_grid_refutes_the_claim_in_real_numbers(steps, refuted):
    """The counterexample of section 8: Δ = σ/2; the finer the grid, the less the residue tells."""
    attack = AverageAttack(PRIMES, steps=steps, shift=steps // 2)
    told = collect(attack, 40_000, seed=1)
    found = measure(told.without, told.within, delta=1e-6)
    assert found.refutes(attack.in_real_numbers) == refuted
    assert not found.refutes(GaussianCurve(0.5))  # local DP holds: what is seen is made of noisy numbers


def test_on_the_coarsest_grid_it_is_nearly_local_dp():
    told = collect(AverageAttack(PRIMES, steps=2, shift=1), 100_000, seed=2)
    assert measure(told.without, told.within, delta=1e-6).mu > 0.9 * 0.5


def test_the_table_is_the_likelihood_ratio():
    """Against the masses of a discrete Gaussian, added up residue by residue."""
    attack = AverageAttack((3, 5), steps=2, shift=1)
    numbers = np.arange(-40, 41)
    mass = np.exp(-(numbers**2) / 8.0)
    for r in range(5):
        one = mass[(numbers + 1) % 5 == r].sum() / mass[numbers % 5 == r].sum()
        assert attack._table[r] == pytest.approx(np.log(one), rel=1e-9)


def test_denominators_that_share_a_factor_are_refused():
    with pytest.raises(InvalidValue, match="coprime"):
        AverageAttack((4, 6), steps=2, shift=1)
