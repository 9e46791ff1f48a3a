"""A quick run of every figure and table, made once for all tests that look at it."""

from __future__ import annotations

import functools

import pytest

from netdp.errors import DataNotFound, MissingDependency
from netdp.papers import catalogue
from netdp.papers.experiment import Size
from netdp.papers.runs import Work


@functools.cache
def _run(name):
    return catalogue.experiment(name).run(Size.QUICK, Work())


@pytest.fixture(scope="session")
def quick():
    """`quick(name)`: the experiment and its result; the test is skipped where the data is not on this machine."""

    def run(name):
        try:
            return catalogue.experiment(name), _run(name)
        except (DataNotFound, MissingDependency) as absent:
            pytest.skip(str(absent))

    return run
