"""What an attack is, and how its scores are collected: many runs in two worlds, wherever the engine computes.

**The two worlds.** `without`: the target holds one value; `within`: another, as far from it as neighbouring data may be. All
else is the same in both, and the attack may know it: the promise is made against observers who know all data but the target's.

**What an attack reads** is what the observers hold after a run (a record), nothing else. It may know the protocol, and how the
system under audit behaves when it is fed with numbers of one's own choice (its code is public).

**The system under audit** is a function with the arguments of `netdp.protocols.simulation.execute`. By default it is that function,
so what `netdp.simulate` runs is what is attacked; a test plants a bug by putting another function in its place.

**Trials.** A *batch* is one call of the system with many columns, each a run of its own, or one run where chance is shared by
columns. Batches have seeds of their own, made from the audit's seed, the world and their number: the same audit gives the same
scores, on any engine. Which attacks there are on which protocol is in one strict table (`netdp.protocols.table`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from netdp.audit.bounds import Measured
from netdp.engines.maps import map_items
from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray, Progress
from netdp.numerics.checks import whole
from netdp.numerics.values import party_values
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve
from netdp.protocols.simulation import Normal, Run, Values, execute
from netdp.protocols.table import Table

System = Callable[..., Run]
"""(protocol, values, seed, normal, record) → Run, as `netdp.protocols.simulation.execute`."""


def SIMULATOR(protocol: Any, values: Values, seed: int, normal: Normal, record: Any) -> Run:  # noqa: N802  the usual one
    """What `netdp.simulate` runs. A function of this module, so that workers know it for the same one."""
    run: Run = execute(protocol, values, seed, normal, record)
    return run


class Attack(ABC):
    """One way to tell the two worlds apart from what observers hold."""

    words: ClassVar[str]
    """How it works, in one sentence."""

    studies: ClassVar[int] = 1
    """How many studies one trial looks at: the claim is that of so many, one after the other."""

    gaussian: ClassVar[bool] = False
    """Whether the scores are Gaussian, with one variance in both worlds, if the system is what it claims to be."""

    most: ClassVar[int] = 20_000
    """So many trials in each world are made by default, at most: what takes a few seconds."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many trials one batch has."""

    @property
    def budget(self) -> int:
        """The same for the protocol at hand."""
        return self.most

    @abstractmethod
    def batch(self, within: bool, seed: int) -> FloatArray:
        """(size,) scores of so many independent trials in one world."""

    def reading(self, told: Measured, claim: Curve) -> float:
        """ε at δ in the shape of the claim: of the Gaussian shift that guesses show, or their share of the claimed ε."""
        if isinstance(claim, GaussianCurve):
            return told.as_gaussian
        return told.share_of(claim) * float(claim.epsilon(told.delta))


@dataclass(frozen=True, eq=False)
class Scores:
    """What an attack said: a score per trial."""

    without: FloatArray
    within: FloatArray


def collect(
    attack: Attack, trials: int, seed: int, *, progress: Progress | None = None, portable: bool = True
) -> Scores:
    """At least `trials` trials in each world; the same seed gives the same scores.

    portable   False: the system under audit is known to this process only, so its work is not sent to others
    """
    trials, seed = whole("trials", trials, 1), whole("seed", seed)
    batches = -(-trials // attack.size)
    items = [(within, number) for number in range(batches) for within in (False, True)]
    by_world: dict[bool, list[FloatArray]] = {False: [], True: []}
    results = map_items(_one, items, shared=(attack, seed), progress=progress, portable=portable)
    for (within, _), scores in zip(items, results, strict=True):
        if scores.shape != (attack.size,):
            raise InvalidValue(
                f"{type(attack).__name__} gave scores of shape {scores.shape}, expected {(attack.size,)}"
            )
        by_world[within].append(scores)
    return Scores(np.concatenate(by_world[False]), np.concatenate(by_world[True]))


def _one(attack: Attack, seed: int, item: tuple[bool, int]) -> FloatArray:
    within, number = item
    return attack.batch(within, batch_seed(seed, within, number))


def batch_seed(*parts: int) -> int:
    """A seed of its own for everything that is named by these numbers.

    >>> batch_seed(0, 1, 2) != batch_seed(0, 2, 1)
    True
    """
    return int(np.random.SeedSequence([int(part) for part in parts]).generate_state(1, np.uint64)[0] >> np.uint64(1))


class Columns(Values):
    """Values whose every column is a run of its own: each is clipped, or held to the sensitivity, not all together."""

    def of(self, protocol: Any, *, rows: int | None = None) -> FloatArray:
        """(n, d) numbers."""
        data = party_values(self.given, protocol.n if rows is None else rows, protocol.n)
        if self.bounds is not None:
            return np.asarray(np.clip(data, *self.bounds))
        if (np.ptp(data, axis=0) > protocol.sensitivity * (1 + 1e-9)).any():
            raise InvalidValue(f"values of a column lie further apart than the sensitivity {protocol.sensitivity:g}")
        return data


shorter = Table("a shorter form", "is audited as it is", part="attack")
"""`shorter(protocol)`: the same with so few iterations that thousands of runs take seconds (`netdp.audit.audits.shortened`)."""

publicly_drawn = Table("what is drawn in public", "draws nothing in public", part="attack")
"""`publicly_drawn(protocol, seed)`: the protocol with what it draws in public, and the options of `account` that state it."""

checks = Table("a check", "has no checks of its own", part="attack")
"""`checks(protocol, target, system, seed)`: a list of `Check` beside the attacks."""

canaries = Table(
    "an audit in one run",
    "cannot be audited in one run: that takes a shuffle, or views that are linear with Gaussian noise while nothing public is "
    "drawn; audit one target in many runs",
    part="attack",
)
"""`canaries(protocol, observers, planted, coins, seed, system)`: of every planted coin, how the observers lean (> 0: heads)."""

attacks = Table("an attack", "cannot be audited", part="attack")
"""`attacks(protocol, observers, target, system, seed)`: a list of `Attack`, the strongest first.

observers   `netdp.privacy.Observers`: the parties, and roles such as the curator
target      whose data are different in the two worlds
system      what is under audit, with the arguments of `netdp.protocols.simulation.execute`, where the attack uses it
seed        of what is public and drawn once, such as random edges
"""
