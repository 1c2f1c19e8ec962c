"""Joining a cluster: opens the store that the settings name and starts the broker's membership."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from headrace.clock import Clock
from headrace.server.cluster.embedded import FILE_NAME, EmbeddedStore
from headrace.server.cluster.node import CallBroker, ClusterNode, Listener
from headrace.server.cluster.registration import Registration
from headrace.server.cluster.store import Store, StoreError
from headrace.server.config.broker import BrokerConfig

CloseStore = Callable[[], Awaitable[None]]
OpenStore = Callable[[BrokerConfig, Clock], Awaitable[tuple[Store, CloseStore | None]]]


async def join(
    config: BrokerConfig,
    registration: Registration,
    clock: Clock,
    listener: Listener | None = None,
    call_broker: CallBroker | None = None,
    opening: OpenStore | None = None,
) -> ClusterNode:
    """Returns once the image is loaded, this broker is alive in it, and there is a controller.

    `listener` gets every change from the very first, including those that load the image. `opening` finds the store, otherwise the
    settings say where it is. StoreError says what is wrong with the store and what to do.
    """
    store, close_store = await (opening or open_store)(config, clock)
    node = ClusterNode(store, registration, config, clock, call_broker=call_broker, close_store=close_store)
    if listener is not None:
        node.subscribe(listener)
    try:
        await node.start()
    except BaseException:
        await node.stop()
        raise
    return node


async def open_store(config: BrokerConfig, clock: Clock) -> tuple[Store, CloseStore | None]:
    """A session, and how to close the store itself if it belongs to this broker alone."""
    session_timeout = config.integer("zookeeper.session.timeout.ms") / 1000
    ensemble = config.string("zookeeper.connect")
    if ensemble:
        try:
            from headrace.server.cluster.zookeeper import ZooKeeperStore
            from headrace.server.cluster.zookeeper_access import ZooKeeperAccess
        except ImportError:
            raise StoreError("zookeeper.connect needs kazoo: pip install 'headrace[zookeeper]'.") from None
        patience = config.value("zookeeper.connection.timeout.ms")
        connection_timeout = patience / 1000 if isinstance(patience, int) else None
        access = ZooKeeperAccess.of(config)
        store = await ZooKeeperStore.open(ensemble, session_timeout, connection_timeout, clock, access)
        return store, None
    socket = config.string("headrace.store")
    if socket:
        from headrace.server.cluster.remote import RemoteStore

        return await RemoteStore.open(Path(socket), session_timeout, clock), None
    embedded = await EmbeddedStore.open(_file(config))
    return embedded.connect(), embedded.close


def _file(config: BrokerConfig) -> Path:
    directory = config.log_dirs[0]
    directory.mkdir(parents=True, exist_ok=True)
    return directory / FILE_NAME
