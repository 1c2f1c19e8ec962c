"""Requests of every kind that can wait, pipelined at random while everything they wait for moves: each is answered once,
in the order of the requests. A failure is a seed."""

import asyncio
import random
import struct
import uuid

import pytest

from headrace.server.cluster.image import Partition as PartitionState
from headrace.server.log.files import Files
from headrace.testing.disk import FaultyFiles
from headrace.testing.wire import batch, frame
from headrace.wire.codec import decode
from headrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.wire.messages.end_txn import EndTxnRequest
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from headrace.wire.messages.metadata import MetadataRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from headrace.wire.records import BatchBuilder

TOPIC = "restless"
STEADY = "steady"
PARTITIONS = 3
CONNECTIONS = 8
REQUESTS = 120
OTHER_BROKER = 99
LONGEST_WAIT = 60.0
SETTINGS = {
    "group.initial.rebalance.delay.ms": "5",
    "group.min.session.timeout.ms": "20",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
}


class ColdFiles(FaultyFiles):
    """Files of which every fourth look finds nothing in the page cache: a thread has to read."""

    def __init__(self, chance):
        super().__init__()
        self._chance = chance

    def open(self, path, *, writable=False, create=False):
        handle = Files.open(self, path, writable=writable, create=create)
        chance = self._chance

        class Cold(type(handle)):
            __slots__ = ()

            def read_into(self, buffer, position, *, nowait=False):
                if nowait and chance.random() < 0.25:
                    raise BlockingIOError
                return super().read_into(buffer, position, nowait=nowait)

        handle.__class__ = Cold
        return handle


class Client:
    """One connection: requests go out in bursts, and what comes back must be their replies, in order."""

    def __init__(self, name, chance):
        self._name = name
        self._chance = chance
        self._expected = []
        self._session, self._epoch = 0, 0
        self._ends = {}
        self._member, self._generation = "", -1
        self._producer_id, self._producer_epoch, self._sequence = -1, -1, 0
        self.answered = 0

    async def run(self, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        number = 0
        while number < REQUESTS:
            for _ in range(self._chance.choice((1, 1, 2, 5, 12))):
                number += 1
                request, version = self._chance.choice(KINDS)(self, self._chance)
                writer.write(frame(request, version, number))
                if getattr(request, "acks", None) != 0:
                    self._expected.append((number, request, version))
            while len(self._expected) > self._chance.choice((0, 0, 3, 10)):
                await self._receive(reader)
        writer.write(frame(ApiVersionsRequest(), 0, number + 1))
        self._expected.append((number + 1, ApiVersionsRequest(), 0))
        while self._expected:
            await self._receive(reader)
        writer.write_eof()
        assert await reader.read() == b"", f"{self._name}: more replies than requests"
        writer.close()

    async def _receive(self, reader):
        number, request, version = self._expected.pop(0)
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        reply = await reader.readexactly(size)
        (answered,) = struct.unpack_from(">i", reply)
        assert answered == number, (
            f"{self._name}: {type(request).__name__} {number} got the reply to {answered}"
        )
        response = request.reply_type()
        flexible = version >= response.FLEXIBLE and not isinstance(request, ApiVersionsRequest)
        body, end = decode(response, version, reply, 5 if flexible else 4)
        assert end == size, f"{self._name}: {type(request).__name__} {number} got something else's reply"
        self.answered += 1
        self._learn(body)

    def _learn(self, body):
        """What later requests build upon."""
        if isinstance(body, FetchResponse):
            self._session, self._epoch = (body.session_id, 0) if body.error_code == 0 else (0, 0)
            for topic in body.responses:
                for part in topic.partitions:
                    self._ends[topic.topic, part.partition_index] = max(part.high_watermark, 0)
        elif isinstance(body, JoinGroupResponse):
            self._member, self._generation = body.member_id, body.generation_id
        elif isinstance(body, InitProducerIdResponse) and body.error_code == 0:
            self._producer_id, self._producer_epoch, self._sequence = body.producer_id, body.producer_epoch, 0

    def fetch(self, chance):
        kind = chance.choice(("none", "new", "continued"))
        session, epoch = (0, {"none": -1, "new": 0}.get(kind, 0))
        if kind == "continued" and self._session:
            self._epoch += 1
            session, epoch = self._session, self._epoch
        topic = chance.choice((TOPIC, TOPIC, STEADY))
        asked = [
            FetchPartition(
                partition=index,
                # Mostly from the end, where there is something to wait for.
                fetch_offset=chance.choice((0, *(5 * [self._ends.get((topic, index), 0)]))),
                partition_max_bytes=1 << 20,
            )
            for index in chance.sample(range(PARTITIONS), chance.randint(1, PARTITIONS))
        ]
        request = FetchRequest(
            max_wait_ms=chance.choice((0, 1, 3, 8, 15, 40)),
            min_bytes=chance.choice((0, 1, 1, 20_000, 1 << 20)),
            max_bytes=chance.choice((1, 100_000, 1 << 24)),
            isolation_level=chance.randint(0, 1),
            session_id=session,
            session_epoch=epoch,
            topics=[FetchTopic(topic=topic, partitions=asked)],
        )
        return request, 11

    def produce(self, chance):
        acks = chance.choice((-1, -1, -1, 1, 0))
        data = [
            PartitionProduceData(index=index, records=batch(b"x" * chance.choice((10, 3000, 100_000))))
            for index in chance.sample(range(PARTITIONS), chance.randint(1, PARTITIONS))
        ]
        # With acks=0 an error cuts the connection: those go where nothing goes wrong.
        topics = [TopicProduceData(name=STEADY if acks == 0 else TOPIC, partition_data=data)]
        return ProduceRequest(acks=acks, timeout_ms=chance.choice((1, 5, 30)), topic_data=topics), 9

    def init_producer(self, chance):
        return InitProducerIdRequest(chance.choice((self._name, None)), 60_000), 4

    def enlist(self, chance):
        topics = [AddPartitionsToTxnTopic(STEADY, list(range(PARTITIONS)))]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._producer_epoch,
            v3_and_below_topics=topics,
        )
        return request, 3

    def produce_in_transaction(self, chance):
        builder = BatchBuilder(
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=self._sequence,
            transactional=True,
        )
        self._sequence += 1
        data = PartitionProduceData(index=0, records=batch(b"x" * 3000, builder=builder))
        topics = [TopicProduceData(name=STEADY, partition_data=[data])]
        version = chance.choice((9, 12))
        return ProduceRequest(
            transactional_id=self._name, acks=-1, timeout_ms=1000, topic_data=topics
        ), version

    def end(self, chance):
        return EndTxnRequest(self._name, self._producer_id, self._producer_epoch, chance.random() < 0.5), 3

    def join(self, chance):
        protocols = [JoinGroupRequestProtocol("range", b"")]
        request = JoinGroupRequest(
            group_id=chance.choice(("g1", "g2")),
            session_timeout_ms=chance.choice((20, 100)),
            rebalance_timeout_ms=chance.choice((5, 40)),
            member_id=chance.choice(("", self._member)),
            protocol_type="consumer",
            protocols=protocols,
        )
        return request, chance.choice((3, 5))

    def sync(self, chance):
        request = SyncGroupRequest(
            group_id=chance.choice(("g1", "g2")), generation_id=self._generation, member_id=self._member
        )
        if chance.random() < 0.5:
            request.assignments = [SyncGroupRequestAssignment(self._member, b"a")]
        return request, 3

    def beat(self, chance):
        return HeartbeatRequest(chance.choice(("g1", "g2")), self._generation, self._member), 3

    def consumer_beat(self, chance):
        request = ConsumerGroupHeartbeatRequest(
            group_id="g848",
            member_id=str(uuid.UUID(int=chance.randrange(5))),
            member_epoch=chance.choice((0, 0, 1, -1)),
            rebalance_timeout_ms=50,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )
        return request, 1

    def commit(self, chance):
        partitions = [OffsetCommitRequestPartition(0, chance.randrange(9))]
        topics = [OffsetCommitRequestTopic(TOPIC, partitions)]
        return OffsetCommitRequest(group_id=chance.choice(("g1", "loner")), topics=topics), 7

    def committed(self, chance):
        topics = [OffsetFetchRequestTopic(TOPIC, [0])]
        return OffsetFetchRequest(group_id=chance.choice(("g1", "loner")), topics=topics), 5

    def delete(self, chance):
        topics = [DeleteRecordsTopic(STEADY, [DeleteRecordsPartition(0, chance.choice((-1, 0, 1)))])]
        return DeleteRecordsRequest(topics, 20), 1

    def metadata(self, chance):
        return MetadataRequest(topics=None, allow_auto_topic_creation=False), 8


