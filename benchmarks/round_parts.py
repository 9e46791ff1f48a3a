"""Where the time of an iteration goes at a real peer: the clock around the parts of it, in the process of every party.

Every part is measured twice: on the wall, and on the processor (of the thread that runs it). A step is computed in a thread of
its own, all else happens in the event loop; so what the process used beyond these two is gRPC's: the wire, and TLS. What is
on the wall and in none of the parts is waiting: for others, for their frames, and for a core.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FILE = "parts.json"
WARM = 3  # iterations that are not counted: code is compiled, libraries are loaded
PARTS = ("gradients", "noise", "pads", "own loss", "durable write", "adding up")
STEP, LOOP = "a step", "event loop"


class Watch:
    """Seconds of every part, on the wall and on the processor, from one moment to the next."""

    def __init__(self) -> None:
        self.wall: defaultdict[str, float] = defaultdict(float)
        self.cpu: defaultdict[str, float] = defaultdict(float)

    def around(self, owner: Any, name: str, part: str) -> None:
        """Measure this function from now on; one within another is counted in both."""
        function = getattr(owner, name)

        def measured(*given: Any, **named: Any) -> Any:
            wall, cpu = time.perf_counter(), time.thread_time()
            try:
                return function(*given, **named)
            finally:
                self.wall[part] += time.perf_counter() - wall
                self.cpu[part] += time.thread_time() - cpu

        setattr(owner, name, measured)

    def now(self) -> dict[str, Any]:
        """All so far, with the clock and the whole process."""
        return {
            "wall": {**self.wall, "all": time.perf_counter()},
            "cpu": {**self.cpu, "all": time.process_time()},
        }


def watched_process(home: str, study: str, data: str | None, events: Any, record: str | None = None) -> None:
    """A party's process that leaves its number and, at the end, what each part took, in its folder."""
    import torch

    from netdp.families.masked import peer as learner
    from netdp.families.masked.peer_descent import Descending
    from netdp.mechanisms.discrete_gaussian import DiscreteGaussian
    from netdp.peers.launch import party_process
    from netdp.peers.ledger.store import Store
    from netdp.peers.peer import Peer

    torch.set_num_threads(1)
    (Path(home) / "pid").write_text(str(os.getpid()))
    watch, first = Watch(), {}
    for owner, name, part in (
        (learner.Learner, "drawn", STEP), (learner.Learner, "_gradient", "gradients"), (learner.Learner, "_loss", "own loss"),
        (DiscreteGaussian, "sample", "noise"), (learner, "pads_of", "pads"), (Store, "rise", "durable write"),
        (Descending, "_complete", "adding up"), (Peer, "_do", LOOP),
    ):  # fmt: skip
        watch.around(owner, name, part)
    complete = Descending._complete

    def completed(self: Any, t: int, *given: Any) -> None:
        complete(self, t, *given)
        if t == min(WARM, self.iterations - 1):
            first.update(watch.now(), t=t)
        if t == self.iterations and first:
            (Path(home) / FILE).write_text(json.dumps({"first": first, "last": {**watch.now(), "t": t}}))

    Descending._complete = completed  # type: ignore[method-assign]
    party_process(home, study, data, events, record)


@dataclass(frozen=True)
class Parts:
    """Milliseconds of an iteration, the mean of all parties: by part, on the wall and on the processor."""

    wall: dict[str, float]
    cpu: dict[str, float]
    parties: int

    @classmethod
    def of(cls, homes: Iterable[Path]) -> Parts:
        """From the folders of all parties of a run."""
        told = [json.loads((home / FILE).read_text()) for home in homes]
        found: dict[str, dict[str, float]] = {}
        for clock in ("wall", "cpu"):
            per = [
                {
                    part: 1e3 * (value - one["first"][clock].get(part, 0.0)) / (one["last"]["t"] - one["first"]["t"])
                    for part, value in one["last"][clock].items()
                }
                for one in told
            ]
            mean = {part: float(np.mean([one.get(part, 0.0) for one in per])) for part in (*PARTS, STEP, LOOP, "all")}
            inner = {part: mean[part] for part in PARTS}
            inner["rest of a step"] = mean[STEP] - sum(mean[part] for part in PARTS[:4])
            inner["messages, signatures"] = mean[LOOP] - mean["durable write"] - mean["adding up"]
            rest = mean["all"] - mean[STEP] - mean[LOOP]
            inner |= {"wire (gRPC, TLS)": rest} if clock == "cpu" else {"waiting, wire": rest}
            found[clock] = {**inner, "all": mean["all"]}
        return cls(found["wall"], found["cpu"], len(told))

    def __str__(self) -> str:
        names = [*(name for name in self.cpu if name != "all"), "waiting, wire", "all"]
        lines = [f"    {'ms an iteration, per party':28}{'on the wall':>12}{'processor':>12}{'share of it':>13}"]
        for name in names:
            wall = f"{self.wall[name]:12.1f}" if name in self.wall else f"{'':12}"
            cpu = f"{self.cpu[name]:12.1f}{self.cpu[name] / self.cpu['all']:13.0%}" if name in self.cpu else ""
            lines.append(f"    {name:28}{wall}{cpu}")
        cores = os.cpu_count() or 1
        floor = self.parties * self.cpu["all"] / cores
        lines.append(
            f"    {self.parties} parties on {cores} cores: no iteration can take less than {floor:.0f} ms here"
        )
        return "\n".join(lines)
