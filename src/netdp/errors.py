"""Everything netdp refuses to do, and why.

    NetdpError
    ├── InvalidValue (also ValueError)     an argument is out of its domain: σ ≤ 0, NaN, rounds < 1, unknown party
    ├── GraphError (also ValueError)       the graph does not allow it: disconnected, bipartite, empty
    ├── FileFormatError (also ValueError)  a file cannot be read as what it should be; names file and line
    ├── DataNotFound (also LookupError)    a named data set is not on this machine
    ├── Unsupported                        no proved method covers this case: netdp refuses rather than guesses
    ├── MissingDependency (also ImportError)  an optional package is needed; names it
    ├── Refused                            a peer declines: policy, signature, budget or identity; nothing was sent
    ├── LinkLost                           the connection to a neighbour ended before it took a frame
    └── WorkersLost                        the processes or machines that compute for this one ended, or do not answer

Every message names the offending value and says what to do next.
"""

from __future__ import annotations

from typing import Any


class NetdpError(Exception):
    """Base class of every error netdp raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # as it is, without its __init__, which may make the message from other arguments: workers send their errors back
        return _again, (type(self), self.args, self.__dict__)


class InvalidValue(NetdpError, ValueError):
    """An argument is outside its domain."""


class GraphError(NetdpError, ValueError):
    """The graph does not allow what was asked."""


class FileFormatError(NetdpError, ValueError):
    """A file is not what it should be."""

    def __init__(self, path: object, line: int | None, problem: str) -> None:
        self.path, self.line, self.problem = str(path), line, problem
        super().__init__(f"{path}:{line}: {problem}" if line is not None else f"{path}: {problem}")


class DataNotFound(NetdpError, LookupError):
    """A named data set is not on this machine."""


class Unsupported(NetdpError):
    """No proved method covers this case."""


class MissingDependency(NetdpError, ImportError):
    """An optional package is needed for this."""

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs {package}; install it with: pip install 'netdp[{extra}]'")


class Refused(NetdpError):
    """A peer declines: policy, signature, budget or identity; nothing was sent."""


class LinkLost(NetdpError):
    """The connection to a neighbour ended before it took a frame, or there was none."""


class WorkersLost(NetdpError):
    """The processes or machines that compute for this one ended, or do not answer."""


def _again(kind: type[NetdpError], arguments: tuple[Any, ...], values: dict[str, Any]) -> NetdpError:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(values)
    return error
