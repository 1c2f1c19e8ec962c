"""What most brokers never do (share groups, mirror links, metrics of clients): made, and its modules imported, when it is first asked for or has work.

State on disk and links in the metadata are work: their part begins by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Generic, TypeVar

from headrace.clock import Clock
from headrace.server.cluster.auto_topic_creation import AutoTopicCreation
from headrace.server.cluster.changes import Change
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.internal_topics import SHARE_GROUP_STATE
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.peers import Peers
from headrace.server.config.broker import BrokerConfig
from headrace.server.groups.coordinator import GroupCoordinator
from headrace.server.replica.replicas import Replicas
from headrace.server.replica.turn import Turn
from headrace.server.share.leadership import StateLeadership

if TYPE_CHECKING:
    from headrace.server.mirror.mirrors import Mirrors
    from headrace.server.share.attach import Sharing
    from headrace.server.telemetry.clients import Telemetry

T = TypeVar("T")


class FirstUse(Generic[T]):
    """Called, it gives the part."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self.made: T | None = None
        """None while nothing has asked for it."""

    def __call__(self) -> T:
        if self.made is None:
            self.made = self._make()
        return self.made


def share_groups(
    config: BrokerConfig,
    clock: Clock,
    cluster: ClusterNode,
    replicas: Replicas,
    peers: Peers,
    topics: AutoTopicCreation,
    disk: Executor,
    turn: Turn,
    undo: AsyncExitStack,
) -> FirstUse[Sharing]:
    """They begin with a request for them, or when this broker leads a partition of their state."""

    def make() -> Sharing:
        from headrace.server.share.attach import attach_sharing

        return attach_sharing(config, clock, cluster, replicas, peers, topics, disk, turn)

    def close() -> None:
        if sharing.made is not None:
            sharing.made.close()

    sharing = FirstUse(make)
    undo.callback(close)
    replicas.listen(SHARE_GROUP_STATE, StateLeadership(lambda: sharing().coordinator, disk))
    return sharing


def mirror_links(
    cluster: ClusterNode,
    replicas: Replicas,
    groups: GroupCoordinator,
    peers: Peers,
    topics: AutoTopicCreation,
    clock: Clock,
    undo: AsyncExitStack,
) -> FirstUse[Mirrors]:
    """They begin with a request about them, or when the cluster has a link or a mirrored topic."""

    def make() -> Mirrors:
        from headrace.server.mirror.mirrors import Mirrors

        mirrors = Mirrors(cluster, replicas, groups, peers, topics, clock)
        mirrors.start()
        return mirrors

    async def stop() -> None:
        if mirrors.made is not None:
            await mirrors.made.stop()

    def changed(old: MetadataImage, new: MetadataImage, changes: Sequence[Change]) -> None:
        if new.links or new.mirrored:
            mirrors()

    mirrors = FirstUse(make)
    undo.push_async_callback(stop)
    cluster.subscribe(changed)
    changed(cluster.image, cluster.image, ())
    return mirrors


def client_metrics(cluster: ClusterNode, clock: Clock, undo: AsyncExitStack) -> FirstUse[Telemetry]:
    """They begin with a client that asks what to push."""

    def make() -> Telemetry:
        from headrace.server.telemetry.clients import Telemetry

        telemetry = Telemetry(clock)
        telemetry.follow(cluster)
        return telemetry

    def close() -> None:
        if telemetry.made is not None:
            telemetry.made.close()

    telemetry = FirstUse(make)
    undo.callback(close)
    return telemetry
