"""The trusted curator that learning together is held against: DP-SGD by Opacus, its noise by `dp-accounting`.

Neither knows anything of netdp: per-sample gradients, clipping and noise are Opacus' (`GradSampleModule`, `DPOptimizer`), the
noise multiplier is the least that Google's accountant (privacy loss distributions, add/remove, connect-the-dots) certifies.
Sampling rate, clipping, step, momentum, iterations, start and averaging are those of the `MaskedDescent` beside it.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from netdp.numerics.arrays import FloatArray


@functools.cache
def multiplier(epsilon: float, delta: float, sampling: float, times: int) -> float:
    """The least noise multiplier of T sampled Gaussian releases, add/remove, by `dp-accounting`; to a relative 1e-4."""
    from netdp.privacy.sampled_gaussian import sampled_gaussian_multiplier

    guess = sampled_gaussian_multiplier(epsilon, delta, sampling, times)  # only where to look: it brackets the search
    low, high = 0.97 * guess, 1.03 * guess
    if told(low, sampling, times, delta) <= epsilon or told(high, sampling, times, delta) > epsilon:
        raise RuntimeError(f"dp-accounting's multiplier is not within 3 % of {guess:g}")
    while high > low * (1 + 1e-4):
        middle = (low + high) / 2
        low, high = (low, middle) if told(middle, sampling, times, delta) <= epsilon else (middle, high)
    return high


def told(noise: float, sampling: float, times: int, delta: float) -> float:
    """ε of T sampled Gaussian releases, by `dp-accounting`."""
    from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
    from dp_accounting.pld import PLDAccountant

    event: Any = GaussianDpEvent(noise)
    if sampling < 1:
        event = PoissonSampledDpEvent(sampling, event)
    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=1e-3)
    return float(accountant.compose(event, times).get_epsilon(delta))


def apart(make: Any, model: Any, theta: FloatArray, X: FloatArray, y: FloatArray, loss: Any, clip: float) -> float:
    """How far, relatively, one clipped sum of Opacus without noise is from that of netdp: the baseline must not be handicapped."""
    from netdp.models import clipped_sum

    found = theta - opacus(
        make, X, y, shape=X.shape[1:], start=theta, loss=loss, noise=1e-12, clip=clip, step=float(len(X)), momentum=0.0,
        sampling=1.0, iterations=1, average="last", seed=0,
    )  # fmt: skip
    wanted = clipped_sum(model, theta, X, y, clip)
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def opacus(
    make: Any,
    X: FloatArray,
    y: FloatArray,
    *,
    shape: tuple[int, ...],
    start: FloatArray,
    loss: Any,
    noise: float,
    clip: float,
    step: float,
    momentum: float,
    sampling: float,
    iterations: int,
    average: str,
    seed: int,
) -> FloatArray:
    """θ of the module that `make` makes after DP-SGD, in the order of `named_parameters`; noise = 0 and clip = inf: plain SGD."""
    import torch
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    module = make()
    with torch.no_grad():
        torch.nn.utils.vector_to_parameters(torch.from_numpy(start).float(), module.parameters())
    private = noise > 0
    # "sum": by default Opacus takes losses for means and multiplies every gradient by the size of the batch before it clips
    watched = GradSampleModule(module, loss_reduction="sum") if private else module
    descent: Any = torch.optim.SGD(module.parameters(), lr=step, momentum=momentum)
    expected = sampling * len(X)
    if private:
        descent = DPOptimizer(
            descent,
            noise_multiplier=noise,
            max_grad_norm=clip,
            expected_batch_size=expected,
            loss_reduction="sum",
            generator=torch.Generator().manual_seed(seed + 1),
        )
        # Opacus divides by the expected size only for "mean"; the losses are summed here, so the division is in the step
        for group in descent.param_groups:
            group["lr"] = step / expected
    coins = np.random.default_rng([30, seed])
    rows, labels = torch.from_numpy(X).float().reshape(-1, *shape), torch.from_numpy(y)
    total, count = torch.zeros(start.size, dtype=torch.float64), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hooks of Opacus on the first layer, which needs no gradient to its input
        for t in range(1, iterations + 1):
            there = torch.from_numpy(np.flatnonzero(coins.random(len(X)) < sampling))
            descent.zero_grad()
            if private or len(there):
                value = loss(watched(rows[there]), labels[there])
                (value if private else value / expected).backward()
            descent.step()
            if 2 * t > iterations:
                total += torch.nn.utils.parameters_to_vector(module.parameters()).double()
                count += 1
    last = torch.nn.utils.parameters_to_vector(module.parameters()).detach().double()
    kept = total.detach() / count if average == "later" else last
    return np.asarray(kept.numpy())
