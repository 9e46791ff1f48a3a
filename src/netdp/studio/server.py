"""The studio's web server: a page and its questions, for one user on this machine.

What a browser may do here:

- It needs the token of this run, which stands in the address that the command prints, behind the #: a browser sends that to
  nobody. The page sends it in a header with every question; without it the answer is 403. (No cookie: those are sent to every
  port of a machine.)
- The name in the address must be this machine's (127.0.0.1, localhost, [::1]), so a foreign page that gets its own name resolved to
  127.0.0.1 is refused.
- Nothing is loaded from outside, nothing inline runs, and no page may frame this one (Content-Security-Policy).
- Questions are small, uploads limited, files of this machine are never read by name.

**Answers** are lines of JSON, one question after another: how far it is, then the answer, or a sentence why there is none. Work
runs in a thread and tells its progress. When the browser goes away, because its user has moved the slider on, the next word of
progress ends the work: nobody waits for it.

`serve` starts it: an address on this machine, a token, a server until it is stopped.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import mimetypes
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from netdp import __version__
from netdp.errors import InvalidValue, NetdpError
from netdp.numerics.arrays import Progress
from netdp.peers.runs import under_way
from netdp.studio.controls import protocols
from netdp.studio.explorer import Explorer
from netdp.studio.networks import MOST_BYTES, listing
from netdp.studio.watch import Watch

logger = logging.getLogger("netdp.studio")

EVERY = 0.15
"""Seconds between two words of progress."""

WORKERS = 4
"""Answers that are worked on at once; those that nobody waits for any more may be among them for a moment."""

Work = Callable[[Progress], Any]


class GivenUp(Exception):
    """Nobody waits for this answer any more."""


class RequestQueue:
    """Where answers are worked out."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="netdp studio")

    def close(self) -> None:
        """No more answers."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def lines(self, work: Work) -> AsyncIterator[bytes]:
        """The lines of one answer."""
        loop, told = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any]]()
        gone = threading.Event()
        last = 0.0

        def say(line: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(told.put_nowait, line)

        def progress(done: int, total: int) -> None:
            nonlocal last
            if gone.is_set():
                raise GivenUp
            if (now := time.monotonic()) > last + EVERY:
                last = now
                say({"progress": done / max(total, 1)})

        def run() -> None:
            if not gone.is_set():
                say(_outcome(lambda: work(progress)))

        self._pool.submit(run)
        try:
            while True:
                line = await told.get()
                yield encoded(line)
                if "progress" not in line:
                    return
        finally:
            gone.set()

    async def changes(self, steps: Iterator[dict[str, Any] | None], pause: float) -> AsyncIterator[bytes]:
        """The lines of something that goes on: asked again and again, silent while nothing changes."""
        loop = asyncio.get_running_loop()
        while True:
            line = await loop.run_in_executor(self._pool, lambda: next(steps, {"end": True}))
            if line is not None:
                yield encoded(line)
                if "end" in line or "error" in line:
                    return
            await asyncio.sleep(pause)


def _outcome(work: Callable[[], Any]) -> dict[str, Any]:
    """The answer; a refusal is a sentence, and a bug is logged and owned up to, without its insides."""
    try:
        return {"answer": work()}
    except GivenUp:
        return {"error": "given up: nobody waits for this answer"}
    except NetdpError as refusal:
        return {"error": " ".join(str(refusal).split())}
    except (RecursionError, MemoryError):
        return {"error": "this is too large for the machine; take a smaller network or fewer rounds"}
    except Exception:
        logger.exception("an answer failed")
        return {"error": "netdp failed on this; that is a bug. The terminal where the studio runs shows where"}


def encoded(line: dict[str, Any]) -> bytes:
    """One line of JSON."""
    return json.dumps(line, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


MOST_ASKED = 256 * 1024
"""Bytes of a question."""

PAUSE = 0.25
"""Seconds between two looks at running parties."""

TOKEN = "x-netdp-token"

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}

PAGE = resources.files("netdp.studio") / "page"

NDJSON = "application/x-ndjson"

Question = Callable[[dict[str, Any], Progress], Any]


class Guarded:
    """Refuses strangers before anything else is looked at, and puts the headers on every answer."""

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str]) -> None:
        self._app, self._token, self._hosts = app, token, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [pair for pair in message["headers"] if pair[0].decode().lower() not in HEADERS]
                message["headers"] = [*kept, *((name.encode(), value.encode()) for name, value in HEADERS.items())]
            await send(message)

        if (problem := self._problem(scope)) is not None:
            await JSONResponse({"error": problem}, 403)(scope, receive, dressed)
            return
        await self._app(scope, receive, dressed)

    def _problem(self, scope: Scope) -> str | None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get("host", "") not in self._hosts:
            return "this studio is not called that; open the address that `netdp studio` printed"
        if not scope["path"].startswith("/api/"):
            return None
        if not hmac.compare_digest(headers.get(TOKEN, "").encode(), self._token.encode()):
            return "the token is missing or wrong; open the address that `netdp studio` printed"
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "questions are answered to the studio's own page only"
        return None


class Studio:
    """The page's questions and who answers them."""

    def __init__(self, explorer: Explorer, watch: Watch | None = None) -> None:
        self.explorer, self.watch, self.desk = explorer, watch, RequestQueue()
        self._questions: dict[str, Question] = {
            "network": lambda asked, _: explorer.network(_state(asked)),
            "account": lambda asked, progress: explorer.account(_state(asked), progress),
            "pairs": lambda asked, progress: explorer.pairs(_state(asked), progress),
            "words": lambda asked, _: explorer.words(_state(asked)),
            "edges": lambda asked, _: explorer.edges(_state(asked)),
            "plan": lambda asked, progress: explorer.plan(
                _state(asked), _epsilon(asked), asked.get("only_noise") is True, progress
            ),
            "study": lambda asked, progress: explorer.draft(
                _state(asked), None if asked.get("epsilon") is None else _epsilon(asked), progress
            ),
        }

    def app(self, token: str, hosts: frozenset[str]) -> ASGIApp:
        """The application; only who knows the token is answered."""

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            yield
            self.desk.close()

        routes = [
            Route("/api/start", self._start),
            Route("/api/watch", self._watch),
            Route("/api/running", self._running),
            Route("/api/attach", self._attach, methods=["POST"]),
            Route("/api/upload", self._upload, methods=["POST"]),
            Route("/api/{question}", self._answer, methods=["POST"]),
            Route("/", _file),
            Route("/{name}", _file),
        ]
        return Guarded(Starlette(routes=routes, lifespan=lifespan), token, hosts)

    async def _start(self, _: Request) -> Response:
        explorer, study = self.explorer, self.explorer.study
        return JSONResponse(
            {
                "version": __version__, **listing(), "protocols": protocols(), "state": explorer.first,
                "study": None if study is None else {
                    "name": study.name, "epsilon": study.privacy.epsilon, "colluders": study.privacy.colluders,
                },
                "watch": None if self.watch is None else self.watch.first(),
            }
        )  # fmt: skip

    async def _answer(self, request: Request) -> Response:
        question = self._questions.get(request.path_params["question"])
        if question is None:
            raise HTTPException(404, "no such question")
        asked = await _asked(request)
        return StreamingResponse(self.desk.lines(lambda progress: question(asked, progress)), media_type=NDJSON)

    async def _upload(self, request: Request) -> Response:
        body = await _body(request, MOST_BYTES)
        name = request.query_params.get("name", "graph.csv")
        return StreamingResponse(
            self.desk.lines(lambda _: self.explorer.networks.upload(name, body)), media_type=NDJSON
        )

    async def _watch(self, _: Request) -> Response:
        if self.watch is None:
            raise HTTPException(404, "nothing is watched; start the studio with --watch, or choose a study that runs")
        return StreamingResponse(self.desk.changes(self.watch.events(), PAUSE), media_type=NDJSON)

    async def _running(self, _: Request) -> Response:
        """The studies that `netdp up` of this user runs just now."""
        return JSONResponse([{"pid": one.pid, "study": one.study, "since": one.since} for one in under_way()])

    async def _attach(self, request: Request) -> Response:
        """Watch one of the studies that run; a page cannot name a folder."""
        pid = (await _asked(request)).get("pid")
        return StreamingResponse(self.desk.lines(lambda _: self._attached(pid)), media_type=NDJSON)

    def _attached(self, pid: Any) -> dict[str, Any]:
        chosen = next((one for one in under_way() if one.pid == pid), None)
        if chosen is None:
            raise InvalidValue("this study has ended; choose another one")
        self.watch = Watch(chosen.folder)
        return self.watch.first()


