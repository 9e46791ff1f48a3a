"""Attacks of a coalition on a recording: the best it can do with what it holds, against what is claimed for it.

**The sum** (masked sums). What the coalition gets is the sum over the honest parties. It adds up what was published, takes off all
numbers that it knows, and its own noise, which it finds in its own contribution and its own keys. What is left, R, is b·k and
the noise of the honest parties, h shares of it. From its d coordinates, with k taken off by the auditor, the deviation of that
noise is bounded from above by s⁺ (χ²), and a Gaussian shift of at least Δ/s⁺ is what the sum shows of the target.

**The best linear statistic** (rings, gossip). What the coalition holds is linear in values and noises. The likelihood ratio is one
number wᵀy (`netdp.audit.linear`), computed from the protocol in real numbers and fed with the whole numbers that were recorded,
scaled by the grid. Each of d columns is a run of its own: wᵀy less its true mean has the deviation ‖wᵀC‖ and moves by Δ·wᵀA_u.

**Canaries.** Where records are protected, each record in a histogram's cell of its own is a trial: its coin is guessed from R.
`measure` takes coins out and coins in for the two worlds; `one_run` needs no independence at all.

**Membership** (training). Every iteration is a trial: in every other one the auditor takes the record's part off the sum, in which
it is not there then. All coins but the record's are *told* to the coalition, for nothing, as the proof does (docs/guarantees.md).

The claim is that of the attempt that was recorded, among those who took part in it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import numpy as np

from netdp.audit.audits import hops_from, pairs_of
from netdp.audit.bounds import Measured
from netdp.audit.findings import Check, Finding
from netdp.audit.linear import held, probed, solved
from netdp.errors import NetdpError
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.peers.ledger.losses import accounted
from netdp.peers.recordings.kinds import Pair, RecordedKind
from netdp.peers.recordings.recording import View
from netdp.peers.recordings.statistics import Squares
from netdp.peers.study.study import Study
from netdp.privacy.curve import Curve
from netdp.privacy.observers import Observers, entry
from netdp.protocols.alternatives import local_dp
from netdp.protocols.simulation import execute


def finding(
    study: Study, name: str, observers: tuple[int, ...], target: int, curve: Curve, claim: Any, measured: Measured, attack: str,
    local: float | None = None,
) -> Finding:  # fmt: skip
    """A row of the audit."""
    names = tuple(study.names[u] for u in observers)
    return Finding(
        name=name, observers=Observers(observers, names=names), target=target, target_name=study.names[target],
        hops=int(hops_from(study.graph, observers)[target]), claimed=float(curve.epsilon(measured.delta)), claim=claim,
        measured=measured, attack=attack, refuted=measured.refutes(curve), local=local,
    )  # fmt: skip


def shifted(mu: float, trials: int, delta: float, doubt: float) -> Measured:
    """A Gaussian shift that was bounded from below, as what so many right guesses would have shown."""
    from scipy.special import ndtr

    return Measured(delta, 1 - doubt, trials, float(ndtr(mu / 2)), ())


def local_loss(protocol: Any, target: int, delta: float) -> float | None:
    """ε of the target's own noise alone, where local DP is known."""
    try:
        curve = local_dp(protocol).curve
        return float((entry(curve, target) if curve.shape else curve).epsilon(delta))
    except NetdpError:
        return None


def numbers_of(body: bytes) -> IntArray:
    """The whole numbers of a body."""
    return np.frombuffer(body, dtype="<i8").astype(np.int64)


class LinearRecording(RecordedKind):
    """A kind whose messages are linear in values and noises: the best linear statistic attacks it."""

    is_attacked: ClassVar[bool] = True

    @abstractmethod
    def record(self, view: View, values: FloatArray) -> Any:
        """What the simulator would have kept of this run for these observers; None if the attempt broke off."""

    @abstractmethod
    def in_steps(self, data: FloatArray) -> IntArray:
        """(n, d) numbers as they are sent, in whole steps of the grid."""

    def pairs(self, observers: tuple[int, ...] | None, target: int | None, delta: float) -> list[Pair]:
        study = self.study
        if observers is not None:
            chosen = target if target is not None else next(u for u in range(study.n) if u not in observers)
            return [("these observers", observers, chosen)]
        found = pairs_of(study.protocol(), delta, study.privacy.colluders, seed=0)
        rows = [(pair.name, pair.observers.parties, pair.target) for pair in found if pair.name != "random pair"]
        return [row for row in rows if target in (None, row[2])] or [
            ("this target", next((v,) for v in study.neighbours(target or 0)), target or 0)
        ]

    def attacks(
        self, view: View, target: int, name: str, delta: float, doubt: float
    ) -> tuple[list[Finding], list[Check]]:
        made = self._attacked(view, target, name, delta, doubt)
        return ([] if made is None else [made]), []

    def _attacked(self, view: View, target: int, name: str, delta: float, doubt: float) -> Finding | None:
        """The best linear statistic of all that the coalition holds; None if the attempt broke off, or nothing hides the target."""
        study, protocol = self.study, cast(Any, self.study.protocol())
        data = np.stack([self.recording.rows[u][0] for u in range(study.n)])
        values = np.asarray(self.in_steps(data) * protocol.step, dtype=np.float64)
        record = self.record(view, values)
        if record is None:
            return None
        A, C = probed(execute, protocol.replace(grid=None), view.observers, seed=0)
        weights, _, best = solved(A[:, [target]], C, protocol.sensitivity)
        if not math.isfinite(best):
            return None
        seen = weights @ held(cast(Any, SimpleNamespace(record=record)))
        left = seen - weights @ (A @ values)
        expected = float(np.linalg.norm(weights @ C))
        spread = Squares.of([(left, expected**2)])
        mu = protocol.sensitivity * abs(float(weights @ A[:, target])) / (spread.at_most(doubt) * expected)
        loss = accounted(protocol, view.observers)
        return finding(
            study, name, view.observers, target, entry(loss.curve, target), loss.claim,
            shifted(mu, spread.count, delta, doubt),
            f"the likelihood ratio of everything the coalition holds, in {spread.count:,} coordinates",
            local_loss(protocol, target, delta),
        )  # fmt: skip

    @property
    def why_not(self) -> str:
        return (
            f"{self.study.name}: the attempt did not come to its end, so there is nothing to attack but what was sent"
        )
