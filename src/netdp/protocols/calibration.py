"""`calibrate`: the least noise with which a protocol meets a privacy target.

Families enter their functions in `calibrations`. Where a family has none for any f parties together,
`calibrate_against_any` searches what `account(protocol, colluders=f)` certifies, so the result passes its own account.
`smallest` is the search that all of them share, for losses that fall with the noise and take long to compute;
`SearchProgress` says how far it has come.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import Progress
from netdp.numerics.checks import between, count, finite
from netdp.privacy.curves import GaussianCurve
from netdp.privacy.gaussian import gaussian_mu
from netdp.protocols.accounting import account
from netdp.protocols.base import Protocol
from netdp.protocols.table import Table, coalitions

TOLERANCE = 1e-3
"""Relative, on σ, γ and ε₀."""

_FRUITLESS = 40  # steps that all end on one side of the target

_HOPELESS = 8  # steps on which the loss is infinite

_FAR = 20.0  # log of how much farther the last question is asked


def smallest(loss: Callable[[float], float], aim: float, guess: float, tolerance: float = TOLERANCE) -> float:
    """The smallest σ with loss(σ) ≤ aim, within `tolerance`, for a falling loss.

    log(loss) is nearly a straight line in log σ, of slope about −1. The line through the last two points is followed to the
    root; close to it a point just above and, unless the line has proved right, one `tolerance` below that, so that three to
    five losses usually do. Where no step meets the target, the loss at e²⁰ times more noise decides: the search goes on below
    it, or, if it misses the target, too, there is nothing to be found.
    """
    near = math.log1p(tolerance)
    below, above = -math.inf, math.inf  # log σ that misses the target, and that meets it
    place, slope, down = math.log(guess), -1.0, 0.95 * near
    before: tuple[float, float] | None = None
    safe = math.inf
    infinite = 0
    for turn in range(200):
        sigma = math.exp(place) if turn else guess
        level = loss(sigma)
        met = level <= aim
        if met:
            above, safe = place, sigma
        else:
            below = place
        if above - below <= near:
            return safe
        bracketed = math.isfinite(above - below)
        infinite = infinite + 1 if level == math.inf else 0
        if not bracketed and met and turn == _FRUITLESS:
            raise InvalidValue(
                f"ε = {aim:g} is met by every noise level down to {sigma:g}, so none is the least; ask for a smaller ε or δ, or "
                f"state the noise"
            )
        if not bracketed and not met and (turn == _FRUITLESS or infinite == turn + 1 == _HOPELESS):
            far = math.exp(place + _FAR)
            if not loss(far) <= aim:
                break
            if turn == _FRUITLESS:
                above, safe, bracketed = place + _FAR, far, True
        gap = math.log(level / aim) if math.isfinite(level) and level > 0 else None
        steady = False
        if gap is not None and before is not None:
            slope = (gap - before[1]) / (place - before[0])
            steady = -4.0 < slope < -0.25 and abs(place - before[0]) < 0.2
            slope = min(max(slope, -4.0), -0.25)
            if met and steady and gap / slope < 0.7 * near:  # the root is so close that another loss would tell nothing
                return safe
        stuck = gap is None or (before is not None and abs(gap) > abs(before[1]) / 2)
        root = place + (math.copysign(0.5, level - aim) if gap is None else min(max(gap / -slope, -1.5), 1.5))
        before = None if gap is None else (place, gap)
        if met and place - root < 2 * near:  # just above the root, or on a plateau
            place, down = place - down, 2 * down
        else:
            place, down = root + near / 3, 0.95 * near
        if bracketed:
            margin = min(0.4 * near, 0.25 * (above - below))
            place = min(max(place, below + margin), above - margin)
            if stuck and above - below > 4 * near:  # where the loss jumps lines lead nowhere
                place = 0.5 * (below + above)
    raise Unsupported(f"no noise level from {guess:g} on meets ε = {aim:g}; allow a larger ε or δ")


calibrations = Table("the calibration", "cannot be calibrated", part="plan")
"""(protocol, ε, δ) → the same protocol with the least noise whose certified loss is at most ε at δ."""

# One part in 10⁹ more than needed covers the rounding of a closed form.
HEADROOM = 1 + 1e-9


def checked_target(epsilon: Any, delta: Any) -> tuple[float, float]:
    """ε and δ as numbers, or a refusal that names them."""
    level = finite("epsilon", epsilon, "a finite number ≥ 0")
    if level < 0:
        raise InvalidValue(f"epsilon must be a finite number ≥ 0, got {epsilon!r}")
    return level, between("delta", delta, 0.0, 1.0, open_high=True)


def noise_for(mu_at_one: float, epsilon: Any, delta: Any) -> float:
    """σ for a Gaussian loss of μ = mu_at_one/σ."""
    target = checked_target(epsilon, delta)
    allowed = float(gaussian_mu(*target))
    if allowed == 0:
        raise Unsupported(
            f"no noise level meets epsilon = {epsilon:g} at delta = {delta:g}; ask for delta > 0, such as 1e-6"
        )
    if not math.isfinite(mu_at_one):
        raise Unsupported(
            "somebody has no protection at all, whatever the noise: account(protocol, observers) shows who"
        )
    return mu_at_one / allowed * HEADROOM


# Met as closely as this, the target is met by the smallest σ.
_TIGHT = 1 - 1e-6


def least_sigma(worst_mu: Callable[[float], float], start: float, at_start: float, epsilon: Any, delta: Any) -> float:
    """The smallest σ whose Gaussian loss μ = worst_mu(σ) meets the target, from the loss `at_start` of σ = `start`.

    Where all noise is proportional to σ, μ is proportional to 1/σ and one more loss proves it; otherwise σ is searched.
    """
    if at_start == 0:
        raise InvalidValue("no noise is needed: nobody in question learns anything; set sigma yourself")
    scaled = noise_for(start * at_start, epsilon, delta)
    allowed = float(gaussian_mu(*checked_target(epsilon, delta)))
    if _TIGHT * allowed <= worst_mu(scaled) <= allowed:  # all noise is proportional to σ: nothing smaller would do
        return scaled
    return smallest(worst_mu, allowed, scaled)


P = TypeVar("P", bound=Protocol)


def calibrate_against_any(protocol: P, epsilon: Any, delta: Any, colluders: int, options: dict[str, Any]) -> P:
    """The least noise whose certified loss against any `colluders` parties is at most ε at δ.

    Where all noise is proportional to σ, μ is proportional to 1/σ and nothing is searched; γ of histograms and ε₀ of reports are
    halved to a part in a thousand.

    >>> import netdp
    >>> p = netdp.VaryingGossip([netdp.graphs.ring(5)] * 3, sigma=1.0)
    >>> round(calibrate_against_any(p, 1.0, 1e-6, 2, {}).sigma, 2)             # two neighbours: the noise of local DP
    4.22
    """
    level, failure = checked_target(epsilon, delta)
    known = set(coalitions.options(protocol)) - {"progress", "transcript"}
    if unknown := sorted(set(options) - known):
        listed = ", ".join(sorted(known | {"colluders"}))
        raise InvalidValue(
            f"the calibration of {type(protocol).__name__} against any {colluders} parties takes no option {unknown[0]!r}; its "
            f"options: {listed}"
        )
    fields = {f.name for f in dataclasses.fields(protocol)}  # type: ignore[arg-type]
    knob = next((name for name in ("sigma", "gamma", "epsilon0") if name in fields), None)
    if knob is None:
        raise Unsupported(f"{type(protocol).__name__} has no sigma, gamma or epsilon0 to calibrate")

    def loss(value: float) -> float:
        return account(protocol.replace(**{knob: value}), colluders=colluders, **options).worst_epsilon(failure)

    if knob != "sigma":
        return protocol.replace(**{knob: _halved(loss, knob, level, failure)})
    start = float(getattr(protocol, "sigma"))  # noqa: B009
    first = account(protocol, colluders=colluders, **options)
    if not isinstance(first.curve, GaussianCurve):
        if math.isinf(first.worst_epsilon(failure)):
            raise _hopeless(level, failure)
        return protocol.replace(sigma=smallest(loss, level, start))
    at_start = float(np.nanmax(first.mu))
    if not math.isfinite(at_start):
        raise _hopeless(level, failure)

    def worst_mu(sigma: float) -> float:
        return float(np.nanmax(account(protocol.replace(sigma=sigma), colluders=colluders, **options).mu))

    return protocol.replace(sigma=least_sigma(worst_mu, start, at_start, level, failure))


def _halved(loss: Any, knob: str, epsilon: float, delta: float) -> float:
    """The smallest γ, or the largest ε₀, that meets the target, within a part in a thousand."""
    grows = knob == "epsilon0"
    useful, safe = (max(epsilon, 1e-3) * 4, epsilon / 2 or 1e-6) if grows else (1e-3, 1 - 1e-3)
    if loss(safe) > epsilon:
        raise _hopeless(epsilon, delta)
    if loss(useful) <= epsilon:
        return useful
    while abs(useful - safe) > TOLERANCE * min(useful, safe):
        middle = math.sqrt(useful * safe)
        useful, safe = (useful, middle) if loss(middle) <= epsilon else (middle, safe)
    return safe


def _hopeless(epsilon: float, delta: float) -> Unsupported:
    return Unsupported(
        f"no noise meets epsilon = {epsilon:g} at delta = {delta:g} against so many colluders: somebody is seen without any noise, "
        "or nothing useful is left; account(protocol, colluders=…).found shows by whom"
    )


def calibrate(protocol: P, epsilon: float | None, delta: float, **options: Any) -> P:
    """The same protocol with the least noise whose certified loss meets ε at δ, against every single party by default.

    What is changed: `sigma`; `gamma` of a histogram; `epsilon0` of a `Shuffle` (its rounds stay as they are).

    Options, where the protocol knows them (another is refused):

    colluders : how many parties may pool what they see, any of them, of every protocol (of a `Shuffle`, with the curator): the
        worst coalition of that size counts, bounded as in `account(protocol, colluders=…)`.
    observers : the parties that look, each alone; for learning by gossip, sets of them. The target then holds for those only.
    coalitions : for masked sums and gossip, sets that pool what they see; for gossip also a share such as 0.1 of the parties,
        drawn `draws` times from `seed`: the target then holds for those draws (and all their subsets), not for every
        coalition of that size.
    scope : for gossip, "worst" (every ordered pair), "beyond:k" (pairs at least k hops apart), "mean" (the mean factor over the
        parties, for the worst observer: the papers' figure, and *not* a guarantee for any single party), or a `Policy` (then
        epsilon=None).

    >>> from netdp import Gossip
    >>> from netdp.protocols.accounting import account
    >>> from netdp import graphs
    >>> p = calibrate(Gossip(graphs.hypercube(6), rounds=20, sigma=1.0, masks=100.0), epsilon=1.0, delta=1e-6)
    >>> round(p.sigma, 4), account(p, [0]).worst_epsilon(1e-6) <= 1.0
    (0.5706, True)
    """
    if not isinstance(protocol, Protocol):
        raise InvalidValue(f"the first argument must be a protocol such as netdp.Gossip(…), got {protocol!r}")
    if "colluders" in options and calibrations.handles(protocol) and "colluders" not in calibrations.options(protocol):
        number = count("colluders", options.pop("colluders"))
        if number > 1 or protocol.roles:
            return calibrate_against_any(protocol, epsilon, delta, number, options)
    found: P = calibrations(protocol, epsilon, delta, **options)
    return found


_ABOUT = 8

_MOST = 0.95  # of a part, while it is not known to be done


@dataclass
class SearchProgress:
    """Tells `progress`, if there is any, the hundredths that are done of `parts` searches.

    Nobody knows how many losses a search will take: about `_ABOUT` are assumed. A search that takes more waits near its end, one
    that takes fewer jumps; what is shown never runs backwards.

    >>> watch = SearchProgress(lambda done, total: print(f"{done} of {total}"), parts=2)
    >>> watch.inside(1, 2); watch.one(); watch.next()
    3 of 100
    6 of 100
    50 of 100
    """

    progress: Progress | None = None
    parts: int = 1
    done: int = 0
    losses: int = 0

    def inside(self, done: int, total: int) -> None:
        """So much of the present loss is computed."""
        self._tell(done / total)

    def one(self) -> None:
        """A loss is computed."""
        self.losses += 1
        self._tell(0.0)

    def next(self) -> None:
        """A part is done."""
        self.done, self.losses = self.done + 1, 0
        self._tell(0.0)

    def _tell(self, more: float) -> None:
        if self.progress is not None:
            share = min((self.losses + more) / _ABOUT, _MOST)
            self.progress(int(100 * (self.done + share) / self.parts), 100)
