"""The fault matrix: every protocol that runs on peers × everything that can go wrong, over real processes.

A *cell* is one protocol under one fault: a few runs of a small study, and after each of them the same questions (`judge`):

- every answer is right: what follows from the numbers that were written down, or within the noise that the study states;
- who has no answer says why, and nobody died that was not told to;
- every ledger verifies, and holds one entry for every contribution that was made, and no other;
- nothing that a party ever said, over all its lives, was said in two ways: no second noise for one contribution.

`python benchmarks/faults.py` runs all of it and prints the matrix; `test_faults.py` runs a part. A protocol is found here by
its name in `netdp.peers.kinds.RUNNING`; what its study looks like stands in `COMPANY`.
"""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import crew
import numpy as np
from proxy import RecordingProxy

from netdp.families.gossip.protocol import gossip_step, gossip_weights, summed
from netdp.peers.kinds import RUNNING
from netdp.peers.ledger.entries import CORRECTS
from netdp.peers.messages import ItemKind, Key
from netdp.peers.study.task import Task

BINS = Task(kind="histogram", column="x", bounds=(0, 120), bins=4)
MONTHS = {"period": "period", "periods": ("jan", "feb", "mar")}
PARTIES = 5
DEVIATIONS = 8.0
"""How many deviations of the stated noise an answer may be from the truth: an honest run is further off less than once in 10¹⁴."""
COMPANY = {
    "masked-sum": {"graph": "complete:5", "threshold": 0},
    "masked-sum, one attempt": {"graph": "complete:5", "protocol": "masked-sum", "threshold": 4},
    "masked-sum, averaging": {"graph": "complete:5", "protocol": "masked-sum", "spread": "average", "threshold": 0},
    "ring-sum": {"graph": "complete:5"},
    "ring-sum, Laplace": {"graph": "complete:5", "protocol": "ring-sum", "law": "laplace"},
    "ring-sum, a value per period": {
        "graph": "ring:5",
        "protocol": "ring-sum",
        "task": crew.MEAN.model_copy(update=MONTHS),
    },
    "gossip": {"graph": "ring:5"},
    "gossip, changing links": {"graph": "complete:5", "protocol": "gossip", "edge_probability": 0.5},
    "gossip, accelerated": {"graph": "ring:5", "protocol": "gossip", "accelerated": True},
    "ring-histogram": {"graph": "complete:5", "task": BINS},
    "ring-histogram, a value per period": {
        "graph": "complete:5",
        "protocol": "ring-histogram",
        "task": BINS.model_copy(update=MONTHS),
    },
    "walk-sum": {"graph": "complete:5"},
    "walk-sum, a value per period": {
        "graph": "complete:5",
        "protocol": "walk-sum",
        "task": crew.MEAN.model_copy(update=MONTHS),
    },
    "walk-histogram": {"graph": "complete:5", "task": BINS},
    "randomized-gossip": {"graph": "complete:5", "pace": 0.05},
    "shuffle": {"graph": "complete:5", "task": BINS, "colluders": 0},
    "shuffle, single directions through the server": {
        "graph": "complete:5",
        "protocol": "shuffle",
        "task": Task(kind="direction", columns=("x", "z")),
        "colluders": 0,
        "reporting": "single",
        "cover": 2,
    },
    "masked-descent": {"graph": "complete:5", "task": crew.TRAIN, "iterations": 5, "sampling": 0.5},
    "walk-descent": {"graph": "complete:5", "task": crew.TRAIN_PARTIES, "steps": 12, "tokens": 2, "batch": 1},
    "gossip-descent": {"graph": "ring:5", "task": crew.TRAIN_PARTIES, "iterations": 5, "gossip_rounds": 2, "batch": 1},
}
"""What a small study of each protocol looks like: options of `crew.Crew`."""


def protocols():
    """The rows of the matrix: every protocol that runs on peers, some in two ways."""
    named = {name.partition(",")[0] for name in COMPANY}
    rows = [name for name in COMPANY if name.partition(",")[0] in RUNNING]
    return rows + [kind for kind in RUNNING if kind not in named]


def settled(folder, row, **options):
    """A crew for one row of the matrix."""
    kind = row.partition(",")[0]
    settings = {"graph": f"complete:{PARTIES}", "protocol": kind, "rough": True} | COMPANY.get(row, {}) | options
    if settings.pop("tolerant", False):
        settings |= tolerance(row)
    return crew.Crew(folder, PARTIES, **settings)


TOLERANCES = {"randomized-gossip": {"absent": 1}, "masked-sum, one attempt": {"absent": 1}}


