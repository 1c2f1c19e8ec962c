"""Requests to one HTTP/1.1 server, over connections that are kept for the next request."""

from __future__ import annotations

import asyncio
from typing import cast

import httptools

from headrace.services.protocols.rest.http import HttpRequest, HttpResponse


class BadAnswer(Exception):
    """What came back is not HTTP, or too large."""


class HttpClient:
    """Requests to one address. Each takes a connection for itself, as many at once as there are requests."""

    def __init__(self, host: str, port: int, max_body: int) -> None:
        self._host = host
        self._port = port
        self._max_body = max_body
        self._free: list[_Connection] = []
        self._closed = False

    async def probe(self) -> None:
        """Connect, so that the first request finds a connection; raises OSError."""
        self._free.append(await self._open())

    async def request(self, request: HttpRequest) -> HttpResponse:
        """Raises OSError when the server cannot be reached, EOFError or BadAnswer when it does not answer properly.

        A connection that was closed while it was kept is passed over. One that ends after the request was written is
        an error: the call may have been made, and whether to make it twice is the cluster's decision.
        """
        connection = self._kept() or await self._open()
        headers = {
            "host": f"{self._host}:{self._port}",
            "content-type": "application/json",
            "content-length": str(len(request.body)),
            **request.headers,
        }
        lines = [f"{request.method} {request.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        try:
            response = await connection.exchange(head + request.body)
        except BaseException:
            connection.close()
            raise
        if connection.is_reusable and not self._closed:
            self._free.append(connection)
        else:
            connection.close()
        return response

    async def close(self) -> None:
        self._closed = True
        while self._free:
            self._free.pop().close()

    def _kept(self) -> _Connection | None:
        while self._free:
            connection = self._free.pop()
            if connection.is_reusable:
                return connection
            connection.close()
        return None

    async def _open(self) -> _Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: _Connection(self._max_body), self._host, self._port
        )
        return connection


class _Connection(asyncio.Protocol):
    """One connection: a request, its answer, the next request."""

    def __init__(self, max_body: int) -> None:
        self._max_body = max_body
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[HttpResponse] | None = None
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0
        self._has_head = False
        self._keep_alive = True

    async def exchange(self, data: bytes) -> HttpResponse:
        if self._transport is None:
            raise EOFError
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(data)
        try:
            return await self._answer
        finally:
            self._answer = None

    @property
    def is_reusable(self) -> bool:
        return self._keep_alive and self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # -- asyncio's side ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None:  # nothing was asked
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(BadAnswer(str(error)))

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        ends_with_connection = self._has_head and not {"content-length", "transfer-encoding"} & {
            *self._headers
        }
        if ends_with_connection and error is None:
            self.on_message_complete()
        else:
            self._fail(error or EOFError())

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    # -- the parser's callbacks --------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._headers = {}
        self._body = []
        self._size = 0
        self._has_head = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._has_head = True

    def on_body(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._max_body:
            self._fail(BadAnswer(f"the answer has more than {self._max_body} bytes"))
        else:
            self._body.append(data)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        self._has_head = False
        if status < 200:  # 100 Continue and its like come before the answer
            return
        self._keep_alive = self._parser.should_keep_alive()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(HttpResponse(status, b"".join(self._body), self._headers))
