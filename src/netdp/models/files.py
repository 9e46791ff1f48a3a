"""Trained models as files: numbers and plain text, no pickle; with them all that is needed to use the model on new rows.

    model.npz        theta: the numbers of the model (float64); about: what model.json says, as UTF-8 bytes
    model.json       what the model is, which columns it reads, and what was promised to whom (`netdp.models.card`)
    MODEL_CARD.md    the same for people

`load_model` reads model.npz alone. It refuses a file whose numbers are not those that its text was written for.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import FileFormatError, InvalidValue, Refused
from netdp.numerics.arrays import FloatArray

from .base import Model
from .card import card_text
from .code import checked_source, is_code, made_of
from .linear import built_in
from .schema import Schema

FORMAT = "netdp model 1"
NUMBERS, ABOUT, CARD = "model.npz", "model.json", "MODEL_CARD.md"
_ROWS = "a list of dictionaries by column, [{'age': 50, …}, …], or a pandas table"


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model with its numbers, the columns that it reads, and its card.

    predict and predict_proba take rows in the data's own units: dictionaries by column, or a pandas table.
    """

    model: Model
    theta: FloatArray
    schema: Schema
    card: dict[str, Any]

    def predict(self, rows: Any) -> npt.NDArray[Any]:
        """The class of every row, as it is written in the data; or the number, in the label's own units."""
        found = self.model.predict(self.theta, self._read(rows))
        label = self.schema.label
        if label.values is None:
            return label.original(np.clip(np.asarray(found, dtype=np.float64), -1.0, 1.0))
        return np.array(label.values)[np.asarray(found, dtype=np.int64)]

    def predict_proba(self, rows: Any) -> FloatArray:
        """The probability of every class (rows, classes), in the order of `classes`."""
        if self.schema.classes is None:
            raise InvalidValue(f"the label {self.schema.label.name!r} is a number, which has no classes; use predict")
        return self.model.scores(self.theta, self._read(rows))

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The values of the label; None where it is a number."""
        return self.schema.label.values

    def _read(self, rows: Any) -> FloatArray:
        return self.model.prepared(self.schema.features_of(_as_rows(rows)))

    def __repr__(self) -> str:
        return f"<{self.card['model']['name']} of {self.schema.label.name!r}: {len(self.theta):,} numbers>"


def _as_rows(rows: Any) -> Sequence[Mapping[str, Any]]:
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):  # pandas
        return list(rows.to_dict("records"))
    try:
        listed = None if isinstance(rows, Mapping | str | bytes) else list(rows)
    except TypeError:  # nothing that could be listed
        listed = None
    if listed is None:
        raise InvalidValue(f"rows are {_ROWS}, got {_short(rows)} of type {type(rows).__name__}")
    for place, row in enumerate(listed):
        if not isinstance(row, Mapping):
            raise InvalidValue(f"rows are {_ROWS}; row {place} is {_short(row)} of type {type(row).__name__}")
    return listed


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def digest_of_numbers(theta: FloatArray) -> str:
    """The SHA-256 of the numbers of a model."""
    return hashlib.sha256(np.ascontiguousarray(theta, dtype="<f8").tobytes()).hexdigest()


def save_model(folder: str | os.PathLike[str], theta: FloatArray, about: Mapping[str, Any]) -> dict[str, Path]:
    """Write a model and its card into a folder; each file replaces an older one whole, or not at all.

    about : with `model` (its name; source if it is code) and `schema` at least.
    """
    place = Path(folder)
    numbers = np.ascontiguousarray(theta, dtype="<f8")
    said = {"format": FORMAT, **about, "digest": digest_of_numbers(numbers)}
    text = json.dumps(said, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    files = {name: place / name for name in (NUMBERS, ABOUT, CARD)}
    try:
        place.mkdir(parents=True, exist_ok=True)
        fresh = {name: path.with_name(f".{path.name}.new") for name, path in files.items()}
        with fresh[NUMBERS].open("wb") as file:
            np.savez(file, theta=numbers, about=np.frombuffer(text.encode(), dtype=np.uint8))
        fresh[ABOUT].write_text(text, "utf-8")
        fresh[CARD].write_text(card_text(said), "utf-8")
        for name, path in files.items():
            fresh[name].replace(path)
    except OSError as error:
        raise FileFormatError(place, None, f"the model cannot be written: {error.strerror or error}") from None
    return files


def load_model(path: str | os.PathLike[str], code: Iterable[str | os.PathLike[str]] | None = None) -> TrainedModel:
    """The model in a file (or in a folder with model.npz), ready to predict.

    code : of a model that is code, the folders to look for its module in. Without them no code runs, whatever the file says; with
        them, only the very module that the model was trained with.
    """
    file = _file_of(path)
    theta, said = _read(file)
    if said.get("digest") != digest_of_numbers(theta) or theta.ndim != 1:
        raise FileFormatError(file, None, "holds other numbers than those its card was written for; it is damaged")
    try:
        schema = Schema.from_dict(said["schema"])
        model = _model(said["model"], schema, None if code is None else [Path(folder) for folder in code])
    except (KeyError, TypeError, InvalidValue) as error:
        raise FileFormatError(file, None, f"describes no model: {error}") from None
    if model.size != len(theta):
        raise Refused(
            f"{file} holds {len(theta):,} numbers, and its model {said['model']['name']} has {model.size:,} here"
        )
    return TrainedModel(model, theta, schema, said)


def read_about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the file of a model says of it; no model is made."""
    return _read(_file_of(path))[1]


def _file_of(path: str | os.PathLike[str]) -> Path:
    """The file with the numbers, or a refusal of what cannot be one."""
    try:
        file = Path(path)
    except TypeError:
        raise InvalidValue(f"a model is read from the path of {NUMBERS}, or of its folder, got {path!r}") from None
    if file.is_dir():
        if not (file / NUMBERS).exists():
            raise FileFormatError(
                file, None, f"is a folder without {NUMBERS}; give the folder that a model was written to"
            )
        return file / NUMBERS
    if file.name in (ABOUT, CARD):
        raise FileFormatError(
            file,
            None,
            f"is the text about a model; its numbers are in {NUMBERS}: load_model({str(file.with_name(NUMBERS))!r})",
        )
    return file


def _read(file: Path) -> tuple[FloatArray, dict[str, Any]]:
    try:
        with np.load(file, allow_pickle=False) as found:
            theta = np.array(found["theta"], dtype=np.float64)
            said = json.loads(found["about"].tobytes().decode("utf-8"))
    except FileNotFoundError:
        raise FileFormatError(file, None, "cannot be read: there is no such file") from None
    except (OSError, KeyError, ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile):
        raise FileFormatError(
            file,
            None,
            f"is no model of netdp, or damaged; give the {NUMBERS} that `netdp study model` or a peer has written",
        ) from None
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise FileFormatError(file, None, f"is no model that this version reads; it reads {FORMAT!r}")
    return theta, said


def _model(said: Mapping[str, Any], schema: Schema, folders: list[Path] | None) -> Model:
    name = str(said["name"])
    if not is_code(name):
        return built_in(name, schema.width, schema.classes)
    if folders is None:
        raise Refused(
            f"the model {name!r} is code, and no file runs code by itself: read that module, then give its folder, "
            "load_model(path, code=[FOLDER])"
        )
    return made_of(name, checked_source(name, str(said["source"]), folders), schema, 1)
