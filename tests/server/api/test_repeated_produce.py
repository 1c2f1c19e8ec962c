"""A connection that remembers its produce requests: nobody can tell, neither by the replies nor by the files of the log.

Two brokers get the same requests and the same changes; one of them is made to forget before each request.
"""

from __future__ import annotations

import errno
import itertools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.server.api import produce as produce_module
from headrace.server.cluster.image import Partition as PartitionState
from headrace.server.config.authorization import STANDARD
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
from headrace.wire.messages import add_partitions_to_txn as ap
from headrace.wire.messages import alter_client_quotas as aq
from headrace.wire.messages import create_acls as ca
from headrace.wire.messages import delete_acls as da
from headrace.wire.messages import end_txn as et
from headrace.wire.messages import incremental_alter_configs as ac
from headrace.wire.messages import init_producer_id as ip
from headrace.wire.messages import produce as pr
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
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

KINDS = ["good"] * 8 + ["damaged", "null", "empty", "two batches", "no key"]
PRODUCES = st.builds(
    Produce,
    topic=st.sampled_from(list(CONFIGS)),
    version=st.sampled_from([3, 5, 7, 8, 9, 9, 11, 12, 13]),
    acks=st.sampled_from([-1, 1, 1, 1, 0, 2]),
    partition=st.sampled_from([0, 0, 0, 1, 5]),
    values=st.sampled_from([(b"value",), (b"", b"longer" * 20), (b"x" * 300,), tuple([b"many"] * 30)]),
    records=st.sampled_from(KINDS),
    codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP, Codec.SNAPPY]),
    client=st.sampled_from(CLIENTS),
    trailing=st.sampled_from([b"", b"", b"", b"\0", b"\0\0\0"]),
)
SENT_AGAIN = st.tuples(PRODUCES, st.integers(2, 6)).map(lambda each: [each[0]] * each[1])
"""What the connection remembers only counts when it comes again."""
SENDS = st.tuples(
    st.just("send"),
    st.one_of(SENT_AGAIN, SENT_AGAIN, st.lists(PRODUCES, min_size=1, max_size=6)),
    st.sampled_from([0.0, 0.3, 0.5, 0.77, 1.0]),
)
CHANGED = st.tuples(st.sampled_from(sorted(CHANGES)), st.sampled_from(list(CONFIGS)), st.booleans())
STEPS = st.lists(st.one_of(SENDS, SENDS, CHANGED), min_size=4, max_size=16)


