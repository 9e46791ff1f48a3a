"""What a plan is: ways to a private mean, what each promises and costs, and which is best; of one family or of all in one table.

A plan promises a guarantee, not only a number: `option.guarantee` is the certified loss against the worst of the observers
that the plan covers, with its claim and its assumptions. `trade_off` shows the same ways with more and with less noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from netdp.display import shown
from netdp.errors import InvalidValue, NetdpError, Unsupported
from netdp.graphs.convert import as_graph
from netdp.graphs.graph import Graph
from netdp.mechanisms.responses import better_response
from netdp.numerics.arrays import FloatArray, Progress
from netdp.numerics.checks import count, positive, whole
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.gaussian import gaussian_mu
from netdp.privacy.guarantee import Guarantee
from netdp.privacy.wording import readable
from netdp.protocols.accounting import account
from netdp.protocols.accuracy import ExpectedError, Limit, expected_error, limits
from netdp.protocols.base import Protocol, described_graph
from netdp.protocols.calibration import checked_target
from netdp.protocols.family import families

if TYPE_CHECKING:
    from netdp.protocols.target import Audience, Target


@dataclass(frozen=True, eq=False)
class Option:
    """One way: a protocol with its noise, what it promises, how good its answer is, what it costs.

    name        what distinguishes it from the other options
    protocol    ready to run
    guarantee   the certified loss against the worst observers that the plan covers
    error       of the answer (`protocol.answer`), predicted
    messages    that a party sends, on average
    family      whose protocol it is
    needs       what it takes beyond plain connections between parties; such a way is shown, and not chosen where another will do
    users       the share of the parties for whom its ε is promised
    slow        why accounting for it again takes long, where it does
    cost        of two options with the same error the cheaper one is better
    extras      what only its family knows, each also an attribute: `option.certificate` of gossip, `option.uniform` of a shuffle
    """

    name: str
    protocol: Any
    guarantee: Guarantee
    error: ExpectedError
    messages: float
    family: str = field(default="", kw_only=True)
    needs: str | None = field(default=None, kw_only=True)
    users: float = field(default=1.0, kw_only=True)
    slow: str | None = field(default=None, kw_only=True)
    cost: float = field(default=0.0, kw_only=True)
    extras: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and name in (extras := self.__dict__.get("extras", {})):
            return extras[name]
        raise AttributeError(f"an option of {self.__dict__.get('family') or 'this plan'} has no attribute {name!r}")

    @property
    def rmse(self) -> float:
        """Root of the predicted mean squared error."""
        return self.error.rmse

    def promised(self, delta: float) -> float:
        """The certified ε at δ of the share `users` of the parties; the worst ε where that is everybody."""
        if self.users == 1:
            return self.guarantee.worst_epsilon(delta)
        losses = np.sort(np.atleast_1d(self.guarantee.epsilon(delta)))
        return float(losses[rank(self.users, len(losses))])

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "name": self.name,
            "family": self.family,
            "protocol": self.protocol.outline(),
            "claim": self.guarantee.claim.value,
            "found": None if self.guarantee.found is None else self.guarantee.found.to_dict(),
            "assumptions": list(self.guarantee.assumptions),
            "rmse": _number(self.rmse),
            "error_claim": self.error.claim.value,
            "rmse_at_most": None if self.error.at_most is None else _number(self.error.at_most),
            "squared_error": {
                **{k: _number(v) for k, v in self.error.parts.items()},
                "total": _number(self.error.total),
            },
            "messages_per_party": self.messages,
            "needs": self.needs,
            "slow": self.slow,
            "users": self.users,
            "extras": {name: _plain(value) for name, value in self.extras.items()},
        }


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The options at one target, best first, beside local DP and a trusted curator at the same (ε, δ).

    epsilon, delta   what was asked for; ε is None where a policy states it per pair, or where rounds were asked for
    holds            for whom and against whom, in words
    local_rmse, curator_rmse   errors of the two classical ways at the target; local_law, curator_law: with which noise
    not_offered      by family, why it has no option here
    limit            the error that no protocol of messages between neighbours can go below, where one is proved
    family           the family that was planned, where it was only one
    graph, n, sensitivity, colluders, absent, target, audience   what it was planned for, as far as it was said

    What only one family knows is asked of the option, and of a plan it is that of its best one: `plan.uniform`.
    """

    options: tuple[Option, ...]
    epsilon: float | None
    delta: float
    holds: str
    local_rmse: float
    curator_rmse: float
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    limit: Limit | None = field(default=None, kw_only=True)
    local_law: str = field(default="Gaussian", kw_only=True)
    curator_law: str = field(default="Gaussian", kw_only=True)
    not_offered: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    family: str | None = field(default=None, kw_only=True)
    graph: Graph | None = field(default=None, kw_only=True)
    n: int = field(default=0, kw_only=True)
    sensitivity: float = field(default=1.0, kw_only=True)
    colluders: int = field(default=1, kw_only=True)
    absent: int = field(default=0, kw_only=True)
    target: Target | None = field(default=None, kw_only=True)
    audience: Audience | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not self.options:
            raise Unsupported(f"nothing to plan: {'; '.join(self.not_offered.values()) or 'no way was asked for'}")
        ranked = sorted(self.options, key=lambda option: (option.rmse, option.cost))
        family = self.family or ""
        object.__setattr__(
            self, "options", tuple(option if option.family else replace(option, family=family) for option in ranked)
        )
        object.__setattr__(self, "n", self.n or self.options[0].protocol.n)
        if self.graph is None and self.family is not None:
            object.__setattr__(self, "graph", self.options[0].protocol.network)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and self.__dict__.get("options") and name in self.best.extras:
            return self.best.extras[name]
        raise AttributeError(f"a plan has no attribute {name!r}")

    @property
    def best(self) -> Option:
        """The option of smallest predicted error that needs no more than plain connections; if there is none, the first."""
        return next((option for option in self.options if option.needs is None), self.options[0])

    @property
    def protocol(self) -> Any:
        """The protocol chosen."""
        return self.best.protocol

    @property
    def guarantee(self) -> Guarantee:
        """What the protocol chosen promises."""
        return self.best.guarantee

    @property
    def error(self) -> ExpectedError:
        """How good its answer will be."""
        return self.best.error

    @property
    def promised(self) -> float:
        """The ε that is promised of the protocol chosen."""
        return self.best.promised(self.delta)

    @property
    def worst(self) -> float:
        """The ε of the worst placed party, with the protocol chosen."""
        return self.worst_epsilon(self.best)

    def worst_epsilon(self, option: Option) -> float:
        """The ε that an option promises everybody at the plan's δ."""
        return option.guarantee.worst_epsilon(self.delta)

    def option(self, name: str) -> Option | None:
        """The option of this name, if it was planned."""
        return next((option for option in self.options if option.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, in one shape for every family; what only one family knows is under "extras" of its options."""
        scope: Any = "worst" if self.target is None else self.target.scope
        return {
            "family": self.family,
            "graph": None if self.graph is None else described_graph(self.graph),
            "n": self.n,
            "sensitivity": self.sensitivity,
            "colluders": self.colluders,
            "absent": self.absent,
            "scope": scope if isinstance(scope, str) else {"policy": scope.source, "rules": scope.describe_rules()},
            "epsilon": self.epsilon,
            "delta": self.delta,
            "holds": self.holds,
            "chosen": self.best.name,
            "options": [
                {
                    **option.to_dict(),
                    "worst_epsilon": _number(self.worst_epsilon(option)),
                    "promised_epsilon": _number(option.promised(self.delta)),
                }
                for option in self.options
            ],
            "local_dp": {"rmse": _number(self.local_rmse), "law": self.local_law},
            "trusted_curator": {"rmse": _number(self.curator_rmse), "law": self.curator_law},
            "not_offered": dict(self.not_offered),
            "limit": None if self.limit is None else self.limit.to_dict(),
            "notes": list(self.notes),
        }

    def plot(self, progress: Progress | None = None) -> Any:
        """A picture, a matplotlib figure: error against ε of every way, its noise smaller and larger, beside the classical two."""
        return shown("Plan.plot")(self, progress)

    def to_frame(self) -> Any:
        """A pandas table: a row per way with its certified ε, claim, predicted error and messages."""
        return shown("Plan.to_frame")(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return str(shown("Plan.html")(self))

    def __repr__(self) -> str:
        asked = "policy" if self.epsilon is None else f"epsilon={self.epsilon:g}"
        names = ", ".join(option.name for option in self.options)
        return f"{type(self).__name__}({asked}, delta={self.delta:g}, chosen {self.best.name!r} of: {names})"

    def __str__(self) -> str:
        asked = f"plan for ε ≤ {self.epsilon:g} at" if self.epsilon is not None else "plan at"
        lines = [f"{asked} δ = {self.delta:g}; {self.holds}"]
        for option in self.options:
            mark = "*" if option is self.best else " "
            lines.append(
                f" {mark} {option.name}: ε = {readable(option.promised(self.delta))} ({option.guarantee.claim.value}), "
                f"error {option.error.words}{f'; needs {option.needs}' if option.needs else ''}"
            )
            lines += [f"   {line}" for line in option.extras.get("words", ())]
        lines.append(f"   local DP: error {readable(self.local_rmse)}; trusted curator: {readable(self.curator_rmse)}")
        if self.limit is not None:
            lines.append(f"   {self.limit.words}")
        lines += [f"   not offered: {family}: {why}" for family, why in self.not_offered.items()]
        lines.append(f"chosen: {self.protocol.describe()}")
        return "\n".join(lines)


def rank(users: float, n: int) -> int:
    """Which of n sorted losses is that of the share `users` of the parties."""
    return min(n - 1, max(0, math.ceil(users * n - 1e-9) - 1))


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(np.float64(value))


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return _number(value) if isinstance(value, float) else value


# ── every family in one table ─────────────────────────────────────────────────────────────────────────────────────────

PLANNED = {one.name: one for one in families() if one.offer}
"""The families that plan a private mean."""

SECONDS = 20.0
"""A family that is estimated to take longer than this is not looked at, unless it is the only one that was asked for."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A private mean of one value per party: at which target, against whom, and how long a family may search."""

    graph: Graph
    epsilon: float
    delta: float
    colluders: int
    absent: int
    sensitivity: float
    dimension: int
    seconds: float
    progress: Progress | None = None

    def refuse_absent(self, what: str) -> None:
        """For families that need everybody to the end."""
        if self.absent:
            raise Unsupported(f"{what}: nobody may be absent; absent={self.absent} is planned for masked sums")

    def refuse_vectors(self, what: str) -> None:
        """For planners of one number per party."""
        if self.dimension > 1:
            raise Unsupported(f"{what}: planned for one number per party, not for dimension={self.dimension}")

    def refuse_slow(self, expected: float) -> None:
        """For families whose planner is estimated to take longer than it may."""
        if expected > self.seconds:
            words = f"{expected:.0f} s" if expected < 120 else f"{expected / 60:.0f} minutes"
            raise Unsupported(
                f"not looked at: takes about {words}; ask for it alone, or give seconds={2 * expected:.0f}"
            )


def plan(
    graph: Any,
    epsilon: float | None,
    delta: float,
    scope: Any = None,
    *,
    colluders: int = 1,
    absent: int = 0,
    sensitivity: float = 1.0,
    dimension: int = 1,
    protocols: Iterable[str] | str | None = None,
    seconds: float = SECONDS,
    progress: Progress | None = None,
    **options: Any,
) -> Plan:
    """All ways to a private mean at (ε, δ) in one table, the best first: of every family, or of those named in `protocols`.

    colluders : how many parties pool what they see, any of them.
    absent : how many may go away without notice.
    sensitivity, dimension : every party holds a vector of so many numbers from a set of this diameter (one number: an interval).
    protocols : some of "masked", "gossip", "token", "shuffle"; all by default. With one name this is the plan of that family's
        own planner, which also takes its own options (for gossip: scope, observers, coalitions, seed, draws, mixing, max_rounds,
        spread, kinds).
    seconds : a family that is estimated to take longer is left out and says so.

    `plan.not_offered` says why a family has no way here. The classical two, local DP and a trusted curator, stand beside the ways
    with Gaussian or Laplace noise, whichever errs less (`local_law`, `curator_law`).

    >>> from netdp import graphs
    >>> best = plan(graphs.ring(8), epsilon=1.0, delta=1e-6, protocols=["masked", "gossip"])
    >>> best.best.family, [option.family for option in best.options][-1], best.curator_law
    ('masked', 'gossip', 'Laplace')
    """
    names = [protocols] if isinstance(protocols, str) else list(PLANNED if protocols is None else protocols)
    if unknown := [name for name in names if name not in PLANNED]:
        raise InvalidValue(f"there is no plan of {unknown[0]!r}; choose from {', '.join(map(repr, PLANNED))}")
    if not names:
        raise InvalidValue(f"protocols is empty; choose from {', '.join(map(repr, PLANNED))}, or leave it out for all")
    if scope is not None:
        options["scope"] = scope
    if len(names) == 1:
        common = {"colluders": colluders, "absent": absent, "sensitivity": sensitivity, "dimension": dimension}
        return _alone(names[0], as_graph(graph, "a plan"), epsilon, delta, common, progress, options)
    for option in options:
        owners = [name for name in PLANNED if option in _options(name)]
        where = f"belongs to {' and '.join(owners)} alone: give protocols={owners[:1]!r}" if owners else "is not known"
        raise InvalidValue(f"{option} {where}, or leave it out")
    if epsilon is None:
        raise InvalidValue("epsilon is missing; only gossip is planned by a policy: give protocols=['gossip']")
    level, delta = checked_target(epsilon, delta)
    asked = Asked(
        as_graph(graph, "a plan"), level, delta, count("colluders", colluders), whole("absent", absent, 0),
        positive("sensitivity", sensitivity), count("dimension", dimension), float(seconds), progress,
    )  # fmt: skip
    return _table(asked, names)


def _table(asked: Asked, names: list[str]) -> Plan:
    options: list[Option] = []
    notes: list[str] = []
    refused: dict[str, str] = {}
    for place, name in enumerate(names):
        progress = _share_of(asked.progress, place, len(names))
        try:
            offered: Plan = PLANNED[name].named(PLANNED[name].offer)(replace(asked, progress=progress))
        except NetdpError as problem:
            refused[name] = str(problem)
        else:
            options += [replace(option, name=f"{name}: {option.name}") for option in offered.options]
            notes += [f"* {name}: {option.name} needs {option.needs}" for option in offered.options if option.needs]
            notes += [f"{name}: {note}" for note in offered.notes]
        progress(1, 1)
    local, curator = baselines_at(asked.graph.n, asked.epsilon, asked.delta, asked.sensitivity, asked.dimension)
    limit = None
    if asked.dimension == 1:
        limit = limits(
            asked.graph, asked.epsilon, asked.delta, colluders=asked.colluders, sensitivity=asked.sensitivity
        )
    role = "any single party" if asked.colluders == 1 else f"any {asked.colluders} parties together"
    away = f", with at most {asked.absent} absent" if asked.absent else ""
    return Plan(
        tuple(options),
        asked.epsilon,
        asked.delta,
        f"holds for every party, against {role}{away}",
        local_rmse=local[1],
        curator_rmse=curator[1],
        local_law=local[0],
        curator_law=curator[0],
        notes=tuple(notes),
        limit=limit,
        not_offered=refused,
        graph=asked.graph,
        sensitivity=asked.sensitivity,
        colluders=asked.colluders,
        absent=asked.absent,
    )


def baselines_at(
    n: int, epsilon: float, delta: float, sensitivity: float = 1.0, dimension: int = 1, *, l1: float | None = None
) -> tuple[tuple[str, float], tuple[str, float]]:
    """The law and the error of local DP, and of a trusted curator, at (ε, δ), each with the noise that errs less.

    One party's vector of d numbers moves by at most Δ in L2 norm, so by at most Δ√d in L1 norm. Gaussian noise of deviation Δ/μ
    on every number errs by √d·Δ/μ; Laplace noise of scale Δ√d/ε, which is private at δ = 0 already, by √2·d·Δ/ε. A curator needs
    1/n of either for the mean, and the mean of n parties' noise is 1/√n of it.

    l1 : how far the vector moves in L1 norm, if that is known to be less than Δ√d.

    >>> baselines_at(16, 1.0, 1e-6)[1][0], baselines_at(16, 1.0, 1e-6, dimension=100)[1][0]
    ('Laplace', 'Gaussian')
    """
    mu = float(gaussian_mu(epsilon, delta))
    gaussian = sensitivity / mu * math.sqrt(dimension) if mu > 0 else math.inf
    moved = math.sqrt(dimension) * sensitivity if l1 is None else l1
    laplace = math.sqrt(2 * dimension) * moved / epsilon if epsilon > 0 else math.inf
    law, error = min((gaussian, "Gaussian"), (laplace, "Laplace"))[::-1]
    return (law, error / math.sqrt(n)), (law, error / n)


def share_baselines(n: int, values: int, epsilon: float, delta: float) -> tuple[tuple[str, float], tuple[str, float]]:
    """The same for the shares of so many values among n parties, each with one: laws and errors of local DP and of a curator.

    Local DP: answers are randomized on their own, by k-ary response or by unary encoding. A curator adds noise to the histogram,
    in which one party changes two places by 1, and takes off what that changes in the sum of all k places: of a variance v in
    each place (k − 1)·v is left. Gaussian: v = 2/μ². Laplace: v = 8/ε²; for k = 2 one count says it all, and v = 4/ε².

    >>> local, curator = share_baselines(100, 2, 1.0, 1e-6)
    >>> local[0], round(local[1], 3), curator[0], round(curator[1], 3)
    ('RandomizedResponse', 0.136, 'Laplace', 0.02)
    """
    response = better_response(values, epsilon)
    mu = float(gaussian_mu(epsilon, delta))
    gaussian = math.sqrt(2 * (values - 1)) / mu if mu > 0 else math.inf
    laplace = math.sqrt((4 if values == 2 else 8) * (values - 1)) / epsilon if epsilon > 0 else math.inf
    law, error = min((gaussian, "Gaussian"), (laplace, "Laplace"))[::-1]
    return (type(response).__name__, math.sqrt(response.squared_error(n))), (law, error / n)


def _alone(
    name: str,
    graph: Graph,
    epsilon: float | None,
    delta: float,
    common: dict[str, Any],
    progress: Progress | None,
    options: dict[str, Any],
) -> Plan:
    """By the family's own planner; what it does not know is refused by name."""
    known = _options(name)
    plain = {"colluders": 1, "absent": 0, "sensitivity": 1.0, "dimension": 1}
    taken = {key: value for key, value in common.items() if key in known}
    if unused := [key for key, value in common.items() if key not in known and value != plain[key]]:
        raise InvalidValue(f"a plan of {name} takes no {unused[0]}={common[unused[0]]!r}; leave it out")
    if unknown := [key for key in options if key not in known]:
        owners = [other for other in PLANNED if unknown[0] in _options(other)]
        where = f"; it belongs to {' and '.join(owners)}" if owners else ""
        raise InvalidValue(f"a plan of {name} takes no {unknown[0]}{where}; its options: {', '.join(known)}")
    if "progress" in known:
        taken["progress"] = progress
    planned: Plan = PLANNED[name].named(PLANNED[name].plan)(graph, epsilon, delta, **taken, **options)
    return planned


def _options(name: str) -> list[str]:
    import inspect

    return list(inspect.signature(PLANNED[name].named(PLANNED[name].plan)).parameters)[3:]


def _share_of(progress: Progress | None, place: int, many: int) -> Progress:
    """The progress of one family as that of all: each counts the same."""

    def advance(done: int, total: int) -> None:
        if progress is not None:
            progress(round(100 * (place + done / max(total, 1)) / many), 100)

    return advance


FACTORS = (0.4, 0.6, 0.8, 1.0, 1.3, 1.8, 2.5)
"""By how much the noise is changed (of shuffled reports: their ε₀)."""

FEW = (0.6, 1.0, 1.8)


@dataclass(frozen=True)
class TradeOffLine:
    """One way: certified ε at the plan's δ and predicted error, by rising ε."""

    name: str
    epsilon: tuple[float, ...]
    rmse: tuple[float, ...]


def trade_off(
    plan: Plan, factors: Sequence[float] | None = None, progress: Progress | None = None
) -> tuple[TradeOffLine, ...]:
    """Every way of the plan with more and with less noise, certified again; a noise that no method covers is left out.

    A plan answers for one target. Around it the same ways, with the same rounds and masks and other noise, trade privacy for
    error; at another target a plan would choose anew. Of gossip the loss is known at every noise from the loss at one: all its
    noise is Gaussian and in proportion to σ, so the Gaussian-DP μ is in proportion to 1/σ. Elsewhere the accountant is asked
    again.

    >>> from netdp import graphs
    >>> (line,) = trade_off(plan(graphs.ring(6), 1.0, 1e-6, protocols="gossip", kinds=["plain"]), factors=[1.0, 2.0])
    >>> line.name, round(line.rmse[0] / line.rmse[1], 2), round(line.epsilon[1], 2)
    ('plain', 2.0, 1.0)
    """
    if factors is None:  # a walk on a graph takes its accountant seconds each time
        factors = FEW if any(option.slow for option in plan.options) else FACTORS
    lines, done = [], 0
    for option in plan.options:
        points = []
        for factor in factors:
            with suppress(NetdpError):  # too little or too much noise for a method: the line is shorter there
                points.append(_point(plan, option, factor))
            done += 1
            if progress is not None:
                progress(done, len(plan.options) * len(factors))
        known = sorted(point for point in points if math.isfinite(point[0]))
        lines.append(TradeOffLine(option.name, tuple(e for e, _ in known), tuple(r for _, r in known)))
    return tuple(lines)


def baselines(plan: Plan, epsilons: FloatArray) -> dict[str, FloatArray]:
    """Errors of local DP and of a trusted curator at other ε, from those at the plan's."""
    mu = np.asarray(gaussian_mu(epsilons, plan.delta))
    if plan.protocol.roles:  # shuffled reports: the shares of yes and no, or of k values
        k = getattr(plan.protocol, "values", None) or 2
        both = [share_baselines(plan.protocol.n, k, float(e), plan.delta) for e in epsilons]
        local, curator = (np.array([one[which][1] for one in both]) for which in (0, 1))
        return {"local DP": local, "trusted curator": curator}
    asked = plan.worst_epsilon(plan.best) if plan.epsilon is None else plan.epsilon
    at = float(gaussian_mu(asked, plan.delta)) if plan.target is None else plan.target.mu
    laws = {"Gaussian": at / mu, "Laplace": asked / epsilons}
    return {
        "local DP": plan.local_rmse * laws[plan.local_law],
        "trusted curator": plan.curator_rmse * laws[plan.curator_law],
    }


def _point(plan: Plan, option: Option, factor: float) -> tuple[float, float]:
    """Certified ε and predicted error with so much more noise."""
    if factor == 1.0:
        return option.promised(plan.delta), option.rmse
    noisier = _with_noise(option.protocol, factor)
    error = replace(
        option.error,
        **{part: getattr(option.error, part) * factor**2 for part in ("noise", "masks", "refresh")},
    )
    if hasattr(option, "certificate") and isinstance(option.guarantee.curve, GaussianCurve):
        loss: Guarantee = replace(option.guarantee, curve=GaussianCurve(np.asarray(option.guarantee.mu) / factor))
    else:
        against: dict[str, Any] = {"observers": list(noisier.roles)} if noisier.roles else {"colluders": plan.colluders}
        loss = account(noisier, **against)
        if noisier.roles and plan.family is None:  # a mean of reports with Laplace noise, which falls with ε₀
            error = replace(option.error, noise=option.error.noise / factor**2)
        elif noisier.roles:
            error = expected_error(noisier)
    return replace(option, protocol=noisier, guarantee=loss).promised(plan.delta), math.sqrt(error.total)


def _with_noise(protocol: Protocol, factor: float) -> Protocol:
    """The same with `factor` times the noise; of reports, that much of their ε₀."""
    name = "epsilon0" if hasattr(protocol, "epsilon0") else "sigma"
    return protocol.replace(**{name: getattr(protocol, name) * factor})
