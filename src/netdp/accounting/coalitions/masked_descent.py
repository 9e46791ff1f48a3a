"""Any f parties while one learns under one-time pads (docs/guarantees.md#any-coalition, #masked-descent).

Iterations only add releases: whom f parties can cut off is a matter of the pads, as in a masked sum. In groups, the worst
f for u are members of u's own group, which leaves max(1, |group| − f) parties together.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from netdp.accounting.masked.descent import against_any, component_losses
from netdp.accounting.table import coalitions
from netdp.numerics.arrays import Progress
from netdp.privacy import Found, Guarantee, Observers
from netdp.protocols import MaskedDescent

from .masked import REFERENCE, smallest_components
from .search import entry_of

_SAID = "the mask graph is public and fixed; any coalition of this size, the worst for each party"


@coalitions.register
def _masked_descent(protocol: MaskedDescent, colluders: int, *, progress: Progress | None = None) -> Guarantee:
    n, one = protocol.n, protocol.sum
    members, target, note = tuple(range(colluders)), n - 1, "any others learn as much about anybody"
    if one.mask_graph is None or (protocol.groups == 1 and isinstance(protocol.masks, int)):
        loss = against_any(protocol, colluders)
    elif protocol.groups > 1:
        whole = np.bincount(protocol.group)[protocol.group]
        loss = component_losses(protocol, np.maximum(whole - colluders, 1), _SAID)
        target = int(np.argmin(whole))
        own = [v for v in np.flatnonzero(protocol.group == protocol.group[target]).tolist() if v != target]
        others = [v for v in range(n) if v != target and v not in own]
        members = tuple(sorted([*own, *others][:colluders]))
        note = f"it is left with {max(int(whole[target]) - colluders, 1) - 1} others of its group"
    else:
        sizes, worst = smallest_components(one.mask_graph, colluders, progress)
        loss = component_losses(protocol, sizes, _SAID)
        if worst is None or worst.coalition is None:
            return dataclasses.replace(loss, references=(*loss.references, REFERENCE))
        members, target, note = worst.coalition, worst.target, f"it is left with {worst.size - 1} others"
    found = Found(Observers(members), target, entry_of(loss, target), attained=False, note=note)
    return dataclasses.replace(loss, references=(*loss.references, REFERENCE), found=found)
