"""Batches that must not be stored are refused with Kafka's code, and the topic's settings shape the
others."""

from __future__ import annotations

import struct

import pytest

from headrace.server.log.partition import AppendOrigin
from headrace.wire.batch import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    compute_crc,
    iterate_batches,
)
from headrace.wire.compression import Codec
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.markers import build_end_transaction_marker
from headrace.wire.records import BatchBuilder


def refusal(log, batch, **options) -> KafkaError:
    end = log.log_end_offset
    with pytest.raises(KafkaError) as caught:
        log.append_as_leader(batch, leader_epoch=0, **options)
    assert log.log_end_offset == end
    return caught.value


def patched(batch: memoryview, layout: str, position: int, value: int) -> memoryview:
    """The batch with a header field changed and a right checksum."""
    struct.pack_into(layout, batch, position, value)
    struct.pack_into(">I", batch, 17, compute_crc(batch))
    return batch


def stored(log):
    return [header for _, header in iterate_batches(log.read(log.log_start_offset, 1 << 20).read())]


def test_damaged_batches_are_corrupt_messages(lab):
    log = lab.open()
    whole = lab.batch(b"value")
    for length in range(len(whole)):
        error = refusal(log, memoryview(bytearray(whole[:length])))
        assert error.code == ErrorCode.CORRUPT_MESSAGE
    for position in range(21, len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1
        assert refusal(log, memoryview(damaged)).code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48, 2**31 - 1])
def test_a_length_that_cannot_be_is_a_corrupt_message(lab, length):
    batch = lab.batch(b"value")
    struct.pack_into(">i", batch, 8, length)
    assert refusal(lab.open(), batch).code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1, 3, -1])
def test_other_magics_are_refused(lab, magic):
    batch = lab.batch(b"value")
    struct.pack_into(">b", batch, 16, magic)
    assert refusal(lab.open(), batch).code == ErrorCode.CORRUPT_MESSAGE


def test_a_produce_request_holds_one_batch_per_partition(lab):
    two = memoryview(bytearray(bytes(lab.batch(b"a")) + bytes(lab.batch(b"b"))))
    assert refusal(lab.open(), two).code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(("count", "delta"), [(0, -1), (0, 0), (1, 1), (2, 0), (-1, -2), (1, -1)])
def test_counts_that_do_not_fit_are_invalid_records(lab, count, delta):
    batch = patched(lab.batch(b"a"), ">i", 57, count)
    assert refusal(lab.open(), patched(batch, ">i", 23, delta)).code == ErrorCode.INVALID_RECORD


def test_a_client_may_not_choose_its_offset(lab):
    batch = lab.batch(b"a")
    struct.pack_into(">q", batch, 0, 5)
    assert refusal(lab.open(), batch).code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("attributes", [CONTROL, CONTROL | TRANSACTIONAL, DELETE_HORIZON, 0x80, 0x4000])
def test_attributes_a_client_may_not_set_are_invalid_records(lab, attributes):
    assert (
        refusal(lab.open(), patched(lab.batch(b"a"), ">h", 21, attributes)).code == ErrorCode.INVALID_RECORD
    )


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_refused(lab, codec):
    error = refusal(lab.open(), patched(lab.batch(b"a"), ">h", 21, codec))
    assert error.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_a_client_may_not_claim_log_append_time(lab):
    error = refusal(lab.open(), patched(lab.batch(b"a"), ">h", 21, LOG_APPEND_TIME))
    assert error.code == ErrorCode.INVALID_TIMESTAMP


def test_a_batch_larger_than_max_message_bytes_is_too_large(lab):
    size = len(lab.batch(b"x" * 500))
    log = lab.open(max_message_bytes=size)
    lab.append(log, b"x" * 500)
    assert refusal(log, lab.batch(b"x" * 501)).code == ErrorCode.MESSAGE_TOO_LARGE


def test_timestamps_too_far_ahead_or_behind_are_named_record_by_record(lab):
    log = lab.open(message_timestamp_after_max_ms=1000, message_timestamp_before_max_ms=5000)
    now = lab.clock.now_ms()
    builder = BatchBuilder()
    for timestamp in (now, now + 1001, now - 5001, now + 1000, now - 5000, -1):
        builder.append(timestamp, None, b"x")
    error = refusal(log, memoryview(builder.build()))
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [record.batch_index for record in error.record_errors] == [1, 2]
    lab.append(log, b"fine")


def test_by_default_timestamps_may_be_an_hour_ahead_and_any_time_behind(lab):
    log = lab.open()
    lab.append(log, b"old", timestamp=0)
    lab.append(log, b"none", timestamp=-1)
    lab.append(log, b"soon", timestamp=lab.clock.now_ms() + 3_600_000)
    error = refusal(log, lab.batch(b"later", timestamp=lab.clock.now_ms() + 3_600_001))
    assert error.code == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", list(Codec))
