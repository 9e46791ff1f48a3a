"""A party's own limits: its peer joins a study only if the study fits them together with all that was spent before.

A policy is a small file that a party keeps beside its keys and shows to nobody:

    delta = 1e-6
    unit = "party"

    [[limit]]
    against = 1          # any single party; 2: any two together
    per = "year"         # "study", "year" (a calendar year, UTC) or "total"
    epsilon = 3.0

**What is asked.** Before a party joins, every limit is checked against the entries of the ledger in its period and *all
attempts that the study may still make*: an adversary who delays messages can force them, in the rosters that it likes among
those that the study allows, so every attempt of the study, made or not, counts as one among those who cost most (`costliest`;
for a masked sum the fewest: what more parties add is post-processing). An attempt that was made already is in
the ledger and is not counted twice. So a study that fitted when it was joined fits at every restart, unless others were
joined since; and if it goes on into the next year, it fits there too, where less was spent before it. One process runs one
study at a time and asks at every start, so no two studies can both count on what is left.

**A limit is a filter** (`netdp.privacy.Filter`): it holds although which studies there are, of what kinds and sizes, and how many
attempts they need is chosen after looking at answers (docs/proofs/privacy.md#adaptive-composition). Of one study alone, everything
is fixed beforehand but the number and the rosters of its attempts, and all of those count: for a limit per study plain
composition is right. So it is for the first study in a period, if it can only go one way: one attempt, one roster.

**What is protected.** With `unit = "party"` a limit is about all data of the party. A study that protects single records
bounds nothing of the kind, so it is refused, and so is everything as long as such studies are in the ledger's period. With
`unit = "record"` a limit is about any one record; studies of both units count (`netdp.peers.ledger.entries` says why).
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self

from pydantic import ConfigDict, Field, model_validator

from netdp.errors import FileFormatError, InvalidValue, Refused
from netdp.peers.records import Misfit, Number, Strict, Whole, line_of, place_text
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.filters import least_limit, limit_admits
from netdp.privacy.profile import ProfileCurve
from netdp.privacy.wording import readable

from ..events import Statement
from .entries import CORRECTS, Entry, entry_of, in_force, losses, total, utc_text, year
from .losses import highest, profile_loss, seen

_LARGEST_DELTA = 1e-3
FIRST_DAY = "2025-01-01T00:00:00Z"
"""No entry was written before: an earlier date is that of a wrong clock."""


class Ledger(Protocol):
    """Whatever can list entries: a `Store`."""

    def entries(self) -> list[Entry]: ...


class SpendingLimit(Strict):
    """No more than `epsilon` to any `against` parties together, in each study, each year, or ever."""

    against: Whole
    per: Literal["study", "year", "total"]
    epsilon: Number

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.against < 1:
            raise Misfit(("against",), f"must be 1 (any single party) or more, got {self.against}")
        if self.epsilon < 0:
            raise Misfit(("epsilon",), f"must be 0 or more, got {self.epsilon!r}; leave the limit out for no limit")
        return self

    def words(self, now: str) -> str:
        """The limit in a few words.

        >>> SpendingLimit(against=2, per="year", epsilon=3.0).words("2026-11-16T10:00:00Z")
        'any 2 parties, in 2026'
        """
        who = "any 1 party" if self.against == 1 else f"any {self.against} parties"
        return f"{who}, {({'study': 'this study', 'year': f'in {now[:4]}', 'total': 'in all'})[self.per]}"


@dataclass(frozen=True)
class PolicyDecision:
    """One limit and one study, in ε at the policy's δ.

    study      all attempts that the study may make (in the period), made ones included
    before     all other studies in the period, whatever was chosen after looking
    together   both: the smallest limit that would admit them, which the limit is held against
    """

    limit: SpendingLimit
    words: str
    study: float
    before: float
    together: float

    @property
    def over(self) -> float:
        """By how much the limit would be broken; 0 if it holds."""
        return max(0.0, self.together - self.limit.epsilon)

    @property
    def holds(self) -> bool:
        """Whether it fits."""
        return self.together <= self.limit.epsilon

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None for no bound."""

        def plain(value: float) -> float | None:
            return value if math.isfinite(value) else None

        return {
            **self.limit.model_dump(),
            "study": plain(self.study),
            "before": plain(self.before),
            "together": plain(self.together),
            "over": plain(self.over),
            "holds": self.holds,
        }


class PolicyRefused(Refused):
    """A study does not fit a policy; `verdicts` has all limits, for `verdict_lines`."""

    code = "policy"

    def __init__(self, sentence: str, verdicts: Sequence[PolicyDecision]) -> None:
        self.verdicts = tuple(verdicts)
        super().__init__(sentence)


class OwnerPolicy(Strict):
    """Limits, and the δ at which they are meant.

    >>> policy = OwnerPolicy(delta=1e-6, limit=[{"against": 1, "per": "total", "epsilon": 2.0}])
    >>> policy.unit, policy.limits[0].epsilon
    ('party', 2.0)
    >>> OwnerPolicy.from_text(OwnerPolicy.default_text).limits[0].words("2026")
    'any 1 party, this study'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
    default_text: ClassVar[str] = """\
