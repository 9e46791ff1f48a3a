"""The families of protocols, a folder each: all that is particular to a protocol lies in the folder of its family.

Imports go from families to the ground, the doors (`netdp.protocols`) and the machinery (`netdp.audit`, `netdp.learn`,
`netdp.peers`, `netdp.settings`), never to another family. `netdp.protocols.family` lists the folders and loads their parts.
"""

KINDS = (
    "masked-sum",
    "ring-sum",
    "ring-histogram",
    "walk-sum",
    "walk-histogram",
    "gossip",
    "randomized-gossip",
    "shuffle",
    "masked-descent",
    "gossip-descent",
    "walk-descent",
)
"""What a study can run, in the order in which it is offered: the first is what runs unless the study says otherwise."""
