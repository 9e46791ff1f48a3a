"""The answer to "what can these observers learn?": one type and one JSON shape for every protocol.

The certified loss stands beside what one might do or believe instead: the formula of a paper, the plain form of the protocol,
local DP, a trusted curator. Where the parties are nodes of a network and the observers have names, losses are also stated by
distance. A loss without an error misleads, so the predicted error of the protocol's own answer belongs to it. Plain data: how it
looks on a terminal is a matter of `netdp.report`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.numerics.arrays import FloatArray, Progress, jsonable
from netdp.privacy.guarantee import Claim, Guarantee
from netdp.privacy.wording import readable
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import ExpectedError, expected_error, forecasts
from netdp.protocols.alternatives import local_dp, sampler, trusted_curator
from netdp.protocols.base import Protocol
from netdp.protocols.grid import norm_order
from netdp.protocols.planning import baselines_at, share_baselines
from netdp.protocols.table import certified, plainest

PUBLISHED = "published (not a bound)"

LOCAL = "local DP"

CURATOR, SHUFFLER = "trusted curator", "trusted shuffler"

SAMPLER = "trusted sampler of √n reports"

OWN = "loss"
"""What the protocol's own loss is called beside its alternatives."""


@dataclass(frozen=True)
class Figures:
    """One loss over a group of parties: the worst ε(δ), and factors of the local-DP loss where the loss states them."""

    epsilon: float
    worst_factor: float | None
    mean_factor: float | None

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        factors = {"worst_factor": self.worst_factor, "mean_factor": self.mean_factor}
        return {"epsilon": _number(self.epsilon)} | {k: None if v is None else _number(v) for k, v in factors.items()}


@dataclass(frozen=True)
class AnswerRow:
    """The losses of one group of parties: those `hops` away from the observers, or everybody (None)."""

    hops: int | None
    parties: int
    losses: dict[str, Figures]

    @property
    def own(self) -> Figures:
        """Of the protocol as it is."""
        return self.losses[OWN]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "hops": self.hops,
            "parties": self.parties,
            "losses": {name: figures.to_dict() for name, figures in self.losses.items()},
        }


