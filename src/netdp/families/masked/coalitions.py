"""Any f parties of a masked sum, or of learning by masked sums: whom they can cut off, and what that shows.

With pads between all pairs n − f parties hide each other, whoever the f are. On a random mask graph the f were fixed before the
draw. On a given one the smallest connected set that f parties can cut off is searched, exactly as far as the work allows.
Iterations only add releases; in groups the worst f are members of the party's own. Proof:
docs/proofs/coalitions.md#any-coalition.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from netdp.families.masked import account_descent
from netdp.families.masked.account import against_any, component_losses
from netdp.families.masked.descent import MaskedDescent
from netdp.families.masked.protocol import MaskedSum
from netdp.graphs.cuts import smallest_components
from netdp.numerics.arrays import Progress
from netdp.privacy.guarantee import Claim, Guarantee
from netdp.privacy.observers import Found, Observers
from netdp.protocols.coalitions import entry_of, found_in
from netdp.protocols.table import certified, coalitions

REFERENCE = "netdp, docs/proofs/coalitions.md#any-coalition: every coalition of a size."


@coalitions.register
def _masked(protocol: MaskedSum, colluders: int, *, progress: Progress | None = None) -> Guarantee:
    if protocol.mask_graph is None or isinstance(protocol.masks, int):
        loss = against_any(protocol, colluders)
        members = tuple(range(colluders))
        found = Found(
            Observers(members),
            protocol.n - 1,
            entry_of(loss, 0),
            attained=False,
            note="any others learn as much about anybody",
        )
        return dataclasses.replace(loss, references=(*loss.references, REFERENCE), found=found)
    sizes, worst = smallest_components(protocol.mask_graph, colluders, progress)
    loss = component_losses(protocol, sizes)
    found_one: Found | None = None
    if worst is not None and worst.coalition is not None:
        named = certified(protocol, worst.coalition)
        found_one = found_in(named, worst.coalition, worst.target, note=f"it is left with {worst.size - 1} others")
    said = "the mask graph is public and fixed; any coalition of this size, the worst for each party"
    return dataclasses.replace(
        loss,
        claim=Claim.UPPER,
        assumptions=(*loss.assumptions[:-1], said),
        references=(*loss.references, REFERENCE),
        found=found_one,
    )


_SAID = "the mask graph is public and fixed; any coalition of this size, the worst for each party"


@coalitions.register
def _masked_descent(protocol: MaskedDescent, colluders: int, *, progress: Progress | None = None) -> Guarantee:
    n, one = protocol.n, protocol.sum
    members, target, note = tuple(range(colluders)), n - 1, "any others learn as much about anybody"
    if one.mask_graph is None or (protocol.groups == 1 and isinstance(protocol.masks, int)):
        loss = account_descent.against_any(protocol, colluders)
    elif protocol.groups > 1:
        whole = np.bincount(protocol.group)[protocol.group]
        loss = account_descent.component_losses(protocol, np.maximum(whole - colluders, 1), _SAID)
        target = int(np.argmin(whole))
        own = [v for v in np.flatnonzero(protocol.group == protocol.group[target]).tolist() if v != target]
        others = [v for v in range(n) if v != target and v not in own]
        members = tuple(sorted([*own, *others][:colluders]))
        note = f"it is left with {max(int(whole[target]) - colluders, 1) - 1} others of its group"
    else:
        sizes, worst = smallest_components(one.mask_graph, colluders, progress)
        loss = account_descent.component_losses(protocol, sizes, _SAID)
        if worst is None or worst.coalition is None:
            return dataclasses.replace(loss, references=(*loss.references, REFERENCE))
        members, target, note = worst.coalition, worst.target, f"it is left with {worst.size - 1} others"
    found = Found(Observers(members), target, entry_of(loss, target), attained=False, note=note)
    return dataclasses.replace(loss, references=(*loss.references, REFERENCE), found=found)
