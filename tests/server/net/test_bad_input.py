"""Whatever a peer sends, it gets the right error or is disconnected, and other clients are not affected."""

import random
import socket
import struct
import threading
import time

import psutil
import pytest

from headrace.server.api.registry import ADVERTISED, APIS
from headrace.testing.wire import WireClient, batch, frame
from headrace.wire.codec import decode
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.messages.describe_configs import DescribeConfigsRequest
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.list_offsets import ListOffsetsRequest
from headrace.wire.messages.metadata import MetadataRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.produce import ProduceRequest
from headrace.wire.records import BatchBuilder
from tests.server.requests import produce_request


@pytest.fixture
def client(bootstrap):
    with WireClient(bootstrap) as client:
        yield client


def assert_still_serving(bootstrap):
    with WireClient(bootstrap) as other:
        assert other.call(ApiVersionsRequest("test", "1"), 3).error_code == 0


def produce(topic, records, acks=1, partition=0):
    return produce_request(topic, records, acks=acks, timeout_ms=1000, partition=partition)


def produced(client, topic, records, acks=1, partition=0, version=9):
    reply = client.call(produce(topic, records, acks, partition), version)
    return reply.responses[0].partition_responses[0]


@pytest.mark.parametrize("size", [-1, 0, -(2**31), 2**31 - 1, 104857601])
def test_an_impossible_length_cuts_the_connection(client, bootstrap, size):
    client.socket.sendall(struct.pack(">i", size) + b"x" * 64)
    assert client.is_closed_by_broker()
    assert_still_serving(bootstrap)


@pytest.mark.parametrize(
    "body", [b"x", b"\x00\x12", b"\x00\x12\x00\x03\x00\x00\x00\x01\x7f\xff", b"\xff" * 40]
)
def test_a_frame_that_is_no_request_cuts_the_connection(client, bootstrap, body):
    client.socket.sendall(struct.pack(">i", len(body)) + body)
    assert client.is_closed_by_broker()
    assert_still_serving(bootstrap)


def test_an_unknown_api_cuts_the_connection(client, bootstrap):
    body = struct.pack(">hhih", 999, 0, 1, -1)
    client.socket.sendall(struct.pack(">i", len(body)) + body)
    assert client.is_closed_by_broker()
    assert_still_serving(bootstrap)


@pytest.mark.parametrize(
    ("request_", "version"), [(DescribeConfigsRequest(), 0), (ProduceRequest(), 2), (FetchRequest(), 3)]
)
def test_a_version_that_is_not_served_cuts_the_connection(client, bootstrap, request_, version):
    body = struct.pack(">hhih", request_.API_KEY, version, 1, -1) + b"\x00" * 20
    client.socket.sendall(struct.pack(">i", len(body)) + body)
    assert client.is_closed_by_broker()
    assert_still_serving(bootstrap)


def test_api_versions_newer_than_this_broker_gets_the_oldest_answer_with_the_list(client):
    body = struct.pack(">hhih", 18, 99, 5, -1) + b"\x00\x02a\x02b\x00"
    client.socket.sendall(struct.pack(">i", len(body)) + body)
    reply = client.receive_frame()
    answer, end = decode(ApiVersionsResponse, 0, reply, 4)
    assert end == len(reply)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert {(api.api_key, api.min_version, api.max_version) for api in answer.api_keys} == {
        (key, APIS[key].lowest, APIS[key].highest) for key in ADVERTISED
    }


def test_every_advertised_api_has_a_handler_and_messages():
    for api in APIS.values():
        api.load()
        assert api.handle or api.handle_frame
        low, high = api.request.VERSIONS
        assert low <= max(api.lowest, low) <= api.highest <= high


def test_a_frame_in_single_bytes_is_one_request(client):
    for byte in frame(ApiVersionsRequest("slow", "1"), 3, 9):
        client.socket.send(bytes([byte]))
    assert struct.unpack_from(">i", client.receive_frame())[0] == 9


def test_requests_sent_together_are_answered_in_order(client, topic):
    numbers = [client.send(produce(topic, batch(b"%d" % index)), 9) for index in range(50)]
    offsets = []
    for number in numbers:
        reply = client.receive(produce(topic, b""), 9, number)
        offsets.append(reply.responses[0].partition_responses[0].base_offset)
    assert offsets == list(range(50))


