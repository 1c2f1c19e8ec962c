"""The end of the log that consumers see never goes back, even when leaders change."""

from types import SimpleNamespace

import pytest

from headrace.server.api.context import Context
from headrace.server.api.list_offsets import EARLIEST, EARLIEST_PENDING_UPLOAD, LATEST, LATEST_TIERED, handle
from headrace.server.cluster.image import Partition as PartitionState
from headrace.server.net.connection import Connection
from headrace.server.net.fairness import Fairness
from headrace.testing.wire import batch
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic


@pytest.fixture
def partition(make_partition):
    """Two records and a new leader epoch: the leader does not know yet that the follower has them too."""
    partition = make_partition("orders", replicas=(1, 2))
    partition.append(memoryview(bytearray(batch(b"a", b"b"))))
    partition.take_role(PartitionState((1, 2), (1, 2), 1, leader_epoch=1, partition_epoch=1), 1, 0.0)
    return partition


async def ask(partition, time, version=7, replica_id=-1):
    replicas = SimpleNamespace(find=lambda *_, by_id: partition)
    listener = SimpleNamespace(fairness=Fairness(), dispatch=None, max_request_bytes=1, monotonic=lambda: 0.0)
    context = Context(
        SimpleNamespace(replicas=replicas, guarded=False), Connection(listener), version, 1, None
    )
    topic = ListOffsetsTopic("orders", [ListOffsetsPartition(0, -1, time)])
    response = await handle(context, ListOffsetsRequest(replica_id=replica_id, topics=[topic]))
    answer = response.topics[0].partitions[0]
    return ErrorCode(answer.error_code), answer.old_style_offsets if version == 0 else answer.offset


async def test_a_new_leader_tells_the_end_only_when_it_knows_what_was_committed_before(partition):
    assert (await ask(partition, LATEST))[0] is ErrorCode.OFFSET_NOT_AVAILABLE
    assert (await ask(partition, LATEST, version=4))[0] is ErrorCode.LEADER_NOT_AVAILABLE
    assert await ask(partition, EARLIEST) == (ErrorCode.NONE, 0)
    assert await ask(partition, LATEST, replica_id=2) == (ErrorCode.NONE, 2)
    partition.follower_fetched(2, 2, broker_epoch=1, now=1.0)
    assert await ask(partition, LATEST) == (ErrorCode.NONE, 2)


async def test_version_0_lists_one_offset(partition):
    partition.follower_fetched(2, 2, broker_epoch=1, now=1.0)
    assert await ask(partition, LATEST, version=0) == (ErrorCode.NONE, [2])
    assert await ask(partition, EARLIEST, version=0) == (ErrorCode.NONE, [0])


async def test_there_is_nothing_in_or_on_its_way_to_tiered_storage(partition):
    for time in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        assert await ask(partition, time, version=11) == (ErrorCode.NONE, -1)
