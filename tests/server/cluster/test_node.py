import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from headrace.clock import SystemClock
from headrace.server.cluster import brokers
from headrace.server.cluster.changes import Change, TopicCreated
from headrace.server.cluster.config_changes import ConfigOp, OpType
from headrace.server.cluster.controller import ControllerState
from headrace.server.cluster.controller_election import CONTROLLER
from headrace.server.cluster.decisions import (
    allocate_producer_ids,
    create_topics,
    incremental_alter_configs,
    unregister_broker,
)
from headrace.server.cluster.differences import apply_changes
from headrace.server.cluster.image import ConfigResource, MetadataImage, ResourceType
from headrace.server.cluster.join import join
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.registration import BROKER_IDS, Registration
from headrace.server.cluster.sequence import CHANGES, SNAPSHOT_EVERY, load
from headrace.server.cluster.store import Create, Delete, UnavailableError
from headrace.server.config.broker import BrokerConfig
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic

Cluster = Any
"""The fixture's class, which lives in conftest."""


async def create(node: ClusterNode, name: str, partitions: int = 1, replication: int = 1) -> None:
    assert node.controller is not None
    wanted = CreatableTopic(name, partitions, replication)
    (created,) = await node.controller.decide(create_topics([wanted]))
    assert created.error is None, created.error


async def test_a_lone_broker_is_its_own_controller(cluster: Cluster) -> None:
    node = await cluster.start(1)
    assert node.image.controller_id == 1
    assert node.controller is not None
    assert node.image.brokers[1].active
    assert node.image.brokers[1].epoch == node.broker_epoch
    assert len(node.image.cluster_id) == 22


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


async def test_a_lone_broker_that_crashed_leads_under_a_new_epoch(cluster: Cluster) -> None:
    node = await cluster.start(1)
    await create(node, "orders")
    await cluster.stop(1)
    node = await cluster.start(1, stopped_cleanly=False)
    partition = node.image.partition("orders", 0)
    assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 1, (1,))


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


async def test_a_broker_that_goes_is_replaced_as_leader_and_leaves_the_isr(cluster: Cluster) -> None:
    for broker_id in (1, 2, 3):
        await cluster.start(broker_id)
    await create(cluster.controller, "orders", 3, 3)
    await cluster.stop(3)
    node = await cluster.elected()
    await asyncio.wait_for(node.until(lambda image: image.brokers[3].fenced), 20)
    for partition in node.image.topics["orders"].partitions:
        assert partition.leader in (1, 2)
        assert set(partition.isr) == {1, 2}
        moved = partition.replicas[0] == 3
        assert (partition.leader_epoch, partition.partition_epoch) == (int(moved), 1)


async def test_a_new_controller_follows_one_that_went(cluster: Cluster) -> None:
    await cluster.start(1)
    second = await cluster.start(2)
    epoch = second.image.controller_epoch
    await cluster.stop(1)
    node = await cluster.elected()
    assert node is second
    assert second.image.controller_id == 2
    assert second.image.controller_epoch > epoch
    await create(second, "after", 1, 1)


async def test_a_controller_that_was_replaced_writes_nothing(cluster: Cluster) -> None:
    first = await cluster.start(1)
    second = await cluster.start(2)
    old = first.controller
    assert old is not None
    # Its session ends; the controller itself has not noticed, as after a pause.
    stale_image = old.image
    await first._store.expire()
    node = await cluster.elected()
    assert node.controller is not None
    assert node.controller.epoch > old.epoch
    old._state, old._writer._closed = ControllerState.ACTIVE, False
    old._writer.image = stale_image
    writer = asyncio.create_task(old._writer.run())
    with pytest.raises(KafkaError) as caught:
        await asyncio.wait_for(old.decide(create_topics([CreatableTopic("ghost", 1, 1)])), 20)
    await writer
    assert caught.value.code is ErrorCode.NOT_CONTROLLER
    await create(node, "real")
    await cluster.settled()
    image, _ = await load(second._store, MetadataImage())
    assert "ghost" not in image.topics
    assert "real" in image.topics


async def test_a_broker_whose_session_expired_registers_again(cluster: Cluster) -> None:
    first = await cluster.start(1)
    second = await cluster.start(2)
    await create(first, "orders", 2, 2)
    epoch = second.broker_epoch
    await second._store.expire()
    await asyncio.wait_for(
        first.until(lambda image: image.brokers[2].epoch > epoch and image.brokers[2].active), 20
    )
    assert second.broker_epoch == first.image.brokers[2].epoch


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


