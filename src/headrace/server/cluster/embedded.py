"""The store of one machine: a tree in memory, with every durable change in SQLite before it becomes visible.

Reads come from memory. Writes of one turn of the event loop become one SQLite transaction, committed with fsync in a thread
while the loop goes on. After kill -9 or a power cut the file holds every confirmed transaction and no part of any other.
Ephemeral nodes live in memory only, so none survives the process.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from headrace.server.cluster.store import (
    ConflictError,
    Delete,
    Op,
    SessionExpiredError,
    SessionState,
    Stat,
    StoreError,
    UnavailableError,
    Watch,
)
from headrace.server.cluster.tree import Node, Prepared, Tree, parent_of

log = logging.getLogger(__name__)

FILE_NAME = "cluster.db"


@dataclass(slots=True)
class _Request:
    """A transaction that waits for the journal."""

    ops: Sequence[Op]
    session: int
    future: asyncio.Future[list[Stat | None]]


class EmbeddedStore:
    """Owns the file and the tree. `connect` opens a session; brokers in one process use one each."""

    def __init__(self, path: Path | None) -> None:
        """`path` is the SQLite file; None keeps everything in memory."""
        self._path = path
        self._tree = Tree([], 0)
        self._database: sqlite3.Connection | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._pending: list[_Request] = []
        self._pump: asyncio.Task[None] | None = None
        self._sessions: dict[int, EmbeddedSession] = {}
        """Live sessions by their id."""
        self._node_watches: dict[str, list[tuple[int, Watch]]] = {}
        self._child_watches: dict[str, list[tuple[int, Watch]]] = {}
        self._opens = 1
        self._failed: str | None = None
        self._full = False
        """The last write found the disk full."""
        self._closed = False

    @classmethod
    async def open(cls, path: Path | None) -> EmbeddedStore:
        store = cls(path)
        try:
            store._load()
        except sqlite3.Error as error:
            if "locked" in str(error):
                raise StoreError(
                    f"The cluster's metadata in {path} is in use by another process; stop that one or choose "
                    "another data directory."
                ) from None
            raise StoreError(
                f"The cluster's metadata in {path} cannot be read ({error}). Restore the file from a backup."
            ) from None
        return store

    def _load(self) -> None:
        if self._path is None:
            return
        # Opened here, and from then on used by the writer's thread alone.
        database = sqlite3.connect(self._path, timeout=0, check_same_thread=False, isolation_level=None)
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute(
            "CREATE TABLE IF NOT EXISTS node (path TEXT PRIMARY KEY, data BLOB NOT NULL, version INTEGER NOT NULL,"
            " created INTEGER NOT NULL) WITHOUT ROWID"
        )
        database.execute(
            "CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY CHECK (id = 0), zxid INTEGER)"
        )
        row = database.execute("SELECT zxid FROM state").fetchone()
        # Like ZooKeeper's epochs: ids of ephemeral nodes from before a restart never come back.
        self._opens = (row[0] >> 32) + 1 if row is not None else 1
        nodes = [
            (path, Node(data, Stat(version, created)))
            for path, data, version, created in database.execute(
                "SELECT path, data, version, created FROM node"
            )
        ]
        self._tree = Tree(nodes, self._opens << 32)
        self._database = database

    def connect(self) -> EmbeddedSession:
        return EmbeddedSession(self)

    def begin_session(self, session: EmbeddedSession) -> int:
        self._tree.zxid += 1
        self._sessions[self._tree.zxid] = session
        return self._tree.zxid

    async def close(self) -> None:
        """Finish the writes under way, then close the file."""
        for session in list(self._sessions.values()):
            await session.close()
        self._closed = True
        if self._pump is not None:
            await self._pump
        if self._database is not None:
            await asyncio.get_running_loop().run_in_executor(self._writer, self._database.close)
            self._database = None
        self._writer.shutdown(wait=False)

    # -- for sessions

    def read(self, path: str) -> tuple[bytes, Stat] | None:
        node = self._tree.nodes.get(path)
        return (node.data, node.stat) if node is not None else None

    def children(self, path: str) -> list[str]:
        return self._tree.children(path)

    def watch_node(self, path: str, session: int, watch: Watch) -> None:
        self._node_watches.setdefault(path, []).append((session, watch))

    def watch_children(self, path: str, session: int, watch: Watch) -> None:
        self._child_watches.setdefault(path, []).append((session, watch))

    def commit(self, ops: Sequence[Op], session: int) -> asyncio.Future[list[Stat | None]]:
        future: asyncio.Future[list[Stat | None]] = asyncio.get_running_loop().create_future()
        if self._failed is not None:
            future.set_exception(UnavailableError(self._failed))
        elif self._closed:
            future.set_exception(UnavailableError("The store is closed."))
        else:
            self._pending.append(_Request(ops, session, future))
            if self._pump is None:
                self._pump = asyncio.get_running_loop().create_task(self._run())
        return future

    async def end_session(self, session: int) -> None:
        """Drop the session's watches, and delete its ephemeral nodes in one transaction."""
        self._sessions.pop(session, None)
        for table in (self._node_watches, self._child_watches):
            for path in list(table):
                table[path] = [entry for entry in table[path] if entry[0] != session]
                if not table[path]:
                    del table[path]
        # A transaction of this session that is being written finishes first; later ones fail.
        if self._pump is not None:
            await asyncio.wait([self._pump])
        owned = sorted(self._tree.owned_by(session), reverse=True)
        if owned:
            prepared = self._tree.prepare([Delete(path) for path in owned], session, self._tree.zxid + 1)
            self._tree.apply(prepared)
            self._wake(prepared)

    # -- writing

    async def _run(self) -> None:
        """Write until nothing is pending."""
        try:
            while self._pending:
                batch, self._pending = self._pending, []
                await self._write(batch)
        finally:
            self._pump = None

    async def _write(self, batch: list[_Request]) -> None:
        """Write many requests in few SQLite transactions; each request is still all or nothing by itself."""
        position = 0
        while position < len(batch):
            # Requests that touch the same node must see each other's result, so they are not grouped.
            group: list[tuple[_Request, Prepared]] = []
            touched: set[str] = set()
            while position < len(batch):
                request = batch[position]
                paths = {op.path for op in request.ops} | {parent_of(op.path) for op in request.ops}
                if group and paths & touched:
                    break
                position += 1
                if request.session not in self._sessions:
                    _fail(request, SessionExpiredError("The session is over."))
                    continue
                try:
                    zxid = self._tree.zxid + 1 + len(group)
                    prepared = self._tree.prepare(request.ops, request.session, zxid)
                except ConflictError as conflict:
                    _fail(request, conflict)
                    continue
                touched |= paths
                group.append((request, prepared))
            await self._commit_group(group)

    async def _commit_group(self, group: list[tuple[_Request, Prepared]]) -> None:
        durable = [entry for _, prepared in group for entry in prepared.durable(self._tree)]
        if durable and self._database is not None:
            loop = asyncio.get_running_loop()
            try:
                await loop.run_in_executor(self._writer, self._save, durable, group[-1][1].zxid)
            except sqlite3.Error as error:
                if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                    # Nothing was written and the file is intact, so a later attempt may find room.
                    self._refuse_for_now(group)
                    return
                # SQLite rolled back, but a failed fsync leaves the file in doubt: only a restart reads it again.
                self._failed = (
                    f"The cluster's metadata could not be written to {self._path} ({error}); "
                    "free or repair the disk and restart."
                )
                log.error("%s", self._failed)
                for request, _ in group:
                    _fail(request, UnavailableError(self._failed))
                for request in self._pending:
                    _fail(request, UnavailableError(self._failed))
                self._pending.clear()
                return
            self._full = False
        for request, prepared in group:
            self._tree.apply(prepared)
            self._wake(prepared)
            if not request.future.done():
                request.future.set_result(prepared.results)

    def _refuse_for_now(self, group: list[tuple[_Request, Prepared]]) -> None:
        sentence = f"No room is left on the disk for the cluster's metadata in {self._path}; free some."
        if not self._full:
            log.error("%s", sentence)
        self._full = True
        for request, _ in group:
            _fail(request, UnavailableError(sentence))

    def _save(self, entries: list[tuple[str, Node | None]], zxid: int) -> None:
        database = self._database
        assert database is not None
        database.execute("BEGIN IMMEDIATE")
        try:
            for path, node in entries:
                if node is None:
                    database.execute("DELETE FROM node WHERE path = ?", (path,))
                else:
                    database.execute(
                        "INSERT OR REPLACE INTO node VALUES (?, ?, ?, ?)",
                        (path, node.data, node.stat.version, node.stat.created),
                    )
            database.execute("INSERT OR REPLACE INTO state VALUES (0, ?)", (zxid,))
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise

    def _wake(self, prepared: Prepared) -> None:
        """Call the watches, after the tree has changed."""
        watches: list[tuple[int, Watch]] = []
        for path in prepared.nodes:
            watches += self._node_watches.pop(path, [])
        for path in (*prepared.created, *prepared.deleted):
            watches += self._child_watches.pop(parent_of(path), [])
        loop = asyncio.get_running_loop()
        for _, watch in watches:
            loop.call_soon(watch)


