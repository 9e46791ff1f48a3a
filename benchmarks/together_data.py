"""What the benchmarks of learning together learn from: the MNIST test images and the tables, split and dealt out by a seed.

MNIST: 10,000 images, 8,000 to learn from and 2,000 to test on, drawn anew for every seed (the second half of the file is
harder than the first). `cnn` is the small convolutional network with tanh that is usual for learning with noise: 26,010
numbers. It stands in a module of its own file so that a study can name it, `together_data:cnn`.
"""

from __future__ import annotations

import gzip
import struct
from typing import Any

import numpy as np

from netdp.graphs.named import data_file
from netdp.numerics.arrays import FloatArray

ORIGIN = "the MNIST test set, t10k-*.gz"
TESTED = 2000
PIXELS = 28 * 28
CLASSES = 10


def read_idx(name: str) -> Any:
    """A file of the MNIST kind: two zero bytes, the type (8: bytes), the number of sides, the sides, the numbers."""
    with gzip.open(data_file(f"mnist/{name}", "mnist", ORIGIN)) as file:
        content = file.read()
    zero, kind, sides = struct.unpack(">HBB", content[:4])
    shape = struct.unpack(f">{sides}I", content[4 : 4 + 4 * sides])
    if zero or kind != 8 or len(content) != 4 + 4 * sides + int(np.prod(shape)):
        raise ValueError(f"{name} is no idx file of bytes")
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * sides).reshape(shape)


def mnist(seed: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Rows (m, 784) in 0 … 1 and labels: 8,000 to learn from, 2,000 to test on."""
    images = read_idx("t10k-images-idx3-ubyte.gz").reshape(-1, PIXELS) / 255.0
    labels = read_idx("t10k-labels-idx1-ubyte.gz").astype(np.float64)
    order = np.random.default_rng([20, seed]).permutation(len(labels))
    train, test = order[:-TESTED], order[-TESTED:]
    return images[train], labels[train], images[test], labels[test]


def cnn() -> Any:
    """Two convolutions and two layers, tanh, 26,010 numbers; starts from torch's generator."""
    from torch import nn

    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        nn.Conv2d(1, 16, 8, stride=2, padding=2), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, stride=2), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10),
    )  # fmt: skip


def cnn_model(chunk: int = 64) -> Any:
    """The network as a `netdp.models.Model`, with a public start."""
    from netdp.models import from_torch

    return from_torch(cnn, "cross_entropy", classes=CLASSES, shape=(PIXELS,), chunk=chunk, name="cnn")
