"""One connection to a broker on the event loop: replies matched by number, each read straight into its buffer."""

from __future__ import annotations

import asyncio
import itertools
import math
import socket
import ssl
from typing import TypeVar, cast

from headrace.clock import Clock
from headrace.link.errors import BrokerDistrusted, BrokerUnavailable
from headrace.link.opening import FRESH_FOR, Offer, Steps, open_connection
from headrace.link.settings import KafkaSettings
from headrace.link.tls import Tls, context_of, not_trusted
from headrace.link.tls_stream import TlsStream
from headrace.wire.codec import WireError
from headrace.wire.errors import KafkaError
from headrace.wire.frames import decode_reply, encode_request, reply_length, reply_number
from headrace.wire.schema import Request, Response

R = TypeVar("R", bound=Response)


class _Handshake:
    """Lets a coroutine wait for the end of a TLS handshake."""

    def __init__(self, done: asyncio.Future[None], tls: Tls) -> None:
        self.done = done
        self._tls = tls

    def secured(self, stream: TlsStream) -> None:
        complaint = self._tls.versions.complaint(stream.ssl)
        if not self.done.done():
            if complaint is None:
                self.done.set_result(None)
            else:
                self.done.set_exception(ConnectionError(complaint))

    def failed(self, stream: TlsStream, error: BaseException) -> None:
        if not self.done.done():
            self.done.set_exception(error)


def _advance(steps: Steps, frame: memoryview | None) -> tuple[Request, int] | Offer:
    """What to send next, or what the steps end with: a StopIteration cannot leave a thread."""
    try:
        return next(steps) if frame is None else steps.send(frame)
    except StopIteration as done:
        offer: Offer = done.value
        return offer


class AsyncConnection(asyncio.BufferedProtocol):
    """Make one with `connect`. Requests may overlap; the broker answers in order."""

    def __init__(self, address: str, client_id: bytes) -> None:
        self.address = address
        self._client_id = client_id
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[memoryview]] = {}
        self._length = bytearray(4)
        self._frame: bytearray | None = None
        self._filled = 0
        self._transport: asyncio.Transport | None = None
        self._clock: Clock
        self._fresh_until = math.inf
        self._closes_when_answered = False

    @classmethod
    async def connect(
        cls,
        host: str,
        port: int,
        client_id: bytes,
        clock: Clock,
        timeout: float = 10.0,
        receive_buffer: int = -1,
        settings: KafkaSettings | None = None,
    ) -> AsyncConnection:
        """A connection that can be used at once: encrypted and logged in, if `settings` say so."""
        connection = cls(f"{host}:{port}", client_id)
        connection._clock = clock
        try:
            await clock.wait_for(connection._open(host, port, receive_buffer, settings), timeout)
        except ssl.SSLCertVerificationError as error:
            connection.close()
            raise BrokerDistrusted(not_trusted(connection.address, error, "").message) from None
        except (OSError, TimeoutError) as error:
            connection.close()
            raise BrokerUnavailable(f"broker at {connection.address} cannot be reached: {error}") from None
        except KafkaError as error:
            connection.close()
            raise BrokerDistrusted(error.message) from None
        except BaseException:
            connection.close()
            raise
        return connection

    async def _open(self, host: str, port: int, receive_buffer: int, settings: KafkaSettings | None) -> None:
        loop = asyncio.get_running_loop()
        tls = settings.tls if settings is not None else None
        if tls is None:
            await loop.create_connection(lambda: self, host, port)
        else:
            await self._secure(tls, host, port)
        assert self._transport is not None
        if receive_buffer >= 0:
            raw: socket.socket = self._transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if settings is not None and settings.login is not None:
            await self._log_in(settings)

    async def _secure(self, tls: Tls, host: str, port: int) -> None:
        loop = asyncio.get_running_loop()
        context = await loop.run_in_executor(None, context_of, tls)
        handshake = _Handshake(loop.create_future(), tls)
        made: TlsStream
        _, made = await loop.create_connection(
            lambda: TlsStream(self, context, handshake, server_hostname=host), host, port
        )
        made.begin()
        await handshake.done

    async def _log_in(self, settings: KafkaSettings) -> None:
        """A step may hash a password or wait for an identity provider or Kerberos, so each runs in a thread, one at a time."""
        loop = asyncio.get_running_loop()
        begun = self._clock.monotonic()
        steps = open_connection(self.address, settings)
        frame: memoryview | None = None
        try:
            while not isinstance(step := await loop.run_in_executor(None, _advance, steps, frame), Offer):
                frame = await self._exchange(*step, settings.request_timeout)
        except WireError as error:
            raise BrokerUnavailable(f"{self.address} sent what is no reply: {error}") from None
        if step.session_ms > 0:
            self._fresh_until = begun + step.session_ms / 1000 * FRESH_FOR

    @property
    def fresh(self) -> bool:
        """Open, and its login not about to end: a request sent now will be answered. Ask before each request."""
        return self.open and self._clock.monotonic() < self._fresh_until

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def close_when_answered(self) -> None:
        """Close once every request has its reply; send no more."""
        self._closes_when_answered = True
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self._closes_when_answered and not self._waiting:
            self.close()

    async def call(
        self, request: Request[R], version: int, timeout: float = 30.0, *, client_id: bytes | None = None
    ) -> R:
        """The reply to `request`. BrokerUnavailable when none comes. `client_id` is another one for this request alone."""
        frame = await self._exchange(request, version, timeout, client_id)
        return decode_reply(request.reply_type(), version, frame)

    async def _exchange(
        self, request: Request, version: int, timeout: float, client_id: bytes | None = None
    ) -> memoryview:
        """The frame of the reply."""
        if not self.open or self._transport is None:
            raise BrokerUnavailable(f"the connection to {self.address} is closed")
        number = next(self._numbers)
        name = self._client_id if client_id is None else client_id
        frame = encode_request(request, version, number, name)
        future: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._transport.write(frame)
        try:
            return await self._clock.wait_for(future, timeout)
        except TimeoutError:
            self.close()
            raise BrokerUnavailable(f"{self.address} did not answer within {timeout:g} s") from None
        finally:
            self._waiting.pop(number, None)
            self._close_if_done()

    # From the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(BrokerUnavailable(f"the connection to {self.address} was lost"))
        self._waiting.clear()

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._length if self._frame is None else self._frame)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        if self._frame is None:
            if self._filled == 4:
                try:
                    self._frame = bytearray(reply_length(self._length))
                except WireError:
                    self.close()
                    return
                self._filled = 0
        elif self._filled == len(self._frame):
            frame, self._frame, self._filled = self._frame, None, 0
            future = self._waiting.get(reply_number(frame))
            if future is not None and not future.done():
                future.set_result(memoryview(frame))
