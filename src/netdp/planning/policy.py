"""A policy: how much each party may be known by each other, read from a small CSV or TOML file.

CSV, one rule per line (`#` comments; a header line is allowed):

    target, observer,    epsilon
    *,      *,           4           # nobody learns more than 4 about anybody
    *,      distance>=2, 1           # nobody two or more hops away more than 1
    Ann,    Bob,         0.1

TOML, the same as tables:

    [[rule]]
    target = "*"
    observer = "distance>=2"
    epsilon = 1.0

A target or an observer is a party or `*`: its name, or its number in a graph without names (what is written is text, so
that 1 is the party named 1, wherever it stands); an observer may also be `distance>=k`, `distance<=k` or
`distance=k`, in hops, or `euclidean>=0.25`, `euclidean<=0.25`, the distance of the parties' positions, where the graph has them.

In Python a policy may also be a function: `Policy(limit=f)` with f(u, v) the largest ε that v may reach about u (by party
number; inf or None for no limit), and `Policy.by_position(f)` with f of the distance of two positions.

**All rules that name a pair must hold**, so the smallest ε wins and the order does not matter. A pair that no rule names is
not limited. A coalition is held to the strictest limit of its members; any so many parties to the strictest limit of all.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import FileFormatError, InvalidValue, NetdpError
from netdp.graphs import Graph
from netdp.numerics.arrays import FloatArray

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
    """Rules, and the file they came from; or a function of two parties, or both.

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