def tolerance(row):
    """What a study of this protocol may state about attempts and absences."""
    kind = row.partition(",")[0]
    return TOLERANCES.get(row, TOLERANCES.get(kind, {"attempts": 2, "absent": 1})) if RUNNING[kind].tolerates else {}


# ── faults ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Fault:
    """One column: what befalls whom, run by run.

    plans     (how many parties) → runs; a run is {party: its lives}, see `crew.orders` and `mischief`
    answers   whether everybody must hold the answer in the end; else a clean end will do, for some or for all
    options   of the study
    cut       seconds for which the parties are cut into {0, 1} and the others, from the first word of party 0 on
    small     parties whose home is a small disk of its own, where this machine allows it
    """

    name: str
    words: str
    plans: Callable[[int], list[dict[int, list]]]
    answers: bool = True
    options: dict = field(default_factory=dict)
    cut: float = 0.0
    small: tuple[int, ...] = ()


SHORT = {"gather": 6.0, "patience": 2.0}
"""Timing of studies that are to give up."""
GONE = {**SHORT, "tolerant": True}


def everywhere(*order):
    return lambda n: [{u: [list(order)] for u in range(n)}]


def _each_send(when):
    """All parties die again and again, each life at another send: between them at send 1 to 12, twice."""

    def plans(n):
        return [{u: [[when, 1 + (5 * r + u + 4 * life) % 12] for life in range(4)] for u in range(n)} for r in range(2)]

    return plans


def _writes(n):
    lives = [
        [["before vote"], ["after vote"], ["before spend"], ["in commit"], ["after spend"]],
        [["before contribution"], ["after contribution"], ["long-after contribution"]],
        [["before result"], ["after result"]],
        [["in commit", 1], ["after spend"], ["before result"]],
        [["before frame", k] for k in (1, 2, 4, 6)],
    ]
    return [{u: lives[(u + r) % len(lives)] for u in range(n)} for r in range(2)]


FAULTS = [
    Fault("nothing", "nothing happens", lambda n: [{}]),
    Fault("kill before send", "kill −9 before the k-th frame leaves, again and again, k = 1 … 12", _each_send("before send")),
    Fault("kill after send", "kill −9 after the link took the k-th frame", _each_send("after send")),
    Fault("kill after wire", "kill −9 a while after the k-th frame left", _each_send("long-after send")),
    Fault("kill in writes", "kill −9 before, in and after every transaction", _writes),
    Fault("gone", "never comes at all", lambda n: [{2: [["gone"]]}], False, GONE),
    Fault("gone before word", "voted, then gone for good", lambda n: [{2: [["before spend"], ["gone"]]}], False, GONE),
    Fault("gone after word", "spoke, then gone for good",
          lambda n: [{u: [["after word", 1], ["gone"]]} for u in (2, n - 1)], False, GONE),
    Fault("pause", "stopped for a while", lambda n: [{1: [["pause word", 1, 1.0]], 3: [["pause send", 4, 1.0]]}]),
    Fault("long pause", "stopped for longer than everybody's patience",
          lambda n: [{2: [["pause word", 1, 9.0]]}, {2: [["pause send", 2, 9.0]]}], False, GONE),
    Fault("drop", "a tenth of all frames vanish silently", lambda n: [everywhere("swallow send", 0.1, s)(n)[0] for s in (1, 2)],
          False, GONE),
    Fault("duplicate", "half of all frames come twice", everywhere("double send", 0.5, 1)),
    Fault("reorder", "a third of all frames change places with later ones",
          lambda n: [everywhere("shuffle send", 0.3, s)(n)[0] for s in (1, 2)], False, GONE),
    Fault("delay", "every frame waits up to 0.1 s", everywhere("delay send", 0.1, 1)),
    Fault("partition", "two groups cannot talk for a while", lambda n: [{0: [["mark word", 1]]}], cut=1.5),
    Fault("long partition", "two groups cannot talk for longer than everybody's patience",
          lambda n: [{0: [["mark word", 1]]}], False, GONE, cut=9.0),
    Fault("full disk", "no room for a vote, a contribution, a result; then there is room again",
          lambda n: [{0: [["full vote"]], 1: [["full spend"]], 2: [["full result"]]}], small=(0, 1, 2)),
    Fault("clock jump", "wall clocks jump, by an hour and almost a day back",
          lambda n: [{0: [["jump clock", 3600.0]], 1: [["jump clock", -80000.0]], 2: [["jump clock", 8e6]]}]),
    Fault("clock leap", "a wall clock jumps by three years: certificates have expired there",
          lambda n: [{2: [["jump clock", 1e8]]}], False, GONE),
    Fault("clock jump and kill", "wall clocks jump by an hour; whose clock jumped dies and comes back",
          lambda n: [{u: [[["jump clock", 3600.0 * (-1) ** u], ["after send", 3 + u]]] for u in range(n)}]),
]  # fmt: skip

