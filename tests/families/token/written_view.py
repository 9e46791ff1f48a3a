"""What observers of a token read, written out reading by reading: the reference that the cut into segments is held against."""

from typing import NamedTuple

import numpy as np


class WrittenView(NamedTuple):
    """The view as y = A x + B z: one row per reading, one column of A per contribution, of B per noise (σ = 1).

    `owners` names the user of each column of A; rows are the readings at the observers' visits and the releases, token by token.
    """

    data: np.ndarray
    noise: np.ndarray
    owners: np.ndarray


def written_view(view):
    """Every reading over all contributions and noises, as they stand. For small instances."""
    rows = [int((~view.hidden[path]).sum()) + 1 for path in view.paths]
    steps = [len(path) for path in view.paths]
    data = np.zeros((sum(rows), sum(steps)))
    noise = np.zeros((sum(rows), sum(steps) + len(rows)))
    known_data = np.zeros(sum(steps), dtype=bool)
    known_noise = np.zeros(sum(steps) + len(rows), dtype=bool)
    row = first = 0
    for k, (path, carries, shares) in enumerate(zip(view.paths, view.carries, view.shares, strict=True)):
        columns = np.arange(first, first + len(path))
        own = ~view.hidden[path]
        known_data[columns] = own | ~carries
        known_noise[columns] = own
        known_noise[sum(steps) + k] = own[-1]
        for t in [*np.flatnonzero(own).tolist(), len(path)]:
            data[row, columns[:t]] = 1.0
            noise[row, columns[:t]] = np.sqrt(shares[:t])
            if t == len(path):
                noise[row, sum(steps) + k] = np.sqrt(view.closing)
            row += 1
        first += len(path)
    owners = np.concatenate(view.paths).astype(np.int64)
    return WrittenView(data[:, ~known_data], noise[:, ~known_noise], owners[~known_data])
