"""Which attacks there are on which protocol: one strict table, as everywhere (`netdp.protocols.table`)."""

from __future__ import annotations

from netdp.protocols import Table

attacks = Table("an attack", "cannot be audited")
"""`attacks(protocol, observers, target, system, seed)`: a list of `Attack`, the strongest first.

observers   `netdp.privacy.Observers`: the parties, and roles such as the curator
target      whose data are different in the two worlds
system      what is under audit, with the arguments of `netdp.simulate.run.execute`, where the attack uses it
seed        of what is public and drawn once, such as random edges
"""
