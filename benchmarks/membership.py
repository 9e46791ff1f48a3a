"""Membership inference on the sums of real peers: is a record in the data, asked by one who knows everything else.

    python benchmarks/membership.py [--count 700]

**The attack** is that of `netdp.families.masked.attack`. One of the parties looks. It has its own frames and those that
were sent to it, as the peers recorded them; it adds up the published numbers, as everybody does, and is *given* all rows
but one record r of another party, all coins but those of r, and its own noise. The score of an iteration is the likelihood
ratio of what is left of its sum. The gradient of r is as long as one may be for the *crafted* record; the *ordinary* one is
a row of a table.

**Many trials in few runs.** A promise about m iterations holds from any model that they start from. So every m iterations in
a row of a long run are one trial, and two runs, with and without r, give thousands. The certified ε is that of m iterations.

**What is bounded** (`netdp.audit.bounds`). False and true positives at thresholds that were chosen on other trials, by Clopper and
Pearson, 95 % for all bounds together; "by counts" is what they prove whatever the noise looks like. A few thousand trials cannot
show a large ε at δ = 1e-5 that way. So there is a second reading, the usual one: the most noise of a sampled Gaussian with which
what was counted would still be possible, and its ε ("as Gaussian"). Both must stay below what is certified. *The attack can
fail*: the last rows hold the same sums against a promise with more noise than there was, 1.5 and 2 times too hopeful, and must
refute it.
"""

from __future__ import annotations

import argparse
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from measure import QUICK, size
from netdp.audit.bounds import Measured, measure
from netdp.families.masked.attack import as_sampled, in_a_row, ratios_of_sums
from netdp.families.masked.peer import coins, rows_digest
from netdp.families.masked.protocol import from_bytes, opened, reduced
from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
from netdp.mechanisms.noisy_sums import sampled_releases_curve
from netdp.models import Model, whole_sum
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.peers.messages import Item, ItemKind, decode
from netdp.peers.streams import context, noise_words
from netdp.protocols import MaskedDescent

DELTA = 1e-5
CONFIDENCE = 0.95
COUNT = size(3000, quick=20)
_COINS, _DIGEST = 1, 32  # as in netdp.families.masked.peer and netdp.families.masked.peer_descent

Frames = Iterable[tuple[int, int, bytes]]
"""From whom, to whom, what."""


# ── the view ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def recorded(folder: Path, names: Sequence[str]) -> Iterator[tuple[int, int, bytes]]:
    """The frames that peers wrote down as they sent them: 4 bytes receiver, 4 bytes length, the frame."""
    for sender, name in enumerate(names):
        content, at = (folder / f"{name}.frames").read_bytes(), 0
        while at + 8 <= len(content):
            to, size = struct.unpack_from("<II", content, at)
            yield sender, to, content[at + 8 : at + 8 + size]
            at += 8 + size


def sums_seen(p: MaskedDescent, frames: Frames, attacker: int) -> list[IntArray]:
    """The opened sums S_1 … S_T from what one party sent and received."""
    bodies: dict[tuple[int, int], bytes] = {}
    for sender, to, frame in frames:
        if attacker in (sender, to):
            for message in decode(frame):
                if isinstance(message, Item) and message.key.kind == ItemKind.STEP:
                    bodies[message.key.index, message.key.author] = message.body
    found = []
    for t in range(1, p.iterations + 1):
        total = np.zeros(p.dimension, dtype=np.uint64)
        for u in range(p.n):
            total += from_bytes(bodies[t, u][_DIGEST:], p.sum.q, p.dimension)
        found.append(opened(reduced(total, p.sum.q), p.sum.q))
    return found


# ── the attack ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Case:
    """Who has what: all parties' rows as their study numbers them, without the record; the record; who holds it, who looks."""

    rows: tuple[FloatArray, ...]
    record: FloatArray
    holder: int = 0
    attacker: int = -1

    def tables(self, there: bool) -> list[FloatArray]:
        """Everybody's rows, the record last among its holder's if it is there."""
        with_it = np.vstack([self.rows[self.holder], self.record])
        return [with_it if there and u == self.holder else own for u, own in enumerate(self.rows)]


def ratios(
    case: Case,
    there: bool,
    p: MaskedDescent,
    model: Model,
    study: bytes,
    secrets: Sequence[bytes],
    sums: Sequence[IntArray],
) -> FloatArray:
    """The logarithm of the likelihood ratio of every iteration (T,)."""
    roster, parts = tuple(range(p.n)), []
    looks = case.attacker % p.n
    for u, own in enumerate(case.tables(there)):
        X, y = model.prepared(own[:, :-1]), np.ascontiguousarray(own[:, -1])
        parts.append((X, y, secrets[u], rows_digest(secrets[u], own), len(case.rows[u])))
    x, label = model.prepared(case.record[None, :-1]), case.record[-1:]

    def whole(theta: FloatArray, X: FloatArray, y: FloatArray) -> IntArray:
        return whole_sum(model, theta, X, y, p.clip, p.sum.step, p.distance)

    def known(t: int, theta: FloatArray) -> IntArray:
        total = np.zeros(p.dimension, dtype=np.int64)
        for u, (X, y, secret, digest, many) in enumerate(parts):
            words = noise_words(secret, context(study, 1, roster, t, _COINS), digest)
            drawn = coins(words, len(y), p.threshold)[:many]
            own = whole(theta, X[:many][drawn], y[:many][drawn])
            total += own
            if u == looks:
                words = noise_words(secret, context(study, 1, roster, t), own.astype("<i8").tobytes())
                total += DiscreteGaussian(p.sum.share).sample(own.shape, words)
        return total

    return ratios_of_sums(p, model.start(), sums, known, lambda t, theta: whole(theta, x, label), honest=p.n - 1)


