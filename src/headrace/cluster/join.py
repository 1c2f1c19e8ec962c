"""Joining a cluster: picks the home of the store that the settings name, and starts the broker's membership."""

from __future__ import annotations

from pathlib import Path

from headrace.clock import Clock
from headrace.cluster.embedded import FILE_NAME, EmbeddedStore
from headrace.cluster.node import ClusterNode, Listener
from headrace.cluster.registration import Registration
from headrace.config.broker import BrokerConfig


async def join(
    config: BrokerConfig, registration: Registration, clock: Clock, listener: Listener | None = None
) -> ClusterNode:
    """A membership that is under way: the image is loaded, this broker is alive in it, and there is a controller.

    `listener` hears every change from the very first, the loading of the image included.
    """
    store = await EmbeddedStore.open(_file(config))
    node = ClusterNode(store.connect(), registration, config, clock, close_store=store.close, lone=True)
    if listener is not None:
        node.subscribe(listener)
    try:
        await node.start()
    except BaseException:
        await node.stop()
        raise
    return node


def _file(config: BrokerConfig) -> Path:
    directory = config.log_dirs[0]
    directory.mkdir(parents=True, exist_ok=True)
    return directory / FILE_NAME
