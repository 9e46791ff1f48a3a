"""Planted bugs: each is caught by the audit with a part of its default budget, and the sound system beside it is not.

A bug is a function in the place of the simulator (or a claim in the place of the accountant's). The other planted bugs of issue 15
stand beside the attacks that catch them: one hop fewer in test_shuffles.py, a doubled sampling rate in test_membership.py,
and those of real peers in tests/peers/test_audited.py. docs/proofs/audit.md#best-attacks, #measured.
"""

import dataclasses
from unittest import mock

import numpy as np
import pytest

import netdp
from netdp import graphs
from netdp.audit import SIMULATOR, Verdict, audit_pair, look
from netdp.families.gossip.simulate import MessageTap, mix
from netdp.families.gossip.views import transcribe
from netdp.families.masked import protocol as masked_protocol
from netdp.families.masked import simulate as simulated
from netdp.families.masked.protocol import reduced
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.privacy import GaussianCurve
from netdp.protocols.simulation import Run

GOSSIP = netdp.Gossip(graphs.ring(16), rounds=6, sigma=4.0)
REFRESHED = GOSSIP.replace(refresh=0.5)
MASKED_GOSSIP = netdp.Gossip(graphs.hypercube(4), rounds=10, sigma=1.5, masks=50.0)
RING = netdp.RingSum(16, rounds=2, sigma=4.0)
SHARED_RING = RING.replace(noise="distributed")
SUM = netdp.calibrate(netdp.MaskedSum(graphs.complete(8), sigma=1.0), epsilon=1.0, delta=1e-6)


def halved(protocol, values, seed, normal, record):
    return SIMULATOR(protocol.replace(sigma=protocol.sigma / 2), values, seed, normal, record)


def halved_on_the_wire(protocol, values, seed, normal, record):
    """The published numbers carry noise of half the deviation; grid and modulus are as stated."""
    weak = protocol.replace(sigma=protocol.sigma / 2, grid=protocol.step, modulus=protocol.q)
    return SIMULATOR(weak, values, seed, normal, record)


def same_noise_every_round(protocol, values, seed, normal, record):
    """On a ring: what a user adds to its second contribution is the noise of its first."""

    def again(shape):
        if len(shape) == 2 and shape[0] == protocol.n * protocol.rounds:
            return np.tile(normal((protocol.n, shape[1])), (protocol.rounds, 1))
        return normal(shape)

    return SIMULATOR(protocol, values, seed, again, record)


def refreshed_with_the_same(protocol, values, seed, normal, record):
    """In gossip: the fresh noise before a later send is the one of the first send once more."""
    first = []

    def again(shape):
        first.append(normal(shape) if not first else first[0])
        return first[0]

    return SIMULATOR(protocol, values, seed, again, record)


def retried_with_fresh_noise(protocol, values, seed, normal, record):
    """Every first message is sent a second time, with another noise around the same value."""
    run = SIMULATOR(protocol, values, seed, normal, record)
    other = SIMULATOR(protocol.replace(rounds=1), values, seed, normal, record)
    more = np.vstack([run.record.payloads, other.record.payloads])
    return dataclasses.replace(run, record=dataclasses.replace(run.record, payloads=more))


def not_closed(protocol, values, seed, normal, record):
    return SIMULATOR(protocol.replace(closing=False), values, seed, normal, record)


def clipped_after_the_noise(protocol, values, seed, normal, record):
    data = np.asarray(values.given, dtype=np.float64)
    noise = protocol.sigma * normal(data.shape)
    start = data + noise if values.bounds is None else np.clip(data + noise, *values.bounds)
    transcript, observers = transcribe(protocol), tuple(record)
    watch = MessageTap(transcript, observers)
    estimates, refreshes = mix(start, (protocol.matrix,) * protocol.rounds, None, 0.0, normal, watch)
    nobody = np.empty((0, data.shape[1])), np.empty((0, 2), dtype=np.int64)
    return Run(estimates, transcript, seed, protocol, watch.record(data, noise, *nobody, refreshes))


def not_clipped(protocol, values, seed, normal, record):
    return clipped_after_the_noise(protocol, dataclasses.replace(values, bounds=None), seed, normal, record)


def with_pads(change):
    """A system whose pads are drawn by another function of (protocol, party, others, columns, seed)."""

    def system(protocol, values, seed, normal, record):
        with mock.patch.object(simulated, "pads_of", change):
            return SIMULATOR(protocol, values, seed, normal, record)

    return system


