"""What is asked when parties train a model together: which columns, which model, what is protected, what is held out.

Everything that a party does to its rows before a gradient is taken is stated here, so that all do the same and none looks at
another's rows: the columns with their public ranges (`netdp.models.schema`), the model by its name, and the share of rows that
takes no part in training but measures the result.

**Models that are code.** `model = "module:function"` names a file that every party has (`netdp.models.code`). The study states
the SHA-256 of that file, how many numbers the model has and the fingerprint of what it starts from; a party compares all three
before anything is sent. Reading, explaining and signing a study runs no code: that is why they are stated, not worked out.

**What may be refused for the data's sake** is public: whoever cannot take part is seen not to. So a party's number of rows is
compared only with `min_records` and `max_records`, and the promise is about parties whose rows are so many (`admitted`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from netdp.errors import InvalidValue, Refused
from netdp.models.base import Model
from netdp.models.code import checked_source, digest_of, is_code, made_of, source_of
from netdp.models.linear import built_in
from netdp.models.schema import Column, Schema
from netdp.numerics.arrays import FloatArray
from netdp.peers.records import Misfit, Number, Strict, Whole

from .rows import read_rows
from .scaling import Scaled, ScalingTask
from .task import Question, Task

BUILT_IN = ("logistic", "multinomial", "linear")
"""Models that come with netdp: two classes, several, a number."""
MANY = 1_000_000
"""A model with more numbers is worth a loud word: every party sends and holds them all in every iteration."""
_MOST_RECORDS = 10**9
_MOST_NUMBERS = 200_000_000
_MOST_PARAMETERS = 100_000_000
_CERTAIN = 4.0  # deviations of its noise that a number of held-out rows must exceed


class Feature(Strict):
    """A column that the model reads: its public range, or the values there are; of a number perhaps centre and scale."""

    name: str
    range: tuple[Number, Number] | None = None
    values: tuple[str, ...] | None = None
    centre: Number | None = None
    scale: Number | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        try:
            self.column  # noqa: B018  refuses what makes no sense
        except InvalidValue as problem:
            raise Misfit((), str(problem)) from None
        return self

    @cached_property
    def column(self) -> Column:
        """The same for a schema."""
        return Column(self.name, self.range, self.values, self.centre, self.scale)

    @model_serializer(mode="wrap")
    def _plain(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without a centre it is what it was before there were any, and so is the hash of its study."""
        fields: dict[str, Any] = handler(self)
        return {key: value for key, value in fields.items() if value is not None or key not in ("centre", "scale")}


