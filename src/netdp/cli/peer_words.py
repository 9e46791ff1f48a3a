"""What a running peer tells its owner: how far it is, and what came of it, in words."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netdp.peers.peer import Peer
    from netdp.peers.so_far import SoFar
    from netdp.peers.study import Study

STATUS_EVERY = 10.0
"""Seconds between two lines of progress where no terminal shows it live."""
SHOWN = 40
"""Cells of an answer that are printed; --json has all."""


class Progress:
    """How far a peer is: one live line on a terminal, plain notes elsewhere, nothing if quiet."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.live = quiet, sys.stderr.isatty()
        self.peer: Peer | None = None
        self.outcome: dict[str, Any] | None = None
        self._linked: set[str] = set()
        self._said: set[str] = set()
        self._line, self._when = "", float("-inf")
        self.so_far: SoFar | None = None

    def __call__(self, event: dict[str, Any]) -> None:
        kind, who = event["event"], event.get("peer")
        if kind == "outcome":
            self.outcome = {key: value for key, value in event.items() if key != "event"}
            self.say("the answer is here; staying until the neighbours have it too" if event["ok"] else "no answer")
        elif kind == "listening":
            self.say("listening")
        elif kind == "linked":
            self._linked.add(event["peer"])
            if not self.live:
                self.say(f"linked to {who}")
        elif kind == "lost":
            self._linked.discard(event["peer"])
            if not self.live and self.outcome is None:
                self.say(f"the link to {who} is gone ({event['reason']}); trying again")
        elif kind == "note":
            self.say(event["text"], once=True)
        elif kind == "refused":
            self.say(f"turned away{f' {who}' if who else ''}: {event['reason']}", once=True)
        elif kind == "status":
            self._status(event)

    def say(self, text: str, *, once: bool = False) -> None:
        """A line that stays."""
        if self.quiet or (once and text in self._said):
            return
        self._said.add(text)
        self.clear()
        print(f"netdp: {text}", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the live line away."""
        if self.live and self._line:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
            self._line = ""

    def _status(self, status: dict[str, Any]) -> None:
        if self.quiet or self.peer is None or self.outcome is not None:
            return
        from netdp.peers.so_far import SoFar, is_training, training_words

        study, me = self.peer.study, self.peer.me
        waiting = [study.everybody[u] for u in study.neighbours(me) if study.everybody[u] not in self._linked]
        there = len(study.neighbours(me)) - len(waiting)
        line = f"attempt {status['attempt']}: {there} of {there + len(waiting)} neighbours"
        if waiting:
            line += f" (waiting for {', '.join(waiting[:3])}{' …' if len(waiting) > 3 else ''})"
        line += f", {status['votes']} of {study.n} votes, {status['contributions']} contributions"
        if is_training(status):
            self.so_far = self.so_far or SoFar(study).begin()
            line = training_words(status, self.so_far, loss=self.live)  # on a screen, not in a log
        if line == self._line:
            return
        if self.live:
            import shutil

            self._line = line
            print(f"\r\033[K{line[: shutil.get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() >= self._when + STATUS_EVERY:
            self._line, self._when = line, time.monotonic()
            self.say(line)


def outcome_lines(study: Study, told: dict[str, Any], home: Path) -> list[str]:
    """The answer, or why there is none; what it cost; where that is written."""
    from netdp.peers.peer import published_words
    from netdp.privacy.readable import readable

    spent = told["spent"]
    if told["ok"]:
        m = len(told["roster"])
        missing = [name for name in study.names if name not in told["roster"]]
        without = f", without {', '.join(missing)}" if missing else ""
        lines = [
            *_answer_lines(study, told["answer"], m),
            "",
            f"{m} of {study.n} parties took part{without}; attempt {told['attempt']}.",
        ]
    else:
        lines = [f"No answer: {told['reason']}."]
    if told.get("worse"):
        which = ", ".join(map(str, told["worse"]))
        first = f"WORSE THAN PROMISED: attempt {which} went otherwise than planned, and cost more; the ledger holds the true cost."
        lines = [first, "", *lines]
    if study.curator is not None and told["party"] == study.curator.name:
        return [*lines, "", f"{told['party']} is the curator: it handed in no data, so nothing was spent about it."]
    about = "all its data" if spent["unit"] == "party" else "any one record of it"
    times = published_words(spent["contributions"], spent.get("steps"))
    lines += ["", f"{told['party']} published {times}. What others learned about {about}, at most:"]
    for k, epsilon in spent["epsilon"].items():
        who = study.running.who(int(k))
        planned = int(k) == study.privacy.colluders + study.running.has_curator
        promised = f"   promised {study.privacy.epsilon:g}" if planned else ""
        lines.append(f"  {who:<26} epsilon {readable(float(epsilon)):>7} at delta = {spent['delta']:g}{promised}")
    return [*lines, "", f"Ledger: {home / 'peer.db'}   (netdp ledger show --home {home})"]


def _answer_lines(study: Study, answer: dict[str, Any], parties: int) -> list[str]:
    """The answer in the data's own units."""
    what = study.task.describe()
    what = what[0].upper() + what[1:]
    if answer["kind"] == "train":
        from netdp.models.card import evaluation_words

        found = answer["evaluation"]
        return [
            f"{what}: {answer['parameters']:,} numbers.",
            *(evaluation_words(found) if found else ["No rows were held out."]),
        ]
    if answer["kind"] == "scaling":
        found = answer["features"]
        lines = [
            f"{what}:",
            *(f"  {one['name']:<24}  {one['centre']:>12.6g} ± {one['scale']:.6g}" for one in found[:SHOWN]),
        ]
        if len(found) > SHOWN:
            lines.append(f"  … and {len(found) - SHOWN} more (--json has all)")
        return [*lines, f"Noise moves a centre by {answer['noise']:.2g} of half its range (root mean square)."]
    noise = study.noise(parties)
    if "counts" in answer:
        counts = answer["counts"]
        pairs = _cells(counts) if isinstance(counts, dict) else list(zip(answer["labels"], counts, strict=True))
        width = min(40, max(len(label) for label, _ in pairs))
        lines = [f"{what}:", *(f"  {label:<{width}}  {value:>12,.1f}" for label, value in pairs[:SHOWN])]
        if len(pairs) > SHOWN:
            lines.append(f"  … and {len(pairs) - SHOWN} more (--json has all)")
        return [*lines, f"Noise moves each by {noise:.3g} (root mean square)."]
    records = answer.get("records")
    if answer["value"] is None:
        return [f"{what}: unknown, since {answer['why']}."]
    lines = [f"{what}: {answer['value']:,.6g}"]
    if "mean" in answer:
        lines.append(f"Mean: {answer['mean']:,.6g}")
    if answer.get("floored"):
        lines.append("The noise outweighs it: it came out below zero and is given as zero.")
    if records is not None:
        lines.append(f"Records, with noise: {records:,.1f}")
    error = study.task.error(noise, parties, None if records is None else max(1, round(records)))
    if error is not None:
        most = "" if records is None else "up to about "
        lines.append(f"Noise moves it by {most}{error:.3g} (root mean square), in the data's own units.")
    return lines


def _cells(table: dict[str, Any], before: str = "") -> list[tuple[str, float]]:
    """A nested table as a list of cells with their labels.

    >>> _cells({"a": {"x": 1.0, "y": 2.0}})
    [('a × x', 1.0), ('a × y', 2.0)]
    """
    cells: list[tuple[str, float]] = []
    for label, value in table.items():
        name = f"{before}{label}"
        cells += _cells(value, f"{name} × ") if isinstance(value, dict) else [(name, value)]
    return cells