@pytest.fixture(scope="module", params=["open", "guarded"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    own = {"allow.everyone.if.no.acl.found": "true", "authorizer.class.name": STANDARD}
    shared = {"log.segment.delete.delay.ms": "0", "auto.create.topics.enable": "false"}
    configured = {**shared, **(own if request.param == "guarded" else {})}
    places = (tmp_path_factory.mktemp("side") for _ in range(2))
    first, second = (BrokerThread(place / "data", configured, StoppedClock()) for place in places)
    first.start()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headrace.testing.broker.FaultyDispatcher", Forgetful)
        second.start()
    both = Pair(Side(first), Side(second))
    if request.param == "guarded":
        for side in both.sides:
            allow_everything_else(side)
    yield both
    first.stop()
    second.stop()


@given(STEPS)
@settings(max_examples=30)
def test_replies_and_files_are_those_of_the_plain_path(pair: Pair, steps: list[Any]) -> None:
    guarded = pair.remembering.broker.node.engines.guarded
    pair.begin()
    try:
        for kind, what, how in steps:
            if kind == "send":
                pair.send(*what, cut=how)
            elif kind != "deny" or guarded:
                pair.change(kind, what, how)
    finally:
        for kind in UNDONE:
            pair.change(kind, PLAIN, False)
    pair.finish()


@pytest.mark.parametrize("version", [3, 5, 7, 8, 9, 10, 11, 12, 13])
@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_a_request_that_has_come_twice_is_not_decoded_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, version: int, acks: int
) -> None:
    pair.begin()
    decoded = []
    read = produce_module.read_request

    def counting(*args: Any) -> Any:
        decoded.append(args)
        return read(*args)

    monkeypatch.setattr(produce_module, "read_request", counting)
    partitions = [Produce(PLAIN, version, acks, partition) for partition in (0, 1)]
    assert len(pair.remembering.send(partitions * 4, 0.5)) == (8 if acks else 0)
    assert len(decoded) == 4


def test_a_remembered_request_needs_the_permission_that_it_needed_before(pair: Pair) -> None:
    if not pair.remembering.broker.node.engines.guarded:
        pytest.skip("nothing is denied here")
    pair.begin()
    step = Produce(PLAIN, 7)
    allowed = pair.send(step, step)
    pair.change("deny", PLAIN, True)
    denied = pair.send(step, step)
    pair.change("deny", PLAIN, False)
    assert codes_of(allowed, 7) == {ErrorCode.NONE}
    assert codes_of(denied, 7) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    pair.send(step, step)
    pair.finish()


def test_more_partitions_than_a_connection_remembers_are_all_served(pair: Pair) -> None:
    pair.begin()
    steps = [
        Produce(topic, version, acks, partition, client=client)
        for topic in CONFIGS
        for version in (3, 5, 8, 9, 12)
        for acks in (-1, 1)
        for partition in (0, 1)
        for client in CLIENTS
    ]
    for _ in range(2):
        assert len(pair.send(*steps)) == len(steps) == 200
    pair.finish()


def test_batches_larger_than_the_receive_buffer_are_served(pair: Pair) -> None:
    pair.begin()
    large = [Produce(PLAIN, 9, values=(bytes([each]) * 900_000,)) for each in range(3)]
    small = Produce(PLAIN, 9)
    pair.send(small, *large, small, *large, cut=0.1)
    pair.send(*large, cut=0.9)
    pair.finish()


def test_a_full_disk_refuses_them_and_takes_them_again(pair: Pair) -> None:
    pair.begin()
    step = Produce(PLAIN, 9)
    pair.send(step, step)
    for side in pair.sides:
        side.broker.disk.fill(f"{side.names[PLAIN]}-")
    assert codes_of(pair.send(step, step), 9) == {ErrorCode.KAFKA_STORAGE_ERROR}
    for side in pair.sides:
        side.broker.disk.heal()
        until(lambda side=side: codes_of(side.send([step], 1.0), 9) == {ErrorCode.NONE})
        side.numbers = itertools.count(1000)
    assert codes_of(pair.send(step, step), 9) == {ErrorCode.NONE}
    pair.finish()


def test_in_sync_mode_the_reply_waits_for_the_disk(pair: Pair) -> None:
    pair.begin()
    step = Produce(SYNCED, 9)
    assert codes_of(pair.send(step, step, step), 9) == {ErrorCode.NONE}
    for side in pair.sides:
        side.broker.disk.where, side.broker.disk.sync_error = f"{side.names[SYNCED]}-", errno.EIO
    assert codes_of(pair.send(step), 9) == {ErrorCode.KAFKA_STORAGE_ERROR}
    for side in pair.sides:
        side.broker.disk.heal()


def test_sequences_of_an_idempotent_producer_are_checked(pair: Pair) -> None:
    pair.begin()
    made = [side.ask_until_ready(ip.InitProducerIdRequest(None, 60_000), 4) for side in pair.sides]
    assert made[0] == made[1]

    def step(sequence: int, acks: int = -1) -> Produce:
        return Produce(PLAIN, 9, acks, producer=(made[0].producer_id, made[0].producer_epoch, sequence))

    in_order, again, gap = [step(each) for each in range(6)], [step(5), step(2)], [step(9), step(6)]
    assert len(pair.send(*in_order, *again, *gap)) == 10
    pair.finish()


@pytest.mark.parametrize("version", [9, 11, 12])
def test_records_of_a_transaction_are_verified_as_before(pair: Pair, version: int) -> None:
    pair.begin()
    name = unique_name("transaction")
    for side in pair.sides:
        side.ask(FindCoordinatorRequest(name, 1), 3)  # which creates the coordinators' topic
    made = [side.ask_until_ready(ip.InitProducerIdRequest(name, 60_000), 4) for side in pair.sides]
    assert made[0] == made[1]
    assert made[0].error_code == 0
    producer = (made[0].producer_id, made[0].producer_epoch)
    sequences = itertools.count()

    def write(count: int) -> set[ErrorCode]:
        steps = [
            Produce(PLAIN, version, -1, transactional_id=name, producer=(*producer, next(sequences)))
            for _ in range(count)
        ]
        return codes_of(pair.send(*steps), version)

    def end(side: Side, committed: bool) -> None:
        assert side.ask_until_ready(et.EndTxnRequest(name, *producer, committed), 3).error_code == 0

        def over() -> bool:
            states: list[bool] = []
            side.on_partitions(
                PLAIN, lambda node, each: states.append(each.log.has_ongoing_transaction(*producer))
            )
            return not any(states)

        until(over)

    for committed in (True, False):
        if version < 12:
            for side in pair.sides:
                topics = [ap.AddPartitionsToTxnTopic(side.names[PLAIN], [0])]
                request = ap.AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=name,
                    v3_and_below_producer_id=producer[0],
                    v3_and_below_producer_epoch=producer[1],
                    v3_and_below_topics=topics,
                )

                def added(side: Side = side, request: Any = request) -> bool:
                    answer = side.ask(request, 3).results_by_topic_v3_and_below[0]
                    code = answer.results_by_partition[0].partition_error_code
                    return ErrorCode(code) is ErrorCode.NONE

                until(added)
        assert write(4) == {ErrorCode.NONE}
        for side in pair.sides:
            end(side, committed)
    if version < 12:
        assert ErrorCode.NONE not in write(2), "they belong to no transaction"
    pair.finish()
