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

import base64
import math
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from netdp.accounting import local_dp
from netdp.audit.bounds import Measured, measure, one_run
from netdp.audit.findings import Check, Finding
from netdp.audit.front import resolution
from netdp.audit.linear import held, probed, solved
from netdp.audit.membership import as_sampled, ratios
from netdp.audit.pairs import hops_from
from netdp.errors import NetdpError
from netdp.numerics.arrays import BoolArray, FloatArray, IntArray
from netdp.privacy import Curve, Observers, entry
from netdp.protocols import Gossip, MaskedDescent, RingSum
from netdp.protocols.gossip import gossip_step, gossip_steps, gossip_weights
from netdp.protocols.masked_steps import opened
from netdp.protocols.ring import ring_steps
from netdp.simulate.run import Record, execute
from netdp.simulate.tokens import TokenRecord
from netdp.views import transcribe

from ..ledger.descent_losses import descent_curve, descent_loss
from ..ledger.losses import accounted
from ..messages import Kind
from ..study import Study
from .masked_sums import Sum, in_steps, sums_in
from .noise_opened import replayed, trainees
from .odds import Squares
from .recorded import Recording, View

_FEWEST = 32
"""Iterations of a training: fewer are no trials."""
_CERTAIN = 10
"""One in so many canaries is guessed alone, the most certain ones, beside all of them."""


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


def _local(protocol: Any, target: int, delta: float) -> float | None:
    try:
        curve = local_dp(protocol).curve
        return float((entry(curve, target) if curve.shape else curve).epsilon(delta))
    except NetdpError:
        return None


# ── sums under pads ───────────────────────────────────────────────────────────────────────────────────────────────────


def opened_sum(view: View) -> tuple[Sum, IntArray] | None:
    """The last sum that the coalition can open, in grid steps: from what was published, or from the answer in its ledger."""
    for s in reversed(sums_in(view.study, view.items)):
        if s.is_complete:
            return s, s.total()
        for answer in view.answers.values():  # averaged: not everybody's y came here, but the sum did
            if answer.get("ok") and answer["attempt"] == s.attempt:
                total = np.frombuffer(base64.b64decode(answer["resume"]["total"]), dtype="<f8")
                return s, np.rint(total / s.one.step).astype(np.int64)
    return None


def own_noise(s: Sum, view: View, rows: Mapping[int, FloatArray]) -> dict[int, IntArray]:
    """The noise of every observer, from its own contribution, its own keys and its own numbers."""
    mine = (u for u in view.observers if u in s.published)
    return {u: opened(s.uncovered(u, view.identities), s.one.q) - in_steps(s.one, rows[u]) for u in mine}


def attack_sum(
    recording: Recording, view: View, target: int, delta: float, doubt: float, coins: BoolArray | None = None
) -> tuple[list[Finding], list[Check]]:
    """What the sum shows; `coins`: which canaries the target holds, if that was left to fair coins."""
    found = opened_sum(view)
    if found is None or target not in found[0].roster:
        return [], []
    s, total = found
    rows, study = recording.rows, recording.study
    inside = tuple(s.roster.index(u) for u in view.observers if u in s.roster)
    if not inside:
        return [], []
    loss = accounted(study.protocol_of(s.roster), inside)
    curve, place = entry(loss.curve, s.roster.index(target)), s.roster.index(target)
    noises = own_noise(s, view, rows)
    honest = len(s.roster) - len(noises)
    left = total - sum((in_steps(s.one, rows[u]) for u in s.roster if u != target), np.zeros_like(total))
    left = left - sum(noises.values(), np.zeros_like(total))
    k = in_steps(s.one, rows[target])
    spread = Squares.of([(left - k, honest * s.one.share)])
    looks = 1 if coins is None else 3
    deviation = spread.at_most(doubt / looks) * math.sqrt(honest * s.one.share)
    mu = s.one.sensitivity / s.one.step / deviation
    local = _local(study.protocol_of(s.roster), place, delta)
    made = [
        finding(
            study, "the sum", view.observers, target, curve, loss.claim, shifted(mu, spread.count, delta, doubt / looks),
            f"the noise that is left of {spread.count:,} coordinates of the sum, less all that the coalition knows", local,
        )
    ]  # fmt: skip
    if coins is None:
        return made, []
    scores = left.astype(np.float64) * s.one.step
    return made, _canaries(study, view, target, curve, loss.claim, scores, coins, delta, doubt / looks, made)


