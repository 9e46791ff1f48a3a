"""Write down what netdp answers, to all digits, so that two versions of it can be compared.

    python benchmarks/dump.py BEFORE.json        # some hundreds of results, in about three minutes on one core
    python benchmarks/dump.py AFTER.json         # with the other version
    python benchmarks/dump.py --compare BEFORE.json AFTER.json

    --only PREFIX    entries whose names begin so, such as account/gossip; may be repeated
    --quick          a few entries, in seconds
    --list           the names of all entries

Every entry has a name and is computed on its own. Numbers are written with 17 digits, large arrays as shape, SHA-256 and a few
entries. What is refused is an answer, too: "refused: Unsupported: …". Nothing depends on the time, the folder, the load of the
machine or fresh chance: two runs give the same file. Only public names and the command line are used, so that the same
program runs before and after modules move; the few inner paths that it needs are tried in order (`found`).

A difference is no error by itself: other processors and other versions of NumPy or SciPy differ in the last bits.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import hashlib
import importlib
import io
import json
import os
import re
import runpy
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cached_property
from pathlib import Path
from typing import Any

Entry = tuple[str, Callable[[], Any]]

DELTA = 1e-3
IN_FULL = 64
"""Arrays and lists of at most so many entries are written in full, and so is every text."""
SHOWN = 12
"""So many differences of one entry are printed."""
WARNED = ("NoiseWarning", "PreprocessingWarning")
"""Warnings that are part of an answer."""


# ── plain values ──────────────────────────────────────────────────────────────────────────────────────────────────────


def digits(value: float) -> str:
    """A number with all its digits."""
    return format(float(value), ".17g")


def plain(value: Any) -> Any:
    """What JSON can hold and two files can be compared by; all digits are kept, or their hash."""
    import numpy as np

    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | np.integer):
        return int(value) if abs(int(value)) < 2**53 else str(int(value))
    if isinstance(value, float | np.floating):
        return digits(float(value))
    if isinstance(value, complex | np.complexfloating):
        return [digits(value.real), digits(value.imag)]
    if isinstance(value, bytes):
        return f"{len(value)} bytes, sha256 {hashlib.sha256(value).hexdigest()}"
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, set | frozenset):
        return _listed(sorted(value, key=repr))
    if isinstance(value, list | tuple | range):
        return _listed(list(value))
    return _object(value)


def _array(value: Any) -> Any:
    import numpy as np

    if value.dtype == object or value.dtype.kind in "US":
        return plain(value.tolist())
    if value.size <= IN_FULL:
        return plain(value.tolist())
    whole = np.ascontiguousarray(value)
    whole = whole.astype(whole.dtype.newbyteorder("<"))
    flat = value.reshape(-1)
    some = [0, 1, 2, value.size // 2, value.size - 1]
    return {
        "shape": list(value.shape),
        "kind": value.dtype.kind,
        "sha256": hashlib.sha256(whole.tobytes()).hexdigest(),
        "some": [plain(flat[k].item()) for k in some],
    }


def _listed(value: list[Any]) -> Any:
    made = [plain(one) for one in value]
    if len(made) <= IN_FULL or all(isinstance(one, str) for one in value):
        return made
    return {
        "length": len(made),
        "sha256": hashlib.sha256(json.dumps(made).encode()).hexdigest(),
        "some": [made[k] for k in (0, 1, 2, len(made) // 2, len(made) - 1)],
    }


def _object(value: Any) -> Any:
    import netdp

    if isinstance(value, netdp.Graph):
        return {"n": value.n, "m": value.m, "edges": plain(value.edges())}
    if isinstance(value, netdp.Guarantee):
        said: dict[str, Any] = {"described": value.describe(DELTA).split("\n"), **plain(value.to_dict(DELTA))}
        said["delta at 0.5"] = plain(value.delta(0.5))
        return said
    if hasattr(value, "tocoo"):
        entries = value.tocoo()
        return {
            "shape": list(entries.shape),
            **{part: plain(getattr(entries, part)) for part in ("row", "col", "data")},
        }
    if callable(getattr(value, "to_dict", None)):
        return plain(value.to_dict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value) if not field.name.startswith("_")]
        return {name: plain(getattr(value, name)) for name in fields}
    if callable(getattr(value, "_asdict", None)):
        return plain(value._asdict())
    if callable(value):
        return f"<{getattr(value, '__name__', 'function')}>"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


# ── what is asked ─────────────────────────────────────────────────────────────────────────────────────────────────────


def found(*places: str) -> Any:
    """The first of "module:name" that there is: where it was, then where it is going to be."""
    for place in places:
        module, _, name = place.partition(":")
        try:
            owner = importlib.import_module(module)
            return getattr(owner, name) if name else owner
        except (ImportError, AttributeError):
            continue
    raise LookupError(f"none of {', '.join(places)} is there")


@dataclasses.dataclass(frozen=True)
class Example:
    """A small protocol, who looks at it, what its parties hold, and a loss that it can be calibrated to."""

    make: Callable[[], Any]
    observers: Any = (0,)
    labels: bool = False
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    epsilon: float = 2.0

    @cached_property
    def protocol(self) -> Any:
        return self.make()

    @property
    def several(self) -> list[Any]:
        """Two parties, beside the curator if there is one."""
        return ["curator", 0, 2] if self.observers == "curator" else [0, 2]

    @property
    def values(self) -> Any:
        import numpy as np

        n = self.protocol.n
        if getattr(self.protocol, "unit", "party") == "record":
            return [np.linspace(0.0, 0.5, u + 1)[:, None] for u in range(n)]
        return np.arange(n) % 2 if self.labels else np.arange(n) % 2 * 0.5

    @property
    def mechanism(self) -> Any:
        import netdp

        return netdp.mechanisms.RandomizedResponse(2, self.protocol.epsilon0)


def examples() -> dict[str, Example]:
    """At least one of every kind, by name; made only when asked for."""
    import netdp
    from netdp import graphs

    def ring() -> Any:
        return graphs.ring(5)

    def cube() -> Any:
        return graphs.hypercube(3)

    def tied() -> Any:
        import numpy as np

        A = np.array([[1.0, 0, 0], [0, 1, 0], [1, 1, 1]])
        return netdp.LinearGaussianView(3, A, 2 * A, [(2,), (2,), None], reading=[[0, 0, 1 / 3]])

    fine = 2.0**-10
    curator: dict[str, Any] = {"observers": "curator", "labels": True, "epsilon": 0.8}
    return {
        "central": Example(lambda: netdp.Central(4, sigma=2.0)),
        "central-descent": Example(lambda: netdp.CentralDescent(4, 3, sigma=2.0, step=0.1)),
        "erdos-renyi-descent": Example(lambda: netdp.ErdosRenyiDescent(8, 0.2, 3, sigma=2.0, step=0.1)),
        "erdos-renyi-gossip": Example(
            lambda: netdp.ErdosRenyiGossip(6, p=0.6, rounds=2, sigma=2.0), options={"degree": 3}
        ),
        "erdos-renyi-gossip-varying": Example(
            lambda: netdp.ErdosRenyiGossip(40, p=0.2, rounds=3, sigma=2.0, varying=True)
        ),
        "faulty-shuffle": Example(lambda: netdp.FaultyShuffle(ring(), rounds=80, epsilon0=1.0, outages=0.1), **curator),
        "faulty-shuffle-lost": Example(
            lambda: netdp.FaultyShuffle(
                graphs.regular(60, 4, seed=1), rounds=40, epsilon0=1.0, outages=0.1, lost=0.002, absent="silent"
            ),
            **curator,
        ),
        "gossip": Example(lambda: netdp.Gossip(ring(), rounds=3, sigma=2.0, masks=1.0)),
        "gossip-hypercube": Example(lambda: netdp.Gossip(cube(), rounds=5, sigma=3.0)),
        "gossip-accelerated": Example(lambda: netdp.Gossip(cube(), rounds=4, sigma=3.0, accelerated=True, masks=10.0)),
        "gossip-refreshed": Example(lambda: netdp.Gossip(graphs.grid(3, 3), rounds=6, sigma=3.0, refresh=0.2)),
        "gossip-grid": Example(lambda: netdp.Gossip(ring(), rounds=3, sigma=2.0, grid=fine)),
        "gossip-descent": Example(lambda: netdp.GossipDescent(ring(), 2, 2, sigma=2.0, step=0.1)),
        "gossip-descent-masked": Example(
            lambda: netdp.GossipDescent(cube(), 4, 3, sigma=2.0, step=0.2, masks=10.0, expansion=1.05)
        ),
        "graph-walk-sum": Example(lambda: netdp.GraphWalkSum(graphs.ring(4), steps=12, sigma=3.0)),
        "graph-walk-sum-simple": Example(
            lambda: netdp.GraphWalkSum(graphs.star(5), steps=10, sigma=3.0, walk="simple")
        ),
        "linear-gaussian-view": Example(tied),
        "own-linear": Example(_own_tree),
        "tree-sum": Example(lambda: netdp.TreeSum(7, sigma=2.0, masks=9.0)),
        "local": Example(lambda: netdp.Local(4, sigma=2.0)),
        "local-descent": Example(lambda: netdp.LocalDescent(4, 3, sigma=2.0, step=0.1)),
        "masked-descent": Example(lambda: netdp.MaskedDescent(ring(), 3, sigma=2.0, step=0.1, dimension=2)),
        "masked-descent-records": Example(
            lambda: netdp.MaskedDescent(
                graphs.complete(5), 20, sigma=4.0, step=0.5, dimension=3, unit="record", sampling=0.25, max_records=100
            )
        ),
        "masked-descent-groups": Example(
            lambda: netdp.MaskedDescent(
                graphs.complete(9), 4, sigma=4.0, step=0.5, dimension=2, groups=3, aggregate="median"
            )
        ),
        "masked-sum": Example(lambda: netdp.MaskedSum(ring(), sigma=2.0)),
        "masked-sum-attempts": Example(
            lambda: netdp.MaskedSum(graphs.complete(6), sigma=2.0, attempts=2, absent=1, dimension=3)
        ),
        "masked-sum-partners": Example(lambda: netdp.MaskedSum(cube(), sigma=2.0, masks=graphs.ring(8))),
        "masked-sum-average": Example(lambda: netdp.MaskedSum(cube(), sigma=2.0, spread="average")),
        "masked-sum-records": Example(
            lambda: netdp.MaskedSum(graphs.complete(5), sigma=3.0, sensitivity=1.0, unit="record", reach=100.0)
        ),
        "masked-sum-laplace": Example(
            lambda: netdp.MaskedSum(graphs.complete(6), sigma=2.0, law="laplace", honest=4, absent=1, threshold=4)
        ),
        "path-sum": Example(lambda: netdp.PathSum(4, [[0, 1, 2, 3, 0, 2]], sigma=2.0, closing=True)),
        "push-sum": Example(lambda: netdp.PushSum(4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], rounds=3, sigma=2.0)),
        "randomized-gossip": Example(
            lambda: netdp.RandomizedGossip(ring(), steps=8, sigma=2.0), options={"samples": 50}
        ),
        "randomized-gossip-grid": Example(
            lambda: netdp.RandomizedGossip(ring(), steps=8, sigma=2.0, refresh=0.1, grid=fine), options={"samples": 50}
        ),
        "relayed-shuffle": Example(lambda: netdp.RelayedShuffle(ring(), rounds=20, epsilon0=1.0, cover=8), **curator),
        "relayed-shuffle-bundles": Example(
            lambda: netdp.RelayedShuffle(graphs.regular(40, 4, seed=1), rounds=30, epsilon0=1.0, bundles=2), **curator
        ),
        "ring-descent": Example(lambda: netdp.RingDescent(5, 2, sigma=2.0, step=0.1)),
        "ring-histogram": Example(lambda: netdp.RingHistogram(8, 2, domain=3, gamma=0.5), labels=True),
        "ring-sum": Example(lambda: netdp.RingSum(5, 2, sigma=2.0)),
        "ring-sum-single": Example(lambda: netdp.RingSum(6, 2, sigma=2.0, noise="single", closing=False)),
        "ring-sum-grid": Example(lambda: netdp.RingSum(6, 1, sigma=2.0, grid=fine)),
        "secret-ring-sum": Example(lambda: netdp.SecretRingSum(6, 2, sigma=2.0)),
        "secret-ring-sum-hidden": Example(lambda: netdp.SecretRingSum(12, 2, sigma=4.0, sender="hidden")),
        "shuffle": Example(
            lambda: netdp.Shuffle(ring(), rounds=20, epsilon0=1.0), observers="curator", epsilon=0.8, labels=True
        ),
        "shuffle-single": Example(
            lambda: netdp.Shuffle(
                graphs.regular(60, 4, seed=1), rounds=20, epsilon0=1.0, reporting="single", laziness=0.1
            ),
            **curator,
        ),
        "shuffle-delta": Example(
            lambda: netdp.Shuffle(graphs.regular(200, 6, seed=2), rounds=30, epsilon0=1.0, delta0=1e-8), **curator
        ),
        "varying-gossip": Example(lambda: netdp.VaryingGossip([ring(), graphs.star(5)], sigma=2.0)),
        "walk-descent": Example(lambda: netdp.WalkDescent(8, 16, sigma=2.0, step=0.1)),
        "walk-descent-hidden": Example(
            lambda: netdp.WalkDescent(12, 40, sigma=2.0, step=0.1, sender="hidden", contributions=8)
        ),
        "walk-histogram": Example(lambda: netdp.WalkHistogram(8, 16, domain=3, gamma=0.5), labels=True),
        "walk-histogram-unary": Example(
            lambda: netdp.WalkHistogram(8, 16, domain=4, gamma=0.5, response="unary", sender="hidden"), labels=True
        ),
        "walk-sum": Example(lambda: netdp.WalkSum(8, 16, sigma=2.0)),
        "walk-sum-tokens": Example(lambda: netdp.WalkSum(10, 30, sigma=5.0, tokens=2, contributions=6)),
        "walk-sum-laplace": Example(lambda: netdp.WalkSum(8, 16, sigma=4.0, law="laplace")),
        "walk-sum-weights": Example(lambda: netdp.WalkSum(6, 16, sigma=4.0, weights=[1, 2, 2, 1, 1, 1])),
    }


def _own_tree() -> Any:
    """A linear protocol that netdp does not bring."""
    import numpy as np

    import netdp

    known = netdp.Protocol.kinds().get("dumped-tree")
    if known is None:

        @dataclasses.dataclass(frozen=True)
        class DumpedTree(netdp.LinearProtocol):
            """Partial sums go up a binary tree."""

            kind = "dumped-tree"
            n: int
            sigma: float
            sensitivity: float = 1.0

            def view(self) -> Any:
                parent = [(u - 1) // 2 for u in range(self.n)]
                sums = np.eye(self.n)
                for u in range(self.n - 1, 0, -1):
                    sums[parent[u]] += sums[u]
                return netdp.LinearGaussianView(
                    self.n,
                    data=sums,
                    noise=self.sigma * sums,
                    readers=[None] + [(parent[u],) for u in range(1, self.n)],
                    known=[(u,) for u in range(self.n)],
                    reading=np.eye(1, self.n) / self.n,
                    sensitivity=self.sensitivity,
                )

            def describe(self) -> str:
                return f"tree of {self.n} parties; partial sums go up, σ={self.sigma:g}"

        known = DumpedTree
    return known(7, sigma=2.0)


def of_protocols() -> Iterator[Entry]:
    """Every question that every protocol is asked."""
    import netdp

    for name, one in examples().items():
        yield f"protocol/{name}", lambda one=one: _stated(one.protocol)
        yield (
            f"account/{name}/observers-0",
            lambda one=one: netdp.account(one.protocol, one.observers, **one.options),
        )
        yield f"account/{name}/observers-0-2", lambda one=one: netdp.account(one.protocol, one.several, **one.options)
        yield f"account/{name}/published", lambda one=one: _published(one)
        yield f"account/{name}/transcript", lambda one=one: _recomputed(one)
        for count in (1, 2):
            yield (
                f"account/{name}/colluders-{count}",
                lambda one=one, count=count: netdp.account(one.protocol, colluders=count),
            )
        yield f"pairwise/{name}", lambda one=one: netdp.pairwise(one.protocol, workers=1, **one.options)
        yield (
            f"who-learns-most/{name}",
            lambda one=one: netdp.who_learns_most(one.protocol, DELTA, **one.options),
        )
        yield f"calibrate/{name}", lambda one=one: netdp.calibrate(one.protocol, one.epsilon, DELTA)
        yield (
            f"calibrate/{name}/colluders-2",
            lambda one=one: netdp.calibrate(one.protocol, one.epsilon, DELTA, colluders=2),
        )
        yield f"expected-error/{name}", lambda one=one: _errors(one)
        yield f"local-dp/{name}", lambda one=one: netdp.local_dp(one.protocol)
        yield f"trusted-curator/{name}", lambda one=one: netdp.trusted_curator(one.protocol)
        yield f"simulate/{name}", lambda one=one: _ran(one)


def _stated(protocol: Any) -> dict[str, Any]:
    import netdp

    said = protocol.to_dict()
    back = netdp.Protocol.from_dict(json.loads(json.dumps(said)))
    return {
        "dictionary": said,
        "described": protocol.describe(),
        "answer": protocol.answer,
        "roles": protocol.roles,
        "n": protocol.n,
        "read back": back == protocol and back.to_dict() == said,
    }


def _published(one: Example) -> Any:
    import netdp

    return netdp.account(one.protocol, one.observers, method="published")


def _errors(one: Example) -> dict[str, Any]:
    import netdp

    worst, known = netdp.expected_error(one.protocol), netdp.expected_error(one.protocol, one.values)
    return {"worst": worst, "known": known, "rmse": [worst.rmse, known.rmse]}


def _run(one: Example) -> Any:
    import netdp

    collectors = {
        "shuffle": ("netdp.families.shuffle.simulate:collect", "netdp.families.shuffle.simulate:collect"),
        "faulty-shuffle": (
            "netdp.families.shuffle.simulate:collect_with_faults",
            "netdp.families.shuffle.simulate:collect_with_faults",
        ),
        "relayed-shuffle": (
            "netdp.families.shuffle.simulate:collect_relayed",
            "netdp.families.shuffle.simulate:collect_relayed",
        ),
    }
    places = collectors.get(one.protocol.kind)
    if places is None:
        return netdp.simulate(one.protocol, one.values, 5, record=[0])
    null = {"null": 0} if getattr(one.protocol, "reporting", "all") == "single" else {}
    return found(*places)(one.protocol, one.mechanism, one.values, 5, **null)


def _ran(one: Example) -> Any:
    run = _run(one)
    if not hasattr(run, "estimates"):
        return run
    return {
        "estimates": run.estimates,
        "transcript": run.transcript,
        "record": run.record,
        "protocol": run.protocol,
        "said": str(run).split("\n"),
    }


def _recomputed(one: Example) -> Any:
    import netdp

    if one.protocol.kind == "faulty-shuffle":
        return netdp.account(one.protocol, one.observers, transcript=one.protocol.pattern(seed=1))
    if callable(getattr(one.protocol, "draw", None)):
        return netdp.account(one.protocol, one.observers, transcript=one.protocol.draw(1))
    run = netdp.simulate(one.protocol, one.values, 5)
    return netdp.account(one.protocol, one.observers, transcript=run.transcript)


def of_plans() -> Iterator[Entry]:
    """Plans of every family, links, limits."""
    import netdp
    from netdp import graphs

    def planner(name: str, home: str) -> Any:
        return found(f"netdp.protocols:{name}", f"netdp.protocols:{name}", f"netdp.{home}:{name}")

    def gossip(graph: Any, *arguments: Any, **options: Any) -> Any:
        return found("netdp.protocols:plan", "netdp.families.gossip.plan:plan")(graph, *arguments, **options)

    cube, ring = graphs.hypercube(3), graphs.ring(8)
    yield "plan/gossip/hypercube", lambda: gossip(cube, 1.0, 1e-6)
    yield "plan/gossip/ring", lambda: gossip(ring, 1.0, 1e-6, max_rounds=40)
    yield "plan/gossip/beyond", lambda: gossip(ring, 1.0, 1e-6, "beyond:2", max_rounds=40)
    yield "plan/gossip/mean", lambda: gossip(ring, 1.0, 1e-6, "mean", max_rounds=40)
    yield "plan/gossip/colluders", lambda: gossip(cube, 1.0, 1e-6, colluders=2, max_rounds=20)
    yield "plan/gossip/coalitions", lambda: gossip(cube, 1.0, 1e-6, coalitions=0.25, draws=5, max_rounds=20)
    yield (
        "plan/gossip/policy",
        lambda: gossip(ring, None, 1e-6, netdp.Policy(limit=lambda u, v: 1.0 + abs(u - v)), max_rounds=30),
    )
    masked = "families.masked.plan"
    yield "plan/masked/ring", lambda: planner("plan_masked", masked)(ring, 1.0, 1e-6)
    yield (
        "plan/masked/attempts",
        lambda: planner("plan_masked", masked)(cube, 1.0, 1e-6, colluders=2, attempts=2, absent=1, dimension=3),
    )
    yield "plan/token/complete", lambda: planner("plan_token", "families.token.plan")(20, 1.0, 1e-6, visits=10)
    yield (
        "plan/token/colluders",
        lambda: planner("plan_token", "families.token.plan")(20, 1.0, 1e-6, visits=5, colluders=2),
    )
    yield "plan/token/graph", lambda: planner("plan_token_on", "families.token.plan")(cube, 1.0, 1e-6, visits=3)
    shuffle = "families.shuffle.plan"
    wide = graphs.regular(200, 6, 0)
    yield "plan/shuffle/rounds", lambda: planner("plan_rounds", shuffle)(wide, 1.0, 1e-4)
    yield "plan/shuffle/single", lambda: planner("plan_rounds", shuffle)(wide, 1.0, 1e-4, reporting="single")
    yield "plan/shuffle/epsilon0", lambda: planner("calibrate_epsilon0", shuffle)(wide, 0.5, 1e-4)
    yield "plan/shuffle/faults", lambda: planner("plan_with_faults", shuffle)(wide, 1.0, 1e-4, outages=0.1)
    yield "plan/shuffle/relayed", lambda: planner("plan_relayed", shuffle)(wide, 1.0, 1e-4)
    yield "plan/shuffle/bundles", lambda: planner("plan_relayed", shuffle)(wide, 1.0, 1e-4, bundles=2)
    yield "links/ring", lambda: netdp.advise_links(graphs.ring(40), 1.0, 1e-6, most=3)
    for name, graph in {"star": graphs.star(20), "ring": graphs.ring(20), "cube": cube}.items():
        for count in (1, 2):
            yield (
                f"limits/{name}/colluders-{count}",
                lambda graph=graph, count=count: netdp.limits(graph, 1.0, 1e-6, colluders=count),
            )


def _rows(parties: int, rows: int, features: int) -> tuple[Any, Any]:
    import numpy as np

    rng = np.random.default_rng(7)
    X = rng.uniform(-1, 1, (parties * rows, features))
    y = np.where(X @ np.arange(1.0, features + 1) + 0.1 * rng.standard_normal(len(X)) > 0, 1.0, -1.0)
    return X, y


def of_learning() -> Iterator[Entry]:
    """Seeded trainings: functions, estimators, plans of trainings."""
    import numpy as np

    import netdp
    from netdp import graphs, learn

    def parties(n: int) -> Any:
        X, y = _rows(n, 4, 2)
        return learn.LogisticParties.of(np.split(X, n), np.split(y, n))

    descents: dict[str, Callable[[], Any]] = {
        "gossip-descent": lambda: netdp.GossipDescent(graphs.ring(5), 4, 2, sigma=0.5, step=0.3),
        "gossip-descent-masks": lambda: netdp.GossipDescent(
            graphs.hypercube(3), 4, 2, sigma=0.5, step=0.3, masks=10.0, accelerated=True
        ),
        "local-descent": lambda: netdp.LocalDescent(5, 6, sigma=0.5, step=0.3),
        "central-descent": lambda: netdp.CentralDescent(5, 6, sigma=0.5, step=0.3),
        "masked-descent": lambda: netdp.MaskedDescent(graphs.ring(5), 6, sigma=0.5, step=0.3, dimension=2),
        "masked-descent-momentum": lambda: netdp.MaskedDescent(
            graphs.ring(5), 6, sigma=0.5, step=0.3, dimension=2, momentum=0.5, average="later", sampling=0.5
        ),
        "erdos-renyi-descent": lambda: netdp.ErdosRenyiDescent(8, 0.6, 3, sigma=0.5, step=0.1).draw(3),
    }
    for name, make in descents.items():
        for average in ("last", "weighted"):
            yield (
                f"train/{name}/{average}",
                lambda make=make, average=average: (lambda p: learn.train(p, parties(p.n), 3, average=average))(make()),
            )
    yield "train/ring-descent", lambda: learn.train_ring(netdp.RingDescent(5, 3, sigma=0.5, step=0.3), parties(5), 3)
    yield (
        "train/walk-descent",
        lambda: learn.train_walk(netdp.WalkDescent(5, 30, sigma=0.5, step=0.3), parties(5), 3, watch_every=10),
    )
    yield (
        "train/walk-descent-tokens",
        lambda: learn.train_walk(
            netdp.WalkDescent(5, 30, sigma=0.5, step=0.3, tokens=2, contributions=4), parties(5), 3, watch_every=10
        ),
    )
    yield (
        "train/walks",
        lambda: learn.train_walks(netdp.WalkDescent(5, 30, sigma=0.5, step=0.3), parties(5), [1, 2], workers=1),
    )
    yield "train/models", lambda: _trained_models()
    X, y = _rows(16, 30, 3)
    made: dict[str, Callable[[], Any]] = {
        "gossip": lambda: learn.GossipLogisticRegression(parties=16, epsilon=8.0, random_state=1),
        "gossip-mixing": lambda: learn.GossipLogisticRegression(
            parties=16, epsilon=8.0, protocol="gossip", iterations=4, random_state=1
        ),
        "walk": lambda: learn.WalkLogisticRegression(parties=16, epsilon=8.0, steps=160, random_state=1),
        "logistic": lambda: learn.LogisticRegression(parties=16, epsilon=8.0, bounds=(-1, 1), random_state=1),
        "logistic-records": lambda: learn.LogisticRegression(
            parties=16, epsilon=8.0, bounds=(-1, 1), unit="record", random_state=1
        ),
        "logistic-local": lambda: learn.LogisticRegression(
            parties=16, protocol="local", epsilon=8.0, bounds=(-1, 1), random_state=1
        ),
        "logistic-central": lambda: learn.LogisticRegression(
            parties=16, protocol="central", epsilon=8.0, bounds=(-1, 1), random_state=1
        ),
        "linear": lambda: learn.LinearRegression(
            parties=16, epsilon=8.0, bounds=(-1, 1), target_bounds=(-6, 6), random_state=1
        ),
    }
    for name, make in made.items():
        target = X @ np.arange(1.0, 4.0) if name == "linear" else y
        yield f"estimator/{name}", lambda make=make, target=target: _fitted(make(), X, target)
    yield "plan/training/party", lambda: learn.plan_training(16, 4, 4.0, 1e-6)
    yield (
        "plan/training/record",
        lambda: learn.plan_training(16, 4, 4.0, 1e-6, unit="record", records=4000, rows=250),
    )
    yield (
        "plan/learning",
        lambda: learn.plan_learning(
            netdp.CentralDescent(20, 4, sigma=1.0, step=0.1),
            2.0,
            1e-6,
            learn.Landscape(dimension=3, smoothness=1.0, distance=2.0, convexity=0.1),
        ),
    )


def _trained_models() -> Any:
    import numpy as np

    import netdp
    from netdp import graphs, learn, models

    X, y = _rows(5, 4, 2)
    out: dict[str, Any] = {}
    for name, model, target in (
        ("logistic", models.Logistic(3), (y + 1) / 2),
        ("multinomial", models.Multinomial(3, 3), np.arange(len(y)) % 3),
        ("linear", models.Linear(3), y),
    ):
        data = learn.ModelParties(model, np.split(models.prepared(X), 5), np.split(target, 5))
        d = len(model.start())
        out[name] = learn.train(netdp.MaskedDescent(graphs.ring(5), 6, sigma=0.5, step=0.3, dimension=d), data, 3)
    return out


def _fitted(estimator: Any, X: Any, y: Any) -> dict[str, Any]:
    estimator.fit(X, y)
    learnt = {name: getattr(estimator, name) for name in sorted(vars(estimator)) if name.endswith("_")}
    kept = {name: value for name, value in learnt.items() if not name.startswith("_")}
    return {**kept, "predicted": estimator.predict(X[:20])}


def of_graphs() -> Iterator[Entry]:
    """Graphs, their matrices and spectra."""
    import numpy as np

    from netdp import graphs

    made: dict[str, Callable[[], Any]] = {
        "ring": lambda: graphs.ring(12),
        "path": lambda: graphs.path(7),
        "star": lambda: graphs.star(8),
        "complete": lambda: graphs.complete(6),
        "grid": lambda: graphs.grid(3, 4),
        "torus": lambda: graphs.torus(4, 4),
        "hypercube": lambda: graphs.hypercube(4),
        "exponential": lambda: graphs.exponential(12),
        "regular": lambda: graphs.regular(20, 4, seed=1),
        "erdos-renyi": lambda: graphs.erdos_renyi(30, 0.2, seed=1),
        "geometric": lambda: graphs.geometric(30, 0.4, seed=1),
        "barabasi-albert": lambda: graphs.barabasi_albert(30, 2, seed=1),
        "random-tree": lambda: graphs.random_tree(20, seed=1),
        "balanced-tree": lambda: graphs.balanced_tree(2, 3),
        "karate": lambda: graphs.dataset("karate"),
        "linked": lambda: graphs.with_links(graphs.ring(20), 2, seed=3),
        "parsed": lambda: graphs.parse("regular:16,6"),
        "parsed-sum": lambda: graphs.parse("grid:3x3"),
    }
    for name, make in made.items():
        yield f"graph/{name}", lambda make=make: make()
        yield (
            f"spectrum/{name}",
            lambda make=make: {
                kind: graphs.spectrum.spectral_gap(make(), kind)
                for kind in ("metropolis", "maximum-degree", "lazy-metropolis")
            },
        )
        yield f"mixing/{name}", lambda make=make: graphs.mixing.mixing_matrix(make())
        yield f"distances/{name}", lambda make=make: [make().distances(u) for u in (0, 1)]
    yield "transition", lambda: _walked(graphs.Transition(3, [(0, 1), (1, 2), (2, 0), (2, 1)], weights=[1, 1, 3, 1]))
    yield "graph-file", _read_back
    yield "chebyshev", lambda: [graphs.spectrum.chebyshev_gamma(gap) for gap in np.linspace(0.01, 0.99, 20)]


def _walked(walk: Any) -> Any:
    return {"said": walk, "matrix": walk.matrix, "stationary": walk.stationary}


def _read_back() -> Any:
    from netdp import graphs

    Path("links.txt").write_text("# who knows whom\nann bob\nbob cy\ncy ann\ncy dan\ndan dan\nann bob\n", "utf-8")
    graph, report = graphs.read_with_report("links.txt")
    return {"graph": graph, "labels": graph.labels, "report": report}


def of_privacy() -> Iterator[Entry]:
    """Curves and conversions."""
    import numpy as np

    from netdp import privacy

    deltas = [1e-12, 1e-6, 1e-3, 0.1]
    points = np.linspace(0.0, 4.0, 17)
    curves: dict[str, Callable[[], Any]] = {
        "gaussian": lambda: privacy.GaussianCurve([0.1, 0.5, 1.0, 3.0]),
        "renyi": lambda: privacy.RenyiCurve.linear([0.1, 0.5]),
        "composed-renyi": lambda: privacy.compose(privacy.GaussianCurve(0.5), privacy.RenyiCurve.linear(0.1)),
        "composed": lambda: privacy.compose(privacy.GaussianCurve(0.5), privacy.GaussianCurve(1.0)),
    }
    for name, make in curves.items():
        yield (
            f"curve/{name}",
            lambda make=make: {
                "curve": make(),
                "epsilon": [make().epsilon(delta) for delta in deltas],
                "delta": [make().delta(float(x)) for x in points],
            },
        )
    yield "curve/rdp", lambda: privacy.RenyiCurve.linear([0.1, 0.5]).rdp(2.0)
    yield "curve/gaussian-delta", lambda: privacy.gaussian_delta(1.0, points)
    yield "curve/gaussian-epsilon", lambda: [privacy.gaussian_epsilon(1.0, delta) for delta in deltas]
    yield "curve/gaussian-mu", lambda: [privacy.gaussian_mu(1.0, delta) for delta in deltas]
    yield "curve/gaussian-tradeoff", lambda: privacy.gaussian_tradeoff(1.0, np.linspace(0, 1, 11))


def of_mechanisms() -> Iterator[Entry]:
    """Randomizers: what they state and what they draw, seeded."""
    import numpy as np

    def m() -> Any:
        import netdp

        return netdp.mechanisms

    unit = np.array([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.6, 0.0, 0.8]])
    numbers = np.array([0.0, 0.25, 0.5, 1.0])
    made: dict[str, tuple[Callable[[], Any], Any]] = {
        "randomized-response": (lambda: m().RandomizedResponse(4, epsilon0=1.0), np.array([0, 1, 2, 3])),
        "unary": (lambda: m().UnaryEncoding(4, epsilon0=1.0), np.array([0, 1, 2, 3])),
        "laplace": (lambda: m().Laplace.interval(0.0, 1.0, 1.0), numbers),
        "grid-laplace": (lambda: m().on_a_grid(m().Laplace.interval(0.0, 1.0, 1.0)), numbers),
        "gaussian": (lambda: m().Gaussian.calibrated(1.0, 1e-6, centre=0.5), numbers),
        "grid-gaussian": (lambda: m().on_a_grid(m().Gaussian.calibrated(1.0, 1e-6, centre=0.5)), numbers),
        "privunit": (lambda: m().PrivUnit(3, epsilon0=2.0), unit),
        "grid-privunit": (lambda: m().on_a_grid(m().PrivUnit(3, epsilon0=2.0)), unit),
    }
    for name, (make, values) in made.items():
        yield f"mechanism/{name}", lambda make=make, values=values: _drawn(make(), values)
    yield "mechanism/better-response", lambda: [m().better_response(k, 1.0) for k in (2, 4, 16)]


def _drawn(mechanism: Any, values: Any) -> dict[str, Any]:
    import numpy as np

    def words(count: int) -> Any:
        return rng.integers(0, 2**64, count, dtype=np.uint64)

    out = {
        "mechanism": mechanism,
        "epsilon0": mechanism.epsilon0,
        "delta0": mechanism.delta0,
        "curve": mechanism.curve,
        "error": mechanism.squared_error(100),
    }
    rng = np.random.default_rng(11)
    reports = mechanism.randomize(values, rng)
    out |= {"randomized": reports, "estimate": mechanism.estimate(reports)}
    if callable(getattr(mechanism, "report", None)):
        rng = np.random.default_rng(12)
        out["reports"] = mechanism.report(values, words)
        many = np.concatenate([values] * 50)
        out["many reports"] = mechanism.report(many, words)
    return out


def of_audits() -> Iterator[Entry]:
    """Seeded attacks on small instances."""
    import netdp

    names = (
        "gossip",
        "ring-sum",
        "walk-sum",
        "masked-sum",
        "local",
        "central",
        "gossip-descent",
        "walk-descent",
        "ring-histogram",
        "walk-histogram",
        "shuffle",
        "masked-descent",
        "erdos-renyi-gossip",
        "randomized-gossip",
        "path-sum",
        "push-sum",
        "own-linear",
    )
    known = examples()
    for name in names:
        one = known[name]
        yield (
            f"audit/{name}",
            lambda one=one: netdp.audit.audit(one.protocol, trials=400, seed=2, delta=DELTA, distances=False),
        )


# ── the command line ──────────────────────────────────────────────────────────────────────────────────────────────────


def command(*arguments: str) -> dict[str, Any]:
    """What `netdp …` prints in an empty folder, and its exit status; JSON is read."""
    out, err, status = _called(arguments)
    said: dict[str, Any] = {"status": status}
    if "--json" in arguments and out.strip():
        try:
            said["json"] = json.loads(out)
        except ValueError:
            said["text"] = out.split("\n")
    else:
        said["text"] = out.split("\n")
    if status:
        said["error"] = err.strip().split("\n")
    return said


def _called(arguments: tuple[str, ...]) -> tuple[str, str, int]:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    before, status = sys.argv, 0
    sys.argv = ["netdp", *arguments]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            runpy.run_module("netdp", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv = before
    texts = [placeless(one.buffer.getvalue().decode()) for one in (out, err)]  # type: ignore[attr-defined]
    return texts[0], texts[1], status


def placeless(text: str) -> str:
    """Without the names of temporary folders."""
    here = Path.cwd()
    return text.replace(str(here), "FOLDER").replace(str(here.parent), "TEMPORARY")


def of_commands() -> Iterator[Entry]:
    """`--help` and `--json` of every command."""
    for words in _commands():
        yield f"help/{'-'.join(words) or 'netdp'}", lambda words=words: command(*words, "--help")
    yield "command/version", lambda: command("--version")
    for name in ("protocols", "graphs"):
        yield f"command/{name}/json", lambda name=name: command(name, "--json")
        yield f"command/{name}/text", lambda name=name: command(name)
    yield "command/reproduce/list-json", lambda: command("reproduce", "--list", "--json")
    yield "command/reproduce/list", lambda: command("reproduce", "--list")
    serial = ("--engine", "serial")
    asked = {
        "gossip": "hypercube:3 --rounds 5 --sigma 4 --masks 100",
        "gossip-refresh": "ring:8 --rounds 5 --sigma 4 --refresh 0.1 --accelerated",
        "randomized": "ring:6 -p randomized --steps 20 --sigma 4",
        "varying": "ring:8+hypercube:3 -p varying --rounds 6 --sigma 4",
        "push-sum": "grid:3x3 -p push-sum --rounds 6 --sigma 4",
        "secret-graph": "complete:100 -p secret-graph --edge-probability 0.1 --rounds 4 --varying --sigma 4",
        "secret-ring": "complete:20 -p secret-ring --rounds 3 --sigma 40",
        "masked": "hypercube:3 -p masked --sigma 1",
        "token-ring": "ring:8 -p token --rounds 2 --sigma 4",
        "token": "complete:20 -p token --steps 60 --sigma 20",
        "token-graph": "hypercube:3 -p token --steps 16 --sigma 20",
        "histogram": "complete:20 -p histogram --steps 60 --domain 4 --gamma 0.5 --sender hidden",
        "histogram-ring": "ring:20 -p histogram --rounds 1 --domain 4 --gamma 0.5",
        "shuffle": "regular:60,6 -p shuffle --rounds 40 --epsilon0 1",
        "faulty-shuffle": "regular:60,6 -p faulty-shuffle --rounds 60 --epsilon0 1 --outages 0.1",
        "relayed-shuffle": "regular:60,6 -p relayed-shuffle --rounds 40 --epsilon0 1 --cover 12",
        "descent": "hypercube:3 -p descent --iterations 6 --gossip-rounds 4 --sigma 4 --step 0.5 --masks 100",
        "walk-descent": "complete:20 -p walk-descent --steps 60 --sigma 4 --step 0.05 --clip 0.5",
        "secret-graph-descent": (
            "complete:100 -p secret-graph-descent --edge-probability 0.1 --iterations 5 --sigma 4 --step 0.5"
        ),
        "ring-descent": "ring:20 -p ring-descent --rounds 3 --sigma 4 --step 0.05",
        "masked-descent": "hypercube:3 -p masked-descent --iterations 20 --sigma 4 --step 0.5 --dimension 10",
        "local": "complete:20 -p local --sigma 4",
        "central": "complete:20 -p central --sigma 0.2",
        "local-descent": "complete:20 -p local-descent --iterations 20 --sigma 4 --step 0.5",
        "central-descent": "complete:20 -p central-descent --iterations 20 --sigma 4 --step 0.5",
    }
    for name, flags in asked.items():
        words = flags.split()
        yield f"command/account/{name}", lambda words=words: command("account", *words, *serial, "--json")
        yield (
            f"command/account/{name}/colluders",
            lambda words=words: command("account", *words, "--colluders", "2", *serial, "--json"),
        )
        drawn = ["--uniform", *([] if name.startswith("histogram") else ["--bounds", "0,1"]), "--seed", "4"]
        if "descent" in name:
            drawn = ["--values", "table.csv", "--column", "ill", "--seed", "4"]
        yield f"command/simulate/{name}", lambda words=words, drawn=drawn: _simulated([*words, *drawn])
        quiet = _without(words, "--sigma" if "--sigma" in words else "--gamma" if "--gamma" in words else "--epsilon0")
        if name not in ("token", "token-graph", "token-ring"):
            yield (
                f"command/plan/{name}",
                lambda quiet=quiet: command("plan", *quiet, "--epsilon", "0.9", "--delta", "1e-4", *serial, "--json"),
            )
    for name in ("003-table1", "003-fig8", "004-theorem1", "002-topologies"):
        yield f"command/reproduce/{name}", lambda name=name: _reproduced(name)
    yield "command/account/text", lambda: command("account", "hypercube:3", "--rounds", "5", "--sigma", "4")
    yield (
        "command/account/who-learns-most",
        lambda: command("account", "star:6", "--rounds", "3", "--sigma", "4", "--who-learns-most", "--json"),
    )
    yield (
        "command/account/rdp",
        lambda: command("account", "ring:6", "--rounds", "3", "--sigma", "4", "--rdp", "2", "--json"),
    )
    plans = {
        "gossip-plain": "hypercube:3 --epsilon 1 --max-rounds 20",
        "gossip-policy": "ring:8 --policy policy.csv --max-rounds 20",
        "token-complete": "complete:20 -p token --epsilon 1 --visits 5",
        "token-ring": "ring:8 -p token --epsilon 1 --visits 2",
        "masked-colluders": "hypercube:3 -p masked --epsilon 1 --colluders 2",
        "shuffle-hops": "regular:60,6 -p shuffle --epsilon0 1 --delta 1e-4",
        "faulty-hops": "regular:60,6 -p faulty-shuffle --epsilon0 1 --delta 1e-4 --outages 0.1",
        "relayed-hops": "regular:60,6 -p relayed-shuffle --epsilon0 1 --delta 1e-4",
        "advise": "ring:20 -p masked --epsilon 1 --advise",
        "links": "ring:20 -p masked --epsilon 1 --links 2 --links-seed 3",
    }
    for name, flags in plans.items():
        yield f"command/plan/{name}", lambda flags=flags: _planned(flags.split())
    trial = ("--trials", "400", "--seed", "2", "--delta", "1e-3")
    for name in ("gossip", "masked", "local", "token-ring"):
        yield (
            f"command/audit/{name}",
            lambda name=name: command("audit", *asked[name].split(), *trial, *serial, "--json"),
        )


def _reproduced(name: str) -> Any:
    """The numbers behind a figure or table of a paper, the quick form of it."""
    done = command("reproduce", name, "--quick", "--out", "out", "--engine", "serial", "--json")
    for one in done.get("json", {}).get("reports", []):
        one.pop("seconds", None)
    tables = {path.name: path.read_text("utf-8").split("\n") for path in sorted(Path("out").rglob("*.csv"))}
    return {"printed": done, "tables": tables}


def _planned(words: list[str]) -> Any:
    Path("policy.csv").write_text("target,observer,epsilon\n*,*,4\n*,distance>=2,1\n", "utf-8")
    return command("plan", *words, "--engine", "serial", "--json")


def _simulated(words: list[str]) -> Any:
    X, y = _rows(25, 10, 2)
    lines = ["age,height,ill", *(f"{a!r},{b!r},{int(c > 0)}" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True))]
    Path("table.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return command("simulate", *words, "--engine", "serial", "--json")


def _without(words: list[str], flag: str) -> list[str]:
    """The same words without a flag and its value."""
    if flag not in words:
        return words
    place = words.index(flag)
    return words[:place] + words[place + 2 :]


def _commands() -> Iterator[tuple[str, ...]]:
    """All commands there are, read from the help texts themselves; () is `netdp`."""
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        words = waiting.pop(0)
        yield words
        lines = _called((*words, "--help"))[0].split("\n")
        if "Commands:" in lines:
            listed = lines[lines.index("Commands:") + 1 :]
            names = [match[1] for line in listed if (match := re.match(r"  (\S+)", line))]
            waiting += [(*words, name) for name in names]


# ── studies and ledgers ───────────────────────────────────────────────────────────────────────────────────────────────

DAY = "2026-01-01T10:00:00Z"
NONCE = "0123456789abcdef0123456789abcdef"

SCHEMA = 'label = "ill"\nclasses = ["no", "yes"]\n\n[features]\nage = [0, 120]\nsex = ["f", "m"]\n'
TASKS = {
    "sum": "--task sum --column x --bounds 0,1",
    "mean": "--task mean --column x --bounds 0,1",
    "variance": "--task variance --column x --bounds 0,1",
    "histogram": "--task histogram --column x --categories a,b,c",
    "bins": "--task histogram --column x --bounds 0,1 --bins 4",
    "table": "--task table --column x --column y --categories a,b --categories c,d",
    "mean-records": "--task mean --column x --bounds 0,1 --unit record --max-records 50",
    "histogram-records": "--task histogram --column x --categories a,b,c --unit record --max-records 50",
    "train": (
        "--task train --label ill=no|yes --feature age=20..60 --feature sex=f|m --records 4000 --max-records 1500 --epsilon 4"
    ),
    "train-number": "--task train --label age=0..99 --feature height=100..200 --records 4000 --max-records 1500 --epsilon 4",
    "scaling": "--task scaling --schema schema.toml --max-records 1500",
}
KINDS = {
    "masked-sum": "--n 5",
    "masked-sum-attempts": "-p masked-sum --n 6 --attempts 2 --absent 1 --colluders 2",
    "masked-sum-average": "-p masked-sum --n 8 -g hypercube:3 --spread average",
    "masked-descent": "-p masked-descent --n 5",
    "ring-sum": "-p ring-sum --n 6",
    "ring-histogram": "-p ring-histogram --n 4 --rounds 1",
    "walk-sum": "-p walk-sum --n 10 --steps 20",
    "walk-histogram": "-p walk-histogram --n 10 --steps 20 --epsilon 2",
    "gossip": "-p gossip --n 6 -g ring:6",
    "masked-sum-links": "-p masked-sum --n 12 -g ring:12 --links 1 --links-seed 3",
    "randomized-gossip": "-p randomized-gossip --n 6 -g ring:6 --wakes 4",
    "shuffle": "-p shuffle --n 20 -g regular:20,6 --rounds 12 --curator Cu --colluders 0 --delta 1e-4",
}


def of_studies() -> Iterator[Entry]:
    """A study of every task with every protocol, its hash, what it says, and the loss that a ledger would enter."""
    for task, asked in TASKS.items():
        for kind, how in KINDS.items():
            words = [*asked.split(), *how.split()]
            if words.count("--epsilon") > 1:
                words = _without(words, "--epsilon")
            yield f"study/{kind}/{task}", lambda words=words: _drafted(words)
    yield "ledger", _ledger
    yield "model-card", _carded
    for kind in ("masked-sum", "ring-sum", "walk-sum", "gossip", "shuffle"):
        task = "histogram" if kind == "shuffle" else "mean"
        words = [*TASKS[task].split(), *KINDS[kind].split()]
        yield f"report/{kind}", lambda words=words: _reported(words)


def _draft(words: list[str]) -> dict[str, Any] | None:
    """Draft a study into study.toml, with a nonce that is always the same; what was refused, or None."""
    Path("schema.toml").write_text(SCHEMA, "utf-8")
    drafted = command("study", "new", "trial", *words, "--force", "--json")
    if drafted["status"]:
        return drafted
    file = Path("study.toml")
    text, times = re.subn(r'(?m)^nonce = "[0-9a-f]+"', f'nonce = "{NONCE}"', file.read_text("utf-8"))
    if times != 1:
        raise LookupError(f"{times} nonces in the study, expected one")
    file.write_text(text, "utf-8")
    return None


def _drafted(words: list[str]) -> Any:
    refused = _draft(words)
    if refused is not None:
        return refused
    said = {
        "file": Path("study.toml").read_text("utf-8").split("\n"),
        "explained": command("study", "explain", "study.toml", "--json"),
        "in words": command("study", "explain", "study.toml"),
    }
    try:
        said["loss"] = _entered("study.toml")
    except Exception as error:
        said["loss"] = refusal(error)
    said["study"] = answered(lambda: _promised("study.toml"))
    return said


def _entered(path: str) -> Any:
    """What a ledger enters when all parties take part, for the first and the last of them."""
    study = _study(path)
    everybody = tuple(range(study.n))
    return {f"party {me}": study.running.loss(everybody, me) for me in (0, study.n - 1)}


def _study(path: str) -> Any:
    return found("netdp.peers.study:Study", "netdp.peers.study.study:Study").read(path)


def _promised(path: str) -> Any:
    """What the study promises, what its answer is made of, and what its ledger entry comes to."""
    study = _study(path)
    said: dict[str, Any] = {"hash": study.hash, "canonical": study.canonical, "protocol": study.protocol()}
    for count in (1, 2, study.n - 1):
        said[f"promise to {count}"] = answered(lambda count=count: study.promise(count))
    said["noise"] = answered(study.noise)
    said["answer"] = answered(lambda: study.answer([0.25 * k for k in range(study.task.dimension)]))
    entry, curve = found("netdp.peers.ledger.entries:Entry"), found("netdp.peers.ledger.entries:curve")
    everybody, delta = tuple(range(study.n)), study.privacy.delta

    def spent(against: Any) -> Any:
        loss = study.running.loss(everybody, 0)
        one = entry(DAY, study.hash.hex(), study.name, 1, study.names, study.names[0], study.task.unit, delta, loss)
        return curve(one, against).epsilon(delta)

    for against in (1, 2, study.n - 1, study.names[1], "nobody"):
        said[f"entered against {against}"] = answered(lambda against=against: spent(against))
    return said


def _ledger() -> Any:
    """A ledger with entries of several kinds, as `netdp ledger` shows it; its keys are fresh and are not shown."""
    entry = found("netdp.peers.ledger.entries:Entry")
    identity, store = found("netdp.peers.identity:Identity"), found("netdp.peers.ledger.store:Store")
    kept = []
    for kind, task in (("masked-sum", "mean"), ("masked-sum-records", ""), ("ring-sum", "mean"), ("gossip", "mean")):
        if task:
            _draft([*TASKS[task].split(), *KINDS[kind].split()])
        else:
            _draft([*TASKS["mean-records"].split(), *KINDS["masked-sum"].split()])
        kept.append(_study("study.toml"))
    me = identity.create("home", "p00")
    with store.open("home/peer.db", sign=me.sign) as held:
        for k, study in enumerate(kept):
            loss = study.running.loss(tuple(range(study.n)), 0)
            day = f"2026-0{k + 1}-01T10:00:00Z"
            told = hashlib.sha256(str(k).encode()).hexdigest()
            one = entry(day, told, f"trial {k}", 1, study.names, "p00", study.task.unit, 1e-6, loss)
            held.spend(bytes.fromhex(told), 1, (2, 1, 0, 0), told.encode(), b"", one)
    return {
        "json": command("ledger", "show", "--home", "home", "--json"),
        "text": command("ledger", "show", "--home", "home"),
        "two": command("ledger", "show", "--home", "home", "--against", "2", "--json"),
        "p01": command("ledger", "show", "--home", "home", "--against", "p01", "--delta", "1e-9", "--json"),
        "since": command("ledger", "show", "--home", "home", "--since", "2026-02-15", "--json"),
    }


def _carded() -> Any:
    """A model's card and what is read back of it."""
    import numpy as np

    column, schema = found("netdp.models.schema:Column"), found("netdp.models.schema:Schema")
    save = found("netdp.models.files:save_model")
    columns = schema(
        (column("age", range=(20, 60)), column("sex", values=("f", "m"))), column("ill", values=("no", "yes"))
    )
    terms = {"epsilon": 1.0, "delta": 1e-6, "claim": "upper", "certified": 0.99, "protected": "all data of a party"}
    terms |= {"against": "any single party", "unit": "party", "neighbours": "replace"}
    about = {"name": "Four wards", "model": {"name": "logistic", "parameters": 3}, "schema": columns.to_dict()}
    files = save("model", np.array([2.0, 0.5, -0.25]), {**about, "privacy": terms})
    load = found("netdp.learn:load_model")
    model = load("model")
    rows = [{"age": 60, "sex": "m"}, {"age": 20, "sex": "f"}]
    texts = {name: path.read_text("utf-8").split("\n") for name, path in sorted(files.items()) if path.suffix != ".npz"}
    return {**texts, "predicted": model.predict(rows), "chances": model.predict_proba(rows)}