MIXED = Fault(
    "mixture", "deaths, a stop, a full disk, a jumping clock, delays and doubles at once",
    lambda n: [{
        0: [[["delay send", 0.02, 1], ["before send", 4]], ["after send", 2], ["long-after send", 5]],
        1: [["full spend"], ["in commit"], ["after spend"], ["before result"]],
        2: [[["double send", 0.5, 1], ["pause word", 1, 0.5]]],
        3: [["before vote"], ["before spend"], ["after contribution"], ["after frame", 5]],
        4: [[["jump clock", 3600.0], ["before frame", 6]], ["after send", 7], ["before result"]],
    }],
    small=(1,),
)  # fmt: skip
"""Much of the above in one run, for those who have a minute."""


STEPS = (
    ItemKind.KEYS, ItemKind.DEALING, ItemKind.VOTE, ItemKind.CONTRIBUTION, ItemKind.PREPARE, ItemKind.COMMIT, ItemKind.REVEAL,
)  # fmt: skip
"""What a member of an attempt that survives dropouts says, in order."""


@dataclass(frozen=True)
class Company:
    """A fair company: n parties of which c may collude, and a be absent; so many are killed for good."""

    name: str
    parties: int
    colluders: int
    absent: int

    @property
    def threshold(self):
        return self.parties - self.colluders - self.absent

    @property
    def dying(self):
        return tuple(3 + 4 * k for k in range(self.absent))


SIXTEEN = Company("sixteen", 16, 3, 2)
SIX = Company("six", 6, 1, 1)


def killed_words(kind, when):
    """What befalls a company, in words."""
    return f"killed {when} {kind.name.lower()}"


