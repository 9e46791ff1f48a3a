"""How good the answer will be, beside how private: a loss without an error misleads."""

from __future__ import annotations

import math
from typing import Any

from netdp.errors import NetdpError
from netdp.mechanisms import RandomizedResponse
from netdp.privacy import gaussian_mu
from netdp.privacy.readable import readable
from netdp.protocols import Gossip, Protocol, Shuffle
from netdp.utility import ExpectedError, expected_error
from netdp.utility.shuffle import largest_error

# The traces of gossip on a graph without a known spectrum run over all pairs: a few seconds up to here.
MAX_PARTIES = 4096


def predicted(protocol: Protocol) -> ExpectedError | str:
    """The predicted error of the answer, the largest over all values in question; or why there is none.

    >>> from netdp import graphs
    >>> round(predicted(Gossip(graphs.complete(4), rounds=1, sigma=2.0)).rmse, 3)
    1.0
    """
    if isinstance(protocol, Gossip) and protocol.n > MAX_PARTIES and protocol.graph.laplacian_spectrum is None:
        return f"not computed for more than {MAX_PARTIES:,} parties; netdp.expected_error(protocol) does, more slowly"
    if isinstance(protocol, Shuffle):
        return largest_error(protocol)
    try:
        return expected_error(protocol)
    except NetdpError as problem:
        return str(problem)


def error_words(protocol: Protocol, error: ExpectedError | str) -> str:
    """One line for a terminal."""
    if isinstance(error, str):
        return f"predicted error of the answer: {error}"
    if protocol.roles:
        what = "of the shares of yes and no, by randomized response"
    elif hasattr(protocol, "domain"):
        what = f"root mean square over the shares of {protocol.domain} values, L2"
    else:
        sensitivity = getattr(protocol, "sensitivity")  # noqa: B009  a field of every other protocol
        what = f"root mean square, the largest for values from an interval of length Δ = {sensitivity:g}"
    return f"predicted error of the answer: {readable(error.rmse)} ({what})"


def at_the_same_privacy(
    protocol: Protocol, error: ExpectedError | str, epsilon: float, delta: float
) -> dict[str, float] | None:
    """The root mean squared errors of this protocol, of local DP and of a trusted curator, all three at (ε, δ); None if unknown.

    With μ the Gaussian privacy of (ε, δ) and Δ the L2 diameter of the set of values:

    A mean of d numbers: the curator adds noise of deviation Δ/(nμ) to each, parties on their own Δ/μ; the mean of the latter
    has deviation Δ/(√n·μ). Shares of L values: answers are randomized on their own (L-ary response); the curator's histogram has
    L2 sensitivity √2/n, and of the noise in its L cells the part that changes their sum is taken away: √(2(L − 1))/(nμ).

    >>> from netdp import MaskedSum, graphs
    >>> p = MaskedSum(graphs.complete(16), sigma=1.0, dimension=4)
    >>> found = at_the_same_privacy(p, predicted(p), 1.0, 1e-6)
    >>> round(found["local"] / found["curator"], 6)
    4.0
    """
    if isinstance(error, str) or not 0 < epsilon < 1e6:
        return None
    n, mu = protocol.n, float(gaussian_mu(epsilon, delta))
    if not mu > 0:  # at δ = 0 no Gaussian noise is enough
        return None
    cells = 2 if protocol.roles else getattr(protocol, "domain", None)
    if cells is not None:
        try:
            local = math.sqrt(RandomizedResponse(int(cells), epsilon).squared_error(n))
        except NetdpError:
            return None
        return {"ours": error.rmse, "local": local, "curator": math.sqrt(2 * (cells - 1)) / (n * mu)}
    sensitivity = getattr(protocol, "sensitivity", None)
    if not isinstance(sensitivity, int | float):
        return None
    one = float(sensitivity) / mu * math.sqrt(getattr(protocol, "dimension", None) or 1)
    return {"ours": error.rmse, "local": one / math.sqrt(n), "curator": one / n}


def error_dict(error: ExpectedError | str) -> dict[str, Any]:
    """For JSON: the root mean squared error and its squared parts, or the reason why there is none."""
    if isinstance(error, str):
        return {"not_available": error}
    return {"rmse": error.rmse, "squared": {**vars(error), "total": error.total}}