def test_a_truncated_frame_waits_and_costs_nothing(bootstrap):
    with WireClient(bootstrap) as half:
        half.socket.sendall(struct.pack(">i", 50_000_000) + b"x" * 100)
        assert_still_serving(bootstrap)


class TestRecordBatches:
    def test_a_wrong_checksum_is_a_corrupt_message(self, client, topic):
        damaged = bytearray(batch(b"value"))
        damaged[-1] ^= 1
        assert produced(client, topic, bytes(damaged)).error_code == ErrorCode.CORRUPT_MESSAGE

    @pytest.mark.parametrize("cut", [1, 20, 60])
    def test_a_cut_batch_is_refused(self, client, topic, cut):
        reply = produced(client, topic, batch(b"value" * 10)[:-cut])
        assert reply.error_code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD)
        assert reply.error_message

    def test_an_old_message_format_is_refused(self, client, topic):
        old = bytearray(batch(b"value"))
        old[16] = 1
        code = produced(client, topic, bytes(old)).error_code
        assert code in (
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            ErrorCode.INVALID_RECORD,
            ErrorCode.CORRUPT_MESSAGE,
        )

    def test_no_records_at_all_is_refused(self, client, topic):
        assert produced(client, topic, None).error_code == ErrorCode.INVALID_RECORD
        assert produced(client, topic, b"").error_code != 0

    def test_two_batches_for_one_partition_are_refused(self, client, topic):
        assert produced(client, topic, batch(b"a") + batch(b"b")).error_code == ErrorCode.INVALID_RECORD

    def test_a_batch_over_max_message_bytes_is_too_large(self, client, topic):
        assert produced(client, topic, batch(b"x" * 1_100_000)).error_code == ErrorCode.MESSAGE_TOO_LARGE

    def test_unknown_acks_are_refused(self, client, topic):
        assert produced(client, topic, batch(b"x"), acks=7).error_code == ErrorCode.INVALID_REQUIRED_ACKS

    def test_an_unknown_topic_or_partition_is_told(self, client, topic):
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert produced(client, "nowhere", batch(b"x")).error_code == unknown
        assert produced(client, topic, batch(b"x"), partition=9).error_code == unknown
        assert produced(client, topic, batch(b"x"), partition=-1).error_code == unknown

    def test_with_acks_0_an_error_can_only_cut_the_connection(self, client, bootstrap):
        client.send(produce("nowhere", batch(b"x"), acks=0), 9)
        assert client.is_closed_by_broker()
        assert_still_serving(bootstrap)

    def test_a_gap_in_the_sequence_is_refused_and_a_repeat_answered_with_the_first_offset(
        self, client, topic
    ):
        def numbered(sequence):
            return batch(
                b"v", builder=BatchBuilder(producer_id=900, producer_epoch=0, base_sequence=sequence)
            )

        first = produced(client, topic, numbered(0))
        assert first.error_code == 0
        again = produced(client, topic, numbered(0))
        assert (again.error_code, again.base_offset) == (0, first.base_offset)
        assert produced(client, topic, numbered(5)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_thousands_of_idle_connections_leave_room_for_work(bootstrap):
    host, port = bootstrap.split(":")
    idle = [socket.create_connection((host, int(port))) for _ in range(2000)]
    try:
        assert_still_serving(bootstrap)
    finally:
        for one in idle:
            one.close()


def test_max_connections_refuses_one_more(make_broker):
    broker = make_broker({"max.connections": "3"})
    held = [WireClient(broker.bootstrap) for _ in range(3)]
    for client in held:
        assert client.call(ApiVersionsRequest("a", "1"), 3).error_code == 0
    with WireClient(broker.bootstrap) as refused:
        assert refused.is_closed_by_broker()
    held.pop().socket.close()
    assert held[0].call(ApiVersionsRequest("a", "1"), 3).error_code == 0


def test_a_reader_that_never_reads_costs_little_memory(bootstrap, topic):
    """200 fetches of 10 MB each are asked for; the broker must not read 2 GB into memory for them."""
    with WireClient(bootstrap) as writer:
        for _ in range(20):
            assert produced(writer, topic, batch(b"x" * 1_000_000)).error_code == 0
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10_000_000)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=10_000_000, topics=[FetchTopic(topic=topic, partitions=[asked])]
    )
    before = psutil.Process().memory_info().rss
    readers = [WireClient(bootstrap) for _ in range(20)]
    try:
        for reader in readers:
            for _ in range(10):
                reader.send(request, 11)
        assert_still_serving(bootstrap)
        assert psutil.Process().memory_info().rss - before < 200_000_000
    finally:
        for reader in readers:
            reader.socket.close()


