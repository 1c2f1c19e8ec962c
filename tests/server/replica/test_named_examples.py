"""The examples every text on replication works through, with real logs: what is committed, lost, or divergent."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.server.cluster.image import Partition as PartitionState
from headrace.server.config.broker import BrokerConfig
from headrace.server.log.agreement import agreed_end
from headrace.server.log.config import LogConfig
from headrace.server.log.environment import Environment
from headrace.server.log.flusher import GroupFlusher
from headrace.server.log.partition import PartitionLog
from headrace.server.replica.fetching import FetchEntry, FetchReader
from headrace.server.replica.leadership import Leadership
from headrace.server.replica.partition import Partition
from headrace.testing.wire import batch
from headrace.wire.batch import iterate_batches
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.records import decode_records

TOPIC_ID = uuid.uuid4()


class Replica:
    """One broker's copy of the partition, driven by hand: the same classes the broker uses, without its loop."""

    def __init__(self, number, directory):
        self.number = number
        self.directory = directory / f"r{number}"
        self.directory.mkdir()
        self.open()

    def open(self):
        config = BrokerConfig().topic_config({})
        log = PartitionLog(
            Environment(), str(self.directory), "t", 0, LogConfig.of(config), topic_id=TOPIC_ID
        )
        flusher = GroupFlusher(ThreadPoolExecutor(1))
        self.partition = Partition("t", TOPIC_ID, 0, log, config, LogConfig.of(config), flusher)

    def restart(self):
        """The process dies and comes back: what was written is there, the high watermark as last stored."""
        stored = self.partition.log.high_watermark
        self.partition.log.close()
        self.open()
        self.partition.log.load()
        self.partition.log.set_high_watermark(stored)

    def role(self, leader, epoch, isr, replicas=(1, 2)):
        state = PartitionState(tuple(replicas), tuple(isr), leader, epoch, partition_epoch=epoch)
        self.partition.take_role(state, self.number, now=0.0)

    def append(self, *values):
        for value in values:
            self.partition.append(memoryview(bytearray(batch(value))))

    def values(self):
        data = memoryview(self.partition.log.read(0, 1 << 20).read())
        found = []
        for position, header in iterate_batches(data):
            found += [bytes(r.value) for r in decode_records(data[position : position + header.size], header)]
        return found


class Directory:
    def __init__(self, leader):
        self.leader = leader

    def find(self, topic, index, by_id):
        return self.leader.partition

    def current_leader(self, topic, index, by_id):
        return None


def records_of(reply):
    """The records of a reply, in memory or in a file."""
    if reply.records is None:
        return b""
    return reply.records if isinstance(reply.records, bytes) else bytes(reply.records.read())


def pull(follower, leader):
    """One fetch of a follower, as api/fetch.py and replica/fetcher.py do it together."""
    log = follower.partition.log
    entry = FetchEntry(b"t", 0)
    entry.ask(log.log_end_offset, 1 << 20, leader.partition.leader_epoch, log.latest_epoch)
    fetcher = FetchReader(
        Directory(leader), by_id=False, version=17, replica_id=follower.number, isolation=0, max_bytes=1 << 20
    )
    if not fetcher.diverges(leader.partition, entry):
        entry.noted = leader.partition.follower_fetched(follower.number, log.log_end_offset, 1, now=0.0)
    ((_, reply),), _, _ = fetcher.read([entry], nowait=False)
    assert reply.error_code == 0, ErrorCode(reply.error_code)
    if reply.diverging_epoch is not None:
        follower.partition.truncate(agreed_end(log, *reply.diverging_epoch))
        return
    records = records_of(reply)
    follower.partition.append_from_leader(memoryview(records), reply.high_watermark, reply.log_start_offset)


@pytest.fixture
def pair(tmp_path):
    return Replica(1, tmp_path), Replica(2, tmp_path)


def leadership(replicas, isr):
    return Leadership(PartitionState(tuple(replicas), tuple(isr), 1, 0), 1, 0, now=0.0)


def test_a_follower_that_the_leader_has_not_heard_of_is_told_to_ask_again(pair):
    """Otherwise it takes the records, sends its offset once, and the leader waits for it forever."""
    leader, follower = pair
    leader.role(1, 0, [1], replicas=[1])
    leader.append(b"x")
    with pytest.raises(AssertionError, match="UNKNOWN_LEADER_EPOCH"):
        pull(follower, leader)
    assert follower.partition.log.log_end_offset == 0


