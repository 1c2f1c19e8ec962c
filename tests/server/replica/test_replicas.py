"""All partitions of a broker: a failed log does not keep the others from their roles."""

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.clock import SystemClock
from headrace.server.cluster.image import ImageBuilder, MetadataImage, Topic
from headrace.server.cluster.image import Partition as PartitionState
from headrace.server.config.broker import BrokerConfig
from headrace.server.log.flusher import GroupFlusher
from headrace.server.log.manager import LogManager
from headrace.server.replica.replicas import NEW_LOGS_AT_ONCE, Replicas
from headrace.wire.errors import ErrorCode, KafkaError


def with_leader(image, topic_id, leader, epoch, partitions=2):
    """A topic of so many partitions with this leader."""
    state = PartitionState((1, 2), (1, 2), leader, epoch, partition_epoch=epoch)
    builder = ImageBuilder(image)
    builder.put_topic(Topic("orders", topic_id, (state,) * partitions))
    return builder.build()


async def test_a_partition_whose_log_fails_keeps_no_other_from_being_led(tmp_path):
    logs = LogManager([str(tmp_path)])
    logs.open()
    with ThreadPoolExecutor(1) as disk:
        replicas = Replicas(1, logs, BrokerConfig.load({}), GroupFlusher(disk), SystemClock())
        topic_id = uuid.uuid4()
        followed = with_leader(MetadataImage(), topic_id, leader=2, epoch=0)
        replicas.apply(followed)
        logs.get("orders", 0).take_offline("a fault that a test put here")
        replicas.apply(with_leader(followed, topic_id, leader=1, epoch=1))
        assert [replicas.find(b"orders", index, by_id=False).is_leader for index in (0, 1)] == [True, True]
    logs.close()


async def test_the_logs_of_a_large_topic_are_made_while_the_broker_goes_on(tmp_path):
    logs = LogManager([str(tmp_path)])
    logs.open()
    many = 2 * NEW_LOGS_AT_ONCE
    with ThreadPoolExecutor(1) as disk:
        replicas = Replicas(1, logs, BrokerConfig.load({}), GroupFlusher(disk), SystemClock())
        topic_id = uuid.uuid4()
        followed = with_leader(MetadataImage(), topic_id, leader=2, epoch=0, partitions=many)
        replicas.apply(followed)
        assert replicas.find(b"orders", 0, by_id=False)
        with pytest.raises(KafkaError, match="is being made") as refused:
            replicas.find(b"orders", many - 1, by_id=False)
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        replicas.apply(with_leader(followed, topic_id, leader=1, epoch=1, partitions=many))
        for _ in range(many):  # turns of the loop, of which each makes some
            await asyncio.sleep(0)
        assert len(list(replicas)) == many
        assert all(partition.is_leader for partition in replicas), "each has the role of the latest image"
    logs.close()


async def test_logs_that_are_not_wanted_any_more_are_not_made(tmp_path):
    logs = LogManager([str(tmp_path)])
    logs.open()
    with ThreadPoolExecutor(1) as disk:
        replicas = Replicas(1, logs, BrokerConfig.load({}), GroupFlusher(disk), SystemClock())
        many = 2 * NEW_LOGS_AT_ONCE
        replicas.apply(with_leader(MetadataImage(), uuid.uuid4(), leader=1, epoch=0, partitions=many))
        replicas.apply(MetadataImage(offset=1))
        for _ in range(many):
            await asyncio.sleep(0)
        assert not list(replicas)
        assert not logs.logs
    logs.close()


async def test_a_topic_that_cannot_follow_the_image_keeps_no_other_from_it(tmp_path, monkeypatch):
    logs = LogManager([str(tmp_path)])
    logs.open()
    with ThreadPoolExecutor(1) as disk:
        replicas = Replicas(1, logs, BrokerConfig.load({}), GroupFlusher(disk), SystemClock())
        state = PartitionState((1,), (1,), 1)
        builder = ImageBuilder(MetadataImage())
        for name in ("broken", "whole"):
            builder.put_topic(Topic(name, uuid.uuid4(), (state,)))
        settings = replicas._settings

        def settings_of(image, topic):
            if topic.name == "broken":
                raise RuntimeError("a fault that a test put here")
            return settings(image, topic)

        monkeypatch.setattr(replicas, "_settings", settings_of)
        replicas.apply(builder.build())
        assert [str(partition) for partition in replicas] == ["whole-0"]
    logs.close()
