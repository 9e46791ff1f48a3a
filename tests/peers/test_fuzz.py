"""A hundred thousand mutated messages against live peers: nobody dies, memory stays, each rejection is counted by reason.

At length: `python benchmarks/fuzz.py --messages 1000000`. What is sent: `mutants.py`. What must hold: docs/threat-model.md.
"""

import asyncio
import random
import sys
from pathlib import Path

import pytest

from netdp.errors import InvalidValue
from netdp.peers.exchange import Reason
from netdp.peers.messages import Hello, ItemKind, Key, Pull, decode, encode, roster_body

sys.path.append(str(Path(__file__).parent))

import matrix
import mutants

MESSAGES = 100_000
ROWS = [
    row for row in matrix.protocols() if "through the server" not in row
]  # whose users call one server, and are called by nobody
NEEDED = {Reason.FRAME, Reason.GREETING, Reason.KEY, Reason.BODY, Reason.SIGNATURE, Reason.SECOND}


@pytest.mark.parametrize("row", ROWS)
def test_mutated_messages(tmp_path, row):
    """All neighbours of a live peer are hostile, and strangers knock: everything is counted, the peer lives."""
    with mutants.Victim(tmp_path, row) as victim:
        found = asyncio.run(mutants.fuzz(victim, MESSAGES // len(ROWS) + 1, seed=1))
    found.check()
    assert set(found.rejected) >= NEEDED, found.rejected
    assert found.strangers >= 30


def test_who_floods_is_not_read_any_more(tmp_path):
    """Beyond what can be borne a neighbour is reported and not read for the study's patience; then it is read again."""
    with mutants.Victim(tmp_path, "masked-sum", bears=300, gather=3000.0, patience=2.0) as victim:

        async def flood():
            transport = victim.transport(victim.attackers[0], mutants.Ears())
            await transport.start()
            try:
                await mutants.send(transport, victim, encode([Hello(victim.one.study.hash, "")]))
                nonsense = encode([Pull((Key(ItemKind.VOTE, 77, 9),))] * 1000)
                await mutants.send(transport, victim, nonsense)
                told = await victim.counts(lambda told: told["heard"] >= 1001)
                reports = [event for event in victim.hear() if "nonsense" in event.get("reason", "")]
                assert [event["event"] for event in reports] == ["refused"]
                for _ in range(20):
                    await mutants.send(transport, victim, nonsense)
                first = (await victim.counts())["heard"]
                assert first <= told["heard"] + 2000, "it is read all the same"
                return await victim.counts(lambda told: told["heard"] >= 3 * 1000 + 1)  # after its time, one by one
            finally:
                await transport.close()

        assert asyncio.run(flood())["heard"] >= 3001


def test_a_gigabyte_is_not_made_room_for(tmp_path):
    """A length that is only claimed, in a frame: refused by reading it."""
    for frame in (b"\x0a\x80\x80\x80\x80\x04", b"\x0a\x07\x12\x05\x12\x80\x80\x80\x80\x04"):
        with pytest.raises(InvalidValue, match="no netdp message"):
            decode(frame)
    assert (1 << 30).to_bytes(4, "big") in mutants.gigabyte()


def test_the_forge_makes_right_messages_too(tmp_path):
    """What it starts from is valid: else it would test nothing but the first check."""
    one = matrix.settled(tmp_path, "ring-sum")
    forge = mutants.Forge(one, one.study.n - 1, 3)
    for item in forge.start():
        assert item.body == roster_body(range(one.study.n))
    kinds = {message.key.kind for _ in range(500) if hasattr(message := forge.message(), "key")}
    assert kinds >= {ItemKind.VOTE, ItemKind.CONTRIBUTION, ItemKind.TOKEN, ItemKind.TOTAL}
    assert random.Random(3).random() == random.Random(3).random()
