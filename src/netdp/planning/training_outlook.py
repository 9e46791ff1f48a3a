"""Will noise win? Predicted from a protocol and the rows that a party has, before anything is trained.

A gradient is mostly what is particular to its row or party: with m rows to a party the part that all agree on is about
1/√(1 + 12/m) of it, as on the tables of `netdp.planning.training_rules`. The edge times that is what the steps can usefully
lead, in units of where noise leads. Below 1.5 little was learned there, and one is told so: by the estimators, by
`netdp study new` and by `netdp study explain`, all with the words of `outlook`. Only public numbers are used.
"""

from __future__ import annotations

import math
import warnings as python_warnings
from collections.abc import Iterable
from dataclasses import dataclass

from netdp.errors import InvalidValue
from netdp.numerics.checks import count
from netdp.privacy.weak import WeakPromise, is_weak
from netdp.protocols import MaskedDescent

from .training_rules import edge_of

LEAST_EDGE = 1.5
"""Below it, in units of what all parties agree on, one is warned."""
_PARTICULAR = 12.0


class NoiseWarning(UserWarning):
    """The noise that privacy asks for is expected to drown what could be learned."""


@dataclass(frozen=True)
class Outlook:
    """What may be expected of a training.

    edge        how far the steps can lead in units of where noise leads, see `netdp.planning.training_rules`
    expected    the edge times the part of a gradient that all agree on, as on the tables tried
    warnings    why this will hardly work, if so
    """

    edge: float
    expected: float
    warnings: tuple[str, ...]


def outlook(protocol: MaskedDescent, rows: int | None = None) -> Outlook:
    """How far training with this protocol will lead, and a warning if noise will win; no data looked at.

    rows : how many rows a party has, at most; None: nobody has said so, and one row is reckoned with. Unit "record": not used,
        the protocol states the records.

    >>> from netdp import graphs
    >>> found = outlook(MaskedDescent(graphs.complete(8), 100, sigma=0.25, step=1.0, clip=0.5, dimension=16), rows=4)
    >>> round(found.edge, 2), round(found.expected, 2), found.warnings
    (14.14, 7.07, ())
    """
    if not isinstance(protocol, MaskedDescent):
        raise InvalidValue(f"outlook takes a MaskedDescent, got {protocol!r}; plan_training makes one")
    each = 1 if protocol.unit == "record" or rows is None else count("rows", rows)
    edge = edge_of(protocol)
    useful = edge / math.sqrt(1 + _PARTICULAR / each)
    return Outlook(edge, useful, () if useful >= LEAST_EDGE else (_words(protocol, edge, useful, rows),))


def warn(warnings: Iterable[str], stacklevel: int = 3) -> None:
    """A `NoiseWarning` for each of these, or a `WeakPromise`."""
    for text in warnings:
        python_warnings.warn(text, WeakPromise if is_weak(text) else NoiseWarning, stacklevel=stacklevel + 1)


def _words(protocol: MaskedDescent, edge: float, useful: float, rows: int | None) -> str:
    if protocol.unit == "record":
        who, also = f"{protocol.units:,} rows of {protocol.n:,} parties", ""
    else:
        who = f"{protocol.n:,} parties" + (f" of {rows:,} rows" if rows else "")
        also = ", and so does to protect single records instead of whole parties (unit record)"
    return (
        f"noise will win: {who} and {protocol.dimension:,} numbers in the model: steps can lead {edge:.2g} times as far as noise "
        f"does, and about {useful:.2g} times counting only what all agree on; below {LEAST_EDGE:g} little was learned on the "
        f"tables tried. More parties (or rows), a larger epsilon or fewer features (a smaller model) help{also}; another step "
        "does not"
    )
