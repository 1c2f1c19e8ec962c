"""Record batches made from Arrow columns are what any Kafka client would have written."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import murmur2 as placed_by_librdkafka
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.sink_partitions import Spread, murmur2, place
from headrace.spark.sink_records import Destination, Rows, encode
from headrace.wire.batch import check_crc, parse_header
from headrace.wire.compression import Codec
from headrace.wire.records import decode_records

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

texts = st.one_of(st.none(), st.binary(max_size=200))
row = st.tuples(
    texts,
    texts,
    st.one_of(st.none(), st.lists(st.tuples(st.text(max_size=5), texts), max_size=3)),
    st.integers(0, 2**45),
    st.integers(0, 2),
)


@given(st.lists(row, min_size=1, max_size=150), st.sampled_from(list(Codec)), st.integers(50, 5000))
def test_every_row_is_in_its_partition_whole_and_in_order(rows, codec, limit):
    keys, values, headers, stamps, partitions = (list(column) for column in zip(*rows, strict=True))
    listed = [None if one is None else [{"key": k, "value": v} for k, v in one] for one in headers]
    columns = Rows(
        pa.array(values, pa.binary()),
        pa.array(keys, pa.binary()),
        pa.array(listed, HEADERS),
        np.array(stamps),
    )
    order = np.argsort(partitions, kind="stable")
    ends = np.searchsorted(np.array(partitions)[order], [0, 1, 2, 3]).tolist()
    places = [Destination("t", n, ends[n], ends[n + 1]) for n in range(3) if ends[n] < ends[n + 1]]
    found = {0: [], 1: [], 2: []}
    for draft in encode(columns, columns.sizes(), order, places, limit, codec, None, 0):
        data = draft.seal(7, 3, 11, True)
        header = parse_header(data)
        check_crc(data, header)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 11)
        assert header.is_transactional
        records = decode_records(data, header)
        assert [record.offset for record in records] == list(range(len(records)))
        assert header.max_timestamp == max(record.timestamp for record in records)
        found[draft.partition] += [
            (record.key, record.value, list(record.headers), record.timestamp) for record in records
        ]
    assert found == {
        number: [
            (key, value, headers or [], stamp)
            for key, value, headers, stamp, partition in rows
            if partition == number
        ]
        for number in range(3)
    }


@given(st.lists(st.binary(max_size=60), min_size=1), st.integers(1, 100), st.integers(0, 5))
def test_keys_go_where_the_java_client_puts_them(keys, count, skipped):
    column = pa.array(keys, pa.binary()).slice(skipped)
    hashed = (murmur2(column) & np.uint32(0x7FFFFFFF)) % count
    assert hashed.tolist() == [placed_by_librdkafka(key, count) for key in keys[skipped:]]


def test_batches_stay_below_the_limit_though_rows_differ_in_size():
    sizes = [10, 900, 10, 500, 500, 10, 3000, 10]
    rows = Rows(pa.array([b"x" * size for size in sizes]))
    drafts = list(encode(rows, rows.sizes(), None, [Destination("t", 0, 0, 8)], 1000, Codec.NONE, None, 5))
    assert [draft.count for draft in drafts] == [2, 2, 2, 1, 1]


def test_rows_without_a_key_fill_a_run_before_they_change_partition():
    spread = Spread(1000)
    sizes = np.full(40, 100)
    placed = [spread.place("t", part, [0, 1, 2, 3]) for part in (sizes[:13], sizes[13:])]
    together = np.concatenate(placed).tolist()
    assert sorted(together) == [0] * 10 + [1] * 10 + [2] * 10 + [3] * 10
    assert sum(a != b for a, b in itertools.pairwise(together)) == 3


def test_named_partitions_win_over_keys_and_must_exist():
    key, sizes = pa.array([b"a", b"a", None]), np.array([1, 1, 1])
    named = pa.array([2, None, 1], pa.int32())
    placed = place("t", range(3), range(3), key, named, sizes, Spread(10)).tolist()
    assert placed == [2, placed_by_librdkafka(b"a", 3), 1]
    with pytest.raises(ValueError, match="partition 7 of topic 't', which has partitions 0 to 2"):
        place("t", range(3), range(3), key, pa.array([0, 7, 1], pa.int32()), sizes, Spread(10))
