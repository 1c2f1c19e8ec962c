"""One blocking connection to one broker: a request goes out in the newest version both sides know, its reply comes
back. Opened for a question or two and closed again; retries are the caller's.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import TypeVar

from headrace.cli.failure import Exit, Failure
from headrace.cli.raw.refused import RequestRefused
from headrace.cli.raw.security import Security
from headrace.wire.codec import WireError, decode, encode, write_uvarint
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from headrace.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from headrace.wire.schema import Request, Response

R = TypeVar("R", bound=Response)
_TIMEOUT = 30.0
_CLIENT_ID = b"headrace-cli"
_HEADER = struct.Struct(">ihhih")
_INT32 = struct.Struct(">i")


class Connection:
    def __init__(self, host: str, port: int, security: Security) -> None:
        self.address = f"{host}:{port}"
        self._correlation_id = 0
        try:
            self._socket = security.wrap(socket.create_connection((host, port), _TIMEOUT), host)
        except OSError as error:
            raise Failure(
                f"No connection to the broker at {self.address} ({error}).", Exit.UNREACHABLE
            ) from None
        self._versions: dict[int, tuple[int, int]] | None = None
        try:
            if security.mechanism is not None:
                self._log_in(security)
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
        self._socket.close()

    def ask(self, request: Request, response: type[R]) -> R:
        """Raises Failure when the broker does not offer the request or the connection breaks."""
        low, high = self.versions().get(request.API_KEY, (0, -1))
        version = min(high, request.VERSIONS[1])
        if version < max(low, request.VERSIONS[0]):
            name = type(request).__name__.removesuffix("Request")
            raise RequestRefused(
                ErrorCode.UNSUPPORTED_VERSION, f"The broker at {self.address} does not offer {name}."
            )
        return self._exchange(request, response, version)

    def versions(self) -> dict[int, tuple[int, int]]:
        """The versions the broker offers, by API key."""
        if self._versions is None:
            answer = self._exchange(ApiVersionsRequest(), ApiVersionsResponse, 0)
            self._versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        return self._versions

    def _log_in(self, security: Security) -> None:
        mechanism = security.mechanism or ""
        offer = self._exchange(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse, 1)
        if offer.error_code:
            known = ", ".join(offer.mechanisms) or "none"
            raise Failure(
                f"The broker at {self.address} does not offer sasl.mechanism={mechanism}; it offers {known}."
            )
        conversation = security.conversation()
        message: bytes | None = conversation.send(None)
        while message is not None:
            reply = self._exchange(SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse, 1)
            if reply.error_code:
                why = (reply.error_message or "authentication failed").rstrip(".")
                raise Failure(
                    f"The broker at {self.address} refused the login: {why}; check sasl.* in --command-config."
                )
            try:
                message = conversation.send(bytes(reply.auth_bytes))
            except StopIteration:
                message = None

    def _exchange(self, request: Request, response: type[R], version: int) -> R:
        self._correlation_id += 1
        flexible = version >= request.FLEXIBLE
        body = bytearray()
        if flexible:
            write_uvarint(body, 0)  # the header's tags
        encode(request, version, body)
        size = _HEADER.size - 4 + len(_CLIENT_ID) + len(body)
        head = _HEADER.pack(size, request.API_KEY, version, self._correlation_id, len(_CLIENT_ID))
        try:
            self._socket.sendall(head + _CLIENT_ID + body)
            reply = self._receive(_INT32.unpack(self._receive(4))[0])
        except OSError as error:
            raise Failure(
                f"The broker at {self.address} broke the connection ({error}).", Exit.UNREACHABLE
            ) from None
        # ApiVersions keeps the old response header in every version.
        start = 5 if flexible and request.API_KEY != ApiVersionsRequest.API_KEY else 4
        try:
            return decode(response, version, reply, start)[0]
        except WireError as error:
            raise Failure(
                f"The broker at {self.address} sent an answer that cannot be read: {error}."
            ) from None

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            piece = self._socket.recv(min(size - len(received), 1 << 20))
            if not piece:
                raise ConnectionError("closed by the broker")
            received += piece
        return bytes(received)
