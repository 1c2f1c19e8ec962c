"""The store in a ZooKeeper ensemble, through kazoo.

kazoo works in threads of its own; its callbacks are passed to the event loop. It also pings ZooKeeper by itself, which would keep
a session alive while the broker's event loop hangs. So a watchdog closes the session when the loop has stalled for two thirds of
the session timeout: by then another broker should lead. A client that loses one of its threads is replaced by a new one with a
new session.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

from kazoo import exceptions
from kazoo.client import KazooClient, KazooState
from kazoo.protocol.states import KeeperState
from kazoo.security import CREATOR_ALL_ACL

from headrace.clock import Clock
from headrace.server.cluster.kazoo_client import FirstConnection, kazoo_logger, make_client
from headrace.server.cluster.store import (
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
from headrace.server.cluster.watchdog import Watchdog
from headrace.server.cluster.zookeeper_access import OPEN, ZooKeeperAccess

log = logging.getLogger(__name__)

FIRST_WARNING_SECONDS, REMINDER_SECONDS = 2.0, 30.0
"""How long to wait for the first connection before logging it, and before logging it again."""
RETRY_SECONDS = 1.0

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


NO_PERMISSION = (
    "ZooKeeper refuses access to the cluster's nodes: they belong to another login; set headrace.zookeeper.user and "
    "headrace.zookeeper.password (or the client certificate) to those with which the cluster was made."
)


class _State(enum.Enum):
    RUNNING = "running"
    """The client has a session, or is trying to get one."""
    ENDED = "ended"
    """The client was stopped or lost a thread; a new one follows."""
    CLOSING = "closing"


class ZooKeeperStore:
    """A session with ZooKeeper. Make one with `open`."""

    def __init__(self, hosts: str, session_timeout: float, clock: Clock, access: ZooKeeperAccess) -> None:
        self._hosts = hosts
        self._access = access
        self._session_timeout = session_timeout
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Callable[[SessionState], None]] = []
        self._last_state: SessionState | None = None
        self._asked: set[asyncio.Future[Any]] = set()
        """Calls that kazoo has not completed yet."""
        self._logger = kazoo_logger()
        self._state = _State.RUNNING
        self._login_refused = False
        self._client = self._make_client()
        self._replacing: asyncio.Task[None] | None = None
        self._watchdog = Watchdog(session_timeout * 2 / 3, clock, self._give_up)

    @classmethod
    async def open(
        cls,
        hosts: str,
        session_timeout: float,
        connection_timeout: float | None,
        clock: Clock,
        access: ZooKeeperAccess = OPEN,
    ) -> ZooKeeperStore:
        """Connect, however long that takes; with a `connection_timeout`, StoreError when no server replies in time."""
        try:
            store = cls(hosts, session_timeout, clock, access)
        except ValueError as error:
            raise StoreError(
                f"zookeeper.connect is {hosts}, which is not HOST:PORT[,HOST:PORT...][/CHROOT]: {error}."
            ) from None
        try:
            await store._connect(connection_timeout)
            if access.owns_nodes:
                await store._own("/")
        except BaseException:
            store._abandon()
            raise
        store._watchdog.start()
        return store

    async def _connect(self, timeout: float | None) -> None:
        """Wait for the first session, then create the chroot if there is one."""
        first = FirstConnection()
        self._logger.addFilter(first)
        connected = asyncio.Event()
        self.on_session(
            lambda state: connected.set() if state is SessionState.CONNECTED else connected.clear()
        )
        deadline = self._clock.monotonic() + timeout if timeout is not None else math.inf
        self._client.start_async()
        patience = FIRST_WARNING_SECONDS
        while True:
            if self._login_refused:
                raise StoreError(
                    f"ZooKeeper at {self._hosts} refused the login of {self._access.user}; correct "
                    "headrace.zookeeper.user and headrace.zookeeper.password."
                )
            left = deadline - self._clock.monotonic()
            try:
                await self._clock.wait_for(connected.wait(), max(min(patience, left), 0.0))
                if self._client.chroot:
                    await self._call(self._client.ensure_path_async, "/")
                break
            except TimeoutError:
                if patience >= left:
                    raise StoreError(
                        f"ZooKeeper at {self._hosts} does not answer ({first.reason}); start it, or correct its "
                        "address (a broker without zookeeper.connect runs on this machine alone)."
                    ) from None
                log.warning(
                    "ZooKeeper at %s does not answer yet (%s); waiting for it", self._hosts, first.reason
                )
                patience = REMINDER_SECONDS
            except (UnavailableError, SessionExpiredError):
                continue  # It went away again.
            except exceptions.KazooException as error:
                raise StoreError(
                    f"ZooKeeper at {self._hosts} refused the first request: {error!r}."
                ) from None
        self._logger.removeFilter(first)
        self._listeners.pop(0)

    async def _own(self, path: str) -> None:
        """Close a node that is open to everybody, and those below it: the cluster may be older than its login."""
        try:
            acl, stat = await self._call(self._client.get_acls_async, path)
            if any(entry.id.scheme == "world" for entry in acl):
                await self._call(self._client.set_acls_async, path, CREATOR_ALL_ACL, stat.aversion)
            names = await self._call(self._client.get_children_async, path)
        except (exceptions.NoNodeError, exceptions.BadVersionError):
            return  # It is gone, or another broker does the same.
        for name in names:
            if path != "/" or name != "zookeeper":  # ZooKeeper's own.
                await self._own(f"{path.rstrip('/')}/{name}")

    def _make_client(self) -> KazooClient:
        client = make_client(
            self._hosts,
            self._session_timeout,
            self._access,
            self._logger,
            lambda reason: self._to_loop(lambda: self._thread_ended(client, reason)),
        )
        client.add_listener(lambda state: self._heard(client, state))
        return client

    def _heard(self, client: KazooClient, state: str) -> None:
        """From kazoo's thread, which passes on to another state at once."""
        if client.client_state == KeeperState.AUTH_FAILED:
            self._login_refused = True
        elif state == KazooState.CONNECTED:
            self._login_refused = False
        self._to_loop(lambda: self._state_changed(client, _STATES[state]))

    @property
    def session_id(self) -> int:
        client_id = self._client.client_id
        return int(client_id[0]) if client_id is not None else 0

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat] | None:
        watcher = self._watcher(watch)
        while True:
            try:
                data, stat = await self._call(self._client.get_async, path, watcher)
                return data, _stat(stat)
            except exceptions.NoNodeError:
                # Watching for a node to appear takes another request; it may have appeared in between.
                if watcher is None or await self._call(self._client.exists_async, path, watcher) is None:
                    return None

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        watcher = self._watcher(watch)
        while True:
            try:
                return sorted(await self._call(self._client.get_children_async, path, watcher))
            except exceptions.NoNodeError:
                if watcher is None or await self._call(self._client.exists_async, path, watcher) is None:
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
        if any(isinstance(outcome, exceptions.NoAuthError) for outcome in outcomes):
            raise StoreError(NO_PERMISSION)
        failed = next((outcome for outcome in outcomes if isinstance(outcome, Exception)), None)
        if failed is not None:
            raise StoreError(f"ZooKeeper refused a transaction: {failed!r}")
        return [await self._result(op, outcome) for op, outcome in zip(ops, outcomes, strict=True)]

    async def _result(self, op: Op, outcome: Any) -> Stat | None:
        if isinstance(op, SetData):
            return _stat(outcome)
        if isinstance(op, Create) and op.ephemeral:
            # A transaction returns only the path of a new node.
            stat = await self._call(self._client.exists_async, op.path)
            if stat is None or stat.ephemeralOwner != self.session_id:
                raise SessionExpiredError("The session ended right after the node was created.")
            return _stat(stat)
        return None

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        self._listeners.append(listener)

    async def close(self) -> None:
        if self._state is _State.CLOSING:
            return
        self._state = _State.CLOSING
        self._watchdog.stop()
        if self._replacing is not None:
            self._replacing.cancel()
        await asyncio.to_thread(_shut_down, self._client)
        self._notify(SessionState.CLOSED)

    def _abandon(self) -> None:
        """There is no session worth closing: let kazoo's threads end by themselves."""
        self._state = _State.CLOSING
        threading.Thread(target=_shut_down, args=(self._client,), daemon=True).start()

    # -- from kazoo's threads to the loop and back

    async def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        future: asyncio.Future[Any] = self._loop.create_future()
        self._asked.add(future)
        future.add_done_callback(self._asked.discard)

        def settle(result: Any) -> None:
            if future.done():
                return
            if result.exception is not None:
                future.set_exception(_translate(result.exception))
            else:
                future.set_result(result.value)

        function(*args).rawlink(lambda result: self._to_loop(lambda: settle(result)))
        return await future

    def _watcher(self, watch: Watch | None) -> Callable[[Any], None] | None:
        if watch is None:
            return None
        return lambda event: self._to_loop(watch)

    def _to_loop(self, callback: Callable[[], None]) -> None:
        # The loop may be closed when the process is about to end.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)

    def _state_changed(self, client: KazooClient, state: SessionState) -> None:
        if client is self._client and self._state is not _State.CLOSING:
            self._notify(state)

    def _notify(self, state: SessionState) -> None:
        if state is not self._last_state:
            self._last_state = state
            for listener in self._listeners:
                listener(state)

    # -- replacing a client

    def _thread_ended(self, client: KazooClient, reason: str) -> None:
        """A client that lost a thread loses its session, or does not notice when it does."""
        if client is not self._client or self._state is not _State.RUNNING:
            return
        log.error(
            "%s; giving up the session with ZooKeeper and beginning another",
            f"ZooKeeper refused the login of {self._access.user}"
            if self._login_refused
            else f"a thread of kazoo ended ({reason})",
        )
        self._state = _State.ENDED
        self._notify(SessionState.EXPIRED)
        self._begin_again()

    def _give_up(self) -> None:
        """Called in the watchdog's thread while the loop hangs: end the session, and begin another when the loop runs again."""
        if self._state is not _State.RUNNING:
            return
        self._state = _State.ENDED
        log.error("the event loop hangs; giving up the session with ZooKeeper")
        self._client.stop()
        self._to_loop(self._loop_runs_again)

    def _loop_runs_again(self) -> None:
        if self._state is _State.ENDED:
            log.warning("the event loop runs again; beginning a new session with ZooKeeper")
            self._begin_again()

    def _begin_again(self) -> None:
        for future in list(self._asked):  # The old client will never complete them.
            if not future.done():
                future.set_exception(UnavailableError("The connection to ZooKeeper ended."))
        self._replacing = asyncio.create_task(self._replace_client())

    async def _replace_client(self) -> None:
        """Close the old session first, so that no event of it arrives after those of the new one."""
        if self._login_refused:
            await self._clock.sleep(RETRY_SECONDS)
        while True:
            await asyncio.to_thread(_shut_down, self._client)
            self._client = self._make_client()
            try:
                self._client.start_async()
            except RuntimeError as error:  # No thread could be started.
                log.error("a new session with ZooKeeper could not be started (%s); trying again", error)
                await self._clock.sleep(RETRY_SECONDS)
                continue
            self._state = _State.RUNNING
            return


def _shut_down(client: KazooClient) -> None:
    """May wait for an attempt to connect that is under way."""
    try:
        client.stop()
        client.close()
    except Exception as error:  # kazoo raises a plain Exception for a client that never started.
        log.warning("a session with ZooKeeper could not be closed (%r); it ends when it expires", error)


def _stat(stat: Any) -> Stat:
    return Stat(stat.version, stat.czxid, stat.ephemeralOwner or 0)


def _translate(error: BaseException) -> BaseException:
    if isinstance(error, exceptions.SessionExpiredError):
        return SessionExpiredError("The session with ZooKeeper expired.")
    if isinstance(error, exceptions.NoAuthError):
        return StoreError(NO_PERMISSION)
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
