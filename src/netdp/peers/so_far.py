"""How far a training is, in words: which iteration, what has been revealed by then, how fast, who is waited for.

The whole cost of a study is entered in the ledger before the first number leaves. What the first k iterations have revealed is
less; it is the certified loss of the same protocol with k iterations. It is computed for a few k, in a thread of its own, and
rounded up to the next one of them: "at most".
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from netdp.errors import NetdpError
from netdp.privacy.readable import readable
from netdp.utility.descent_cost import size

from .kinds.promised import worst_epsilon
from .study import Study
from .study.training import Training

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
    if so_far is not None and (epsilon := so_far.epsilon(int(status["iteration"]))) is not None:
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
        "of": max(int(status["of"]) for status in under_way),
        "rate": min((float(status["rate"]) for status in under_way if status.get("rate")), default=None),
        "bytes": sum(int(status.get("bytes") or 0) for status in under_way),
        "waiting": sorted(late),
    }


def names(listed: Sequence[str]) -> str:
    """A few names."""
    return ", ".join(listed[:3]) + (" …" if len(listed) > 3 else "")