# What this party allows. Its peer joins a study only if every limit below holds
# for all that the study may reveal, together with what its ledger says was
# revealed before. Nobody else sees this file. What is spent: netdp ledger show

delta = 1e-6        # the chance that a limit fails; epsilon is at this delta

# What the limits protect: "party", all data here together; or "record", any one
# row of it. With "party", studies that protect single records only are refused.
unit = "party"

# against: to any so many parties together, whoever they are.
# per: "study", "year" (calendar year, UTC) or "total". All limits must hold.

[[limit]]
against = 1
per = "study"
epsilon = 1.0

[[limit]]
against = 1
per = "year"
epsilon = 3.0

[[limit]]
against = 1
per = "total"
epsilon = 10.0

# Parties that may collude? Then add a limit for as many of them:
# [[limit]]
# against = 2
# per = "year"
# epsilon = 5.0
"""

    delta: Number
    unit: Literal["party", "record"] = "party"
    limits: tuple[SpendingLimit, ...] = Field(alias="limit")

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if not 0 < self.delta <= _LARGEST_DELTA:
            raise Misfit(("delta",), f"is a chance: more than 0 and at most {_LARGEST_DELTA:g}, got {self.delta!r}")
        if not self.limits:
            raise Misfit(("limit",), "a policy without limits allows everything; write at least one [[limit]]")
        return self

    @classmethod
    def from_text(cls, text: str, source: object = "policy.toml") -> OwnerPolicy:
        """Read TOML; every mistake is named with its line."""
        try:
            fields = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            line = re.search(r"at line (\d+)", str(error))
            raise FileFormatError(source, int(line[1]) if line else None, f"is not valid TOML: {error}") from None
        try:
            return cls(**fields)
        except Misfit as problem:
            where = f"{place_text(problem.place)}: " if problem.place else ""
            raise FileFormatError(source, line_of(text, problem.place), f"{where}{problem.problem}") from None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> OwnerPolicy:
        """The policy in a file. Without one nothing is allowed: there is no policy that everybody would want."""
        try:
            return cls.from_text(Path(path).read_text("utf-8"), path)
        except FileNotFoundError:
            raise Refused(
                f"there is no policy in {path}; `netdp peer init` writes one to begin with, "
                "docs/howto/deploy.md shows what is in it"
            ) from None
        except OSError as error:
            raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise FileFormatError(path, None, "is not a UTF-8 text file") from None

    def verdicts(
        self, study: Any, ledger: Ledger | Iterable[Entry], me: int, now: str | date | None = None
    ) -> list[PolicyDecision]:
        """Every limit with what the study would spend; `me` is this party's number in it."""
        moment = utc_text(now)
        entries = ledger.entries() if hasattr(ledger, "entries") else list(ledger)
        name = study.hash.hex()
        own = [entry for entry in entries if entry.study == name]
        left = max(0, study.privacy.attempts - len({entry.attempt for entry in own if entry.attempt < CORRECTS}))
        attempt = costliest(study, me, moment)
        found = []
        for limit in self.limits:
            inside = written_since(entries, year(int(moment[:4]))[0]) if limit.per == "year" else entries
            others = [] if limit.per == "study" else [entry for entry in inside if entry.study != name]
            here = in_force(entry for entry in inside if entry.study == name)
            # what an attempt really cost, where that is known to be more than was planned for
            corrections = [entry for entry in here if entry.attempt > CORRECTS]
            # numbered so that no correction is taken for one of them
            number = left + len(here) - len(corrections)
            planned = [replace(attempt, attempt=CORRECTS - 1 - i) for i in range(number)] + corrections
            study_alone = float(total(planned, limit.against, self.unit).epsilon(self.delta))
            one_way = study.privacy.attempts == 1 and len(study.running.costly_rosters(me)) == 1
            if limit.per == "study" or (one_way and not others):
                before, together = 0.0, study_alone
            else:
                before, together = (
                    least_limit(losses(some, limit.against, self.unit), self.delta)
                    for some in (others, [*others, *planned])
                )
                admitted = limit_admits(
                    losses([*others, *planned], limit.against, self.unit), limit.epsilon, self.delta
                )
                # between two limits that were tried the limit itself decides
                together = (
                    min(together, limit.epsilon) if admitted else max(together, math.nextafter(limit.epsilon, math.inf))
                )
            found.append(PolicyDecision(limit, limit.words(moment), study_alone, before, together))
        return found

    def check(
        self, study: Any, ledger: Ledger | Iterable[Entry], me: int, now: str | date | None = None
    ) -> list[PolicyDecision]:
        """The verdicts, if all limits hold; else refuses, with the numbers."""
        if self.unit == "party" and str(study.task.unit) != "party":
            raise Refused(Statement(
                f"the study {study.name!r} protects single records, and the policy of {study.names[me]} all of its data (unit = "
                '"party"): no number of this study bounds what is learnt about all of it. If protecting each record is enough, '
                'write unit = "record" into policy.toml',
                "policy",
            ))  # fmt: skip
        found = self.verdicts(study, ledger, me, now)
        broken = [verdict for verdict in found if not verdict.holds]
        if broken:
            reasons = "; ".join(_reason(verdict) for verdict in broken)
            raise PolicyRefused(
                f"the policy of {study.names[me]} does not allow the study {study.name!r}: {reasons} (epsilon at delta = "
                f"{self.delta:g}); nothing was sent",
                found,
            )
        return found


