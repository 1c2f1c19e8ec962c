"""Batches to Arrow, held beside the record decoder of the wire for whatever records there may be."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from headrace.spark.decode import ArrowDecoder, Located
from headrace.spark.source import HeadraceSource
from headrace.wire.batch import iterate_batches
from headrace.wire.compression import Codec
from headrace.wire.errors import KafkaError
from headrace.wire.records import BatchBuilder, decode_records

SCHEMA = to_arrow_schema(HeadraceSource({"includeHeaders": "true"}).schema(), timezone="UTC")

some_bytes = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=20), some_bytes), max_size=4)
records = st.tuples(st.integers(0, 2**42), some_bytes, some_bytes, headers, st.integers(1, 70_000))
batches = st.lists(
    st.tuples(
        st.lists(records, min_size=1, max_size=90),
        st.sampled_from(list(Codec)),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


def build(groups):
    """A block of batches; the gaps between offsets are those of a compacted log."""
    block, offset = b"", 5
    for entries, codec, append_time in groups:
        builder = BatchBuilder(
            base_offset=offset, codec=codec, log_append_time=1_700_000_000_000 if append_time else None
        )
        for timestamp, key, value, heads, gap in entries:
            builder.append(timestamp, key, value, heads, offset=offset)
            offset += gap
        block += builder.build()
    return block


def located(block):
    return [Located(position, header) for position, header in iterate_batches(block)]


def decoded(block, start=0, end=2**62, schema=SCHEMA):
    decoder = ArrowDecoder("topic", 3, schema)
    return pa.Table.from_batches(decoder.decode(block, located(block), start, end), schema).to_pylist()


@settings(max_examples=60)
@given(batches)
def test_every_record_arrives_as_the_wire_decodes_it(groups):
    block = build(groups)
    expected = []
    for position, header in located(block):
        for record in decode_records(block[position : position + header.size], header):
            expected.append(
                {
                    "key": record.key,
                    "value": record.value,
                    "topic": "topic",
                    "partition": 3,
                    "offset": record.offset,
                    "timestamp": record.timestamp,
                    "timestampType": int(header.is_log_append_time),
                    "headers": [{"key": k, "value": v} for k, v in record.headers] or None,
                }
            )
    plain = pa.schema([f if f.name != "timestamp" else pa.field("timestamp", pa.int64()) for f in SCHEMA])
    found = decoded(block, schema=plain)
    for row in found:
        row["timestamp"] //= 1000
    assert found == expected


@pytest.mark.parametrize("sizes", [[100] * 500, [10, 10, 10, 300, 300] * 60, list(range(400)), [9000] * 40])
def test_runs_of_records_of_one_length_are_found_and_their_ends_too(sizes):
    values = [bytes([n % 251]) * size for n, size in enumerate(sizes)]
    block = build([([(n, None, value, [], 1) for n, value in enumerate(values)], Codec.NONE, False)])
    assert [row["value"] for row in decoded(block)] == values


def test_only_the_offsets_asked_for_are_given():
    block = build([([(0, None, b"%d" % n, [], 1) for n in range(50)], Codec.NONE, False)] * 2)
    assert [row["offset"] for row in decoded(block, 30, 70)] == list(range(30, 70))


def test_a_damaged_batch_is_named_and_not_read():
    block = bytearray(build([([(0, b"k", b"v" * 50, [], 1)] * 9, Codec.NONE, False)]))
    block[-3] ^= 1
    with pytest.raises(KafkaError, match="checksum"):
        decoded(bytes(block))


@pytest.mark.parametrize(
    ("column", "true", "false"), [("value", b"\x64v", b"\x7ev"), ("headers", b"\x02h", b"\x01h")]
)
def test_a_record_whose_lengths_are_not_true_is_named_and_not_read(column, true, false):
    block = build([([(0, None, b"v" * 50, [("h", b"")], 1)], Codec.NONE, False)]).replace(true, false)
    decoder = ArrowDecoder("topic", 3, pa.schema([SCHEMA.field(column)]), check_crcs=False)
    with pytest.raises(KafkaError, match="between offsets 5 and 5 cannot be read"):
        list(decoder.decode(block, located(block), 0, 9))


def test_a_headers_key_that_is_no_text_is_shown_as_java_shows_it():
    block = build([([(0, None, b"v", [("hh", b"x"), ("fine", None)], 1)], Codec.NONE, False)])
    decoder = ArrowDecoder("topic", 3, pa.schema([SCHEMA.field("headers")]), check_crcs=False)
    broken = block.replace(b"hh", b"h\xff")
    (batch,) = decoder.decode(broken, located(broken), 0, 9)
    assert batch["headers"].to_pylist() == [
        [{"key": "h\ufffd", "value": b"x"}, {"key": "fine", "value": None}]
    ]


def test_a_topic_of_brokers_without_ids_has_none():
    block = build([([(0, None, b"v", [], 1)], Codec.NONE, False)])
    schema = pa.schema([("offset", pa.int64()), ("topicId", pa.string())])
    assert decoded(block, schema=schema) == [{"offset": 5, "topicId": None}]
