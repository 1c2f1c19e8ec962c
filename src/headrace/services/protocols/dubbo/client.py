"""The consumer's end of dubbo://: one connection to a provider, shared by every reference to it.

Connects on request, reconnects by itself after a loss, and matches answers to requests by id. A request whose
connection is lost fails at once with CHANNEL_INACTIVE instead of waiting for its timeout.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
from typing import TYPE_CHECKING

from headrace.services.errors import RpcCode, RpcException
from headrace.services.hessian2 import Hessian2Error
from headrace.services.invocation import Result
from headrace.services.protocols.dubbo import codec
from headrace.services.protocols.dubbo.connection import DubboConnection, Pulse
from headrace.services.protocols.dubbo.frame import (
    DEFAULT_PAYLOAD,
    EVENT,
    HESSIAN2,
    REQUEST,
    SERIALIZATION_MASK,
    TWO_WAY,
    Status,
)
from headrace.services.url import URL

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger("headrace.services.dubbo")

DEFAULT_CONNECT_MS = 3_000
_RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0)


class RemotingError(RpcException):
    """The other end could not be reached, or answered that it could not serve the request."""

    def __init__(self, message: str, status: Status) -> None:
        timeout = status in (Status.CLIENT_TIMEOUT, Status.SERVER_TIMEOUT)
        super().__init__(message, RpcCode.TIMEOUT if timeout else RpcCode.NETWORK)
        self.status = status


class ClientConnection(DubboConnection):
    """One connection and the requests that wait on it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, payload: int, on_lost: Callable[[], None]) -> None:
        super().__init__(loop, payload)
        self._waiting: dict[int, asyncio.Future[Result]] = {}
        self._written: asyncio.Future[None] | None = None  # of those who wait until all is written
        self._on_lost = on_lost

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        waiting, self._waiting = self._waiting, {}
        for request_id, future in waiting.items():
            if not future.done():
                future.set_exception(
                    RemotingError(
                        f"Channel {self.local_address} -> {self.remote_address} is inactive. "
                        f"Directly return the unFinished request : {request_id}",
                        Status.CHANNEL_INACTIVE,
                    )
                )
        if self._written is not None and not self._written.done():
            self._written.set_exception(
                RemotingError(
                    f"Channel {self.local_address} -> {self.remote_address} was closed before the message was sent",
                    Status.CHANNEL_INACTIVE,
                )
            )
            self._written.exception()  # those who waited may all have given up
        self._on_lost()

    async def written(self) -> None:
        """Wait until everything sent so far is in the hands of the kernel; raises when the connection is lost."""
        transport = self._transport
        if self._written is None and transport is not None and transport.get_write_buffer_size():
            self._written = self.loop.create_future()
            transport.set_write_buffer_limits(high=0)  # asks for `resume_writing` once nothing is left
        if self._written is not None:
            await asyncio.shield(self._written)

    def resume_writing(self) -> None:
        written, self._written = self._written, None
        if written is not None and self._transport is not None:
            self._transport.set_write_buffer_limits()
            written.set_result(None)

    def request(self, request_id: int, data: bytes | bytearray) -> asyncio.Future[Result]:
        future = self.loop.create_future()
        self._waiting[request_id] = future
        self.send(data)
        return future

    def forget(self, request_id: int) -> None:
        self._waiting.pop(request_id, None)

    async def drain(self, seconds: float) -> None:
        """Wait for the answers still due, but not for ever."""
        if self._waiting and seconds > 0:
            await asyncio.wait(list(self._waiting.values()), timeout=seconds)

    def on_frame(self, flags: int, status: int, request_id: int, body: bytes) -> None:
        if flags & EVENT:
            self.on_event(flags, request_id, body)
            return
        if flags & REQUEST:  # a provider calling back: nothing is exported on this connection
            if flags & TWO_WAY:
                self.send(
                    codec.encode_error(request_id, Status.SERVICE_ERROR, "The consumer exports nothing here")
                )
            return
        future = self._waiting.pop(request_id, None)
        if future is None or future.done():
            logger.warning(
                "The timeout response finally returned, response id %d from %s",
                request_id,
                self.remote_address,
            )
            return
        try:
            if flags & SERIALIZATION_MASK != HESSIAN2:
                raise Hessian2Error(
                    f"Unexpected serialization id:{flags & SERIALIZATION_MASK} received from network"
                )
            if status == Status.OK:
                future.set_result(codec.decode_result(body))
            else:
                future.set_exception(RemotingError(codec.decode_error(body), _status(status)))
        except Hessian2Error as error:
            future.set_exception(RemotingError(f"Decode response failed: {error}", Status.CLIENT_ERROR))

    def on_too_large(self, flags: int, request_id: int, length: int) -> None:
        super().on_too_large(flags, request_id, length)
        future = self._waiting.pop(request_id, None)
        if future is not None and not future.done():
            future.set_exception(RemotingError(self.too_large_message(length), Status.CLIENT_ERROR))


def _status(number: int) -> Status:
    try:
        return Status(number)
    except ValueError:
        return Status.SERVER_ERROR