# ── what it shows ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Shown:
    """Bounds from below on what the sums gave away, beside what is certified."""

    measured: Measured
    as_gaussian: float
    certified: float

    @property
    def by_counts(self) -> float:
        """ε is at least this, whatever the noise is like."""
        return self.measured.by_counts

    @property
    def ratio(self) -> float:
        """The larger bound over the certified ε: above 1 the promise is refuted."""
        return max(self.by_counts, self.as_gaussian) / self.certified


def shown(
    inside: FloatArray,
    outside: FloatArray,
    p: MaskedDescent,
    times: int,
    delta: float = DELTA,
    confidence: float = CONFIDENCE,
) -> Shown:
    """What trials with the record and without it prove, beside what is certified for so many iterations of `p`."""
    curve = sampled_releases_curve(p.sum.share, p.n - 1, p.distance, p.dimension, p.sampling, times, replaced=False)
    told = measure(outside, inside, delta, confidence)
    return Shown(told, as_sampled(told, p.sampling, times), float(curve.epsilon(delta)))


# ── real peers ───────────────────────────────────────────────────────────────────────────────────────────────────────

PARTIES = 3
EPSILON = 4.0
"""Certified for one trial. Less could not be told from nothing by a few thousand trials."""


def crafted() -> Case:
    """One row each, and a record whose gradient is longer than the clip at every model on the way."""
    row = np.array([0.5, 0.0])
    return Case((row[None], row[None], row[None]), np.array([1.0, 1.0]))


def ordinary(seed: int, each: int = 60) -> Case:
    """Rows of spambase, and one more of them."""
    from together_runs import rows_of

    X, y, *_ = rows_of("spambase", seed)
    raw = np.column_stack([np.clip(X[:, :-1] / X[:, -1:], -1, 1), y])
    dealt = tuple(raw[u * each : (u + 1) * each] for u in range(PARTIES))
    return Case(dealt, raw[PARTIES * each])


def protocol_of(case: Case, sampling: float, times: int, iterations: int) -> MaskedDescent:
    """So little noise that `times` iterations are (4, 1e-5)-private; for as many iterations as shall be run."""
    from netdp import graphs
    from netdp.protocols import calibrate

    most = max(len(rows) for rows in case.rows) + 1
    draft = MaskedDescent(
        graphs.complete(PARTIES), times, sigma=1.0, step=0.05, clip=0.05, dimension=len(case.record), unit="record",
        sampling=sampling, max_records=most, records=PARTIES * most,
    )  # fmt: skip
    return calibrate(draft, EPSILON, DELTA, colluders=1).replace(iterations=iterations)


def by_peers(case: Case, p: MaskedDescent) -> tuple[FloatArray, FloatArray]:
    """The ratios of all iterations of two runs of real peers: with the record, and without."""
    from netdp.peers.identity import Identity
    from netdp.peers.study.training import Training
    from together_peers import Trial, folder, study_of

    features = [{"name": f"x{i}", "range": (-1, 1)} for i in range(len(case.record) - 1)]
    task = Training(
        model="logistic", features=features, label="y", classes=["no", "yes"], unit="record", max_records=p.max_records,
        min_records=1, records=p.records,
    )  # fmt: skip
    found = []
    for there in (True, False):
        with folder() as place:
            frames = place / "frames"
            frames.mkdir()
            # as long a run as this promises little, and the study has to say so
            trial = Trial(place, study_of(task, p, 1e6, DELTA, chunk=1), case.tables(there))
            trial.run(record=frames)
            names = trial.study.names
            sums = sums_seen(p, recorded(frames, names), case.attacker % p.n)
            secrets = [Identity.load(place / name).noise_secret for name in names]
            found.append(ratios(case, there, p, task.model(), trial.study.hash, secrets, sums))
    return found[0], found[1]


def report(name: str, told: Shown) -> str:
    """One line of the table."""
    return (
        f"{name:44}{told.measured.trials:>7,}{told.measured.accuracy:9.3f}{told.by_counts:11.3f}{told.as_gaussian:13.3f}"
        f"{told.certified:11.3f}{told.ratio:9.2f}"
    )


HEAD = f"{'':44}{'trials':>7}{'right ≥':>9}{'by counts':>11}{'as Gaussian':>13}{'certified':>11}{'ratio':>9}"


def main(count: int = COUNT) -> None:
    """The table."""
    print(
        f"Membership inference on the sums of {PARTIES} real peers, one of whom looks; ε at δ = {DELTA:g}, bounds from below with "
        f"{CONFIDENCE:.0%} confidence; ratio: the larger of the two over the certified ε\n{HEAD}"
    )
    cases = [("crafted record, always there, m = 1", crafted(), 1.0, 1)]
    if not QUICK:
        cases.append(("crafted record, drawn with 1/2, m = 2", crafted(), 0.5, 2))
        cases.append(("ordinary record (spambase), 1/2, m = 2", ordinary(0), 0.5, 2))
    for name, case, sampling, times in cases:
        p = protocol_of(case, sampling, times, count * times)
        inside, outside = (in_a_row(scores, times) for scores in by_peers(case, p))
        print(report(name, shown(inside, outside, p, times)), flush=True)
        if name.startswith("crafted"):
            for hope in (1.5, 2.0):
                false = p.replace(sigma=p.sigma * hope, grid=p.sum.step)
                told = shown(inside, outside, false, times)
                print(report(f"  the same, promised with {hope:g} times the noise", told), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=COUNT, help="how often; with 700 some minutes")
    main(parser.parse_args().count)
