"""What everybody makes of the published sums: from one model to the next, the same to the last bit at every party.

A state is the model θ, the velocity v (momentum), and the sum of the models that are to be averaged with their count. With
the sum S of iteration t, in grid steps g,

    gradient = g·S/expected,    v ← momentum·v + gradient,    θ ← θ − step·v,    and for 2t > T:  total ← total + θ.

All of it is post-processing of the sums. **To the last bit:** every line is one multiplication, division or addition of
doubles per coordinate, each rounded to the nearest as IEEE 754 demands, in this order; S is less than 2⁶² in size and is
rounded to a double first. No sum over coordinates and no function that a processor or a library computes in its own way
occurs. So all parties, the simulator and a party that restarts from `to_bytes` hold the same bits. (Groups are combined
by `MaskedDescent.combined`, a mean or median of few numbers: the same for all on one machine.)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from netdp.errors import InvalidValue
from netdp.numerics.arrays import FloatArray, IntArray
from netdp.numerics.checks import whole

from .masked_descent import MaskedDescent

_MAGIC = b"netdp model 1\n\0\0"
_HEAD = struct.Struct("<16sqq")


@dataclass(frozen=True, eq=False)
class State:
    """Where a run stands: the model, the velocity, the sum of the models to be averaged and how many they are."""

    theta: FloatArray
    velocity: FloatArray
    total: FloatArray
    count: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and to_bytes(self) == to_bytes(other)

    __hash__ = None  # type: ignore[assignment]


def begun(theta0: FloatArray) -> State:
    """The state before the first iteration: at rest at the public start.

    >>> begun(np.zeros(2)).theta.tolist()
    [0.0, 0.0]
    """
    theta = np.array(theta0, dtype=np.float64)
    if theta.ndim != 1 or not theta.size or not np.isfinite(theta).all():
        raise InvalidValue(f"a model starts from finite numbers in one row, got an array of shape {theta.shape}")
    return State(theta, np.zeros_like(theta), np.zeros_like(theta), 0)


def stepped(protocol: MaskedDescent, state: State, t: int, sum_steps: IntArray) -> State:
    """The state after iteration t = 1 … T, from the opened sum in whole grid steps (d,); with groups, of each group (G, d).

    >>> from netdp import MaskedDescent, graphs
    >>> p = MaskedDescent(graphs.ring(4), 2, sigma=1.0, step=0.5, grid=0.25, average="later")
    >>> one = stepped(p, begun(np.zeros(1)), 1, np.array([32]))        # 32 steps of 1/4 over 4 parties: a gradient of 2
    >>> two = stepped(p, one, 2, np.array([-16]))
    >>> one.theta.tolist(), two.theta.tolist(), kept(p, two).tolist()
    ([-1.0], [-0.5], [-0.5])
    """
    if not 1 <= whole("t", t) <= protocol.iterations:
        raise InvalidValue(f"iteration t = {t} of {protocol.iterations}: they are numbered from 1")
    gradient = mean_gradient(protocol, sum_steps)
    if gradient.shape != state.theta.shape:
        raise InvalidValue(f"the sum has {gradient.shape} numbers, the model {state.theta.shape}; they must agree")
    velocity = protocol.momentum * state.velocity + gradient if protocol.momentum else gradient
    theta = state.theta - protocol.step * velocity
    if 2 * t <= protocol.iterations:
        return State(theta, velocity, state.total, state.count)
    return State(theta, velocity, state.total + theta, state.count + 1)


def mean_gradient(protocol: MaskedDescent, sum_steps: IntArray) -> FloatArray:
    """g·S/expected: the noisy mean gradient that a sum in grid steps stands for; of groups, as they are combined."""
    sums = np.asarray(sum_steps)
    if sums.dtype != np.int64:
        raise InvalidValue(f"a sum is given in whole grid steps, int64 numbers, got {sums.dtype}")
    scaled = protocol.sum.step * sums.astype(np.float64)
    if protocol.groups == 1:
        return np.asarray(scaled / protocol.expected)
    if sums.ndim != 2 or len(sums) != protocol.groups:
        raise InvalidValue(f"{protocol.groups} groups have a sum each, got an array of shape {sums.shape}")
    sizes = np.bincount(protocol.group, minlength=protocol.groups)
    return protocol.combined(scaled / (sizes / protocol.n * protocol.expected)[:, None])


def kept(protocol: MaskedDescent, state: State) -> FloatArray:
    """The model that everybody keeps: the last one, or the mean of the later ones so far."""
    if protocol.average == "last" or not state.count:
        return state.theta
    return np.asarray(state.total / float(state.count))


def to_bytes(state: State) -> bytes:
    """The state as bytes, little-endian on every machine.

    >>> from_bytes(to_bytes(begun(np.ones(3)))) == begun(np.ones(3))
    True
    """
    parts = [np.ascontiguousarray(part, dtype="<f8").tobytes() for part in (state.theta, state.velocity, state.total)]
    return _HEAD.pack(_MAGIC, state.theta.size, state.count) + b"".join(parts)


def from_bytes(data: bytes) -> State:
    """The state that `to_bytes` wrote; refuses anything else."""
    if len(data) < _HEAD.size:
        raise InvalidValue(f"{len(data)} bytes are no state of a model: too short; it was cut off, or is another file")
    magic, size, count = _HEAD.unpack_from(data)
    if magic != _MAGIC.ljust(16, b"\0") or size < 1 or count < 0 or len(data) != _HEAD.size + 24 * size:
        raise InvalidValue(f"{len(data)} bytes are no state of a model; it was cut off, or is another file")
    numbers = np.frombuffer(data, dtype="<f8", offset=_HEAD.size).astype(np.float64).reshape(3, size)
    if not np.isfinite(numbers).all():
        raise InvalidValue("a state of a model holds numbers that are not finite; the file is damaged")
    return State(numbers[0].copy(), numbers[1].copy(), numbers[2].copy(), count)
