"""What somebody sees who reads the wire between two peers, and what the peers themselves see of each other: nothing."""

import asyncio
import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from scipy.stats import chi2

from netdp.families.masked import peer as masked
from netdp.families.masked.protocol import from_bytes, quantised
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.peers import desk as hand
from netdp.peers.identity import Card, Identity, certificate
from netdp.peers.messages import roster_digest
from netdp.peers.peer import prepare
from netdp.peers.streams import context, noise_words
from netdp.peers.study import Study
from netdp.peers.study.task import Task

sys.path.append(str(Path(__file__).parent))

import crew

_spec = importlib.util.spec_from_file_location("proxy", Path(__file__).parent / "proxy.py")
_proxy = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_proxy)

EDGES = [float(x) for x in range(0, 124, 4)]
COUNTS = Task(kind="histogram", column="x", edges=EDGES)


async def recorded_run(one, tmp_path):
    """All parties in this process; every link goes through a proxy that writes down all bytes."""
    proxies = [_proxy.RecordingProxy(one.study.address(u)) for u in range(one.study.n)]
    async with proxies[0], proxies[1], proxies[2]:
        study = one.study.complete((), [proxy.address for proxy in proxies])
        path = one.sign(study, tmp_path / "through.toml")
        peers = [
            prepare(
                one.home(u), path, one.data[f"p{u}"], listen=one.study.address(u), record=one.record / f"p{u}.frames"
            )
            for u in range(study.n)
        ]
        try:
            async with asyncio.timeout(60):
                told = await asyncio.gather(*(peer.run() for peer in peers))
        finally:
            for peer in peers:
                peer.store.close()
    return study, told, b"".join(proxy.recorded for proxy in proxies)


def test_the_wire_shows_no_value_no_noise_and_no_contribution(tmp_path):
    one = crew.Crew(tmp_path, 3, "complete:3", task=COUNTS, patience=20.0)
    one.study, told, wire = asyncio.run(recorded_run(one, tmp_path))
    assert [(t["total"], t["digest"]) for t in told] == [one.expected(1, range(3))] * 3
    assert len(wire) > 10_000
    clear = b"".join(file.read_bytes() for file in sorted(one.record.glob("*.frames")))
    protocol = one.study.protocol_of(range(3))
    for u in range(3):
        identity = Identity.load(one.home(u))
        integers = quantised(protocol, one.study.task.rows(one.data[f"p{u}"])[0])
        where = context(one.study.hash, 1, range(3))
        words = noise_words(identity.noise_secret, where, integers.astype("<i8").tobytes())
        noise = DiscreteGaussian(protocol.share).sample(integers.shape, words)
        (body,) = next(bodies for key, bodies in one.said().items() if tuple(key) == (2, 1, u, 0))
        y = body[32:]
        assert y[:16] in clear  # so what is looked for below is what was said, before encryption
        for secret in (integers, noise, integers + noise):
            for kind in ("<i8", "<i4", ">i8", ">i4"):
                text = secret.astype(kind).tobytes()
                assert text[-32:] not in wire
                assert text[-32:] not in clear
        for text in (y[:16], y[-16:], body[:32], one.study.hash, identity.noise_secret, b"p0,", b"crew"):
            assert text not in wire


# ── what neighbours see ───────────────────────────────────────────────────────────────────────────────────────────────


def fixed_identity(u):
    """Keys that are the same in every run of this test."""
    signing = Ed25519PrivateKey.from_private_bytes(bytes([u + 1] * 32))
    agreement = X25519PrivateKey.from_private_bytes(bytes([u + 101] * 32))
    tls = ec.derive_private_key(1000 + u, ec.SECP256R1())
    card = Card(
        f"p{u}",
        signing.public_key().public_bytes_raw(),
        agreement.public_key().public_bytes_raw(),
        certificate(f"p{u}", tls),
    )
    return Identity(Path("nowhere"), card, signing, agreement, bytes([u + 201] * 32), tls)


def published(attempts):
    """What party 1 of 4 publishes in so many attempts, the same number in all of them: (attempts, d) modulo q."""
    identities = [fixed_identity(u) for u in range(4)]
    draft = Study.plan("fixed", Task(kind="variance", column="x", bounds=(0, 1)), [f"p{u}" for u in range(4)],
                       graph="complete:4", epsilon=1.0, delta=1e-6, threshold=0)  # fmt: skip
    study = draft.complete([one.card for one in identities], [f"127.0.0.1:{9000 + u}" for u in range(4)], "ab" * 16)
    study.__dict__["hash"] = bytes(32)  # certificates hold random signatures, and so does the true hash
    rows = study.task.rows([{"x": "0.75"}])
    desk = hand.Desk(identities[1], study, SimpleNamespace(), rows)
    protocol = study.protocol()
    bodies = [desk.study.running.draw(desk, attempt, range(4))[0] for attempt in range(1, attempts + 1)]
    assert {body[:32] for body in bodies} == {roster_digest(range(4))}
    return np.array([from_bytes(body[32:], protocol.q, protocol.dimension) for body in bodies]), protocol.q


def surprise(numbers, cells=16):
    """Chi-square of numbers 0 … cells − 1 against the uniform distribution."""
    found = np.bincount(numbers.astype(np.int64).ravel(), minlength=cells)
    expected = numbers.size / cells
    return float(((found - expected) ** 2 / expected).sum())


def test_contributions_are_uniform_modulo_q(monkeypatch):
    """Whoever lacks a pad sees numbers without any pattern, in their first bits, their last, and from one to the next."""
    y, q = published(600)
    limit = chi2.isf(1e-7, 15)
    top, low = y >> np.uint64(q.bit_length() - 5), y & np.uint64(15)
    steps = np.diff(y, axis=0) & np.uint64(q - 1)
    across = (y[:, 1] - y[:, 0]) & np.uint64(q - 1)
    for numbers in (top, low, steps >> np.uint64(q.bit_length() - 5), across >> np.uint64(q.bit_length() - 5)):
        assert surprise(numbers) < limit

    monkeypatch.setattr(masked, "pads_of", lambda *arguments: np.zeros(arguments[-2], dtype=np.uint64))
    bare, q = published(600)
    assert (
        surprise(bare >> np.uint64(q.bit_length() - 5)) > 10 * limit
    )  # the noise alone does not hide where a number lies
