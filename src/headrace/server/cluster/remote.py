"""The embedded store of this machine's supervisor, reached over its socket: a Store for one of its brokers.

The broker's event loop itself sends the pings, so a loop that hangs loses its session. When the supervisor goes away, the broker
keeps serving and joins again in a new session when the supervisor is back.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headrace.clock import Clock
from headrace.server.cluster.store import Op, SessionState, Stat, StoreError, UnavailableError, Watch
from headrace.server.cluster.store_wire import (
    Frame,
    decode_bytes,
    decode_error,
    decode_stat,
    encode_op,
    read_frame,
    write_frame,
)

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.1


class RemoteStore:
    """Make one with `open`."""

    def __init__(self, path: Path, session_timeout: float, clock: Clock) -> None:
        self._path = path
        self._session_timeout = session_timeout
        self._clock = clock
        self._session_id = 0
        self._writer: asyncio.StreamWriter | None = None
        self._numbers = itertools.count(1)
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._watches: dict[int, Watch] = {}
        self._listeners: list[Callable[[SessionState], None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False

    @classmethod
    async def open(cls, path: Path, session_timeout: float, clock: Clock) -> RemoteStore:
        store = cls(path, session_timeout, clock)
        try:
            reader = await store._connect()
        except OSError as error:
            raise StoreError(
                f"The store of this machine at {path} cannot be reached ({error.strerror or error}); "
                "brokers of one machine are started by `headrace up --brokers N`."
            ) from None
        store._tasks = [asyncio.create_task(store._run(reader)), asyncio.create_task(store._ping())]
        return store

    @property
    def session_id(self) -> int:
        return self._session_id

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat] | None:
        found = await self._ask({"do": "get", "path": path}, watch)
        if found is None:
            return None
        stat = decode_stat(found[1])
        assert stat is not None
        return decode_bytes(found[0]), stat

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        names: list[str] = await self._ask({"do": "children", "path": path}, watch)
        return names

    async def commit(self, ops: Sequence[Op]) -> list[Stat | None]:
        results = await self._ask({"do": "commit", "ops": [encode_op(op) for op in ops]})
        return [decode_stat(stat) for stat in results]

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        self._listeners.append(listener)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._disconnect()
        self._notify(SessionState.CLOSED)

    # -- the connection

    async def _connect(self) -> asyncio.StreamReader:
        reader, writer = await asyncio.open_unix_connection(self._path)
        try:
            hello = await read_frame(reader)
        except (asyncio.IncompleteReadError, OSError) as error:
            writer.close()
            raise ConnectionError("the supervisor closed the connection") from error
        self._session_id = hello["session"]
        self._writer = writer
        return reader

    async def _run(self, reader: asyncio.StreamReader) -> None:
        while True:
            with contextlib.suppress(asyncio.IncompleteReadError, OSError):
                while True:
                    self._receive(await read_frame(reader))
            self._disconnect()
            self._notify(SessionState.SUSPENDED)
            reader = await self._connect_again()
            # The supervisor ended the old session when the connection went.
            self._notify(SessionState.EXPIRED)
            self._notify(SessionState.CONNECTED)

    async def _connect_again(self) -> asyncio.StreamReader:
        while True:
            try:
                return await self._connect()
            except OSError:
                await self._clock.sleep(RETRY_SECONDS)

    def _disconnect(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._watches.clear()
        pending, self._pending = self._pending, {}
        for future in pending.values():
            if not future.done():
                future.set_exception(UnavailableError("The connection to this machine's store ended."))

    async def _ping(self) -> None:
        while True:
            await self._clock.sleep(self._session_timeout / 4)
            with contextlib.suppress(StoreError):
                await self._ask({"do": "ping"})

    async def _ask(self, frame: Frame, watch: Watch | None = None) -> Any:
        # The connection may have ended before the reading task notices.
        if self._writer is None or self._writer.is_closing():
            raise UnavailableError("This machine's store is unavailable.")
        number = next(self._numbers)
        frame["i"] = number
        if watch is not None:
            frame["watch"] = number
            self._watches[number] = watch
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[number] = future
        write_frame(self._writer, frame)
        try:
            return await future
        finally:
            self._pending.pop(number, None)

    def _receive(self, frame: Frame) -> None:
        if "watch" in frame:
            watch = self._watches.pop(frame["watch"], None)
            if watch is not None:
                watch()
            return
        future = self._pending.get(frame["i"])
        if future is None or future.done():
            return
        if "no" in frame:
            self._watches.pop(frame["i"], None)
            future.set_exception(decode_error(frame["no"]))
        else:
            future.set_result(frame["ok"])

    def _notify(self, state: SessionState) -> None:
        for listener in self._listeners:
            listener(state)
