"""The model that a study has trained, as files with its card: from what a party holds in its folder, at any time afterwards.

The answer is in the party's folder before anybody hears of it, so the files can be made again whenever they are lost. All parties
hold the same numbers; so are the cards, but for the versions of what wrote them.
"""

from __future__ import annotations

import base64
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from netdp import __version__
from netdp.errors import InvalidValue, Refused
from netdp.models.files import NUMBERS, load_model, save_model
from netdp.numerics.arrays import FloatArray

from .ledger.store import Store
from .study import Study
from .study.in_two import scaled_facts, unheld_words
from .study.training import Training

FOLDER = "models"
"""Where a party keeps models in its home, one folder for each study."""


def place_in(home: Path, study: Study) -> Path:
    """Where a party keeps the model of a study."""
    return home / FOLDER / study.hash.hex()[:16]


def write_model(study: Study, home: Path, folder: Path | None = None) -> dict[str, Path] | None:
    """Write the model of a study from a party's folder, with its card; None if there is none (yet).

    folder : by default a place of its own in the party's home.
    """
    if not isinstance(study.task, Training):
        return None
    with Store.open(home / "peer.db", read_only=True) as store:
        held, unheld = store.result(study.hash), unheld_words(study, store.entries_of)
    if held is None or not held.get("ok"):
        return None
    if "resume" in held:
        total = np.frombuffer(base64.b64decode(held["resume"]["total"]), dtype="<f8").astype(np.float64)
    elif held.get("total") is not None:  # restored from a backup, which holds what people were shown
        total = np.array(held["total"], dtype=np.float64)
    else:
        raise Refused(
            f"{home} was restored from a backup, which holds no model with so many numbers; every other party has the same one"
        )
    target = place_in(home, study) if folder is None else folder
    check_free(target, study)
    return save_model(target, numbers_of(study.task, total), about(study, held, unheld is None))


def numbers_of(task: Training, total: FloatArray) -> FloatArray:
    """The numbers of the model, without the counts behind them."""
    return np.ascontiguousarray(total[: task.dimension])


def check_free(folder: Path, study: Study) -> None:
    """Refuse, before anything is spent, a folder that cannot be written, or that holds the model of another study.

    What that cost is spent, and it may be the only copy.
    """
    import tempfile

    from netdp.errors import NetdpError
    from netdp.models.files import read_about

    try:
        there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as problem:
        raise InvalidValue(
            f"no model can be written to {folder}: {problem.strerror or problem}; give another folder, --out FOLDER"
        ) from None
    file = folder / NUMBERS
    if not file.exists():
        return
    try:
        whose = read_about(file).get("study")
    except NetdpError:
        whose = None
    if whose != study.hash.hex():
        raise Refused(f"{file} is there already, and is not the model of this study; give another folder, --out FOLDER")


def about(study: Study, told: Mapping[str, Any], entered: bool = False) -> dict[str, Any]:
    """What a card says of a model, as plain values.

    entered : whether the ledger of who writes it holds the study that scaled the columns; else its cost is only stated.
    """
    task = study.task
    if not isinstance(task, Training):
        raise InvalidValue(f"the study {study.name!r} asks for {task.describe()}: there is no model")
    terms, promised = study.privacy, study.promise()
    settings = study.settings.model_dump(mode="json")
    return {
        "name": study.name,
        "study": study.hash.hex(),
        "question": task.describe(),
        "model": {
            "name": task.named, "parameters": task.dimension, "classes": None if task.classes is None else list(task.classes),
            "source": task.source or None, "fingerprint": task.fingerprint or None,
        },
        "schema": task.table.to_dict(),
        "data": {
            "parties": list(told["roster"]), "max_records": task.max_records, "min_records": task.min_records,
            "records": task.records, "held_out": task.held_out, "missing": task.missing,
        },
        "privacy": {
            "epsilon": terms.epsilon, "delta": terms.delta, "certified": study.check_promise(), "unit": task.unit,
            "neighbours": (
                "one record added or removed; changing what a record says counts as both"
                if task.unit == "record"
                else "all data of one party replaced"
            ),
            "protected": task.protected, "colluders": terms.colluders, "against": study.running.who(terms.colluders),
            "claim": promised.claim.value, "assumptions": list(promised.assumptions),
            **({} if (before := scaled_facts(study)) is None else {"scaled": before | {"entered": entered}}),
        },
        "training": {"protocol": settings.pop("kind"), **settings},
        "evaluation": told["answer"]["evaluation"],
        "versions": versions(task),
    }  # fmt: skip


def versions(task: Training) -> dict[str, str]:
    """What the model was trained with, here."""
    found = {"netdp": __version__, "python": platform.python_version(), "numpy": np.__version__}
    if task.is_code and (torch := sys.modules.get("torch")) is not None:
        found["torch"] = str(getattr(torch, "__version__", "?"))
    return found


__all__ = ["about", "check_free", "load_model", "numbers_of", "place_in", "versions", "write_model"]