@dataclass(frozen=True, eq=False)
class Answer:
    """What observers can learn from one protocol at one δ, and how good the protocol's own answer will be.

    loss           the certified loss (or an estimate, as its claim says)
    alternatives   by name: another loss, or the reason why there is none
    error          predicted, or why it is not
    plain          what the family calls the protocol's plain form, such as "plain gossip"; None where there is none
    renyi          an order and the worst Rényi divergence of that order, where it was asked for
    """

    protocol: Protocol
    delta: float
    loss: Guarantee
    alternatives: dict[str, Guarantee | str]
    error: ExpectedError | str
    plain: str | None = None
    renyi: tuple[float, float] | None = None

    @property
    def epsilon(self) -> float:
        """The worst ε over all parties."""
        return self.loss.worst_epsilon(self.delta)

    @property
    def question(self) -> str:
        """What the numbers answer."""
        return f"What {self.loss.observers.words} can learn about a party: worst ε at δ = {self.delta:g}"

    @property
    def label(self) -> str:
        """What the protocol's own loss is, for the head of a column."""
        if self.plain is None:
            return self.loss.claim.label
        return f"{self.loss.claim.value}, {'as chosen' if self.has_extras else self.plain}"

    @property
    def has_extras(self) -> bool:
        """Whether the protocol does more than its plain form, which then stands beside it."""
        return self.plain is not None and self.plain in self.alternatives

    def other(self, *names: str) -> Guarantee | None:
        """The first alternative of these names that there is a loss of."""
        return next((one for name in names if isinstance(one := self.alternatives.get(name), Guarantee)), None)

    def column(self, name: str) -> str:
        """What an alternative is called at the head of a column."""
        other = self.alternatives[name]
        return f"{other.claim.value}, {name}" if name == self.plain and isinstance(other, Guarantee) else name

    @cached_property
    def distances(self) -> npt.NDArray[np.int32] | None:
        """How many hops every party is away from the nearest observer; None without a network, or without named observers."""
        network, parties = self.protocol.network, self.loss.observers.parties
        return None if network is None or not parties else network.distances(parties)

    @cached_property
    def by_distance(self) -> tuple[AnswerRow, ...]:
        """A row for every distance from the observers; none where distances are unknown."""
        if self.distances is None:
            return ()
        hops = range(1, int(self.distances.max(initial=0)) + 1)
        return tuple(self._row(away, self.distances == away) for away in hops)

    @cached_property
    def everyone(self) -> AnswerRow:
        """All parties but the observers."""
        members = np.ones(self.protocol.n, dtype=np.bool_)
        members[list(self.loss.observers.parties)] = False
        return self._row(None, members)

    @property
    def formula_fails(self) -> bool:
        """Whether the published formula of a plain protocol lies below its exact loss at some distance."""
        plain = self.plain if self.has_extras else OWN
        if self.plain is None or self.other(PUBLISHED) is None:
            return False
        pairs = [(row.losses[str(plain)].worst_factor, row.losses[PUBLISHED].worst_factor) for row in self.by_distance]
        return any(loss is not None and said is not None and loss > 1.001 * said for loss, said in pairs)

    def _row(self, hops: int | None, members: npt.NDArray[np.bool_]) -> AnswerRow:
        losses = {OWN: self.loss}
        for name in (PUBLISHED, self.plain):  # the others are the same for everybody
            if name is not None and (other := self.other(name)) is not None:
                losses[name] = other
        return AnswerRow(
            hops, int(members.sum()), {name: _figures(one, members, self.delta) for name, one in losses.items()}
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, the same keys for every protocol; what they mean is written in docs/howto/account.md."""
        loss = self.loss
        return {
            "protocol": self.protocol.outline(),
            "observers": loss.observers.to_dict(),
            "delta": self.delta,
            "epsilon": _number(self.epsilon),
            "claim": loss.claim.value,
            "certified": loss.is_certified,
            "adjacency": loss.adjacency.value,
            "unit": loss.unit.value,
            "assumptions": list(loss.assumptions),
            "references": list(loss.references),
            "error": error_dict(self.error),
            "loss": loss.to_dict(self.delta),
            "distances": None if self.distances is None else self.distances.tolist(),
            "by_distance": [row.to_dict() for row in self.by_distance],
            "everyone": self.everyone.to_dict(),
            "alternatives": {name: self._other(one) for name, one in self.alternatives.items()},
            "rdp": None if self.renyi is None else {"order": self.renyi[0], "worst": _number(self.renyi[1])},
        }

    def _other(self, other: Guarantee | str) -> dict[str, Any]:
        if isinstance(other, str):
            return {"not_available": other}
        return {
            "epsilon": _number(other.worst_epsilon(self.delta)),
            "claim": other.claim.value,
            "certified": other.is_certified,
            "references": list(other.references),
            "errata": list(other.errata),
        }

    def __str__(self) -> str:
        lines = [self.protocol.describe(), self.question]
        lines.append(f"  {self.label}: {loss_words(self.loss, self.delta)}")
        for name, other in self.alternatives.items():
            said = other if isinstance(other, str) else loss_words(other, self.delta)
            lines.append(f"  {self.column(name)}: {said}")
        return "\n".join([*lines, error_words(self.protocol, self.error)])


def answer(
    protocol: Protocol,
    observers: int | str | Iterable[int | str] | None = None,
    delta: float = 1e-6,
    *,
    colluders: int | None = None,
    rdp: float | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Account for a protocol against `observers`, or any `colluders` parties, and for what one might do or believe instead.

    The plain form is accounted for against named observers only: against any coalition that would take as long again.

    >>> from netdp import Gossip
    >>> from netdp import graphs
    >>> found = answer(Gossip(graphs.hypercube(4), rounds=8, sigma=2.0, masks=10.0), observers=[0])
    >>> [row.parties for row in found.by_distance]
    [4, 6, 4, 1]
    >>> list(found.alternatives)
    ['published (not a bound)', 'plain gossip', 'local DP', 'trusted curator']
    """
    has_plain = plainest.handles(protocol)
    if not (0 < delta < 1 or (delta == 0 and not has_plain)):
        raise InvalidValue(f"delta must lie strictly between 0 and 1, got {delta!r}; 1e-6 is a usual choice")
    if rdp is not None and not (math.isfinite(rdp) and rdp > 1):
        raise InvalidValue(f"rdp={rdp:g}: the order of a Rényi divergence is a finite number above 1, such as 2")
    against: dict[str, Any] = {} if colluders is None else {"colluders": colluders}
    loss = account(protocol, observers, progress=progress, **against)
    named: Any = observers  # published formulas know named colluders only, or their number
    if observers is None:
        named = [*protocol.roles, *range(colluders or 1)]
    ways: dict[str, Callable[[], Guarantee]] = {
        PUBLISHED: lambda: account(protocol, named, method="published"),
    }
    plain = None
    if has_plain and observers is not None:
        plain, form = plainest(protocol)
        if form != protocol:
            ways[plain] = lambda: account(form, observers, progress=progress)
    ways[LOCAL] = lambda: local_dp(protocol)
    ways[SHUFFLER if protocol.roles else CURATOR] = lambda: trusted_curator(protocol)
    if sampler.handles(protocol):
        ways[SAMPLER] = lambda: sampler(protocol)
    others: dict[str, Guarantee | str] = {}
    for name, make in ways.items():
        try:
            others[name] = make()
        except NetdpError as problem:
            others[name] = str(problem)
    renyi = None if rdp is None else (rdp, _renyi(protocol, observers, rdp, against))
    return Answer(protocol, delta, loss, others, predicted(protocol), plain, renyi)


def _renyi(protocol: Protocol, observers: Any, order: float, against: dict[str, Any]) -> float:
    """The worst Rényi divergence, from the statement that is made for it where there is one."""
    options = dict(against)
    if "statement" in certified.options(protocol):
        options["statement"] = "renyi"
    try:
        return float(np.nanmax(account(protocol, observers, **options).rdp(order)))
    except (Unsupported, InvalidValue):
        who = "these observers" if not against else f"any {against['colluders']} parties"
        raise Unsupported(
            f"rdp={order:g}: what is proved of this {type(protocol).__name__} against {who} is ε at every δ, and states no Rényi "
            "divergence; leave it out"
        ) from None


def _figures(loss: Guarantee, members: npt.NDArray[np.bool_], delta: float) -> Figures:
    epsilon = _known(np.broadcast_to(np.asarray(loss.epsilon(delta)), members.shape)[members])
    worst = float(epsilon.max()) if epsilon.size else math.nan
    if loss.factor is None:
        return Figures(worst, None, None)
    factor = _known(np.broadcast_to(np.asarray(loss.factor), members.shape)[members])
    return Figures(worst, float(factor.max()), float(factor.mean())) if factor.size else Figures(worst, None, None)


def _known(values: FloatArray) -> FloatArray:
    return values[~np.isnan(values)]


def _number(value: float) -> Any:
    return jsonable(np.asarray(value))


def predicted(protocol: Protocol) -> ExpectedError | str:
    """The predicted error of the protocol's answer, the largest over all values in question; or why there is none.

    >>> from netdp import Gossip
    >>> from netdp import graphs
    >>> round(predicted(Gossip(graphs.complete(4), rounds=1, sigma=2.0)).rmse, 3)
    1.0
    """
    try:
        found: ExpectedError | str = forecasts(protocol) if forecasts.handles(protocol) else expected_error(protocol)
    except NetdpError as problem:
        return str(problem)
    return found


def shares(protocol: Protocol) -> str:
    """Of what a curator of randomized responses estimates the shares."""
    k = getattr(protocol, "values", None)
    return "yes and no" if k in (None, 2) else f"{k} values"


def error_words(protocol: Protocol, error: ExpectedError | str) -> str:
    """One line for a terminal."""
    if isinstance(error, str):
        return f"predicted error of the answer: {error}"
    if protocol.roles:
        what = f"of the shares of {shares(protocol)}, by randomized response"
    elif hasattr(protocol, "domain"):
        what = f"root mean square over the shares of {protocol.domain} values, L2"
    else:
        sensitivity = getattr(protocol, "sensitivity")  # noqa: B009  a field of every other protocol
        what = f"root mean square, the largest for values from an interval of length Δ = {sensitivity:g}"
    return f"predicted error of the answer: {error.words} ({what})"


def at_the_same_privacy(
    protocol: Protocol, error: ExpectedError | str, epsilon: float, delta: float
) -> dict[str, float] | None:
    """The root mean squared errors of this protocol, of local DP and of a trusted curator, all three at (ε, δ); None if unknown.

    Each of the two classical ways uses the law of noise under which it errs less: a mean of d numbers `baselines_at`, shares of L
    values `share_baselines` (netdp.protocols.planning).

    >>> from netdp import MaskedSum
    >>> from netdp import graphs
    >>> p = MaskedSum(graphs.complete(16), sigma=1.0, dimension=4)
    >>> found = at_the_same_privacy(p, predicted(p), 1.0, 1e-6)
    >>> round(found["local"] / found["curator"], 6)
    4.0
    """
    if isinstance(error, str) or not 0 < epsilon < 1e6:
        return None
    n = protocol.n
    cells = (getattr(protocol, "values", None) or 2) if protocol.roles else getattr(protocol, "domain", None)
    if cells is not None:
        try:
            alone, central = share_baselines(n, int(cells), epsilon, delta)
        except NetdpError:
            return None
        return {"ours": error.rmse, "local": alone[1], "curator": central[1]}
    sensitivity = getattr(protocol, "sensitivity", None)
    if not isinstance(sensitivity, int | float):
        return None
    moved = float(sensitivity) if norm_order(protocol) == 1 else None
    alone, central = baselines_at(
        n, epsilon, delta, float(sensitivity), getattr(protocol, "dimension", None) or 1, l1=moved
    )
    return {"ours": error.rmse, "local": alone[1], "curator": central[1]}


def error_dict(error: ExpectedError | str) -> dict[str, Any]:
    """For JSON: the root mean squared error and its squared parts, or the reason why there is none."""
    if isinstance(error, str):
        return {"not_available": error}
    return error.to_dict()


def loss_words(loss: Guarantee, delta: float) -> str:
    """The worst ε for a table. Without bound it is not nothing, but everything; or more than an upper bound can tell."""
    epsilon = loss.worst_epsilon(delta)
    if not np.isinf(epsilon):
        return readable(epsilon)
    return "∞ (no protection)" if loss.claim is Claim.EXACT else "∞ (no finite bound at this δ)"
