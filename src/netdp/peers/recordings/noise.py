"""Every noise that was really added, taken out of a recording with everybody's keys and data, and held against its stated law.

No observer can do this: it takes the homes of all parties. Who audits a run of its own has them, and sees each party's noise by
itself, n times as many numbers as are left of a sum. What is sent is linear in what is known, so noise is a difference:

    masked-sum          y_u − pads − k_u                             every party
    masked-descent      the same, k_u the clipped gradients of the rows that the party's coins chose    every party and iteration
    ring-sum            token after a hop − token before − k_u       every hop; the last holds the closing noise
    walk-sum            the same over all steps that the token stayed with a party
    gossip              first state − k_u; later states − what mixing gave     every party and round

All of it is computed a second time, from the study, the data and the keys. So numbers that are *not* noise (other data, another
sampling rate, other pads) are found as well: they are far too large.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netdp.audit.findings import Check
from netdp.audit.samples import SampleLaw, fits, gaussian_law, no_reuse
from netdp.numerics.arrays import IntArray
from netdp.peers.identity import Identity
from netdp.peers.recordings.kinds import recorded
from netdp.peers.recordings.recording import Recording
from netdp.peers.recordings.statistics import DOUBT, Squares

_FEWEST, _ROW = 200, 8

_ROWS = 48
"""So many rows of noise are compared with each other."""

_NOT_NOISE = 1e-9

_BEYOND = 7.0


@dataclass(frozen=True, eq=False)
class OpenedNoise:
    """What one party added at one place, (d,) grid steps; its variance is that of one discrete Gaussian, or of a sum of some."""

    party: int
    numbers: IntArray
    variance: int
    parts: int = 1
    against: IntArray | None = None
    """What this noise must have nothing to do with: the gradients of the rows that coins left out."""
    law: SampleLaw | None = None
    """Its law, where that is no discrete Gaussian: then only the law is tested."""


def noise_tested(recording: Recording) -> list[Check]:
    """Whether the noises of a recording are as large as stated, have the stated law, and come once each."""
    all_of_it = list(recorded(recording).noises())
    found = [one for one in all_of_it if one.law is None]
    others = _other_laws([one for one in all_of_it if one.law is not None])
    if not found:
        return others
    return [*others, _size(found, recording.study.everybody), *_law(found), *_reuse(found), *_left_out(found)]


def _size(found: list[OpenedNoise], names: Sequence[str]) -> Check:
    """All of it together, the noises of each party, and those of each size."""
    title, groups = "noise as large as stated", defaultdict(list)
    for one in found:
        for which in ("all parties", names[one.party], f"those of variance {one.variance:,}"):
            groups[which].append((one.numbers, one.variance))
    told = {which: Squares.of(those) for which, those in groups.items()}
    everything = told["all parties"]
    quiet, loud = min(told, key=lambda which: told[which].low), min(told, key=lambda which: told[which].high)
    if told[quiet].low < DOUBT / len(told):
        few = told[quiet]
        return Check(title, False, f"{quiet}: {_ratio(few)}: so little with a probability of {few.low:.1g}")
    if told[loud].high < _NOT_NOISE / len(told):
        few = told[loud]
        return Check(
            title, False,
            f"{loud}: {_ratio(few)}: so much with a probability of {few.high:.1g}. The data or keys beside the recording are not "
            "those of the run, or the parties did something else than the study says",
        )  # fmt: skip
    return Check(title, True, _ratio(everything))


def _ratio(told: Squares) -> str:
    return f"{told.count:,} numbers, {told.ratio:.3f} of the stated deviation"


def _other_laws(found: list[OpenedNoise]) -> list[Check]:
    """All noises that should have one and the same law, together: their size is tested with it."""
    title, groups = "noise has the stated law", defaultdict(list)
    laws = {one.law.words: one.law for one in found if one.law is not None}
    for one in found:
        if one.law is not None:
            groups[one.law.words].append(one.numbers.ravel())
    return [fits(np.concatenate(groups[words]), law, DOUBT / len(laws), title) for words, law in laws.items()]


def _law(found: list[OpenedNoise]) -> list[Check]:
    title, groups = "noise has the stated law", defaultdict(list)
    for one in found:
        if one.parts == 1:
            groups[one.variance].append(one.numbers)
    looked = {variance: np.concatenate(rows) for variance, rows in groups.items()}
    looked = {variance: numbers for variance, numbers in looked.items() if numbers.size >= _FEWEST}
    for variance, numbers in looked.items():
        told = fits(numbers, gaussian_law(variance), DOUBT / len(looked), title)
        if not told.ok:
            return [Check(title, False, f"{numbers.size:,} numbers: {told.words}")]
    if not looked:
        return []
    most = max(numbers.size for numbers in looked.values())
    sizes = "one size" if len(looked) == 1 else f"{len(looked)} sizes"
    return [Check(title, True, f"discrete Gaussians of {sizes}, up to {most:,} numbers of each")]


def _reuse(found: list[OpenedNoise]) -> list[Check]:
    title, groups = "no noise comes twice", defaultdict(list)
    for one in found:
        if one.parts == 1:
            # of single numbers those of one party, round after round, make a row
            groups[one.variance, one.numbers.size if one.numbers.size >= _ROW else -one.party].append(one.numbers)
    rows: dict[int, list[IntArray]] = defaultdict(list)
    for (variance, which), numbers in groups.items():
        if which > 0:
            rows[variance] += numbers
        elif sum(part.size for part in numbers) >= _ROW:
            rows[variance].append(np.concatenate(numbers))
    looked = 0
    for variance, those in rows.items():
        length = min(row.size for row in those)
        if len(those) < 2:
            continue
        table = np.stack([row[:length] for row in those[:_ROWS]])
        told = no_reuse(table, likeliest=min(0.5, 0.41 / math.sqrt(variance)), doubt=DOUBT / len(rows), name=title)
        if not told.ok:
            return [told]
        looked += len(table)
    return [Check(title, True, f"{looked} rows of noise: nothing in one comes again in another")] if looked else []


def _left_out(found: list[OpenedNoise]) -> list[Check]:
    """Rows that took part though their coins left them out show in the noise, however little each of them adds.

    Given the past, ⟨η_t, G_t⟩ has mean 0 and is sub-Gaussian with variance V‖G_t‖²; seven deviations of the sum are beyond chance.
    """
    title, product, square, steps = "only rows that the coins chose", 0.0, 0.0, 0
    for one in found:
        if one.against is not None:
            product += float(one.numbers @ one.against)
            square += one.variance * float(one.against @ one.against)
            steps += 1
    if not steps:
        return []
    far = product / math.sqrt(square) if square else 0.0
    words = f"what was added leans towards the rows that were left out by {far:.1f} deviations, in {steps:,} steps"
    return [Check(title, abs(far) < _BEYOND, words)]


def everybody(recording: Recording) -> dict[int, Identity]:
    """The keys of all parties."""
    return {u: Identity.load(recording.home(u)) for u in range(recording.study.n)}
