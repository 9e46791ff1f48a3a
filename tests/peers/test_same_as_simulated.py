"""The same noise gives the same answer, and the same transcript, on peers as in a simulation.

The peers are whole: keys, databases, messages as bytes; only links and time are those of a test.
"""

import asyncio

import numpy as np
import pytest

from netdp.families.gossip import simulate as simulated_gossip
from netdp.families.gossip.protocol import gossip_steps
from netdp.families.gossip.varying import VaryingGossip
from netdp.families.masked.protocol import opened, quantised
from netdp.families.masked.simulate import publish, spread
from netdp.families.token import simulate as simulated_tokens
from netdp.families.token.ring import ring_steps
from netdp.peers.identity import Identity
from netdp.peers.ledger.store import Store
from netdp.peers.outcome import transcript_of
from netdp.peers.peer import Peer
from netdp.peers.streams import context, noise_words
from netdp.peers.study import Study
from netdp.peers.study.task import Task
from netdp.peers.transport.memory import MemoryNetwork, VirtualClock
from netdp.protocols import simulate

NAMES = tuple(f"p{u}" for u in range(6))
EVERYBODY = tuple(range(6))


@pytest.fixture(scope="module")
def identities(tmp_path_factory):
    home = tmp_path_factory.mktemp("homes")
    return [Identity.create(home / name, name) for name in NAMES]


MEAN = Task(kind="mean", column="x", bounds=(0, 10))
METER = Task(kind="mean", column="x", bounds=(0, 10), period="month", periods=("jan", "feb", "mar"))


def run_peers(identities, folder, task=MEAN, **options):
    """The study, every party's rows, its outcome, and what it wrote down."""
    if options.get("kind", "masked-sum") == "masked-sum":
        options.setdefault("threshold", 0)  # whose noise comes from keys that are kept
    draft = Study.plan(
        "six",
        task,
        NAMES,
        epsilon=1.0,
        delta=1e-6,
        **{"graph": "ring:6", **options},
    )
    addresses = [f"127.0.0.1:{7001 + u}" for u in range(6)]
    study = draft.complete([one.card for one in identities], addresses, nonce="1" * 32)
    months = task.periods or (None,)
    rows = [study.task.rows([{"x": str((u + k) % 11), "month": m} for k, m in enumerate(months)]) for u in range(6)]
    stores = [Store.open(folder / f"{name}.db", sign=one.sign) for name, one in zip(NAMES, identities, strict=True)]
    clock = VirtualClock()

    async def everybody():
        network = MemoryNetwork(6, clock, edges=study.graph.edges().tolist(), delay=0.01)
        peers = [
            Peer(one, study, store, row, lambda receiver, u=u: network.transport(u, receiver), clock=clock)
            for u, (one, store, row) in enumerate(zip(identities, stores, rows, strict=True))
        ]
        return await asyncio.gather(*(peer.run() for peer in peers))

    told = clock.run(everybody())
    drawn = [np.frombuffer(store.contribution(study.hash, 1).secret, dtype="<i8") for store in stores]
    for store, one in zip(stores, identities, strict=True):
        assert store.verify(one.card).rows == 1
        store.close()
    assert all(one["ok"] for one in told)
    return study, np.array(rows)[:, 0] if task.periods is None else np.array(rows), told, drawn


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("way", ["flood", "average"])
def test_masked_sums_agree_to_the_last_bit(identities, tmp_path, way, law):
    study, values, told, _ = run_peers(identities, tmp_path, spread=way, law=law)
    p = study.protocol_of(EVERYBODY)
    integers = quantised(p, values)
    noise = np.array(
        [
            p.share_noise.sample(
                (1,), noise_words(one.noise_secret, context(study.hash, 1, EVERYBODY), row.astype("<i8").tobytes())
            )
            for one, row in zip(identities, integers, strict=True)
        ]
    )
    published, *_ = publish(p, integers, noise, seed=5)
    total = opened(spread(p, published), p.q)[0] * p.step
    assert {tuple(one["total"]) for one in told} == {tuple(total.tolist())}
    assert len({one["digest"] for one in told}) == 1
    if way == "average":
        transcript = transcript_of(study, {u: one["sent"] for u, one in enumerate(told)}, 1)
        assert transcript == simulate(p, values, seed=0).transcript


@pytest.mark.parametrize(
    ("task", "options"),
    [(MEAN, {}), (MEAN, {"rounds": 3}), (METER, {}), (MEAN, {"law": "laplace", "rounds": 2})],
    ids=["one round", "three rounds", "periods", "Laplace"],
)
def test_a_ring_agrees(identities, tmp_path, monkeypatch, task, options):
    study, values, told, drawn = run_peers(identities, tmp_path, task, kind="ring-sum", **options)
    p = study.protocol()
    assert p.rounds == options.get("rounds", task.values_each)
    each = values if task is METER else np.repeat(values[:, None], p.rounds, axis=1)
    # user by user and round by round, as the simulation draws them, closing noise inside
    noise = iter((np.array(drawn) - ring_steps(p, each)[:, :, 0]).ravel())

    def replay(*_):
        return lambda variance, size: np.full(size, next(noise)) if variance else np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(simulated_tokens, "pooled", replay)
    run = simulate(p.replace(closing=False), values.swapaxes(0, 1) if task is METER else values, seed=0)
    assert {one["total"][0] for one in told} == {6 * run.estimates[0, 0]}
    assert told[0]["answer"]["value"] == pytest.approx(5 + 5 * run.estimates[0, 0], rel=1e-12)
    assert len({one["digest"] for one in told}) == 1
    assert transcript_of(study, {u: one["sent"] for u, one in enumerate(told)}, 1) == run.transcript


CHANGING = {"graph": "complete:6", "edge_probability": 0.4}


@pytest.mark.parametrize("options", [{}, {"accelerated": True}, CHANGING], ids=["plain", "accelerated", "changing"])
def test_gossip_agrees(identities, tmp_path, monkeypatch, options):
    study, values, told, drawn = run_peers(identities, tmp_path, kind="gossip", **options)
    p = study.protocol()
    assert ((p.chebyshev is not None), isinstance(p, VaryingGossip)) == ("accelerated" in options, options is CHANGING)
    assert options is not CHANGING or 1 < len({graph.m for graph in p.graphs}) <= p.rounds
    numbers = np.array(drawn).reshape(6, p.rounds)
    numbers[:, 0] -= gossip_steps(p, values)[:, 0]
    rounds = iter(numbers.T)
    monkeypatch.setattr(simulated_gossip, "discrete", lambda seed: lambda variance, size: next(rounds))
    run = simulate(p, values, seed=0)
    for u in range(6):
        assert told[u]["total"][0] == 6 * run.estimates[u, 0]
    assert transcript_of(study, {u: one["sent"] for u, one in enumerate(told)}, 1) == run.transcript
