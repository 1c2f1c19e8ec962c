"""One client's login on a SASL listener, frame by frame: a state machine without I/O, as Kafka's SaslServerAuthenticator is.

    OPENED ──ApiVersions──▶ AGREED ──SaslHandshake v1──▶ WRAPPED ──SaslAuthenticate…──▶ GRANTED
       └─────SaslHandshake────┘    └─SaslHandshake v0──▶ BARE ─────tokens…──────────────▶ GRANTED
                                   (any of them ──▶ REFUSED)

A client that logs in again on its connection starts in AGREED, and must stay who it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol, TypeVar

from headrace.server.security.mechanisms import Exchange, Grant, Offer, Refused, Step
from headrace.server.security.principals import USER
from headrace.wire.codec import WireError, decode
from headrace.wire.errors import ErrorCode
from headrace.wire.frames import API_VERSIONS_KEY, encode_reply, read_client_id, read_request_start
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from headrace.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from headrace.wire.schema import Request

HANDSHAKE_KEY = SaslHandshakeRequest.API_KEY
AUTHENTICATE_KEY = SaslAuthenticateRequest.API_KEY


class LoginState(Enum):
    OPENED = auto()
    """Nothing has come yet."""
    AGREED = auto()
    """The client knows the versions, or does not ask."""
    WRAPPED = auto()
    """The mechanism's messages come in SaslAuthenticate requests."""
    BARE = auto()
    """They come as frames of their own: what clients before Kafka 1.0 send."""
    GRANTED = auto()
    REFUSED = auto()


_ALLOWED = {
    LoginState.OPENED: {API_VERSIONS_KEY, HANDSHAKE_KEY},
    LoginState.AGREED: {HANDSHAKE_KEY},
    LoginState.WRAPPED: {AUTHENTICATE_KEY},
}
"""The requests that may come in each state; all others end the connection."""


@dataclass(frozen=True, slots=True)
class PassOn:
    """Let the broker answer this frame as any other."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Send this; the client goes on."""

    frame: bytes | bytearray


@dataclass(frozen=True, slots=True)
class Done:
    """Send this; the client is logged in."""

    frame: bytes | bytearray
    grant: Grant
    session_ms: int | None
    """How long for; None for as long as it likes."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Send this, after a while, and close the connection."""

    frame: bytes | bytearray | None
    refused: Refused


Reaction = PassOn | Answer | Done | Failed


