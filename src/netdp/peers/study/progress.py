"""A training in words: what it will cost, how far it is, and the model that it has led to.

**On the way**: which iteration, what has been revealed by then, how fast, who is waited for. The whole cost of a study is
entered in the ledger before the first number leaves. What the first k iterations have revealed is less; it is the certified
loss of the same protocol with k iterations. It is computed for a few k, in a thread of its own, and rounded up to the next
one of them: "at most".

**Beforehand**: rounds, bytes, memory, time, and whether it will be worth it. Bytes, memory and seconds are those of
`netdp.families.masked.error`, on a network of 100 Mbit/s; every round waits for the slowest. Whether it will be worth it:
`netdp.families.masked.training.outlook`.

**Afterwards**: the model as files with its card, made from what a party holds in its folder, at any time. The answer is in
the party's folder before anybody hears of it, so the files can be made again whenever they are lost. All parties hold the
same numbers; so are the cards, but for the versions of what wrote them.
"""

from __future__ import annotations

import base64
import bisect
import platform
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from netdp import __version__
from netdp.errors import InvalidValue, NetdpError, Refused
from netdp.models.files import NUMBERS, save_model
from netdp.numerics.arrays import FloatArray
from netdp.peers.ledger.store import Store
from netdp.peers.promise import worst_epsilon
from netdp.peers.study.planning import scaled_facts, unheld_words
from netdp.peers.study.study import Study
from netdp.peers.study.training import MANY, Training
from netdp.privacy.wording import readable, size

if TYPE_CHECKING:
    from netdp.learn.planning import Outlook

MARKS = 16
"""So many numbers of iterations, evenly spaced, are accounted for."""