class Training(Question):
    """A model, trained by all parties together on rows that nobody shows.

    model : "logistic" (two classes), "multinomial" (several), "linear" (a number), or "module:function", code that every party has.
    features : the columns it reads: {name, range = [lo, hi]} for numbers, which are clipped; {name, values = […]} for words.
        Numbers may have a centre and a scale, public too (`netdp.models.schema`).
    label : the column that it predicts; classes, the values there are, or label_range = (lo, hi) for a number.
    unit : "record" protects one row of a party, "party" all its data together.
    max_records, min_records : how many rows a party may have, and must have; public.
    records : about how many rows there are in all; public. The step depends on it, nothing else.
    held_out : the share of rows that is not trained on but counted: how often the model is right, with noise. 0: none.
    missing : "refuse" empty cells, or "skip" their rows.
    scaled : the study that centres and scales come from (`netdp.peers.study.scaling`), if they were not known before.
    source, parameters, fingerprint : of a model that is code: SHA-256 of its file, how many numbers it has, and SHA-256 of all
        that is public in it, such as the numbers that it starts from.

    >>> task = Training(features=[{"name": "age", "range": [20, 60]}], label="ill", classes=["no", "yes"], max_records=1000)
    >>> task.rows([{"age": "50", "ill": "yes"}, {"age": "20", "ill": "no"}])
    array([[ 0.5,  1. ],
           [-1. ,  0. ]])
    >>> task.dimension, task.describe()
    (2, "a logistic regression of 'ill' (no, yes) on 1 column, trained on all records")
    """

    kind: Literal["train"] = "train"
    named: str = Field(alias="model")
    source: str = ""
    parameters: Whole | None = None
    fingerprint: str = ""
    features: tuple[Feature, ...]
    label: str
    classes: tuple[str, ...] | None = None
    label_range: tuple[Number, Number] | None = None
    unit: Literal["party", "record"] = "record"
    max_records: Whole | None = None
    min_records: Whole = 2
    records: Whole | None = None
    held_out: Number = 0.0
    missing: Literal["refuse", "skip"] = "refuse"
    scaled: Scaled | None = None

    @model_serializer(mode="wrap")
    def _plain(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A study that nothing went before is what it was before there was scaling, and so is its hash."""
        fields: dict[str, Any] = handler(self)
        return {key: value for key, value in fields.items() if value is not None or key != "scaled"}

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, given: Any) -> Any:
        """The model that fits the label, where none is named."""
        if not isinstance(given, dict) or "model" in given:
            return given
        classes = given.get("classes")
        several = isinstance(classes, list | tuple) and len(classes) > 2
        return given | {"model": "linear" if classes is None else "multinomial" if several else "logistic"}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for check in (self._check_label, self._check_model, self._check_records, self._check_scaled):
            check()
        try:
            self.table  # noqa: B018  refuses what makes no sense
        except InvalidValue as problem:
            raise Misfit(("features",), str(problem)) from None
        if self.dimension > _MOST_PARAMETERS:
            raise Misfit(
                ("parameters",), f"{self.dimension:,} numbers are more than {_MOST_PARAMETERS:,}; take a smaller model"
            )
        return self

    def _check_label(self) -> None:
        if (self.classes is None) == (self.label_range is None):
            raise Misfit(
                ("classes",),
                f'say what is in the label {self.label!r}: classes = ["no", "yes"], or label_range = [0, 100] for a number; '
                "one of them",
            )
        try:
            Column(self.label, self.label_range, self.classes)
        except InvalidValue as problem:
            raise Misfit(("label_range" if self.classes is None else "classes",), str(problem)) from None

    def _check_model(self) -> None:
        stated = {"source": self.source, "parameters": self.parameters, "fingerprint": self.fingerprint}
        if self.is_code:
            for name in ("source", "fingerprint"):
                if len(str(stated[name])) != 64 or not set(str(stated[name])) <= set("0123456789abcdef"):
                    raise Misfit(
                        (name,),
                        f"must be a SHA-256, 64 hexadecimal digits, for a model that is code (netdp study new works it out); "
                        f"got {stated[name]!r}",
                    )
            if self.parameters is None or self.parameters < 1:
                raise Misfit(("parameters",), f"say how many numbers the model has, 1 or more; got {self.parameters!r}")
            return
        if self.named not in BUILT_IN:
            raise Misfit(
                ("model",),
                f"must be one of {', '.join(BUILT_IN)}, or module:function for code that every party has; got {self.named!r}",
            )
        for name, value in stated.items():
            if value:
                raise Misfit(
                    (name,), f"belongs to a model that is code, module:function, not to {self.named}; leave it out"
                )
        if (self.named == "linear") != (self.classes is None):
            raise Misfit(
                ("model",),
                f"{self.named} predicts {'a number, label_range' if self.classes else 'one of several classes'}",
            )
        if self.named == "logistic" and len(self.classes or ()) != 2:
            raise Misfit(
                ("model",), f"logistic is for two classes, and there are {len(self.classes or ())}; use multinomial"
            )

    def _check_records(self) -> None:
        if self.unit == "record" and self.max_records is None:
            raise Misfit(
                ("max_records",),
                "to protect records, say how many a party may have: it is public and sizes the numbers' range, not the noise",
            )
        for name in ("min_records", "max_records", "records"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= _MOST_RECORDS:
                raise Misfit((name,), f"must be 1 to {_MOST_RECORDS:,}, got {value:,}")
        if self.max_records is not None and self.min_records > self.max_records:
            raise Misfit(("min_records",), f"{self.min_records:,} are more than max_records = {self.max_records:,}")
        if not 0 <= self.held_out <= 0.5:
            raise Misfit(("held_out",), f"is a share of the rows, 0 to 0.5, got {self.held_out!r}; 0.1 is a usual one")

    def _check_scaled(self) -> None:
        if self.scaled is None:
            return
        if self.scaled.unit != self.unit:
            raise Misfit(
                ("scaled", "unit"),
                f"the columns were scaled for unit = {self.scaled.unit!r}, and here {self.unit!r} is protected: one promise does "
                "not add up with the other; run both for the same unit",
            )
        bare = [one.name for one in self.features if one.range is not None and one.centre is None]
        if bare or not self.ranged:
            what = f"the column {bare[0]!r} has no centre and scale" if bare else "no column is a number"
            raise Misfit(
                ("scaled",), f"{what}; leave scaled out, or make the schema anew: netdp study schema --scaled-by"
            )

    @property
    def ranged(self) -> int:
        """How many columns are numbers."""
        return sum(one.range is not None for one in self.features)

    # ── what it is ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_code(self) -> bool:
        """Whether the model is a function of a module that every party has."""
        return is_code(self.named)

    @cached_property
    def table(self) -> Schema:
        """The columns, as models read them."""
        label = Column(self.label, self.label_range, self.classes)
        return Schema(tuple(feature.column for feature in self.features), label)

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self.table.needed

    @property
    def bounds(self) -> None:
        """There is no single range of an answer."""
        return

    @cached_property
    def dimension(self) -> int:
        """How many numbers the model has, and every iteration adds."""
        if self.parameters is not None:
            return self.parameters
        return built_in(self.named, self.table.width, self.table.classes).size

    @property
    def sensitivity(self) -> float:
        """How far what is protected can move the sum of an iteration, in units of the clip."""
        return 2.0 if self.unit == "party" else 1.0

    def describe(self) -> str:
        """What is asked, in words."""
        kinds = {
            "logistic": "a logistic regression",
            "multinomial": "a multinomial regression",
            "linear": "a linear regression",
        }
        what = kinds.get(self.named, f"the model {self.named}")
        column = self.table.label
        of = column.words.replace(column.name, repr(column.name), 1)
        count = len(self.features)
        over = "all records" if self.unit == "record" else "the parties' mean gradients"
        return f"{what} of {of} on {count} column{'s' * (count > 1)}, trained on {over}"

    @property
    def protected(self) -> str:
        """What is protected, in words."""
        if self.unit == "party":
            return super().protected
        return (
            "any one record of a party, added or removed; changing what a record says counts as both; somebody with several "
            "records is protected less; who takes part is public"
        )

    @property
    def assumed(self) -> tuple[str, ...]:
        """What the promise rests on besides: code which runs beside the rows only makes a model; centres and scales are public."""
        said = self._assumed_scaling()
        if not self.is_code:
            return said
        return (
            *said,
            f"the module of {self.named} (SHA-256 {self.source[:16]}…) makes a model of what it is given, and does nothing else "
            "with rows: each party runs just this file, and whoever signs has read it; what it imports is as it should be",
        )

    def _assumed_scaling(self) -> tuple[str, ...]:
        if self.scaled is not None:
            return (
                f"the centres and scales of the columns are those of the study {self.scaled.study[:16]}…, run as stated here: "
                "what that cost is not part of this promise; the ledger of every party that took part holds it and adds up both",
            )
        if any(one.centre is not None for one in self.features):
            return ("the centres and scales of the columns are public: nobody has worked them out from these rows",)
        return ()

    @property
    def admitted(self) -> str:
        """For which data the promise is made, in words: neighbouring inputs are both of this kind."""
        most = f" to {self.max_records:,}" if self.max_records is not None else " or more"
        return (
            f"every party has {self.min_records:,}{most} rows, all of which the study takes; that a party's data do not fit, so "
            "that it cannot take part, is seen by all and not protected"
        )

    # ── from rows to numbers ──────────────────────────────────────────────────────────────────────────────────────────

    def rows(self, source: str | os.PathLike[str] | Iterable[Mapping[str, Any]]) -> FloatArray:
        """A party's rows as numbers (records, width + 1), the label last. From a CSV or Parquet file, or from rows.

        Refuses, first of all, to work beside a model that is not the one agreed upon. Nothing is left out silently.
        """
        self.check_here()
        given: Sequence[Mapping[str, Any]]
        given = read_rows(source, self.needed) if isinstance(source, str | os.PathLike) else list(source)
        if len(given) * (self.table.width + 1) > _MOST_NUMBERS:
            raise InvalidValue(
                f"{len(given):,} rows of {self.table.width:,} numbers are more than {_MOST_NUMBERS:,}; use fewer rows"
            )
        X, y = self.table.encoded(given, self.missing)
        self._check_count(len(y))
        return np.column_stack([X, y])

    def _check_count(self, count: int) -> None:
        what = "row" if count == 1 else "rows"
        if count < self.min_records:
            raise InvalidValue(
                f"this party has {count} {what} and the study asks for at least min_records = {self.min_records}; it cannot take "
                "part with so few, or ask for a study with a smaller min_records"
            )
        if self.max_records is not None and count > self.max_records:
            raise InvalidValue(
                f"this party has {count:,} {what} and the study allows at most max_records = {self.max_records:,}; choose which "
                "to use before the study, or ask for a study that allows more"
            )

    def parts(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rows as the model takes them: X and y."""
        return self.model().prepared(rows[:, :-1]), np.ascontiguousarray(rows[:, -1])

    # ── the model ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def check_here(self) -> None:
        """Refuse where the model that was agreed upon cannot be run: another file, other numbers to begin with."""
        if self.is_code:
            self.model()

    def check_source(self, folders: Iterable[Path] | None = None) -> Path | None:
        """Where the file of a model that is code lies; refuses if none with the agreed hash does. Runs nothing."""
        return checked_source(self.named, self.source, folders)[0] if self.is_code else None

    def model(self, chunk: int = 1) -> Model:
        """The model. One that is code is run only if its file has the agreed hash, and compared with what the study states.

        chunk : of torch modules: so many records at once; see `netdp.models.from_torch`.
        """
        if not self.is_code:
            return built_in(self.named, self.table.width, self.table.classes)
        held: dict[int, Model] = self._made
        if chunk not in held:
            made = made_of(self.named, checked_source(self.named, self.source), self.table, chunk)
            self._check_made(made)
            held[chunk] = made
        return held[chunk]

    @cached_property
    def _made(self) -> dict[int, Model]:
        return {}

    def _check_made(self, made: Model) -> None:
        if made.classes != self.table.classes:
            raise Refused(f"the model {self.named} has classes={made.classes}, and the study {self.table.classes}")
        if made.size != self.parameters:
            raise Refused(
                f"the model {self.named} has {made.size:,} numbers here, and the study says {self.parameters:,}"
            )
        if made.fingerprint() != self.fingerprint:
            raise Refused(
                f"the model {self.named} begins with other numbers here than the study says: an older or newer torch, or another "
                "processor; have all parties use the same version, or have the function set the first numbers from numpy"
            )

    @classmethod
    def of_code(cls, model: str, *, folders: Iterable[Path] | None = None, **fields: Any) -> Training:
        """What is asked with a model that is code, here and now: runs the module, and states its hash and its numbers."""
        rough = cls(**fields | {"model": model, "source": "0" * 64, "parameters": 1, "fingerprint": "0" * 64})
        source = source_of(model, folders)
        made = made_of(model, source, rough.table, 1)
        stated = {"source": digest_of(source[1]), "parameters": made.size, "fingerprint": made.fingerprint()}
        task = cls(**fields | {"model": model} | stated)
        task._check_made(made)
        return task

    # ── from totals to the answer ─────────────────────────────────────────────────────────────────────────────────────

    def answer(self, total: Sequence[float] | FloatArray, parties: int, noise: float = 0.0) -> dict[str, Any]:
        """What is known in the end, as plain values: the model, and how good it is on rows it has not seen.

        total : the numbers of the model, and behind them, if rows were held out, two noisy counts: right ones (or the sum of
            squared errors), and all.
        noise : the standard deviation of the noise in these counts.
        """
        t = np.asarray(total, dtype=np.float64)
        counted = 2 if self.held_out else 0
        if t.shape != (self.dimension + counted,) or not np.isfinite(t).all():
            raise InvalidValue(
                f"the total must be {self.dimension:,} numbers of the model and {counted} counts, all finite; got {t.shape}"
            )
        out: dict[str, Any] = {"kind": "train", "unit": self.unit, "parties": parties, "model": self.named}
        out |= {"parameters": self.dimension, "coefficients": self._coefficients(t[: self.dimension])}
        evaluation = self._evaluation(float(t[-2]), float(t[-1]), noise) if counted else None
        return out | {"evaluation": evaluation}

    def _coefficients(self, theta: FloatArray) -> dict[str, Any] | None:
        """What each number of a small built-in model belongs to."""
        if self.is_code or self.dimension > 1000:
            return None
        names = [*self.table.names, "constant"]
        if self.named != "multinomial":
            return dict(zip(names, theta.tolist(), strict=True))
        each = theta.reshape(len(self.classes or ()), len(names))
        return {
            label: dict(zip(names, row, strict=True))
            for label, row in zip(self.classes or (), each.tolist(), strict=True)
        }

    def _evaluation(self, right: float, count: float, noise: float) -> dict[str, Any]:
        least = max(1.0, _CERTAIN * noise)
        # a party's share of right ones counts as one, whatever its rows
        what, counted = (
            "accuracy" if self.classes is not None else "rmse",
            "rows" if self.unit == "record" else "parties",
        )
        if count < least:
            whose = "held-out rows" if self.unit == "record" else "parties with held-out rows"
            why = f"the noisy number of {whose}, {count:.3g}, is below {least:.3g}: a quotient would say nothing"
            return {what: None, counted: count, "why": why}
        share = min(max(right / count, 0.0), 1.0)
        # to first order (noise in `right` − share·noise in `count`)/count
        moved = noise * math.sqrt(1 + share * share) / count
        if self.label_range is None:
            likely = (share * count + 1) / (count + 2)  # of few rows, all of them right, not everything is known
            chance = {"chance": math.sqrt(likely * (1 - likely) / count)} if self.unit == "record" else {}
            return {"accuracy": share, "noise": moved, **chance, counted: count}
        half = (self.label_range[1] - self.label_range[0]) / 2
        rmse = half * math.sqrt(share)
        return {"rmse": rmse, "noise": half * moved / (2 * math.sqrt(max(share, moved, 1e-12))), counted: count}


AnyTask = Annotated[Task | Training | ScalingTask, Field(discriminator="kind")]
"""What a study may ask; its `kind` says which."""
