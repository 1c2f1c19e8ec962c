"""The gate of a SASL listener: a connection's frames go to its login until it is done, and to the dispatcher after that.

A session that ends costs nothing per request: a timer replaces what serves the connection's frames.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto

from headrace.clock import Clock, Timer
from headrace.server.config.listeners import Listener
from headrace.server.net.connection import FAILED_INSIDE, Connection
from headrace.server.security.login import (
    HANDSHAKE_KEY,
    Answer,
    ClientLogin,
    Done,
    Failed,
    LoginState,
    PassOn,
    Reaction,
)
from headrace.server.security.login_journal import LoginJournal
from headrace.server.security.mechanisms import Grant, Offer
from headrace.server.security.principal_builder import AuthenticationContext, PrincipalBuilder, principal_of
from headrace.wire.codec import WireError
from headrace.wire.frames import read_request_start

log = logging.getLogger(__name__)

LOGIN_SECONDS = 60.0
"""How long a login may take, from the connection to its end."""
LEAST_SECONDS_BETWEEN_LOGINS = 1.0
"""A client that logs in again sooner than this after the last time is refused, as in Kafka."""

Dispatch = Callable[[Connection, memoryview], None]


@dataclass(frozen=True, slots=True)
class LoginLimits:
    max_frame: int
    """sasl.server.max.receive.size"""
    failure_delay: float
    """connection.failed.authentication.delay.ms, in seconds"""


class LoginGate:
    """One listener's; `offer` and `limits` may change while it is in use."""

    def __init__(
        self,
        listener: Listener,
        offer: Offer,
        limits: LoginLimits,
        principals: PrincipalBuilder,
        dispatch: Dispatch,
        clock: Clock,
        journal: LoginJournal,
    ) -> None:
        self.listener = listener
        self.offer = offer
        self.limits = limits
        self.principals = principals
        self.dispatch = dispatch
        self.clock = clock
        self.journal = journal
        self.waiting: set[asyncio.Task[None]] = set()
        """Logins that wait for something outside the loop; the loop itself holds tasks weakly."""

    def admit(self, connection: Connection) -> None:
        connection.login = ConnectionLogin(self, connection)


class _Stage(Enum):
    LOGGING_IN = auto()
    LOGGED_IN = auto()
    EXPIRED = auto()
    """The session is over; the next request must begin a new login."""
    REFUSED = auto()
    """The reply and the end of the connection wait for a while."""
    CLOSED = auto()