def killed_at(company, kind, when, folder=None):
    """As many parties as may be absent are killed for good before or after they say something: how the others fare.

    "before": before it leaves for anybody; "after": when it has left for half of the others. The others hold one right sum,
    for one contribution each; a cell.
    """
    cell, began = Cell(company.name, killed_words(kind, when)), time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="netdp-fault-", dir=folder))
    try:
        one = crew.Crew(
            place, company.parties, f"complete:{company.parties}", rough=True, colluders=company.colluders,
            absent=company.absent, threshold=company.threshold, gather=300.0, patience=40.0,
        )  # fmt: skip
        moment = "before" if when == "before" else "mute-after"
        for u in company.dying:
            crew.orders(
                one.home(u), (f"{moment} own {kind.name.lower()}", 1 if when == "before" else company.parties // 2)
            )
        one.foresee(*(one.study.names[u] for u in company.dying))
        result = one.run(restart=False)
        cell.seconds = time.monotonic() - began
        staying = [name for u, name in enumerate(one.study.names) if u not in company.dying]
        told = {name: result.outcomes.get(name, {}) for name in staying}
        cell.answered = sum(bool(one.get("ok")) for one in told.values())
        assert cell.answered == len(staying), (result.gone, _reasons(result), result.notes)
        assert not any(one.left(u) for u in company.dying), "not all have died who were to die"
        judge(one, result, answers=False)
        assert len({(said["attempt"], said["digest"], *said["roster"]) for said in told.values()}) == 1
        assert {said["contributed"] for said in told.values()} == {1}
        assert not any(said["evidence"] or said["blamed"] for said in told.values())
        gone = {one.study.names[u] for u in company.dying}
        if STEPS.index(kind) < STEPS.index(ItemKind.CONTRIBUTION) or (when, kind) == ("before", ItemKind.CONTRIBUTION):
            assert not gone & set(result.answered[staying[0]]["roster"])
        elif STEPS.index(kind) > STEPS.index(ItemKind.CONTRIBUTION):
            assert gone <= set(result.answered[staying[0]]["roster"])
    except Exception as problem:  # told in the table
        cell.problem = f"{type(problem).__name__}: {problem} (kept: {place})"
    else:
        shutil.rmtree(place, ignore_errors=True)
    return cell


# ── a cell ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Cell:
    """What came of one protocol under one fault, over all its runs."""

    row: str
    fault: str
    answered: int = 0
    ended: int = 0
    gone: int = 0
    restarts: int = 0
    seconds: float = 0.0
    problem: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def words(self):
        """A few letters for the table."""
        if self.problem is not None:
            return "WRONG"
        parts = [f"{self.answered} right"] if self.answered else []
        parts += [f"{self.ended} ended"] if self.ended else []
        return ", ".join(parts) or "nobody"


def run_cell(row, fault, folder=None):
    """All runs of a cell, each judged; what is wrong is in `problem`, with the folder, which is kept then."""
    cell, began = Cell(row, fault.name), time.monotonic()
    for number, plan in enumerate(fault.plans(PARTIES)):
        place = Path(tempfile.mkdtemp(prefix="netdp-fault-", dir=folder))
        try:
            with small_disks(place, [f"p{u}" for u in fault.small]):
                one_run(cell, row, fault, plan, place)
        except Exception as problem:  # told in the table
            cell.problem = f"run {number}: {type(problem).__name__}: {problem} (kept: {place})"
            break
        shutil.rmtree(place, ignore_errors=True)
    cell.seconds = time.monotonic() - began
    return cell


def one_run(cell, row, fault, plan, place):
    """One run and its judgement."""
    one = settled(place, row, **fault.options)
    for u, lives in plan.items():
        if lives[0] != ["gone"]:
            crew.orders(one.home(u), *lives)
    absent = [one.study.names[u] for u, lives in plan.items() if lives[0] == ["gone"]]
    options = {"only": [name for name in one.study.names if name not in absent]} if absent else {}
    with Partition(one, fault.cut):
        result = one.run(**options)
    cell.answered += len(result.answered)
    cell.ended += len(result.outcomes) - len(result.answered)
    cell.gone += len(set(result.gone) - set(result.outcomes))
    cell.restarts += sum(result.restarts.values())
    if cell.restarts > 10:
        cell.notes.append(f"{cell.restarts} restarts")
    judge(one, result, answers=fault.answers)
    planned = sum(len(lives) - len(one.left(u)) for u, lives in plan.items())
    planned += sum("cannot be written" in note for note in result.notes) if fault.small else 0  # while the disk is full
    died = sum(result.restarts.values())
    assert died <= planned, f"{died} deaths, and only {planned} were ordered: {result.notes}"


# ── what must be true afterwards ──────────────────────────────────────────────────────────────────────────────────────


def judge(one, result, *, answers):
    """Right or a clean end; ledgers in order; nothing counted twice, nothing said in two ways."""
    study = one.study
    if answers:
        lacking = [name for name in study.names if name not in result.answered]
        assert not lacking, f"no answer at {lacking}: {result.gone} {_reasons(result)} {result.notes}"
    for name, told in result.outcomes.items():
        if told["ok"]:
            right(one, study.index(name), told)
        else:
            assert told["reason"], told
    one.check_files()


def _reasons(result):
    return {name: told["reason"] for name, told in result.outcomes.items() if not told["ok"]}


def right(one, u, told):
    """The total is what follows from what was written down, or within the noise of the truth."""
    study, roster = one.study, tuple(one.study.index(name) for name in told["roster"])
    kind = study.settings.kind
    if kind in ("masked-sum", "ring-sum", "masked-descent") and one.knows_noise:
        total, digest = one.expected(told["attempt"], roster)
        assert (told["total"], told["digest"]) == (total, digest), f"p{u}: {told['total']}, not {total}"
    elif kind == "walk-descent":
        wanted = crew.walked(one, told["attempt"]).tolist()
        assert told["total"] == wanted, f"p{u}: {told['total']}, not {wanted}"
    elif kind == "gossip-descent":
        wanted = crew.gossiped(one, told["attempt"])[u].tolist()
        assert told["total"] == wanted, f"p{u}: {told['total']}, not {wanted}"
    elif kind == "gossip":
        wanted = gossip_totals(one, told["attempt"])[u]
        assert told["total"] == wanted, f"p{u}: {told['total']}, not {wanted}"
    else:
        within_the_law(one, roster, told)


def gossip_totals(one, attempt):
    """Everybody's estimate, from the numbers that everybody wrote down, by the steps that a simulation takes."""
    study = one.study
    protocol = study.protocol_of(range(study.n))
    noises = []
    for u in range(study.n):
        secret = one.written(u, attempt)
        noises.append(np.frombuffer(secret, dtype="<i8").reshape(-1, protocol.dimension).astype(np.int64))
    sent = [rows[0] for rows in noises]
    before = None
    for t in range(protocol.rounds):
        weights = [gossip_weights(protocol, u, t) for u in range(study.n)]
        held = [None if before is None else summed(before[u], noises[u][t]) for u in range(study.n)]
        mixed = [
            gossip_step(weights[u], sent[u], {v: sent[v] for v in weights[u]}, held[u], protocol.chebyshev)
            for u in range(study.n)
        ]
        before = sent
        if t + 1 == protocol.rounds:
            return [(state.astype(np.float64) * (protocol.step * protocol.n)).tolist() for state in mixed]
        sent = [summed(state, rows[t + 1]) for state, rows in zip(mixed, noises, strict=True)]
    raise AssertionError("no rounds")


def within_the_law(one, roster, told):
    """Within so many deviations of the true total, coordinate by coordinate."""
    study = one.study
    truth = sum(one.rows(u).sum(axis=0) for u in roster) / study.task.values_each
    off = np.abs(np.array(told["total"]) - truth).max()
    allowed = DEVIATIONS * study.noise(len(roster)) + 1e-9
    assert off <= allowed, f"{told['party']}: off by {off:.4g}, and {DEVIATIONS:g} deviations are {allowed:.4g}"


def check_entries(study, entries, words):
    """One entry for every attempt that a party spoke in, no more than the study allows; corrections stand beside them."""
    u, said = words
    first = [entry for entry in entries if entry.attempt < CORRECTS]
    spent = {entry.attempt for entry in first}
    free = {entry.attempt % CORRECTS for entry in entries if entry.loss["kind"] == "nothing"}
    assert len(spent) == len(first), f"p{u} has two entries of one attempt: {entries}"
    assert len(spent - free) <= study.privacy.attempts, f"p{u} contributed {len(spent - free)} times: {entries}"
    for place in said:
        key = place if isinstance(place, Key) else place[0]
        if key.author == u and key.kind not in crew.UNPAID and u < study.n:
            assert key.attempt in spent, f"p{u} said {key} and its ledger holds nothing of it"


# ── partitions and small disks ────────────────────────────────────────────────────────────────────────────────────────


class Partition:
    """Every link between {0, 1} and the others goes through a proxy, which holds back all bytes for a while.

    From when party 0 is about to say something; then everything flows again, as after lost packets were sent once more.
    """

    def __init__(self, one, seconds):
        self.one, self.seconds = one, seconds

    def __enter__(self):
        if not self.seconds:
            return
        self._ready, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        assert self._ready.wait(300)

    def __exit__(self, *_):
        if self.seconds:
            self._over.set()
            self._thread.join()

    async def _run(self):
        study, mark = self.one.study, self.one.home(0) / "mark"
        edges = [(u, v) for u, v in study.graph.edges().tolist() if (u in (0, 1)) != (v in (0, 1))]
        async with contextlib.AsyncExitStack() as stack:
            proxies = {}
            for u, v in edges:
                u, v = min(u, v), max(u, v)  # the smaller number dials
                proxies[u, v] = await stack.enter_async_context(RecordingProxy(study.address(v)))
            for u in {u for u, _ in proxies}:
                routes = {v: proxy.address for (a, v), proxy in proxies.items() if a == u}
                (self.one.home(u) / "routes.json").write_text(json.dumps(routes))
            self._ready.set()
            while not mark.exists() and not self._over.is_set():
                await asyncio.sleep(0.005)
            for proxy in proxies.values():
                proxy.hold()
            until = time.monotonic() + self.seconds
            while time.monotonic() < until and not self._over.is_set():
                await asyncio.sleep(0.02)
            for proxy in proxies.values():
                proxy.flow()
            while not self._over.is_set():
                await asyncio.sleep(0.02)


@contextlib.contextmanager
def small_disks(folder, names):
    """Give some homes a disk of one megabyte of their own, if this user may mount; else `mischief` limits their files."""
    mounted = []
    try:
        for name in names:
            home = folder / name
            home.mkdir(mode=0o700)
            made = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", str(home)],
                capture_output=True,
                check=False,
            )
            if made.returncode == 0:
                mounted.append(home)
        yield len(mounted) == len(names)
    finally:
        for home in mounted:
            kept = home.with_name(f"{home.name}.kept")
            shutil.copytree(home, kept)  # for who looks for a mistake
            subprocess.run(["umount", "-l", str(home)], check=False)


def may_mount():
    """Whether a full disk is a real one here."""
    return os.geteuid() == 0


Words = crew.Words

__all__ = ["FAULTS", "MIXED", "RUNNING", "Cell", "Fault", "Words", "judge", "protocols", "run_cell"]
