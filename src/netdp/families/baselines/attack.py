"""The attack on learning with a trusted curator, which publishes the mean noisy gradient of every iteration.

It is run by `netdp.protocols.training.train` itself, and attacked with constant gradients, as learning by gossip is
(docs/proofs/audit.md#best-attacks).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from netdp.audit.attack import SIMULATOR, Attack, System, attacks
from netdp.audit.linear import DescentAttack, _Fed, _Scheduled
from netdp.families.baselines.protocol import Central, CentralDescent, Local, LocalDescent
from netdp.numerics.arrays import FloatArray
from netdp.privacy.observers import Observers
from netdp.protocols.simulation import Normal
from netdp.protocols.training import train

attacks.refuse(Local, Central, why="it is what other protocols are compared with, and no messages of it are recorded")


def published_gradients(
    protocol: CentralDescent, gradients: FloatArray, seed: int, normal: Normal, record: Any
) -> FloatArray:
    """(T, columns): what a trusted curator publishes, as `netdp.protocols.training.train` computes it; noise comes from `normal`.

    Columns are the coordinates of one model. All of them together may be √columns times as long as one.

    >>> p = CentralDescent(4, iterations=2, sigma=2.0, step=0.5, clip=1.0)
    >>> raw = np.zeros((2, 4, 1))
    >>> raw[:, 1] = 9.0
    >>> published_gradients(p, raw, 0, np.ones, []).ravel().tolist()             # a gradient of 1/4, and noise 2/√4
    [1.25, 1.25]
    """
    columns = gradients.shape[2]
    wide = protocol.replace(clip=protocol.clip * math.sqrt(columns))
    models = np.zeros((protocol.iterations + 1, columns))

    def after(t: int, found: FloatArray) -> None:
        models[t + 1] = found[0]

    train(wide, _Scheduled(gradients), _Fed(normal), after=after)  # type: ignore[arg-type]
    return np.asarray(-np.diff(models, axis=0) / protocol.step)


@attacks.register
def _curator(protocol: CentralDescent, observers: Observers, target: int, system: System, seed: int) -> list[Attack]:
    trainer: Any = published_gradients if system is SIMULATOR else system
    return [DescentAttack(protocol, observers.parties, target, trainer, seed)]


attacks.refuse(LocalDescent, why="its simulation draws the mean of all noisy gradients only, and nobody's own")
