"""Batch reads of a real topic by a real local Spark."""

import datetime
import json

import pytest


def rows(frame):
    return sorted((row.partition, row.offset, bytes(row.value)) for row in frame.collect())


def test_a_topic_is_read_with_the_official_connectors_schema(reading, make_topic, produce):
    topic = make_topic()
    produce(topic, [b"a", b"b", None], key=b"k", timestamp=1_700_000_000_123)
    frame = reading(subscribe=topic).load()
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int>"
    )
    found = frame.orderBy("offset").collect()
    assert [row.value for row in found] == [b"a", b"b", None]
    assert {(bytes(row.key), row.topic, row.partition, row.timestampType) for row in found} == {
        (b"k", topic, 0, 0)
    }
    moment = datetime.datetime.fromtimestamp(1_700_000_000.123, datetime.UTC)
    assert frame.selectExpr("cast(timestamp as double) as t").first().t == pytest.approx(moment.timestamp())


def test_offsets_named_per_partition_bound_what_is_read(reading, make_topic, produce):
    topic = make_topic(2)
    for partition in (0, 1):
        produce(topic, [b"%d-%d" % (partition, n) for n in range(10)], partition)
    start = json.dumps({topic: {"0": 3, "1": -2}})
    end = json.dumps({topic: {"0": 5, "1": -1}})
    frame = reading(subscribe=topic, startingOffsets=start, endingOffsets=end).load()
    expected = [(0, 3, b"0-3"), (0, 4, b"0-4"), *((1, n, b"1-%d" % n) for n in range(10))]
    assert rows(frame) == expected
