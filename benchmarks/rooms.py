"""How data go through the house: `python benchmarks/rooms.py`, one table, half a minute.

Four things that people do are run twice, and the second time a profile hook counts the calls of netdp's own functions, the
modules they lie in, the rooms, and the crossings: calls whose nearest caller within netdp lies in another room. A room is a
package right under `netdp`; each family is a room of its own. Imports are over by the second time and not counted, nor are
comprehensions, which are no functions of anybody's. The last column leaves out the crossings into the ground, the rooms that know
no protocol: a check of a number is no turn on the way.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import netdp
from measure import few, size
from netdp import graphs
from netdp.cli import app
from netdp.peers.desk import Desk
from netdp.peers.identity import Identity
from netdp.peers.ledger.store import Store
from netdp.peers.study import Study
from netdp.peers.study.task import Task
from netdp.studio.explorer import Explorer

HOME = str(Path(netdp.__file__).parent) + "/"
GROUND = {"errors", "display", "exports", "engines", "numerics", "graphs", "privacy", "mechanisms", "models"}
NAMES = ("ann", "bob", "cyd", "dan", "eve")
SHAPE = size("hypercube:4", quick="ring:4")


class Way:
    """What is counted while it is watched."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.crossings: Counter[tuple[str, str]] = Counter()
        self._modules: dict[CodeType, str | None] = {}

    def module(self, code: CodeType) -> str | None:
        """The module of a function of netdp, as a path; None for everybody else's."""
        if code not in self._modules:
            own = code.co_filename.startswith(HOME) and (code.co_name[0] != "<" or code.co_name == "<lambda>")
            self._modules[code] = code.co_filename.removeprefix(HOME).removesuffix(".py") if own else None
        return self._modules[code]

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or (module := self.module(frame.f_code)) is None:
            return
        self.calls[module] += 1
        above = frame.f_back
        while above is not None and self.module(above.f_code) is None:
            above = above.f_back
        if above is None:
            return
        caller = self.module(above.f_code)
        assert caller is not None
        if (pair := (room(caller), room(module)))[0] != pair[1]:
            self.crossings[pair] += 1

    @contextlib.contextmanager
    def watched(self) -> Any:
        """Count what is called within."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]


def room(module: str) -> str:
    """The room of a module.

    >>> room("families/gossip/account/exact"), room("protocols/table"), room("errors")
    ('families/gossip', 'protocols', 'errors')
    """
    parts = module.split("/")
    return "/".join(parts[:2]) if parts[0] == "families" else parts[0]


def counted(prepare: Callable[[], Callable[[], object]]) -> Way:
    """The second of two times."""
    prepare()()
    work, way = prepare(), Way()
    with way.watched():
        work()
    return way


def account() -> Callable[[], object]:
    """`netdp.account(Gossip…)`, and the ε that it gives."""
    protocol = netdp.Gossip(graphs.parse(SHAPE), rounds=5, sigma=2.0)
    return lambda: netdp.account(protocol, observers=[0]).epsilon(1e-6)


def plan(*more: str) -> Callable[[], object]:
    """`netdp plan`, as it is typed."""

    def run() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            app(["plan", SHAPE, *more, "--epsilon", "1"], standalone_mode=False)

    return run


def contribution(folder: Path, identities: list[Identity], times: list[int]) -> Callable[[], object]:
    """A vote and one contribution of a peer, on a new study with a new ledger."""
    times.append(len(times))
    draft = Study.plan(
        f"study {len(times)}", Task(kind="mean", column="x", bounds=(0, 10)), NAMES,
        graph="ring:5", epsilon=1.0, delta=1e-6, colluders=1, threshold=0,
    )  # fmt: skip
    addresses = [f"127.0.0.1:{7001 + u}" for u in range(len(NAMES))]
    study = draft.complete([one.card for one in identities], addresses, nonce=f"{len(times):032}")
    store = Store.open(folder / f"{len(times)}.db", sign=identities[0].sign)
    roster = tuple(range(len(NAMES)))

    def run() -> None:
        desk = Desk(identities[0], study, store, study.task.rows([{"x": "2"}]))
        desk.vote(1, roster)
        desk.contribute(1, roster)
        store.close()

    return run


def click() -> Callable[[], object]:
    """The answer of the studio's first page, with both lines of how to get it elsewhere."""
    explorer = Explorer()
    state = {**explorer.first, "graph": SHAPE}
    return lambda: (explorer.account(state), explorer.words(state))


def main() -> None:
    with tempfile.TemporaryDirectory() as name, netdp.engine("serial"):
        folder, times = Path(name), list[int]()
        identities = [Identity.create(folder / one, one) for one in NAMES]
        cases: dict[str, Callable[[], Callable[[], object]]] = {
            "netdp.account(Gossip…)": account,
            "netdp plan -p gossip": lambda: plan("-p", "gossip"),
            "netdp plan": plan,
            "one contribution": lambda: contribution(folder, identities, times),
            "one studio click": click,
        }
        print(
            f"{'':24}{'calls':>10}{'modules':>10}{'rooms':>8}{'crossings':>11}{'above ground':>14}   the most between"
        )
        for case, prepare in cases.items():
            way = counted(prepare)
            rooms = {room(module) for module in way.calls}
            above = sum(times for (_, to), times in way.crossings.items() if to not in GROUND)
            most = ", ".join(f"{a} → {b} {times:,}" for (a, b), times in few(way.crossings.most_common(3), quick=3))
            counts = f"{way.calls.total():10,}{len(way.calls):10,}{len(rooms):8}{way.crossings.total():11,}{above:14,}"
            print(f"{case:24}{counts}   {most}", flush=True)


if __name__ == "__main__":
    main()
