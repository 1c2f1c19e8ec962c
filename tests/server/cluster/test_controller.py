"""One controller at a time, and it decides one operation after the other."""

import asyncio

import pytest

from headrace.server.cluster.controller import ControllerState
from headrace.server.cluster.controller_election import CONTROLLER
from headrace.server.cluster.decisions import (
    allocate_producer_ids,
    create_topics,
)
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.sequence import load
from headrace.server.cluster.store import Delete
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_topics import CreatableTopic
from tests.server.cluster.nodes import Cluster, create


async def test_a_lone_broker_is_its_own_controller(cluster: Cluster) -> None:
    node = await cluster.start(1)
    assert node.image.controller_id == 1
    assert node.controller is not None
    assert node.image.brokers[1].active
    assert node.image.brokers[1].epoch == node.broker_epoch
    assert len(node.image.cluster_id) == 22


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


async def test_a_controller_that_sees_its_successor_answers_no_more(cluster: Cluster) -> None:
    """Otherwise it would not notice until its next write, and keep answering leaders from an old image."""
    first = await cluster.start(1)
    second = await cluster.start(2)
    old = first.controller
    assert old is not None
    await second._store.commit([Delete(CONTROLLER)])
    await asyncio.wait_for(second.until(lambda image: image.controller_epoch > old.epoch), 20)
    await asyncio.wait_for(first.until(lambda image: image.controller_epoch > old.epoch), 20)
    assert not old.active
