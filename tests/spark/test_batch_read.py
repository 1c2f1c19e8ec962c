"""Batch reads by a real local Spark: discovery, schema, columns, filters, errors as users see them."""

import json

import pytest
from pyspark.errors import AnalysisException, PySparkException


def test_a_topic_is_read_with_the_official_connectors_schema(reading, make_topic, produce):
    topic = make_topic(1, {"retention.ms": "-1"})  # The records are years old.
    produce(
        topic, [b"a", b"b", None], key=b"k", headers=[("h", b"1"), ("h", None)], timestamp=1_700_000_000_123
    )
    frame = reading(subscribe=topic, includeHeaders="true").load()
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    found = frame.selectExpr("*", "unix_millis(timestamp) as ms").orderBy("offset").collect()
    assert [row.value for row in found] == [b"a", b"b", None]
    first = found[0]
    assert (bytes(first.key), first.topic, first.partition, first.offset, first.timestampType, first.ms) == (
        b"k",
        topic,
        0,
        0,
        0,
        1_700_000_000_123,
    )
    assert [tuple(header) for header in first.headers] == [("h", b"1"), ("h", None)]


def test_a_data_frame_reads_in_parallel_and_only_the_columns_named(reading, make_topic, produce):
    topic = make_topic(3)
    for partition in range(3):
        produce(topic, [b"%d" % n for n in range(200)], partition)
    frame = reading(subscribe=topic, columns="partition,value", minPartitions="6").load()
    assert frame.columns == ["value", "partition"]
    counted = frame.selectExpr("partition", "cast(cast(value as string) as int) as n").groupBy("partition")
    assert sorted(tuple(row) for row in counted.sum("n").collect()) == [(p, 19_900) for p in range(3)]
    assert frame.rdd.getNumPartitions() == 6
    assert (
        reading(subscribe=topic, endingOffsets=json.dumps({topic: dict.fromkeys("012", 0)})).load().count()
        == 0
    )


def test_filters_are_pushed_down_where_spark_offers_it(spark, reading, make_topic, produce):
    topic = make_topic(3)
    for partition in range(3):
        produce(topic, [b"v"] * 10, partition)
    query = reading(subscribe=topic).load().where("partition = 2 and offset >= 4")
    assert query.rdd.getNumPartitions() == 3
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        narrowed = reading(subscribe=topic).load().where("partition = 2 and offset >= 4")
        assert narrowed.count() == 6
        assert narrowed.rdd.getNumPartitions() == 1
        assert reading(subscribe=topic).load().count() == 30
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert query.count() == 6


def test_what_is_wrong_with_the_options_is_told_in_the_sentence_users_know(reading, spark):
    with pytest.raises(
        PySparkException, match="One of the following options must be specified for Kafka source"
    ):
        reading().load().collect()
    with pytest.raises(PySparkException, match="starting offset can't be latest for batch queries"):
        reading(subscribe="t", startingOffsets="latest").load().collect()
    with pytest.raises(AnalysisException, match="columns is 'colour'"):
        reading(subscribe="t", columns="colour").load()
    nobody = spark.read.format("headrace").options(
        **{"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "kafka.default.api.timeout.ms": "300"}
    )
    with pytest.raises(PySparkException, match=r"the broker at 127\.0\.0\.1:1 cannot be reached"):
        nobody.load().collect()
