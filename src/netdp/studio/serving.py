"""Start the studio: an address on this machine, a token, a server until it is stopped."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Callable

from netdp.errors import InvalidValue

from .server import Studio


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; `port` 0 is any free one. Only addresses of this machine are taken."""
    try:
        address = ipaddress.ip_address({"localhost": "127.0.0.1"}.get(host, host))
    except ValueError:
        raise InvalidValue(f"--host {host!r} is no address; 127.0.0.1 is this machine") from None
    if not address.is_loopback:
        raise InvalidValue(
            f"--host {host} can be reached from other machines, and the studio shows what its user may see; it listens on this "
            "machine only. From elsewhere: ssh -L 8765:127.0.0.1:8765 here"
        )
    opened = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((str(address), port))
    except (OSError, OverflowError) as error:
        opened.close()
        reason = getattr(error, "strerror", None) or error
        raise InvalidValue(
            f"cannot listen on port {port}: {reason}; give another --port, or 0 for a free one"
        ) from None
    opened.listen(64)
    return opened


def address_of(opened: socket.socket) -> str:
    """host:port as a browser writes it."""
    host, port = opened.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def serve(studio: Studio, opened: socket.socket, ready: Callable[[str], None]) -> None:
    """Answer until interrupted; `ready` gets the address to open, token included."""
    import uvicorn

    here, token = address_of(opened), secrets.token_urlsafe(24)
    port = here.rpartition(":")[2]
    hosts = frozenset({here, f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"})
    config = uvicorn.Config(
        studio.app(token, hosts),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )  # no access log: the address may hold the token
    ready(f"http://{here}/#token={token}")
    uvicorn.Server(config).run(sockets=[opened])
