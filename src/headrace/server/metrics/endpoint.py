"""The listener of a broker's metrics: /metrics, /clients, /livez and /readyz over HTTP/1.1, on the broker's own event loop.

It exists from before the broker has joined its cluster until after it has left, so that a probe is answered all the time. It has no
login and no TLS: bind it to a loopback address or to a network for operators.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from enum import Enum, auto
from urllib.parse import parse_qs, urlsplit

from headrace.clock import Clock
from headrace.server.metrics.page import Page
from headrace.server.metrics.text import negotiated

log = logging.getLogger(__name__)

LONGEST_HEAD = 16 * 1024
IDLE_SECONDS = 75.0
"""How long a connection may be silent; longer than the usual minute between two scrapes."""
SENDING_SECONDS = 10.0
"""How long a client may take for a piece of a page: others wait for theirs."""
PAGE_SECONDS = 60.0
"""How long it may take for all of them."""
MOST_CONNECTIONS = 64
PLAIN = "text/plain; charset=utf-8"
JSON = "application/json"
REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


class Phase(Enum):
    STARTING = auto()
    SERVING = auto()
    STOPPING = auto()


class MetricsEndpoint:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._phase = Phase.STARTING
        self.every_partition = False
        """Whether a page has a series for every partition even when that is not asked for."""
        self.pushed_too = False
        """The same with what clients have pushed."""
        self._page: Page | None = None
        self._unready: Callable[[], str | None] = lambda: None
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        self._scraping = asyncio.Lock()
        """One page at a time: two would take twice the share of the loop."""

    async def open(self, bound: socket.socket) -> None:
        self._server = await asyncio.start_server(self._connected, sock=bound, limit=LONGEST_HEAD)

    def serve(self, page: Page, unready: Callable[[], str | None]) -> None:
        """The broker serves; `unready` says why it should get no clients, if it should not."""
        self._page, self._unready, self._phase = page, unready, Phase.SERVING

    @property
    def stopping(self) -> bool:
        return self._phase is Phase.STOPPING

    def stop_serving(self) -> None:
        """The broker hands over and stops: it is alive and not ready."""
        self._phase = Phase.STOPPING

    def leave(self) -> None:
        """The engines are about to close: there is nothing to scrape any more."""
        page, self._page = self._page, None
        if page is not None:
            page.close()

    async def close(self) -> None:
        self.leave()
        if self._server is not None:
            self._server.close()
        for writer in tuple(self._connections):
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self._connections.add(writer)
        try:
            while await self._serve_one(reader, writer):
                pass
        except asyncio.IncompleteReadError:
            pass  # The peer has no more requests.
        except (OSError, TimeoutError):
            # The peer is gone, or silent for too long: what it has not read yet must not keep the socket open.
            writer.transport.abort()
        except Exception:
            if not writer.transport.is_closing():  # It broke off in the middle of its pages.
                log.exception("a scrape failed inside the broker")
        finally:
            await self._disconnect(writer)

    async def _disconnect(self, writer: asyncio.StreamWriter) -> None:
        """Once the peer has read the rest; it counts as a connection until then."""
        writer.close()
        try:
            await self._clock.wait_for(writer.wait_closed(), SENDING_SECONDS)
        except (OSError, TimeoutError):
            writer.transport.abort()
        finally:
            self._connections.discard(writer)

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        try:
            head = await self._clock.wait_for(reader.readuntil(b"\r\n\r\n"), IDLE_SECONDS)
        except asyncio.LimitOverrunError:
            await self._answer(writer, 431, "The request's head is longer than 16 KiB.\n", keep=False)
            return False
        first, *lines = head.decode("latin-1").split("\r\n")
        parts = first.split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            await self._answer(
                writer, 400, "This is the metrics port of a Headrace broker; it speaks HTTP/1.1.\n", False
            )
            return False
        method, target, version = parts
        fields = [
            (name.strip().lower(), value.strip())
            for name, _, value in (line.partition(":") for line in lines)
        ]
        headers = dict(fields)
        has_body = "transfer-encoding" in headers or any(
            name == "content-length" and value != "0" for name, value in fields
        )
        connection = headers.get("connection", "").lower()
        keep = not has_body and (
            connection != "close" if version == "HTTP/1.1" else connection == "keep-alive"
        )
        try:
            path, query = urlsplit(target)[2:4]
        except ValueError as error:
            await self._answer(writer, 400, f"The request's target cannot be read: {error}.\n", False)
            return False
        if method not in ("GET", "HEAD"):
            await self._answer(writer, 405, "Use GET.\n", keep)
        elif path == "/metrics":
            keep = await self._metrics(writer, query, headers.get("accept", ""), method, version, keep)
        elif path == "/clients":
            keep = await self._clients(writer, query, method, version, keep)
        else:
            status, text = self._probe(path)
            await self._answer(writer, status, text, keep, with_body=method == "GET")
        return keep

    def _probe(self, path: str) -> tuple[int, str]:
        if path == "/livez":
            return 200, "ok\n"
        if path == "/readyz":
            reason = self._why_not_ready()
            return (200, "ok\n") if reason is None else (503, f"{reason}\n")
        if path == "/":
            return (
                200,
                "A Headrace broker: /metrics (?partitions=all for every partition, ?clients=all for what clients have pushed), "
                "/clients (?id=ID for what one of them has pushed), /livez, /readyz.\n",
            )
        return 404, "There are /metrics, /clients, /livez and /readyz.\n"

    def _why_not_ready(self) -> str | None:
        if self._phase is Phase.STARTING:
            return "The broker is starting: it has not joined its cluster yet."
        if self._phase is Phase.STOPPING:
            return "The broker is stopping."
        return self._unready()

    async def _metrics(
        self, writer: asyncio.StreamWriter, query: str, accept: str, method: str, version: str, keep: bool
    ) -> bool:
        given = parse_qs(query)
        asked = {what: given.get(what, ["none"])[-1] for what in ("partitions", "clients")}
        for what, value in asked.items():
            if value not in ("all", "none"):
                complaint = f"{what}={value!r} is neither all nor none.\n"
                await self._answer(writer, 400, complaint, keep, with_body=method == "GET")
                return keep
        async with self._scraping:
            if self._page is None:
                reason = f"{self._why_not_ready()}\n"
                await self._answer(writer, 503, reason, keep, with_body=method == "GET")
                return keep
            every = self.every_partition or asked["partitions"] == "all"
            pushed = self.pushed_too or asked["clients"] == "all"
            content_type = negotiated(accept)
            pieces = self._page.build(content_type, every, pushed)
            return await self._stream(writer, content_type, pieces, method, version, keep)

    async def _clients(
        self, writer: asyncio.StreamWriter, query: str, method: str, version: str, keep: bool
    ) -> bool:
        wanted = parse_qs(query).get("id", [None])[-1]
        async with self._scraping:
            if self._page is None:
                reason = f"{self._why_not_ready()}\n"
                await self._answer(writer, 503, reason, keep, with_body=method == "GET")
                return keep
            return await self._stream(writer, JSON, self._page.clients(wanted), method, version, keep)

    async def _stream(
        self,
        writer: asyncio.StreamWriter,
        content_type: str,
        pieces: AsyncIterator[bytes],
        method: str,
        version: str,
        keep: bool,
    ) -> bool:
        """A page in pieces. Returns whether the connection goes on."""
        chunked = version == "HTTP/1.1"
        how = "Transfer-Encoding: chunked\r\n" if chunked else ""
        until = self._clock.monotonic() + PAGE_SECONDS
        writer.write(_head(200, content_type, how, keep and chunked))
        if method == "GET":
            async for piece in pieces:
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                left = max(until - self._clock.monotonic(), 0.0)
                await self._clock.wait_for(writer.drain(), min(SENDING_SECONDS, left))
            if chunked:
                writer.write(b"0\r\n\r\n")
        await self._clock.wait_for(writer.drain(), SENDING_SECONDS)
        return keep and chunked

    async def _answer(
        self, writer: asyncio.StreamWriter, status: int, text: str, keep: bool, with_body: bool = True
    ) -> None:
        body = text.encode()
        writer.write(
            _head(status, PLAIN, f"Content-Length: {len(body)}\r\n", keep) + (body if with_body else b"")
        )
        await self._clock.wait_for(writer.drain(), SENDING_SECONDS)


def _head(status: int, content_type: str, more: str, keep: bool) -> bytes:
    connection = "" if keep else "Connection: close\r\n"
    return f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: {content_type}\r\n{more}{connection}\r\n".encode()
