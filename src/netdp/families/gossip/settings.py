"""What `netdp plan` takes for gossip."""

from __future__ import annotations

from typing import Any, ClassVar

from netdp.errors import InvalidValue
from netdp.families.gossip.plan import Advice, advise, plan_gossip
from netdp.numerics.arrays import Progress
from netdp.protocols.planning import Plan
from netdp.protocols.target import MAX_EVERYBODY, Policy
from netdp.settings.models import Advised, Parties, parties


class PlanGossip(Advised):
    """`netdp plan` of gossip."""

    epsilon: float | None = None
    delta: float = 1e-6
    scope: str = "worst"
    policy: str | None = None
    observer: Parties | None = None
    coalitions: float | None = None
    colluders: int = 1
    seed: int = 0
    draws: int = 20
    sensitivity: float = 1.0
    mixing: str = "metropolis"
    max_rounds: int = 200
    bar: ClassVar[bool] = True
    links_for: ClassVar[str] = "gossip"

    def planned(self, progress: Progress | None = None) -> Plan:
        """Rounds, noise, masks and refresh with the least error."""
        network = self.network()
        observers = parties(network, self.observer) if self.observer else None
        return plan_gossip(network, self.epsilon, self.delta, observers=observers, progress=progress, **self._options())

    def _options(self) -> dict[str, Any]:
        """What a plan takes besides its target, and advice on topologies and links too."""
        return {
            "scope": Policy.read(self.policy) if self.policy else self.scope,
            "coalitions": self.coalitions, "seed": self.seed, "draws": self.draws, "colluders": self.colluders,
            "sensitivity": self.sensitivity, "mixing": self.mixing, "max_rounds": self.max_rounds,
        }  # fmt: skip

    def links_options(self) -> dict[str, Any]:
        """The target, against any so many parties; the rest is gossip's."""
        options = self._options()
        against = {name: options.pop(name) for name in ("colluders", "sensitivity")}
        return {"epsilon": self.epsilon, "delta": self.delta, **against, "gossip": options}

    def topologies(self, progress: Progress) -> Advice | str:
        """The same target on the usual graphs."""
        network = self.network()
        if network.n > MAX_EVERYBODY:
            return f"topologies are compared for up to {MAX_EVERYBODY:,} parties; here are random links only\n"
        assert self.epsilon is not None  # --advise refuses policies
        return advise(network, self.epsilon, self.delta, progress=progress, **self._options())

    @property
    def by_distance(self) -> bool:
        """Whether what is asked for depends on how far apart two parties are."""
        return self.policy is not None or self.scope.startswith("beyond")

    def check(self) -> None:
        """Refuse what is missing or said twice."""
        if self.policy is None and self.epsilon is None:
            raise InvalidValue("epsilon is missing; give --epsilon (for example 1), or --policy with a file of rules")
        if self.policy is not None and (self.epsilon is not None or "scope" in self.model_fields_set):
            raise InvalidValue("a policy states its own epsilons and pairs; leave --epsilon and --scope out")
        if self.colluders > 1 and (self.coalitions is not None or self.observer is not None or self.policy is not None):
            raise InvalidValue(
                f"--colluders {self.colluders} asks for any so many parties; leave --coalitions, --observer and --policy out"
            )
        if self.coalitions is None and (unused := {"seed", "draws"} & self.model_fields_set):
            raise InvalidValue(
                f"--{min(unused)} is about coalitions drawn at random; give --coalitions (for example 0.1) or leave it out"
            )
        if self.advise and (self.policy or self.observer):
            raise InvalidValue(
                "--advise compares topologies, so it cannot name parties: leave --policy and --observer out"
            )
