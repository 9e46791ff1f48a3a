"""The front door: `account` for one set of observers or for any so many of them, `pairwise` for every observer alone.

Who learns most, and who loses most: every observer alone against everybody, and the worst of them named.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from netdp.engines.choice import plain_algebra
from netdp.engines.maps import map_items
from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import FloatArray, Progress
from netdp.numerics.checks import check_delta, check_epsilon, positive, whole
from netdp.privacy.curve import Curve
from netdp.privacy.curves import GaussianCurve, SharedCurve, everywhere
from netdp.privacy.guarantee import Guarantee, weakest
from netdp.privacy.observers import Observers
from netdp.privacy.profile import ProfileCurve, ReadCurve
from netdp.privacy.renyi import RenyiCurve
from netdp.privacy.wording import readable
from netdp.protocols.base import Protocol
from netdp.protocols.coalitions import FIXED, against_any
from netdp.protocols.table import certified, certified_pairs, published, published_pairs
from netdp.protocols.views import observer_set, realised, who_looks

METHODS = {"certified": (certified, certified_pairs), "published": (published, published_pairs)}
"""What `method=` may be, and the tables that hold its accountants: for observers, and for all pairs."""

# A matrix of this many parties takes 3 GB; one of δ(ε) tables is limited to as many numbers.
MAX_PAIRWISE = 20_000

NOT_STEERED = (
    "what happened (who exchanged with whom, where tokens went, who was away or cut off) did not depend on what anybody saw; of a "
    "run that somebody steered after looking only what is stated before the run counts"
)
"""What a loss assumes that is computed from a transcript of what chance, or others, decided: docs/proofs/peers.md#steered."""

# Points of a table of all pairs, which is made for files and composition only: between them the chord is a bound.
_KNOTS = 256


def account(
    protocol: Protocol,
    observers: Any = None,
    *,
    colluders: int | None = None,
    method: str = "certified",
    transcript: Any = None,
    progress: Progress | None = None,
    **options: Any,
) -> Guarantee:
    """What `observers` (several = they collude) learn about every other party, before anything is sent.

    observers    parties by number or name; of a `Shuffle` the curator looks: "curator", or ["curator", 3, 5] if users 3
                 and 5 collude with it
    colluders    instead of observers: any so many parties, whoever they are (with the curator, if there is one). For every
                 party the worst of all coalitions of that size counts; `found` is the worst one that was found
    method       "certified", or "published": the paper's formula, which is not a guarantee and says so
    transcript   `run.transcript`: the loss of what really happened, where chance had a part in it
    progress     told (done, total) now and then

    Other options belong to particular protocols; one that the protocol does not know is refused.

    >>> import netdp
    >>> p = netdp.Gossip(netdp.graphs.hypercube(6), rounds=20, sigma=4.0, masks=100.0)
    >>> loss = account(p, observers=[0])
    >>> float(np.nanmax(loss.factor).round(4)), str(loss.claim.value)      # the curator's limit is 1/63 = 0.0159
    (0.0182, 'exact')
    >>> both = account(p, colluders=2)
    >>> both.observers.words, float(both.factor[0].round(4)), len(both.found.observers.parties)
    ('any 2 parties together', 0.0191, 2)
    >>> account(p, observers=[0], banana=1)
    Traceback (most recent call last):
      ...
    netdp.errors.InvalidValue: the certified loss of Gossip takes no option 'banana'; it has none
    """
    table, _ = _tables(method)
    _check_protocol(protocol)
    if isinstance(observers, Observers) and observers.any_of and colluders is None:
        observers, colluders = observers.roles or None, observers.any_of
    if colluders is not None:
        return _against_any(protocol, observers, colluders, method, transcript, progress, options)
    who = who_looks(protocol, observers)
    notes: tuple[str, ...] = ()
    if transcript is not None:
        protocol, options, notes = _what_happened(protocol, transcript, options)
    loss = _with(table(protocol, _members(who), progress=progress, **options), notes)
    return _complete(protocol, loss, who, (protocol.n,), list(who.parties))


