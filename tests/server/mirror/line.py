"""A line between two data centres: so many bytes a second, so long a way, and times in which nothing comes through.

The kernel's own tool for it (netem) is not everywhere, so it is a relay. What waits at its entrance is bounded, as in a router, so the
sender feels how narrow the line is.
"""

import asyncio
import contextlib
import socket
import threading
import time

PIECE = 16 * 1024
ROOM = 512 * 1024
"""Bytes that wait at the entrance of one direction of one connection."""


class Line:
    """Listens on `port` and leads to `target`, another port; both on the loopback address."""

    def __init__(self, rate=None, delay=0.0):
        """`rate` in bytes per second in each direction, shared by all connections; `delay` in seconds one way."""
        self.target = 0
        self.carried = 0
        """Bytes that came out on the caller's side."""
        self._rate, self._delay = rate, delay
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._free_at = [0.0, 0.0]
        self._stalled_until = 0.0
        self._writers = set()
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main(ready)), daemon=True)
        self._thread.start()
        ready.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def stall(self, seconds):
        """Nothing comes through for a while; connections stay."""
        self._stalled_until = time.monotonic() + seconds

    def cut(self):
        """Every connection breaks."""
        self._loop.call_soon_threadsafe(lambda: [writer.transport.abort() for writer in list(self._writers)])

    async def _main(self, ready):
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._carry, sock=self._socket)
        ready.set()
        await self._stop.wait()
        server.close()
        for writer in list(self._writers):
            writer.transport.abort()

    async def _carry(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.CancelledError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
            self._writers |= {writer, far_writer}
            ways = [
                asyncio.create_task(self._pump(0, reader, far_writer)),
                asyncio.create_task(self._pump(1, far_reader, writer)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._writers -= {writer, far_writer}
            far_writer.transport.abort()
        writer.transport.abort()

    async def _pump(self, way, reader, writer):
        queue = asyncio.Queue(ROOM // PIECE)
        out = asyncio.create_task(self._out(way, queue, writer))
        try:
            while piece := await reader.read(PIECE):
                now = time.monotonic()
                at = now
                if self._rate:
                    at = self._free_at[way] = max(self._free_at[way], now) + len(piece) / self._rate
                await queue.put((at + self._delay, piece))
            await queue.put((0.0, b""))
            await out
        finally:
            out.cancel()

    async def _out(self, way, queue, writer):
        with contextlib.suppress(OSError):
            while (entry := await queue.get())[1]:
                at, piece = entry
                await asyncio.sleep(at - time.monotonic())
                # A stall that begins while it waits counts, too.
                await asyncio.sleep(self._stalled_until - time.monotonic())
                writer.write(piece)
                if way:
                    self.carried += len(piece)
                await writer.drain()