def written_since(entries: Sequence[Entry], start: str) -> Sequence[Entry]:
    """The entries since `start`, and all whose time cannot be right, in the order in which they were written.

    With a clock that goes forward these are the entries dated `start` or later. An entry that is dated before one written
    earlier, or before there was netdp, was written with a clock that was behind: it counts in every period. So does all
    that was written after the first entry dated `start` or later. A clock that is *ahead* opens the next year early, and
    nothing in the ledger can tell; its entries count as soon as the clock is right again (`netdp peer doctor` looks at clocks).
    """
    found, latest, begun = [], FIRST_DAY, False
    for entry in entries:
        begun = begun or entry.time >= start
        if begun or entry.time < latest:
            found.append(entry)
        latest = max(latest, entry.time)
    return found


def costliest(study: Any, me: int, time: str | date | None = None) -> Entry:
    """An entry that costs at least what any allowed attempt may cost party `me`, against any number of parties and at every δ.

    More parties bring more noise, as a rule; but where a loss depends on a place in the roster, or on how numbers round, who is
    missing matters. So of all rosters that differ in this the pointwise largest curves are taken, which bound every mixture.
    """
    smallest_roster(study, me)  # refuses a party that there is not
    found = [entry_of(study, 1, roster, me, time) for roster in study.running.costly_rosters(me)]
    first = found[0]
    if len(found) == 1 or first.loss["kind"] != "profile" or all(one.loss == first.loss for one in found):
        return first

    def against(who: int | str) -> GaussianCurve | ProfileCurve:
        curves = [seen(one.loss, one.roster, one.me, who) for one in found]
        return highest([curve for curve in curves if isinstance(curve, GaussianCurve | ProfileCurve)])

    others = dict.fromkeys(name for one in found for name in one.loss["single"])
    sizes = {int(size) for one in found for size in one.loss["sizes"]}
    loss = profile_loss(
        {name: against(name) for name in others}, against(len(others)), {size: against(size) for size in sorted(sizes)}
    )
    return replace(first, roster=study.names, loss=loss)


def smallest_roster(study: Any, me: int) -> tuple[int, ...]:
    """Some roster with `me`, of as few parties as the study allows: the worst, by the names of nobody in particular."""
    if not 0 <= me < study.n:
        raise InvalidValue(f"the study {study.name!r} has parties 0 … {study.n - 1}, there is no party {me}")
    others = [u for u in range(study.n) if u != me]
    return tuple(sorted([me, *others[: study.smallest_roster - 1]]))


def _reason(verdict: PolicyDecision) -> str:
    allowed = readable(verdict.limit.epsilon, 4)
    if math.isinf(verdict.together):
        culprit = "the study" if math.isinf(verdict.study) else "what is in the ledger"
        return f"{verdict.words}: {culprit} has no bound against them, {allowed} is allowed"
    spent = f" ({readable(verdict.before, 4)} before)" if verdict.before else ""
    if not verdict.before and verdict.together > verdict.study:
        spent = f" (its own {readable(verdict.study, 4)}, with room for later studies that are chosen after its answer is seen)"
    return (
        f"{verdict.words}: it would be {readable(verdict.together, 4)}{spent}, {allowed} is allowed, "
        f"{readable(verdict.over, 4)} too much"
    )


def verdict_lines(verdicts: Sequence[PolicyDecision]) -> list[str]:
    """The verdicts as a table of at most 80 columns.

    >>> limit = SpendingLimit(against=1, per="year", epsilon=3.0)
    >>> for line in verdict_lines([PolicyDecision(limit, limit.words("2026"), 1.0, 2.5, 3.15)]):
    ...     print(line)
    limit                      this study   before  together   allowed   over by
    any 1 party, in 2026             1.00     2.50      3.15      3.00     0.150
    """
    widths = (11, 9, 10, 10, 10)

    def line(first: str, *cells: str) -> str:
        return f"{first:<26}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))

    lines = [line("limit", "this study", "before", "together", "allowed", "over by")]
    for verdict in verdicts:
        cells = (verdict.study, verdict.before, verdict.together, verdict.limit.epsilon)
        lines.append(line(verdict.words, *map(readable, cells), "–" if verdict.holds else readable(verdict.over)))
    return lines