def _reported(words: list[str]) -> Any:
    refused = _draft(words)
    if refused is not None:
        return refused
    done = command("report", "study.toml", "-o", "report.html", "--force", "--json")
    done.get("json", {}).pop("written", None)  # the time
    text = Path("report.html").read_text("utf-8")
    told = re.sub(r"<(style|script|svg)\b.*?</\1>", " ", text, flags=re.S)
    told = re.sub(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?( ?UTC|Z)?)?", "DATE", re.sub(r"<[^>]+>", "\n", told))
    return {"printed": done, "text": [line.strip() for line in told.split("\n") if line.strip()]}


# ── all of it ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PARTS: tuple[Callable[[], Iterator[Entry]], ...] = (
    of_protocols,
    of_plans,
    of_learning,
    of_graphs,
    of_privacy,
    of_mechanisms,
    of_audits,
    of_commands,
    of_studies,
)
QUICK = ("protocol/ring-sum", "account/gossip/", "calibrate/local", "graph/ring", "simulate/ring-sum")


def refusal(error: BaseException) -> str:
    """An error as an answer."""
    return f"refused: {type(error).__name__}: {error}"


def answered(ask: Callable[[], Any]) -> Any:
    """The answer in plain values; what is refused or fails is an answer, too."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            said = plain(ask())
        except Exception as error:
            return placeless(refusal(error))
    words = sorted({str(one.message) for one in told if one.category.__name__ in WARNED})
    return {"warned": words, "answer": said} if words else said


def prepare(folder: str) -> None:
    """One thread, one process, no data but what is made here: the bits depend on nothing else."""
    for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB_MAXIMUM", "NUMEXPR"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
    os.environ["VECLIB_MAXIMUM_THREADS"] = "1"
    os.environ |= {"NETDP_WORKERS": "1", "NETDP_DATA": folder, "XDG_CACHE_HOME": folder}
    os.environ |= {"COLUMNS": "100", "LINES": "40", "TERM": "dumb", "NO_COLOR": "1", "TZ": "UTC", "LANG": "C.UTF-8"}
    os.environ |= {"MPLBACKEND": "Agg", "SOURCE_DATE_EPOCH": "0"}
    os.environ.pop("FORCE_COLOR", None)


def entries() -> Iterator[Entry]:
    """All of them; names do not repeat."""
    seen: set[str] = set()
    for part in PARTS:
        for name, ask in part():
            if name in seen:
                raise ValueError(f"two entries are called {name}")
            seen.add(name)
            yield name, ask


def dump(wanted: tuple[str, ...] = (), *, slow: int = 0) -> dict[str, Any]:
    """The answers by name; of all, or of those whose names begin with one of `wanted`."""
    folder = tempfile.mkdtemp(prefix="netdp-dump-")
    back, out, times = os.getcwd(), {}, {}
    prepare(folder)
    try:
        import netdp

        with netdp.engine("serial"):
            for name, ask in entries():
                if wanted and not name.startswith(wanted):
                    continue
                work = tempfile.mkdtemp(dir=folder)
                os.chdir(work)
                start = time.process_time()
                out[name] = answered(ask)
                times[name] = time.process_time() - start
                if sys.stderr.isatty():
                    print(f"\r{len(out):5} {name:<70.70}", end="", file=sys.stderr, flush=True)
                elif len(out) % 50 == 0:
                    print(f"{len(out):5} {name}", file=sys.stderr, flush=True)
    finally:
        os.chdir(back)
        shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{chr(13) * sys.stderr.isatty()}{len(out):5} entries, {sum(times.values()):.0f} s of computing{'':60}",
        file=sys.stderr,
    )
    for name in sorted(times, key=lambda one: -times[one])[:slow]:
        print(f"{times[name]:8.2f} s  {name}", file=sys.stderr)
    return out


def differences(a: Any, b: Any, place: str = "") -> Iterator[str]:
    """Where two answers differ, one line each."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted({*a, *b}):
            if key not in b:
                yield f"{place}.{key}: only in A: {_short(a[key])}"
            elif key not in a:
                yield f"{place}.{key}: only in B: {_short(b[key])}"
            else:
                yield from differences(a[key], b[key], f"{place}.{key}")
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            yield f"{place}: {len(a)} items in A, {len(b)} in B"
        for k, (x, y) in enumerate(zip(a, b, strict=False)):
            yield from differences(x, y, f"{place}[{k}]")
    elif type(a) is not type(b) or a != b:
        yield f"{place or '.'}: {_short(a)} became {_short(b)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else f"{text[:160]}…"


