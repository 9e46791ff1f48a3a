"""The public list of names, and that nothing heavy is loaded before it is needed."""

import subprocess
import sys
from importlib import import_module, resources

import pytest

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
    "TreeSum",
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
    """`netdp.protocols.target` works without an import of its own; what is typed on a command line is no room to import."""
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
    heavy = {"numpy", "scipy", "numba", "networkx", "matplotlib", "dp_accounting", "torch", "jinja2"}
    assert not heavy & loaded_by("import netdp, netdp.cli")
    assert not {"numba", "networkx", "matplotlib", "dp_accounting"} & loaded_by("from netdp import graphs")
    assert not {"matplotlib", "dp_accounting", "jinja2"} & loaded_by("from netdp import account, pairwise")
    assert "jinja2" not in loaded_by("import netdp.peers.launch, netdp.peers.party, netdp.report.study")
    assert "numba" in loaded_by(
        "import netdp; netdp.account(netdp.Gossip(netdp.graphs.ring(4), 2, 1.0), 0)"
    )  # the check can see what it looks for


@pytest.mark.parametrize(("room", "old", "new"), [("learn", "Table", "DataTable"), ("protocols", "Noise", "NoiseTerm")])
def test_a_class_that_was_renamed_is_found_by_its_old_name_with_a_warning(room, old, new):
    place = import_module(f"netdp.{room}")
    with pytest.warns(FutureWarning, match=f"netdp.{room}.{old} is now netdp.{room}.{new}"):
        assert getattr(place, old) is getattr(place, new)


def test_old_paths_lead_to_classes_that_were_renamed():
    """Wherever `moved.tsv` names a class by name, that class is there."""
    lines = (
        line.split("\t") for line in resources.files("netdp").joinpath("moved.tsv").read_text("utf-8").splitlines()
    )
    for old, new in lines:
        if ":" in old:
            module, name = new.split(":")
            assert hasattr(import_module(module), name), f"{old} → {new}"


def test_every_old_path_is_found():
    """Also where a folder has become a module of the same name."""
    lines = resources.files("netdp").joinpath("moved.tsv").read_text("utf-8").splitlines()
    gone = []
    for old in (line.split("\t")[0] for line in lines):
        if ":" in old:  # a name within a module
            continue
        try:
            import_module(old)
        except ImportError:
            gone.append(old)
    assert gone == []


OLD_PATHS = """
import warnings
import netdp
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    from netdp.accounting import account
    from netdp.simulate import simulate
assert account is netdp.account and simulate is netdp.protocols.simulation.simulate
assert {str(one.message).split(";")[0] for one in said if one.category is FutureWarning} == {
    "netdp.accounting.account is now netdp.protocols.accounting.account",
    "netdp.simulate.simulate is now netdp.protocols.simulation.simulate",
}, [str(one.message) for one in said]
warnings.simplefilter("error")  # the old room was named like its function, which can be called all the same
p = netdp.Gossip(netdp.graphs.ring(4), 2, 1.0)
assert netdp.simulate(p, [0.0, 0.5, 1.0, 0.5], seed=0) is not None
"""


def test_old_paths_work_with_a_warning():
    """In a process of its own: an old room that is imported stays in the place of its function."""
    done = subprocess.run([sys.executable, "-c", OLD_PATHS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
