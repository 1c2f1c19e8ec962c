"""What leaves a connection: replies in the order of their requests, file slices in pieces as the peer takes them.

A reply may be ready later than the ones behind it (acks=all waits for replicas); it keeps its place. Slices of log
files are read piece by piece, each written at once so that the client already receives while the next is read. A large
reply, of many partitions, goes from the page cache to the socket inside the kernel: that takes half the broker's time,
and its reader, which has to fetch it from memory instead of a warm cache, is busy with the other partitions anyway. So does
every slice for a peer that moves much while others ask little: copying pages that just came from a disk took a third of
the loop's time.
A piece that is not in the page cache is read by a thread, so the loop never waits for a disk; and nothing is read
while the peer's window is full, so a slow reader costs no memory.

Nothing here serves a request: the caller may be in the middle of a change, and must not find a later request
served when the call returns. `on_drained` only says that the connection may go on, soon.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from enum import Enum, auto

from headrace.server.net.fairness import Share
from headrace.server.net.request_times import Underway
from headrace.wire.fetch import Part, Slice

log = logging.getLogger(__name__)

PIECE = 128 * 1024
LARGE = 1024 * 1024
"""A reply with more than this of log files is a large one: more than a client asks of one partition."""
SENT_AT_ONCE = 256 * 1024
"""How much of a file the kernel is asked to send in one call."""
LEAST_SENT = 32 * 1024
"""Below this, copying costs less than asking the kernel."""
FEELER = 16 * 1024
"""What is written when the peer's window is full, so that the transport reports when there is room again."""
GATHER_MOST = 8 * 1024
"""How much of small replies may be held back while more requests are being served."""


class Reply:
    """A place in the order of replies; `parts` is None until the reply is known."""

    __slots__ = ("parts", "underway")

    def __init__(self) -> None:
        self.parts: Sequence[Part] | None = None
        self.underway: Underway | None = None
        """The request it answers, whose times are still to be completed."""


class Pieces:
    """Buffers to put pieces together in: making a new one for each would cost as much as filling it.

    They belong to one event loop. A buffer comes back only when the kernel has taken all of it.
    """

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def take(self) -> bytearray:
        return self._free.pop() if self._free else bytearray(PIECE)

    def give_back(self, piece: bytearray) -> None:
        if len(self._free) < 4:
            self._free.append(piece)


class _Pump(Enum):
    """What triggers the next piece."""

    READY = auto()
    """The caller that has something to send, at once."""
    READING = auto()
    """The thread that reads it, when it is done."""
    YIELDED = auto()
    """The next turn: other connections are served first."""
    CLOSED = auto()
    """Nothing: the peer is gone, or is being disconnected."""


