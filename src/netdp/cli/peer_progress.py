"""The life of a peer under its owner's eyes: what it reports goes to progress, log, status file, trace and metrics; signals end it.

**What a signal does.** SIGTERM and Ctrl-C ask for an orderly end. From that moment the peer hears nothing more and so says and
draws nothing new: no vote, no contribution, no cost that was not there before. What it had said already is given a moment to
leave, links are closed, the files are closed. Whether it had published anything is told, and that the same command goes on
from there. A second signal ends the process at once. That loses nothing either: what is published is on the disk before it is
sent, so to be killed at any moment is no worse; the neighbours only notice later.

**What it tells its owner**: how far it is, and what came of it, in words.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netdp.peers.status import Followers, contributed

if TYPE_CHECKING:
    from netdp.peers.events import Log, PeerEvent, Statement, StatusEvent
    from netdp.peers.peer import Peer
    from netdp.peers.status import Standing
    from netdp.peers.study.progress import SoFar
    from netdp.peers.study.study import Study
    from netdp.peers.trace import Trace

EVERY = 1.0
"""Seconds between two looks at how far the party is, for the status file."""

_OWN = ("peer.db", "policy.toml", "status.json", "evidence.json", "trace.jsonl", "traced-study.toml", "card.")


class Watchers(Followers):
    """Everybody who hears what a peer reports: its files, and whoever sits before the screen."""

    def __init__(self, progress: Progress, standing: Standing, log: Log | None, trace: Trace | None = None) -> None:
        super().__init__(standing, log, trace)
        self.progress = progress

    def __call__(self, event: PeerEvent) -> None:
        self.progress(event)
        super().__call__(event)

    def begin(self, peer: Peer) -> None:
        """The peer is made: say who it is."""
        self.progress.peer = peer
        super().begin(peer)


def live(
    peer: Peer, watchers: Watchers, stopped: list[int], stay: float | None, earlier: dict[str, Any] | None
) -> tuple[dict[str, Any] | None, int]:
    """Run a peer to its end, for `stay` seconds at most, stopped in order by signals; closes its folder.

    Returns its outcome, if there is one by then (or `earlier`, that of a run before), and how often it contributed.
    """
    import asyncio

    from netdp.peers.events import statement_of
    from netdp.peers.outcome import FAILED, status_of
    from netdp.peers.peer import Stopped

    async def life() -> dict[str, Any]:
        loop = asyncio.get_running_loop()

        def end(number: int) -> None:
            stopped.append(number)
            watchers({"event": "stopping", "signal": number, "contributed": contributed(peer)})
            watchers.progress.say("stopping in order; once more ends it at once")
            for one in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(one)
                signal.signal(one, at_once)
            peer.stop()

        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, end, int(one))
        looking = asyncio.ensure_future(look())
        try:
            async with asyncio.timeout(stay):
                return await peer.run()
        finally:
            looking.cancel()

    async def look() -> None:
        while True:
            watchers.refresh(peer)
            await asyncio.sleep(EVERY)

    told: dict[str, Any] | None = None
    reason: Statement | None = None
    code, entries = FAILED, 0
    before = signal.getsignal(signal.SIGINT)
    try:
        try:
            told = asyncio.run(life())
        except TimeoutError:
            if stay is None:
                raise
            told = peer.outcome
        except (Stopped, KeyboardInterrupt, asyncio.CancelledError):
            told = peer.outcome
        if told is None or not told["ok"]:
            told = earlier or told
        if told is not None:
            code = status_of(told)
        else:
            code = 128 + (stopped[0] if stopped else signal.SIGINT)
    except BaseException as problem:
        reason = statement_of(problem)
        raise
    finally:
        signal.signal(signal.SIGINT, before)
        try:
            with contextlib.suppress(Exception):  # the file may be what failed; the reason is on its way
                entries = contributed(peer)
            watchers.end(code, entries, reason)  # as long as the lock of the home is ours
        finally:
            peer.store.close()
    return told, entries


def at_once(number: int, frame: object) -> None:
    """The second signal: end here. What was published is on the disk; nothing else is worth waiting for."""
    with contextlib.suppress(OSError):
        os.write(
            2, b"\nnetdp: ended at once; what was published is written down, the same command goes on from there.\n"
        )
    os._exit(128 + number)


@contextlib.contextmanager
def signals() -> Iterator[list[int]]:
    """Let SIGTERM end the program as Ctrl-C does; yields the signals that came, for the exit status."""
    came: list[int] = []

    def end(number: int, frame: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield came
    finally:
        signal.signal(signal.SIGTERM, before)


def stopped_words(entries: int | None, links: int, patience: float, steps: int | None = None) -> str:
    """What an owner wants to know after a stop: was anything published, who waits, what to do.

    >>> stopped_words(1, 1, 60.0).split(";")[1].split(".")[0]
    ' published once so far, which is written down with its cost'
    >>> stopped_words(1, 1, 60.0, steps=37).split(";")[1].split(",")[0]
    ' published 37 steps so far'
    >>> stopped_words(0, 1, 60.0).split(",")[1].split(",")[0]
    ' but the others know that this party would take part'
    """
    if entries is None:
        wrote = "this start published nothing"
    elif entries:
        from netdp.peers.peer import published_words

        times = published_words(entries, steps).removesuffix(" so far")
        wrote = f"published {times} so far, which is written down with its cost"
    else:
        wrote = "nothing was published so far"
        if links:
            wrote += f", but the others know that this party would take part, and wait up to {patience:g} s"
    return f"stopped; {wrote}. Start the same command again, and it goes on from where it was."


def check_apart(home: Path, option: str, path: Path) -> None:
    """Refuse to append to a file that the home lives by: a line in the ledger would be damage."""
    from netdp.errors import Refused

    inside, place = home.resolve(), path.resolve()
    if place.parent == inside / "keys" or (place.parent == inside and place.name.startswith(_OWN)):
        raise Refused(f"{option} {path} is a file that {home} lives by, and would be damaged; give another name")


def make_log(where: str | None, home: Path) -> Log | None:
    """The log that `--log` asks for: a file, or "-" for standard error."""
    from netdp.peers.events import Log, RotatingFile, Stream

    if where is None:
        return None
    if where != "-":
        check_apart(home, "--log", Path(where))
    return Log(Stream(sys.stderr) if where == "-" else RotatingFile(Path(where)))


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

    def __call__(self, event: PeerEvent) -> None:
        if event["event"] == "outcome":
            self.outcome = {key: value for key, value in event.items() if key != "event"}
            self.say("the answer is here; staying until the neighbours have it too" if event["ok"] else "no answer")
        elif event["event"] == "listening":
            self.say("listening")
        elif event["event"] == "linked":
            self._linked.add(event["peer"])
            if not self.live:
                self.say(f"linked to {event['peer']}")
        elif event["event"] == "lost":
            self._linked.discard(event["peer"])
            if not self.live and self.outcome is None:
                self.say(f"the link to {event['peer']} is gone ({event['reason']}); trying again")
        elif event["event"] == "note":
            self.say(event["text"], once=True)
        elif event["event"] == "refused":
            who = f" {event['peer']}" if "peer" in event else ""
            self.say(f"turned away{who}: {event['reason']}", once=True)
        elif event["event"] == "status":
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

    def _status(self, status: StatusEvent) -> None:
        if self.quiet or self.peer is None or self.outcome is not None:
            return
        from netdp.peers.study.progress import SoFar, is_training, training_words

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
    from netdp.peers.ledger.entries import spent_lines
    from netdp.peers.peer import published_words
    from netdp.privacy.wording import readable

    spent = told["spent"]
    if told["ok"]:
        m = len(told["roster"])
        missing = [name for name in study.names if name not in told["roster"]]
        without = f", without {', '.join(missing)}" if missing else ""
        lines = [
            *answer_lines(study, told["answer"], m),
            "",
            f"{m} of {study.n} parties took part{without}; attempt {told['attempt']}.",
            *_signed_lines(study, told),
        ]
    elif told.get("withheld"):
        lines = [f"THE ANSWER IS WITHHELD: {told['reason']}."]
    else:
        lines = [f"No answer: {told['reason']}."]
    lines += cheat_lines(told.get("evidence", []), {one["party"]: one["why"] for one in told.get("blamed", [])}, home)
    if told.get("worse"):
        which = ", ".join(map(str, told["worse"]))
        first = f"WORSE THAN PROMISED: attempt {which} went otherwise than planned, and cost more; the ledger holds the true cost."
        lines = [first, "", *lines]
    if study.curator is not None and told["party"] == study.curator.name:
        return [*lines, "", f"{told['party']} is the curator: it handed in no data, so nothing was spent about it."]
    about = "all its data" if spent["unit"] == "party" else "any one record of it"
    times = published_words(spent["contributions"], spent.get("steps"))
    entries = spent["ledger"]["entries"]
    of = "its ledger, 1 entry" if entries == 1 else f"its whole ledger, {entries} entries"
    lines += [
        "",
        f"{told['party']} published {times}. What others learned about {about},",
        f"at most, in epsilon at delta = {spent['delta']:g}, by {of}:",
    ]
    # how many attempts it takes, and which study comes next, may be decided by somebody who has seen an answer
    planned = str(study.privacy.colluders + study.running.has_curator)
    lines += spent_lines(spent["ledger"], study.running.who, {planned: study.privacy.epsilon})
    if entries > spent["contributions"]:
        alone = ", ".join(f"{study.running.who(int(k))} {readable(e)}" for k, e in spent["epsilon"].items())
        lines.append(f"This study alone, if all had been fixed beforehand: {alone}.")
    return [*lines, "", f"Ledger: {home / 'peer.db'}   (netdp ledger show --home {home})"]


def _signed_lines(study: Study, told: dict[str, Any]) -> list[str]:
    """Who signed the answer, where answers are signed; what that proves, `netdp study result` says."""
    if study.running.threshold is None:
        return []
    signed = told.get("signatures", {})
    return [f"{len(signed)} of {study.n} parties signed this answer (netdp study result)."]


def cheat_lines(evidence: list[dict[str, Any]], blamed: dict[str, str], home: Path) -> list[str]:
    """Who is proved to have signed two different things, and who else did what no honest party does; nothing if nobody."""
    from netdp.peers.status import EVIDENCE, words_of

    out = [
        f"PROVED: {one['party']} signed {words_of(one)}: it cheats, or its keys are in use elsewhere."
        for one in evidence
    ]
    if evidence:
        out.append(f"  anybody can check it: netdp evidence verify {home / EVIDENCE} --study STUDY")
    return ["", *out, *(f"NOTE: {why}." for why in blamed.values())] if out or blamed else []


def answer_lines(study: Study, answer: dict[str, Any], parties: int) -> list[str]:
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
        from netdp.report.run import table_cells

        counts = answer["counts"]
        pairs = table_cells(counts) if isinstance(counts, dict) else list(zip(answer["labels"], counts, strict=True))
        width = min(40, max(len(label) for label, _ in pairs))
        lines = [f"{what}:", *(f"  {label:<{width}}  {value:>12,.1f}" for label, value in pairs[:SHOWN])]
        if len(pairs) > SHOWN:
            lines.append(f"  … and {len(pairs) - SHOWN} more (--json has all)")
        return [*lines, f"Noise moves each by {noise:.3g} (root mean square)."]
    if "direction" in answer:
        pairs = list(answer["direction"].items())
        lines = [f"{what}:", *(f"  {column}: {value:,.6g}" for column, value in pairs[:SHOWN])]
        if len(pairs) > SHOWN:
            lines.append(f"  … and {len(pairs) - SHOWN} more (--json has all)")
        return [*lines, f"Noise moves each by {noise / parties:.3g} (root mean square)."]
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
