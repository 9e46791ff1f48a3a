"""How good the answer will be, beside how private: a loss without an error misleads."""

from __future__ import annotations

from typing import Any

from netdp.errors import NetdpError
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


def error_dict(error: ExpectedError | str) -> dict[str, Any]:
    """For JSON: the root mean squared error and its squared parts, or the reason why there is none."""
    if isinstance(error, str):
        return {"not_available": error}
    return {"rmse": error.rmse, "squared": {**vars(error), "total": error.total}}
