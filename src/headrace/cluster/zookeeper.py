"""The store in a real ZooKeeper ensemble, through kazoo.

kazoo works in threads of its own; everything it says is brought to the event loop before anyone here hears it. It also pings
ZooKeeper by itself, which would keep the session of a broker alive whose event loop hangs. So a watchdog closes the session
when the loop has not turned for two thirds of the session's timeout: by then another broker should lead.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from kazoo import exceptions
from kazoo.client import KazooClient, KazooState
from kazoo.retry import KazooRetry

from headrace.clock import Clock, Timer
from headrace.cluster.store import (
    BadVersionError,
    ConflictError,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Op,
    SessionExpiredError,
    SessionState,
    SetData,
    Stat,
    StoreError,
    UnavailableError,
    Watch,
)

log = logging.getLogger(__name__)

_CONFLICTS: dict[type[Exception], type[ConflictError]] = {
    exceptions.NoNodeError: NoNodeError,
    exceptions.NodeExistsError: NodeExistsError,
    exceptions.BadVersionError: BadVersionError,
    exceptions.NotEmptyError: NotEmptyError,
}
_STATES = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.SUSPENDED,
    KazooState.LOST: SessionState.EXPIRED,
}


class ZooKeeperStore:
    """A session with ZooKeeper. Make one with `open`."""

    def __init__(self, hosts: str, session_timeout: float, clock: Clock) -> None:
        self._hosts = hosts
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Callable[[SessionState], None]] = []
        self._client = KazooClient(
            hosts=hosts,
            timeout=session_timeout,
            connection_retry=KazooRetry(max_tries=-1, delay=0.1, max_delay=1.0),
            logger=logging.getLogger("headrace.kazoo"),
        )
        self._client.add_listener(self._state_changed)
        self._watchdog = _Watchdog(session_timeout * 2 / 3, clock, self._give_up)
        self._closing = False

    @classmethod
    async def open(
        cls, hosts: str, session_timeout: float, connection_timeout: float, clock: Clock
    ) -> ZooKeeperStore:
        """Connect; StoreError when no server of the ensemble answers in time."""
        store = cls(hosts, session_timeout, clock)
        connected = asyncio.Event()
        store.on_session(lambda state: connected.set() if state is SessionState.CONNECTED else None)
        try:
            store._client.start_async()
            await clock.wait_for(connected.wait(), connection_timeout)
            if store._client.chroot:
                await asyncio.to_thread(store._client.ensure_path, "/")
        except TimeoutError:
            await store.close()
            raise StoreError(
                f"ZooKeeper at {hosts} does not answer; start it, or correct its address "
                "(a broker without zookeeper.connect runs on this machine alone)."
            ) from None
        except exceptions.KazooException as error:
            await store.close()
            raise StoreError(f"ZooKeeper at {hosts} refused the first request: {error!r}.") from None
        store._listeners.pop(0)
        store._watchdog.start()
        return store

    @property
    def session_id(self) -> int:
        client_id = self._client.client_id
        return int(client_id[0]) if client_id is not None else 0

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat] | None:
        told = self._telling(watch)
        while True:
            try:
                data, stat = await self._call(self._client.get_async, path, told)
                return data, _stat(stat)
            except exceptions.NoNodeError:
                # Waiting for a node to appear is another request; it may have appeared in between.
                if told is None or await self._call(self._client.exists_async, path, told) is None:
                    return None

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        told = self._telling(watch)
        while True:
            try:
                return sorted(await self._call(self._client.get_children_async, path, told))
            except exceptions.NoNodeError:
                if told is None or await self._call(self._client.exists_async, path, told) is None:
                    return []

    async def commit(self, ops: Sequence[Op]) -> list[Stat | None]:
        transaction = self._client.transaction()
        for op in ops:
            if isinstance(op, Create):
                transaction.create(op.path, op.data, ephemeral=op.ephemeral)
            elif isinstance(op, SetData):
                transaction.set_data(op.path, op.data, op.version)
            elif isinstance(op, Delete):
                transaction.delete(op.path, op.version)
            else:
                transaction.check(op.path, op.version)
        outcomes = await self._call(transaction.commit_async)
        for index, outcome in enumerate(outcomes):
            conflict = _CONFLICTS.get(type(outcome))
            if conflict is not None:
                raise conflict(index, ops[index].path)
        failed = next((outcome for outcome in outcomes if isinstance(outcome, Exception)), None)
        if failed is not None:
            raise StoreError(f"ZooKeeper refused a transaction: {failed!r}")
        return [await self._result(op, outcome) for op, outcome in zip(ops, outcomes, strict=True)]

    async def _result(self, op: Op, outcome: Any) -> Stat | None:
        if isinstance(op, SetData):
            return _stat(outcome)
        if isinstance(op, Create) and op.ephemeral:
            # A transaction tells no more of a new node than its path.
            stat = await self._call(self._client.exists_async, op.path)
            if stat is None or stat.ephemeralOwner != self.session_id:
                raise SessionExpiredError("The session ended right after the node was made.")
            return _stat(stat)
        return None

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        self._listeners.append(listener)

    async def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._watchdog.stop()
        await asyncio.to_thread(self._shut_down)
        self._tell(SessionState.CLOSED)

    def _shut_down(self) -> None:
        self._client.stop()
        self._client.close()

    # -- from kazoo's threads to the loop and back

    async def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        future: asyncio.Future[Any] = self._loop.create_future()

        def settle(result: Any) -> None:
            if future.done():
                return
            if result.exception is not None:
                future.set_exception(_translate(result.exception))
            else:
                future.set_result(result.value)

        function(*args).rawlink(lambda result: self._to_loop(lambda: settle(result)))
        return await future

    def _telling(self, watch: Watch | None) -> Callable[[Any], None] | None:
        if watch is None:
            return None
        return lambda event: self._to_loop(watch)

    def _to_loop(self, callback: Callable[[], None]) -> None:
        # The loop may be gone when the process is about to end.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)

    def _state_changed(self, state: str) -> None:
        self._to_loop(lambda: self._tell(_STATES[state]))

    def _tell(self, state: SessionState) -> None:
        if self._closing and state is not SessionState.CLOSED:
            return
        for listener in self._listeners:
            listener(state)

    # -- the watchdog

    def _give_up(self) -> None:
        """Called in the watchdog's thread while the loop hangs: end the session, and begin another when it turns."""
        log.error("the event loop hangs; giving up the session with ZooKeeper")
        self._client.stop()
        self._to_loop(self._begin_again)

    def _begin_again(self) -> None:
        if not self._closing:
            log.warning("the event loop turns again; beginning a new session with ZooKeeper")
            self._client.start_async()


