"""Any `torch.nn.Module` with a loss as a model: per-record gradients, and what could mix records is refused.

The module is always given one record, as a batch of one, so no layer can see two records in one call. There are two ways to run it:

    chunk=1    one record after the other, by plain autograd. What a record becomes depends on it and on θ alone.
    chunk=64   `torch.func`: vmap(grad(·)) over up to so many records, several times as fast for convolutions. The mathematics is
               the same; but kernels that hold several records may round a record in another way in other company, and no
               document of torch rules that out. It is listed as an assumption (`model.assumptions`).

**Why chunk=1 is exact.** Between two records nothing is left behind: everything that a layer holds, and torch's random generator,
must be as before, and public records A, B, A must give A the same gradient twice (docs/proofs/learning.md#record-gradients).

**What is refused, and the way out.** BatchNorm in training mode mixes the records of a batch (use GroupNorm, or freeze it with
.eval() if its statistics are public). Dropout and other randomness (p=0, or .eval() of that layer: gradients are noisy anyway).
Layers that change what they hold when they are called. Operations that vmap does not know, such as writing into a new
tensor in place, or GRU: chunk=1 takes them.

**A record on which the module raises** counts as zero, like one whose gradient is not finite: stopping would show everybody that
there is such a record. (In a chunk the others are then computed one by one.) On the public records an error is an error.

**Numbers.** θ is a vector of doubles outside; inside it is rounded to the type of each parameter (float32 or float64). θ holds the
parameters that require a gradient, in the order of `named_parameters()`, a parameter with two names once. Frozen parameters and
buffers are as public as the code. A gradient is a rounded one then; what the privacy needs is checked later, in whole numbers.

**The start** is public: the numbers in the module as it is given, or, if a function that makes the module is given, what it makes
with torch's generator set to `seed`; the generator's state is restored. Other processors or versions of torch may draw other last
digits: `fingerprint()` is for comparing.
"""

from __future__ import annotations

import copy
import math
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, MissingDependency, NetdpError, Unsupported
from netdp.numerics.arrays import FloatArray
from netdp.numerics.checks import count, switch, whole

from .base import Model

try:
    import torch
except ImportError:
    raise MissingDependency("torch", "a model that is a torch.nn.Module", "torch") from None

from .torch_layers import NO_CHANCE, Memory, Watched, few_threads, refuse_mixing, seeded, trainable

LOSSES = ("cross_entropy", "mse")
_AT_ONCE = 2**24  # numbers in the gradients of one chunk: 64 megabytes in float32, and twice that as doubles
_FORWARD = 256  # records at once, where no gradients are held
_ALONE = "run records one by one, with chunk=1 (slower, and it needs no assumption)"
_ALIKE = "torch's kernels round a record alike whatever other records are computed with it (chunk={chunk}); chunk=1 enforces it"
_RAISED = (RuntimeError, ValueError, TypeError, ArithmeticError, LookupError, AssertionError)


def from_torch(
    module: Any,
    loss: str | Callable[[Any, Any], Any],
    *,
    classes: int | None = None,
    shape: Sequence[int] | None = None,
    chunk: int = 64,
    seed: int = 0,
    name: str | None = None,
    whole_inputs: bool = False,
) -> TorchModel:
    """A `torch.nn.Module` and a loss as a model.

    module         the module, with the public numbers to start from; or a function that makes it, called with torch's generator
                   at `seed`. It takes a batch (1, *shape) and gives (1, classes), or one number for regression
    loss           "cross_entropy", "mse", or a function (output, target) → scalar, given batches of one, such as nn.HuberLoss()
    classes        how many classes; None: regression
    shape          of one record, such as (1, 28, 28); rows of X are reshaped to it. None: as they come
    chunk          records at once, see above; 1: every record by itself
    seed           of the public start, if `module` is a function
    name           what the model is called; the name of the module's class by default
    whole_inputs   the module takes whole numbers, such as words for an Embedding

    >>> from torch import nn
    >>> model = from_torch(lambda: nn.Linear(2, 3), "cross_entropy", classes=3, chunk=1)
    >>> model.size, model.name, model.exact
    (9, 'Linear', True)
    >>> X, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, 0.0])
    >>> [block.shape for block in model.gradients(model.start(), X, y)]
    [(1, 9), (1, 9)]
    """
    if not isinstance(module, torch.nn.Module):
        if not callable(module):
            raise InvalidValue(f"module must be a torch.nn.Module or a function that makes one, got {module!r}")
        with seeded(seed):
            made = module()
        if not isinstance(made, torch.nn.Module):
            raise InvalidValue(f"the function gave {type(made).__name__}, not a torch.nn.Module")
        module = made
    return TorchModel(module, loss, classes=classes, shape=shape, chunk=chunk, name=name, whole_inputs=whole_inputs)


