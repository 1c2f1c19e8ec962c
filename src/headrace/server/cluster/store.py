"""The store behind the cluster: a small tree of versioned nodes, after ZooKeeper.

A session reads the tree and changes it in small all-or-nothing transactions. Ephemeral nodes are deleted when the session that
created them ends. A watch fires once, at the next change of what it watches. Three implementations keep this contract:
`embedded.py` (one process), `remote.py` (the embedded store reached over a socket), `zookeeper.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

Watch = Callable[[], None]
"""Called once, on the event loop, when what it watches has changed; dropped when the session ends."""


class Stat(NamedTuple):
    """`version` counts the changes of a node; `created` is the transaction that created it and only grows."""

    version: int
    created: int
    owner: int = 0
    """The session of an ephemeral node, or 0."""


@dataclass(frozen=True, slots=True)
class Create:
    """The parent must exist."""

    path: str
    data: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    """Replace the data of a node."""

    path: str
    data: bytes
    version: int = -1
    """The version the node must have; -1 for any."""


@dataclass(frozen=True, slots=True)
class Delete:
    """The node must have no children."""

    path: str
    version: int = -1


@dataclass(frozen=True, slots=True)
class Check:
    """Fail the transaction unless a node has this version."""

    path: str
    version: int


Op = Create | SetData | Delete | Check


class SessionState(enum.Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """The store cannot be reached; the session may still be alive."""
    EXPIRED = "expired"
    """The session is over and its ephemeral nodes are gone; a new session begins automatically."""
    CLOSED = "closed"


class StoreError(Exception):
    """An operation that the store could not carry out."""


class ConflictError(StoreError):
    """A transaction that changed nothing, because of the operation at `index`."""

    def __init__(self, index: int, path: str) -> None:
        super().__init__(f"operation {index} on {path}: {type(self).__name__}")
        self.index = index
        self.path = path


class NoNodeError(ConflictError):
    pass


class NodeExistsError(ConflictError):
    pass


class BadVersionError(ConflictError):
    pass


class NotEmptyError(ConflictError):
    pass


class UnavailableError(StoreError):
    """The store did not reply. A transaction may or may not have happened."""


class SessionExpiredError(StoreError):
    """The session is over; the operation changed nothing."""


class Store(Protocol):
    """One session with the store."""

    @property
    def session_id(self) -> int: ...

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat] | None:
        """A node's data, or None when there is no such node; either way `watch` fires at the node's next change."""
        ...

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The names below a node, sorted; empty when there is no such node. `watch` fires when they change."""
        ...

    async def commit(self, ops: Sequence[Op]) -> list[Stat | None]:
        """All of `ops` or none (ConflictError). The result has a Stat for each SetData and each ephemeral Create."""
        ...

    def on_session(self, listener: Callable[[SessionState], None]) -> None:
        """Call `listener` with every change of the session's state."""
        ...

    async def close(self) -> None:
        """End the session; its ephemeral nodes are deleted at once."""
        ...


async def ensure(store: Store, paths: Sequence[str]) -> None:
    """Create the nodes that do not exist yet, parents first."""
    for path in paths:
        if await store.get(path) is None:
            try:
                await store.commit([Create(path)])
            except NodeExistsError:
                continue
