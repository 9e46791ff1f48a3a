"""One settings model per command and protocol: which flags belong to it, and the protocol they make.

Settings come from flags and from a TOML file (`--config`) that uses the very names of the flags; flags win. Whatever the
model does not know is refused by name: a flag that does nothing would be believed to do something.
"""

from __future__ import annotations

import math
import tomllib
from abc import abstractmethod
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from netdp import graphs
from netdp.errors import FileFormatError, InvalidValue
from netdp.graphs import Graph
from netdp.protocols import Gossip, GraphWalkSum, MaskedSum, Protocol, RingSum, Shuffle, WalkSum

#: What can be accounted, planned and simulated from the command line.
PROTOCOLS = ("gossip", "token", "shuffle", "masked")
#: For the refusal of settings that lack something.
_EXAMPLES = {
    "graph": "hypercube:8", "rounds": "20", "sigma": "4.0", "steps": "100000", "epsilon0": "1", "epsilon": "1",
}  # fmt: skip
#: Settings that name files, relative to the file that names them.
_FILES = ("graph", "policy", "values")


def _several(value: Any) -> Any:
    return [value] if isinstance(value, int | str) and not isinstance(value, bool) else value


def _ends(value: Any) -> Any:
    """(lo, hi) from the text "lo,hi", or from a list of two numbers."""
    parts = value.split(",") if isinstance(value, str) else value
    try:
        low, high = (float(part) for part in parts)
    except (TypeError, ValueError):
        raise ValueError("two numbers are needed, lo,hi such as 0,1") from None
    if not (math.isfinite(high - low) and low < high):
        raise ValueError("two finite numbers lo < hi are needed, such as 0,1")
    return low, high


Parties = Annotated[list[int | str], BeforeValidator(_several)]
Bounds = Annotated[tuple[float, float], BeforeValidator(_ends)]


