"""How a connection gets in: TLS if the listener speaks it, then the listener's login; and one sentence in the log if it is refused."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, cast

from headrace.clock import Clock, Timer
from headrace.link.tls_stream import TlsState, TlsStream
from headrace.server.config.listeners import Listener
from headrace.server.net.connection import Connection
from headrace.server.net.gate import Gate
from headrace.server.net.handshake_failures import why_failed, why_resumed_too_late
from headrace.server.net.refusals import Refusals
from headrace.server.security.principal_builder import AuthenticationContext, PrincipalBuilder, principal_of

if TYPE_CHECKING:
    from headrace.server.security.server_tls import ListenerTls

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 30.0
"""How long a client may take for its handshake."""


class TlsSource(Protocol):
    """The TLS that new connections of a listener get; another one after a reload."""

    @property
    def current(self) -> ListenerTls: ...


class Entrance:
    """One listener's. `wrap` makes what the socket's transport talks to."""

    def __init__(
        self,
        listener: Listener,
        tls: TlsSource | None,
        principals: PrincipalBuilder,
        gate: Gate | None,
        refusals: Refusals,
        clock: Clock,
    ) -> None:
        self.listener = listener
        self._tls = tls
        self._principals = principals
        self._gate = gate
        self._refusals = refusals
        self._clock = clock

    def wrap(self, connection: Connection) -> asyncio.BufferedProtocol:
        protocol = cast(asyncio.BufferedProtocol, connection)
        if self._tls is None:
            return protocol
        tls = self._tls.current
        return TlsStream(protocol, tls.context, _Handshake(self, connection, tls))

    def enter(self, connection: Connection) -> None:
        """Let in a connection whose turn it is: at once without TLS, after the handshake with it."""
        if self._tls is None:
            self._identify(connection)
        elif isinstance(connection.transport, TlsStream):
            outcome = connection.transport.outcome
            assert isinstance(outcome, _Handshake)
            outcome.start(self._clock, connection.transport)

    def _identify(self, connection: Connection) -> None:
        """Let it in, or refuse it: a mistake in a builder or a gate must not leave the door open."""
        try:
            # A SASL listener's gate decides the principal; elsewhere the certificate does.
            if not self.listener.authenticated:
                connection.identify(self._principal(connection))
            if self._gate is not None:
                self._gate.admit(connection)
            elif self.listener.authenticated:
                self.refuse(connection, f"listener {self.listener.name} has nobody to check its logins")
        except ValueError as error:
            self.refuse(connection, str(error))
        except Exception:
            log.exception("a connection from %s could not be let in", connection.peer_host)
            connection.mute()
            connection.transport.abort()

    def _principal(self, connection: Connection) -> str:
        context = AuthenticationContext(
            self.listener.name, self.listener.protocol, connection.peer_host, connection.peer_certificate
        )
        return principal_of(self._principals, context)

    def secured(self, connection: Connection, stream: TlsStream, tls: ListenerTls) -> None:
        certificate = stream.ssl.getpeercert(binary_form=True)
        complaint = tls.versions.complaint(stream.ssl)
        if complaint is None and certificate is not None and stream.ssl.session_reused:
            complaint = why_resumed_too_late(
                certificate, datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
            )
        if complaint is not None:
            self.refuse(connection, complaint)
            return
        connection.peer_certificate = certificate
        self._identify(connection)

    def refuse(self, connection: Connection, sentence: str) -> None:
        self._refusals.warn(connection.peer_host, sentence)
        connection.mute()
        connection.transport.abort()


class _Handshake:
    """One connection's way through TLS."""

    __slots__ = ("_connection", "_entrance", "_timer", "_tls")

    def __init__(self, entrance: Entrance, connection: Connection, tls: ListenerTls) -> None:
        self._entrance = entrance
        self._connection = connection
        self._tls = tls
        self._timer: Timer | None = None

    def start(self, clock: Clock, stream: TlsStream) -> None:
        self._timer = clock.call_later(HANDSHAKE_SECONDS, lambda: self._give_up(stream))
        stream.begin()

    def _give_up(self, stream: TlsStream) -> None:
        if stream.state in (TlsState.HANDSHAKING, TlsState.COMPUTING):
            self._entrance.refuse(
                self._connection, f"its TLS handshake was not done within {HANDSHAKE_SECONDS:.0f} s"
            )

    def secured(self, stream: TlsStream) -> None:
        self._end()
        self._entrance.secured(self._connection, stream, self._tls)

    def failed(self, stream: TlsStream, error: BaseException) -> None:
        self._end()
        sentence = why_failed(error, stream.first_bytes, self._tls, self._entrance.listener)
        if sentence is not None:
            self._entrance.refuse(self._connection, sentence)

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
