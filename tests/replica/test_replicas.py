"""All partitions of a broker: a log that fails keeps none of the others from its role."""

import uuid
from concurrent.futures import ThreadPoolExecutor

from headrace.clock import SystemClock
from headrace.cluster.image import ImageBuilder, MetadataImage, Topic
from headrace.cluster.image import Partition as PartitionState
from headrace.config.broker import BrokerConfig
from headrace.log.flusher import GroupFlusher
from headrace.log.manager import LogManager
from headrace.replica.replicas import Replicas


def with_leader(image, topic_id, leader, epoch):
    """A topic of two partitions with this leader."""
    state = PartitionState((1, 2), (1, 2), leader, epoch, partition_epoch=epoch)
    builder = ImageBuilder(image)
    builder.put_topic(Topic("orders", topic_id, (state, state)))
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
