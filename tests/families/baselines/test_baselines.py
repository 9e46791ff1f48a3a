"""Local and central averaging, run with the same interface."""

import numpy as np
import pytest

import netdp
from netdp.errors import Unsupported
from netdp.protocols import Central, Local


@pytest.mark.parametrize("cls", [Local, Central])
def test_same_noise_same_error(cls, run_columns):
    values = np.tile(np.linspace(0, 1, 25)[:, None], (1, 20_000))
    run = run_columns(cls(25, sigma=2.0), values, seed=1)
    assert run.estimates.shape == values.shape
    assert (run.estimates == run.estimates[0]).all()
    errors = run.estimates[0] - 0.5
    assert errors.mean() == pytest.approx(0, abs=0.02)
    assert errors.std() == pytest.approx(2.0 / 5, rel=0.02)


def test_there_is_nothing_to_record():
    with pytest.raises(Unsupported, match="no messages"):
        netdp.simulate(Local(3, sigma=1.0), [1, 2, 3], seed=0, record=[0])


def test_the_function_is_one_whatever_was_imported():
    import netdp.protocols.simulation

    assert netdp.simulate is netdp.protocols.simulation.simulate
    assert netdp.simulate(Central(2, sigma=1e-9, sensitivity=2.0), [1.0, 3.0], seed=0).estimates[0, 0] == pytest.approx(
        2.0
    )
