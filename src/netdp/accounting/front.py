"""The front door: `account` for one set of observers, `pairwise` for every observer alone."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import numpy as np
import numpy.typing as npt

from netdp.errors import InvalidValue, Unsupported
from netdp.graphs import Graph
from netdp.privacy import GaussianCurve, Guarantee, RenyiCurve
from netdp.privacy.guarantee import weakest
from netdp.protocols import Gossip, PathSum, RingSum, Shuffle
from netdp.views import GossipView, curator_set, observer_set

from .gossip import factors
from .krylov import Progress
from .published import muffliato
from .registry import certified, published
from .statements import certified_statement, published_statement
from .token import path_pairs

FloatArray = npt.NDArray[np.float64]

METHODS = ("certified", "published")
# A matrix of this many parties takes 3 GB.
MAX_PAIRWISE = 20_000


@certified.register
def _gossip(protocol: Gossip, observers: tuple[int, ...], *, progress: Progress | None = None) -> Guarantee:
    result = factors(GossipView(protocol, observers), progress)
    return certified_statement(protocol, result.values, observers, result.claim, result.slack, result.notes)


@published.register
def _muffliato(protocol: Gossip, observers: tuple[int, ...], *, progress: Progress | None = None) -> Guarantee:
    return published_statement(protocol, muffliato.theorem12(protocol, observers, ids=True), observers)


def account(
    protocol: Any,
    observers: int | str | Iterable[int | str],
    *,
    method: str = "certified",
    progress: Progress | None = None,
    **options: Any,
) -> Guarantee:
    """What `observers` (several = they collude) learn about every other party, before anything is sent.

    Of a `Shuffle` the curator looks: observers="curator", or ["curator", 3, 5] if users 3 and 5 collude with it.
    `method="published"` computes the paper's formula instead, which is not a guarantee and says so.
    `progress(done, total)` is told of every round; other options belong to particular protocols.

    >>> import netdp
    >>> p = netdp.Gossip(netdp.graphs.hypercube(6), rounds=20, sigma=4.0, masks=100.0)
    >>> loss = account(p, observers=[0])
    >>> float(np.nanmax(loss.factor).round(4)), str(loss.claim.value)      # the curator's limit is 1/63 = 0.0159
    (0.0182, 'exact')
    """
    _check_method(method)
    accountant = certified if method == "certified" else published
    if isinstance(protocol, Shuffle):
        return accountant(protocol, curator_set(protocol.graph, observers), progress=progress, **options)
    members = observer_set(_parties(protocol), observers)
    return accountant(protocol, members, progress=progress, **options)


def pairwise(
    protocol: Any,
    *,
    method: str = "certified",
    progress: Progress | None = None,
    workers: int | None = None,
    **options: Any,
) -> Guarantee:
    """What every party v alone learns about every other party u: matrices [u, v], nan on the diagonal.

    `progress(done, total)` is called now and then; `workers` threads are used (all cores by default). Other options
    belong to particular protocols, as in `account`.
    """
    _check_method(method)
    parties = _parties(protocol)
    n = parties if isinstance(parties, int) else parties.n
    if n > MAX_PAIRWISE:
        raise Unsupported(
            f"all pairs of {n} parties are {n**2:.1e} numbers; pairwise is offered up to {MAX_PAIRWISE} parties, "
            "use account(protocol, observers=[v]) for the observers of interest"
        )
    if method == "published" and isinstance(protocol, Gossip):
        return published_statement(protocol, muffliato.theorem1_pairwise(protocol), "each")
    accountant = certified if method == "certified" else published
    if method == "certified" and isinstance(protocol, PathSum | RingSum):
        return path_pairs(protocol)
    if isinstance(protocol, Gossip):
        protocol.matrix, protocol.gamma  # noqa: B018  computed once, before the threads start
    values = np.empty((n, n), order="F")
    columns: dict[int, Guarantee] = {}
    stop = threading.Event()

    def one(v: int) -> None:
        if stop.is_set():
            return
        column = accountant(protocol, (v,), progress=None, **options)
        if not column.curve.shape:
            raise Unsupported(
                f"all pairs of {type(protocol).__name__} are alike: account(protocol, [0]) holds for each"
            )
        if column.factor is None or not isinstance(column.curve, GaussianCurve | RenyiCurve):
            raise Unsupported(
                f"losses of {type(protocol).__name__} are no multiples of a local loss; account one by one"
            )
        values[:, v] = column.factor
        columns[v] = dataclasses.replace(column, curve=GaussianCurve(0.0), factor=None)  # only its words are kept

    from threadpoolctl import threadpool_limits

    # One thread of BLAS per observer: many small products gain more from running side by side.
    with threadpool_limits(1), ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        try:
            for done, job in enumerate(as_completed([pool.submit(one, v) for v in range(n)]), start=1):
                job.result()
                if progress is not None:
                    progress(done, n)
        except BaseException:
            stop.set()
            raise
    said = [columns[v] for v in range(n)]
    mu = np.sqrt(values) * protocol.local_mu
    return dataclasses.replace(
        said[0],
        curve=GaussianCurve(mu) if method == "certified" else RenyiCurve.linear(mu**2 / 2),
        observers="each",
        claim=weakest(*(column.claim for column in said)),
        assumptions=tuple(dict.fromkeys(text for column in said for text in column.assumptions)),
        factor=values,
        slack=max(column.slack for column in said),
    )


def _parties(protocol: Any) -> Graph | int:
    """Where observers are looked up: the protocol's graph, the first of its graphs, or just its number of parties."""
    graph = getattr(protocol, "graph", None)
    return protocol.n if graph is None else graph if isinstance(graph, Graph) else graph[0]


def _check_method(method: str) -> None:
    if method not in METHODS:
        raise InvalidValue(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