class _Watchdog:
    """Sees in a thread of its own whether the event loop still turns."""

    def __init__(self, patience: float, clock: Clock, bite: Callable[[], None]) -> None:
        self._patience = patience
        self._clock = clock
        self._bite = bite
        self._seen = clock.monotonic()
        self._stopped = threading.Event()
        self._timer: Timer | None = None
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._beat()
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()

    def _beat(self) -> None:
        self._seen = self._clock.monotonic()
        if not self._stopped.is_set():
            self._timer = self._clock.call_later(self._patience / 8, self._beat)

    def _watch(self) -> None:
        bitten_at: float | None = None
        while not self._stopped.wait(self._patience / 8):
            seen = self._seen
            if self._clock.monotonic() - seen > self._patience and bitten_at != seen:
                bitten_at = seen
                self._bite()


def _stat(stat: Any) -> Stat:
    return Stat(stat.version, stat.czxid, stat.ephemeralOwner or 0)


def _translate(error: BaseException) -> BaseException:
    if isinstance(error, exceptions.SessionExpiredError):
        return SessionExpiredError("The session with ZooKeeper expired.")
    if isinstance(
        error,
        exceptions.ConnectionLoss
        | exceptions.ConnectionClosedError
        | exceptions.SessionMovedError
        | exceptions.OperationTimeoutError
        | exceptions.AuthFailedError,
    ):
        return UnavailableError(f"ZooKeeper did not answer: {type(error).__name__}.")
    return error
