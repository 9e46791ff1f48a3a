"""Small random connected graphs and exact rational factors for all tests; property tests repeat themselves exactly.

Hypothesis draws the same examples on every machine (a setting, not the environment): a failure can be shown to somebody else.
"""

import importlib.util
import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import settings

from netdp import graphs
from netdp.engines.choice import plain_algebra_for_good
from netdp.numerics.values import party_values
from netdp.protocols.simulation import Values, execute

# Tests run side by side already: each uses one core, unless it says otherwise. Threads of linear algebra that wait for each
# other on busy cores made single tests thirty times slower; what is loaded already is told, processes yet to come inherit.
for _name in ("NETDP_WORKERS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
plain_algebra_for_good()

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

_spec = importlib.util.spec_from_file_location("brute", Path(__file__).parent / "families" / "gossip" / "brute.py")
brute = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(brute)


@pytest.fixture(scope="session")
def exact_factors():
    """Exact rational factors of a `Graph`."""

    def run(graph, rounds, observers, **settings):
        neighbours = [set(graph.neighbors(u).tolist()) for u in range(graph.n)]
        return brute.exact_factors(neighbours, rounds, list(observers), **settings)

    return run


@pytest.fixture(scope="session")
def brute_force():
    """The module of exact rational computations."""
    return brute


class _Columns(Values):
    """Values whose every column is a run of its own: each is held to the sensitivity, not the columns together."""

    def of(self, protocol, *, rows=None):
        data = party_values(self.given, protocol.n if rows is None else rows)
        assert (np.ptp(data, axis=0) <= protocol.sensitivity * (1 + 1e-9)).all()
        return data


@pytest.fixture(scope="session")
def run_columns():
    """Many independent runs at once, as columns; `normal` puts other numbers in place of the noise."""

    def run(protocol, values, seed, record=None, normal=None):
        drawn = np.random.default_rng(seed).standard_normal if normal is None else normal
        return execute(protocol, _Columns(values), seed, drawn, record)

    return run


@pytest.fixture(scope="session")
def random_graph():
    """A connected random graph of n nodes: a random tree plus some edges."""

    def draw(n, seed, density=0.25):
        rng = np.random.default_rng(seed)
        tree = [(int(rng.integers(v)), v) for v in range(1, n)]
        extra = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < density]
        return graphs.from_networkx(nx.Graph(nx.Graph(tree + extra).subgraph(range(n))))

    return draw
