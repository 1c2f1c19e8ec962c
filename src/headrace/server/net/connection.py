"""One client connection: bytes in, whole frames to the dispatcher, replies out through the reply queue.

Requests of a connection are served one at a time: while one waits, the connection is muted and later frames stay
in the buffer (the reply queue keeps produces that only wait for replicas, so those do not mute). The memory of the buffer grows
with the bytes that arrive and never with the length a client announces, and shrinks again.

A frame is served from the transport or from the loop, never from inside a reply: the caller that replies (a partition that
moves, a coordinator that stored something) may be in the middle of a change, so `unmute` and `drained` only see to it
that the loop comes back for the frames that are left.
"""

from __future__ import annotations

import asyncio
import logging
import math
from bisect import bisect_left
from collections.abc import Callable, Hashable
from enum import Enum, auto
from typing import Protocol, cast

from headrace.clock import Timer
from headrace.server.net.buffers import BufferBudget
from headrace.server.net.fairness import Fairness, Share
from headrace.server.net.receive_buffer import SMALL, ReceiveBuffer
from headrace.server.net.reply_queue import ReplyQueue
from headrace.server.net.request_times import (
    BOUNDS,
    FETCH,
    FOLLOWER_FETCH,
    SASL_AUTHENTICATE,
    RequestStatistics,
    Underway,
)
from headrace.server.quotas.client_quotas import Allowance
from headrace.server.replica.fetching import Permission
from headrace.server.replica.turn import Turn
from headrace.server.security.principals import ANONYMOUS
from headrace.wire.codec import WireError
from headrace.wire.frames import frame_length

log = logging.getLogger(__name__)

FAILED_INSIDE = "the request failed inside the broker; the log above says how"
"""Why a connection is cut when a request cannot be answered."""

_NEVER = math.inf

MOST_WAITING = 1000
"""Replies that may wait for replicas on one connection before it is no longer read."""


class Listener(Protocol):
    """What a connection needs of the server that accepted it."""

    name: str
    max_request_bytes: int
    budget: BufferBudget
    fairness: Fairness
    turn: Turn
    requests: RequestStatistics

    def opened(self, connection: Connection) -> bool:
        """False when there is no room for one more connection."""
        ...

    def closed(self, connection: Connection) -> None: ...

    def refuse(self, connection: Connection, sentence: str) -> None:
        """End a connection for a reason that the log names seldom enough."""
        ...

    def make_replies(self, connection: Connection, transport: asyncio.Transport) -> ReplyQueue: ...

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        """Serve one frame; may mute the connection. The frame is valid only until this returns."""
        ...

    def monotonic(self) -> float: ...

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer: ...


class Repeated(Protocol):
    """Requests of one API that a connection is likely to send again, ready to be served without being decoded."""

    def serve(self, connection: Connection, frame: memoryview) -> bool:
        """Whether the frame is such a request again, and served."""
        ...


_TLS_HANDSHAKE = 0x1603
"""How a TLS client's first message begins, if one reads it as the length of a request."""


_TLS_TO_PLAINTEXT = (
    "it spoke TLS to a plaintext listener; set security.protocol=PLAINTEXT (or SASL_PLAINTEXT) at the client, or give it the "
    "port of a TLS listener"
)


class Login(Protocol):
    """How the peer of a connection logged in, or does so now."""

    @property
    def by_token(self) -> bool:
        """With a delegation token."""
        ...

    def begin_again(self, frame: memoryview) -> bool:
        """Serve a SaslHandshake of a peer that is logged in; False when it may not log in again now."""
        ...

    def closed(self) -> None: ...


class _Serving(Enum):
    """What happens to the frames in the buffer."""

    RESTING = auto()
    """Nothing, until bytes arrive or what they wait for is done."""
    DUE = auto()
    """The loop has been asked to serve them."""
    NOW = auto()
    """They are being served."""