KINDS = (
    *(3 * [Client.fetch, Client.produce]),
    *(Client.init_producer, Client.enlist, Client.produce_in_transaction, Client.end),
    *(Client.join, Client.sync, Client.beat, Client.consumer_beat),
    *(Client.commit, Client.committed, Client.delete, Client.metadata),
)


async def unrest(node, clock, chance, over):
    """On the broker's loop: records, commits, a leader that changes and time that passes, all in one turn or apart."""
    replicas = node.engines.replicas
    broker, epoch = replicas.broker_id, 0
    partitions = [replicas.find(TOPIC.encode(), index, False) for index in range(PARTITIONS)]
    both = (broker, OTHER_BROKER)
    while not over.is_set():
        for _ in range(chance.choice((1, 2, 4, 8))):
            partition, act = chance.choice(partitions), chance.random()
            if act < 0.4 and partition.is_leader:
                partition.append(memoryview(bytearray(batch(b"x" * chance.choice((10, 4000))))))
            if act < 0.6:
                partition.follower_fetched(OTHER_BROKER, partition.log.log_end_offset, 1, clock.monotonic())
            elif act < 0.95:
                clock.advance(chance.choice((0.001, 0.01, 0.05)))
            else:
                epoch += 1
                leader = chance.choice((broker, broker, broker, OTHER_BROKER))
                state = PartitionState(both, both, leader, leader_epoch=epoch)
                partition.take_role(state, broker, clock.monotonic())
        await asyncio.sleep(chance.choice((0, 0, 0.001, 0.005)))


@pytest.mark.parametrize("seed", range(6))
def test_every_request_is_answered_once_and_in_order(make_broker, seed):
    broker = make_broker(SETTINGS, files=ColdFiles(random.Random(seed)))
    for topic in (TOPIC, STEADY):
        broker.create_topic(topic, PARTITIONS)
    chance = random.Random(seed)
    clients = [Client(f"client-{index}", random.Random(f"{seed}-{index}")) for index in range(CONNECTIONS)]

    async def begin(node):
        over = asyncio.Event()
        return over, asyncio.create_task(unrest(node, broker.clock, chance, over))

    async def end(node):
        over.set()
        await task

    async def talk():
        async with asyncio.timeout(4 * LONGEST_WAIT), asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.run(broker.port))

    over, task = broker.run(begin)
    try:
        asyncio.run(talk())
    finally:
        broker.run(end)
    assert min(client.answered for client in clients) > REQUESTS // 2