class EmbeddedSession:
    """A Store on the tree of an EmbeddedStore in this process."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store
        self._session_id = store.begin_session(self)
        self._listeners: list[Callable[[SessionState], None]] = []
        self._closed = False

    @property
    def session_id(self) -> int:
        return self._session_id

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat] | None:
        self._check()
        if watch is not None:
            self._store.watch_node(path, self._session_id, watch)
        return self._store.read(path)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        self._check()
        if watch is not None:
            self._store.watch_children(path, self._session_id, watch)
        return self._store.children(path)

    async def commit(self, ops: Sequence[Op]) -> list[Stat | None]:
        self._check()
        return await self._store.commit(ops, self._session_id)

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        self._listeners.append(listener)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._store.end_session(self._session_id)
        self._notify(SessionState.CLOSED)

    async def expire(self) -> None:
        """End the session, as the store does when a broker goes silent, and begin a new one at once."""
        ended = self._session_id
        self._session_id = self._store.begin_session(self)
        await self._store.end_session(ended)
        self._notify(SessionState.EXPIRED)
        self._notify(SessionState.CONNECTED)

    def _notify(self, state: SessionState) -> None:
        for listener in self._listeners:
            listener(state)

    def _check(self) -> None:
        if self._closed:
            raise SessionExpiredError("The session is closed.")


def _fail(request: _Request, error: StoreError) -> None:
    if not request.future.done():
        request.future.set_exception(error)
