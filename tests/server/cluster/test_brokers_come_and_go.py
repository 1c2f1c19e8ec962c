"""A broker registers, expires, returns and is forgotten; the cluster moves its leaders and ISRs."""

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from headrace.clock import SystemClock
from headrace.server.cluster import brokers
from headrace.server.cluster.changes import Change
from headrace.server.cluster.decisions import (
    create_topics,
    unregister_broker,
)
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.node import ClusterNode
from headrace.server.cluster.registration import BROKER_IDS, Registration
from headrace.server.cluster.store import Create, UnavailableError
from headrace.server.config.broker import BrokerConfig
from headrace.wire.errors import KafkaError
from headrace.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic
from tests.server.cluster.nodes import Cluster, create


async def test_a_lone_broker_that_crashed_leads_under_a_new_epoch(cluster: Cluster) -> None:
    node = await cluster.start(1)
    await create(node, "orders")
    await cluster.stop(1)
    node = await cluster.start(1, stopped_cleanly=False)
    partition = node.image.partition("orders", 0)
    assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 1, (1,))


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


async def test_a_broker_that_stops_in_good_order_hands_its_leaders_over_first(cluster: Cluster) -> None:
    await cluster.start(1)
    second = await cluster.start(2)
    await create(cluster.controller, "both", 4, 2)
    await create(cluster.controller, "alone", 2, 1)
    await cluster.settled()
    await asyncio.wait_for(second.hand_over(10), 20)
    assert {partition.leader for partition in second.image.topics["both"].partitions} == {1}
    # No other broker has these, so it leads them until it leaves.
    assert {partition.leader for partition in second.image.topics["alone"].partitions} == {1, 2}


async def all_go_at_once(cluster: Cluster) -> None:
    """As in a power cut: no broker is left to record which one went first."""
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


@pytest.mark.parametrize(("name", "data"), [("7", b'{"listener_names": []}'), ("x", b"{}"), ("8", b"")])
async def test_what_others_put_beside_the_brokers_is_left_alone(
    cluster: Cluster, name: str, data: bytes
) -> None:
    """Otherwise every broker would fail on it, and the cluster would have no controller."""
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
    """Which brokers registered, and whether the controller trusted their data."""
    seen: list[tuple[int, bool]] = []
    register = brokers.register

    def noted(image: MetadataImage, came: list[brokers.Arrival], unclean: brokers.Unclean) -> list[Change]:
        seen.extend((each.broker.id, each.kept_its_data) for each in came)
        return register(image, came, unclean)

    monkeypatch.setattr(brokers, "register", noted)
    yield seen