def pairwise(
    protocol: Protocol,
    *,
    method: str = "certified",
    transcript: Any = None,
    progress: Progress | None = None,
    workers: int | None = None,
    **options: Any,
) -> Guarantee:
    """What every party v alone learns about every other party u: matrices [u, v], nan on the diagonal.

    `progress(done, total)` is called now and then. Where observers have to be accounted for one by one, and that takes more
    than a second or two, they are divided among worker processes, or where `netdp.engine` says; `workers` instead of as many
    as it has. The losses do not depend on it. Other arguments are those of `account`.
    """
    table, all_at_once = _tables(method)
    _check_protocol(protocol)
    n = protocol.n
    if protocol.roles:
        raise Unsupported(
            f"single parties see nothing of {type(protocol).__name__} but encrypted reports; "
            f'use account(protocol, "{protocol.roles[0]}")'
        )
    if n > MAX_PAIRWISE:
        raise Unsupported(
            f"all pairs of {n} parties are {n**2:.1e} numbers; pairwise is offered up to {MAX_PAIRWISE} parties, "
            "use account(protocol, observers=[v]) for the observers of interest"
        )
    notes: tuple[str, ...] = ()
    if transcript is not None:
        protocol, options, notes = _what_happened(protocol, transcript, options)
    each, diagonal = Observers(each=True), np.diag_indices(n)
    if all_at_once.handles(protocol):
        return _complete(
            protocol, _with(all_at_once(protocol, progress=progress, **options), notes), each, (n, n), diagonal
        )
    with plain_algebra():
        first = table(protocol, (0,), **options)
        if not first.curve.shape:  # one curve for any observer and anybody else: all pairs are alike
            return _complete(protocol, _with(first, notes), each, (n, n), diagonal)
        protocol.prepare()
    rest = map_items(
        _column,
        range(1, n),
        shared=(method, protocol, options),
        progress=None if progress is None else lambda done, _: progress(done + 1, n),
        portable=table.ours(protocol),
        workers=workers,
    )
    said = [first, *rest]
    factors = [column.factor for column in said if column.factor is not None]
    together = dataclasses.replace(
        first,
        curve=_stacked([column.curve for column in said]),
        claim=weakest(*(column.claim for column in said)),
        assumptions=tuple(dict.fromkeys(text for column in said for text in column.assumptions)),
        factor=np.column_stack(factors) if len(factors) == n else None,
        slack=max(column.slack for column in said),
    )
    return _complete(protocol, _with(together, notes), each, (n, n), diagonal)


def _column(method: str, protocol: Protocol, options: dict[str, Any], v: int) -> Guarantee:
    """What v alone learns about everybody else: a column of the matrix."""
    loss: Guarantee = METHODS[method][0](protocol, (v,), **options)
    return loss


def _against_any(
    protocol: Protocol,
    observers: Any,
    colluders: int,
    method: str,
    transcript: Any,
    progress: Progress | None,
    options: dict[str, Any],
) -> Guarantee:
    """The worst over all coalitions of a size, for every party (docs/proofs/coalitions.md#any-coalition)."""
    number = whole("colluders", colluders, 1)
    n = protocol.n
    if number >= n:
        raise InvalidValue(f"colluders={number} leaves nobody of {n} parties whose privacy could be at stake")
    if observers is not None and (not protocol.roles or who_looks(protocol, observers).parties):
        raise InvalidValue(
            f"give observers or colluders, not both; got observers={observers!r} and colluders={colluders!r}, which are any so many"
        )
    if method != "certified":
        raise Unsupported(f"method={method!r} knows named observers only; name them instead of colluders={colluders}")
    notes: tuple[str, ...] = ()
    if transcript is not None:
        protocol, options, notes = _what_happened(protocol, transcript, options)
    loss = _with(against_any(protocol, number, options, progress), notes)
    who = Observers(roles=protocol.roles, any_of=number)
    complete = _complete(protocol, loss, who, (n,), [])
    found = complete.found
    labels = complete.names
    if found is not None and protocol.roles and not found.observers.roles:
        found = dataclasses.replace(found, observers=dataclasses.replace(found.observers, roles=protocol.roles))
    if found is not None and labels is not None:
        names = tuple(labels[v] for v in found.observers.parties)
        found = dataclasses.replace(
            found, observers=dataclasses.replace(found.observers, names=names), name=labels[found.target]
        )
    return dataclasses.replace(complete, assumptions=(*complete.assumptions, FIXED), found=found)


def _members(who: Observers) -> tuple[Any, ...]:
    return (*who.roles, *who.parties)