class ExchangeClient:
    """A provider's address, with a connection to it kept alive as long as anybody refers to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, url: URL) -> None:
        self._loop = loop
        self._url = url
        self._host = url.host or ""
        self._connection: ClientConnection | None = None
        self._connecting: asyncio.Lock = asyncio.Lock()
        self._reconnecting: asyncio.Task[None] | None = None
        self._pulse = Pulse(url)
        self._closed = False
        self._tried = False
        self.references = 1

    @property
    def is_connected(self) -> bool:
        return self._connection is not None and self._connection.is_open

    @property
    def is_available(self) -> bool:
        if not self._tried:  # a lazy reference: unknown until the first call
            return True
        return self._connection is not None and self._connection.is_open and not self._connection.read_only

    async def connect(self) -> ClientConnection:
        """The open connection, made now if there is none."""
        async with self._connecting:
            if self._connection is not None and self._connection.is_open:
                return self._connection
            if self._closed:
                raise RemotingError(f"The client of {self._url.address} is closed", Status.CLIENT_ERROR)
            self._tried = True
            timeout = self._url.get_int("connect.timeout", DEFAULT_CONNECT_MS) / 1000
            payload = self._url.get_int("payload", DEFAULT_PAYLOAD)
            try:
                async with asyncio.timeout(timeout):
                    _, connection = await self._loop.create_connection(
                        lambda: ClientConnection(self._loop, payload, self._lost), self._host, self._url.port
                    )
            except (OSError, TimeoutError) as error:
                reason = getattr(error, "strerror", None) or str(error) or f"no answer within {timeout:g} s"
                raise RemotingError(
                    f"Failed to connect to server {self._url.address}, cause: {reason}",
                    Status.CHANNEL_INACTIVE,
                ) from None
            if self._closed:  # while it was being made
                connection.close()
                raise RemotingError(f"The client of {self._url.address} is closed", Status.CLIENT_ERROR)
            self._connection = connection
            self._pulse.add(connection)
            return connection

    def _lost(self) -> None:
        if self._connection is not None:
            self._pulse.remove(self._connection)
        if not self._closed and self._url.get_bool("reconnect", True):
            self.keep_connecting()

    def keep_connecting(self) -> None:
        """Try in the background until there is a connection."""
        if self._reconnecting is None or self._reconnecting.done():
            self._reconnecting = self._loop.create_task(self._reconnect())

    async def _reconnect(self) -> None:
        attempt = 0
        while not self._closed and not self.is_connected:
            await asyncio.sleep(_RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)])
            attempt += 1
            try:
                await self.connect()
                logger.info("Connected again to %s", self._url.address)
            except RpcException as error:
                logger.debug("%s", error)

    async def request(self, request_id: int, data: bytes | bytearray, timeout_ms: int) -> Result:
        """Send a request and wait for its answer."""
        connection = self._connection
        if connection is None or not connection.is_open:
            connection = await self._connect_within(timeout_ms)
        start = self._loop.time()
        future = connection.request(request_id, data)
        timer = self._loop.call_later(
            timeout_ms / 1000, _expire, connection, future, request_id, start, timeout_ms
        )
        try:
            return await future
        finally:
            timer.cancel()
            if not future.done() or future.cancelled():
                connection.forget(request_id)

    async def send(self, data: bytes | bytearray, timeout_ms: int, *, sent: bool) -> None:
        """Send a request that has no answer; with `sent`, wait until it is written."""
        connection = self._connection
        if connection is None or not connection.is_open:
            connection = await self._connect_within(timeout_ms)
        connection.send(data)
        if sent:
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    await connection.written()
            except TimeoutError:
                raise RemotingError(
                    f"Failed to send message to {self._url.address} in timeout({timeout_ms}ms) limit",
                    Status.CLIENT_ERROR,
                ) from None

    async def _connect_within(self, timeout_ms: int) -> ClientConnection:
        """Connect for a call, which waits no longer for a host that does not answer than for an answer."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self.connect()
        except TimeoutError:
            raise RemotingError(
                f"Failed to connect to server {self._url.address} within the call's timeout of {timeout_ms} ms",
                Status.CLIENT_TIMEOUT,
            ) from None

    async def close(self, wait_seconds: float = 0) -> None:
        """Let requests under way finish, then close; the last reference closes."""
        self._closed = True
        if self._reconnecting is not None:
            self._reconnecting.cancel()
        connection = self._connection
        if connection is not None:
            await connection.drain(wait_seconds)
            connection.close()
        self._pulse.stop()


def _expire(
    connection: ClientConnection,
    future: asyncio.Future[Result],
    request_id: int,
    start: float,
    timeout_ms: int,
) -> None:
    connection.forget(request_id)
    if future.done():
        return
    now = datetime.datetime.now()
    elapsed = connection.loop.time() - start
    began = now - datetime.timedelta(seconds=elapsed)
    future.set_exception(
        RemotingError(
            f"Waiting server-side response timeout by scan timer. start time: {_stamp(began)}, end time: "
            f"{_stamp(now)}, client elapsed: 0 ms, server elapsed: {elapsed * 1000:.0f} ms, timeout: "
            f"{timeout_ms} ms, request: {request_id}, channel: {connection.local_address} -> "
            f"{connection.remote_address}",
            Status.SERVER_TIMEOUT,
        )
    )


def _stamp(moment: datetime.datetime) -> str:
    return moment.isoformat(" ", "milliseconds")