class ConnectionLogin:
    """How one connection logs in, again if it must, and for how long that counts."""

    def __init__(self, gate: LoginGate, connection: Connection) -> None:
        self._gate = gate
        self._connection = connection
        self._max_frame = connection.max_frame
        self._timer: Timer | None = None
        self._session_bounded = False
        self._last_begun: float | None = None
        self.grant: Grant | None = None
        self._begin()

    @property
    def by_token(self) -> bool:
        return self.grant is not None and self.grant.by_token

    def begin_again(self, frame: memoryview) -> bool:
        """A SaslHandshake on a connection that is logged in; False when it may not log in again now."""
        now = self._gate.clock.monotonic()
        if not self._session_bounded:
            return False
        if self._last_begun is not None and now - self._last_begun < LEAST_SECONDS_BETWEEN_LOGINS:
            return False
        self._last_begun = now
        self._begin()
        self._serve(self._connection, frame)
        return True

    def closed(self) -> None:
        """The connection is gone."""
        self._enter(_Stage.CLOSED)

    def _enter(self, stage: _Stage) -> None:
        self._stage = stage
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self) -> None:
        self._enter(_Stage.LOGGING_IN)
        gate, connection = self._gate, self._connection
        self._exchange = ClientLogin(gate.offer, gate.clock.now_ms, self.grant)
        connection.serve = self._serve
        connection.max_frame = gate.limits.max_frame
        self._timer = gate.clock.call_later(LOGIN_SECONDS, self._too_slow)

    def _too_slow(self) -> None:
        self._note(
            f"the client did not finish its login within {LOGIN_SECONDS:g} s", "look for what holds it up"
        )
        self._enter(_Stage.CLOSED)
        self._connection.mute()
        self._connection.transport.abort()

    def _serve(self, connection: Connection, frame: memoryview) -> None:
        try:
            reaction = self._exchange.take(frame)
        except WireError as error:
            self._note(
                f"it sent {error}",
                "set the client's security.protocol and sasl.mechanism to those of the listener",
            )
            self._fail(None)
            return
        if isinstance(reaction, PassOn):
            self._gate.dispatch(connection, frame)
        elif isinstance(reaction, Answer | Done | Failed):
            self._act(reaction)
        else:
            connection.mute()
            waiting = asyncio.get_running_loop().create_task(self._act_later(reaction))
            self._gate.waiting.add(waiting)
            waiting.add_done_callback(self._gate.waiting.discard)

    async def _act_later(self, pending: Awaitable[Reaction]) -> None:
        try:
            reaction = await pending
        except Exception:
            log.exception("a login failed inside the broker")
            self._connection.cut(FAILED_INSIDE)
            return
        if self._stage is _Stage.LOGGING_IN:
            self._act(reaction)
        if self._stage in (_Stage.LOGGING_IN, _Stage.LOGGED_IN):
            self._connection.unmute()

    def _act(self, reaction: Reaction) -> None:
        self._connection.min_frame = 0 if self._exchange.state is LoginState.BARE else 1
        if isinstance(reaction, Answer):
            self._connection.replies.send(reaction.frame)
        elif isinstance(reaction, Done):
            self._let_in(reaction)
        elif isinstance(reaction, Failed):
            self._note(reaction.refused.cause, reaction.refused.remedy)
            self._fail(reaction.frame)

    def _let_in(self, done: Done) -> None:
        gate, connection, grant = self._gate, self._connection, done.grant
        context = AuthenticationContext(
            gate.listener.name,
            gate.listener.protocol,
            connection.peer_host,
            connection.peer_certificate,
            grant.mechanism,
            grant.user,
        )
        try:
            principal = principal_of(gate.principals, context)
        except ValueError as error:
            self._note(str(error), "")
            self._fail(None)
        else:
            self._open(done, principal)

    def _open(self, done: Done, principal: str) -> None:
        self._enter(_Stage.LOGGED_IN)
        connection = self._connection
        self.grant = done.grant
        connection.identify(principal)
        connection.serve = self._gate.dispatch
        connection.max_frame = self._max_frame
        connection.replies.send(done.frame)
        self._session_bounded = done.session_ms is not None
        if done.session_ms is not None:
            self._timer = self._gate.clock.call_later(done.session_ms / 1000, self._expire)

    def _expire(self) -> None:
        self._enter(_Stage.EXPIRED)
        self._connection.serve = self._serve_after_expiry

    def _serve_after_expiry(self, connection: Connection, frame: memoryview) -> None:
        if read_request_start(frame)[0] == HANDSHAKE_KEY and self.begin_again(frame):
            return
        log.info(
            "closed the connection of %s from %s: its session on listener %s is over and it did not log in again",
            connection.principal,
            connection.peer_host,
            self._gate.listener.name,
        )
        connection.mute()
        connection.transport.abort()

    def _fail(self, reply: bytes | bytearray | None) -> None:
        """Hold the reply back for a while, so that guessing takes time, and close the connection."""
        self._enter(_Stage.REFUSED)
        self._connection.mute()
        self._connection.serve = _ignore
        self._timer = self._gate.clock.call_later(self._gate.limits.failure_delay, lambda: self._end(reply))

    def _end(self, reply: bytes | bytearray | None) -> None:
        self._enter(_Stage.CLOSED)
        if reply is not None:
            self._connection.replies.send(reply)
        self._connection.transport.close()

    def _note(self, cause: str, remedy: str) -> None:
        gate, exchange = self._gate, self._exchange
        gate.journal.failed(
            self._connection.peer_host, gate.listener.name, exchange.mechanism, exchange.user, cause, remedy
        )


def _ignore(connection: Connection, frame: memoryview) -> None:
    """The client was refused: whatever else it sends counts for nothing."""
