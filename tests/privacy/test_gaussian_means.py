"""Means of Gaussian profiles, compiled: against many digits, and against `gaussian_delta`.

Proof: docs/proofs/privacy.md#gaussian-profile.
"""

import mpmath
import numpy as np
import pytest

from netdp.privacy import gaussian_delta
from netdp.privacy.gaussian_kernels import mean_delta

ONE = np.ones(1)


@pytest.mark.parametrize("mu", [1e-5, 0.0199, 0.0201, 0.3, 0.4999, 0.5001, 2.0, 9.0, 40.0])
def test_against_many_digits(mu):
    """Above the truth, by less than 4e-12, wherever the loss lies."""
    with mpmath.workdps(120):
        for y in (-mu / 2, -mu / 4, 0.0, 0.7, 3.0, 12.0, 19.0, 22.0, 35.0):
            epsilon = max(mu * (y + mu / 2), 0.0)
            m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
            exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
            found = mpmath.mpf(float(mean_delta(np.array([mu]), ONE, np.array([epsilon]))[0]))
            assert exact <= found <= exact * (1 + mpmath.mpf("4e-12")), (mu, y)


def test_mixtures_and_ends():
    rng = np.random.default_rng(1)
    mus, weights = 10 ** rng.uniform(-3, 1.2, 60), 10 ** rng.uniform(-25, -2, 60)
    epsilons = np.concatenate([[0.0], np.geomspace(1e-8, 300, 400)])
    truth = np.asarray(gaussian_delta(mus, epsilons[:, None])) @ weights
    found = mean_delta(mus, weights, epsilons)
    usual = truth > 1e-290
    np.testing.assert_allclose(found[usual], truth[usual], rtol=1e-11)
    assert (found[usual] >= truth[usual] * (1 - 2e-13)).all()
    assert mean_delta(np.array([0.0, np.inf]), np.array([0.5, 0.25]), np.array([1.0]))[0] == pytest.approx(0.25)
