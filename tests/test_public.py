"""The public list of names, and that nothing heavy is loaded before it is needed."""

import subprocess
import sys

import netdp

PUBLIC = [
    "Central",
    "CentralDescent",
    "ErdosRenyiDescent",
    "ErdosRenyiGossip",
    "ExpectedError",
    "FaultyShuffle",
    "Gossip",
    "GossipDescent",
    "Graph",
    "GraphWalkSum",
    "Guarantee",
    "LinearGaussianView",
    "LinearProtocol",
    "Local",
    "LocalDescent",
    "MaskedDescent",
    "MaskedSum",
    "NetdpError",
    "Observers",
    "PathSum",
    "Plan",
    "Policy",
    "Protocol",
    "PushSum",
    "RandomizedGossip",
    "RelayedShuffle",
    "RingDescent",
    "RingHistogram",
    "RingSum",
    "SecretRingSum",
    "Shuffle",
    "VaryingGossip",
    "WalkDescent",
    "WalkHistogram",
    "WalkSum",
    "account",
    "advise_links",
    "calibrate",
    "engine",
    "expected_error",
    "graphs",
    "limits",
    "local_dp",
    "pairwise",
    "plan",
    "simulate",
    "trusted_curator",
    "who_learns_most",
]


def test_public_names_are_pinned():
    assert sorted(netdp.__all__) == PUBLIC
    assert all(getattr(netdp, name) is not None for name in PUBLIC)
    assert set(PUBLIC) <= set(dir(netdp))


def test_every_room_is_an_attribute():
    """`netdp.planning.target` works without an import of its own; what is typed on a command line is no room to import."""
    from pathlib import Path

    here = {path.name for path in Path(netdp.__file__).parent.iterdir() if (path / "__init__.py").is_file()}
    assert here <= {*netdp._ROOMS, "cli"}
    assert all(getattr(netdp, room).__name__ == f"netdp.{room}" for room in netdp._ROOMS)
    assert set(netdp._ROOMS) <= set(dir(netdp))


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
    heavy = {"numpy", "scipy", "numba", "networkx", "matplotlib", "dp_accounting", "torch"}
    assert not heavy & loaded_by("import netdp, netdp.cli")
    assert not {"numba", "networkx", "matplotlib", "dp_accounting"} & loaded_by("from netdp import graphs")
    assert not {"matplotlib", "dp_accounting"} & loaded_by("from netdp import account, pairwise")
    assert "numba" in loaded_by("from netdp import account")  # the check can see what it looks for