def test_random_damage_to_valid_requests_never_stops_the_broker(bootstrap, topic):
    """A byte-level fuzz of the running broker: seeded, bounded, over every kind of request we can build here."""
    dice = random.Random(20240607)
    valid = [
        frame(ApiVersionsRequest("fuzz", "1"), 3),
        frame(MetadataRequest(topics=None), 12),
        frame(MetadataRequest(topics=None), 1),
        frame(produce(topic, batch(b"value" * 20)), 9),
        frame(produce(topic, batch(b"value" * 20)), 3),
        frame(FetchRequest(topics=[FetchTopic(topic=topic, partitions=[FetchPartition()])]), 12),
        frame(FetchRequest(topics=[FetchTopic(topic=topic, partitions=[FetchPartition()])]), 4),
        frame(ListOffsetsRequest(), 7),
    ]
    host, port = bootstrap.split(":")
    for _ in range(400):
        data = bytearray(dice.choice(valid))
        for _ in range(dice.choice([1, 1, 2, 8])):
            if not data:
                break
            at = dice.randrange(4 if dice.random() < 0.8 and len(data) > 4 else 0, len(data))
            match dice.randrange(4):
                case 0:
                    data[at] = dice.randrange(256)
                case 1:
                    data[at] ^= 1 << dice.randrange(8)
                case 2:
                    del data[at : at + dice.randrange(1, 20)]
                case 3:
                    data[at:at] = dice.randbytes(dice.randrange(1, 20))
        with socket.create_connection((host, int(port))) as peer:
            peer.sendall(bytes(data))
            peer.shutdown(socket.SHUT_WR)
    assert_still_serving(bootstrap)
    with WireClient(bootstrap) as client:
        assert produced(client, topic, batch(b"after")).error_code == 0


def test_a_slow_writer_does_not_hold_up_others(bootstrap, topic):
    whole = frame(produce(topic, batch(b"x" * 100_000)), 9)
    stop = threading.Event()

    def dribble():
        with WireClient(bootstrap) as slow:
            for start in range(0, len(whole) - 1000, 1000):
                slow.socket.sendall(whole[start : start + 1000])
                if stop.wait(0.001):
                    return

    writer = threading.Thread(target=dribble)
    writer.start()
    with WireClient(bootstrap) as quick:
        for index in range(100):
            assert produced(quick, topic, batch(b"quick")).base_offset == index
    stop.set()
    writer.join()


def test_a_client_cannot_write_into_what_the_coordinators_keep(client):
    make = FindCoordinatorRequest(key_type=0, coordinator_keys=["a group"])
    while client.call(make, 4).coordinators[0].error_code:
        time.sleep(0.01)
    reply = client.call(produce("__consumer_offsets", batch(b"stray")), 9)
    code = ErrorCode(reply.responses[0].partition_responses[0].error_code)
    assert code is ErrorCode.INVALID_TOPIC_EXCEPTION


def commit(group, topic, retention_ms=-1):
    partitions = [OffsetCommitRequestPartition(0, 1)]
    topics = [OffsetCommitRequestTopic(topic, partitions)]
    return OffsetCommitRequest(group, retention_time_ms=retention_ms, topics=topics)


def test_a_commit_that_cannot_be_stored_is_refused_alone(client, bootstrap, topic):
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=["good"])
    while client.call(find, 4).coordinators[0].error_code:
        time.sleep(0.01)
    endless = commit("good", topic, 2**63 - 1)
    assert client.call(endless, 4).topics[0].partitions[0].error_code == 0
    long_name = "g" * 40_000  # longer than a record's key can say
    with WireClient(bootstrap) as other:
        for _ in range(20):
            bad, good = commit(long_name, topic), commit("good", topic)
            numbers = client.send(bad, 8), other.send(good, 8)
            refused = client.receive(bad, 8, numbers[0]).topics[0].partitions[0]
            assert ErrorCode(refused.error_code) is ErrorCode.INVALID_REQUEST
            assert other.receive(good, 8, numbers[1]).topics[0].partitions[0].error_code == 0
