"""The predicted error of a masked sum: the shares of noise, and rounding."""

import numpy as np
import pytest

from netdp import graphs
from netdp.families.masked.protocol import MaskedSum
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian, words_from
from netdp.protocols.accuracy import expected_error


def test_noise_of_everybody_over_n():
    protocol = MaskedSum(graphs.ring(50), sigma=0.5)
    error = expected_error(protocol)
    assert error.noise == pytest.approx(0.25 / 50, rel=1e-4)
    assert error.rounding == protocol.step**2 / 4
    assert error.total == error.noise + error.rounding
    assert expected_error(protocol.replace(dimension=7)).noise == pytest.approx(7 * 0.25 / 50, rel=1e-4)
    assert "rounding" in str(error)


def test_noise_is_what_is_drawn_not_what_was_asked_for():
    protocol = MaskedSum(graphs.ring(10), sigma=1.1, grid=1.0)
    drawn = DiscreteGaussian(protocol.share).sample((200_000,), words_from(np.random.default_rng(0)))
    assert expected_error(protocol).noise == pytest.approx(drawn.var() / 10, rel=0.02)


def test_rounding_of_given_values_is_known():
    protocol = MaskedSum(graphs.ring(4), sigma=1.0, grid=0.5, centre=0.3)
    values = np.array([0.1, 0.3, 0.7, 1.2])  # on the grid 0, 0.5, 0.5, 1
    assert expected_error(protocol, values).rounding == pytest.approx(((2.0 - 2.3) / 4) ** 2)
    assert expected_error(protocol, values).rounding <= expected_error(protocol).rounding
    assert expected_error(protocol, np.full(4, 0.25)).rounding == expected_error(protocol).rounding  # as bad as it gets
