"""One blocking connection to a broker: requests out, replies in, in order, over a plain or TLS socket.

A caller may send several requests before it receives the replies, which is how Spark fetches the next block while it
decodes this one. Whatever goes wrong on the way is a BrokerUnavailable and the connection is closed.

A login that counts for a while only (`connections.max.reauth.ms`) is renewed on the same connection before the next request, unless
replies are still awaited: they would arrive among those of the login.
"""

from __future__ import annotations

import itertools
import math
import socket
import ssl
import time
from types import TracebackType
from typing import TypeVar

from headrace.link.errors import BrokerUnavailable
from headrace.link.opening import FRESH_FOR, Offer, Steps, log_in_again, open_connection
from headrace.link.settings import KafkaSettings
from headrace.link.tls import context_of, not_trusted
from headrace.wire.codec import WireError
from headrace.wire.frames import decode_reply, encode_request, reply_length, reply_number
from headrace.wire.schema import Request, Response

R = TypeVar("R", bound=Response)


class Connection:
    """Opened, with versions agreed and logged in when the constructor returns."""

    def __init__(self, host: str, port: int, settings: KafkaSettings) -> None:
        self.address = f"{host}:{port}"
        self._settings = settings
        self._client_id = settings.client_id.encode()
        self._numbers = itertools.count(1)
        self._buffer = bytearray(64 * 1024)
        self._awaited = 0
        """Requests whose replies have not been received."""
        self._fresh_until = math.inf
        """When to log in again."""
        self._socket = self._open(host, port)
        try:
            self.offer = self._introduce()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.open = False
        self._socket.close()

    def call(self, request: Request[R], version: int | None = None) -> R:
        """Send one request, in the newest version both sides speak, and wait for its reply."""
        if version is None:
            version = self.offer.version_of(type(request))
        return self.receive(request.reply_type(), version, self.send(request, version))

    def send(self, request: Request, version: int) -> int:
        """Send without waiting; `receive` takes the number that is returned. Replies come in request order."""
        number = next(self._numbers)
        self.send_frame(encode_request(request, version, number, self._client_id))
        return number

    def send_frame(self, frame: bytes | bytearray) -> None:
        """Send a whole request frame that the caller made itself."""
        if not self._awaited and time.monotonic() >= self._fresh_until:
            self._renew()
        self._awaited += 1
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise self._lost(error) from None

    def next_number(self) -> int:
        """A correlation id for a frame of the caller's own."""
        return next(self._numbers)

    def receive(self, reply: type[R], version: int, number: int) -> R:
        try:
            return decode_reply(reply, version, self.receive_frame(number))
        except WireError as error:
            raise self._lost(error) from None

    def receive_frame(self, number: int) -> memoryview:
        """The reply to request `number`, its correlation id still in front; good until the next one is received."""
        self._awaited -= 1
        try:
            frame = self._exactly(reply_length(self._exactly(4)))
        except WireError as error:
            raise self._lost(error) from None
        if reply_number(frame) != number:
            raise self._lost("it answered another request than the one asked")
        return frame

    def _exactly(self, size: int) -> memoryview:
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        buffer = memoryview(self._buffer)[:size]
        filled = 0
        try:
            while filled < size:
                count = self._socket.recv_into(buffer[filled:])
                if not count:
                    raise ConnectionResetError("it closed the connection")
                filled += count
        except OSError as error:
            raise self._lost(error) from None
        return buffer

    def _lost(self, why: object) -> BrokerUnavailable:
        self.close()
        if isinstance(why, TimeoutError):
            why = f"no answer within {self._settings.request_timeout:g} s"
        return BrokerUnavailable(f"the connection to the broker at {self.address} was lost: {why}")

    # Opening.

    def _open(self, host: str, port: int) -> socket.socket:
        timeout = self._settings.request_timeout
        try:
            plain = socket.create_connection((host, port), min(timeout, 10.0))
            plain.settimeout(timeout)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.open = True
            tls = self._settings.tls
            if tls is None:
                return plain
            secure = context_of(tls).wrap_socket(plain, server_hostname=host)
            complaint = tls.versions.complaint(secure)
            if complaint is not None:
                raise ConnectionError(complaint)
            return secure
        except ssl.SSLCertVerificationError as error:
            raise not_trusted(self.address, error, self._settings.prefix) from None
        except OSError as error:
            raise BrokerUnavailable(f"the broker at {self.address} cannot be reached: {error}") from None

    def _introduce(self) -> Offer:
        return self._follow(open_connection(self.address, self._settings))

    def _renew(self) -> None:
        self._fresh_until = math.inf  # for the requests of the login itself
        try:
            self.offer = self._follow(log_in_again(self.offer, self._settings))
        except BaseException:
            self.close()
            raise

    def _follow(self, steps: Steps) -> Offer:
        begun = time.monotonic()
        request, version = next(steps)
        try:
            while True:
                request, version = steps.send(self.receive_frame(self.send(request, version)))
        except StopIteration as done:
            offer: Offer = done.value
            if offer.session_ms > 0:
                self._fresh_until = begun + offer.session_ms / 1000 * FRESH_FOR
            return offer
        except WireError as error:
            raise self._lost(error) from None