class TorchModel(Model):
    """What `from_torch` makes; it works on a copy of the module."""

    def __init__(
        self,
        module: Any,
        loss: str | Callable[[Any, Any], Any],
        *,
        classes: int | None,
        shape: Sequence[int] | None,
        chunk: int,
        name: str | None,
        whole_inputs: bool,
    ) -> None:
        self.name = type(module).__name__ if name is None else name
        self.classes = None if classes is None else whole("classes", classes, 2)
        self.shape = None if shape is None else tuple(count("shape", side) for side in shape)
        self._whole = switch("whole_inputs", whole_inputs)
        self._loss = _loss_of(loss, self.classes)
        self._module = copy.deepcopy(module)
        self._parameters = trainable(self._module, self.name)
        refuse_mixing(self._module, self.name)
        self._memory = Memory(self._module)
        self.size = sum(parameter.numel() for parameter in self._parameters.values())
        self.chunk = min(count("chunk", chunk), max(1, _AT_ONCE // self.size))
        self.exact = self.chunk == 1
        # functional_call leaves an LSTM with tensors that no gradient flows to: it gets a module of its own
        self._twin = self._module if self.exact else copy.deepcopy(self._module)
        self.assumptions = () if self.exact else (_ALIKE.format(chunk=self.chunk),)
        self._start = np.concatenate(
            [value.numpy(force=True).astype(np.float64).ravel() for value in self._parameters.values()]
        )
        self._lock = threading.Lock()  # the copy of the module holds one θ at a time
        self._held: FloatArray | None = None
        self._tried: set[tuple[int, ...]] = set()
        if self.shape is not None:
            self._try(self.shape)

    def __repr__(self) -> str:
        return f"TorchModel({self.name}, {self.size:,} numbers, chunk={self.chunk})"

    def start(self) -> FloatArray:
        """The numbers that the module was given with."""
        return self._start.copy()

    def module(self, theta: npt.ArrayLike) -> Any:
        """A copy of the module that holds θ."""
        numbers = self.checked_theta(theta)
        with self._lock:
            self._hold(numbers)
            return copy.deepcopy(self._module)

    def state(self, theta: npt.ArrayLike) -> dict[str, npt.NDArray[Any]]:
        """All numbers of the module with θ in it, by name, frozen ones and buffers too: for a file."""
        return {label: value.numpy(force=True).copy() for label, value in self.module(theta).state_dict().items()}

    def in_chunks(self, chunk: int) -> TorchModel:
        """The same model with so many records at once."""
        if min(count("chunk", chunk), max(1, _AT_ONCE // self.size)) == self.chunk:
            return self
        return TorchModel(
            self.module(self._start),
            self._loss,
            classes=self.classes,
            shape=self.shape,
            chunk=chunk,
            name=self.name,
            whole_inputs=self._whole,
        )

    def public_parts(self) -> Iterator[tuple[str, bytes]]:
        """What all parties must have alike: names, shapes and numbers of parameters and buffers."""
        yield from super().public_parts()
        yield "record", repr((self.shape, self._whole)).encode()
        for label, value in (*self._module.named_parameters(), *self._module.named_buffers()):
            yield label, repr((tuple(value.shape), str(value.dtype), value.requires_grad)).encode()
            if not value.requires_grad:
                yield label, value.numpy(force=True).tobytes()

    def gradients(self, theta: FloatArray, X: FloatArray, y: FloatArray) -> Iterator[FloatArray]:
        """Blocks of at most `chunk` gradients; a record on which the module raises has none (a row of nan: it counts as zero)."""
        theta, X, y = self.checked(theta, X, y)
        mine = theta.copy()  # nobody changes it while the module holds it
        if len(X):
            self._try(self._record_shape(X))
        for first in range(0, len(X), self.chunk):
            rows, targets = X[first : first + self.chunk], y[first : first + self.chunk]
            block = np.empty((len(rows), self.size))
            with self._lock, few_threads(self.chunk, self.size):
                self._hold(mine)
                self._fill(rows, targets, block)
            yield block

    def losses(self, theta: FloatArray, X: FloatArray, y: FloatArray) -> FloatArray:
        """The loss of every record."""
        theta, X, y = self.checked(theta, X, y)
        return self._each(lambda output, target: self._value(output, target).reshape(1), theta, X, y)[:, 0]

    def predict(self, theta: FloatArray, X: FloatArray) -> npt.NDArray[Any]:
        """The class of the largest output, or the output."""
        outputs = self._outputs(theta, X)
        return outputs[:, 0] if self.classes is None else outputs.argmax(axis=1)

    def scores(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        """Softmax of the outputs (m, classes), the probabilities if the loss is cross_entropy; (m,) for regression."""
        outputs = self._outputs(theta, X)
        if self.classes is None:
            return np.asarray(outputs[:, 0])
        return np.exp(outputs - np.logaddexp.reduce(outputs, axis=1, keepdims=True))

    def checked_rows(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """As for every model; rows must have as many numbers as `shape`, whole ones if the module takes whole numbers."""
        rows, labels = super().checked_rows(X, y)
        self._record_shape(rows)
        if self._whole and not (rows == np.rint(rows)).all():
            raise InvalidValue(f"{self.name!r} takes whole numbers, got {rows[rows != np.rint(rows)].flat[0]}")
        return rows, labels

    def _record_shape(self, rows: FloatArray) -> tuple[int, ...]:
        shape = tuple(rows.shape[1:])
        if self.shape is None:
            return shape
        if math.prod(shape) != math.prod(self.shape):
            raise InvalidValue(f"rows have shape {shape}; {self.name!r} takes records of shape {self.shape}")
        return self.shape

    def _hold(self, theta: FloatArray) -> None:
        """θ into the parameters of our copy, unless it is there."""
        if self._held is theta:
            return
        self._held = None
        done = 0
        with torch.no_grad():
            for label, parameter in self._parameters.items():
                piece = theta[done : done + parameter.numel()]
                parameter.copy_(torch.from_numpy(piece).view(parameter.shape))
                done += parameter.numel()
                if not torch.isfinite(parameter).all():
                    raise InvalidValue(
                        f"theta of {self.name!r} is beyond {parameter.dtype}: {np.abs(piece).max():g} in {label!r}; give a "
                        "smaller step"
                    )
        self._held = theta

    def _inputs(self, X: FloatArray, y: FloatArray) -> tuple[Any, Any]:
        """Records and targets as the module takes them, in memory of torch's own."""
        number = next(iter(self._parameters.values())).dtype
        rows = torch.empty((len(X), *self._record_shape(X)), dtype=torch.int64 if self._whole else number)
        rows.copy_(torch.from_numpy(np.ascontiguousarray(X)).view(rows.shape))
        targets = torch.empty(len(y), dtype=number if self.classes is None else torch.int64)
        targets.copy_(torch.from_numpy(np.ascontiguousarray(y)))
        return rows, targets

    def _value(self, output: Any, target: Any) -> Any:
        """The loss of one record, from batches of one."""
        value = self._loss(self._shaped(output), target)
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise Unsupported(f"the loss of {self.name!r} is not one number for one record; return a scalar tensor")
        return value.reshape(())

    def _shaped(self, output: Any) -> Any:
        """The output for one record as (1, classes), or as (1,) for regression."""
        expected = self.classes or 1
        if not isinstance(output, torch.Tensor) or output.numel() != expected:
            got = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
            wanted = (
                f"{expected} numbers, one per class" if self.classes else "one number, the prediction (classes=None)"
            )
            raise Unsupported(f"{self.name!r} gives {got} for one record; it must give {wanted}")
        return output.reshape((1, expected) if self.classes else (1,))

    def _fill(self, X: FloatArray, y: FloatArray, block: FloatArray) -> None:
        """The gradients of these records, into `block`."""
        if self.chunk > 1:
            try:
                self._together(X, y, block)
                return
            except NetdpError:
                raise
            except _RAISED:  # some record; find out which
                pass
        for r in range(len(X)):
            try:
                self._alone(X[r : r + 1], y[r : r + 1], block[r])
            except NetdpError:
                raise
            except _RAISED as problem:
                block[r] = np.nan
                warnings.warn(
                    f"the module {self.name!r} raised {type(problem).__name__} for a record; look at your rows",
                    RuntimeWarning,
                    stacklevel=3,
                )

    def _alone(self, X: FloatArray, y: FloatArray, into: FloatArray) -> None:
        """The gradient of one record (1, …) by plain autograd, into (d,)."""
        before, random = self._memory.now(), torch.get_rng_state()
        rows, targets = self._inputs(X, y)
        try:
            value = self._value(self._module(rows), targets)
            gradients = torch.autograd.grad(value, tuple(self._parameters.values()), allow_unused=True)
        finally:
            self._memory.check(before, self.name)
            if not torch.equal(torch.get_rng_state(), random):
                torch.set_rng_state(random)
                raise Unsupported(f"{self.name!r} draws random numbers when it is called; {NO_CHANCE}")
        to, done = torch.from_numpy(into), 0
        for parameter, gradient in zip(self._parameters.values(), gradients, strict=True):
            piece = to[done : done + parameter.numel()]
            if gradient is None:
                piece.zero_()
            else:
                piece.copy_((gradient.to_dense() if gradient.is_sparse else gradient).reshape(-1))
            done += parameter.numel()

    def _together(self, X: FloatArray, y: FloatArray, block: FloatArray) -> None:
        """The gradients of a chunk of records by vmap, into block (b, d)."""

        def loss(parameters: dict[str, Any], x: Any, target: Any) -> Any:
            return self._value(torch.func.functional_call(self._twin, parameters, (x[None],)), target[None])

        gradients = self._mapped(torch.func.grad(loss), *self._inputs(X, y))
        into, done = torch.from_numpy(block), 0
        for label, parameter in self._parameters.items():
            into[:, done : done + parameter.numel()] = gradients[label].reshape(len(block), -1)
            done += parameter.numel()

    def _mapped(self, function: Callable[..., Any], rows: Any, targets: Any) -> Any:
        parameters = {
            label: value.detach() for label, value in self._parameters.items()
        }  # they share memory and versions
        memories = self._memory, Memory(self._twin)
        before = [memory.now(attributes=False) for memory in memories]
        with warnings.catch_warnings():
            # A batching rule that torch lacks is worked around by a loop: right, and no news.
            warnings.filterwarnings("ignore", message="There is a performance drop")
            results = torch.func.vmap(function, in_dims=(None, 0, 0), randomness="error")(parameters, rows, targets)
        for memory, then in zip(memories, before, strict=True):
            memory.check(then, self.name, attributes=False)
        return results

    def _outputs(self, theta: npt.ArrayLike, X: npt.ArrayLike) -> FloatArray:
        """(m, classes) or (m, 1): what the module gives for every row."""
        theta, rows = self.checked_theta(theta), np.ascontiguousarray(X, dtype=np.float64)
        return self._each(lambda output, _: self._shaped(output).reshape(-1), theta, rows, np.zeros(len(rows)))

    def _each(self, take: Callable[[Any, Any], Any], theta: FloatArray, X: FloatArray, y: FloatArray) -> FloatArray:
        """`take(output, target)` of every record, one below the other; by the same two ways as gradients."""

        def of_record(parameters: dict[str, Any], x: Any, target: Any) -> Any:
            def output(inner: dict[str, Any]) -> Any:
                return take(torch.func.functional_call(self._twin, inner, (x[None],)), target[None])

            return torch.func.vjp(output, parameters)[0]  # as if for gradients: vmap knows LSTM that way only

        mine = theta.copy()
        shape = self._record_shape(X)
        if len(X):
            self._try(shape)
        found, at_once = [], 1 if self.chunk == 1 else _FORWARD
        for first in range(0, len(X), at_once):
            with self._lock, few_threads(self.chunk, self.size), torch.no_grad():
                self._hold(mine)
                rows, targets = self._inputs(X[first : first + at_once], y[first : first + at_once])
                got = (
                    take(self._module(rows), targets)[None] if at_once == 1 else self._mapped(of_record, rows, targets)
                )
                found.append(got.numpy(force=True).astype(np.float64))
        return np.concatenate(found) if found else np.zeros((0, self.classes or 1))

    def _try(self, shape: tuple[int, ...]) -> None:
        """Run the module on two public records of this shape, once, and refuse it by name if it does not do."""
        if shape in self._tried:
            return
        X = _public_records(shape, self._whole)
        with self._lock, Watched(self._module, self._twin) as watched:
            self._hold(self._start)
            try:
                self._agree(X, np.zeros(3), watched)
            except NetdpError:
                raise
            except Exception as problem:
                where, said = f"{self.name!r}, in {watched.where()}", str(problem).split("\n")[0][:300].rstrip(". ")
                if watched.together:
                    raise Unsupported(f"torch.func.vmap cannot run {where}: {said}. So {_ALONE}") from problem
                raise InvalidValue(
                    f"{where}: a record of shape {shape} gives {type(problem).__name__}: {said}; give shape=…, classes=… "
                    "and loss=… as the module takes them"
                ) from problem
        self._tried.add(shape)

    def _agree(self, X: FloatArray, y: FloatArray, watched: Watched) -> None:
        """A, B, A one by one and, if that is how it will be run, by vmap: all must agree."""
        first, again = np.empty(self.size), np.empty(self.size)
        for r, row in enumerate((first, again, again)):
            self._alone(X[r : r + 1], y[r : r + 1], row)
        if not np.array_equal(first, again, equal_nan=True):
            raise Unsupported(
                f"{self.name!r} gives one record two gradients, before and after another record: it remembers; keep nothing "
                "between two calls of forward"
            )
        if self.chunk > 1:
            watched.together = True
            mapped = np.empty((3, self.size))
            self._together(X, y, mapped)
            apart = float(np.linalg.norm(np.nan_to_num(mapped[0] - first)))
            if not apart <= 1e-2 * float(np.linalg.norm(np.nan_to_num(first))) + 1e-6:
                raise Unsupported(f"{self.name!r} has other gradients under torch.func.vmap than alone; {_ALONE}")


def _public_records(shape: tuple[int, ...], whole_numbers: bool) -> FloatArray:
    """A, B, A: numbers between 0 and 1, none of them special; or words 0 and 1."""
    place = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
    if whole_numbers:
        first, second = place % 2, (place + 1) % 2
    else:
        first, second = 0.5 + np.sin(place + 1) / 2, 0.5 + np.cos(place + 1) / 2
    return np.stack([first, second, first])


def _loss_of(loss: str | Callable[[Any, Any], Any], classes: int | None) -> Callable[[Any, Any], Any]:
    if callable(loss):
        return loss
    known = {"cross_entropy": torch.nn.functional.cross_entropy, "mse": torch.nn.functional.mse_loss}
    if loss not in known:
        raise InvalidValue(
            f"unknown loss {loss!r}; choose one of {', '.join(LOSSES)}, or give a function (output, target)"
        )
    if (loss == "cross_entropy") != (classes is not None):
        way = "give classes=…" if classes is None else "leave classes out"
        raise InvalidValue(f"loss={loss!r} with classes={classes!r}: {way}, or choose another loss")
    chosen: Callable[[Any, Any], Any] = known[loss]
    return chosen
