"""A ZooKeeper connection for asyncio: kazoo's threads on one side, the event loop on the other.

Owns one session. Everything kazoo reports from its own threads reaches the loop as a callback there; every request
runs in a thread and is awaited. Tells its owner when a lost connection came back, and whether the session did.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.connection import ConnectionHandler
from kazoo.retry import KazooRetry

from headrace.services.errors import RegistryError
from headrace.services.url import URL

logger = logging.getLogger("headrace.services.registry")
T = TypeVar("T")

DEFAULT_PORT = 2181
DEFAULT_CONNECT_MS = 5_000
DEFAULT_SESSION_MS = 60_000
_HANDSHAKE_SECONDS = 5.0


class ZooKeeperConnection:
    """One session; `on_reconnect` runs on the loop each time the connection is back after a loss."""

    def __init__(self, url: URL, on_reconnect: Callable[[], None] | None = None) -> None:
        if url.is_any_host or not url.host:
            raise RegistryError(
                "the ZooKeeper registry has no address: set dubbo.registry.address to zookeeper://host:port"
            )
        self._url = url
        self._on_reconnect = on_reconnect
        self._loop = asyncio.get_running_loop()
        self._was_connected = False
        self.session_seconds = url.get_int("session", DEFAULT_SESSION_MS) / 1000
        self._patience = url.get_int("timeout", DEFAULT_CONNECT_MS) / 1000
        auth = [("digest", f"{url.username}:{url.password or ''}")] if url.username else None
        self._client = _Client(
            hosts=url.backup_address(DEFAULT_PORT),
            timeout=self.session_seconds,
            auth_data=auth,
            connection_retry=KazooRetry(max_tries=-1, delay=0.1, backoff=2, max_delay=2.0),
        )
        self._client.add_listener(self._state_changed)

    @property
    def is_connected(self) -> bool:
        return bool(self._client.connected)

    @property
    def session_id(self) -> int | None:
        identity = self._client.client_id
        return identity[0] if identity else None

    async def start(self) -> None:
        """Connect; an ensemble that does not answer in time is an error unless `check=false`."""
        logger.info("Connecting to ZooKeeper at %s", self._url.backup_address(DEFAULT_PORT))
        connected = self._client.start_async()
        await asyncio.to_thread(connected.wait, self._patience)
        if self.is_connected:
            return
        if self._url.get_bool("check", True):
            await self.close()
            raise RegistryError(
                f"the ZooKeeper registry at {self._url.backup_address(DEFAULT_PORT)} does not answer within "
                f"{self._patience:g} s: start it, correct dubbo.registry.address, or set check=false to go on without it"
            )
        logger.warning("ZooKeeper at %s does not answer yet; trying on", self._url.address)

    async def close(self) -> None:
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        self._client.remove_listener(self._state_changed)
        self._client.stop()
        self._client.close()

    def _state_changed(self, state: str) -> None:
        """Runs in a thread of kazoo's, which must not wait."""
        logger.info("ZooKeeper %s: %s, session 0x%x", self._url.address, state, self.session_id or 0)
        if state == KazooState.CONNECTED:
            if self._was_connected and self._on_reconnect is not None:
                self._post(self._on_reconnect)
            self._was_connected = True

    def _post(self, callback: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # the loop has ended, so there is no listener left
            pass

    # -- nodes -------------------------------------------------------------------------------------------

    async def create(self, path: str, value: bytes = b"", *, ephemeral: bool) -> None:
        """Create a node and its parents; one left by an earlier session of ours is replaced."""
        await self._request(self._create, path, value, ephemeral)

    def _create(self, path: str, value: bytes, ephemeral: bool) -> None:
        for _ in range(3):
            try:
                self._client.create(path, value, ephemeral=ephemeral, makepath=True)
                return
            except NodeExistsError:
                try:
                    _, stat = self._client.get(path)
                    if not ephemeral or stat.ephemeralOwner == self.session_id:
                        return
                    self._client.delete(path)  # its session is dying and would take the node along
                except NoNodeError:
                    continue
        raise RegistryError(f"the node {path} keeps appearing and vanishing: does another process own it?")

    async def store(self, path: str, value: bytes) -> None:
        """Write a lasting node."""

        def write() -> None:
            self._client.ensure_path(path)
            self._client.set(path, value)

        await self._request(write)

    async def read(self, path: str) -> bytes | None:
        def read() -> bytes | None:
            try:
                return bytes(self._client.get(path)[0])
            except NoNodeError:
                return None

        return await self._request(read)

    async def delete(self, path: str) -> None:
        def delete() -> None:
            try:
                self._client.delete(path)
            except NoNodeError:
                pass

        await self._request(delete)

    async def children(self, path: str, on_change: Callable[[], None] | None = None) -> list[str]:
        """A node's children; `on_change` runs once on the loop at the next change or loss of connection."""

        def read() -> list[str]:
            if on_change is not None:
                self._client.ensure_path(path)
            watch = None if on_change is None else (lambda event: self._post(on_change))
            try:
                return list(self._client.get_children(path, watch=watch))
            except NoNodeError:
                return []

        return await self._request(read)

    async def _request(self, function: Callable[..., T], *args: Any) -> T:
        if not self.is_connected:
            raise RegistryError(f"ZooKeeper at {self._url.address} is not connected")
        try:
            # A request made just before a loss is noticed waits in kazoo for the ensemble to return; the caller does not.
            return await asyncio.wait_for(asyncio.to_thread(function, *args), self._patience)
        except TimeoutError:
            raise RegistryError(
                f"ZooKeeper at {self._url.address} did not answer within {self._patience:g} s"
            ) from None
        except (KazooException, KazooTimeoutError) as error:
            reason = str(error) or type(error).__name__
            raise RegistryError(f"ZooKeeper at {self._url.address} refused: {reason}") from error


class _Client(KazooClient):  # type: ignore[misc]
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._connection = _Connection(self, self._conn_retry.copy(), logger=self.logger)


class _Connection(ConnectionHandler):  # type: ignore[misc]
    """Tries anew when the handshake is not answered: kazoo alone waits a whole session timeout, a minute by default.

    A ZooKeeper server that is just starting drops some of the first handshakes without a word.
    """

    def _invoke(self, timeout: float, request: Any, xid: int | None = None) -> Any:
        return super()._invoke(min(timeout, _HANDSHAKE_SECONDS), request, xid)