class ReplyQueue:
    def __init__(
        self,
        transport: asyncio.Transport,
        disk: Executor,
        on_drained: Callable[[], None],
        on_failure: Callable[[str], None],
        share: Share,
        pieces: Pieces | None = None,
        socket: int | None = None,
    ) -> None:
        """With the descriptor of the transport's `socket`, files may be sent past the transport."""
        self._transport = transport
        self._socket = socket
        if socket is not None:
            transport.set_write_buffer_limits(high=0)  # A byte left over is ahead of any file.
        self._disk = disk
        self._on_drained = on_drained
        self._on_failure = on_failure
        self._share = share
        self._pieces = pieces or Pieces()
        self._replies: deque[Reply] = deque()
        self._parts: deque[Part] = deque()
        self._sending: Reply | None = None
        """The reply that `_parts` is what is left of."""
        self._position = 0
        self._large = False
        self._paused = False
        """The peer's window is full: the transport's word, whatever the pump does."""
        self._pump_state = _Pump.READY
        self._gathering = False
        self._gathered: list[bytes | bytearray] = []
        self._gathered_size = 0
        self.bytes_sent = 0

    @property
    def waiting(self) -> int:
        """How many replies are reserved and not yet on their way."""
        return len(self._replies)

    @property
    def blocked(self) -> bool:
        """Bytes are left over that the peer does not take now."""
        return self._paused or bool(self._parts)

    @property
    def busy(self) -> bool:
        """Whether a reply is not written yet, or could not be now."""
        return bool(self._replies or self._parts or self._paused)

    def account_for(self, underway: Underway) -> None:
        """Complete the times of the request that was served last: now, if its reply has left, or as its reply goes on its way."""
        reply = self._replies[-1] if self._replies else self._sending
        if reply is None or reply.underway is not None:  # It has left, or there is none: acks=0.
            underway.answered()
            underway.sent()
            return
        reply.underway = underway
        if reply.parts is not None:
            underway.answered()

    def gather(self) -> None:
        """Collect small replies until `release`: requests that arrive together are answered in one write."""
        self._gathering = True

    def release(self) -> None:
        self._gathering = False
        self._write_gathered()

    def send(self, data: bytes | bytearray) -> None:
        """Reply at once when nothing is ahead of it."""
        if self._pump_state is _Pump.CLOSED:
            return
        if self._replies or self._parts:
            reply = Reply()
            reply.parts = (data,)
            self._replies.append(reply)
            self._pump()
            return
        self.bytes_sent += len(data)
        if self._gathering:
            self._gathered.append(data)
            self._gathered_size += len(data)
            if self._gathered_size >= GATHER_MOST:
                self._write_gathered()
        else:
            self._transport.write(data)

    def _write_gathered(self) -> None:
        gathered = self._gathered
        if gathered:
            self._transport.write(gathered[0] if len(gathered) == 1 else b"".join(gathered))
            gathered.clear()
            self._gathered_size = 0

    def send_parts(self, parts: Sequence[Part]) -> None:
        if len(parts) == 1 and isinstance(parts[0], bytes | bytearray):
            self.send(parts[0])
        else:
            self.resolve(self.reserve(), parts)

    def reserve(self) -> Reply:
        reply = Reply()
        self._replies.append(reply)
        return reply

    def resolve(self, reply: Reply, parts: Sequence[Part]) -> None:
        if self._pump_state is _Pump.CLOSED:
            return
        if reply.parts is not None:
            log.error("a reply was given twice")
            self._fail("a request was answered twice; the log above says how")
            return
        reply.parts = parts
        if reply.underway is not None:
            reply.underway.answered()
        if self._replies[0] is reply:
            self._pump()

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._pump()

    def close(self) -> None:
        self._pump_state = _Pump.CLOSED
        self._parts.clear()
        self._replies.clear()
        self._gathered.clear()

    def _fail(self, reason: str) -> None:
        self.close()
        self._on_failure(reason)

    def _pump(self) -> None:
        """Write until everything ready is out, the peer's window is full or a disk read is needed."""
        if self._pump_state is not _Pump.READY:
            return
        self._write_gathered()
        while not self._paused:
            if not self._parts:
                if not self._replies or self._replies[0].parts is None:
                    break
                self._begin(self._replies.popleft())
                if not self._parts:
                    self._finish()
                continue
            count = self._write_piece()
            if count is None:
                return
            self.bytes_sent += count
            if not self._parts:
                self._finish()
            # Sending costs a quarter to a half of what receiving, checking and writing does.
            if self._share.spend(count // 4) and self._parts:
                self._pump_state = _Pump.YIELDED
                self._share.give_way(self._go_on)
                return
        if not self.blocked:
            self._on_drained()

    def _begin(self, reply: Reply) -> None:
        parts = reply.parts or ()
        self._sending = reply
        if reply.underway is not None:
            reply.underway.sends()
        self._parts.extend(parts)
        self._large = sum(part.size for part in parts if not isinstance(part, bytes | bytearray)) > LARGE

    def _finish(self) -> None:
        """All of a reply has been handed to the transport."""
        reply, self._sending = self._sending, None
        if reply is not None and reply.underway is not None:
            reply.underway.sent()

    def _go_on(self) -> None:
        if self._pump_state is _Pump.YIELDED:
            self._pump_state = _Pump.READY
            self._pump()

    def _write_piece(self) -> int | None:
        """Put the next parts together, small headers and slices alike, and write them at once.

        Returns how much that was; None when a thread has to fetch it first, or it cannot be read.
        """
        most = PIECE
        part = self._parts[0]
        socket = self._socket if self._large or self._share.hurried else None
        if socket is not None and not isinstance(part, bytes | bytearray):
            sent = self._send_slice(part, socket)
            if sent:
                return sent
            if sent is not None:
                most = FEELER
        piece = self._pieces.take()
        view = memoryview(piece)
        filled = 0
        while self._parts and filled < most:
            part = self._parts[0]
            if isinstance(part, bytes | bytearray):
                if len(part) > PIECE - filled:
                    if filled == 0:
                        self._parts.popleft()
                        self._transport.write(part)
                        return len(part)
                    break
                view[filled : filled + len(part)] = part
                filled += len(part)
                self._parts.popleft()
                continue
            if filled and socket is not None and part.size >= LEAST_SENT:
                break
            size = min(most - filled, part.size - self._position)
            assert part.handle is not None
            try:
                count = part.handle.read_into(
                    view[filled : filled + size], part.position + self._position, nowait=True
                )
            except BlockingIOError:
                if filled == 0:
                    self._fetch(part, size)
                    return None
                break
            except OSError as error:
                self._fail(f"a log file could not be read: {error}")
                return None
            if not self._advance(part, count):
                return None
            filled += count
            if count < size:
                break
        self._transport.write(view[:filled])
        if not self._transport.get_write_buffer_size():
            self._pieces.give_back(piece)
        return filled

    def _send_slice(self, part: Slice, socket: int) -> int | None:
        """Let the kernel send what the peer takes: 0 when it is full, None when the slice has to be read here."""
        size = min(part.size - self._position, SENT_AT_ONCE)
        handle, start = part.handle, part.position + self._position
        assert handle is not None
        if size < LEAST_SENT or self._transport.get_write_buffer_size() or not handle.is_cached(start, size):
            return None
        try:
            count = handle.send_to(socket, start, size)
        except BlockingIOError:
            return 0
        except OSError:
            return None  # The read reports what is wrong; if the peer is gone, the transport notices.
        return count if count and self._advance(part, count) else None

    def _advance(self, part: Slice, count: int) -> bool:
        """False when there is nothing more to read: a truncation removed it while the reply was on its way."""
        if count == 0:
            self._fail("a log file is shorter than its index says")
            return False
        self._position += count
        if self._position >= part.size:
            self._parts.popleft()
            self._position = 0
        return True

    def _fetch(self, part: Slice, size: int) -> None:
        self._pump_state = _Pump.READING
        assert part.handle is not None
        piece = bytearray(size)
        loop = asyncio.get_running_loop()
        start = part.position + self._position
        future = loop.run_in_executor(self._disk, part.handle.read_into, piece, start)

        def arrived(done: asyncio.Future[int]) -> None:
            if self._pump_state is not _Pump.READING:
                return
            self._pump_state = _Pump.READY
            try:
                count = done.result()
            except OSError as error:
                self._fail(f"a log file could not be read: {error}")
                return
            if self._advance(part, count):
                self.bytes_sent += count
                self._transport.write(memoryview(piece)[:count])
                if not self._parts:
                    self._finish()
                self._pump()

        future.add_done_callback(arrived)
