"""What a torch module must not hold if its records are to be kept apart, and which layer to name when something is wrong.

By name: BatchNorm in training mode, running statistics, dropout. What else mixes, remembers or draws is found by running the module
on public records (`netdp.models.torch`).
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from netdp.errors import InvalidValue, MissingDependency, Unsupported
from netdp.numerics.checks import whole

try:
    import torch
    from torch import nn
except ImportError:
    raise MissingDependency("torch", "a model that is a torch.nn.Module", "torch") from None

NO_CHANCE = (
    "set p=0, or call .eval() on that layer: a gradient must be a function of its record (noise is added anyway)"
)
_LARGE = 2**20  # numbers, from which on threads pay for one record


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """torch's generator at `seed` inside, and as it was before outside.

    >>> before = torch.get_rng_state()
    >>> with seeded(7):
    ...     first = torch.rand(())
    >>> with seeded(7):
    ...     bool(torch.rand(()) == first)
    True
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    state = torch.get_rng_state()
    torch.default_generator.manual_seed(whole("seed", seed, 0))
    try:
        yield
    finally:
        torch.set_rng_state(state)


@contextmanager
def few_threads(chunk: int, size: int) -> Iterator[None]:
    """One thread for single records of small models: several only wait for each other there, on a busy machine for seconds."""
    threads = torch.get_num_threads()
    if chunk > 1 or size >= _LARGE or threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def refuse_mixing(module: Any, name: str) -> None:
    """Refuse layers that mix records or draw random numbers, by name and with the way out."""
    for label, layer in module.named_modules():
        what = f"{name!r}: the layer {label or 'that is the module'!r} is a {type(layer).__name__}"
        if not layer.training:
            continue
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            channels = layer.num_features or 1  # 0: a lazy one, not run yet
            groups = next(g for g in (8, 4, 2, 1) if channels % g == 0)
            raise Unsupported(
                f"{what}, which mixes the records of a batch; use nn.GroupNorm({groups}, {channels}) instead, or call .eval() "
                "on it if its statistics are public and shall stay"
            )
        if isinstance(layer, nn.modules.instancenorm._InstanceNorm) and layer.track_running_stats:
            raise Unsupported(f"{what} that keeps running statistics of records; give track_running_stats=False")
        # Dropout has p; LSTM and MultiheadAttention have a number called dropout
        chance = getattr(layer, "p" if isinstance(layer, nn.modules.dropout._DropoutNd) else "dropout", 0.0)
        if isinstance(chance, int | float) and chance > 0:
            raise Unsupported(f"{what} that drops numbers at random; {NO_CHANCE}")


def trainable(module: Any, name: str) -> dict[str, Any]:
    """The parameters that are learned, by name; one with two names once."""
    for label, value in (*module.named_parameters(), *module.named_buffers()):
        if isinstance(value, nn.parameter.UninitializedTensorMixin):
            raise InvalidValue(f"{name!r}: {label!r} has no shape yet; run the module once on a public record before")
        if value.device.type != "cpu":
            raise Unsupported(f"{name!r}: {label!r} is on {value.device}; call .cpu() on the module")
    found = {label: value for label, value in module.named_parameters() if value.requires_grad}
    if not found:
        raise InvalidValue(f"{name!r} has no parameter that requires a gradient: there is nothing to learn")
    for label, value in found.items():
        if value.dtype not in (torch.float32, torch.float64):
            raise Unsupported(
                f"{name!r}: the parameter {label!r} is {value.dtype}; call .float() or .double() on the module"
            )
        if not torch.isfinite(value).all():
            raise InvalidValue(f"{name!r}: the parameter {label!r} is not finite at the start")
    return found


class Memory:
    """All that the layers of a module hold: which tensors, how often each was written to, and every other attribute.

    What is compared after every record. It does not see what is written into a list or a dictionary, or outside of the module.
    """

    def __init__(self, module: Any) -> None:
        self._layers = [(label or type(layer).__name__, layer) for label, layer in module.named_modules()]

    def now(self, attributes: bool = True) -> tuple[list[Any], list[int]]:
        """References to everything, or to parameters and buffers only, and the versions of the tensors."""
        things: list[Any] = []
        versions: list[int] = []
        for _, layer in self._layers:
            for store in (layer._parameters, layer._buffers):
                things.extend(store.values())
                versions.extend(value._version for value in store.values() if value is not None)
            if attributes:
                things.extend(layer.__dict__.values())
        return things, versions

    def check(self, before: tuple[list[Any], list[int]], name: str, attributes: bool = True) -> None:
        """Refuse if anything changed, by the name of the layer."""
        things, versions = self.now(attributes)
        same = versions == before[1] and len(things) == len(before[0])
        if same and (all(map(operator.is_, things, before[0])) or all(map(_same, things, before[0]))):
            return
        what = self._changed(before, attributes)
        raise Unsupported(
            f"{name!r}: {what} when it is called, so a record could depend on those before it; take that out (for statistics of "
            "batches: GroupNorm; for weight_norm: torch.nn.utils.parametrizations)"
        )

    def _changed(self, before: tuple[list[Any], list[int]], attributes: bool) -> str:
        """The first layer and attribute that are not as before."""
        things, versions = iter(before[0]), iter(before[1])
        for label, layer in self._layers:
            for attribute, value in (*layer._parameters.items(), *layer._buffers.items()):
                if not _same(next(things, None), value) or (
                    value is not None and next(versions, None) != value._version
                ):
                    return f"the layer {label!r} changes its {attribute!r}"
            for attribute, value in layer.__dict__.items() if attributes else ():
                if not _same(next(things, None), value):
                    return f"the layer {label!r} changes its {attribute!r}"
        return "it changes"


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, bool | int | float | str) and a == b)


class Watched:
    """Which layer was entered last, and not left: the one to name when something raises."""

    def __init__(self, module: Any, twin: Any) -> None:
        self.together = False
        self._open: list[str] = []
        self._hooks: list[Any] = []
        both = (module,) if twin is module else (module, twin)
        for label, layer in (pair for one in both for pair in one.named_modules()):
            said = f"{label!r} ({type(layer).__name__})" if label else f"{type(layer).__name__}.forward"
            self._hooks.append(layer.register_forward_pre_hook(self._entered(said)))
            self._hooks.append(layer.register_forward_hook(self._left))

    def where(self) -> str:
        """The innermost layer that did not return, or else the loss."""
        return f"the layer {self._open[-1]}" if self._open else "the loss, or in a gradient"

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _entered(self, said: str) -> Any:
        def note(*_: object) -> None:
            self._open.append(said)

        return note

    def _left(self, *_: object) -> None:
        self._open.pop()