class Settings(BaseModel):
    """What every command needs. A field is called like its flag, with _ for - inside."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=lambda name: name.replace("_", "-"))
    words: ClassVar[str]
    """What these settings are about, for a refusal; {graph} stands for the graph as typed."""

    graph: str
    protocol: str = "gossip"
    as_json: bool = Field(False, alias="json")

    @classmethod
    def flags(cls) -> list[str]:
        """The names that may be given, those of its own first."""
        names = [field.alias or name for name, field in cls.model_fields.items()]
        return sorted(names, key=lambda name: name in ("graph", "protocol", "json"))

    def network(self) -> Graph:
        """The graph."""
        return graphs.parse(self.graph)


class Making(Settings):
    """Settings that make a protocol."""

    @abstractmethod
    def made(self) -> Protocol:
        """The protocol."""


class GossipSettings(Making):
    """Gossip on a graph."""

    words: ClassVar[str] = "gossip"
    rounds: int
    sigma: float
    refresh: float = 0.0
    masks: float = 0.0
    accelerated: bool = False
    sensitivity: float = 1.0
    mixing: str = "metropolis"

    def made(self) -> Gossip:
        """The protocol."""
        own = ("rounds", "sigma", "refresh", "masks", "accelerated", "sensitivity", "mixing")
        return Gossip(self.network(), **{name: getattr(self, name) for name in own})


class RingSettings(Making):
    """A token that goes round a ring."""

    words: ClassVar[str] = "a token on {graph}"
    rounds: int
    sigma: float
    noise: str = "single"
    closing: bool = True
    sensitivity: float = 1.0

    def made(self) -> RingSum:
        """The protocol."""
        own = ("rounds", "sigma", "noise", "closing", "sensitivity")
        return RingSum(users(self.graph), **{name: getattr(self, name) for name in own})


class WalkSettings(Making):
    """A token that walks at random among users who can all reach each other."""

    words: ClassVar[str] = "a token on {graph}"
    steps: int
    sigma: float
    sender: str = "known"
    release: str | None = None
    sensitivity: float = 1.0

    def made(self) -> WalkSum:
        """The protocol."""
        own = ("steps", "sigma", "sender", "release", "sensitivity")
        return WalkSum(users(self.graph), **{name: getattr(self, name) for name in own})


class GraphWalkSettings(Making):
    """A token that walks on a graph."""

    words: ClassVar[str] = "a token on {graph}"
    steps: int
    sigma: float
    closing: bool = True
    sensitivity: float = 1.0

    def made(self) -> GraphWalkSum:
        """The protocol."""
        own = ("steps", "sigma", "closing", "sensitivity")
        return GraphWalkSum(self.network(), **{name: getattr(self, name) for name in own})


class MaskedSettings(Making):
    """A sum under one-time pads between all pairs, spread over a graph."""

    words: ClassVar[str] = "a masked sum"
    sigma: float
    spread: str = "flood"
    sensitivity: float = 1.0
    attempts: int = 1
    absent: int = 0
    grid: float | None = None

    def made(self) -> MaskedSum:
        """The protocol."""
        own = ("sigma", "spread", "sensitivity", "attempts", "absent", "grid")
        return MaskedSum(self.network(), **{name: getattr(self, name) for name in own})


class ShuffleSettings(Making):
    """Reports that hop through a graph to a curator."""

    words: ClassVar[str] = "shuffling"
    rounds: int
    epsilon0: float
    reporting: str = "all"
    laziness: float = 0.0

    def made(self) -> Shuffle:
        """The protocol."""
        own = ("rounds", "epsilon0", "reporting", "laziness")
        return Shuffle(self.network(), **{name: getattr(self, name) for name in own})


class Looking(Making):
    """Who looks, and at which δ the loss is stated."""

    observer: Parties | None = None
    delta: float = 1e-6

    def observers(self, protocol: Protocol) -> list[int | str]:
        """The observers as typed, each found in the graph; the first party by default, and always the curator if there is one."""
        network = protocol.network
        if self.observer is None:
            first = 0 if network is None else network.label(0)
            return list(protocol.roles) or [first]
        named = [party for party in self.observer if party not in protocol.roles]
        return [*protocol.roles, *found(protocol, named)]


class Accounting(Looking):
    """`netdp account`."""

    plot: str | None = None


class Running(Looking):
    """`netdp simulate`."""

    values: str | None = None
    column: str | None = None
    uniform: bool = False
    bounds: Bounds | None = None
    seed: int | None = None


class Recording(Running):
    """`netdp simulate` of what parties see."""

    record: Parties | None = None


class AccountGossip(Accounting, GossipSettings): ...


class AccountRing(Accounting, RingSettings): ...


class AccountWalk(Accounting, WalkSettings): ...


class AccountGraphWalk(Accounting, GraphWalkSettings): ...


class AccountShuffle(Accounting, ShuffleSettings): ...


class AccountMasked(Accounting, MaskedSettings): ...


class SimulateMasked(Recording, MaskedSettings):
    def made(self) -> MaskedSum:
        """The protocol; the middle of the public interval, if one is stated, is its centre."""
        protocol = super().made()
        return protocol if self.bounds is None else protocol.replace(centre=sum(self.bounds) / 2)


class SimulateGossip(Recording, GossipSettings): ...


class SimulateRing(Recording, RingSettings): ...


class SimulateWalk(Recording, WalkSettings): ...


class SimulateGraphWalk(Recording, GraphWalkSettings): ...


class SimulateShuffle(Running, ShuffleSettings): ...


class PlanGossip(Settings):
    """`netdp plan` of gossip."""

    words: ClassVar[str] = "a plan of gossip"
    epsilon: float | None = None
    delta: float = 1e-6
    scope: str = "worst"
    policy: str | None = None
    observer: Parties | None = None
    coalitions: float | None = None
    seed: int = 0
    draws: int = 20
    sensitivity: float = 1.0
    mixing: str = "metropolis"
    max_rounds: int = 200
    advise: bool = False

    def check(self) -> None:
        """Refuse what is missing or said twice."""
        if self.policy is None and self.epsilon is None:
            raise InvalidValue("epsilon is missing; give --epsilon (for example 1), or --policy with a file of rules")
        if self.policy is not None and (self.epsilon is not None or "scope" in self.model_fields_set):
            raise InvalidValue("a policy states its own epsilons and pairs; leave --epsilon and --scope out")
        if self.coalitions is None and (unused := {"seed", "draws"} & self.model_fields_set):
            raise InvalidValue(
                f"--{min(unused)} is about coalitions drawn at random; give --coalitions (for example 0.1) or leave it out"
            )
        if self.advise and (self.policy or self.observer):
            raise InvalidValue(
                "--advise compares topologies, so it cannot name parties: leave --policy and --observer out"
            )


class PlanToken(Settings):
    """`netdp plan` of a token among users who can all reach each other."""

    words: ClassVar[str] = "a plan of a token"
    epsilon: float
    delta: float = 1e-6
    visits: int = 100
    colluders: int = 1
    sensitivity: float = 1.0

    def check(self) -> None:
        """Refuse graphs on which tokens are not planned."""
        if not self.graph.startswith("complete:"):
            raise InvalidValue(
                f"tokens are planned among N users who can all reach each other, got {self.graph!r}; write complete:1000"
            )


class PlanMasked(Settings):
    """`netdp plan` of a masked sum."""

    words: ClassVar[str] = "a plan of a masked sum"
    epsilon: float
    delta: float = 1e-6
    colluders: int = 1
    sensitivity: float = 1.0
    attempts: int = 1
    absent: int = 0
    grid: float | None = None

    def check(self) -> None:
        """Every graph will do."""


class PlanShuffle(Settings):
    """`netdp plan` of shuffling: hops for given reports, or reports for a target."""

    words: ClassVar[str] = "a plan of shuffling"
    epsilon: float | None = None
    epsilon0: float | None = None
    delta: float = 1e-6
    reporting: str = "all"
    laziness: float = 0.0
    share: float = 0.01

    def check(self) -> None:
        """One question at a time."""
        if (self.epsilon is None) == (self.epsilon0 is None):
            raise InvalidValue(
                "shuffling is planned for given reports (--epsilon0 1: how many hops?) or for a target (--epsilon 0.1: "
                "how noisy must reports be?); give one of the two"
            )


_ACCOUNT = {
    "gossip": AccountGossip, "ring": AccountRing, "walk": AccountWalk, "graph walk": AccountGraphWalk,
    "shuffle": AccountShuffle, "masked": AccountMasked,
}  # fmt: skip
_SIMULATE = {
    "gossip": SimulateGossip, "ring": SimulateRing, "walk": SimulateWalk, "graph walk": SimulateGraphWalk,
    "shuffle": SimulateShuffle, "masked": SimulateMasked,
}  # fmt: skip
_PLAN = {
    "gossip": PlanGossip, "ring": PlanToken, "walk": PlanToken, "graph walk": PlanToken, "shuffle": PlanShuffle,
    "masked": PlanMasked,
}  # fmt: skip


def account_settings(path: Path | None, flags: dict[str, Any]) -> Accounting:
    """The settings of `netdp account`."""
    settings = _load(_ACCOUNT, path, flags)
    assert isinstance(settings, Accounting)
    return settings


def simulate_settings(path: Path | None, flags: dict[str, Any]) -> Running:
    """The settings of `netdp simulate`."""
    settings = _load(_SIMULATE, path, flags)
    assert isinstance(settings, Running)
    if settings.uniform == (settings.values is not None):
        raise InvalidValue(
            "whose values? give --values FILE (one number per party), or --uniform to draw some for a try; one of the two"
        )
    if settings.column is not None and settings.values is None:
        raise InvalidValue("--column names a column of the file; give --values FILE too")
    return settings


def plan_settings(path: Path | None, flags: dict[str, Any]) -> PlanGossip | PlanToken | PlanShuffle | PlanMasked:
    """The settings of `netdp plan`."""
    settings = _load(_PLAN, path, flags)
    assert isinstance(settings, PlanGossip | PlanToken | PlanShuffle | PlanMasked)
    settings.check()
    return settings


def parties(graph: Graph, named: list[int | str]) -> list[int | str]:
    """Parties as typed, each found in the graph: their names where the graph has names, else their numbers.

    What is typed on a command line is text, so `-o 1` is the party named '1' where parties have names, in whatever
    place it stands; in a settings file the number 1 may be refused as ambiguous, "1" is the name.
    """
    return [graph.label(graph.index(party)) for party in named]


def found(protocol: Protocol, named: list[int | str]) -> list[int | str]:
    """Parties of a protocol as typed: by name where its graph has names, else by number."""
    return _numbers(named) if protocol.network is None else parties(protocol.network, named)


def users(graph: str) -> int:
    """N of complete:N or ring:N, where no graph has to be built."""
    size = graph.partition(":")[2]
    try:
        return int(size)
    except ValueError:
        raise InvalidValue(f"how many users? got {size!r}; write for example complete:1000") from None


def _numbers(named: list[int | str]) -> list[int | str]:
    try:
        return [int(party) for party in named]
    except ValueError:
        raise InvalidValue(f"users have numbers here, got {named!r}") from None


def _kind(values: dict[str, Any]) -> str:
    """Which family of settings: the protocol, and for tokens where they go."""
    protocol, graph = values.get("protocol", "gossip"), values.get("graph")
    if protocol not in PROTOCOLS:
        raise InvalidValue(f"unknown protocol {protocol!r}; choose one of {', '.join(PROTOCOLS)}")
    if protocol != "token":
        return str(protocol)
    family = graph.partition(":")[0] if isinstance(graph, str) else ""
    return {"ring": "ring", "complete": "walk"}.get(family, "graph walk")


def _load(models: dict[str, Any], path: Path | None, flags: dict[str, Any]) -> Settings:
    """The settings of the file, if any, with the flags that were given on top."""
    written = _read(path) if path is not None else {}
    for key in _FILES:
        file = written.get(key)
        if path is not None and isinstance(file, str) and (path.parent / file).is_file():
            written[key] = str(path.parent / file)
    values = {**written, **flags}
    model: type[Settings] = models[_kind(values)]
    if "graph" not in values:
        raise _missing("graph")
    words, known = model.words.format(graph=values["graph"]), model.flags()
    elsewhere = {name for other in models.values() for name in other.flags()}
    for key in values:
        if key in known:
            continue
        if key in flags:
            raise InvalidValue(
                f"--{key} does not belong to {words}; it takes: {', '.join(f'--{k}' for k in known[:-3])}"
            )
        assert path is not None
        close = get_close_matches(str(key), known, n=1)
        problem = f"{key!r} does not belong to {words}" if key in elsewhere else f"unknown key {key!r}"
        hint = f" (did you mean {close[0]!r}?)" if close and key not in elsewhere else ""
        raise FileFormatError(path, None, f"{problem}{hint}; {words} takes: {', '.join(known)}")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        if first["type"] == "missing":
            raise _missing(key) from None
        problem = f"{key} = {first['input']!r}: {first['msg'].removeprefix('Value error, ')}"
        if path is not None and key not in flags:
            raise FileFormatError(path, None, problem) from None
        raise InvalidValue(problem) from None


def _missing(key: str) -> InvalidValue:
    flag = "GRAPH" if key == "graph" else f"--{key}"
    return InvalidValue(f"{key} is missing; give {flag} (for example {_EXAMPLES[key]}) or set it in a --config file")


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileFormatError(path, None, "is not a UTF-8 text file") from None
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(path, None, f"is not valid TOML: {error}") from None
