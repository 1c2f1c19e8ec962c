"""The hand-written Produce and Fetch codecs agree with the ordinary codec in every version."""

import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.wire import fetch, produce
from headrace.wire.codec import WireError, decode, encode
from headrace.wire.messages import fetch as fetch_messages
from headrace.wire.messages import produce as produce_messages

TOPIC_ID = uuid.UUID("6a0f5a3e-0b58-4b43-8d2e-0f2c3d4e5f60")


def produce_request(version, records=b"r" * 300):
    partition = produce_messages.PartitionProduceData(index=7, records=records)
    empty = produce_messages.PartitionProduceData(index=8, records=None)
    topic = produce_messages.TopicProduceData(
        name="orders", topic_id=TOPIC_ID, partition_data=[partition, empty]
    )
    message = produce_messages.ProduceRequest(
        transactional_id="tx" if version % 2 else None, acks=-1, timeout_ms=1500, topic_data=[topic]
    )
    return bytes(encode(message, version))


@pytest.mark.parametrize("version", range(3, 14))
def test_a_produce_request_is_read_as_the_ordinary_codec_writes_it(version):
    data = b"header" + produce_request(version)
    request = produce.read_request(memoryview(data), 6, version)
    assert request.transactional_id == ("tx" if version % 2 else None)
    assert (request.acks, request.timeout_ms) == (-1, 1500)
    (topic,) = request.topics
    assert topic.topic == (TOPIC_ID.bytes if version >= 13 else b"orders")
    assert [(p.partition, None if p.records is None else bytes(p.records)) for p in topic.partitions] == [
        (7, b"r" * 300),
        (8, None),
    ]


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_a_produce_request_cut_anywhere_is_refused(version):
    whole = produce_request(version, records=b"abc")
    for end in range(len(whole)):
        with pytest.raises(WireError):
            produce.read_request(memoryview(whole[:end]), 0, version)


@given(st.binary(max_size=120), st.integers(3, 13))
def test_garbage_produce_requests_raise_only_wire_errors(data, version):
    try:
        produce.read_request(memoryview(data), 0, version)
    except WireError:
        pass


@pytest.mark.parametrize("version", range(3, 14))
def test_a_produce_reply_is_what_the_ordinary_codec_reads(version):
    fine = produce.PartitionReply(0, 0, 100, -1, 5)
    lost = produce.PartitionReply(
        1, 6, record_errors=((3, "bad record"),), error_message="not here", current_leader=(2, 9)
    )
    topic = TOPIC_ID.bytes if version >= 13 else b"orders"
    frame = produce.encode_reply([(topic, [fine, lost])], version, 42, 11, [(2, "host", 9092, None)])
    size, correlation = struct.unpack_from(">ii", frame)
    assert (size, correlation) == (len(frame) - 4, 42)
    reply, end = decode(produce_messages.ProduceResponse, version, bytes(frame), 9 if version >= 9 else 8)
    assert (end, reply.throttle_time_ms) == (len(frame), 11)
    first, second = reply.responses[0].partition_responses
    assert (first.index, first.error_code, first.base_offset) == (0, 0, 100)
    assert first.log_start_offset == (5 if version >= 5 else -1)
    assert second.error_code == 6
    if version >= 8:
        assert second.error_message == "not here"
        assert second.record_errors[0].batch_index_error_message == "bad record"
    if version >= 10:
        assert (second.current_leader.leader_id, second.current_leader.leader_epoch) == (2, 9)
        assert [(node.node_id, node.host, node.port) for node in reply.node_endpoints] == [(2, "host", 9092)]


@pytest.mark.parametrize("version", range(4, 19))
def test_a_fetch_reply_is_what_the_ordinary_codec_reads(version):
    full = fetch.PartitionReply(0, 0, 50, 40, 3, b"batch one", [(77, 12)])
    empty = fetch.PartitionReply(
        1, 6, diverging_epoch=(4, 30), current_leader=(2, 9), preferred_read_replica=3
    )
    topic = TOPIC_ID.bytes if version >= 13 else b"orders"
    parts = fetch.encode_reply(
        version, 42, [(topic, [full, empty])], session_id=5, throttle_time_ms=1, endpoints=[(2, "h", 1, "r")]
    )
    frame = b"".join(parts)
    size, correlation = struct.unpack_from(">ii", frame)
    assert (size, correlation) == (len(frame) - 4, 42)
    reply, end = decode(fetch_messages.FetchResponse, version, frame, 9 if version >= 12 else 8)
    assert (end, reply.throttle_time_ms) == (len(frame), 1)
    assert reply.session_id == (5 if version >= 7 else 0)
    first, second = reply.responses[0].partitions
    assert (first.high_watermark, first.last_stable_offset) == (50, 40)
    assert first.records == b"batch one"
    assert [(a.producer_id, a.first_offset) for a in first.aborted_transactions] == [(77, 12)]
    assert (second.error_code, second.records, second.aborted_transactions) == (6, b"", None)
    if version >= 12:
        assert (second.diverging_epoch.epoch, second.diverging_epoch.end_offset) == (4, 30)
        assert second.current_leader.leader_id == 2
    if version >= 16:
        assert reply.node_endpoints[0].rack == "r"


def test_records_in_files_stay_parts_of_their_own_and_those_in_memory_do_not():
    class InFile:
        handle, position, size = None, 0, 1000

    held = fetch.PartitionReply(0, records=b"batch one")
    in_file = fetch.PartitionReply(1, records=InFile())
    assert len(fetch.encode_reply(12, 1, [(b"orders", [held])])) == 1
    parts = fetch.encode_reply(12, 1, [(b"orders", [held, in_file])])
    assert [isinstance(part, InFile) for part in parts] == [False, False, True, False]
    sizes = [part.size if isinstance(part, InFile) else len(part) for part in parts]
    assert struct.unpack_from(">i", parts[0])[0] == sum(sizes) - 4
