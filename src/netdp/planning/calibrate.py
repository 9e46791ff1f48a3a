"""`calibrate`: the noise that a privacy target asks of a protocol."""

from __future__ import annotations

from typing import Any, TypeVar

from netdp.errors import InvalidValue
from netdp.numerics.checks import count
from netdp.protocols import Protocol

from . import baselines, linear  # noqa: F401  they enter what they can calibrate
from .any_coalition import calibrate_against_any
from .gossip import calibrate as _gossip  # noqa: F401
from .gossip import descent as _descent  # noqa: F401
from .masked import calibrate as _masked  # noqa: F401
from .masked import descent as _masked_descent  # noqa: F401
from .shuffle import calibrate as _shuffle  # noqa: F401
from .shuffle import faults as _faults  # noqa: F401
from .shuffle import relay as _relay  # noqa: F401
from .table import calibrations
from .token import calibrate as _walk  # noqa: F401
from .token import histogram as _histogram  # noqa: F401
from .token import paths as _paths  # noqa: F401
from .token import ring_descent as _ring_descent  # noqa: F401
from .token import secret_ring as _secret_ring  # noqa: F401

P = TypeVar("P", bound=Protocol)


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

    >>> from netdp import Gossip, account, graphs
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
