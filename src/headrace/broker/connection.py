"""One client connection: bytes in, whole frames to the dispatcher, replies out through the outbox.

Requests of a connection are served one at a time: while one waits, the connection is muted and later frames stay
in the buffer (the outbox keeps produces that only wait for replicas, so those do not mute). The buffer starts
small, grows with the bytes that arrive and never with the length a client announces, and shrinks again.

A frame is served from the transport or from the loop, never from inside a reply: whoever replies (a partition that
moves, a coordinator that stored something) may be in the middle of a change, so `unmute` and `drained` only see to it
that the loop comes back for the frames that are left.
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum, auto
from typing import Protocol, cast

from headrace.broker.buffers import BufferBudget
from headrace.broker.fairness import Fairness, Share
from headrace.broker.outbox import Outbox
from headrace.replica.turn import Turn
from headrace.wire.codec import WireError
from headrace.wire.frames import frame_length

log = logging.getLogger("headrace.network")

SMALL = 16 * 1024
LARGE_STEP = 1024 * 1024
MOST_WAITING = 1000
"""Replies that may wait for replicas on one connection before it is no longer read."""


class Listener(Protocol):
    """What a connection needs of the server that accepted it."""

    name: str
    max_request_bytes: int
    budget: BufferBudget
    fairness: Fairness
    turn: Turn

    def opened(self, connection: Connection) -> bool:
        """False when there is no room for one more connection."""
        ...

    def closed(self, connection: Connection) -> None: ...

    def make_outbox(self, connection: Connection, transport: asyncio.Transport) -> Outbox: ...

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        """Serve one frame; may mute the connection. The frame dies when this returns."""
        ...

    def monotonic(self) -> float: ...


class _Serving(Enum):
    """What happens to the frames in the buffer."""

    RESTING = auto()
    """Nothing, until bytes arrive or what they wait for is done."""
    DUE = auto()
    """The loop has been asked to serve them."""
    NOW = auto()
    """They are being served."""


class Connection(asyncio.BufferedProtocol):
    __slots__ = (
        "_buffer",
        "_end",
        "_listener",
        "_reading_paused",
        "_serving",
        "_start",
        "_view",
        "last_active",
        "muted",
        "outbox",
        "peer_host",
        "principal",
        "share",
        "software_name",
        "software_version",
        "transport",
    )

    transport: asyncio.Transport
    outbox: Outbox

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._buffer = bytearray(SMALL)
        self._view = memoryview(self._buffer)
        self._start = 0
        self._end = 0
        self._reading_paused = False
        self._serving = _Serving.RESTING
        self.share = Share(listener.fairness)
        self.muted = False
        self.principal = "User:ANONYMOUS"
        self.peer_host = ""
        self.software_name = ""
        self.software_version = ""
        self.last_active = listener.monotonic()

    @property
    def listener_name(self) -> str:
        return self._listener.name

    @property
    def served_all(self) -> bool:
        """No further frame has begun to arrive behind the one being served."""
        return self._start == self._end

    # From the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.peer_host = str(peer[0]) if isinstance(peer, tuple) else "local"
        self.outbox = self._listener.make_outbox(self, self.transport)
        if not self._listener.opened(self):
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.muted = True
        self.outbox.close()
        self._listener.budget.forget(self.parse)
        self._release_buffer(SMALL)
        self._listener.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        self.parse()
        if self.share.spend(nbytes) and not self._reading_paused and not self.transport.is_closing():
            self._pause_reading()
            self.share.give_way(self.parse)  # which reads on when there is room

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self.outbox.pause()

    def resume_writing(self) -> None:
        self.outbox.resume()

    # From the handlers.

    def mute(self) -> None:
        self.muted = True

    def unmute(self) -> None:
        """The request that waited has its reply; go on with the next frame, unless the peer is gone."""
        if self.transport.is_closing():
            return
        self.muted = False
        self._serve_soon()

    def drained(self) -> None:
        """From the outbox: nothing of a reply is left over; go on with the next frame."""
        if not self.muted:
            self._serve_soon()

    def _serve_soon(self) -> None:
        if self._start != self._end and self._serving is _Serving.RESTING:
            self._serving = _Serving.DUE
            asyncio.get_running_loop().call_soon(self.parse)

    def cut(self, reason: str) -> None:
        """Close the connection because of what the peer did, saying why once; what it sent after that is not served."""
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
        self.outbox.gather()
        try:
            self._serve_frames()
        finally:
            self._serving = _Serving.RESTING
            # Who waits for what was just written hears of it before the writer does.
            turn.end()
            self.outbox.release()

    def _serve_frames(self) -> None:
        listener, outbox = self._listener, self.outbox
        needed = 0
        while not (self.muted or outbox.blocked or outbox.waiting >= MOST_WAITING):
            available = self._end - self._start
            if available < 4:
                break
            size = frame_length(self._buffer, self._start)
            if size <= 0 or size > listener.max_request_bytes:
                self.cut(f"a request of {size} bytes, allowed are 1 to {listener.max_request_bytes}")
                return
            if available < 4 + size:
                needed = 4 + size
                break
            begin = self._start + 4
            self._start = begin + size
            self.last_active = listener.monotonic()
            frame = self._view[begin : self._start]
            try:
                listener.dispatch(self, frame)
            except WireError as error:
                self.cut(str(error))
                return
            except Exception:
                log.exception("a request failed inside the broker")
                self.cut("the request failed inside the broker; the log above says how")
                return
            finally:
                frame.release()
        if not self.transport.is_closing():
            self._make_room(needed)

    def _make_room(self, needed: int) -> None:
        """Leave free space at the end of the buffer, or stop reading until some frames are served."""
        held = self._end - self._start
        capacity = len(self._buffer)
        if held == 0:
            self._start = self._end = 0
        if held <= SMALL // 2 and capacity > SMALL and self._listener.budget.scarce:
            self._replace_buffer(SMALL)
            capacity = SMALL
        elif self._start and (self._end == capacity or self._start + needed > capacity):
            self._view[:held] = bytes(self._view[self._start : self._end])
            self._start, self._end = 0, held
        if self._end == len(self._buffer):
            wanted = min(needed, 2 * capacity, capacity + LARGE_STEP)
            if wanted > capacity and self._listener.budget.take(wanted - capacity, self):
                self._replace_buffer(wanted, taken=True)
            elif wanted > capacity:
                self._pause_reading()
                self._listener.budget.when_freed(self.parse)
                return
        if self._end < len(self._buffer):
            self._resume_reading()
        else:
            self._pause_reading()

    def _replace_buffer(self, capacity: int, taken: bool = False) -> None:
        held = bytes(self._view[self._start : self._end])
        if not taken:
            self._release_buffer(capacity)
        self._buffer = bytearray(capacity)
        self._view = memoryview(self._buffer)
        self._view[: len(held)] = held
        self._start, self._end = 0, len(held)

    def _release_buffer(self, down_to: int) -> None:
        if len(self._buffer) > down_to:
            self._listener.budget.give_back(len(self._buffer) - down_to, self)

    def _pause_reading(self) -> None:
        if not self._reading_paused:
            self._reading_paused = True
            self.transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._reading_paused:
            self._reading_paused = False
            self.transport.resume_reading()

    def shrink(self) -> None:
        """Called now and then by the server: an idle connection keeps only a small buffer."""
        if self._end == self._start and len(self._buffer) > SMALL:
            self._replace_buffer(SMALL)