def compare(first: str, second: str) -> int:
    """Print what differs between two files; 1 if anything does, entries that only one of them has included."""
    a, b = (json.loads(Path(path).read_text("utf-8"))["entries"] for path in (first, second))
    differ = 0
    for name in sorted({*a, *b}):
        if name not in a or name not in b:
            print(f"{name}: only in {'A' if name in a else 'B'}")
            continue
        lines = list(differences(a[name], b[name]))
        if not lines:
            continue
        differ += 1
        print(f"{name}:")
        for line in lines[:SHOWN]:
            print(f"    {line}")
        if len(lines) > SHOWN:
            print(f"    … and {len(lines) - SHOWN} more")
    only_a, only_b = len(a.keys() - b.keys()), len(b.keys() - a.keys())
    print(f"{len(a.keys() | b.keys())} entries, {differ} differ, {only_a} only in A, {only_b} only in B")
    return int(bool(differ or only_a or only_b))


def main() -> int:
    """Dump, or compare two dumps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", metavar="OUT.json", help="the file to write; - for standard output")
    parser.add_argument("--only", action="append", default=[], metavar="PREFIX", help="entries whose names begin so")
    parser.add_argument("--quick", action="store_true", help="a few entries")
    parser.add_argument("--list", action="store_true", help="the names of all entries")
    parser.add_argument("--slow", type=int, default=0, metavar="N", help="say which N entries took longest")
    parser.add_argument("--compare", nargs=2, metavar=("A.json", "B.json"), help="print what differs")
    given = parser.parse_args()
    if given.compare:
        return compare(*given.compare)
    if given.list:
        for name, _ in entries():
            print(name)
        return 0
    if given.out is None and not given.quick:
        parser.error("name the file to write, OUT.json, or --compare A.json B.json")
    target = None if given.out in (None, "-") else Path(given.out).resolve()
    out = dump((*given.only, *(QUICK if given.quick else ())), slow=given.slow)
    text = json.dumps({"entries": out}, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if target is None:
        print(text, end="")
    else:
        target.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
