"""TLS between a socket's transport and a protocol of ours: ciphertext below, the protocol's own buffer above.

All streams of a loop share one buffer for ciphertext: the loop fills it and hands it over in one go, and what it held is in the
stream's memory BIO, or decrypted, before the next stream uses it. Decrypted bytes go straight into the buffer of the protocol, record
after record until it is full, and then the protocol is told once. What is written is encrypted in pieces, so that no BIO, whose
memory is never given back, grows beyond a piece.

The steps of a handshake run in threads: a signature takes as long as serving several requests, and OpenSSL lets other threads run
meanwhile. While a thread works, nobody else touches the BIOs; bytes that arrive then are kept apart.
"""

from __future__ import annotations

import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor
from enum import Enum, auto
from typing import Protocol, cast
from weakref import WeakKeyDictionary

CIPHERTEXT = 128 * 1024
"""The shared buffer: the most that is received at once."""
PIECE = 128 * 1024
"""The most that is encrypted at once."""
HANDSHAKE_THREADS = 2
MOST_EARLY = 64 * 1024
"""How much a peer may send ahead of a handshake that is not its turn yet; more is not read."""


class TlsState(Enum):
    HELD = auto()
    """The handshake has not begun: `begin` starts it."""
    HANDSHAKING = auto()
    """The handshake waits for the peer."""
    COMPUTING = auto()
    """A thread computes a step of the handshake."""
    LOST = auto()
    """The connection ended while a thread still computed, which will tell why."""
    OPEN = auto()
    CLOSED = auto()


class TlsWorkshop:
    """What all streams of a loop share: the buffer that ciphertext arrives in, and the threads for handshakes."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(HANDSHAKE_THREADS, "tls-handshake")
        self.ciphertext = memoryview(bytearray(CIPHERTEXT))

    @staticmethod
    def of_running_loop() -> TlsWorkshop:
        loop = asyncio.get_running_loop()
        found = _workshops.get(loop)
        if found is None:
            found = _workshops[loop] = TlsWorkshop()
        return found


_workshops: WeakKeyDictionary[asyncio.AbstractEventLoop, TlsWorkshop] = WeakKeyDictionary()


class Outcome(Protocol):
    """Hears once how the handshake ended, and what ended an open stream besides the peer's leaving."""

    def secured(self, stream: TlsStream) -> None: ...

    def failed(self, stream: TlsStream, error: BaseException) -> None: ...


