"""ZooKeeper in memory: sessions that expire, ephemeral nodes, watches that fire once, connections that break.

A session pings from beside the loop, as kazoo's threads do: a broker that hangs keeps its session, one that is paused, killed or
cut off loses it. Over one connection everything is in order: a watch arrives before the reply to whatever was asked after the
change.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.server.cluster.store import (
    Op,
    SessionExpiredError,
    SessionState,
    Stat,
    StoreError,
    UnavailableError,
    Watch,
)
from headrace.server.cluster.tree import Prepared, Tree, parent_of
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.network import Network
    from tests.simulation.process import Process

NAME = "zookeeper"
DELAY = 500e-6
AGAIN = 0.1
"""What a cut holds up is sent again after so long."""


class Ensemble:
    """The servers, which are always of one mind."""

    def __init__(self, world: World, network: Network) -> None:
        self.world = world
        self.network = network
        self.random = world.stream("zookeeper")
        self.tree = Tree([], 0)
        self.up = True
        self._sessions: dict[int, SimulatedStore] = {}
        self._expiries: dict[int, float] = {}
        self._data_watches: dict[str, list[tuple[int, SimulatedStore, Watch]]] = {}
        self._child_watches: dict[str, list[tuple[int, SimulatedStore, Watch]]] = {}
        self._last_session = 0
        self.world.after(0.05, self._expire)

    def reaches(self, process: Process) -> bool:
        name = process.host.name
        return self.up and (name, NAME) not in self.network.cuts and (NAME, name) not in self.network.cuts

    def connect(self, process: Process, timeout: float) -> SimulatedStore:
        return SimulatedStore(self, process, timeout)

    # Sessions

    def begin(self, store: SimulatedStore) -> int:
        self._last_session += 1
        self._sessions[self._last_session] = store
        self.touch(self._last_session, store.timeout)
        return self._last_session

    def alive(self, session: int) -> bool:
        return session in self._sessions

    def touch(self, session: int, timeout: float) -> None:
        if session in self._sessions:
            self._expiries[session] = self.world.now + timeout

    def end(self, session: int) -> None:
        if self._sessions.pop(session, None) is None:
            return
        del self._expiries[session]
        self.world.trace(f"zookeeper: session {session} ended")
        for watches in (self._data_watches, self._child_watches):
            for path in watches:
                watches[path] = [each for each in watches[path] if each[0] != session]
        for path in sorted(self.tree.owned_by(session)):
            prepared = Prepared(self.tree.zxid + 1)
            prepared.nodes[path] = None
            prepared.deleted.append(path)
            self._apply(prepared)

    def _expire(self) -> None:
        if self.up:
            for session in [each for each, when in self._expiries.items() if when <= self.world.now]:
                self.end(session)
        self.world.after(0.05, self._expire)

    def stop(self) -> None:
        self.up = False
        self.world.trace("zookeeper: down")
        for store in list(self._sessions.values()):
            store.lose_connection()

    def start(self) -> None:
        """A new leader gives every session its time again."""
        self.up = True
        self.world.trace("zookeeper: up")
        for session, store in self._sessions.items():
            self.touch(session, store.timeout)

    # Requests

    def get(self, store: SimulatedStore, path: str, watch: Watch | None) -> tuple[bytes, Stat] | None:
        if watch is not None:
            self._data_watches.setdefault(path, []).append((store.session_id, store, watch))
        node = self.tree.nodes.get(path)
        return None if node is None else (node.data, node.stat)

    def children(self, store: SimulatedStore, path: str, watch: Watch | None) -> list[str]:
        if watch is not None:
            self._child_watches.setdefault(path, []).append((store.session_id, store, watch))
        return self.tree.children(path)

    def commit(self, store: SimulatedStore, ops: Sequence[Op]) -> list[Stat | None]:
        prepared = self.tree.prepare(ops, store.session_id, self.tree.zxid + 1)
        self._apply(prepared)
        return prepared.results

    def _apply(self, prepared: Prepared) -> None:
        before = {path: path in self.tree.nodes for path in prepared.nodes}
        self.tree.apply(prepared)
        for path in prepared.nodes:
            self._fire(self._data_watches, path)
            if before[path] is not (path in self.tree.nodes):
                self._fire(self._child_watches, parent_of(path))
                self._fire(self._child_watches, path)

    def _fire(self, watches: dict[str, list[tuple[int, SimulatedStore, Watch]]], path: str) -> None:
        for session, store, watch in watches.pop(path, ()):
            store.tell(session, watch)


class SimulatedStore:
    """One broker's client: a Store."""

    def __init__(self, ensemble: Ensemble, process: Process, timeout: float) -> None:
        self._ensemble = ensemble
        self._process = process
        self._world = process.world
        self.timeout = timeout
        self.session_id = 0
        self._connected = False
        self._connection = 0
        """Counts connections: what belongs to an earlier one is void."""
        self._closed = False
        self._heard = 0.0
        self._underway: deque[tuple[int, Callable[..., None], tuple[Any, ...]]] = deque()
        """What the servers sent and the broker has not got, by connection."""
        self._untold: list[tuple[int, Watch]] = []
        """Watches that fired while there was no connection."""
        self._pending: dict[asyncio.Future[Any], None] = {}
        self._listeners: list[Callable[[SessionState], None]] = []
        self._first = True
        self._tick()

    # What the broker asks

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat] | None:
        found: tuple[bytes, Stat] | None = await self._ask(lambda: self._ensemble.get(self, path, watch))
        return found

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        found: list[str] = await self._ask(lambda: self._ensemble.children(self, path, watch))
        return found

    async def commit(self, ops: Sequence[Op]) -> list[Stat | None]:
        results: list[Stat | None] = await self._ask(lambda: self._ensemble.commit(self, ops))
        return results

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        self._listeners.append(listener)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._connected:
            self._ensemble.end(self.session_id)
        self._connected = False
        self._notify(SessionState.CLOSED)

    async def _ask(self, work: Callable[[], Any]) -> Any:
        if self._closed or not self._connected:
            raise UnavailableError("ZooKeeper did not answer: ConnectionLoss.")
        reply: asyncio.Future[Any] = self._process.loop.create_future()
        self._pending[reply] = None
        self._world.after(self._delay(), self._serve, self._connection, reply, work)
        try:
            return await reply
        finally:
            self._pending.pop(reply, None)

    def _delay(self) -> float:
        return DELAY * (0.3 + self._ensemble.random.expovariate(1.0))

    def _serve(self, connection: int, reply: asyncio.Future[Any], work: Callable[[], Any]) -> None:
        if connection != self._connection:
            return
        if not self._ensemble.reaches(self._process):
            self._world.after(AGAIN, self._serve, connection, reply, work)
            return
        try:
            if not self._ensemble.alive(self.session_id):
                raise SessionExpiredError("The session with ZooKeeper expired.")
            outcome: Any = work()
        except StoreError as error:
            outcome = error
        self._send(self._settle, reply, outcome)

    def _send(self, callback: Callable[..., None], *args: Any) -> None:
        """To the broker: in order, and after the link is whole."""
        self._underway.append((self._connection, callback, args))
        self._world.after(self._delay(), self._arrive)

    def _arrive(self) -> None:
        connection, callback, args = self._underway[0]
        if connection == self._connection and not self._ensemble.reaches(self._process):
            self._world.after(AGAIN, self._arrive)
            return
        self._underway.popleft()
        if connection == self._connection:
            if not self._process.dead:
                self._process.loop.call_soon(callback, *args)
        elif callback == self._tell:
            self.tell(*args)  # The new connection hears of it; replies are lost with the old one.

    def _settle(self, reply: asyncio.Future[Any], outcome: Any) -> None:
        if reply.done():
            return
        if isinstance(outcome, StoreError):
            reply.set_exception(outcome)
        else:
            reply.set_result(outcome)

    def tell(self, session: int, watch: Watch) -> None:
        """A watch has fired."""
        if session != self.session_id or self._process.dead:
            return
        if not self._connected:
            self._untold.append((session, watch))
            return
        self._send(self._tell, session, watch)

    def _tell(self, session: int, watch: Watch) -> None:
        if session == self.session_id:
            watch()

    # The session

    def _tick(self) -> None:
        """What kazoo's threads do: ping, notice that nobody answers, connect again."""
        if self._closed or self._process.dead:
            return
        if self._process.running:
            if self._connected:
                self._ping()
            elif self._ensemble.reaches(self._process):
                self._connect()
        self._world.after(self.timeout / 6 * self._ensemble.random.uniform(0.8, 1.2), self._tick)

    def _ping(self) -> None:
        if not self._ensemble.alive(self.session_id) and self._ensemble.reaches(self._process):
            self.lose_connection()
            return
        if self._ensemble.reaches(self._process):
            self._heard = self._world.now
            self._ensemble.touch(self.session_id, self.timeout)
        elif self._world.now - self._heard > self.timeout * 2 / 3:
            self.lose_connection()

    def lose_connection(self) -> None:
        """Whoever waits learns nothing: what was asked may have happened."""
        if not self._connected or self._process.dead:
            return
        self._connected = False
        self._connection += 1
        self._process.loop.call_soon(self._lost, list(self._pending))

    def _lost(self, unanswered: list[asyncio.Future[Any]]) -> None:
        for reply in unanswered:
            if not reply.done():
                reply.set_exception(UnavailableError("ZooKeeper did not answer: ConnectionLoss."))
        self._notify(SessionState.SUSPENDED)

    def _connect(self) -> None:
        self._connection += 1
        self._connected = True
        self._heard = self._world.now
        if self.session_id and self._ensemble.alive(self.session_id):
            self._ensemble.touch(self.session_id, self.timeout)
            untold, self._untold = self._untold, []
            self._process.loop.call_soon(self._notify, SessionState.CONNECTED)
            for session, watch in untold:
                if session == self.session_id:
                    self._process.loop.call_soon(watch)
            return
        first, self._first = self._first, False
        self.session_id = self._ensemble.begin(self)
        self._untold = []
        if not first:
            self._process.loop.call_soon(self._notify, SessionState.EXPIRED)
        self._process.loop.call_soon(self._notify, SessionState.CONNECTED)

    def _notify(self, state: SessionState) -> None:
        for listener in self._listeners:
            listener(state)
