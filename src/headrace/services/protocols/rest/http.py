"""HTTP/1.1 on the event loop, both ends: h11 reads and writes the bytes, this moves them.

A connection serves its requests one after the other, keeps open between them, and is closed for what is malformed,
too large or too slow; of what comes while a request is served only a little is kept. Handlers are coroutines from Request to Response.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import cast

import h11

logger = logging.getLogger("headrace.services.rest")

DEFAULT_PAYLOAD = 8 * 1024 * 1024
KEEP_ALIVE_SECONDS = 75.0
_READ_SIZE = 65536


@dataclass(slots=True)
class Request:
    """One request, whole."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    remote_address: str = ""
    local_address: str = ""


@dataclass(slots=True)
class Response:
    """One answer; JSON unless said otherwise."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What a server allows each connection, and whether the kernel asks after peers that fell silent."""

    max_body: int
    max_connections: int = 0  # 0: any number
    tcp_keep_alive: bool = True


Handler = Callable[[Request], Awaitable[Response]]


class HttpConnection(asyncio.Protocol):
    """A client's connection."""

    def __init__(self, handler: Handler, limits: ConnectionLimits, registry: set[HttpConnection]) -> None:
        self._handler = handler
        self._limits = limits
        self._max_body = limits.max_body
        self._registry = registry
        self._http = h11.Connection(h11.SERVER)
        self._transport: asyncio.Transport | None = None
        self._request: h11.Request | None = None
        self._body = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._early = 0  # bytes that came while a request was being served
        self._closing = False

    @property
    def is_busy(self) -> bool:
        return self._task is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._limits.tcp_keep_alive:
            with contextlib.suppress(OSError):  # the client may be gone already
                transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if 0 < self._limits.max_connections <= len(self._registry):
            logger.error(
                "Close connection from %s, cause: The server's connections are as many as max config %d",
                _address(transport.get_extra_info("peername")),
                self._limits.max_connections,
            )
            self._close()
            return
        self._registry.add(self)
        self._wait_for_next()

    def connection_lost(self, error: Exception | None) -> None:
        self._registry.discard(self)
        self._transport = None
        self._stop_waiting()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._task is not None and self._transport is not None:
            self._early += len(data)
            if self._early > _READ_SIZE:
                self._transport.pause_reading()
        self._http.receive_data(data)
        self._advance()

    def eof_received(self) -> bool:
        self._http.receive_data(b"")
        self._advance()
        return False

    def finish(self) -> None:
        """Answer what is under way, take nothing more."""
        self._closing = True
        if self._task is None:
            self._close()

    # -- reading -----------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Read events until a request is whole or more bytes are needed."""
        while self._task is None and self._transport is not None:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                self._refuse(error.error_status_hint, str(error))
                return
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return
            if isinstance(event, h11.Request):
                self._request = event
                self._body.clear()
                expects = self._http.they_are_waiting_for_100_continue
                if expects:
                    self._write(h11.InformationalResponse(status_code=100, headers=[]))
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > self._max_body:
                    self._refuse(413, f"Data length too large: over {self._max_body} bytes")
                    return
            elif isinstance(event, h11.EndOfMessage):
                self._begin()
            elif isinstance(event, h11.ConnectionClosed):
                self._close()
                return

    def _begin(self) -> None:
        assert self._request is not None
        assert self._transport is not None
        self._stop_waiting()
        request = Request(
            self._request.method.decode(),
            self._request.target.decode("latin-1"),
            {name.decode().lower(): value.decode("latin-1") for name, value in self._request.headers},
            bytes(self._body),
            _address(self._transport.get_extra_info("peername")),
            _address(self._transport.get_extra_info("sockname")),
        )
        self._task = asyncio.get_running_loop().create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        try:
            response = await self._handler(request)
        except Exception:
            logger.exception("The request %s %s failed", request.method, request.target)
            response = Response(
                500, b'{"error":{"type":"InternalError","message":"see the provider\'s log"}}'
            )
        self._task = None
        self._send(response)

    # -- writing -----------------------------------------------------------------------------------------

    def _send(self, response: Response) -> None:
        if self._transport is None:
            return
        headers = {
            "content-type": "application/json",
            "content-length": str(len(response.body)),
            **response.headers,
        }
        if self._closing:
            headers["connection"] = "close"
        self._write(h11.Response(status_code=response.status, headers=list(headers.items())))
        self._write(h11.Data(data=response.body))
        self._write(h11.EndOfMessage())
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE and not self._closing:
            self._http.start_next_cycle()
            if self._early > _READ_SIZE:
                self._transport.resume_reading()
            self._early = 0
            self._wait_for_next()
            self._advance()
        else:
            self._close()

    def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data and self._transport is not None:
            self._transport.write(data)

    def _refuse(self, status: int, message: str) -> None:
        """Answer what cannot be read, and close: nobody knows where the next request would begin."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            text = message.replace("\\", "/").replace('"', "'")
            self._closing = True
            self._send(Response(status, f'{{"error":{{"type":"BadRequest","message":"{text}"}}}}'.encode()))
        else:
            self._close()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _wait_for_next(self) -> None:
        self._idle = asyncio.get_running_loop().call_later(KEEP_ALIVE_SECONDS, self._close)

    def _stop_waiting(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None


class HttpClient:
    """Requests to one address over connections that are kept for the next."""

    def __init__(self, host: str, port: int, max_body: int) -> None:
        self._host = host
        self._port = port
        self._max_body = max_body
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter, h11.Connection]] = []
        self._closed = False

    async def probe(self) -> None:
        """Connect, so that the first request finds a connection; raises OSError."""
        self._free.append(await self._open())

    async def request(self, request: Request) -> Response:
        """Raises OSError when the other end is not there, h11.RemoteProtocolError when it is no HTTP server.

        A connection that was closed while it waited is passed over. One that ends after the request was written is
        an error: nobody knows whether the call was made, and making it twice is the cluster's to decide.
        """
        while self._free:
            connection = self._free.pop()
            if not connection[0].at_eof() and not connection[1].is_closing():
                return await self._exchange(connection, request)
            connection[1].close()
        return await self._exchange(await self._open(), request)

    async def close(self) -> None:
        self._closed = True
        for _, writer, _ in self._free:
            writer.close()
        self._free.clear()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, h11.Connection]:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        return reader, writer, h11.Connection(h11.CLIENT)

    async def _exchange(
        self, connection: tuple[asyncio.StreamReader, asyncio.StreamWriter, h11.Connection], request: Request
    ) -> Response:
        reader, writer, http = connection
        headers = {
            "host": f"{self._host}:{self._port}",
            "content-type": "application/json",
            "content-length": str(len(request.body)),
            **request.headers,
        }
        out = http.send(
            h11.Request(method=request.method, target=request.target, headers=list(headers.items()))
        )
        assert out is not None
        try:
            writer.write(
                out + (http.send(h11.Data(data=request.body)) or b"") + (http.send(h11.EndOfMessage()) or b"")
            )
            response = await self._read(reader, http)
        except BaseException:
            writer.close()
            raise
        if http.our_state is h11.DONE and http.their_state is h11.DONE and not self._closed:
            http.start_next_cycle()
            self._free.append(connection)
        else:
            writer.close()
        return response

    async def _read(self, reader: asyncio.StreamReader, http: h11.Connection) -> Response:
        status = 0
        headers: dict[str, str] = {}
        body = bytearray()
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                data = await reader.read(_READ_SIZE)
                if not data and not status:
                    raise EOFError
                http.receive_data(data)
            elif isinstance(event, h11.Response):
                status = event.status_code
                headers = {name.decode().lower(): value.decode("latin-1") for name, value in event.headers}
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > self._max_body:
                    raise h11.RemoteProtocolError(f"the answer has more than {self._max_body} bytes")
            elif isinstance(event, h11.EndOfMessage):
                return Response(status, bytes(body), headers)


def _address(name: object) -> str:
    return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name or "")
