"""A follower whose role changes while it waits for its leader."""

from headrace.clock import SystemClock
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.image import Partition as PartitionState
from headrace.server.cluster.peers import Peers
from headrace.server.replica.fetcher import FetcherSettings, ReplicaFetcher
from headrace.server.replica.throttle import follower_throttle
from headrace.testing.clock import MovableClock
from headrace.testing.wire import batch
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)


class OldLeader:
    """A connection to the leader until now; its log is empty. While it answers, the follower becomes the leader."""

    def __init__(self, partition):
        self._partition = partition

    async def call(self, request, version, timeout=30.0):
        partition = self._partition
        partition.take_role(PartitionState((1, 2), (1,), leader=1, leader_epoch=2, partition_epoch=2), 1, 1.0)
        partition.append(memoryview(bytearray(batch(b"acknowledged"))))
        answer = ListOffsetsPartitionResponse(0, 0, timestamp=-1, offset=0, leader_epoch=1)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(partition.topic, [answer])])


class SlowLeader:
    """Answers a fetch with a record of its first leader epoch; the second begins before the reply arrives."""

    def __init__(self, partition, fetcher):
        self._partition = partition
        self._fetcher = fetcher
        self.asked = []

    async def call(self, request, version, timeout=30.0):
        self.asked += [p.current_leader_epoch for topic in request.topics for p in topic.partitions]
        partition = self._partition
        if len(self.asked) == 1:
            state = PartitionState((2, 1), (1, 2), leader=2, leader_epoch=2, partition_epoch=2)
            partition.take_role(state, 1, 1.0)
            self._fetcher.follow(partition)
        answer = PartitionData(0, high_watermark=1, log_start_offset=0, records=batch(b"of the first term"))
        return FetchResponse(
            responses=[FetchableTopicResponse(topic_id=partition.topic_id, partitions=[answer])]
        )


async def test_an_answer_counts_only_in_the_term_it_was_asked_in(make_partition):
    clock = SystemClock()
    partition = make_partition("orders", replicas=(1, 2))
    partition.take_role(PartitionState((2, 1), (1, 2), leader=2, leader_epoch=1, partition_epoch=1), 1, 0.0)
    settings = FetcherSettings(500, 1, 1 << 20, 1 << 20, 1000)
    peers = Peers(1, MetadataImage, "PLAINTEXT", clock)
    fetcher = ReplicaFetcher(2, 1, lambda: 1, peers, clock, settings, follower_throttle(1, clock))
    try:
        fetcher.follow(partition)
        leader = SlowLeader(partition, fetcher)
        await fetcher._fetch(leader)
        assert partition.log.log_end_offset == 0
        await fetcher._fetch(leader)
        assert leader.asked == [1, 2]
        assert partition.log.log_end_offset == 1
    finally:
        await fetcher.stop()


class UnknowingLeader:
    """Has not heard yet that it leads; keeps a session, and notes what is asked and what is to be forgotten."""

    def __init__(self, partition):
        self._partition = partition
        self.asked = []

    async def call(self, request, version, timeout=30.0):
        self.asked.append(
            (
                [p.partition for topic in request.topics for p in topic.partitions],
                [p for topic in request.forgotten_topics_data for p in topic.partitions],
            )
        )
        refused = PartitionData(0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        topics = [FetchableTopicResponse(topic_id=self._partition.topic_id, partitions=[refused])]
        return FetchResponse(session_id=7, responses=topics if request.topics else [])


async def test_what_a_leader_refuses_is_left_out_and_asked_for_again_soon_then_seldom(make_partition):
    clock = MovableClock()
    partition = make_partition("orders", replicas=(1, 2))
    partition.take_role(PartitionState((2, 1), (1, 2), leader=2, leader_epoch=1, partition_epoch=1), 1, 0.0)
    settings = FetcherSettings(500, 1, 1 << 20, 1 << 20, 1000)
    peers = Peers(1, MetadataImage, "PLAINTEXT", clock)
    fetcher = ReplicaFetcher(2, 1, lambda: 1, peers, clock, settings, follower_throttle(1, clock))
    leader = UnknowingLeader(partition)
    rests = []
    try:
        fetcher.follow(partition)
        await fetcher._fetch(leader)
        await fetcher._fetch(leader)
        assert leader.asked == [([0], []), ([], [0])]
        for _ in range(8):
            rests.append(fetcher._nothing_to_ask_for())
            clock.advance(1)
            assert fetcher._nothing_to_ask_for() == 0
            await fetcher._fetch(leader)
            assert leader.asked[-1] == ([0], [])
        assert rests[0] <= 0.02
        assert rests[0] < rests[-1] <= 1
    finally:
        await fetcher.stop()


async def test_a_late_answer_does_not_cut_the_log_of_a_new_leader(make_partition):
    clock = SystemClock()
    partition = make_partition("orders", replicas=(1, 2))
    partition.take_role(PartitionState((1, 2), (1, 2), leader=2, leader_epoch=1, partition_epoch=1), 1, 0.0)
    peers = Peers(1, MetadataImage, "PLAINTEXT", clock)
    settings = FetcherSettings(500, 1, 1 << 20, 1 << 20, 1000)
    fetcher = ReplicaFetcher(2, 1, lambda: 1, peers, clock, settings, follower_throttle(1, clock))
    try:
        fetcher.follow(partition)
        await fetcher._find_place(OldLeader(partition), partition)
        assert partition.log.log_end_offset == 1
    finally:
        await fetcher.stop()
