"""Fetch sessions and partitions that move at an awkward moment."""

from headrace.server.replica.fetching import FetchEntry
from headrace.server.replica.sessions import FetchSession
from headrace.testing.wire import batch
from headrace.wire.fetch import PartitionReply


def asked(partition, offset=0):
    entry = FetchEntry(partition.topic.encode(), partition.index)
    entry.ask(offset, 1 << 20, -1, -1)
    return entry


def read(entry, partition):
    """What a reader finds now: nothing but the high watermark, as at the end of the log."""
    entry.partition = partition
    return entry, PartitionReply(entry.index, 0, partition.log.high_watermark, 0, 0)


def append(partition):
    return partition.append(memoryview(bytearray(batch(b"x"))))


async def test_a_record_that_comes_while_a_thread_is_reading_is_looked_at_again(make_partition):
    partition = make_partition("orders")
    session = FetchSession(1, by_id=False, follower=False, now=0)
    entry = asked(partition)
    session.add(entry)
    session.candidates()
    session.settle([read(entry, partition)])
    session.add(entry)
    session.candidates()
    found = [read(entry, partition)]  # in a thread, which sees nothing
    append(partition)
    session.settle(found)
    assert session.candidates() == [entry]


async def test_the_first_look_from_a_thread_may_have_been_too_early(make_partition):
    partition = make_partition("orders")
    session = FetchSession(1, by_id=False, follower=False, now=0)
    entry = asked(partition)
    session.add(entry)
    session.candidates()
    found = [read(entry, partition)]
    append(partition)
    session.settle(found)
    assert session.candidates() == [entry]


async def test_a_session_that_was_closed_while_a_thread_was_reading_watches_nothing(make_partition):
    partition = make_partition("orders")
    session = FetchSession(1, by_id=False, follower=False, now=0)
    entry = asked(partition)
    session.add(entry)
    session.candidates()
    found = [read(entry, partition)]
    session.close()
    session.settle(found)
    assert not partition._watchers
    assert session.candidates() == []


async def test_a_quiet_follower_is_told_of_the_high_watermark_but_not_woken_for_it(make_partition):
    partition = make_partition("orders", replicas=(1, 2, 3))
    append(partition)
    session = FetchSession(1, by_id=False, follower=True, now=0)
    woken = []
    session.on_change = lambda: woken.append(True)
    entry = asked(partition, offset=1)
    session.add(entry)
    for _ in range(2):
        session.candidates()
        session.settle([read(entry, partition)])
    assert session.candidates() == []
    for replica in (2, 3):
        partition.follower_fetched(replica, 1, broker_epoch=1, now=1.0)
    assert partition.log.high_watermark == 1
    assert session.candidates() == [entry]
    assert not woken
    append(partition)
    assert woken


async def test_a_follower_that_consumers_read_from_is_woken_for_the_high_watermark(make_partition):
    partition = make_partition("orders", replicas=(1, 2, 3))
    append(partition)
    session = FetchSession(1, by_id=False, follower=True, now=0, followers_serve=True)
    woken = []
    session.on_change = lambda: woken.append(True)
    entry = asked(partition, offset=1)
    session.add(entry)
    session.candidates()
    session.settle([read(entry, partition)])
    for replica in (2, 3):
        partition.follower_fetched(replica, 1, broker_epoch=1, now=1.0)
    assert partition.log.high_watermark == 1
    assert woken
