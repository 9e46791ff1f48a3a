"""What is asked for: an (ε, δ), for which pairs of parties, and against whom; and the noise that given losses demand to meet it.

`Target` is an ε at δ over a scope, or a `Policy` with an ε for every pair; `Audience` is who looks: every party alone, some
of them, coalitions, or any f parties. A linear-Gaussian view has μ_u² = factor_u·Δ²/σ², so the target holds if (σ/Δ)² ≥
factor_u/μ*² for all pairs in question, μ* the largest μ that the budget allows (docs/proofs/privacy.md#calibration).
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import FileFormatError, InvalidValue, NetdpError, Unsupported
from netdp.graphs.graph import Graph
from netdp.graphs.mixing import Mixing
from netdp.graphs.shape import vertex_transitive
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import count, whole
from netdp.privacy.gaussian import gaussian_mu
from netdp.protocols.views import observer_set

# Above this many parties "every pair" is refused: name the observers, and the result holds for them.
MAX_EVERYBODY = 4096

DRAWS = 20


@dataclass(frozen=True)
class Audience:
    """Sets of observers; `same` says that one of the single observers stands for all (vertex-transitive graphs).

    `any_of` parties, whoever they are, if it is more than 1; the sets are then only those that were named besides.
    """

    singles: tuple[int, ...]
    coalitions: tuple[tuple[int, ...], ...]
    everybody: bool
    same: bool
    words: str
    any_of: int = 1

    def sets(self, *, symmetric: bool) -> list[tuple[int, ...]]:
        """The sets to account for; `symmetric` says that the target treats all pairs at one distance alike."""
        singles = self.singles[:1] if self.same and symmetric else self.singles
        return [*((v,) for v in singles), *self.coalitions]


def audience(
    graph: Graph,
    observers: Iterable[int | str] | int | str | None = None,
    coalitions: float | Sequence[Iterable[int | str]] | None = None,
    *,
    colluders: int = 1,
    seed: int = 0,
    draws: int = DRAWS,
    mixing: Mixing = "metropolis",
) -> Audience:
    """Who looks.

    observers : each of these alone; None means every party alone.
    coalitions : in addition, sets that pool what they see; or a share such as 0.1: that many parties drawn at random,
        `draws` times, from `seed`. A drawn coalition says nothing about other coalitions of that size, only about
        its own subsets.
    colluders : how many parties may pool what they see, any of them: the worst coalition of that size counts.
    mixing : with weights of one's own no party stands for another, however symmetric the graph is.

    >>> from netdp import graphs
    >>> audience(graphs.ring(6), coalitions=[[0, 2]]).words
    'every single party; 1 named coalition'
    >>> audience(graphs.ring(6), colluders=3).words
    'any 3 parties together'
    """
    number = count("colluders", colluders)
    if number > 1:
        return _any(graph, number, observers, coalitions, mixing)
    same = False
    if observers is None:
        same = vertex_transitive(graph, mixing)
        if graph.n > MAX_EVERYBODY and not same:
            raise Unsupported(
                f"every pair of {graph.n:,} parties is more than is certified at once (limit {MAX_EVERYBODY:,} parties); "
                "name observers=[…], and the result will hold for those observers only"
            )
        singles = tuple(range(graph.n))
        words = ["every single party"]
    else:
        singles = observer_set(graph, observers)
        many = len(singles)
        words = [f"{'this single party' if many == 1 else f'these {many} single parties'} only"]
    sets: tuple[tuple[int, ...], ...] = ()
    if isinstance(coalitions, float | int):
        size = _size(graph.n, float(coalitions))
        rng = np.random.default_rng(whole("seed", seed))
        sets = tuple(
            tuple(sorted(rng.choice(graph.n, size, replace=False).tolist())) for _ in range(count("draws", draws))
        )
        words.append(
            f"{draws} coalitions of {size} parties drawn at random (seed {seed}), other coalitions may learn more"
        )
    elif coalitions is not None:
        sets = tuple(observer_set(graph, members) for members in coalitions)
        if not sets:
            raise InvalidValue("coalitions is empty; give sets such as [[0, 1]], a share such as 0.1, or None")
        words.append(f"{len(sets)} named coalition{'s' if len(sets) > 1 else ''}")
    return Audience(singles, sets, observers is None, same, "; ".join(words))


def _any(graph: Graph, number: int, observers: object, coalitions: object, mixing: Mixing) -> Audience:
    """Any `number` parties: nobody is named besides, for the worst of all is among them."""
    if observers is not None or coalitions is not None:
        raise InvalidValue(
            f"colluders={number} are any {number} parties; leave out observers={observers!r} and coalitions={coalitions!r}, or "
            "colluders"
        )
    if number >= graph.n:
        raise InvalidValue(f"colluders={number} leaves nobody of {graph.n} parties whose privacy could be at stake")
    return Audience((), (), False, vertex_transitive(graph, mixing), f"any {number} parties together", number)


def _size(n: int, fraction: float) -> int:
    if not 0 < fraction < 1:
        raise InvalidValue(f"coalitions must be a share strictly between 0 and 1 or a list of sets, got {fraction!r}")
    return min(max(1, round(fraction * n)), n - 1)


_DISTANCE = re.compile(r"distance\s*(>=|<=|=)\s*(\d+)")

_EUCLIDEAN = re.compile(r"euclidean\s*(>=|<=)\s*(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)")


@dataclass(frozen=True)
class Rule:
    """`target` is known by `observer` to at most `epsilon`; `line` is where it was read, 0 if nowhere."""

    target: str
    observer: str
    epsilon: float
    line: int = 0

    def __post_init__(self) -> None:
        for name in ("target", "observer"):
            value = str(getattr(self, name)).strip()
            if not value:
                raise InvalidValue(f"the {name} of a rule is empty; write a party, or * for all")
            object.__setattr__(self, name, value)
        if _DISTANCE.fullmatch(self.target) or _EUCLIDEAN.fullmatch(self.target):
            raise InvalidValue(f"the target {self.target!r} is a distance; distances belong to the observer")
        if self.observer.startswith("distance") and _DISTANCE.fullmatch(self.observer) is None:
            raise InvalidValue(f"cannot read {self.observer!r}; write distance>=2, distance<=2 or distance=2")
        if self.observer.startswith("euclidean") and _EUCLIDEAN.fullmatch(self.observer) is None:
            raise InvalidValue(f"cannot read {self.observer!r}; write euclidean>=0.25 or euclidean<=0.25")
        if isinstance(self.epsilon, bool) or not isinstance(self.epsilon, int | float):
            raise InvalidValue(f"epsilon must be a number ≥ 0, got {self.epsilon!r}")
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0):
            raise InvalidValue(
                f"epsilon must be a finite number ≥ 0, got {self.epsilon!r}; leave the rule out for no limit"
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))


@dataclass(frozen=True)
class Policy:
    """How much each party may be known by each other: rules, and the file they came from; or a function of two parties, or both.

    `Policy.read` takes a CSV, one rule per line (`#` comments; a header line is allowed):

        target, observer,    epsilon
        *,      *,           4           # nobody learns more than 4 about anybody
        *,      distance>=2, 1           # nobody two or more hops away more than 1
        Ann,    Bob,         0.1

    or TOML, the same as tables:

        [[rule]]
        target = "*"
        observer = "distance>=2"
        epsilon = 1.0

    A target or an observer is a party or `*`: its name, or its number in a graph without names (what is written is text, so
    that 1 is the party named 1, wherever it stands); an observer may also be `distance>=k`, `distance<=k` or `distance=k`, in
    hops, or `euclidean>=0.25`, `euclidean<=0.25`, the distance of the parties' positions, where the graph has them.

    In Python a policy may also be a function: `Policy(limit=f)` with f(u, v) the largest ε that v may reach about u (by party
    number; inf or None for no limit), and `Policy.by_position(f)` with f of the distance of two positions.

    All rules that name a pair must hold, so the smallest ε wins and the order does not matter. A pair that no rule names is
    not limited. A coalition is held to the strictest limit of its members; any f parties to the strictest limit of all.

    >>> from netdp import graphs
    >>> policy = Policy((Rule("*", "*", 4.0), Rule("*", "distance>=2", 1.0)))
    >>> policy.limits(graphs.path(3))
    array([[nan,  4.,  1.],
           [ 4., nan,  4.],
           [ 1.,  4., nan]])
    >>> Policy(limit=lambda u, v: 1.0 + abs(u - v)).limits(graphs.path(3))[0]
    array([nan,  2.,  3.])
    """

    rules: Sequence[Rule] = ()
    source: str = "policy"
    limit: Callable[[int, int], float | None] | None = None
    position_limit: Callable[[float], float | None] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", _rules(self.rules))
        for name in ("limit", "position_limit"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise InvalidValue(f"{name} must be a function, got {getattr(self, name)!r}")
        if not self.rules and self.limit is None and self.position_limit is None:
            raise InvalidValue(f"{self.source}: a policy needs at least one rule, such as: *, *, 1.0")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a .toml file, or else a CSV; every mistake is named with its line."""
        if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
            raise InvalidValue(f"Policy.read takes the name of a .csv or .toml file, got {path!r}")
        try:
            text = Path(path).read_text("utf-8")
        except OSError as error:
            raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise FileFormatError(path, None, "is not a UTF-8 text file") from None
        rules = _from_toml(path, text) if Path(path).suffix.lower() == ".toml" else _from_csv(path, text)
        if not rules:
            raise FileFormatError(path, None, "holds no rule; write lines such as: *, distance>=2, 1.0")
        return cls(tuple(rules), str(path))

    @classmethod
    def by_position(cls, limit: Callable[[float], float | None], source: str = "policy by position") -> Policy:
        """Of how far apart two parties are, in the units of their positions: `limit` says the largest ε at that distance.

        >>> from netdp import graphs
        >>> field = graphs.geometric(30, 0.4, seed=1)
        >>> near_and_far = Policy.by_position(lambda apart: 4.0 if apart < 0.3 else 1.0).limits(field)
        >>> float(np.nanmin(near_and_far)), float(np.nanmax(near_and_far))
        (1.0, 4.0)
        """
        return cls((), source, None, limit)

    def describe_rules(self) -> list[dict[str, Any]]:
        """JSON-able: every rule, and the names of the functions."""
        rules: list[dict[str, Any]] = [asdict(rule) for rule in self.rules]
        for name, function in (("limit", self.limit), ("position_limit", self.position_limit)):
            if function is not None:
                rules.append({name: getattr(function, "__name__", repr(function))})
        return rules

    def limits(self, graph: Graph) -> FloatArray:
        """[u, v]: the largest ε that v may reach about u; inf where nothing is said, nan on the diagonal."""
        limits = self._functions(graph)
        for rule in self.rules:
            try:
                rows = slice(None) if rule.target == "*" else [graph.index(rule.target)]
                if (match := _EUCLIDEAN.fullmatch(rule.observer)) is not None:
                    apart = _apart(graph)[rows]
                    chosen = apart >= float(match[2]) if match[1] == ">=" else apart <= float(match[2])
                    limits[rows] = np.where(chosen, np.minimum(limits[rows], rule.epsilon), limits[rows])
                    continue
                if (match := _DISTANCE.fullmatch(rule.observer)) is not None:
                    sources = range(graph.n) if rule.target == "*" else rows
                    for u in sources:  # type: ignore[union-attr]
                        chosen = _compare(graph.distances(u), match[1], int(match[2]))
                        limits[u, chosen] = np.minimum(limits[u, chosen], rule.epsilon)
                    continue
                columns = slice(None) if rule.observer == "*" else [graph.index(rule.observer)]
            except NetdpError as error:
                raise FileFormatError(self.source, rule.line or None, str(error)) from None
            limits[rows, columns] = np.minimum(limits[rows, columns], rule.epsilon)
        np.fill_diagonal(limits, np.nan)
        return limits

    def _functions(self, graph: Graph) -> FloatArray:
        """What the functions say; inf where there is none."""
        limits = np.full((graph.n, graph.n), np.inf)
        if self.position_limit is not None:
            others = ~np.eye(graph.n, dtype=np.bool_)  # nobody is asked how far it is from itself
            kinds, which = np.unique(_apart(graph)[others], return_inverse=True)
            said = np.array(
                [_said(self.position_limit(float(one)), f"{self.source} at distance {one:g}") for one in kinds]
            )
            limits[others] = said[which.reshape(-1)]
        if self.limit is not None:
            for u in range(graph.n):
                for v in range(graph.n):
                    if u != v:
                        said_of = _said(self.limit(u, v), f"{self.source} of party {u} and observer {v}")
                        limits[u, v] = min(limits[u, v], said_of)
        return limits


