"""What learning asks of a model: the gradient of each record's own loss. Clipping, rounding and adding up are done here, for all.

A model has `size` numbers θ, public and the same for everybody. `gradients(θ, X, y)` gives, record by record, the gradient of
that record's loss, not clipped. From there on every trainer of netdp goes through two functions:

    clipped_sum   Σ_r g_r·min(1, L/‖g_r‖), in real numbers: for simulation
    whole_sum     Σ_r k_r in whole numbers, k_r the clipped g_r in steps of a grid: what a party adds its noise to

That one record moves the sum by at most R steps rests on three things (docs/proofs/learning.md#record-gradients): k_r is a function
of record r and θ alone, which a model states (`exact`) or assumes in words (`assumptions`); ‖k_r‖ ≤ R is checked in whole numbers,
after all that floating point may have done; and a record whose gradient is not finite counts as 0, where stopping would show
everybody that such a record exists.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.numerics.arrays import BoolArray, FloatArray, IntArray
from netdp.numerics.checks import count, positive, scale

MOST_STEPS = 2.0**30
"""The longest vector, in steps, that a record may become: squares of two such numbers fit in 62 bits."""

AT_ONCE = 2**17
"""Numbers in one block of gradients: a megabyte. A model with more numbers than that is taken record by record."""


class NoFiniteGradient(RuntimeWarning):
    """Records whose gradient is not a finite number counted as zero."""


class Model(ABC):
    """A loss for one record (x, y) as a function of θ, `size` real numbers.

    name         "logistic", "multinomial", "linear", or what a torch module is called
    size         d: how many numbers θ has
    classes      how many classes, numbered 0 … classes−1; None: y is a number
    exact        True: a record's gradient and prediction depend, to the last bit, on that record and θ alone
    assumptions  what a guarantee has to say where `exact` is False; a model of one's own makes no such promise unless it says so
    """

    name: str
    size: int
    classes: int | None
    exact: bool = False
    assumptions: tuple[str, ...] = (
        "a record's gradient does not depend on other records, to the last bit: whoever wrote the model sees to that",
    )

    @abstractmethod
    def start(self) -> FloatArray:
        """The first θ (d,): public, the same for everybody."""

    @abstractmethod
    def gradients(self, theta: FloatArray, X: FloatArray, y: FloatArray) -> Iterator[FloatArray]:
        """Blocks (b, d) of gradients in the order of the rows: of each record's own loss, not clipped."""

    @abstractmethod
    def losses(self, theta: FloatArray, X: FloatArray, y: FloatArray) -> FloatArray:
        """The loss of every record (m,)."""

    @abstractmethod
    def predict(self, theta: FloatArray, X: FloatArray) -> npt.NDArray[Any]:
        """The class number of every row (m,), or the number predicted for it."""

    def scores(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        """(m, classes): the probabilities of the classes; (m,) for regression, the numbers predicted."""
        raise Unsupported(f"the model {self.name!r} has no scores; use predict")

    def correct(self, theta: FloatArray, X: FloatArray, y: FloatArray) -> BoolArray:
        """Which rows are predicted right (m,)."""
        if self.classes is None:
            raise InvalidValue(f"the model {self.name!r} predicts numbers, not classes; compare with losses or predict")
        return np.asarray(self.predict(theta, X) == np.asarray(y))

    def prepared(self, X: npt.ArrayLike) -> FloatArray:
        """Raw rows as this model takes them, each by itself; most models take them as they are."""
        return np.asarray(X, dtype=np.float64)

    def in_chunks(self, chunk: int) -> Model:
        """This model with so many records computed at once; 1 asks for one that keeps records apart, to the last bit."""
        if count("chunk", chunk) == 1 and not self.exact:
            raise Unsupported(
                f"the model {self.name!r} does not promise that a record's gradient depends on that record alone, to the last bit, "
                "as chunk=1 asks; set exact = True in its class if it does, or state a larger chunk, which is listed as an "
                "assumption"
            )
        return self

    def public_parts(self) -> Iterator[tuple[str, bytes]]:
        """What all parties must have alike, piece by piece: what it is, and the numbers that it starts with."""
        yield "model", repr((type(self).__name__, self.name, self.size, self.classes)).encode()
        yield "start", self.start().astype("<f8").tobytes()

    def fingerprint(self) -> str:
        """SHA-256 of `public_parts`: the same wherever the model and its start are the same, to the last bit.

        >>> from netdp.models import Logistic
        >>> Logistic(2).fingerprint() == Logistic(2).fingerprint() != Logistic(3).fingerprint()
        True
        """
        digest = hashlib.sha256()
        for label, content in self.public_parts():
            for piece in (label.encode(), content):
                digest.update(len(piece).to_bytes(8, "big"))
                digest.update(piece)
        return digest.hexdigest()

    def expansion(self, X: FloatArray, step: float, clip: float) -> float:
        """A Lipschitz constant of θ ↦ θ − step·(clipped gradient of a record), for every record of X."""
        raise Unsupported(
            f"nothing is known of how far a step of {self.name!r} can stretch the distance between two models, and gossip and "
            "walks rest on that; train it with MaskedDescent, or state smoothness=… (your word) in ModelParties"
        )

    def checked(
        self, theta: npt.ArrayLike, X: npt.ArrayLike, y: npt.ArrayLike
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """θ, X and y as arrays of doubles that fit this model and each other, or a refusal."""
        return (self.checked_theta(theta), *self.checked_rows(X, y))

    def checked_theta(self, theta: npt.ArrayLike) -> FloatArray:
        """θ as (d,) finite doubles, or a refusal."""
        numbers = np.ascontiguousarray(theta, dtype=np.float64)
        if numbers.shape != (self.size,):
            raise InvalidValue(
                f"theta has shape {numbers.shape}; {self.name!r} has {self.size:,} numbers: give ({self.size},)"
            )
        if not np.isfinite(numbers).all():
            raise InvalidValue(f"theta of {self.name!r} is not finite any more; give a smaller step")
        return numbers

    def checked_rows(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """X (m, …) and y (m,) as doubles; labels must be numbers of classes, or finite."""
        rows, labels = np.ascontiguousarray(X, dtype=np.float64), np.ascontiguousarray(y, dtype=np.float64)
        if labels.ndim != 1 or rows.ndim < 2 or len(rows) != len(labels):
            raise InvalidValue(f"X has shape {rows.shape} and y {labels.shape}; they must be (m, features) and (m,)")
        bad = ~np.isfinite(labels)
        if self.classes is not None:
            bad |= ~((labels >= 0) & (labels < self.classes) & (labels == np.floor(labels)))
        if bad.any():
            row = int(np.argmax(bad))
            wanted = "a finite number" if self.classes is None else f"a class number from 0 to {self.classes - 1}"
            raise InvalidValue(f"row {row} has the label {labels[row]:g}; {self.name!r} takes {wanted}")
        return rows, labels


def clipped_sum(
    model: Model,
    theta: FloatArray,
    X: FloatArray,
    y: FloatArray,
    clip: float,
    *,
    lost: Callable[[int], None] | None = None,
) -> FloatArray:
    """Σ over records of gradient·min(1, clip/‖gradient‖), (d,), in doubles: for simulation in real numbers.

    clip   math.inf: gradients as they are
    lost   told how many records had no finite gradient (they count as zero); without it, a warning

    >>> from netdp.models import Linear
    >>> clipped_sum(Linear(1), np.zeros(1), np.array([[1.0], [1.0]]), np.array([-0.5, -8.0]), clip=1.0).tolist()
    [1.5]
    """
    from .kernels import add_clipped

    theta, X, y = model.checked(theta, X, y)
    limit = math.inf if clip == math.inf else positive("clip", clip)
    total, gone = np.zeros(model.size), 0
    for block in blocks(model, theta, X, y):
        gone += add_clipped(block, limit, total)
    tell_lost(gone, model, lost)
    return total


def clipped_rows(model: Model, theta: FloatArray, X: FloatArray, y: FloatArray, clip: float) -> FloatArray:
    """(m, d): every record's clipped gradient; small models and few records only, as all of them are held at once."""
    from .kernels import clip_rows

    theta, X, y = model.checked(theta, X, y)
    limit = math.inf if clip == math.inf else positive("clip", clip)
    rows, done, gone = np.empty((len(X), model.size)), 0, 0
    for block in blocks(model, theta, X, y):
        piece = rows[done : done + len(block)]
        piece[:] = block
        gone += clip_rows(piece, limit)
        done += len(block)
    tell_lost(gone, model, None)
    return rows


def whole_sum(
    model: Model,
    theta: FloatArray,
    X: FloatArray,
    y: FloatArray,
    clip: float,
    grid: float,
    bound: float,
    *,
    lost: Callable[[int], None] | None = None,
) -> IntArray:
    """Σ over records of the clipped gradient in whole steps of the grid (d,): one record moves it by at most `bound` steps.

    grid    size of a step
    bound   R, in steps: no record's vector is longer, checked in whole numbers; `MaskedDescent.distance` for records
    lost    told how many records had no finite gradient (they count as zero); without it, a warning

    >>> from netdp.models import Linear
    >>> whole_sum(Linear(1), np.zeros(1), np.array([[1.0], [1.0]]), np.array([-0.5, -8.0]), clip=1.0, grid=0.25, bound=4.5)
    array([6])
    """
    from .kernels import add_whole

    theta, X, y = model.checked(theta, X, y)
    clip, grid = scale("clip", clip), scale("grid", grid)
    limit = square_of(bound)
    if len(X) * (math.isqrt(limit) + 1) >= 2**62:
        raise InvalidValue(
            f"{len(X):,} records of {bound:,g} grid steps each do not fit in 62 bits; give a coarser grid"
        )
    total, gone = np.zeros(model.size, dtype=np.int64), 0
    room = np.empty(model.size, dtype=np.int64)
    for block in blocks(model, theta, X, y):
        gone += add_whole(block, clip, grid, math.isqrt(limit), limit, room, total)
    tell_lost(gone, model, lost)
    return total


def square_of(bound: float) -> int:
    """⌊bound²⌋, exactly: whole numbers k have ‖k‖ ≤ bound just if ‖k‖² is at most that.

    >>> square_of(2.5), square_of(3)
    (6, 9)
    """
    number = positive("bound", bound)
    if number > MOST_STEPS:
        raise InvalidValue(f"a record may be {number:g} grid steps long, more than 2³⁰; give a coarser grid")
    return math.floor(Fraction(number) ** 2)


def blocks(model: Model, theta: FloatArray, X: FloatArray, y: FloatArray) -> Iterator[FloatArray]:
    """`model.gradients`, if it gives one row for every record: two would let a record count twice."""
    left = len(X)
    for block in model.gradients(theta, X, y):
        array = np.ascontiguousarray(block, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != model.size or len(array) > left:
            raise InvalidValue(
                f"a block of gradients of {model.name!r} has shape {array.shape}, with {left:,} of {len(X):,} records left; it "
                f"must be (records, {model.size})"
            )
        left -= len(array)
        yield array
    if left:
        raise InvalidValue(f"the gradients of {model.name!r} end {left:,} records short of {len(X):,}")


def tell_lost(gone: int, model: Model, lost: Callable[[int], None] | None) -> None:
    """Say how many records counted as zero: to `lost`, or as a warning."""
    if not gone:
        return
    if lost is not None:
        lost(gone)
        return
    warnings.warn(
        f"{gone:,} record{'s have' if gone > 1 else ' has'} no finite gradient in {model.name!r} and count{'s' * (gone == 1)} as "
        "zero; look at these rows, or give a smaller step",
        NoFiniteGradient,
        stacklevel=3,
    )
