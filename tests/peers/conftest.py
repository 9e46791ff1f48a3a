"""Identities, free ports and a proxy that records, for the tests of real links."""

import importlib.util
import socket
import sys
from pathlib import Path

import pytest

from netdp.peers.identity import Identity

sys.path.append(
    str(Path(__file__).parent)
)  # the helpers of these tests import each other by name, as child processes do

_spec = importlib.util.spec_from_file_location("proxy", Path(__file__).parent / "proxy.py")
_proxy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_proxy)


@pytest.fixture(scope="session")
def recording_proxy():
    """The class `RecordingProxy` of proxy.py."""
    return _proxy.RecordingProxy


@pytest.fixture(scope="session")
def parties(tmp_path_factory):
    """Eight identities, p0 … p7."""
    home = tmp_path_factory.mktemp("identities")
    return [Identity.create(home / f"p{u}", f"p{u}") for u in range(8)]


@pytest.fixture(scope="session")
def free_ports():
    """A function: so many ports of the loopback that nobody uses at this moment."""

    def find(count):
        sockets = [socket.socket() for _ in range(count)]
        try:
            for one in sockets:
                one.bind(("127.0.0.1", 0))
            return [one.getsockname()[1] for one in sockets]
        finally:
            for one in sockets:
                one.close()

    return find
