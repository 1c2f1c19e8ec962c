"""Record batches: what is built can be read, by us and by others, and what cannot be read raises one clear
error."""

from __future__ import annotations

import gzip
import struct

import cramjam
import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.wire.batch import (
    HEADER_SIZE,
    advance_sequence,
    assign,
    check_counts,
    check_crc,
    compute_crc,
    iterate_batches,
    parse_header,
    set_max_timestamp,
)
from headrace.wire.compression import Codec, CompressionError, compress, decompress
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.markers import build_end_transaction_marker, read_end_transaction_marker
from headrace.wire.records import BatchBuilder, Record, decode_records

DATA = st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=10), st.none() | DATA), max_size=3)
RECORDS = st.lists(
    st.tuples(st.integers(0, 2**41), st.none() | DATA, st.none() | DATA, HEADERS), min_size=1, max_size=20
)
CODECS = st.sampled_from(Codec)


def build(records, **options) -> bytearray:
    builder = BatchBuilder(**options)
    for timestamp, key, value, headers in records:
        builder.append(timestamp, key, value, headers)
    return builder.build()


def refusal(read, data) -> KafkaError | CompressionError | None:
    """The error a reader raises; anything but the two kinds it may raise fails the test."""
    try:
        read(data)
    except (KafkaError, CompressionError) as error:
        return error
    return None


@given(RECORDS, CODECS, st.integers(0, 2**50), st.booleans())
def test_what_is_built_is_read_back(records, codec, base_offset, transactional):
    batch = build(
        records,
        codec=codec,
        base_offset=base_offset,
        leader_epoch=4,
        producer_id=9,
        producer_epoch=2,
        base_sequence=7,
        transactional=transactional,
    )
    header = parse_header(batch)
    check_crc(batch, header)
    check_counts(header)
    assert header.size == len(batch)
    assert (header.codec, header.is_transactional, header.is_control) == (codec, transactional, False)
    assert header.max_timestamp == max(record[0] for record in records)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.leader_epoch) == (
        9,
        2,
        7,
        4,
    )
    assert [
        (record.offset, record.timestamp, record.key, record.value, list(record.headers))
        for record in decode_records(batch)
    ] == [(base_offset + i, *record) for i, record in enumerate(records)]


@given(RECORDS, CODECS)
@settings(max_examples=50)
def test_another_library_reads_what_is_built(records, codec):
    other = DefaultRecordBatch(bytes(build(records, codec=codec)))
    assert other.validate_crc()
    assert [(r.timestamp, r.key, r.value, list(r.headers)) for r in other] == [tuple(r) for r in records]


@pytest.mark.parametrize("codec", list(Codec))
def test_what_another_library_builds_is_read(codec):
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    expected = []
    for number in range(100):
        value = b"value %d" % number * 100
        builder.append(
            number, timestamp=1000 + number, key=b"k%d" % number, value=value, headers=[("h", b"x")]
        )
        expected.append(Record(number, 1000 + number, b"k%d" % number, value, [("h", b"x")]))
    batch = bytes(builder.build())
    check_crc(batch, parse_header(batch))
    assert decode_records(batch) == expected


def test_a_record_has_the_bytes_of_kafkas_format():
    batch = build([(1_000, b"k", b"v", [])])
    assert bytes(batch[:17]) == bytes(8) + struct.pack(">i", len(batch) - 12) + b"\xff\xff\xff\xff\x02"
    assert bytes(batch[HEADER_SIZE:]) == bytes([16, 0, 0, 0, 2]) + b"k" + bytes([2]) + b"v" + bytes([0])


@given(RECORDS, CODECS, st.integers(0, 2**60), st.integers(0, 2**30))
def test_offset_and_epoch_are_patched_outside_the_checksum(records, codec, offset, epoch):
    batch = build(records, codec=codec)
    before = parse_header(batch)
    assign(batch, offset, epoch)
    header = parse_header(batch)
    check_crc(batch, header)
    assert header == before._replace(base_offset=offset, leader_epoch=epoch)


@given(RECORDS, CODECS, st.integers(0, 2**41))
def test_log_append_time_is_set_and_taken_back_with_a_right_checksum(records, codec, timestamp):
    batch = build(records, codec=codec)
    set_max_timestamp(batch, timestamp, log_append_time=True)
    header = parse_header(batch)
    check_crc(batch, header)
    assert header.is_log_append_time
    assert {record.timestamp for record in decode_records(batch)} == {timestamp}
    set_max_timestamp(batch, timestamp, log_append_time=False)
    check_crc(batch, parse_header(batch))
    assert [record.timestamp for record in decode_records(batch)] == [record[0] for record in records]