REAL_PADS = simulated.pads_of
same_pads_every_time = with_pads(lambda p, u, others, columns, seed: REAL_PADS(p, u, others, columns, 987_654_321))
pads_of_a_public_seed = with_pads(lambda p, u, others, columns, seed: REAL_PADS(p, u, others, columns, 3))
short_pads = with_pads(lambda p, u, others, columns, seed: reduced(REAL_PADS(p, u, others, columns, seed), 256))


def same_noise_in_every_study(protocol, values, seed, normal, record):
    """Pads are new in every study, noise is not."""
    change = with_pads(lambda p, u, others, columns, _: REAL_PADS(p, u, others, columns, seed))
    return change(protocol, values, 1234, normal, record)


def noise_on_a_coarser_grid(protocol, values, seed, normal, record):
    """Half as many steps are drawn and then doubled: as much noise, and only even numbers of steps."""

    class Doubled(DiscreteGaussian):
        def sample(self, shape, words):
            return 2 * simulated_draw(-(-self.variance // 4)).sample(shape, words)

    simulated_draw = DiscreteGaussian
    with mock.patch.object(masked_protocol, "DiscreteGaussian", Doubled):
        return SIMULATOR(protocol, values, seed, normal, record)


def a_pad_revealed(target):
    """After everybody has published, the target's pads are shown: it had been taken for gone."""

    def system(protocol, values, seed, normal, record):
        run = SIMULATOR(protocol, values, seed, normal, record)
        shown = SIMULATOR(protocol, values, seed, normal, sorted([*record, target])).record
        return dataclasses.replace(
            run, record=dataclasses.replace(run.record, pads=shown.pads, pad_edges=shown.pad_edges)
        )

    return system


BUGS = {
    "σ halved, gossip": (GOSSIP, [0], 1, halved),
    "σ halved, masked gossip": (MASKED_GOSSIP, [0], 1, halved),
    "σ halved, ring": (RING, [3], 9, halved),
    "σ halved, masked sum": (SUM, [0], 3, halved_on_the_wire),
    "noise reused for two contributions, ring": (SHARED_RING, [3], 9, same_noise_every_round),
    "noise reused for two contributions, gossip": (REFRESHED, [0], 3, refreshed_with_the_same),
    "noise reused in a second study, masked sum": (SUM, [0], 3, same_noise_in_every_study),
    "fresh noise on retry": (GOSSIP, [0], 1, retried_with_fresh_noise),
    "a pad reused in a second study": (SUM, [0], 3, same_pads_every_time),
    "pads drawn from a public seed": (SUM, [0], 3, pads_of_a_public_seed),
    "pads of eight bits": (SUM, [0], 3, short_pads),
    "a pad revealed after a send": (SUM, [0], 3, a_pad_revealed(3)),
    "noise on a coarser grid than the values": (SUM, [0], 3, noise_on_a_coarser_grid),
    "the closing noise left out": (RING, [14], 15, not_closed),
    "clipping after noise": (GOSSIP, [0], 1, clipped_after_the_noise),
    "clipping forgotten": (GOSSIP, [0], 1, not_clipped),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug):
    protocol, observers, target, system = BUGS[bug]
    found = audit_pair(protocol, look(protocol, observers, target), trials=16_384, system=system)
    assert found.verdict is Verdict.REFUTED, (found.claimed, found.measured)


@pytest.mark.parametrize("bug", ["σ halved, gossip", "σ halved, ring", "σ halved, masked sum", "clipping after noise"])
def test_without_the_bug_nothing_is_refuted(bug):
    protocol, observers, target, _ = BUGS[bug]
    found = audit_pair(protocol, look(protocol, observers, target), trials=8_192)
    assert not found.refuted


def test_a_claim_that_forgets_rounding_is_caught():
    """Values on a coarse grid: vectors Δ apart become Δ/g + √d steps apart. A claim with Δ/g alone is too small."""
    protocol = netdp.MaskedSum(graphs.complete(6), sigma=1.0, grid=0.25, dimension=15)
    noise = np.sqrt((protocol.n - 1) * protocol.share)
    forgetful = GaussianCurve(protocol.sensitivity / protocol.step / noise)
    pair = look(protocol, [0], 3)
    assert audit_pair(protocol, pair, trials=6_000, curve=forgetful).refuted
    assert not audit_pair(protocol, pair, trials=2_000).refuted


def test_what_was_promised_for_one_attempt_does_not_hold_for_two():
    protocol = SUM.replace(attempts=2, grid=SUM.step, modulus=SUM.q)
    one = netdp.account(SUM, [0]).curve
    pair = look(protocol, [0], 3)
    assert audit_pair(protocol, pair, trials=40_000, curve=netdp.privacy.entry(one, 3)).refuted
    assert not audit_pair(protocol, pair, trials=4_096).refuted
