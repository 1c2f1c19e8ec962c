"""What a client says first on a new connection: which versions both sides speak, then the login. Without I/O.

Each function is a generator: it yields a request with its version and takes the frame of the reply.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace

from headrace import __version__
from headrace.link.settings import KafkaSettings
from headrace.wire.codec import Buffer
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.frames import decode_reply
from headrace.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from headrace.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from headrace.wire.sasl import oauthbearer
from headrace.wire.sasl.errors import SaslError
from headrace.wire.sasl.logins import AnyLogin, BearerLogin, KerberosLogin, client_exchange
from headrace.wire.schema import Request

Steps = Generator[tuple[Request, int], Buffer, "Offer"]

_BY_NAME_UP_TO = {8: 9, 9: 9, 28: 5}
"""The last versions of OffsetCommit, OffsetFetch and TxnOffsetCommit with names of topics, which is what callers have; then come ids."""

FRESH_FOR = 0.85
"""The part of a session after which to renew it, as in Kafka."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a broker serves: versions by API key, finalized feature levels by name, a session of some length."""

    address: str
    versions: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    session_ms: int = 0
    """How long the login counts; 0 for as long as the connection lasts."""

    def version_of(self, request: type[Request]) -> int:
        """The newest version of a request that both sides speak and that has topics by name."""
        low, high = self.versions.get(request.API_KEY, (0, -1))
        version = min(high, _BY_NAME_UP_TO.get(request.API_KEY, request.VERSIONS[1]))
        if version < max(low, request.VERSIONS[0]):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"The broker at {self.address} does not offer {request.__name__.removesuffix('Request')} "
                "in a version this client speaks; use Kafka 2.4 or newer.",
            )
        return version

    def serves(self, request: type[Request], version: int) -> bool:
        return self.versions.get(request.API_KEY, (0, -1))[1] >= version


def open_connection(address: str, settings: KafkaSettings) -> Steps:
    """Agree on versions and log in where the settings ask for it."""
    offer = yield from _agree_on_versions(address)
    return (yield from log_in_again(offer, settings))


def log_in_again(offer: Offer, settings: KafkaSettings) -> Steps:
    """The login alone, where the settings ask for it: for a connection whose session is about to end."""
    if settings.login is None:
        return offer
    session_ms = yield from _log_in(
        offer.address, settings.login, settings.prefix, offer.version_of(SaslAuthenticateRequest)
    )
    return replace(offer, session_ms=session_ms)


def _agree_on_versions(address: str) -> Steps:
    frame = yield ApiVersionsRequest("headrace", __version__), 3
    version = 3
    if int.from_bytes(frame[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION:
        # A broker that does not know version 3 says so in the form of version 0, which every broker can write.
        version = 0
        frame = yield ApiVersionsRequest(), 0
    reply = decode_reply(ApiVersionsResponse, version, frame)
    return Offer(
        address,
        {entry.api_key: (entry.min_version, entry.max_version) for entry in reply.api_keys},
        {entry.name: entry.max_version_level for entry in reply.finalized_features},
    )


def _exchange(address: str, login: AnyLogin) -> Generator[bytes, bytes]:
    """What the client says, mechanism by mechanism. For a token or a ticket, somebody else is asked first."""
    if isinstance(login, BearerLogin):
        from headrace.link.bearer import token_of

        return oauthbearer.client_exchange(token_of(login), dict(login.extensions))
    if isinstance(login, KerberosLogin):
        from headrace.link.kerberos import client_exchange as by_ticket

        return by_ticket(login, address.rpartition(":")[0].strip("[]"))
    return client_exchange(login)


def _log_in(
    address: str, login: AnyLogin, prefix: str, version: int
) -> Generator[tuple[Request, int], Buffer, int]:
    """Returns how long the login counts, in milliseconds; 0 without an end."""
    frame = yield SaslHandshakeRequest(login.mechanism), 1
    handshake = decode_reply(SaslHandshakeResponse, 1, frame)
    if handshake.error_code:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            f"The broker at {address} does not offer {login.mechanism}; it offers "
            f"{', '.join(handshake.mechanisms) or 'nothing'}: set {prefix}sasl.mechanism.",
        )
    steps = _exchange(address, login)
    session_ms = 0
    try:
        message = next(steps)
        while True:
            frame = yield SaslAuthenticateRequest(message), version
            reply = decode_reply(SaslAuthenticateResponse, version, frame)
            if reply.error_code:
                raise KafkaError(
                    ErrorCode.SASL_AUTHENTICATION_FAILED,
                    f"The broker at {address} refused the login of {login.username!r}: "
                    f"{reply.error_message or 'check user name and password'}",
                )
            session_ms = reply.session_lifetime_ms
            message = steps.send(bytes(reply.auth_bytes))
    except StopIteration:
        return session_ms
    except SaslError as error:
        raise KafkaError(
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            f"The login of {login.username!r} at {address} failed: {error}.",
        ) from None
