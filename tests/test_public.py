"""The public list of names, and that nothing heavy is loaded before it is needed."""

import subprocess
import sys

import netdp

PUBLIC = [
    "Central",
    "CentralDescent",
    "ErdosRenyiGossip",
    "ExpectedError",
    "Gossip",
    "GossipDescent",
    "Graph",
    "GraphWalkSum",
    "Guarantee",
    "Local",
    "LocalDescent",
    "MaskedSum",
    "NetdpError",
    "PathSum",
    "Policy",
    "RandomizedGossip",
    "RingHistogram",
    "RingSum",
    "Shuffle",
    "VaryingGossip",
    "WalkDescent",
    "WalkHistogram",
    "WalkSum",
    "account",
    "calibrate",
    "expected_error",
    "graphs",
    "local_dp",
    "pairwise",
    "plan",
    "simulate",
    "trusted_curator",
]


def test_public_names_are_pinned():
    assert sorted(netdp.__all__) == PUBLIC
    assert all(getattr(netdp, name) is not None for name in PUBLIC)
    assert set(PUBLIC) <= set(dir(netdp))


def test_unknown_names_are_refused():
    import pytest

    with pytest.raises(AttributeError, match="no attribute 'trust'"):
        _ = netdp.trust


def loaded_by(code):
    script = f"{code}; import sys; print(*sorted(m for m in sys.modules if '.' not in m))"
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )


def test_import_is_light():
    heavy = {"numpy", "scipy", "numba", "networkx", "matplotlib", "dp_accounting"}
    assert not heavy & loaded_by("import netdp, netdp.cli")
    assert not {"numba", "networkx", "matplotlib", "dp_accounting"} & loaded_by("from netdp import graphs")
    assert not {"matplotlib", "dp_accounting"} & loaded_by("from netdp import account, pairwise")
    assert "numba" in loaded_by("from netdp import account")  # the check can see what it looks for
