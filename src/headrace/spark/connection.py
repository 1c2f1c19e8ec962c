"""One blocking connection to a broker: requests out, replies in, in order, over a plain or TLS socket.

A caller may send several requests before it receives the replies, which is how the next block is fetched while
this one is decoded. Whatever goes wrong on the way is a BrokerUnavailable and the connection is closed.
"""

from __future__ import annotations

import functools
import itertools
import socket
import ssl
import struct
from typing import TypeVar

from headrace.spark.sasl import exchange
from headrace.spark.settings import KafkaSettings, Tls
from headrace.wire.codec import WireError, decode, encode
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.frames import API_VERSIONS_KEY
from headrace.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from headrace.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from headrace.wire.schema import Request, Response

R = TypeVar("R", bound=Response)
LARGEST_REPLY = 512 * 1024 * 1024

_HEADER = struct.Struct(">ihhih")


class BrokerUnavailable(ConnectionError):
    """A broker that cannot be reached, or a connection that ended before the answer; worth another try."""


@functools.lru_cache(maxsize=16)
def _context(tls: Tls) -> ssl.SSLContext:
    try:
        return tls.context()
    except OSError as error:
        raise KafkaError(
            ErrorCode.SASL_AUTHENTICATION_FAILED, f"The TLS files cannot be used: {error}"
        ) from None


class Connection:
    """Opened, logged in and with versions agreed when the constructor returns."""

    def __init__(self, host: str, port: int, settings: KafkaSettings) -> None:
        self.address = f"{host}:{port}"
        self.versions: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        self._settings = settings
        self._client_id = settings.client_id.encode()
        self._numbers = itertools.count(1)
        self._buffer = bytearray(64 * 1024)
        self._socket = self._open(host, port)
        try:
            self._agree_on_versions()
            if settings.login is not None:
                self._log_in()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.open = False
        self._socket.close()

    def version_of(self, request: type[Request]) -> int:
        """The newest version of an API that both sides speak."""
        low, high = self.versions.get(request.API_KEY, (0, -1))
        version = min(high, request.VERSIONS[1])
        if version < max(low, request.VERSIONS[0]):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"The broker at {self.address} does not offer {request.__name__.removesuffix('Request')} "
                "in a version this client speaks; use Kafka 2.4 or newer.",
            )
        return version

    def offers(self, request: type[Request], version: int) -> bool:
        return self.versions.get(request.API_KEY, (0, -1))[1] >= version

    def call(self, request: Request, reply: type[R], version: int | None = None) -> R:
        """Send one request and wait for its answer."""
        if version is None:
            version = self.version_of(type(request))
        return self.receive(reply, version, self.send(request, version))

    def send(self, request: Request, version: int) -> int:
        """Send without waiting; `receive` takes the number that is returned. Answers come in request order."""
        number = next(self._numbers)
        body = bytearray(_HEADER.size) + self._client_id
        if version >= request.FLEXIBLE:
            body.append(0)
        encode(request, version, body)
        _HEADER.pack_into(body, 0, len(body) - 4, request.API_KEY, version, number, len(self._client_id))
        self.send_frame(body)
        return number

    def send_frame(self, frame: bytes | bytearray) -> None:
        """Send a whole request frame that the caller made itself."""
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise self._lost(error) from None

    def next_number(self) -> int:
        """A correlation id for a frame of the caller's own."""
        return next(self._numbers)

    def receive(self, reply: type[R], version: int, number: int) -> R:
        return self._decode(reply, version, self.receive_frame(number))

    def _decode(self, reply: type[R], version: int, frame: memoryview) -> R:
        start = 5 if version >= reply.FLEXIBLE and reply.API_KEY != API_VERSIONS_KEY else 4
        try:
            return decode(reply, version, frame, start)[0]
        except WireError as error:
            raise self._lost(error) from None

    def receive_frame(self, number: int) -> memoryview:
        """The reply to request `number`, its correlation id still in front; good until the next one is received."""
        size = int.from_bytes(self._exactly(4), "big")
        if not 4 <= size <= LARGEST_REPLY:
            raise self._lost(f"it sent a frame of {size} bytes, which is no Kafka reply")
        frame = self._exactly(size)
        if int.from_bytes(frame[:4], "big") != number:
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
            return plain if tls is None else _context(tls).wrap_socket(plain, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            raise KafkaError(
                ErrorCode.SASL_AUTHENTICATION_FAILED,
                f"The certificate of the broker at {self.address} is not trusted ({error.verify_message}); "
                "set kafka.ssl.truststore.location to the PEM file of its authority.",
            ) from None
        except OSError as error:
            raise BrokerUnavailable(f"the broker at {self.address} cannot be reached: {error}") from None

    def _agree_on_versions(self) -> None:
        # A broker that does not know version 3 says so in the form of version 0, the one every broker can write.
        frame = self.receive_frame(self.send(ApiVersionsRequest("headrace-spark", "0.1"), 3))
        version = 0 if int.from_bytes(frame[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION else 3
        if version == 0:
            frame = self.receive_frame(self.send(ApiVersionsRequest(), 0))
        reply = self._decode(ApiVersionsResponse, version, frame)
        self.versions = {entry.api_key: (entry.min_version, entry.max_version) for entry in reply.api_keys}
        self.features = {entry.name: entry.max_version_level for entry in reply.finalized_features}

    def _log_in(self) -> None:
        login = self._settings.login
        assert login is not None
        offered = self.call(SaslHandshakeRequest(login.mechanism), SaslHandshakeResponse, 1)
        if offered.error_code:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_SASL_MECHANISM,
                f"The broker at {self.address} does not offer {login.mechanism}; it offers "
                f"{', '.join(offered.mechanisms) or 'nothing'}: set kafka.sasl.mechanism.",
            )
        steps = exchange(login)
        message = next(steps)
        while True:
            reply = self.call(SaslAuthenticateRequest(message), SaslAuthenticateResponse)
            if reply.error_code:
                raise KafkaError(
                    ErrorCode.SASL_AUTHENTICATION_FAILED,
                    f"The broker at {self.address} refused the login of {login.username!r}: "
                    f"{reply.error_message or 'check user name and password'}",
                )
            try:
                message = steps.send(reply.auth_bytes)
            except StopIteration:
                return