def test_a_follower_whose_place_was_not_noted_is_told_so_though_the_leader_has_heard_of_it_since(pair):
    """The disk was slow: between the follower's asking and the answer the leader learned of it."""
    leader, follower = pair
    leader.role(1, 0, [1], replicas=[1])
    leader.append(b"x")
    entry = FetchEntry(b"t", 0)
    entry.ask(0, 1 << 20, 0, -1)
    entry.noted = leader.partition.follower_fetched(follower.number, 0, 1, now=0.0)
    leader.partition.take_role(PartitionState((1, 2), (1,), 1, 0, partition_epoch=1), 1, now=0.0)
    fetcher = FetchReader(
        Directory(leader), by_id=False, version=17, replica_id=2, isolation=0, max_bytes=1 << 20
    )
    ((_, reply),), _, _ = fetcher.read([entry], nowait=False)
    assert reply.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    entry.noted = leader.partition.follower_fetched(follower.number, 0, 1, now=0.0)
    ((_, reply),), _, _ = fetcher.read([entry], nowait=False)
    assert reply.error_code == 0


def test_the_log_end_offset_is_that_of_the_next_record(pair):
    leader, _ = pair
    leader.role(1, 0, [1], replicas=[1])
    assert leader.partition.log.log_end_offset == 0
    leader.append(*[b"%d" % n for n in range(9)])
    assert leader.partition.log.log_end_offset == 9


def test_with_log_end_9_and_high_watermark_6_consumers_read_0_to_5(pair):
    leader, follower = pair
    leader.role(1, 0, [1, 2])
    follower.role(1, 0, [1, 2])
    leader.append(*[b"%d" % n for n in range(6)])
    pull(follower, leader)
    pull(follower, leader)
    leader.append(b"6", b"7", b"8")
    assert (leader.partition.log.log_end_offset, leader.partition.log.high_watermark) == (9, 6)
    entry = FetchEntry(b"t", 0)
    entry.ask(0, 1 << 20, -1, -1)
    consumer = FetchReader(
        Directory(leader), by_id=False, version=12, replica_id=-1, isolation=0, max_bytes=1 << 20
    )
    ((_, reply),), _, _ = consumer.read([entry], nowait=False)
    offsets = [header.base_offset for _, header in iterate_batches(records_of(reply))]
    assert offsets == [0, 1, 2, 3, 4, 5]


def test_log_ends_5_5_4_make_a_high_watermark_of_4():
    counted = leadership([1, 2, 3], [1, 2, 3])
    counted.followers[2].fetched(5, 5, 1, now=0.0)
    counted.followers[3].fetched(4, 5, 1, now=0.0)
    assert counted.committed_end(5) == 4


def test_a_replica_outside_the_isr_does_not_hold_the_high_watermark_back():
    counted = leadership([1, 2, 3], [1, 2])
    counted.followers[2].fetched(5, 5, 1, now=0.0)
    counted.followers[3].fetched(1, 5, 1, now=0.0)
    assert counted.committed_end(5) == 5


def test_a_replica_being_removed_counts_until_the_controller_has_confirmed_it():
    counted = leadership([1, 2], [1, 2])
    counted.followers[2].fetched(3, 5, 1, now=0.0)
    counted.proposed = frozenset({1})
    assert counted.committed_end(5) == 3
    counted.confirm([1], partition_epoch=7)
    assert counted.committed_end(5) == 5


def test_a_replica_being_added_counts_from_the_proposal_on():
    counted = leadership([1, 2], [1])
    counted.followers[2].fetched(4, 5, 1, now=0.0)
    assert counted.committed_end(5) == 5
    counted.proposed = frozenset({1, 2})
    assert counted.committed_end(5) == 4


