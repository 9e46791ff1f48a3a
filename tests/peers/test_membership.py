"""Is a record in the data? One party asks the sums that it saw and knows all the rest: no more comes out than is certified.

The attack is that of netdp.families.masked.attack; benchmarks/membership.py runs it on processes, here whole peers live in
memory, on a virtual clock, and every frame that they send is kept. The secrets are new in every run, so all bounds hold but
for one run in a million. docs/proofs/masked.md#sampled-descent, docs/proofs/peers.md#training-on-peers.
"""

import asyncio
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from netdp import graphs
from netdp.families.masked.attack import in_a_row
from netdp.families.masked.descent import MaskedDescent
from netdp.peers.identity import Identity
from netdp.peers.ledger.store import Store
from netdp.peers.peer import Peer
from netdp.peers.study import Study
from netdp.peers.study.training import Training
from netdp.peers.transport.memory import MemoryNetwork, VirtualClock
from netdp.protocols import calibrate

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "benchmarks")]

import shuffled

_spec = importlib.util.spec_from_file_location("membership", Path(__file__).parents[2] / "benchmarks" / "membership.py")
membership = importlib.util.module_from_spec(_spec)
sys.modules["membership"] = membership
_spec.loader.exec_module(membership)

N, TIMES, LENGTH, SURE, EPSILON = 3, 2, 300, 1 - 1e-6, 24.0
TASK = Training(
    features=[{"name": "x", "range": [-1, 1]}],
    label="y",
    classes=["no", "yes"],
    max_records=2,
    min_records=1,
    records=6,
)


def frames_of(folder, study, people, tables):
    """Everything that was sent in one run of all peers: from whom, to whom, the frame."""
    clock, sent, told = VirtualClock(longest=1e9), [], {}

    async def life(network, u):
        def transport(receiver):
            made = network.transport(u, receiver)
            inner = made.send

            async def send(to, frame):
                sent.append((u, to, frame))
                await inner(to, frame)

            made.send = send
            return made

        with Store.open(folder / f"{u}.db", sign=people[u].sign) as store:
            told[u] = await Peer(people[u], study, store, tables[u], transport, clock=clock).run()

    async def all_lives():
        network = MemoryNetwork(study.n, clock)
        await asyncio.gather(*(life(network, u) for u in range(study.n)))

    clock.run(all_lives())
    assert len({one["digest"] for one in told.values()}) == 1
    assert all(one["ok"] for one in told.values())
    return sent


@pytest.fixture(scope="module")
def protocol():
    """So little noise that two iterations are (24, 1e-5)-private: a hundred trials show much, for many iterations."""
    draft = MaskedDescent(
        graphs.complete(N), TIMES, sigma=1.0, step=0.05, clip=0.05, dimension=2, unit="record", sampling=0.5, max_records=2,
        records=6,
    )  # fmt: skip
    return calibrate(draft, EPSILON, membership.DELTA, colluders=1).replace(iterations=LENGTH)


@pytest.fixture(scope="module")
def scores(protocol):
    """The attacker's trials, with the record and without it."""
    case, found = membership.crafted(), []
    for there in (True, False):
        with shuffled.folder() as folder:
            found.append(one_run(folder, protocol, case, there))
    return found


def one_run(folder, p, case, there):
    people = [Identity.create(folder / f"p{u}", f"p{u}") for u in range(N)]
    draft = Study(
        name="membership", task=TASK.model_dump(mode="json", by_alias=True), party=[{"name": f"p{u}"} for u in range(N)],
        network={"graph": f"complete:{N}"}, privacy={"epsilon": 1e6, "delta": membership.DELTA, "colluders": 1},
        timing={"gather": 60.0, "patience": 60.0},
        protocol={
            "kind": "masked-descent", "iterations": LENGTH, "sampling": p.sampling, "clip": p.clip, "step": p.step,
            "average": "last", "sigma": p.sigma, "grid": p.sum.step, "modulus": p.sum.q,
        },
    )  # fmt: skip
    study = draft.complete([one.card for one in people], [f"127.0.0.1:{7001 + u}" for u in range(N)], nonce="1" * 32)
    sums = membership.sums_seen(p, frames_of(folder, study, people, case.tables(there)), attacker=N - 1)
    secrets = [one.noise_secret for one in people]
    ratios = membership.ratios(case, there, p, study.task.model(), study.hash, secrets, sums)
    return in_a_row(ratios, TIMES)


def test_the_sums_tell_no_more_than_is_certified(protocol, scores):
    told = membership.shown(*scores, protocol, TIMES, confidence=SURE)
    assert told.certified == pytest.approx(EPSILON, rel=1e-3)
    assert told.by_counts <= told.certified
    assert told.as_gaussian <= told.certified


def test_the_attack_sees_what_there_is(protocol, scores):
    """It is no idle one: it proves a part of the loss, and refutes a promise that hopes for six times the noise."""
    told = membership.shown(*scores, protocol, TIMES, confidence=SURE)
    assert told.as_gaussian > 0.1 * told.certified
    hopeful = protocol.replace(sigma=6 * protocol.sigma, grid=protocol.sum.step)
    assert membership.shown(*scores, hopeful, TIMES, confidence=SURE).ratio > 1


def test_who_is_not_there_is_not_found(protocol, scores):
    """The same attack on two halves of the trials without the record proves nothing."""
    _, outside = scores
    told = membership.shown(outside[::2], outside[1::2], protocol, TIMES, confidence=SURE)
    assert told.ratio == 0.0
    assert np.isfinite(outside).all()
