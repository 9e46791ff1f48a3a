"""The graph that parties talk along: simple, undirected, immutable.

Everything else in netdp takes a `Graph`: mixing makes a gossip matrix of it, protocols run on it, accountants
ask it who sees whom. It is kept as compressed sparse rows, so a million nodes fit and every question below is
answered by vector operations.
"""

from __future__ import annotations

import hashlib
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Self, SupportsIndex

import numpy as np
import numpy.typing as npt

from netdp.display import shown
from netdp.errors import GraphError, InvalidValue
from netdp.graphs import csr as _csr
from netdp.graphs.checks import checked_edges, listed, node_count
from netdp.numerics.arrays import FloatArray, Int32Array, IntArray
from netdp.numerics.checks import whole

_SLOTS = ("indptr", "indices", "n", "name", "labels", "positions", "laplacian_spectrum", "_memo")


class Graph:
    """A simple undirected graph without self-loops on the nodes 0 … n−1.

    Attributes:
        n: number of nodes, at least 1.
        indptr, indices: compressed sparse rows; the neighbours of u are `indices[indptr[u]:indptr[u + 1]]`,
            in increasing order. Read-only.
        name: how the graph calls itself in reports; no part of equality.
        labels: the nodes' original identifiers, if they were not 0 … n−1.
        positions: (n, 2) coordinates for drawing, if the graph has a natural drawing.
        laplacian_spectrum: gives the eigenvalues of the combinatorial Laplacian D − A in increasing order by
            a closed form, for the families that have one.

    Two graphs are equal when they have the same n and the same edges.

    >>> g = Graph.from_edges(4, [(0, 1), (1, 2), (3, 2)], name="path of four")
    >>> g
    Graph('path of four', n=4, m=3)
    >>> g.neighbors(2)
    array([1, 3], dtype=int32)
    >>> g.distances([0])
    array([0, 1, 2, 3], dtype=int32)
    """

    __slots__ = _SLOTS

    indptr: IntArray
    indices: Int32Array
    n: int
    name: str
    labels: tuple[str, ...] | None
    positions: FloatArray | None
    laplacian_spectrum: Callable[[], FloatArray] | None
    _memo: dict[str, Any]

    def __init__(
        self,
        indptr: npt.ArrayLike,
        indices: npt.ArrayLike,
        *,
        name: str = "graph",
        labels: Sequence[str] | None = None,
        positions: npt.ArrayLike | None = None,
        laplacian_spectrum: Callable[[], FloatArray] | None = None,
    ) -> None:
        """From compressed sparse rows, checked; `from_edges` is the usual way in."""
        pointers, columns = np.asarray(indptr), np.asarray(indices)
        if pointers.ndim != 1 or pointers.size < 2 or pointers.dtype.kind not in "iu":
            raise GraphError("indptr must be a vector of n + 1 ≥ 2 integers; Graph.from_edges builds it for you")
        start, stop = int(pointers[0]), int(pointers[-1])
        if columns.ndim != 1 or (columns.size and columns.dtype.kind not in "iu"):
            raise GraphError("indices must be a vector of integers; Graph.from_edges builds it for you")
        if start != 0 or stop != columns.size or np.any(np.diff(pointers.astype(np.int64)) < 0):
            raise GraphError(
                f"indptr must rise from 0 to len(indices) = {columns.size}, but goes from {start} to {stop} "
                "or falls on the way; Graph.from_edges builds it for you"
            )
        rows = _csr.rows_of(pointers.astype(np.int64))
        once = rows < columns
        # Rebuilding from the upper triangle checks order, symmetry, loops and duplicates in one comparison.
        edges = checked_edges(pointers.size - 1, np.column_stack((rows[once], columns[once].astype(np.int64))))
        rebuilt = _csr.build(pointers.size - 1, edges)
        if not (np.array_equal(rebuilt[0], pointers) and np.array_equal(rebuilt[1], columns)):
            raise GraphError(
                "indptr and indices must list every edge in both rows, each row sorted, without self-loops; "
                "Graph.from_edges builds them for you"
            )
        self._fill(*rebuilt, name, labels, positions, laplacian_spectrum)

    @classmethod
    def from_edges(
        cls,
        n: int,
        edges: npt.ArrayLike | Iterable[tuple[int, int]],
        *,
        name: str = "graph",
        labels: Sequence[str] | None = None,
        positions: npt.ArrayLike | None = None,
        laplacian_spectrum: Callable[[], FloatArray] | None = None,
    ) -> Self:
        """The graph on n nodes with the given edges, each listed once in either direction.

        Raises:
            GraphError: n < 1, an id outside 0 … n−1, a self-loop, or an edge listed twice: nothing is
                dropped silently. To clean a real edge list use `netdp.graphs.read`.

        >>> Graph.from_edges(3, [(0, 1), (1, 0)])
        Traceback (most recent call last):
        netdp.errors.GraphError: the edge (0, 1) is listed more than once; ...
        """
        nodes = node_count(n)
        indptr, indices = _csr.build(nodes, checked_edges(nodes, edges))
        return cls._trusted(indptr, indices, name, labels, positions, laplacian_spectrum)

    @classmethod
    def _trusted(cls, *parts: Any) -> Self:
        graph = cls.__new__(cls)
        graph._fill(*parts)
        return graph

    def _fill(
        self,
        indptr: IntArray,
        indices: Int32Array,
        name: str,
        labels: Sequence[str] | None,
        positions: npt.ArrayLike | None,
        laplacian_spectrum: Callable[[], FloatArray] | None,
    ) -> None:
        n = indptr.size - 1
        if labels is not None:
            if not isinstance(labels, Iterable):
                raise GraphError(f"labels must be one name per node, got {labels!r}")
            labels = tuple(str(label) for label in labels)
            if len(labels) != n:
                raise GraphError(f"{len(labels)} labels for {n} nodes; give one label per node")
            if len(set(labels)) != n:
                twice = Counter(labels).most_common(1)[0][0]
                raise GraphError(f"the label {twice!r} is given to several nodes; labels must differ")
        if positions is not None:
            try:
                positions = np.array(positions, dtype=np.float64)
            except (TypeError, ValueError):
                raise GraphError(f"positions must be {n} pairs of numbers, got {positions!r}") from None
            if positions.shape != (n, 2) or not np.isfinite(positions).all():
                raise GraphError(f"positions must be finite and of shape ({n}, 2), got {positions.shape}")
            positions.flags.writeable = False
        indptr.flags.writeable = indices.flags.writeable = False
        values: tuple[Any, ...] = (indptr, indices, n, str(name), labels, positions, laplacian_spectrum, {})
        for slot, value in zip(_SLOTS, values, strict=True):
            object.__setattr__(self, slot, value)

    def __setattr__(self, key: str, value: object) -> NoReturn:
        raise AttributeError(f"a Graph is immutable: {key!r} cannot be set; build another with Graph.from_edges")

    def __delattr__(self, key: str) -> NoReturn:
        raise AttributeError(f"a Graph is immutable: {key!r} cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.name, self.labels, self.positions, self.laplacian_spectrum)
        return (type(self)._trusted, (self.indptr, self.indices, *parts))

    def __repr__(self) -> str:
        return f"Graph({self.name!r}, n={self.n}, m={self.m})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return np.array_equal(self.indptr, other.indptr) and np.array_equal(self.indices, other.indices)

    def __hash__(self) -> int:
        return hash(self.digest)

    def _remember(self, key: str, compute: Callable[[], Any]) -> Any:
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]

    # ── what it is made of ────────────────────────────────────────────────────────────────────────────

    @property
    def m(self) -> int:
        """Number of edges."""
        return self.indices.size // 2

    @property
    def degrees(self) -> IntArray:
        """Number of neighbours of every node (read-only)."""
        return self._remember("degrees", lambda: _frozen(np.diff(self.indptr)))  # type: ignore[no-any-return]

    def edges(self) -> IntArray:
        """The (m, 2) edges with u < v, in lexicographic order."""
        rows = _csr.rows_of(self.indptr)
        once = rows < self.indices
        return np.column_stack((rows[once], self.indices[once].astype(np.int64)))

    def neighbors(self, u: int) -> Int32Array:
        """The neighbours of node u, an id, in increasing order (read-only).

        Of a party known by name: `graph.neighbors(graph.index("ann"))`.
        """
        u = self._node(u)
        return self.indices[self.indptr[u] : self.indptr[u + 1]]

    def has_edge(self, u: int, v: int) -> bool:
        """Whether {u, v}, two node ids, is an edge."""
        row, target = self.neighbors(u), self._node(v)
        place = int(np.searchsorted(row, target))
        return place < row.size and int(row[place]) == target

    def index(self, label: int | str) -> int:
        """The node that somebody means who typed `label`: names win, and a number that could mean two nodes is refused.

        A string is a label; in a graph without labels, the id written out. An integer is a node id, unless another
        node has that number as its name: in a file that numbers its nodes from 1, `index(1)` could mean the node
        named '1' or the one at place 1, which is named '2'. Ids that were computed need no lookup.

        >>> Graph.from_edges(2, [(0, 1)], labels=["ann", "bob"]).index("bob")
        1
        >>> Graph.from_edges(2, [(0, 1)], labels=["1", "2"]).index(1)
        Traceback (most recent call last):
        netdp.errors.InvalidValue: 1 could mean two nodes of Graph('graph', n=2, m=1): ...
        """
        if isinstance(label, str):
            if self.labels is None:
                if label.isascii() and label.isdigit() and int(label) < self.n:
                    return int(label)
                raise InvalidValue(f"no node {label!r} in {self!r}; its nodes are 0 to {self.n - 1}")
            named = self._labelled(label)
            if named is not None:
                return named
            shown = ", ".join(map(repr, self.labels[:5])) + (", …" if self.n > 5 else "")
            raise InvalidValue(f"no node is labelled {label!r} in {self!r}; graph.labels lists them: {shown}")
        if self.labels is not None and isinstance(label, SupportsIndex) and not isinstance(label, bool | np.ndarray):
            number = operator.index(label)
            name = str(number)
            if self._labelled(name) not in (None, number):
                if not 0 <= number < self.n:
                    raise InvalidValue(
                        f"no node {number} in {self!r}, whose nodes are 0 to {self.n - 1}; if you mean the one named "
                        f"{name!r}, give the name as text: {name!r}"
                    )
                other = self.labels[number]
                raise InvalidValue(
                    f"{number} could mean two nodes of {self!r}: the one named {name!r}, or node {number} (counted from 0),"
                    f" which is named {other!r}; give the name as text, {name!r} or {other!r} (graph.label(node) is the "
                    "name of a node id)"
                )
        return self._node(label)

    def label(self, node: int) -> int | str:
        """What to type for a node id so that `index` finds it: its label, or the id in a graph without labels.

        >>> numbered = Graph.from_edges(3, [(0, 1), (1, 2)], labels=["1", "2", "3"])
        >>> [numbered.label(u) for u in numbered.neighbors(1)]
        ['1', '3']
        """
        number = self._node(node)
        return number if self.labels is None else self.labels[number]

    def _labelled(self, name: str) -> int | None:
        """The node of that label, if there is one."""
        labels = self.labels or ()
        known: dict[str, int] = self._remember("index", lambda: {label: i for i, label in enumerate(labels)})
        return known.get(name)

    def _node(self, node: object) -> int:
        """A node id, checked; other than `index`, which looks up what a person typed, this knows no names."""
        if isinstance(node, str):
            raise InvalidValue(
                f"a node id is a number 0 to {self.n - 1}, got {node!r}; graph.index({node!r}) finds the id of a name"
            )
        number = whole("a node", node, 0, f"the nodes of {self!r} are 0 to {self.n - 1}")
        if number >= self.n:
            raise InvalidValue(f"no node {number} in {self!r}; its nodes are 0 to {self.n - 1}")
        return number

    @property
    def digest(self) -> str:
        """Hexadecimal BLAKE2b (256 bits) of n and the sorted edges: names the structure across machines."""

        def compute() -> str:
            state = hashlib.blake2b(digest_size=32, person=b"netdp graph")
            state.update(self.n.to_bytes(8, "little"))
            state.update(np.ascontiguousarray(self.edges(), dtype="<i8").tobytes())
            return state.hexdigest()

        return str(self._remember("digest", compute))

    # ── matrices ──────────────────────────────────────────────────────────────────────────────────────

    def adjacency(self) -> Any:
        """The adjacency matrix A as a `scipy.sparse.csr_array` of float64 ones (a fresh copy)."""
        return _csr.matrix(self.indptr, self.indices)

    def laplacian(self) -> Any:
        """The combinatorial Laplacian L = D − A as a `scipy.sparse.csr_array`.

        >>> Graph.from_edges(2, [(0, 1)]).laplacian().toarray()
        array([[ 1., -1.],
               [-1.,  1.]])
        """
        from scipy.sparse import csr_array, dia_array

        degrees = self.degrees.astype(np.float64)
        return csr_array(dia_array((degrees[None, :], [0]), shape=(self.n, self.n)) - self.adjacency())

    # ── connectivity and distance ─────────────────────────────────────────────────────────────────────

    def components(self) -> IntArray:
        """The connected component of every node, components numbered by their smallest node (read-only)."""

        def compute() -> IntArray:
            return _frozen(_csr.components(self.indptr, self.indices)[1])

        return self._remember("components", compute)  # type: ignore[no-any-return]

    @property
    def is_connected(self) -> bool:
        """Whether every node can reach every other."""
        return int(self.components().max()) == 0

    @property
    def is_bipartite(self) -> bool:
        """Whether the nodes split in two classes with every edge between them (no odd cycle)."""
        return bool(self._remember("bipartite", lambda: _csr.bipartite(self.indptr, self.indices)))

    def require_connected(self, what: str) -> None:
        """Raise `GraphError` unless the graph is connected; `what` says who asks.

        >>> Graph.from_edges(3, [(0, 1)]).require_connected("gossip")
        Traceback (most recent call last):
        netdp.errors.GraphError: gossip needs a connected graph, but Graph(...) has 2 components...
        """
        if not self.is_connected:
            sizes = np.bincount(self.components())
            raise GraphError(
                f"{what} needs a connected graph, but {self!r} has {sizes.size} components, the largest of "
                f"{sizes.max()} nodes; graph.largest_component() gives that one"
            )

    def largest_component(self) -> Graph:
        """The largest connected component (of equals, the one with the smallest node), labels kept.

        Nodes keep their order; a graph without labels gets its old ids as labels.
        """
        if self.is_connected:
            return self
        component = self.components()
        nodes = np.flatnonzero(component == np.bincount(component).argmax())
        return self.subgraph(nodes, name=f"{self.name}, largest component")

    def distances(self, sources: int | Iterable[int]) -> Int32Array:
        """Number of hops from every node to the nearest of the sources (ids), −1 where none of them can be reached."""
        nodes = [sources] if isinstance(sources, int | np.integer) else sources
        return _csr.hops(self.indptr, self.indices, self._nodes(nodes, "sources"))

    def _nodes(self, given: Any, what: str) -> IntArray:
        """Distinct node ids in increasing order, checked."""
        try:
            nodes = np.asarray(listed(given))
        except ValueError:  # ragged
            raise InvalidValue(f"{what} must be one or more node ids, got {given!r}") from None
        if nodes.ndim != 1 or nodes.size == 0 or nodes.dtype.kind not in "iu":
            names = "; graph.index(name) finds the id of a name" if nodes.dtype.kind == "U" else ""
            raise InvalidValue(f"{what} must be one or more node ids, got {nodes.tolist()!r}{names}")
        wrong = (nodes < 0) | (nodes >= self.n)
        if wrong.any():
            raise InvalidValue(f"{what}: no node {nodes[wrong][0]} in {self!r}; its nodes are 0 to {self.n - 1}")
        return _csr.distinct(nodes.astype(np.int64))

    # ── other graphs from this one ────────────────────────────────────────────────────────────────────

    def subgraph(self, nodes: Iterable[int], *, name: str | None = None) -> Graph:
        """The graph on some of the nodes, given by their ids, with every edge between them.

        Nodes keep their order and labels; a graph without labels gets its old ids as labels.
        """
        kept = self._nodes(nodes, "nodes")
        new = np.full(self.n, -1, dtype=np.int64)
        new[kept] = np.arange(kept.size)
        edges = new[self.edges()]
        old = map(str, kept.tolist()) if self.labels is None else map(self.labels.__getitem__, kept.tolist())
        return Graph.from_edges(
            kept.size,
            edges[(edges >= 0).all(axis=1)],
            name=f"{self.name}, {kept.size} of {self.n} nodes" if name is None else name,
            labels=tuple(old),
            positions=None if self.positions is None else self.positions[kept],
        )

    def in_order_of(self, other: Graph) -> Graph:
        """The same graph with its nodes numbered as those of the same names in `other`.

        Graphs on the same people may number them differently. In a graph without names, a node's name is its number. If
        the other one's names are no such numbers at all, numbers are all there is, and they are taken to agree.

        >>> cycle = Graph.from_edges(3, [(0, 1), (1, 2), (2, 0)], labels=["ann", "bob", "cy"])
        >>> Graph.from_edges(3, [(0, 1), (0, 2)], labels=["cy", "ann", "bob"]).in_order_of(cycle).edges().tolist()
        [[0, 2], [1, 2]]
        """
        places = self.places_in(other)
        return self if places is None else self.relabel(places)

    def places_in(self, other: Graph) -> list[int] | None:
        """Which number every node has in `other`, by its name; None if the two number their nodes alike.

        >>> Graph.from_edges(2, [(0, 1)], labels=["bob", "ann"]).places_in(Graph.from_edges(2, [], labels=["ann", "bob"]))
        [1, 0]
        """
        if self.n != other.n:
            raise InvalidValue(f"{self!r} must have the same parties as {other!r}")
        if self.labels == other.labels:
            return None
        numbers = tuple(map(str, range(self.n)))
        own, known = self.labels or numbers, {name: node for node, name in enumerate(other.labels or numbers)}
        unknown = [name for name in own if name not in known]
        if len(unknown) == self.n and (self.labels is None or other.labels is None):
            return None
        if unknown:
            raise InvalidValue(
                f"{self!r} must have the same parties as {other!r}, which has no {unknown[0]!r}; give both the same labels"
            )
        return [known[name] for name in own]

    def relabel(self, permutation: npt.ArrayLike) -> Graph:
        """The same graph with old node i called `permutation[i]`; labels and positions move along.

        >>> path = Graph.from_edges(3, [(0, 1), (1, 2)])
        >>> path.relabel([1, 0, 2]).edges().tolist()
        [[0, 1], [0, 2]]
        """
        complaint = f"a permutation must hold each of 0 to {self.n - 1} once, got {permutation!r}"
        try:
            order = np.asarray(permutation)
        except ValueError:  # ragged
            raise InvalidValue(complaint) from None
        numbers = order.shape == (self.n,) and order.dtype.kind in "iuf"
        if not numbers or not np.array_equal(np.sort(order), np.arange(self.n)):
            raise InvalidValue(complaint)
        back = np.argsort(order)
        labels = None if self.labels is None else tuple(self.labels[i] for i in back.tolist())
        return Graph.from_edges(
            self.n,
            order.astype(np.int64)[self.edges()],
            name=self.name,
            labels=labels,
            positions=None if self.positions is None else self.positions[back],
            laplacian_spectrum=self.laplacian_spectrum,  # similar matrices
        )

    # ── for people ────────────────────────────────────────────────────────────────────────────────────

    def plot(self) -> Any:
        """A picture of the graph, a matplotlib figure: links, parties, and names where there are few."""
        return shown("Graph.plot")(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return str(shown("Graph.html")(self))

    # ── in and out ────────────────────────────────────────────────────────────────────────────────────

    def to_networkx(self) -> Any:
        """A `networkx.Graph` on 0 … n−1, with node attributes `label` and `pos` where this graph has them."""
        from netdp.graphs.convert import to_networkx

        return to_networkx(self)

    def to_dict(self) -> dict[str, Any]:
        """The graph as JSON-able data: n, edges, name, labels.

        >>> Graph.from_dict(Graph.from_edges(2, [(0, 1)]).to_dict())
        Graph('graph', n=2, m=1)
        """
        labels = None if self.labels is None else list(self.labels)
        return {"n": self.n, "edges": self.edges().tolist(), "name": self.name, "labels": labels}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; `name` and `labels` may be left out, anything unknown is refused."""
        if not isinstance(data, Mapping):
            raise InvalidValue(f"a graph is written as a dictionary with n, edges, name, labels; got {data!r}")
        unknown = sorted(set(data) - {"n", "edges", "name", "labels"})
        missing = sorted({"n", "edges"} - set(data))
        if unknown or missing:
            problem = f"unknown: {unknown}" if unknown else f"missing: {missing}"
            raise InvalidValue(f"a graph is written with n, edges, name, labels; {problem}")
        return cls.from_edges(data["n"], data["edges"], name=data.get("name", "graph"), labels=data.get("labels"))


def _frozen(array: IntArray) -> IntArray:
    array.flags.writeable = False
    return array
