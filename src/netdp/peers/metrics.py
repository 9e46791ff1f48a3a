"""A peer's counts for Prometheus, on a port of its own machine: `netdp peer run … --metrics 127.0.0.1:9101`.

What is shown is `netdp.peers.meter` (kinds and sizes of messages, reasons, links), how much of the ledger is spent, and how
large the process is. No names of neighbours, no contents, no values, no noise: the list in `families` is all there is.
Everybody who can open the port can read it, so it must be one of this machine (127.0.0.0/8, ::1) unless the owner says
otherwise: who is how busy when, and how much of an ε is spent, need not be known outside.

The counts are read when somebody asks; the library's global registry and its counters of the Python process are not used.
ε is computed when the ledger has grown, not at every question. What cannot be read then is left out, and the peer goes on.
"""

from __future__ import annotations

import contextlib
import ipaddress
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netdp import __version__
from netdp.errors import InvalidValue, MissingDependency, NetdpError, Refused
from netdp.peers.meter import Meter

from .events import Statement

if TYPE_CHECKING:
    from .ledger.store import Store

AGAINST = (1, 2, 3)
"""Sizes of coalitions whose ε is shown."""


class Spent:
    """Rows of the ledger and their ε about `unit` at `delta`, whatever was chosen; computed again when there are more rows."""

    def __init__(self, store: Store, delta: float, unit: str) -> None:
        self._store, self.delta, self.unit = store, delta, unit
        self._known: tuple[int, dict[int, float]] = (-1, {})

    def __call__(self) -> tuple[int, dict[int, float]]:
        """(rows, {coalition size: ε})."""
        from .ledger.entries import spent

        entries = self._store.entries()
        if len(entries) != self._known[0]:
            found = {k: spent(entries, k, self.unit, self.delta).epsilon for k in AGAINST}
            self._known = (len(entries), found)
        return self._known


def resident_bytes() -> int:
    """Memory of this process that is in use, in bytes; 0 where the system does not tell."""
    import resource

    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


class Collector:
    """What `prometheus_client` asks when somebody looks."""

    def __init__(
        self,
        meter: Meter,
        spent: Spent | None = None,
        *,
        rejections: Mapping[Any, int] | None = None,
        starts: Callable[[], int] = lambda: 1,
        cheats: Callable[[], int] = lambda: 0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._meter, self._spent, self._starts, self._now, self._cheats = meter, spent, starts, now, cheats
        self._rejections = {} if rejections is None else rejections

    def collect(self) -> Iterator[Any]:
        """All families, as they are now."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        meter, now = self._meter, self._now()

        def counter(name: str, help: str, counts: dict[Any, float], labels: list[str]) -> Any:
            family = CounterMetricFamily(f"netdp_{name}", help, labels=labels)
            for values, number in sorted(counts.items()):
                family.add_metric([values] if isinstance(values, str) else list(values), number)
            return family

        def gauge(name: str, help: str, value: float) -> Any:
            return GaugeMetricFamily(f"netdp_{name}", help, value=value)

        build = GaugeMetricFamily("netdp_build", "The version of netdp.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        yield counter("frames", "Frames, by direction.", dict(meter.frames), ["direction"])
        yield counter("frame_bytes", "Bytes of frames, by direction.", dict(meter.bytes), ["direction"])
        yield counter("messages", "Messages, by direction and kind.", dict(meter.messages), ["direction", "kind"])
        rejections = {str(reason): number for reason, number in dict(self._rejections).items()}
        yield counter("rejections", "Messages that were not taken, by reason.", rejections, ["reason"])
        yield counter("refusals", "Who was turned away, by reason.", dict(meter.refusals), ["reason"])
        yield counter("links_made", "Links that were made.", {(): meter.linked}, [])
        yield counter("links_lost", "Links that ended, by reason.", dict(meter.lost), ["reason"])
        yield gauge("links", "Neighbours that have said hello on a working link.", meter.links)
        yield gauge("attempt", "The attempt that is on its way.", meter.attempt)
        yield gauge("votes", "Votes in this attempt that are here.", meter.votes)
        yield gauge("contributions", "Contributions to this attempt that are here.", meter.contributions)
        yield gauge("answered", "1: the answer is here; 0: ended without; -1: not yet.", _answered(meter.outcome))
        yield gauge(
            "withheld", "1: the answer is none that honest parties can have come to, and is withheld.", meter.withheld
        )
        yield gauge("proven_cheats", "Parties proven to have signed two different things.", self._cheats())
        yield counter("starts", "How often this home was started for this study.", {(): self._starts()}, [])
        yield gauge("running_seconds", "Since this process took up the study.", max(0.0, now - meter.started))
        yield gauge("seconds_since_progress", "Since anything went forward.", meter.idle(now))
        yield gauge("resident_bytes", "Memory of this process that is in use.", resident_bytes())
        if self._spent is not None:
            with contextlib.suppress(NetdpError):  # a store that is closing
                rows, epsilons = self._spent()
                yield gauge("ledger_rows", "Rows of the ledger.", rows)
                yield gauge("ledger_delta", "The delta at which the spent epsilon is meant.", self._spent.delta)
                family = GaugeMetricFamily(
                    "netdp_ledger_epsilon", "Spent in all, to any so many parties together.", labels=["against", "unit"]
                )
                for k, epsilon in epsilons.items():
                    family.add_metric([str(k), self._spent.unit], epsilon)
                yield family

    def describe(self) -> list[Any]:
        """Nothing to check against: this is the only collector of its registry."""
        return []


def _answered(outcome: bool | None) -> int:
    return -1 if outcome is None else int(outcome)


def where(address: str, *, anywhere: bool = False) -> tuple[str, int]:
    """Host and port to show metrics on; refuses what others can reach, unless `anywhere`.

    >>> where("127.0.0.1:9101")
    ('127.0.0.1', 9101)
    >>> where("[::1]:9101")
    ('::1', 9101)
    >>> where("0.0.0.0:9101")
    Traceback (most recent call last):
    netdp.errors.Refused: metrics on 0.0.0.0 could be read by other machines; use 127.0.0.1:9101, or say --metrics-anywhere
    """
    host, _, port = address.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if host == "localhost":
        host = "127.0.0.1"
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise InvalidValue(f'--metrics is "HOST:PORT", such as 127.0.0.1:9101, got {address!r}')
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        raise InvalidValue(f"--metrics takes an IP address of this machine, such as 127.0.0.1, got {host!r}") from None
    if not (found.is_loopback or anywhere):
        raise Refused(
            f"metrics on {host} could be read by other machines; use 127.0.0.1:{port}, or say --metrics-anywhere"
        )
    return str(found), int(port)


@contextlib.contextmanager
def shown(collector: Collector, host: str, port: int) -> Iterator[int]:
    """Answer Prometheus while this lasts; yields the port (useful with 0, any free one)."""
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError:
        raise MissingDependency("prometheus_client", "--metrics", "peers") from None
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        why = f"{error.strerror or error}; choose another --metrics HOST:PORT"
        raise Refused(Statement(f"metrics cannot be shown on {host}:{port}: {why}")) from None
    try:
        yield int(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


__all__ = ["Collector", "Spent", "shown", "where"]