async def test_operations_sent_at_once_are_decided_one_after_the_other(cluster: Cluster) -> None:
    node = await cluster.start(1)
    assert node.controller is not None
    attempts = [node.controller.decide(create_topics([CreatableTopic("once", 1, 1)])) for _ in range(10)]
    errors = [results[0].error for results in await asyncio.gather(*attempts)]
    assert [error.code for error in errors if error is not None] == [ErrorCode.TOPIC_ALREADY_EXISTS] * 9


async def test_validate_only_changes_nothing(cluster: Cluster) -> None:
    node = await cluster.start(1)
    assert node.controller is not None
    offset = node.image.offset
    wanted = create_topics([CreatableTopic("maybe", 1, 1)])
    (result,) = await node.controller.decide(wanted, validate_only=True)
    assert result.error is None
    await cluster.settled()
    assert (node.image.offset, "maybe" in node.image.topics) == (offset, False)


async def test_producer_ids_are_given_out_in_blocks_that_never_meet(cluster: Cluster) -> None:
    node = await cluster.start(1)
    assert node.controller is not None
    blocks = await asyncio.gather(
        *(node.controller.decide(allocate_producer_ids(1, node.broker_epoch)) for _ in range(5))
    )
    assert [first for first, _ in blocks] == [0, 1000, 2000, 3000, 4000]
    with pytest.raises(KafkaError) as caught:
        await node.controller.decide(allocate_producer_ids(1, node.broker_epoch - 1))
    assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH


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


async def test_a_broker_that_stops_in_good_order_hands_its_leaders_over_first(cluster: Cluster) -> None:
    await cluster.start(1)
    second = await cluster.start(2)
    await create(cluster.controller, "both", 4, 2)
    await create(cluster.controller, "alone", 2, 1)
    await cluster.settled()
    await asyncio.wait_for(second.hand_over(10), 20)
    assert {partition.leader for partition in second.image.topics["both"].partitions} == {1}
    # Nobody else has these, so it leads them until it is gone.
    assert {partition.leader for partition in second.image.topics["alone"].partitions} == {1, 2}


async def all_go_at_once(cluster: Cluster) -> None:
    """As when the power fails: nobody is left to note who went first."""
    for node in cluster.nodes.values():
        for task in node._tasks:
            task.cancel()
    for node in cluster.nodes.values():
        if node.controller is not None:
            await node.controller.stop()
    await cluster.close()
    await cluster.open()


async def two_in_sync(cluster: Cluster) -> int:
    """Two brokers with a partition on both; returns the epoch of the first."""
    first = await cluster.start(1)
    await cluster.start(2)
    await create(cluster.controller, "orders", 1, 2)
    await cluster.settled()
    epoch: int = first.broker_epoch
    return epoch


async def test_of_brokers_that_went_together_the_first_to_return_leads(cluster: Cluster) -> None:
    await two_in_sync(cluster)
    await all_go_at_once(cluster)
    second = await cluster.start(2, stopped_cleanly=False)
    partition = second.image.partition("orders", 0)
    assert (partition.leader, partition.isr) == (2, (2,))
    assert partition.leader_epoch > 0


async def test_a_broker_back_first_without_its_data_waits_for_the_one_that_has_it(cluster: Cluster) -> None:
    await two_in_sync(cluster)
    await all_go_at_once(cluster)
    first = await cluster.start(1, kept_its_data=False, stopped_cleanly=False)
    partition = first.image.partition("orders", 0)
    assert (partition.leader, partition.isr) == (-1, (2,))
    second = await cluster.start(2, stopped_cleanly=False)
    partition = second.image.partition("orders", 0)
    assert (partition.leader, partition.isr) == (2, (2,))


async def test_a_broker_back_first_with_an_old_copy_of_its_data_waits_too(cluster: Cluster) -> None:
    """A backup may even have been stopped cleanly; but it does not know the broker's last epoch."""
    epoch = await two_in_sync(cluster)
    await all_go_at_once(cluster)
    first = await cluster.start(1, previous_epoch=epoch - 1)
    partition = first.image.partition("orders", 0)
    assert (partition.leader, partition.isr) == (-1, (2,))


