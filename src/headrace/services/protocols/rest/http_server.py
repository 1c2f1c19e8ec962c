"""One client's HTTP/1.1 connection, on the event loop.

A connection serves its requests one after the other and stays open between them. It is closed when a request is
malformed, too large or too slow to arrive; reading pauses while requests wait for the one being served.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from collections import deque
from dataclasses import dataclass
from typing import cast

from headrace.services.protocols.rest.http import (
    Handler,
    HttpRequest,
    HttpResponse,
    RequestReader,
    Unreadable,
)

logger = logging.getLogger("headrace.services.rest")

KEEP_ALIVE_SECONDS = 75.0
_INTERNAL_ERROR = b'{"error":{"type":"InternalError","message":"see the provider\'s log"}}'


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What a server allows each connection, and whether the kernel probes peers that fell silent."""

    max_body: int
    max_connections: int = 0  # 0: any number
    tcp_keep_alive: bool = True


class HttpConnection(asyncio.Protocol):
    """Reads requests, has them handled, writes the answers."""

    def __init__(self, handler: Handler, limits: HttpLimits, registry: set[HttpConnection]) -> None:
        self._handler = handler
        self._limits = limits
        self._registry = registry
        self._reader = RequestReader(limits.max_body)
        self._waiting: deque[HttpRequest | Unreadable] = deque()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._remote_address = self._local_address = ""
        self._closing = False

    @property
    def is_busy(self) -> bool:
        return self._task is not None

    # -- asyncio's side ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._remote_address = _address(transport.get_extra_info("peername"))
        self._local_address = _address(transport.get_extra_info("sockname"))
        if self._limits.tcp_keep_alive:
            with contextlib.suppress(OSError):  # the client may be gone already
                transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if 0 < self._limits.max_connections <= len(self._registry):
            logger.error(
                "Close connection from %s, cause: The server's connections are as many as max config %d",
                self._remote_address,
                self._limits.max_connections,
            )
            self._close()
            return
        self._registry.add(self)
        self._wait_for_next()

    def connection_lost(self, error: Exception | None) -> None:
        self._registry.discard(self)
        self._transport = None
        self._waiting.clear()
        self._stop_waiting()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        transport = self._transport
        if self._closing or transport is None:
            return
        self._waiting += self._reader.feed(data)
        if self._task is None:
            self._next()
            if self._task is None and not self._closing and self._reader.awaits_continue:
                transport.write(b"HTTP/1.1 100 \r\n\r\n")
        if self._waiting:
            transport.pause_reading()

    def finish(self) -> None:
        """Answer the request under way, take no more."""
        self._closing = True
        if self._task is None:
            self._close()

    # -- one request after the other ---------------------------------------------------------------------

    def _next(self) -> None:
        """Begin with the next request, if it is here."""
        if not self._waiting:
            return
        self._stop_waiting()
        request = self._waiting.popleft()
        if isinstance(request, Unreadable):
            error = {"type": "BadRequest", "message": request.message}
            self._send(HttpResponse(request.status, json.dumps({"error": error}).encode()), keep_alive=False)
        else:
            request.remote_address, request.local_address = self._remote_address, self._local_address
            self._task = asyncio.get_running_loop().create_task(self._answer(request))

    async def _answer(self, request: HttpRequest) -> None:
        try:
            response = await self._handler(request)
        except Exception:
            logger.exception("The request %s %s failed", request.method, request.target)
            response = HttpResponse(500, _INTERNAL_ERROR)
        self._task = None
        self._send(response, keep_alive=request.keep_alive, body=request.method != "HEAD")

    def _send(self, response: HttpResponse, *, keep_alive: bool, body: bool = True) -> None:
        if self._transport is None:
            return
        headers = {
            "content-type": "application/json",
            "content-length": str(len(response.body)),
            **response.headers,
        }
        self._closing = self._closing or not keep_alive
        if self._closing:
            headers["connection"] = "close"
        lines = [f"HTTP/1.1 {response.status} ", *(f"{name}: {value}" for name, value in headers.items())]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        self._transport.write(head + response.body if body else head)
        if self._closing:
            self._close()
            return
        self._wait_for_next()
        self._next()
        if not self._waiting:
            self._resume()

    def _resume(self) -> None:
        if self._transport is not None and not self._transport.is_reading():
            self._transport.resume_reading()

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _wait_for_next(self) -> None:
        self._idle = asyncio.get_running_loop().call_later(KEEP_ALIVE_SECONDS, self._close)

    def _stop_waiting(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None


def _address(name: object) -> str:
    return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name or "")