async def _asked(request: Request) -> dict[str, Any]:
    """A question: a small JSON object."""
    try:
        asked = json.loads(await _body(request, MOST_ASKED))
    except ValueError:
        raise HTTPException(400, "a question is JSON") from None
    if not isinstance(asked, dict):
        raise HTTPException(400, "a question is a JSON object")
    return asked


async def _body(request: Request, most: int) -> bytes:
    """What was sent, but no more than so many bytes of it."""
    stated = request.headers.get("content-length", "0")
    if stated.isdecimal() and int(stated) > most:
        raise HTTPException(413, f"too large: {int(stated):,} bytes; up to {most:,} are taken")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise HTTPException(413, f"too large: more than {most:,} bytes")
        parts.append(part)
    return b"".join(parts)


def _state(asked: dict[str, Any]) -> dict[str, Any]:
    state = asked.get("state")
    if not isinstance(state, dict):
        raise InvalidValue("the question has no state")
    return state


def _epsilon(asked: dict[str, Any]) -> float:
    epsilon = asked.get("epsilon")
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 < epsilon < 1e6:
        raise InvalidValue(f"a target ε is a number above 0, got {epsilon!r}; 1 is a usual choice")
    return float(epsilon)


async def _file(request: Request) -> Response:
    """A file of the page; nothing else is served."""
    name = request.path_params.get("name") or "index.html"
    if name not in {one.name for one in PAGE.iterdir() if one.is_file()}:
        raise HTTPException(404, "no such page")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    kind = "text/javascript" if name.endswith(".js") else kind
    return Response(
        (PAGE / name).read_bytes(), media_type=f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
    )


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