async def test_a_controller_that_sees_its_successor_answers_no_more(cluster: Cluster) -> None:
    """Until it wrote something it would not notice, and tell leaders what it knows for ever."""
    first = await cluster.start(1)
    second = await cluster.start(2)
    old = first.controller
    assert old is not None
    await second._store.commit([Delete(CONTROLLER)])
    await asyncio.wait_for(second.until(lambda image: image.controller_epoch > old.epoch), 20)
    await asyncio.wait_for(first.until(lambda image: image.controller_epoch > old.epoch), 20)
    assert not old.active


@pytest.mark.parametrize(("name", "data"), [("7", b'{"listener_names": []}'), ("x", b"{}"), ("8", b"")])
async def test_what_others_put_beside_the_brokers_is_left_alone(
    cluster: Cluster, name: str, data: bytes
) -> None:
    """Every broker would fail at it, and the cluster would have no controller."""
    first = await cluster.start(1)
    await first._store.commit([Create(f"{BROKER_IDS}/{name}", data)])
    await cluster.start(2)
    await cluster.stop(1)
    node = await cluster.elected()
    assert set(node.image.brokers) == {1, 2}


async def test_a_broker_is_forgotten_for_good_unless_it_is_alive(cluster: Cluster) -> None:
    first = await cluster.start(1)
    await cluster.start(2)
    await create(first, "orders", 2, 2)
    await cluster.stop(2)
    await asyncio.wait_for(first.until(lambda image: image.brokers[2].fenced), 20)
    await first.decide(unregister_broker(2))
    assert 2 not in first.image.brokers
    offset = first.image.offset
    await first.decide(unregister_broker(1))
    await asyncio.wait_for(first.until(lambda image: image.offset > offset + 1 and image.active(1)), 20)
    assert {partition.leader for partition in first.image.topics["orders"].partitions} == {1}


async def test_two_brokers_with_one_id_are_told_apart(cluster: Cluster) -> None:
    await cluster.start(1, {"zookeeper.session.timeout.ms": "100"})
    assert cluster.store is not None
    config = BrokerConfig.load({"zookeeper.session.timeout.ms": "-1900"})
    other = ClusterNode(cluster.store.connect(), Registration(1, (), "another-disk"), config, SystemClock())
    with pytest.raises(KafkaError, match="give this one another"):
        await asyncio.wait_for(other.start(), 20)
    await other.stop()


async def test_a_restarted_broker_takes_the_place_of_its_former_life(cluster: Cluster) -> None:
    first = await cluster.start(1)
    before = first.broker_epoch
    assert cluster.store is not None
    registration = Registration(1, (), "disk-1", stopped_cleanly=False)
    again = ClusterNode(cluster.store.connect(), registration, BrokerConfig.load({}), SystemClock())
    await asyncio.wait_for(again.start(), 20)
    assert again.broker_epoch > before
    await again.stop()


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


async def test_a_broker_that_loses_the_store_between_its_first_steps_is_not_taken_for_an_old_copy(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await cluster.start(1)
    second = await cluster.start(2)
    assert first.controller is not None
    wanted = CreatableTopic("orders", -1, -1, [CreatableReplicaAssignment(0, [1, 2])])
    (created,) = await first.controller.decide(create_topics([wanted]))
    assert created.error is None, created.error
    lived = second.broker_epoch
    await cluster.stop(2)
    away = iter([True])

    async def stand(self: ClusterNode) -> None:
        if self.broker_id == 2 and next(away, False):
            # The controller has seen this registration before the next one comes.
            await first.until(lambda image: image.brokers[2].epoch == self.broker_epoch)
            raise UnavailableError("the store is away")
        await stand_for_election(self)

    stand_for_election = ClusterNode._stand_for_election
    monkeypatch.setattr(ClusterNode, "_stand_for_election", stand)
    with noted_arrivals(monkeypatch) as arrivals:
        await cluster.start(2, previous_epoch=lived, kept_its_data=True)
    assert next(away, None) is None, "the store was away once"
    kept = [kept for broker_id, kept in arrivals if broker_id == 2]
    assert len(kept) >= 2
    assert all(kept)


@contextlib.contextmanager
def noted_arrivals(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, bool]]]:
    """Who registered, and whether the controller took its data for what it had."""
    seen: list[tuple[int, bool]] = []
    register = brokers.register

    def noted(image: MetadataImage, came: list[brokers.Arrival], unclean: brokers.Unclean) -> list[Change]:
        seen.extend((each.broker.id, each.kept_its_data) for each in came)
        return register(image, came, unclean)

    monkeypatch.setattr(brokers, "register", noted)
    yield seen