class TlsStream(asyncio.BufferedProtocol, asyncio.Transport):
    """A protocol to the socket's transport, and a transport to the protocol inside."""

    __slots__ = (
        "_early",
        "_incoming",
        "_inner",
        "_outcome",
        "_outgoing",
        "_raw",
        "_reading",
        "_ssl",
        "_workshop",
        "first_bytes",
        "state",
    )

    _raw: asyncio.Transport

    def __init__(
        self,
        inner: asyncio.BufferedProtocol,
        context: ssl.SSLContext,
        outcome: Outcome,
        *,
        server_hostname: str | None = None,
    ) -> None:
        """A client names the server, in `server_hostname`; without it this is the server's side."""
        self._inner = inner
        self._workshop = TlsWorkshop.of_running_loop()
        self._outcome = outcome
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=server_hostname is None,
            server_hostname=server_hostname,
        )
        self._early = b""
        self.first_bytes = b""
        """What the peer said first: it tells a plaintext client from a TLS one."""
        self._reading = True
        self.state = TlsState.HELD

    @property
    def ssl(self) -> ssl.SSLObject:
        return self._ssl

    @property
    def outcome(self) -> Outcome:
        return self._outcome

    def begin(self) -> None:
        """Start the handshake: the client speaks first."""
        if self.state is TlsState.HELD:
            if self._early or not self._ssl.server_side:
                self._compute()
            else:
                self.state = TlsState.HANDSHAKING

    # From the socket's transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast(asyncio.Transport, transport)
        self._inner.connection_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        inner = self._inner
        if self.state is TlsState.COMPUTING:
            self.state = TlsState.LOST
        else:
            if self.state in (TlsState.HELD, TlsState.HANDSHAKING):
                self._fail(exc or ConnectionResetError("the peer closed the connection"))
            self.state = TlsState.CLOSED
            del self._outcome
        # No cycle is left behind: an SSL object holds too much memory to wait for the collector.
        del self._inner, self._ssl, self._incoming, self._outgoing
        inner.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._workshop.ciphertext

    def buffer_updated(self, nbytes: int) -> None:
        received = self._workshop.ciphertext
        state = self.state
        if state is TlsState.OPEN:
            self._incoming.write(received[:nbytes])
            self._deliver()
        elif state is not TlsState.CLOSED:
            self._early += received[:nbytes]
            self.first_bytes = self.first_bytes or self._early[:5]
            if len(self._early) >= MOST_EARLY:
                self._raw.pause_reading()
            if state is TlsState.HANDSHAKING:
                self._compute()

    def eof_received(self) -> bool:
        if self.state is TlsState.OPEN:
            self._inner.eof_received()
        return False

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    # The handshake.

    def _compute(self) -> None:
        self.state = TlsState.COMPUTING
        self._take_early()
        step = asyncio.get_running_loop().run_in_executor(self._workshop.threads, _step, self._ssl)
        step.add_done_callback(self._computed)

    def _take_early(self) -> None:
        if self._early:
            early, self._early = self._early, b""
            self._incoming.write(early)
            if len(early) >= MOST_EARLY and self._reading:
                self._raw.resume_reading()

    def _computed(self, step: asyncio.Future[bool]) -> None:
        error = None if step.cancelled() else step.exception()
        if self.state is TlsState.LOST:
            self.state = TlsState.CLOSED
            outcome = self._outcome
            del self._outcome
            outcome.failed(self, error or ConnectionResetError("the peer closed the connection"))
            return
        if self.state is not TlsState.COMPUTING or step.cancelled():
            return
        self._flush()
        if error is not None:
            self._fail(error)
        elif step.result():
            self.state = TlsState.OPEN
            self._outcome.secured(self)
            if self.state is TlsState.OPEN:
                self._take_early()
                self._deliver()
        elif self._early:
            self._compute()
        else:
            self.state = TlsState.HANDSHAKING

    def _fail(self, error: BaseException) -> None:
        """End the stream. An alert that says why is on its way already, if there is one."""
        self.state = TlsState.CLOSED
        self._outcome.failed(self, error)
        self._raw.close()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._raw.write(self._outgoing.read())

    # Records.

    def _deliver(self) -> None:
        """Decrypt what has arrived, for as long as the protocol inside takes it."""
        incoming = self._incoming
        while self._reading and self.state is TlsState.OPEN:
            buffer = memoryview(self._inner.get_buffer(-1))
            if not buffer or self._raw.is_closing():
                return  # The connection is being lost, and nobody takes what is left of it.
            filled = self._decrypt_into(buffer)
            if filled:
                self._inner.buffer_updated(filled)
            if (
                filled < len(buffer)
                or self.state is not TlsState.OPEN
                or not (incoming.pending or self._ssl.pending())
            ):
                return

    def _decrypt_into(self, buffer: memoryview) -> int:
        """Fill the buffer with whole records, as far as they are here."""
        tls, incoming, room = self._ssl, self._incoming, len(buffer)
        filled = 0
        try:
            while filled < room:
                count = cast(int, tls.read(room - filled, buffer[filled:]))
                if not count:
                    self._peer_left(buffer, filled)
                    return 0
                filled += count
                if not incoming.pending and filled < room:
                    break
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self._flush()
            self._fail(error)
            return 0
        if self._outgoing.pending:  # A reply to a key update.
            self._flush()
        return filled

    def _peer_left(self, buffer: memoryview, filled: int) -> None:
        """The peer said that it sends no more: as at the end of a plain connection, everything sent before counts."""
        if filled:
            self._inner.buffer_updated(filled)
        if self.state is TlsState.OPEN:
            self._inner.eof_received()
            self.close()

    # For the protocol inside.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.state is not TlsState.OPEN:
            return
        if len(data) <= PIECE:
            self._ssl.write(data)
            self._raw.write(self._outgoing.read())
            return
        view = memoryview(data)
        records = []
        for start in range(0, len(view), PIECE):
            self._ssl.write(view[start : start + PIECE])
            records.append(self._outgoing.read())
        self._raw.writelines(records)

    def get_write_buffer_size(self) -> int:
        return self._raw.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._raw.set_write_buffer_limits(high, low)

    def pause_reading(self) -> None:
        self._reading = False
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._reading = True
        self._raw.resume_reading()
        if self.state is TlsState.OPEN and (self._incoming.pending or self._ssl.pending()):
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        if self.state is TlsState.OPEN:
            self._deliver()

    def is_closing(self) -> bool:
        return self._raw.is_closing()

    def close(self) -> None:
        """Say goodbye and close when everything written is on its way."""
        if self.state is TlsState.OPEN:
            try:
                self._ssl.unwrap()
            except ssl.SSLError:
                pass  # The peer's goodbye is not waited for.
            self._flush()
        self._end()
        self._raw.close()

    def abort(self) -> None:
        self._end()
        self._raw.abort()

    def _end(self) -> None:
        if self.state is not TlsState.LOST:
            self.state = TlsState.CLOSED

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._raw.get_extra_info(name, default)


def _step(handshake: ssl.SSLObject) -> bool:
    """In a thread: whether the handshake is done; False when the peer must say more."""
    try:
        handshake.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
