"""Where the tokens of a study really went, and what that gave away: from what every party knows of its own visits.

Every party's outcome lists the steps at which a token was here. Who collects them all (`netdp up`, where all parties run on one
machine) knows the path, and for sums the certified loss of every pair given that path (docs/proofs/token.md#known-path). It stands
beside the promise, which was made before the path was drawn and is a mean over all of them: given this path, of some pair more
may be lost and of most less. Nobody who takes part knows the path: do not pass it on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from netdp.families.token.views import TokenTranscript
from netdp.families.token.walk import GraphWalkSum, WalkDescent, WalkHistogram, WalkSum
from netdp.numerics.arrays import FloatArray
from netdp.peers.hindsight import Hindsight

if TYPE_CHECKING:
    from netdp.peers.study.study import Study


MOST_PARTIES = 64
"""Losses of all pairs are computed for so many parties at most."""


@dataclass(frozen=True, eq=False)
class PeerWalkLosses(Hindsight):
    """The paths of a run, and ε of what each party learned about each other one, the path being known."""

    key: ClassVar[str] = "walked"
    holds_if: ClassVar[str] = "if where tokens went did not depend on what anybody saw"

    roster: tuple[int, ...]
    transcript: TokenTranscript
    """By place in the roster."""
    epsilons: FloatArray | None
    """(targets, observers) by place in the roster, nan on the diagonal; None for histograms, models and many parties."""
    most_skipped: int
    """Parties that were away at one step, at most."""
    skips: int
    """How often a token went to another because somebody did not answer."""

    @property
    def course(self) -> TokenTranscript:
        return self.transcript

    @property
    def visits(self) -> list[int]:
        """How often every member held a token."""
        counted: list[int] = np.bincount(np.concatenate(self.transcript.paths), minlength=len(self.roster)).tolist()
        return counted

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; not the path itself."""
        out: dict[str, Any] = {
            "tokens": len(self.transcript.paths),
            "visits": {"fewest": min(self.visits), "most": max(self.visits)},
            "most_skipped": self.most_skipped,
            "skips": self.skips,
            "holds": self.holds_if,
        }
        if self.epsilons is not None:
            found = self.epsilons[~np.isnan(self.epsilons)]
            out["epsilon_of_this_path"] = {"mean": float(found.mean()), "largest": float(found.max())}
        return out


def walked_in(study: Study, outcomes: Mapping[str, Mapping[str, Any]]) -> PeerWalkLosses | None:
    """Where tokens went, from the outcomes that parties told; None if the study is no walk, or if a step is missing."""
    held = [told for told in outcomes.values() if told["ok"]]
    if not held or not isinstance(study.protocol(), WalkSum | GraphWalkSum | WalkHistogram | WalkDescent):
        return None
    attempt, names = held[0]["attempt"], held[0]["roster"]
    roster = tuple(study.index(name) for name in names)
    protocol: Any = study.running.protocol_of(roster)
    paths = np.full((protocol.tokens, protocol.steps), -1, dtype=np.int32)
    for place, name in enumerate(names):
        told = outcomes.get(name)
        if told is not None and told["ok"] and told["attempt"] == attempt:
            for k, t in told["realised"]["visits"]:
                paths[k, t] = place
    if (paths < 0).any():
        return None
    transcript = TokenTranscript(len(roster), tuple(paths))
    epsilons = None
    if isinstance(protocol, WalkSum | GraphWalkSum) and len(roster) <= MOST_PARTIES:
        from netdp.protocols.accounting import pairwise

        epsilons = np.asarray(pairwise(protocol, transcript=transcript).epsilon(study.privacy.delta))
    realised = held[0]["realised"]
    return PeerWalkLosses(roster, transcript, epsilons, realised["most_skipped"], realised["skips"])