def _said(value: object, where: str) -> float:
    """What a function returned, as a limit."""
    if value is None:
        return math.inf
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not float(value) >= 0:  # type: ignore[arg-type]
        raise InvalidValue(f"{where} says {value!r}; return a number ≥ 0, or None for no limit")
    return float(value)  # type: ignore[arg-type]


def _apart(graph: Graph) -> FloatArray:
    """The distances of all positions."""
    if graph.positions is None:
        raise InvalidValue(
            f"{graph!r} has no positions; make it with graphs.geometric, or give positions=, or limit by hops: distance>=2"
        )
    points = np.asarray(graph.positions, dtype=np.float64)
    return np.asarray(np.sqrt(((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=-1)))


def _rules(given: object) -> tuple[Rule, ...]:
    # A text is a sequence too: of letters.
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise InvalidValue(
            f"a policy is made of rules, Policy([Rule('*', '*', 1.0)]), got {given!r}; "
            "Policy.read('policy.csv') reads a file"
        )
    for rule in given:
        if not isinstance(rule, Rule):
            raise InvalidValue(f"a policy is made of rules, Policy([Rule('*', '*', 1.0)]), got {rule!r} among them")
    return tuple(given)


def _compare(distance: npt.NDArray[np.int32], sign: str, hops: int) -> npt.NDArray[np.bool_]:
    chosen = {">=": distance >= hops, "<=": distance <= hops, "=": distance == hops}[sign]
    return np.asarray(chosen & (distance > 0))


def _from_csv(path: object, text: str) -> list[Rule]:
    rules: list[Rule] = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.split("#", 1)[0].strip()
        if not content:
            continue
        try:
            cells = [
                cell.strip() for cell in next(csv.reader(io.StringIO(content), skipinitialspace=True, strict=True))
            ]
        except csv.Error as error:
            raise FileFormatError(path, number, str(error)) from None
        if not rules and [cell.lower() for cell in cells] == ["target", "observer", "epsilon"]:
            continue
        if len(cells) != 3:
            raise FileFormatError(path, number, f"has {len(cells)} columns, not 3: target, observer, epsilon")
        try:
            epsilon = float(cells[2])
        except ValueError:
            raise FileFormatError(path, number, f"epsilon {cells[2]!r} is not a number") from None
        rules.append(_rule(path, number, cells[0], cells[1], epsilon))
    return rules


def _from_toml(path: object, text: str) -> list[Rule]:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise FileFormatError(path, int(line[1]) if line else None, f"is not valid TOML: {error}") from None
    if set(content) != {"rule"} or not isinstance(content["rule"], list):
        raise FileFormatError(path, None, "must consist of [[rule]] tables with target, observer and epsilon")
    lines = [i for i, line in enumerate(text.splitlines(), start=1) if line.strip().startswith("[[rule]]")]
    rules = []
    for i, entry in enumerate(content["rule"]):
        number = lines[i] if i < len(lines) else None
        if not isinstance(entry, dict) or set(entry) != {"target", "observer", "epsilon"}:
            found = sorted(entry) if isinstance(entry, dict) else entry
            raise FileFormatError(path, number, f"a rule has target, observer and epsilon; this one has {found}")
        rules.append(_rule(path, number, entry["target"], entry["observer"], entry["epsilon"]))
    return rules


def _rule(path: object, line: int | None, target: object, observer: object, epsilon: object) -> Rule:
    try:
        return Rule(str(target), str(observer), epsilon, line or 0)  # type: ignore[arg-type]
    except InvalidValue as error:
        raise FileFormatError(path, line, str(error)) from None


SCOPES = 'scope must be "worst", "mean", "beyond:2" (pairs at least 2 hops apart) or a Policy'


@dataclass(frozen=True)
class Demand:
    """(σ/Δ)² that a loss asks for, and the party u that asks for it (-1: none, or a mean)."""

    value: float
    party: int


@dataclass(frozen=True, eq=False)
class Target:
    """ε at δ over a scope, on one graph.

    >>> from netdp import graphs
    >>> Target(graphs.ring(5), 1.0, 1e-6, "beyond:2").words
    'every pair at least 2 hops apart'
    """

    graph: Graph
    epsilon: float | None
    delta: float
    scope: str | Policy = "worst"

    def __post_init__(self) -> None:
        if isinstance(self.delta, bool) or not isinstance(self.delta, int | float) or not 0 <= self.delta < 1:
            raise InvalidValue(f"delta must lie in [0, 1), got {self.delta!r}; 1e-6 is a usual choice")
        if isinstance(self.scope, Policy):
            if self.epsilon is not None:
                raise InvalidValue(
                    f"a policy states its own epsilons, got epsilon={self.epsilon!r} as well; give "
                    f"epsilon=None, or add the rule *, *, …"
                )
            self.limits  # noqa: B018  unknown parties are refused now
            return
        if not isinstance(self.scope, str) or (self.scope not in ("worst", "mean") and self.hops < 1):
            raise InvalidValue(f"{SCOPES}, got {self.scope!r}")
        epsilon = self.epsilon
        if (
            isinstance(epsilon, bool)
            or not isinstance(epsilon, int | float)
            or not (math.isfinite(epsilon) and epsilon >= 0)
        ):
            raise InvalidValue(f"epsilon must be a finite number ≥ 0, got {epsilon!r}")
        if self.hops > 1 and all(int(self.graph.distances(u).max()) < self.hops for u in range(self.graph.n)):
            raise InvalidValue(
                f"no two parties are {self.hops} hops apart in {self.graph!r}; choose a smaller distance"
            )

    @cached_property
    def hops(self) -> int:
        """k of beyond:k, 0 for other scopes."""
        match = re.fullmatch(r"beyond:(\d{1,9})", self.scope) if isinstance(self.scope, str) else None
        return int(match[1]) if match else 0

    @cached_property
    def symmetric(self) -> bool:
        """Whether only distances matter, not who is who; so it may be with a policy, too."""
        if isinstance(self.scope, str) or self.uniform:
            return True
        stated: dict[int, float] = {}
        for u in range(self.graph.n):
            others = np.arange(self.graph.n) != u
            hops, limits = self.graph.distances(u)[others], self.limits[u, others]
            for apart in np.unique(hops).tolist():
                here = limits[hops == apart]
                if not (here == stated.setdefault(apart, float(here[0]))).all():
                    return False
        return True

    @cached_property
    def uniform(self) -> bool:
        """Whether one limit holds for all pairs: scope "worst", or a policy that says the same."""
        if isinstance(self.scope, str):
            return self.scope == "worst"
        limits = self.limits[~np.eye(self.graph.n, dtype=np.bool_)]
        return limits.size > 0 and bool(np.isfinite(limits).all() and (limits == limits[0]).all())

    @cached_property
    def limits(self) -> FloatArray:
        """μ* for every pair, of a policy."""
        assert isinstance(self.scope, Policy)
        epsilon = self.scope.limits(self.graph)
        if not np.isfinite(epsilon).any():
            raise InvalidValue(f"{self.scope.source} limits no pair of {self.graph!r}; add a rule such as: *, *, 1.0")
        filled = np.where(np.isnan(epsilon), np.inf, epsilon)
        kinds, inverse = np.unique(filled, return_inverse=True)
        allowed = np.where(np.isinf(kinds), np.inf, gaussian_mu(kinds, self.delta))  # no limit, also at δ = 0
        return np.asarray(allowed[inverse].reshape(filled.shape))

    @cached_property
    def mu(self) -> float:
        """μ* of the budget; of a policy, of its strictest rule."""
        if isinstance(self.scope, Policy):
            return float(self.limits.min())
        return float(gaussian_mu(self.epsilon, self.delta))  # type: ignore[arg-type]

    @property
    def words(self) -> str:
        """For whom it holds, in words."""
        if isinstance(self.scope, Policy):
            return f"every pair that {self.scope.source} limits"
        if self.hops:
            return f"every pair at least {self.hops} hops apart"
        if self.scope == "mean":
            return (
                "the mean loss over the parties, for the worst observer (a mean is not a guarantee: single "
                "parties may lose more)"
            )
        return "every pair"

    def demand(self, factor: FloatArray, observers: tuple[int, ...]) -> Demand:
        """What the losses `factor` (nan at the observers) ask for; refuses what no noise can give."""
        if self.scope == "mean":
            mean = float(np.nanmean(factor))
            return Demand(self._over(np.asarray([mean]), np.asarray([self.mu]), (-1,), observers)[0], -1)
        allowed = self._allowed(observers)
        value, party = self._over(np.nan_to_num(factor, nan=0.0), allowed, range(len(factor)), observers)
        return Demand(value, party if value > 0 else -1)

    def strictest_neighbour(self, sets: Sequence[tuple[int, ...]]) -> tuple[float, tuple[int, ...]] | None:
        """What a first message asks for where the strictest limit is a neighbour's, and who sees it; None where it is not.

        >>> from netdp import graphs
        >>> from netdp.protocols import Policy
        >>> from netdp.protocols.target import Rule
        >>> near, far = Policy([Rule("*", "*", 1.0)]), Policy([Rule("*", "*", 4.0), Rule("*", "distance>=2", 1.0)])
        >>> [Target(graphs.ring(5), None, 1e-6, one).strictest_neighbour([(0,)]) is None for one in (near, far)]
        [False, True]
        """
        if self.scope == "mean" or self.hops > 1 or not sets:
            return None
        if isinstance(self.scope, str):
            return (1.0 / self.mu**2 if self.mu > 0 else np.inf), sets[0]
        strictest, seen_by = np.inf, None
        for observers in sets:
            allowed = self._allowed(observers)
            allowed[list(observers)] = np.inf
            least = float(allowed.min())
            neighbour = any(float(allowed[self.graph.neighbors(v)].min(initial=np.inf)) == least for v in observers)
            if least < strictest:
                strictest, seen_by = least, observers if neighbour else None
            elif least == strictest and neighbour and seen_by is None:
                seen_by = observers
        if seen_by is None or not strictest < np.inf:
            return None
        return (1.0 / strictest**2 if strictest > 0 else np.inf), seen_by

    def _allowed(self, observers: tuple[int, ...]) -> FloatArray:
        """μ* for every party against these observers together."""
        if isinstance(self.scope, Policy):
            # nobody named: anybody may be among them, and a coalition is held to the strictest limit of its members
            return np.asarray((self.limits[:, list(observers)] if observers else self.limits).min(axis=1))
        allowed = np.full(self.graph.n, self.mu)
        if self.hops > 1:
            allowed[self.graph.distances(list(observers)) < self.hops] = np.inf
        return allowed

    def _over(
        self, factor: FloatArray, allowed: FloatArray, parties: range | tuple[int, ...], observers: tuple[int, ...]
    ) -> tuple[float, int]:
        hopeless = (factor > 0) & (allowed == 0)
        if hopeless.any():
            party = parties[int(np.flatnonzero(hopeless)[0])]
            who = "the mean party" if party < 0 else f"party {party}"
            raise Unsupported(
                f"no noise level meets this: {who} is seen by {_names(observers)} (loss factor "
                f"{float(factor[hopeless][0]):.3g}), "
                f"and Gaussian noise gives no guarantee at delta = {self.delta:g}; ask for delta > 0, such as 1e-6"
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            asked = np.where(factor > 0, factor / allowed**2, 0.0)
        worst = int(np.argmax(asked))
        if not math.isfinite(asked[worst]):
            raise Unsupported(
                f"no finite noise level meets this: party {parties[worst]} against {_names(observers)} allows only "
                f"mu = {allowed[worst]:.3g}; allow a larger epsilon or delta"
            )
        return float(asked[worst]), int(parties[worst])


def _names(observers: tuple[int, ...]) -> str:
    if not observers:
        return "some coalition"
    if len(observers) == 1:
        return f"party {observers[0]}"
    return (
        f"the coalition of {len(observers)} parties "
        f"({', '.join(map(str, observers[:6]))}{', …' if len(observers) > 6 else ''})"
    )