class ClientLogin:
    def __init__(self, offer: Offer, now_ms: Callable[[], int], before: Grant | None = None) -> None:
        """`before` is whom the client has been so far when it logs in again."""
        self._offer = offer
        self._now_ms = now_ms
        self._before = before
        self._exchange: Exchange | None = None
        self.state = LoginState.OPENED if before is None else LoginState.AGREED
        self.mechanism = ""

    @property
    def user(self) -> str:
        """Whom the client says it is, for the log."""
        return self._exchange.user if self._exchange is not None else ""

    def take(self, frame: memoryview) -> Reaction | Awaitable[Reaction]:
        """What to do about a frame. WireError for one that has no place here."""
        if self.state is LoginState.BARE:
            return self._judge(bytes(frame), _Bare())
        key, version, number = read_request_start(frame)
        if key not in _ALLOWED.get(self.state, ()):
            raise WireError(f"a request with API key {key} before the client had logged in")
        if key == API_VERSIONS_KEY:
            if version <= ApiVersionsRequest.VERSIONS[1]:
                # A newer client is told which versions there are, and asks again.
                self.state = LoginState.AGREED
            return PassOn()
        if key == HANDSHAKE_KEY:
            return self._shake(_read(SaslHandshakeRequest, frame, version), version, number)
        request = _read(SaslAuthenticateRequest, frame, version)
        return self._judge(bytes(request.auth_bytes), _Wrapped(version, number))

    def _shake(self, request: SaslHandshakeRequest, version: int, number: int) -> Reaction:
        offered = self._offer.mechanisms
        self.mechanism = request.mechanism
        mechanism = offered.get(request.mechanism)
        if mechanism is None:
            self.state = LoginState.REFUSED
            reply = SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, list(offered))
            return Failed(
                encode_reply(reply, version, number),
                Refused(
                    f"the listener offers {', '.join(offered)} only",
                    remedy="set one of them as the client's sasl.mechanism, or add the client's to sasl.enabled.mechanisms",
                ),
            )
        self._exchange = mechanism.begin()
        self.state = LoginState.BARE if version == 0 else LoginState.WRAPPED
        return Answer(encode_reply(SaslHandshakeResponse(0, list(offered)), version, number))

    def _judge(self, token: bytes, writer: _Writer) -> Reaction | Awaitable[Reaction]:
        assert self._exchange is not None
        try:
            self._refuse_another_mechanism()
            step = self._exchange.take(token)
            return self._react(step, writer) if isinstance(step, Step) else self._judge_later(step, writer)
        except Refused as refused:
            return self._fail(refused, writer)

    async def _judge_later(self, pending: Awaitable[Step], writer: _Writer) -> Reaction:
        try:
            return self._react(await pending, writer)
        except Refused as refused:
            return self._fail(refused, writer)

    def _react(self, step: Step, writer: _Writer) -> Reaction:
        grant = step.grant
        if grant is None:
            return Answer(writer.write(step.reply))
        self._refuse_another_user(grant)
        lifetime = self._lifetime_ms(grant)
        self.state = LoginState.GRANTED
        return Done(writer.write(step.reply, lifetime or 0), grant, lifetime)

    def _fail(self, refused: Refused, writer: _Writer) -> Failed:
        self.state = LoginState.REFUSED
        again = "authentication" if self._before is None else "re-authentication"
        told = refused.told or (
            f"Authentication failed during {again} due to invalid credentials with SASL mechanism {self.mechanism}"
        )
        return Failed(writer.refuse(told), refused)

    def _lifetime_ms(self, grant: Grant) -> int | None:
        limit = self._offer.session_ms.get(grant.mechanism, 0)
        if grant.expires_ms is None:
            return limit or None
        left = max(0, grant.expires_ms - self._now_ms())
        return min(left, limit) if limit else left

    def _refuse_another_mechanism(self) -> None:
        before = self._before
        if before is not None and before.mechanism != self.mechanism:
            raise Refused(
                f"it logged in with {before.mechanism} before",
                told=f"SASL mechanism '{self.mechanism}' requested by client is not supported for re-authentication "
                f"of mechanism '{before.mechanism}'",
                remedy="let the client open a new connection to change its mechanism",
            )

    def _refuse_another_user(self, grant: Grant) -> None:
        before = self._before
        if before is not None and before.user != grant.user:
            raise Refused(
                f"it was {before.user!r} before",
                told=f"Cannot change principals during re-authentication from {USER}{before.user} to {USER}{grant.user}",
                remedy="let the client open a new connection to change its user",
            )


class _Writer(Protocol):
    """How the broker's messages are wrapped."""

    def write(self, reply: bytes, session_ms: int = 0) -> bytes | bytearray: ...

    def refuse(self, told: str) -> bytearray | None: ...


@dataclass(frozen=True, slots=True)
class _Wrapped:
    """As replies to SaslAuthenticate."""

    version: int
    number: int

    def write(self, reply: bytes, session_ms: int = 0) -> bytearray:
        return self._encode(SaslAuthenticateResponse(0, None, reply, session_ms))

    def refuse(self, told: str) -> bytearray:
        return self._encode(SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, told))

    def _encode(self, response: SaslAuthenticateResponse) -> bytearray:
        return encode_reply(response, self.version, self.number)


class _Bare:
    """As frames of their own, which have no place for an error."""

    def write(self, reply: bytes, session_ms: int = 0) -> bytes:
        return len(reply).to_bytes(4, "big") + reply

    def refuse(self, told: str) -> None:
        return None


Q = TypeVar("Q", bound=Request)


def _read(kind: type[Q], frame: memoryview, version: int) -> Q:
    low, high = kind.VERSIONS
    if not low <= version <= high:
        raise WireError(f"{kind.__name__} of version {version}, served are {low} to {high}")
    _, position = read_client_id(frame, version >= kind.FLEXIBLE)
    return decode(kind, version, frame, position)[0]
