"""Two brokers that get the same produce requests and the same changes; one of them is made to forget before each request."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.server.cluster.image import Partition as PartitionState
from headrace.server.net.connection import Connection
from headrace.server.node import Node
from headrace.server.replica.partition import Partition
from headrace.testing.broker import BrokerThread
from headrace.testing.clock import MovableClock
from headrace.testing.faults import FaultyDispatcher
from headrace.testing.topics import unique_name
from headrace.testing.wire import WireClient, frame
from headrace.wire.compression import Codec
from headrace.wire.errors import ErrorCode
from headrace.wire.frames import decode_reply
from headrace.wire.messages import alter_client_quotas as aq
from headrace.wire.messages import create_acls as ca
from headrace.wire.messages import delete_acls as da
from headrace.wire.messages import incremental_alter_configs as ac
from headrace.wire.messages import produce as pr
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.records import BatchBuilder
from headrace.wire.schema import Request
from tests.waiting import until

NOW = 1_700_000_000_000
CLIENTS = ("app", "batch-job")
PLAIN, COMPACTED, SYNCED, COMPRESSED, STAMPED = "plain", "compacted-one", "synced", "compressed", "stamped"
CONFIGS = {
    PLAIN: {},
    COMPACTED: {"cleanup.policy": "compact"},
    SYNCED: {"flush.messages": "1"},
    COMPRESSED: {"compression.type": "gzip"},
    STAMPED: {"message.timestamp.type": "LogAppendTime"},
}
LARGE = 2.0**40
NOT_YET = {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
NOT_YET |= {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


class StoppedClock(MovableClock):
    """Both brokers stamp the same time."""

    def now_ms(self) -> int:
        return NOW


class Forgetful(FaultyDispatcher):
    """Serves every request by the plain path."""

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        connection.repeated.clear()
        super().dispatch(connection, frame)


@dataclass(frozen=True, slots=True)
class Produce:
    topic: str
    version: int
    acks: int = 1
    partition: int = 0
    values: tuple[bytes, ...] = (b"value",)
    records: str = "good"
    codec: Codec = Codec.NONE
    client: str = CLIENTS[0]
    trailing: bytes = b""
    transactional_id: str | None = None
    producer: tuple[int, int, int] | None = None
    """Id, epoch and the sequence of the first record."""


def records_of(step: Produce) -> bytes | None:
    if step.records == "null":
        return None
    if step.records == "empty":
        return b""
    options: dict[str, Any] = {}
    if step.producer is not None:
        producer_id, epoch, sequence = step.producer
        options = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
        options["transactional"] = step.transactional_id is not None
    builder = BatchBuilder(codec=step.codec, **options)
    for value in step.values:
        builder.append(NOW, b"key" if step.records != "no key" else None, value)
    batch = bytearray(builder.build())
    if step.records == "damaged":
        batch[-1] ^= 1
    return bytes(batch + batch) if step.records == "two batches" else bytes(batch)


def codes_of(replies: list[bytes], version: int) -> set[ErrorCode]:
    decoded = [decode_reply(pr.ProduceResponse, version, each) for each in replies]
    return {ErrorCode(each.responses[0].partition_responses[0].error_code) for each in decoded}


@dataclass
class Side:
    """One of the two brokers, and a connection to it."""

    broker: BrokerThread
    names: dict[str, str] = field(default_factory=dict)
    ids: dict[str, bytes] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    client: WireClient | None = None

    def begin(self, names: dict[str, str], configs: dict[str, dict[str, str]]) -> None:
        self.names, self.ids = names, {}
        self.numbers = itertools.count(1)
        for topic in names:
            self.create(topic, configs[topic])
        self.connect()

    def connect(self) -> None:
        if self.client is not None:
            self.client.socket.close()
        self.client = WireClient(self.broker.bootstrap, timeout=60)

    def create(self, topic: str, config: dict[str, str]) -> None:
        name = self.broker.create_topic(self.names[topic], 2, config)
        with WireClient(self.broker.bootstrap) as admin:
            found = admin.call(MetadataRequest([MetadataRequestTopic(name=name)]), 12)
        self.ids[topic] = found.topics[0].topic_id.bytes

    def ask(self, request: Request, version: int) -> Any:
        """Over a connection of its own."""
        with WireClient(self.broker.bootstrap, timeout=60) as admin:
            return admin.call(request, version)

    def ask_until_ready(self, request: Request, version: int) -> Any:
        found: list[Any] = []

        def ready() -> bool:
            found.append(self.ask(request, version))
            return ErrorCode(getattr(found[-1], "error_code", 0)) not in NOT_YET

        until(ready)
        return found[-1]

    def frame_of(self, step: Produce, number: int) -> bytes:
        data = pr.PartitionProduceData(step.partition, records_of(step))
        topic = pr.TopicProduceData(name=self.names[step.topic], partition_data=[data])
        if step.version >= 13:
            topic.topic_id = type(topic.topic_id)(bytes=self.ids[step.topic])
        request = pr.ProduceRequest(step.transactional_id, step.acks, 30_000, [topic])
        made = frame(request, step.version, number, step.client) + step.trailing
        return struct.pack(">i", len(made) - 4) + made[4:]

    def send(self, steps: Sequence[Produce], cut: float) -> list[bytes]:
        """Send them together, in two pieces; all replies, and None in the end when the broker closes the connection."""
        assert self.client is not None
        numbered = [(step, next(self.numbers)) for step in steps]
        probe = next(self.numbers)
        sent = b"".join(self.frame_of(*each) for each in numbered) + frame(ApiVersionsRequest(), 0, probe)
        at = int(len(sent) * cut)
        place = str(self.broker.data).encode()  # named when it is full; as long as the other one's
        replies: list[bytes] = []
        try:
            self.client.socket.sendall(sent[:at])
            self.client.socket.sendall(sent[at:])
            while True:
                reply = self.client.receive_frame()
                if struct.unpack_from(">i", reply)[0] == probe:
                    return replies
                for topic, topic_id in self.ids.items():
                    reply = reply.replace(topic_id, topic.ljust(16).encode()[:16])
                reply = reply.replace(struct.pack(">i", self.broker.port), b"port")
                replies.append(reply.replace(place, b"." * len(place)))
        except ConnectionError:
            self.connect()
            return [*(replies if all(step.acks for step in steps) else []), b"closed"]

    def on_partitions(self, topic: str, act: Any) -> None:
        async def run(node: Node) -> None:
            for index in range(2):
                act(node, node.engines.replicas.find(self.names[topic].encode(), index, False))

        self.broker.run(run)

    def files(self) -> dict[str, bytes]:
        found = {}
        for name in self.names.values():
            for path in sorted(Path(self.broker.data).glob(f"{name}-[0-9]/*.log")):
                found[f"{path.parent.name}/{path.name}"] = path.read_bytes()
        return found


@dataclass
class Pair:
    remembering: Side
    forgetful: Side

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.remembering, self.forgetful

    def begin(self) -> None:
        names = {topic: unique_name(topic) for topic in CONFIGS}
        for side in self.sides:
            side.begin(names, CONFIGS)

    def send(self, *steps: Produce, cut: float = 1.0) -> list[bytes]:
        ours, theirs = (side.send(steps, cut) for side in self.sides)
        assert ours == theirs
        return ours

    def change(self, kind: str, topic: str, on: bool) -> None:
        for side in self.sides:
            CHANGES[kind](side, topic, on)

    def finish(self) -> None:
        ours, theirs = (side.files() for side in self.sides)
        assert ours == theirs
        assert len(ours) >= 2 * len(CONFIGS)


def set_role(side: Side, topic: str, leads: bool) -> None:
    """Another broker becomes the leader, or this one again."""

    def act(node: Node, partition: Partition) -> None:
        leader = node.engines.broker_id if leads else 77
        if partition.leader_id != leader:
            epoch = partition.leader_epoch + 1
            state = PartitionState((leader,), (leader,), leader, epoch)
            partition.take_role(state, node.engines.broker_id, 0)

    side.on_partitions(topic, act)


def recreate(side: Side, topic: str, on: bool) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(side.names[topic])], timeout_ms=30_000)
    assert not side.ask(request, 6).responses[0].error_code
    if on:  # otherwise it is sent to while it is away
        side.create(topic, CONFIGS[topic])
        return
    moment = Produce(topic, 9)
    side.send([moment, moment], 1.0)
    side.create(topic, CONFIGS[topic])


def configure(name: str, value: str) -> Any:
    def act(side: Side, topic: str, on: bool) -> None:
        change = ac.AlterableConfig(name, 0 if on else 1, value if on else None)
        resource = ac.AlterConfigsResource(2, side.names[topic], [change])
        assert not side.ask(ac.IncrementalAlterConfigsRequest([resource]), 1).responses[0].error_code

    return act


def limit(client: str) -> Any:
    def act(side: Side, topic: str, on: bool) -> None:
        quota = aq.OpData("producer_byte_rate", LARGE if on else 0.0, not on)
        request = aq.AlterClientQuotasRequest([aq.EntryData([aq.EntityData("client-id", client)], [quota])])
        assert not side.ask(request, 1).entries[0].error_code

    return act


def deny(side: Side, topic: str, on: bool) -> None:
    who, topics, literal, write, no = "User:ANONYMOUS", 2, 3, 4, 2
    name = side.names[topic]
    if on:
        denial = ca.AclCreation(topics, name, literal, who, "*", write, no)
        assert not side.ask(ca.CreateAclsRequest([denial]), 3).results[0].error_code
    else:
        request = da.DeleteAclsRequest([da.DeleteAclsFilter(topics, name, literal, who, "*", write, no)])
        assert not side.ask(request, 3).filter_results[0].error_code


def allow_everything_else(side: Side) -> None:
    """A topic with an ACL is closed to all whom no ACL names."""
    kinds = {"*": (2, 3, 5), "kafka-cluster": (4,)}
    made = [
        ca.AclCreation(kind, name, 3, "User:ANONYMOUS", "*", 2, 3) for name in kinds for kind in kinds[name]
    ]
    assert not any(each.error_code for each in side.ask(ca.CreateAclsRequest(made), 3).results)


def other_topic(side: Side, topic: str, on: bool) -> None:
    side.broker.create_topic()


CHANGES: dict[str, Any] = {
    "role": set_role,
    "recreate": recreate,
    "small batches": configure("max.message.bytes", "200"),
    "stamped": configure("message.timestamp.type", "LogAppendTime"),
    "recompressed": configure("compression.type", "zstd"),
    "compacted": configure("cleanup.policy", "compact"),
    "synced": configure("flush.messages", "1"),
    "in-sync replicas": configure("min.insync.replicas", "2"),
    "limit": limit(CLIENTS[0]),
    "limit another": limit(CLIENTS[1]),
    "deny": deny,
    "other topic": other_topic,
}
UNDONE = ("limit", "limit another")
"""Changes that would outlast an example."""