def _canaries(
    study: Study, view: View, target: int, curve: Curve, claim: Any, scores: FloatArray, coins: BoolArray, delta: float,
    doubt: float, made: list[Finding],
) -> list[Check]:  # fmt: skip
    """Guess every coin from its own coordinate."""
    out, within = scores[~coins], scores[coins]
    each = min(len(out), len(within))
    if each >= 16:
        told = measure(out[:each], within[:each], delta, 1 - doubt)
        words = f"one record in each of {len(coins):,} cells, there or not by a coin, guessed from its own coordinate"
        row = finding(study, "canaries", view.observers, target, curve, claim, told, words)
        made.append(replace(row, resolution=resolution(each, delta, doubt)))
    sure = np.argsort(-np.abs(scores - 0.5), kind="stable")[: max(1, len(coins) // _CERTAIN)]
    lower, said = 0.0, []
    # a claim is a curve, and may be held against at any δ; m·δ is in doubt here, so δ must be small beside the doubt
    least = min(delta, doubt / (40 * len(coins)))
    for which in (np.arange(len(coins)), sure):
        right = int(((scores[which] > 0.5) == coins[which]).sum())
        lower = max(lower, one_run(right, len(which), len(coins), least, 1 - doubt / 2))
        said.append(f"{right:,} of {len(which):,}")
    claimed = float(curve.epsilon(least))
    words = (
        f"{' and, of the most certain, '.join(said)} coins guessed right in one run: ε ≥ {lower:.3f} at δ = {least:.1g}, claimed "
        f"{claimed:.3f}"
    )
    return [Check("coins of one run", lower <= claimed, words)]


# ── rings and gossip ──────────────────────────────────────────────────────────────────────────────────────────────────


def attack_linear(
    recording: Recording, view: View, target: int, name: str, delta: float, doubt: float
) -> Finding | None:
    """The best linear statistic of all that the coalition holds; None if the attempt broke off, or nothing hides the target."""
    study, protocol = recording.study, cast("RingSum | Gossip", recording.study.protocol())
    values = _values(protocol, recording)
    record = (
        _ring_record(view, protocol, values)
        if isinstance(protocol, RingSum)
        else _gossip_record(view, protocol, values)
    )
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
        study, name, view.observers, target, entry(loss.curve, target), loss.claim, shifted(mu, spread.count, delta, doubt),
        f"the likelihood ratio of everything the coalition holds, in {spread.count:,} coordinates",
        _local(protocol, target, delta),
    )  # fmt: skip


def _values(protocol: RingSum | Gossip, recording: Recording) -> FloatArray:
    """(n, d) everybody's numbers, rounded as they are, in units of the values."""
    data = np.stack([recording.rows[u][0] for u in range(recording.study.n)])
    steps = ring_steps(protocol, data) if isinstance(protocol, RingSum) else gossip_steps(protocol, data)
    return np.asarray(steps * protocol.step, dtype=np.float64)


def _ring_record(view: View, protocol: RingSum, values: FloatArray) -> TokenRecord | None:
    """What the simulator would have kept of this run for these observers."""
    attempt = max(view.rosters, default=1)
    tokens = {index: _numbers(body) for (_, index), body in view.bodies(Kind.TOKEN, attempt).items()}
    released = view.bodies(Kind.TOTAL, attempt).get((protocol.n - 1, 0))
    last, d = protocol.n * protocol.rounds - 1, protocol.dimension
    if released is None:
        return None
    tokens |= {-1: np.zeros(d, dtype=np.int64), last: _numbers(released)}
    hops = [hop for hop in range(last + 1) if hop % protocol.n in view.observers]
    if any(hop not in tokens or hop - 1 not in tokens for hop in hops):
        return None
    g = protocol.step
    arrivals = np.array([tokens[hop - 1] for hop in hops]) * g
    added = np.array([tokens[hop] - tokens[hop - 1] for hop in hops]) * g
    given = np.array([values[hop % protocol.n] for hop in hops])
    unknown = np.full((1, d), np.nan)
    return TokenRecord(
        observers=view.observers, visits=np.array([(0, hop, hop % protocol.n) for hop in hops], dtype=np.int64),
        arrivals=arrivals, contributions=given, noises=added - given,
        starts=np.zeros((1, d)) if 0 in view.observers else unknown,
        # of one who closes the ring both noises are known by their sum, and both count alike in the release
        closings=np.zeros((1, d)) if protocol.n - 1 in view.observers else unknown,
        release=np.asarray(tokens[last][None] * g, dtype=np.float64),
    )  # fmt: skip


def _gossip_record(view: View, protocol: Gossip, values: FloatArray) -> Record | None:
    """What the simulator would have kept of this run for these observers."""
    attempt = max(view.rosters, default=1)
    states = {place: _numbers(body) for place, body in view.bodies(Kind.STATE, attempt).items()}
    own, g = list(view.observers), protocol.step
    messages = transcribe(protocol).received_by(own)
    needed = {(int(u), int(t)) for t, u, _ in messages} | {(u, t) for u in own for t in range(protocol.rounds)}
    if needed - set(states):
        return None
    refreshes = []
    for t in range(1, protocol.rounds) if protocol.fresh_variance else ():
        row = []
        for u in own:
            weights = gossip_weights(protocol, u)
            mixed = gossip_step(weights, states[u, t - 1], {v: states[v, t - 1] for v in weights})
            row.append((states[u, t] - mixed) * g)
        refreshes.append(row)
    d = values.shape[1]
    return Record(
        observers=view.observers, messages=messages, payloads=np.array([states[int(u), int(t)] for t, u, _ in messages]) * g,
        values=values[own], noises=np.array([states[u, 0] for u in own]) * g - values[own], masks=np.empty((0, d)),
        mask_edges=np.empty((0, 2), dtype=np.int64), refreshes=np.array(refreshes).reshape(len(refreshes), len(own), d),
    )  # fmt: skip


def _numbers(body: bytes) -> IntArray:
    return np.frombuffer(body, dtype="<i8").astype(np.int64)


# ── training ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def attack_training(recording: Recording, view: View, target: int, delta: float, doubt: float) -> Finding | None:
    """Whether the target's most telling record (party: all its data) is there, asked in every iteration; None if they are few."""
    study, protocol = recording.study, cast(MaskedDescent, recording.study.protocol())
    sums = sums_in(study, view.items)
    if len(sums) < _FEWEST:
        return None
    people = trainees(recording, sums[0].attempt, sums[0].roster)
    record = protocol.unit == "record"
    chosen = _most_telling(people[target]) if record else -1
    if record and chosen < 0:
        return None
    honest = study.n - len(view.observers)
    scores: dict[bool, list[float]] = {True: [], False: []}
    for s, theta in replayed(recording, sums):
        left, t = s.total(), s.index
        for u, one in people.items():
            added = one.added(t, theta)
            if u != target:
                left = left - added
            if u in view.identities:
                left = left - (opened(s.uncovered(u, view.identities), s.one.q) - added)
        one = people[target]
        if record:
            coins, alone = one.chosen(t), np.zeros(len(one.rows[1]), dtype=bool)
            alone[chosen] = True
            left, k = left - one.steps(theta, coins & ~alone), one.steps(theta, alone)
            there, other = k * int(coins[chosen]), None
        else:
            there, k = one.added(t, theta), one.whole(theta)
            other = -k
        within = t % 2 == 1
        if not within:
            left = left - there if other is None else left - 2 * there  # as if the data had been the others
        scores[within].append(float(ratios(left, k, honest * s.one.share, protocol.sampling, other)))
    each = min(map(len, scores.values()))
    if each < _FEWEST // 2:
        return None
    told = measure(scores[False][:each], scores[True][:each], delta, 1 - doubt)
    loss = descent_loss(protocol, None) | {"releases": 1}
    what = "its most telling record" if record else "its data"
    found = finding(
        study, "one iteration", view.observers, target, descent_curve(loss, honest), study.promise(len(view.observers)).claim,
        told, f"membership inference in each of {2 * each:,} iterations: whether {what} took part in it",
    )  # fmt: skip
    reading = as_sampled(told, protocol.sampling, 1, replaced=not record)
    return replace(found, reading=reading, resolution=resolution(each, delta, doubt))


def _most_telling(one: Any) -> int:
    """Of the target's rows the one with the longest gradient at the public start; −1 if it has none."""
    start, count = one.model.start(), len(one.rows[1])
    lengths = [float(np.linalg.norm(one.steps(start, np.arange(count) == row))) for row in range(count)]
    return int(np.argmax(lengths)) if lengths else -1
