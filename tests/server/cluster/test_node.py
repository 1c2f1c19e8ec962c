"""Every broker follows the cluster's changes, in order, and finds them again after a restart."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from headrace.clock import SystemClock
from headrace.server.cluster.changes import Change, TopicCreated
from headrace.server.cluster.config_changes import ConfigOp, OpType
from headrace.server.cluster.decisions import (
    create_topics,
    incremental_alter_configs,
)
from headrace.server.cluster.differences import apply_changes
from headrace.server.cluster.image import ConfigResource, MetadataImage, ResourceType
from headrace.server.cluster.join import join
from headrace.server.cluster.registration import Registration
from headrace.server.cluster.sequence import CHANGES, SNAPSHOT_EVERY
from headrace.server.config.broker import BrokerConfig
from headrace.wire.messages.create_topics import CreatableTopic
from tests.server.cluster.nodes import Cluster, create


async def test_what_is_created_is_there_after_a_restart(cluster: Cluster) -> None:
    node = await cluster.start(1)
    await create(node, "orders", 3)
    await cluster.settled()
    before = node.image
    epoch = node.broker_epoch
    await cluster.close()
    await cluster.open()
    node = await cluster.start(1)
    assert node.image.topics == before.topics
    assert node.image.cluster_id == before.cluster_id
    assert node.image.controller_epoch == before.controller_epoch + 1
    assert node.broker_epoch > epoch


async def test_listeners_are_told_every_change_once_and_in_order(cluster: Cluster) -> None:
    node = await cluster.start(1)
    seen: list[tuple[MetadataImage, MetadataImage, Sequence[Change]]] = []
    node.subscribe(lambda *event: seen.append(event))
    start = node.image
    for number in range(20):
        await create(node, f"t{number}")
    await cluster.settled()
    image = start
    for old, new, changes in seen:
        assert old == image
        image = apply_changes(old, new.offset, changes)
        assert image == new
    assert image == node.image
    created = [
        change.topic.name for _, _, changes in seen for change in changes if isinstance(change, TopicCreated)
    ]
    assert created == [f"t{number}" for number in range(20)]


async def test_every_broker_sees_the_same_history(cluster: Cluster) -> None:
    first = await cluster.start(1)
    second = await cluster.start(2)
    third = await cluster.start(3)
    await create(cluster.controller, "orders", 6, 3)
    await cluster.settled()
    assert first.image == second.image == third.image
    assert {broker.id for broker in third.image.brokers.values() if broker.active} == {1, 2, 3}
    assert sum(node.controller is not None for node in cluster.nodes.values()) == 1


async def test_a_broker_far_behind_catches_up_from_a_snapshot(cluster: Cluster) -> None:
    node = await cluster.start(1)
    assert cluster.store is not None
    for number in range(SNAPSHOT_EVERY + 10):
        await create(node, f"t{number}")
    await cluster.settled()

    async def trimmed() -> None:
        changed = asyncio.Event()
        while len(await node._store.children(CHANGES, changed.set)) > SNAPSHOT_EVERY:
            await changed.wait()
            changed.clear()

    await asyncio.wait_for(trimmed(), 20)
    second = await cluster.start(2)
    await cluster.settled()
    assert second.image == node.image
    assert len(second.image.topics) == SNAPSHOT_EVERY + 10


async def test_a_follower_that_slept_through_a_snapshot_is_told_the_difference(cluster: Cluster) -> None:
    node = await cluster.start(1)
    late = await cluster.start(2)
    await cluster.settled()
    seen: list[Sequence[Change]] = []
    late.subscribe(lambda old, new, changes: seen.append(changes))
    late._tasks[0].cancel()
    for number in range(SNAPSHOT_EVERY + 100):
        await create(node, f"t{number}")
    late._tasks.append(asyncio.create_task(late._follow()))
    late._head_changed.set()
    await cluster.settled()
    assert late.image == node.image
    created = [
        change.topic.name for changes in seen for change in changes if isinstance(change, TopicCreated)
    ]
    assert sorted(created) == sorted(f"t{number}" for number in range(SNAPSHOT_EVERY + 100))


async def test_a_brokers_settings_follow_the_image(cluster: Cluster) -> None:
    node = await cluster.start(1, {"log.retention.ms": "1"})
    assert node.controller is not None
    resource = ConfigResource(ResourceType.BROKER, "")
    ops = [ConfigOp("log.retention.ms", OpType.SET, "2")]
    await node.controller.decide(incremental_alter_configs({resource: ops}))
    await cluster.settled()
    assert node.config.topic_config({}).retention_ms == 2
    ops = [ConfigOp("log.retention.ms", OpType.DELETE)]
    await node.controller.decide(incremental_alter_configs({resource: ops}))
    await cluster.settled()
    assert node.config.topic_config({}).retention_ms == 1


async def test_two_thousand_partitions_are_read_from_disk_whole(tmp_path: Path, cluster: Cluster) -> None:
    node = await cluster.start(1)
    assert node.controller is not None
    wanted = [CreatableTopic(f"t{number}", 4, 1) for number in range(500)]
    await node.controller.decide(create_topics(wanted))
    await cluster.settled()
    topics = node.image.topics
    await cluster.close()
    await cluster.open()
    node = await cluster.start(1)
    assert node.image.topics == topics


async def test_joining_with_plain_settings_uses_the_store_in_the_data_directory(tmp_path: Path) -> None:
    config = BrokerConfig.load({"log.dirs": f"{tmp_path}/one,{tmp_path}/two"})
    offsets: list[int] = []
    for _ in range(2):
        node = await join(
            config,
            Registration(4, (), "disk"),
            SystemClock(),
            lambda old, new, changes: offsets.append(new.offset),
        )
        assert node.image.brokers[4].active
        await node.stop()
    assert (tmp_path / "one" / "cluster.db").exists()
    assert offsets == sorted(offsets)
