"""The general accountant on views written by hand."""

import numpy as np
import pytest

from netdp.accounting.linear_gaussian import shift_energy
from netdp.errors import Unsupported
from netdp.views import Noise, Seen


def view(A, B, observers=(0,)):
    A, B = np.array(A, dtype=float), np.array(B, dtype=float)
    noises = tuple(Noise("own", (i + 1,)) for i in range(B.shape[1]))
    return Seen(observers, A, B, noises, np.zeros((len(A), 3), dtype=np.int64))


def test_one_message():
    assert shift_energy(view([[0, 3, 1]], [[2, 0]]))[1:].tolist() == pytest.approx([9 / 4, 1 / 4])


def test_same_noise_twice_cancels():
    """y₁ = x₁ + z, y₂ = x₂ + z: the difference x₁ − x₂ is free of noise, so both losses are infinite."""
    assert np.isinf(shift_energy(view([[0, 1, 0], [0, 0, 1]], [[1], [1]]))[1:]).all()


def test_repeating_a_message_costs_nothing():
    once = shift_energy(view([[0, 1, 2]], [[1, 1]]))
    twice = shift_energy(view([[0, 1, 2], [0, 2, 4]], [[1, 1], [2, 2]]))
    np.testing.assert_allclose(once[1:], twice[1:])


def test_independent_messages_add_up():
    energy = shift_energy(view([[0, 1], [0, 1]], [[1, 0], [0, 2]]))
    assert energy[1] == pytest.approx(1 + 1 / 4)


def test_no_noise_at_all():
    energy = shift_energy(view([[0, 1, 0]], [[0, 0]]))
    assert energy[1] == np.inf
    assert energy[2] == 0


def test_refuses_what_floating_point_cannot_tell():
    with pytest.raises(Unsupported, match="too faint"):
        shift_energy(view([[0, 1, 0], [0, 1, 1]], [[1, 0], [1, 1e-10]]))