def test_log_append_time_is_the_brokers_and_the_checksum_stays_right(lab, codec):
    log = lab.open(message_timestamp_type="LogAppendTime")
    result = log.append_as_leader(
        lab.batch(b"a", b"b", timestamp=lab.clock.now_ms() + 10**9, codec=codec), leader_epoch=0
    )
    assert result.log_append_time == lab.clock.now_ms()
    (header,) = stored(log)
    assert header.is_log_append_time
    assert header.codec == codec
    data = log.read(0, 1 << 20).read()
    assert compute_crc(data) == header.crc
    assert {record.timestamp for record in lab.records(log)} == {lab.clock.now_ms()}
    assert log.max_timestamp_offset().timestamp == lab.clock.now_ms()


@pytest.mark.parametrize("source", list(Codec))
@pytest.mark.parametrize(
    ("setting", "target"),
    [
        ("uncompressed", Codec.NONE),
        ("gzip", Codec.GZIP),
        ("snappy", Codec.SNAPPY),
        ("lz4", Codec.LZ4),
        ("zstd", Codec.ZSTD),
    ],
)
def test_a_topics_own_codec_is_what_is_stored(lab, source, setting, target):
    log = lab.open(compression_type=setting)
    options = {"producer_id": 5, "producer_epoch": 1, "base_sequence": 0}
    lab.append(log, b"a" * 300, b"b" * 300, codec=source, **options)
    (header,) = stored(log)
    assert header.codec == target
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, 0)
    assert lab.values(log) == [b"a" * 300, b"b" * 300]


def test_recompression_keeps_headers_keys_nulls_and_times(lab):
    log = lab.open(compression_type="zstd")
    builder = BatchBuilder()
    builder.append(1000, b"k", None, [("h", b"1"), ("h", None)])
    builder.append(500, None, b"", [])
    builder.append(2000, b"", b"v", [("ü", b"")])
    log.append_as_leader(memoryview(builder.build()), leader_epoch=3)
    first, second, third = lab.records(log)
    assert (first.offset, first.timestamp, first.key, first.value) == (0, 1000, b"k", None)
    assert list(first.headers) == [("h", b"1"), ("h", None)]
    assert (second.timestamp, second.key, second.value) == (500, None, b"")
    assert (third.key, list(third.headers)) == (b"", [("ü", b"")])
    (header,) = stored(log)
    assert (header.leader_epoch, header.max_timestamp) == (3, 2000)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_compacted_topic_wants_a_key_on_every_record(lab, codec):
    log = lab.open(cleanup_policy=("compact",))
    builder = BatchBuilder(codec=codec)
    for key in (b"k", None, b"", None):
        builder.append(0, key, b"v")
    error = refusal(log, memoryview(builder.build()))
    assert error.code == ErrorCode.INVALID_RECORD
    assert [record.batch_index for record in error.record_errors] == [1, 3]
    lab.append(log, b"v", key=b"k", codec=codec)


def test_records_that_cannot_be_read_are_invalid_where_a_topic_looks_inside(lab):
    log = lab.open(cleanup_policy=("compact",))
    batch = lab.batch(b"value", key=b"k")
    assert refusal(log, patched(batch, ">b", 61, 2)).code == ErrorCode.INVALID_RECORD
    garbage = patched(lab.batch(b"value", key=b"k"), ">h", 21, Codec.ZSTD)
    assert refusal(log, garbage).code == ErrorCode.INVALID_RECORD


def test_an_idempotent_batch_needs_a_sequence_and_an_epoch(lab):
    log = lab.open()
    for options in ({"producer_id": 1, "producer_epoch": 0}, {"producer_id": 1, "base_sequence": 0}):
        assert refusal(log, lab.batch(b"a", **options)).code == ErrorCode.INVALID_RECORD
    assert refusal(log, lab.batch(b"a", transactional=True)).code == ErrorCode.INVALID_RECORD


def test_a_coordinator_may_write_control_batches_and_unsequenced_ones(lab):
    log = lab.open()
    marker = build_end_transaction_marker(
        producer_id=1, producer_epoch=0, coordinator_epoch=0, committed=True, timestamp=lab.clock.now_ms()
    )
    log.append_as_leader(memoryview(marker), leader_epoch=0, origin=AppendOrigin.COORDINATOR)
    batch = lab.batch(b"a", producer_id=1, producer_epoch=0, transactional=True)
    log.append_as_leader(batch, leader_epoch=0, origin=AppendOrigin.COORDINATOR)
    assert log.log_end_offset == 2


def test_settings_can_change_while_the_log_is_open(lab):
    from headrace.server.log.config import LogConfig

    log = lab.open()
    lab.append(log, b"no key")
    log.update_config(LogConfig(cleanup_policy=("compact",), max_message_bytes=100))
    assert refusal(log, lab.batch(b"no key")).code == ErrorCode.INVALID_RECORD
    assert refusal(log, lab.batch(b"x" * 100, key=b"k")).code == ErrorCode.MESSAGE_TOO_LARGE
    log.update_config(LogConfig())
    lab.append(log, b"no key")
