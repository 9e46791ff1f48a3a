"""A TCP proxy that writes down every byte: what somebody on the wire between two peers sees."""

import asyncio
import contextlib


class RecordingProxy:
    """Listens on a free port of the loopback and passes everything on to `target` ("host:port").

    `sent` and `answered` hold the bytes of callers and of the target. `cut` breaks all connections, `deaf` makes the
    proxy swallow everything silently, as a network that loses packets; `hold` keeps everything back until `flow`, as a
    network that was cut in two and mended while the senders tried again.
    """

    def __init__(self, target):
        self.target = target
        self.sent, self.answered = bytearray(), bytearray()
        self.deaf = self._closed = False
        self._writers, self._tasks = set(), set()
        self._flowing = asyncio.Event()
        self._flowing.set()

    @property
    def recorded(self):
        return bytes(self.sent + self.answered)

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._closed = True
        self.flow()
        self._server.close()
        for _ in range(5):  # connections that were accepted just now
            await asyncio.sleep(0)
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # sockets are closed by the loop's next step

    def hold(self):
        self._flowing.clear()

    def flow(self):
        self._flowing.set()

    def cut(self):
        for writer in list(self._writers):
            writer.transport.abort()

    def _accept(self, reader, writer):
        self._writers.add(writer)
        self._tasks.add(asyncio.ensure_future(self._serve(reader, writer)))

    async def _serve(self, reader, writer):
        host, port = self.target.rsplit(":", 1)
        try:
            back_reader, back_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        self._writers.add(back_writer)
        if self._closed or writer.transport.is_closing():
            writer.transport.abort()
            back_writer.transport.abort()
        await asyncio.gather(
            self._pass_on(reader, back_writer, self.sent), self._pass_on(back_reader, writer, self.answered)
        )
        self._writers -= {writer, back_writer}

    async def _pass_on(self, reader, writer, record):
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                record += data
                await self._flowing.wait()
                if not self.deaf:
                    writer.write(data)
                    await writer.drain()
        writer.transport.abort()
