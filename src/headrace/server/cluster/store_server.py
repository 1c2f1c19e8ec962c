"""Serves the embedded store to the brokers of one machine, over a socket in the file system.

A connection is a session. It ends with the connection, which a killed broker loses at once, or when the broker has been silent for
the session timeout, as when its event loop hangs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path

from headrace.clock import Clock, Timer
from headrace.server.cluster.embedded import EmbeddedSession, EmbeddedStore
from headrace.server.cluster.store import StoreError, Watch
from headrace.server.cluster.store_wire import (
    Frame,
    decode_op,
    encode_bytes,
    encode_error,
    encode_stat,
    read_frame,
    write_frame,
)

log = logging.getLogger(__name__)


class StoreServer:
    """Owns the socket, not the store."""

    def __init__(self, store: EmbeddedStore, path: Path, session_timeout: float, clock: Clock) -> None:
        self._store = store
        self._path = path
        self._session_timeout = session_timeout
        self._clock = clock
        self._server: asyncio.Server | None = None
        self._links: set[_Link] = set()

    async def start(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        self._server = await asyncio.start_unix_server(self._accept, self._path)
        self._path.chmod(0o600)

    async def stop(self) -> None:
        """Close the socket and end every session."""
        if self._server is not None:
            self._server.close()
        for link in list(self._links):
            link.cut()
        await asyncio.gather(*(link.ended.wait() for link in list(self._links)))
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(self._store.connect(), reader, writer, self._session_timeout, self._clock)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)


class _Link:
    """One broker's connection and session."""

    def __init__(
        self,
        session: EmbeddedSession,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        timeout: float,
        clock: Clock,
    ) -> None:
        self._session = session
        self._reader = reader
        self._writer = writer
        self._timeout = timeout
        self._clock = clock
        self._timer: Timer | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.ended = asyncio.Event()

    async def run(self) -> None:
        write_frame(self._writer, {"session": self._session.session_id})
        try:
            while True:
                self._set_timer()
                frame = await read_frame(self._reader)
                # Replies may overtake one another: a commit waits for the disk, a read does not.
                task = asyncio.create_task(self._serve(frame))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        except (asyncio.IncompleteReadError, ConnectionError, OSError):
            pass
        finally:
            if self._timer is not None:
                self._timer.cancel()
            for task in self._tasks:
                task.cancel()
            self._writer.close()
            await self._session.close()
            self.ended.set()

    def cut(self) -> None:
        self._writer.transport.abort()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(self._timeout, self._expire)

    def _expire(self) -> None:
        log.warning("a broker has been silent for %.1f s; its session is over", self._timeout)
        self.cut()

    async def _serve(self, frame: Frame) -> None:
        try:
            answer: Frame = {"i": frame["i"], "ok": await self._do(frame)}
        except StoreError as error:
            answer = {"i": frame["i"], "no": encode_error(error)}
        if not self._writer.is_closing():
            write_frame(self._writer, answer)

    async def _do(self, frame: Frame) -> object:
        what = frame["do"]
        if what == "get":
            found = await self._session.get(frame["path"], self._watch(frame))
            return None if found is None else [encode_bytes(found[0]), encode_stat(found[1])]
        if what == "children":
            return await self._session.children(frame["path"], self._watch(frame))
        if what == "commit":
            results = await self._session.commit([decode_op(op) for op in frame["ops"]])
            return [encode_stat(stat) for stat in results]
        return None

    def _watch(self, frame: Frame) -> Watch | None:
        number = frame.get("watch")
        if number is None:
            return None

        def fire() -> None:
            if not self._writer.is_closing():
                write_frame(self._writer, {"watch": number})

        return fire