def test_a_follower_leaves_when_it_has_not_caught_up_for_the_lag_time_and_returns_when_it_has():
    counted = leadership([1, 2], [1, 2])
    counted.followers[2].fetched(5, 5, 1, now=0.0)
    assert counted.out_of_sync(9, now=10.0, longest=10.0, heard_from={2: 10.0}) == frozenset()
    assert counted.out_of_sync(9, now=10.1, longest=10.0, heard_from={2: 10.0}) == {2}
    assert counted.out_of_sync(5, now=10.1, longest=10.0, heard_from={}) == {2}
    counted.confirm([1], partition_epoch=1)
    counted.followers[2].fetched(8, 9, 1, now=11.0)
    assert not counted.may_join(2, high_watermark=9)
    counted.followers[2].fetched(9, 9, 1, now=12.0)
    assert counted.may_join(2, high_watermark=9)


def test_the_classic_loss_does_not_happen(pair):
    """A follower that restarts before it learnt the high watermark used to cut to it, and then became leader."""
    a, b = pair
    a.role(1, 0, [1, 2])
    b.role(1, 0, [1, 2])
    a.append(b"m1", b"m2")
    pull(b, a)  # b has m1 and m2, but has not heard that they are committed
    pull(b, a)
    assert a.partition.log.high_watermark == 2
    b.partition.log.set_high_watermark(1)
    b.restart()
    b.role(1, 0, [1, 2])
    assert b.values() == [b"m1", b"m2"], "nothing is cut before the leader was asked"
    b.role(2, 1, [2])  # a dies; b leads before it could fetch
    a.role(2, 1, [2])
    pull(a, b)
    assert a.values() == b.values() == [b"m1", b"m2"]


def test_the_classic_divergence_does_not_happen(pair):
    """Two replicas lose power; each comes back as leader once: the same offset must not hold two records."""
    a, b = pair
    a.role(1, 0, [1, 2])
    b.role(1, 0, [1, 2])
    a.append(b"m1")
    pull(b, a)
    a.append(b"m2")  # b never got m2
    b.role(2, 1, [2])  # a is away; b leads (an unclean election) and takes another record at offset 1
    b.append(b"m3")
    a.role(2, 1, [2])
    pull(a, b)
    pull(a, b)
    assert a.values() == b.values() == [b"m1", b"m3"]
    a.role(1, 2, [1])
    b.role(1, 2, [1])
    a.append(b"m4")
    pull(b, a)
    assert b.values() == a.values() == [b"m1", b"m3", b"m4"]


def test_a_follower_with_an_epoch_the_leader_never_saw_cuts_in_steps(pair):
    a, b = pair
    a.role(1, 0, [1, 2])
    b.role(1, 0, [1, 2])
    a.append(b"x", b"y")
    pull(b, a)
    b.role(2, 3, [2])
    b.append(b"only here")
    a.role(1, 5, [1])
    a.append(b"z")
    b.role(1, 5, [1])
    for _ in range(3):
        pull(b, a)
    assert b.values() == a.values() == [b"x", b"y", b"z"]


def test_a_follower_that_led_for_an_epoch_without_a_record_forgets_that_epoch(pair):
    a, b = pair
    a.role(1, 0, [1, 2])
    b.role(1, 0, [1, 2])
    a.append(b"x")
    pull(b, a)
    b.role(2, 1, [1, 2])  # b leads, takes nothing, and a is elected without having heard of it
    a.role(1, 2, [1, 2])
    b.role(1, 2, [1, 2])
    pull(b, a)
    a.append(b"y")
    pull(b, a)
    assert b.values() == a.values() == [b"x", b"y"]


def test_a_deposed_leader_acknowledges_nothing(pair):
    a, _ = pair
    a.role(1, 0, [1, 2])
    a.append(b"unreplicated")
    answers = []
    a.partition.when_committed(0, answers.append)
    a.role(2, 1, [2])
    assert answers == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    with pytest.raises(KafkaError) as refused:
        a.append(b"more")
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_with_acks_1_a_failover_loses_at_most_what_lay_above_the_high_watermark(pair):
    a, b = pair
    a.role(1, 0, [1, 2])
    b.role(1, 0, [1, 2])
    a.append(*[b"%d" % n for n in range(10)])
    pull(b, a)
    pull(b, a)
    a.append(b"10", b"11", b"12")
    log = a.partition.log
    at_risk = log.log_end_offset - log.high_watermark
    b.role(2, 1, [2])
    a.role(2, 1, [2])
    for _ in range(2):
        pull(a, b)
    assert at_risk == 3
    assert a.values() == b.values() == [b"%d" % n for n in range(10)]
