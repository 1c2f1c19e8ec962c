"""A request that waits for a record is answered when that record is committed: not later, and not for another one."""

import pytest

from headrace.testing.wire import batch
from headrace.wire.errors import ErrorCode


def waits(partition, offset, heard, name):
    partition.when_committed(offset, lambda code: heard.append((name, code)))


async def test_a_batch_sent_twice_is_acknowledged_with_its_first_and_not_with_what_came_between(
    make_partition,
):
    partition = make_partition("orders", replicas=(1, 2))
    heard = []
    for number, name in enumerate(("first", "between")):
        partition.append(memoryview(bytearray(batch(name.encode()))), acks=-1)
        waits(partition, number, heard, name)
    waits(partition, 0, heard, "first again")
    partition.follower_fetched(2, 1, broker_epoch=1, now=1.0)
    assert heard == [("first", ErrorCode.NONE), ("first again", ErrorCode.NONE)]
    partition.follower_fetched(2, 2, broker_epoch=1, now=1.0)
    assert heard[-1] == ("between", ErrorCode.NONE)


@pytest.mark.parametrize("times", [1, 2])
async def test_a_record_that_recovery_may_have_lost_is_never_acknowledged(make_partition, times):
    partition = make_partition("orders", replicas=(1, 2))
    heard = []
    partition.append(memoryview(bytearray(batch(b"perhaps lost"))), acks=-1)
    waits(partition, 0, heard, "waiting")
    partition.log.take_offline("the disk failed")
    for _ in range(times):
        partition.log_failed()
    partition.log.reopen()
    partition.follower_fetched(2, 1, broker_epoch=1, now=1.0)
    assert heard == [("waiting", ErrorCode.KAFKA_STORAGE_ERROR)]
