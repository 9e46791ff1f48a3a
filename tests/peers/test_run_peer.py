"""Whoever looks at a running peer has no say in how it ends."""

import asyncio

import pytest

from netdp.errors import NetdpError
from netdp.peers.peer import run_peer


class Stub:
    """A peer that takes a moment and then says how it ended."""

    def __init__(self, told):
        self.told, self.store, self.closed = told, self, False

    async def run(self):
        await asyncio.sleep(0.05)
        if isinstance(self.told, Exception):
            raise self.told
        return self.told

    def close(self):
        self.closed = True


@pytest.mark.parametrize("trouble", [NetdpError("the ledger cannot be read"), OSError(28, "No space left on device")])
def test_a_look_that_fails_does_not_cost_the_answer(trouble):
    looks = []

    def look():
        looks.append(1)
        raise trouble

    peer = Stub({"ok": True})
    assert run_peer(peer, look) == {"ok": True}
    assert len(looks) >= 2  # at the beginning and at the end
    assert peer.closed


def test_what_the_peer_itself_says_is_said():
    peer = Stub(NetdpError("the disk is full"))
    with pytest.raises(NetdpError, match="the disk is full"):
        run_peer(peer, lambda: None)
    assert peer.closed
    assert run_peer(Stub({"ok": False})) == {"ok": False}