class Connection:
    """An `asyncio.BufferedProtocol` by its methods, which are all that uvloop asks for. It does not derive from that class, so that it can
    be compiled into one whose attributes are at fixed places."""

    __slots__ = (
        "_arrived",
        "_inbox",
        "_listener",
        "_reading_paused",
        "_request_waits",
        "_serving",
        "_throttle",
        "_throttled_until",
        "_underway",
        "allowance",
        "bytes_received",
        "client_id",
        "is_follower",
        "last_active",
        "login",
        "max_frame",
        "min_frame",
        "muted",
        "peer_certificate",
        "peer_host",
        "peer_port",
        "permissions",
        "principal",
        "repeated",
        "replies",
        "requests",
        "serve",
        "share",
        "since",
        "software_name",
        "software_version",
        "transport",
        "when_lost",
    )

    transport: asyncio.Transport
    replies: ReplyQueue

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._inbox = ReceiveBuffer()
        self._reading_paused = False
        self._serving = _Serving.RESTING
        self.share = Share(listener.fairness)
        self._arrived = 0.0
        """When the first frame came that is not served yet; 0 when there is none."""
        self._underway: Underway | None = None
        """The request that muted the connection."""
        self.muted = False
        """No frame is served now: a request waits, the client is throttled, or the peer is gone."""
        self._request_waits = False
        self._throttle: Timer | None = None
        """Runs until the client has waited for as long as its quota asks for."""
        self._throttled_until = 0.0
        self.identify(ANONYMOUS)
        self.login: Login | None = None
        """None where nobody has to log in."""
        self.serve: Callable[[Connection, memoryview], None] = listener.dispatch
        """Serves each frame. A connection that has to log in first has another one until it has done so."""
        self.min_frame = 1
        """0 while the frames are a login's bare messages, which may be empty."""
        self.max_frame = listener.max_request_bytes
        self.is_follower = False
        """Its fetches are those of a replica."""
        self.peer_host = ""
        self.peer_port = 0
        self.peer_certificate: bytes | None = None
        """The certificate the client showed, DER, if it did and it is trusted."""
        self.software_name = ""
        self.software_version = ""
        self.client_id = ""
        """The client's name for itself, in its last request."""
        self.when_lost: dict[Hashable, Callable[[], None]] = {}
        """What must end with the connection, such as share sessions."""
        self.requests = 0
        """Whole frames served, a login's included."""
        self.bytes_received = 0
        self.since = self.last_active = listener.monotonic()

    def identify(self, principal: str) -> None:
        """The peer is `principal` from now on; what was remembered for another one no longer counts."""
        self.principal = principal
        self.repeated: dict[int, Repeated] = {}
        """By API key."""
        self.permissions: dict[int, Permission] = {}
        """Topics that the client may use, by operation * 2, and 1 where they are named by id (`api/topic_permissions.py`)."""
        self.allowance: Allowance | None = None
        """The client's quotas, once they were looked up (`api/metering.py`)."""

    @property
    def listener_name(self) -> str:
        return self._listener.name

    @property
    def served_all(self) -> bool:
        """No further frame has begun to arrive behind the one being served."""
        return self._inbox.start == self._inbox.end

    # From the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self.peer_host, self.peer_port = str(peer[0]), int(peer[1])
        else:
            self.peer_host = "local"
        self.replies = self._listener.make_replies(self, self.transport)
        if not self._listener.opened(self):
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.muted = True
        self.repeated = {}
        self.permissions = {}  # they refer back to this connection
        if self._throttle is not None:
            self._throttle.cancel()
        self.replies.close()
        when_lost, self.when_lost = self.when_lost, {}
        for end in when_lost.values():
            end()
        if self.login is not None:
            self.login.closed()
        self._listener.budget.give_back(self)
        self._listener.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        inbox = self._inbox
        return inbox.view[inbox.end : inbox.paid]

    def buffer_updated(self, nbytes: int) -> None:
        self._inbox.end += nbytes
        self.bytes_received += nbytes
        self.parse()
        if self.share.spend(nbytes) and not self._reading_paused and not self.transport.is_closing():
            self._pause_reading()
            self.share.give_way(self.parse)  # which reads on when there is room

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self.replies.pause()

    def resume_writing(self) -> None:
        self.replies.resume()

    # From the handlers.

    def mute(self) -> None:
        """A request waits for its reply."""
        self._request_waits = True
        self.muted = True

    def unmute(self) -> None:
        """The request that waited has its reply; go on with the next frame."""
        self._request_waits = False
        if self._underway is not None:
            self.replies.account_for(self._underway)
            self._underway = None
        self._listen_again()

    def throttle(self, seconds: float) -> None:
        """Serve no further frame for so long, whatever else there is to wait for."""
        until = self._listener.monotonic() + seconds
        if self.transport.is_closing() or (self._throttle is not None and until <= self._throttled_until):
            return
        if self._throttle is not None:
            self._throttle.cancel()
        self.muted = True
        self._throttled_until = until
        self._throttle = self._listener.call_later(seconds, self._throttle_over)

    def _throttle_over(self) -> None:
        self._throttle = None
        self.last_active = self._listener.monotonic()  # It was not idle: it had to wait.
        self._listen_again()

    def _listen_again(self) -> None:
        """Unless there is something else to wait for, or the peer is gone."""
        if self._request_waits or self._throttle is not None or self.transport.is_closing():
            return
        self.muted = False
        self._serve_soon()

    def drained(self) -> None:
        """From the reply queue: every reply has been written; continue with the next frame."""
        if not self.muted:
            self._serve_soon()

    def _serve_soon(self) -> None:
        if not self.served_all and self._serving is _Serving.RESTING:
            self._serving = _Serving.DUE
            asyncio.get_running_loop().call_soon(self.parse)

    def cut(self, reason: str) -> None:
        """Close the connection because of an error of the peer, and log the reason once; frames after it are not served."""
        self.muted = True
        if not self.transport.is_closing():
            log.warning("closed connection from %s: %s", self.peer_host, reason)
            self.transport.abort()

    def parse(self) -> None:
        """Serve whole frames until there is none, or the connection must wait."""
        if self._serving is _Serving.NOW:
            return
        self._serving = _Serving.NOW
        turn = self._listener.turn
        turn.begin()
        self.replies.gather()
        try:
            self._serve_frames()
        finally:
            self._serving = _Serving.RESTING
            # Wake waiting readers before replying to the writer.
            turn.end()
            self.replies.release()

    def _serve_frames(self) -> None:
        listener, replies, inbox = self._listener, self.replies, self._inbox
        requests = listener.requests
        logs_slow = requests.slow_seconds < _NEVER
        needed = 0
        # Requests of one API that are served one after the other are timed together: a look at the clock costs as much as
        # counting them.
        run, running, client = 0, -1, ""
        began = requests.now()
        arrived = self._arrived or began
        busy = replies.busy
        while not self.muted:
            if busy and (replies.blocked or replies.waiting >= MOST_WAITING):
                break
            start = inbox.start
            available = inbox.end - start
            if available < 4:
                break
            view = inbox.view
            size = frame_length(view, start)
            if size < self.min_frame or size > self.max_frame:
                self._refuse_length(size)
                return
            if available < 4 + size:
                needed = 4 + size
                break
            # A login's bare messages have no header. No key is larger than a byte.
            key = view[start + 5] if size > 1 and self.min_frame else SASL_AUTHENTICATE
            if key != running or logs_slow:
                if run:
                    began = self._account(running, run, arrived, began, client)
                    run = 0
                running = key
                if logs_slow:
                    client = self._client(view, start, size)
            inbox.start = start + 4 + size
            self.requests += 1
            self.last_active = began
            frame = view[start + 4 : inbox.start]
            try:
                self.serve(self, frame)
            except WireError as error:
                self.cut(str(error))
                return
            except Exception:
                log.exception("a request failed inside the broker")
                self.cut(FAILED_INSIDE)
                return
            finally:
                frame.release()
            run += 1
            busy = replies.busy
            if busy or self._request_waits:
                began = self._account_for_last(running, run, arrived, began, client)
                run = 0
        if run == 1 and began == arrived and running != FETCH and not logs_slow:
            # What `_account` would do, for a client that waits for each reply.
            local = requests.now() - began
            spread = requests[running].at_once
            spread.buckets[bisect_left(BOUNDS, local)] += 1
            spread.sum += local
        elif run:
            self._account(running, run, arrived, began, client)
        self._arrived = 0.0 if needed or inbox.end - inbox.start < 4 else arrived
        if not self.transport.is_closing():
            self._make_room(needed)

    def _account(self, key: int, run: int, arrived: float, began: float, client: str) -> float:
        """`run` requests of one API have been served and answered since `began`. Returns the time."""
        requests = self._listener.requests
        now = requests.now()
        local = (now - began) / run
        queued = began - arrived
        if run > 1:
            queued += local * (run - 1) / 2
        times = requests[FOLLOWER_FETCH if key == FETCH and self.is_follower else key]
        if queued > 0.0:
            times.served(run, queued, local)
        else:
            times.at_once.add(local, run)
        if queued + local > requests.slow_seconds:
            requests.report(key, client, queued + local, queued, local)
        return now

    def _account_for_last(self, key: int, run: int, arrived: float, began: float, client: str) -> float:
        """The same, but the last of them has not been answered, or its reply has not left."""
        now = began if run == 1 else self._account(key, run - 1, arrived, began, client)
        requests = self._listener.requests
        times = requests[FOLLOWER_FETCH if key == FETCH and self.is_follower else key]
        queued, served = now - arrived, requests.now()
        underway = Underway(requests, times, queued, served - now, served, client)
        if self._request_waits:
            self._underway = underway
        else:
            self.replies.account_for(underway)
        return served

    def _client(self, view: memoryview, start: int, size: int) -> str:
        """Who sent the request at `start`, for the log of slow requests."""
        name = ""
        length = int.from_bytes(view[start + 12 : start + 14], "big", signed=True)
        if self.min_frame and size >= 10 + max(length, 0):
            name = f" ({bytes(view[start + 14 : start + 14 + max(length, 0)]).decode('utf-8', 'replace')})"
        return f"{self.principal} at {self.peer_host}{name}"

    def _refuse_length(self, size: int) -> None:
        if size >> 16 == _TLS_HANDSHAKE:
            self.muted = True
            self._listener.refuse(self, _TLS_TO_PLAINTEXT)
        else:
            self.cut(f"a request of {size} bytes, allowed are {self.min_frame} to {self.max_frame}")

    def _make_room(self, needed: int) -> None:
        """Leave free space at the end of the buffer, or stop reading until some frames are served."""
        inbox, budget = self._inbox, self._listener.budget
        if (
            inbox.paid > SMALL
            and inbox.end - inbox.start <= SMALL // 2
            and (budget.scarce or budget.lends_to(self))
        ):
            inbox.shrink()
            budget.give_back(self)
        inbox.make_contiguous(needed)
        if inbox.end == inbox.paid:
            step = inbox.next_step(needed)
            if step > inbox.paid:
                if not budget.take(step - inbox.paid, self):
                    self._pause_reading()
                    return
                try:
                    inbox.pay(step, needed)
                except MemoryError as error:
                    self.cut(str(error))
                    return
                self.last_active = self._listener.monotonic()
        if inbox.end < inbox.paid:
            self._resume_reading()
        else:
            self._pause_reading()

    def _pause_reading(self) -> None:
        if not self._reading_paused:
            self._reading_paused = True
            self.transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._reading_paused:
            self._reading_paused = False
            self.transport.resume_reading()

    # From the budget.

    @property
    def progress(self) -> tuple[float, int] | None:
        held = self._inbox.end - self._inbox.start
        if held == 0 or self.muted or self._reading_paused or self.replies.blocked:
            return None
        return self.last_active, held

    def memory_freed(self) -> None:
        self.parse()

    def shrink(self) -> None:
        """An idle connection keeps only a small buffer; the server reclaims the rest from time to time."""
        inbox = self._inbox
        if inbox.end == inbox.start and inbox.paid > SMALL:
            inbox.shrink()
            self._listener.budget.give_back(self)