def _what_happened(
    protocol: Protocol, transcript: Any, options: dict[str, Any]
) -> tuple[Any, dict[str, Any], tuple[str, ...]]:
    """The protocol without chance, or the transcript as an option of an accountant that takes it; and what that assumes."""
    if "transcript" in certified.options(protocol):
        return protocol, {**options, "transcript": transcript}, (NOT_STEERED,)
    found = realised(protocol, transcript)
    return found, options, () if found == protocol else (NOT_STEERED,)  # equal: nothing was left to chance


def _with(loss: Guarantee, notes: tuple[str, ...]) -> Guarantee:
    return dataclasses.replace(loss, assumptions=(*loss.assumptions, *notes)) if notes else loss


def _complete(protocol: Protocol, loss: Guarantee, who: Observers, shape: tuple[int, ...], nobody: Any) -> Guarantee:
    """With one entry per target, the observers in structure, and names."""
    curve, factor = loss.curve, loss.factor
    if not curve.shape:
        curve = everywhere(curve, shape, nobody)
        if factor is not None:
            factor = np.full(shape, float(factor))
            factor[nobody] = np.nan
    if curve.shape != shape:
        raise InvalidValue(
            f"the accountant of {type(protocol).__name__} returned losses of shape {curve.shape}, expected {shape}: one per "
            "party, or a single one for all"
        )
    network = protocol.network
    labels = None if network is None else network.labels
    return dataclasses.replace(loss, curve=curve, factor=factor, observers=who, names=labels, network=network)


def _stacked(columns: list[Curve]) -> Curve:
    """One curve per pair from one curve object per observer."""
    if all(isinstance(column, GaussianCurve) for column in columns):
        return GaussianCurve(np.column_stack([column.mu for column in columns]))  # type: ignore[attr-defined]
    if all(isinstance(column, RenyiCurve) and column.rho is not None for column in columns):
        return RenyiCurve.linear(np.column_stack([column.rho for column in columns]))  # type: ignore[attr-defined]
    for column in columns:
        if not isinstance(column.curves if isinstance(column, SharedCurve) else column, ProfileCurve):
            raise Unsupported(
                f"all pairs of {column.kind} curves cannot be put together; account for the observers one by one"
            )
    return PairsCurve(columns)


class PairsCurve(ReadCurve):
    """Entry [u, v] is entry u of the curves of observer v: ε and δ are exactly theirs."""

    __slots__ = ("_columns",)
    _columns: tuple[Curve, ...]

    def __init__(self, columns: Sequence[Curve]) -> None:
        self._set(_columns=tuple(columns), _held=None)

    def __reduce__(self) -> tuple[Any, ...]:
        return PairsCurve, (self._columns,)

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self._columns[0].shape, len(self._columns))

    def delta(self, epsilon: ArrayLike) -> FloatArray:
        return self._read("delta", check_epsilon(epsilon))

    def epsilon(self, delta: ArrayLike) -> FloatArray:
        return self._read("epsilon", check_delta(delta))

    def _read(self, what: str, asked: FloatArray) -> FloatArray:
        shape = np.broadcast_shapes(self.shape, asked.shape)
        each = np.broadcast_to(asked, shape) if asked.ndim else np.broadcast_to(asked, len(self._columns))
        read = [
            np.asarray(getattr(column, what)(each[..., v] if asked.ndim else each[v]))
            for v, column in enumerate(self._columns)
        ]
        return np.stack(read, axis=-1)

    def _points(self) -> FloatArray:
        inner = [column.curves if isinstance(column, SharedCurve) else column for column in self._columns]
        points = np.unique(np.concatenate([one.epsilons for one in inner if isinstance(one, ProfileCurve)]))
        if len(points) > _KNOTS:
            points = points[np.unique(np.linspace(0, len(points) - 1, _KNOTS).round().astype(np.int64))]
        if math.prod(self.shape) * len(points) > MAX_PAIRWISE**2:
            raise Unsupported(
                f"a table of all pairs of {self.shape[0]} parties has {math.prod(self.shape) * len(points):.1e} numbers; account "
                "for the observers of interest one by one"
            )
        return points