class SoFar:
    """What the first iterations of a study reveal, at most; known a moment after it is made.

    >>> SoFar.marks(160)[:3], SoFar.marks(3)
    ([10, 20, 30], [1, 2, 3])
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._known: dict[int, float] = {}
        self._thread: threading.Thread | None = None
        self._last = int(getattr(study.settings, "iterations", 0))

    @staticmethod
    def marks(iterations: int) -> list[int]:
        """The numbers of iterations that are accounted for."""
        return sorted({-(-iterations * i // MARKS) for i in range(1, MARKS + 1)})

    def begin(self) -> SoFar:
        """Start to account, in the background; the end of the program does not wait for it."""
        if self._thread is None and isinstance(self._study.task, Training):
            self._thread = threading.Thread(target=self.work, daemon=True)
            self._thread.start()
        return self

    def work(self) -> None:
        """Account for all marks."""
        study, protocol = self._study, self._study.protocol()
        for k in self.marks(self._last):
            try:
                self._known[k] = worst_epsilon(
                    protocol.replace(iterations=k), study.privacy.colluders, study.privacy.delta
                )
            except NetdpError:  # then nothing is shown for it; what is promised was checked before
                return

    def epsilon(self, iteration: int) -> float | None:
        """ε after so many iterations, at most; None while it is not known."""
        if iteration < 1:
            return 0.0
        if iteration > self._last:  # the count of held-out rows
            return self._study.check_promise()
        known = sorted(self._known.items())
        place = bisect.bisect_left([k for k, _ in known], iteration)
        return known[place][1] if place < len(known) else None


def is_training(status: Mapping[str, Any]) -> bool:
    """Whether a status is that of a training under way."""
    return isinstance(status.get("iteration"), int) and isinstance(status.get("of"), int)


def training_words(status: Mapping[str, Any], so_far: SoFar | None = None, *, loss: bool = False) -> str:
    """How far a training is.

    loss : whether to tell the party's own training loss, which is for its owner's eyes only.

    >>> training_words({"iteration": 37, "of": 160, "rate": 4.25, "bytes": 3_100_000, "waiting": ["oak"]})
    'iteration 37 of 160, 4.2 a second, 3.1 MB sent, waiting for oak'
    """
    parts = [f"iteration {status['iteration']} of {status['of']}"]
    if status.get("rate"):
        parts.append(f"{status['rate']:.2g} a second")
    furthest = int(status.get("furthest", status["iteration"]))  # of gossip parties are not all at the same iteration
    if so_far is not None and (epsilon := so_far.epsilon(furthest)) is not None:
        parts.append(f"epsilon at most {readable(epsilon)} so far")
    if status.get("bytes"):
        parts.append(f"{size(float(status['bytes']))} sent")
    if loss and isinstance(status.get("loss"), float):
        parts.append(f"own loss {status['loss']:.4g}")
    if waiting := status.get("waiting"):
        parts.append(f"waiting for {names(waiting)}")
    return ", ".join(parts)


def together(statuses: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """How far all parties of a training are: the slowest iteration, all bytes, and whom the others wait for."""
    under_way = [status for status in statuses.values() if is_training(status)]
    if not under_way:
        return None
    counts: dict[str, int] = {}
    for status in under_way:
        for name in status.get("waiting") or ():
            counts[name] = counts.get(name, 0) + 1
    busy = [name for name in counts if not statuses.get(name, {}).get("waiting")]  # it works, or has not been heard of
    late = busy or [name for name, count in counts.items() if count >= len(under_way) - 1]
    return {
        "iteration": min(int(status["iteration"]) for status in under_way),
        "furthest": max(int(status["iteration"]) for status in under_way),
        "of": max(int(status["of"]) for status in under_way),
        "rate": min((float(status["rate"]) for status in under_way if status.get("rate")), default=None),
        "bytes": sum(int(status.get("bytes") or 0) for status in under_way),
        "waiting": sorted(late),
    }


def names(listed: Sequence[str]) -> str:
    """A few names."""
    return ", ".join(listed[:3]) + (" …" if len(listed) > 3 else "")


_ROUND = 0.05  # seconds: messages there and back, durable writes

_MUCH = 2e9  # bytes that a party sends in all: worth a loud word

_LONG = 6 * 3600.0


def cost_of(study: Study) -> dict[str, Any]:
    """Rounds, bytes that a party sends (the mean, and the most), bytes of memory and seconds, as plain values."""
    found = study.running.cost(_ROUND)
    rounds = study.running.most_steps() or found.rounds
    return {
        "rounds": rounds,
        "bytes_per_round": found.mean_bytes // (found.iterations if study.running.most_steps() else rounds),
        "bytes": found.mean_bytes,
        "most_bytes": found.party_bytes,
        "memory": found.memory_bytes,
        "seconds": found.seconds + max(rounds - found.rounds, 0) * _ROUND,
    }


def cost_lines(study: Study) -> list[str]:
    """The same in words; a model that is large, or a training that is long, loudly."""
    from netdp.privacy.wording import duration, size

    task, cost = study.task, cost_of(study)
    more = f" (the one in the middle of the network up to {size(cost['most_bytes'])})"
    lines = [
        f"{cost['rounds']:,} rounds; in each every party sends about {size(cost['bytes_per_round'])}, {size(cost['bytes'])} in "
        f"all{more if cost['most_bytes'] > 1.5 * cost['bytes'] else ''}, and holds {size(cost['memory'])} of numbers in memory. "
        f"That takes about {duration(cost['seconds'])} on a network of 100 Mbit/s (an estimate; gradients of a model that is "
        "code come on top); every round waits for the slowest."
    ]
    if task.dimension > MANY or cost["bytes"] > _MUCH or cost["seconds"] > _LONG:
        lines.append(
            f"THIS IS LARGE: the model has {task.dimension:,} numbers, and every party sends all of them, with noise, to "
            f"{'its neighbours' if study.running.has_own_answers else 'every other'} in every round: "
            f"{size(cost['bytes'] * study.n)} by all parties together. Noise grows with the number of numbers, too: a "
            "smaller model often ends up better."
        )
    return lines


def warnings_of(study: Study) -> tuple[str, ...]:
    """Why this training will hardly lead anywhere, if so: predicted from the sizes alone."""
    return tuple(text.replace("noise will win", "NOISE WILL WIN", 1) for text in outlook_of(study).warnings)


def outlook_of(study: Study) -> Outlook:
    """What may be expected of it, as an estimator says of any training."""
    found: Outlook = study.running.outlook()
    return found


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
