"""Clipped sums of per-record gradients: ours in chunks and one by one, plain backward, and Opacus' hooks.

    python benchmarks/gradients.py [cnn | mlp | lstm | large | regression]

Milliseconds of processor time for 256 records, one thread, best of five; in brackets the multiple of a plain backward pass, which
is what training without privacy costs. "whole" is `whole_sum`: clipped, on the grid, checked in whole numbers. `large` is a model
of 10⁷ numbers, with the memory it takes. Opacus is left out where it is not installed or fails.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from measure import peak, run_cases, size

CLIP, GRID = 0.1, 2.0**-14


def best(work: Callable[[], object], times: int = size(5, quick=1)) -> float:
    """Processor time in milliseconds: what else the machine does is left out."""

    def once() -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    work()
    return min(once() for _ in range(times)) * 1e3


def cnn() -> Any:
    from torch import nn

    first = [nn.Conv2d(1, 16, 8, 2, padding=2), nn.Tanh(), nn.MaxPool2d(2, 1)]
    second = [nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Flatten()]
    return nn.Sequential(*first, *second, nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10))


def mlp() -> Any:
    from torch import nn

    return nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.Tanh(), nn.Linear(64, 10))


def lstm() -> Any:
    from torch import nn

    class Rows(nn.Module):
        """Reads an image row by row."""

        def __init__(self) -> None:
            super().__init__()
            self.cells, self.out = nn.LSTM(28, 32, batch_first=True), nn.Linear(32, 10)

        def forward(self, x: Any) -> Any:
            return self.out(self.cells(x[:, 0])[0][:, -1])

    return Rows()


def plain(make: Callable[[], Any], X: Any, y: Any) -> float:
    """One backward pass over the batch: no clipping, no privacy."""
    import torch

    module = make()

    def work() -> None:
        torch.nn.functional.cross_entropy(module(X), y).backward()

    return best(work)


def opacus(make: Callable[[], Any], X: Any, y: Any) -> tuple[float, Any] | str:
    """Per-sample gradients by hooks, clipped and added up as Opacus' optimizer does."""
    import torch

    try:
        from opacus import GradSampleModule
    except ImportError:
        return "it is not installed"
    module = GradSampleModule(make())

    def work() -> Any:
        module.zero_grad()
        torch.nn.functional.cross_entropy(module(X), y, reduction="sum").backward()
        each = [p.grad_sample for p in module.parameters()]
        norms = torch.stack([g.reshape(len(g), -1).norm(2, dim=1) for g in each], dim=1).norm(2, dim=1)
        factor = (CLIP / norms).clamp(max=1.0)
        return torch.cat([torch.einsum("i,i...->...", factor, g).reshape(-1) for g in each])

    try:
        return best(work), work()
    except Exception as problem:
        return f"fails: {type(problem).__name__}"


def compared(make: Callable[[], Any]) -> str:
    """One line: every way to the same clipped sum, and how far apart they are."""
    import warnings

    import torch

    from netdp.models import clipped_sum, from_torch, whole_sum
    from netdp.models.torch_layers import seeded

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X, y = rng.random((256, 784)), rng.integers(0, 10, 256).astype(np.float64)
    images, labels = torch.tensor(X.reshape(256, 1, 28, 28), dtype=torch.float32), torch.tensor(y).long()
    base = plain(make, images, labels)
    said, sums = [f"plain {base:.1f} ms"], {}
    for chunk in (64, 256, 1):
        model = from_torch(make, "cross_entropy", classes=10, shape=(1, 28, 28), chunk=chunk)
        theta, bound = model.start(), CLIP / GRID + math.sqrt(model.size) / 2
        took = best(lambda m=model, t=theta: clipped_sum(m, t, X, y, CLIP))
        whole = best(lambda m=model, t=theta, b=bound: whole_sum(m, t, X, y, CLIP, GRID, b))
        sums[chunk] = clipped_sum(model, theta, X, y, CLIP)
        said.append(f"chunk={chunk} {took:.0f} [{took / base:.1f}], whole {whole:.0f} [{whole / base:.1f}]")

    def same_start() -> Any:
        with seeded(0):
            return make()

    hooks = opacus(same_start, images, labels)
    if isinstance(hooks, str):
        said.append(f"Opacus' hooks: {hooks}")
    else:
        theirs = hooks[1].detach().numpy()
        away = np.linalg.norm(theirs - sums[1]) / np.linalg.norm(sums[1]) if theirs.shape == sums[1].shape else math.nan
        said.append(f"Opacus' hooks {hooks[0]:.0f} [{hooks[0] / base:.1f}], {away:.0e} away from one by one")
    apart = np.linalg.norm(sums[64] - sums[1]) / np.linalg.norm(sums[1])
    return f"{model.size:,} numbers: " + "; ".join(said) + f"; chunks {apart:.0e} away from one by one"


def large() -> str:
    """10⁷ numbers: record by record, never a table of gradients."""
    from torch import nn

    from netdp.models import from_torch, whole_sum

    before = peak()
    model = from_torch(
        lambda: nn.Sequential(nn.Linear(784, 4096), nn.ReLU(), nn.Linear(4096, 1664), nn.ReLU(), nn.Linear(1664, 10)),
        "cross_entropy",
        classes=10,
        shape=(784,),
    )
    rng = np.random.default_rng(0)
    X, y = rng.random((4, 784)), np.arange(4.0)
    theta, bound = model.start(), CLIP / GRID + math.sqrt(model.size) / 2
    took = best(lambda: whole_sum(model, theta, X, y, CLIP, GRID, bound), 2)
    more = f"{peak() - before:.1f} GB more than torch alone"
    return f"{model.size:,} numbers, chunk={model.chunk}: {took / 4:.0f} ms a record, {more}"


def regression() -> str:
    """Logistic and multinomial regression, 20,000 rows."""
    from netdp.models import Logistic, Multinomial, prepared, whole_sum

    rng = np.random.default_rng(0)
    X, y = prepared(rng.standard_normal((20_000, 30))), rng.integers(0, 2, 20_000).astype(np.float64)
    said = []
    for model in (Logistic(31), Multinomial(31, 10)):
        bound = CLIP / GRID + math.sqrt(model.size) / 2
        took = best(lambda m=model, b=bound: whole_sum(m, m.start(), X, y, CLIP, GRID, b))
        said.append(f"{model!r}: {took:.1f} ms for 20,000 rows, {took * 1e6 / 20_000 / model.size:.1f} ns a number")
    return "; ".join(said)


def warm() -> None:
    import torch  # noqa: F401


CASES: dict[str, Callable[[], str]] = {
    "cnn": lambda: compared(cnn),
    "mlp": lambda: compared(mlp),
    "lstm": lambda: compared(lstm),
    "large": large,
    "regression": regression,
}

if __name__ == "__main__":
    run_cases(__file__, __doc__, size(CASES, quick={"regression": regression}), size(warm, quick=lambda: None))