def _tables(method: str) -> tuple[Any, Any]:
    if method not in METHODS:
        raise InvalidValue(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    return METHODS[method]


def _check_protocol(protocol: Any) -> None:
    if not isinstance(protocol, Protocol):
        raise InvalidValue(
            f"the first argument must be a protocol such as netdp.Gossip(graph, rounds=20, sigma=4.0), got {protocol!r}"
        )


_EVERYBODY = 200  # observers that are looked at one by one unless they are named


@dataclass(frozen=True, eq=False)
class Exposure:
    """What each of some observers learns, alone, at one δ.

    observers   who was looked at
    epsilons    (observers, n) what each learns about everybody; nan about itself
    degrees     how many links each observer has; empty where there is no graph
    names       of all parties; None: their numbers
    """

    delta: float
    observers: tuple[int, ...]
    epsilons: FloatArray
    degrees: tuple[int, ...] = ()
    names: tuple[str, ...] | None = None

    @property
    def learns(self) -> FloatArray:
        """The most that each observer learns about anybody."""
        return np.asarray(np.nanmax(self.epsilons, axis=1))

    @property
    def hub(self) -> int:
        """The observer who learns most."""
        return self.observers[int(np.argmax(self.learns))]

    @property
    def victim(self) -> int:
        """The party about whom it learns most."""
        return int(np.nanargmax(self.epsilons[int(np.argmax(self.learns))]))

    @property
    def worst(self) -> float:
        """How much: the largest ε of all pairs."""
        return float(self.learns.max())

    def rows(self, top: int = 5) -> list[dict[str, Any]]:
        """The observers who learn most: who, about whom, how much, what they learn about the others."""
        chosen = np.argsort(-self.learns, kind="stable")[:top].tolist()
        return [
            {
                "observer": self._name(self.observers[i]),
                **({"links": self.degrees[i]} if self.degrees else {}),
                "learns most about": self._name(int(np.nanargmax(self.epsilons[i]))),
                "epsilon": float(self.learns[i]),
                "in the median": float(np.nanmedian(self.epsilons[i])),
            }
            for i in chosen
        ]

    def _name(self, party: int) -> str:
        return str(party) if self.names is None else self.names[party]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {"delta": self.delta, "rows": self.rows(len(self.observers))}

    def __str__(self) -> str:
        lines = [
            f"{self._name(self.hub)} learns most: ε = {readable(self.worst)} at δ = {self.delta:g}, about {self._name(self.victim)}"
        ]
        for row in self.rows():
            links = f", {row['links']} links" if "links" in row else ""
            lines.append(
                f"  {row['observer']}{links}: {readable(row['epsilon'])} about {row['learns most about']}, "
                f"{readable(row['in the median'])} in the median"
            )
        return "\n".join(lines)


def who_learns_most(
    protocol: Protocol,
    delta: float,
    observers: Iterable[int | str] | int | str | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Exposure:
    """Every party alone as an observer, or each of `observers`: what it learns about everybody, the worst first.

    Options are those of `account`.

    >>> from netdp import graphs
    >>> from netdp.protocols import GraphWalkSum
    >>> found = who_learns_most(GraphWalkSum(graphs.star(5), steps=25, sigma=5.0), delta=1e-5)
    >>> found.hub, found.degrees[found.hub], found.worst == found.rows()[0]["epsilon"]
    (0, 4, True)
    """
    positive("delta", delta)
    network = protocol.network
    if observers is not None:
        who = observer_set(protocol.n if network is None else network, observers)
    elif protocol.n <= _EVERYBODY:
        who = tuple(range(protocol.n))
    else:
        raise Unsupported(
            f"{protocol.n} observers one by one take long; name those of interest, such as the ones with the most links: "
            "who_learns_most(protocol, delta, observers=[…])"
        )
    protocol.prepare()
    ours = certified.ours(protocol)
    found = np.array(
        [*map_items(_learned, who, shared=(protocol, delta, options), progress=progress, portable=ours)]
    ).reshape(len(who), protocol.n)
    degrees = () if network is None else tuple(int(network.degrees[v]) for v in who)
    return Exposure(float(delta), who, found, degrees, None if network is None else network.labels)


def _learned(protocol: Protocol, delta: float, options: dict[str, Any], v: int) -> FloatArray:
    """ε of everybody against v alone."""
    return np.asarray(account(protocol, Observers((v,)), **options).epsilon(delta))