def test_batches_are_walked_up_to_a_cut_one():
    batches = [build([(0, b"k", b"%d" % number, [])]) for number in range(3)]
    blob = b"".join(batches)
    starts = [0, len(batches[0]), len(batches[0]) + len(batches[1])]
    assert [position for position, _ in iterate_batches(blob)] == starts
    for cut in range(starts[2], len(blob)):
        assert [position for position, _ in iterate_batches(blob[:cut])] == starts[:2]
    assert list(iterate_batches(b"")) == []


@given(st.binary(max_size=300))
def test_garbage_is_refused_by_every_reader(garbage):
    for read in (parse_header, lambda data: list(iterate_batches(data)), decode_records):
        refused = refusal(read, garbage)
        assert refused is None or refused.message


@given(RECORDS, CODECS, st.data())
@settings(max_examples=300)
def test_damaged_records_raise_one_clear_error_or_decode(records, codec, data):
    """A valid checksum says nothing about the records: the decoder survives anything."""
    batch = build(records, codec=codec)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(21, len(batch) - 1))
        batch[position] = data.draw(st.integers(0, 255))
    struct.pack_into(">I", batch, 17, compute_crc(batch))
    refused = refusal(decode_records, batch)
    if refused is None:
        assert len(decode_records(batch)) == parse_header(batch).records_count
    else:
        assert refused.code in (
            ErrorCode.INVALID_RECORD,
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        )
        assert refused.message.endswith(".")


@pytest.mark.parametrize("count", [2**31 - 1, -5])
def test_a_record_count_that_cannot_be_costs_nothing(count):
    batch = build([(0, b"k", b"v", [])])
    struct.pack_into(">i", batch, 57, count)
    with pytest.raises(KafkaError):
        decode_records(batch)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_bomb_unfolds_to_no_more_than_allowed(codec):
    bomb = compress(codec, bytes(50_000_000))
    assert len(bomb) < 4_000_000
    with pytest.raises(CompressionError, match="more than the 100000 bytes"):
        decompress(codec, bomb, limit=100_000)
    assert decompress(codec, compress(codec, bytes(100_000)), limit=100_000) == bytes(100_000)


@given(st.binary(max_size=2000), st.sampled_from([Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]))
def test_compression_gives_back_what_it_took(data, codec):
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize("level", [-131072, 1, 3, 9, 17, 22])
def test_levels_outside_a_codecs_range_are_not_asked_of_it(level):
    data = b"some text " * 1000
    for codec, low, high in ((Codec.GZIP, 1, 9), (Codec.LZ4, 1, 17), (Codec.ZSTD, -131072, 22)):
        if low <= level <= high:
            assert decompress(codec, compress(codec, data, level)) == data


@given(st.binary(max_size=200), st.sampled_from([Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]), st.data())
def test_damaged_compressed_data_raises_one_error(data, codec, draw):
    packed = bytearray(compress(codec, data))
    position = draw.draw(st.integers(0, len(packed) - 1))
    packed[position] ^= draw.draw(st.integers(1, 255))
    for damaged in (bytes(packed), bytes(packed[:position])):
        refused = refusal(lambda packed: decompress(codec, packed), damaged)
        assert refused is None or str(refused)


def test_other_peoples_framings_are_read():
    data = b"the quick brown fox " * 5000
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data
    assert decompress(Codec.LZ4, bytes(cramjam.lz4.compress(data))) == data
    assert decompress(Codec.GZIP, gzip.compress(data[:10]) + gzip.compress(data[10:])) == data


def test_an_lz4_frame_has_the_header_and_independent_blocks_the_java_client_needs():
    packed = compress(Codec.LZ4, bytes(200_000))
    assert packed[:7] == b"\x04\x22\x4d\x18\x60\x40\x82"
    assert packed[-4:] == bytes(4)


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_marker_is_read_back(committed):
    batch = build_end_transaction_marker(
        producer_id=5, producer_epoch=1, coordinator_epoch=77, committed=committed, timestamp=1
    )
    header = parse_header(batch)
    assert header.is_control
    assert header.is_transactional
    marker = read_end_transaction_marker(batch, header)
    assert marker == (committed, 77)


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_sequences_wrap_to_zero(sequence, by):
    advanced = advance_sequence(sequence, by)
    assert 0 <= advanced < 2**31
    assert (advanced - sequence - by) % 2**31 == 0
