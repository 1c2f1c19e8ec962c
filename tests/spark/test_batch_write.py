"""Writing topics from batch jobs: what arrives, where it goes, and what is said about rows that cannot be written."""

import re

import pytest
from confluent_kafka import Consumer, TopicPartition, murmur2
from pyspark.errors import PySparkException


@pytest.fixture
def consume(bootstrap):
    """All records of a topic, by partition and offset: `consume(topic, partitions=3)`."""

    def read(topic, partitions=1):
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        found, ended = [], set()
        while len(ended) < partitions:
            message = consumer.poll(30)
            assert message is not None, "the broker has fallen silent"
            if message.error():
                ended.add(message.partition())
            else:
                found.append(message)
        consumer.close()
        return sorted(found, key=lambda message: (message.partition(), message.offset()))

    return read


@pytest.fixture
def writing(bootstrap):
    """`writing(df, topic=…)` appends the rows of a DataFrame."""

    def write(df, **options):
        writer = df.write.format("headrace").mode("append").option("kafka.bootstrap.servers", bootstrap)
        writer.options(**options).save()

    return write


def test_rows_become_records_with_keys_where_the_java_client_puts_them(spark, make_topic, writing, consume):
    topic = make_topic(3)
    df = spark.range(1000).selectExpr("cast(id % 50 as string) key", "concat('v', id) value")
    writing(df, topic=topic)
    records = consume(topic, 3)
    assert sorted(record.value() for record in records) == sorted(b"v%d" % n for n in range(1000))
    assert all(record.partition() == murmur2(record.key(), 3) for record in records)


def test_rows_of_a_key_keep_their_order(spark, make_topic, writing, consume):
    topic = make_topic(2)
    df = spark.range(0, 5000, 1, 1).selectExpr("cast(id % 7 as string) key", "cast(id as string) value")
    writing(df, topic=topic, **{"kafka.batch.size": "4096"})
    by_key = {}
    for record in consume(topic, 2):
        by_key.setdefault(record.key(), []).append(int(record.value()))
    assert len(by_key) == 7
    assert all(values == sorted(values) for values in by_key.values())


def test_topic_partition_headers_and_nulls_come_from_columns(spark, make_topic, writing, consume):
    first, second = make_topic(2), make_topic(1)
    rows = [
        (first, 1, bytearray(b"k"), bytearray(b"v"), [("a", bytearray(b"1")), ("b", None)]),
        (first, 0, None, None, None),
        (second, None, bytearray(b""), bytearray(b"x" * 9000), []),
    ]
    schema = "topic string, partition int, key binary, value binary, headers array<struct<key:string,value:binary>>"
    writing(spark.createDataFrame(rows, schema))
    told = [(r.partition(), r.key(), r.value(), r.headers()) for r in consume(first, 2)]
    assert told == [(0, None, None, None), (1, b"k", b"v", [("a", b"1"), ("b", None)])]
    assert [(r.key(), r.value()) for r in consume(second)] == [(b"", b"x" * 9000)]


def test_the_topic_option_wins_over_the_column(spark, make_topic, writing, consume):
    topic = make_topic(1)
    writing(spark.createDataFrame([("nowhere", "v")], "topic string, value string"), topic=topic)
    assert [record.value() for record in consume(topic)] == [b"v"]


def test_rows_without_a_key_are_spread_in_runs(spark, make_topic, writing, consume):
    topic = make_topic(4)
    df = spark.range(0, 4000, 1, 1).selectExpr("repeat('x', 100) value")
    writing(df, topic=topic, **{"kafka.batch.size": "20000"})
    per_partition = [sum(r.partition() == n for r in consume(topic, 4)) for n in range(4)]
    assert sum(per_partition) == 4000
    assert min(per_partition) > 800


def test_timestamps_are_those_of_writing_or_of_the_column(spark, make_topic, writing, consume):
    topic, other = make_topic(1), make_topic(1)
    df = spark.sql("select 'v' value, timestamp '2020-01-02 03:04:05.678' timestamp")
    writing(df, topic=topic)
    writing(df, topic=other, includeTimestamp="true")
    assert consume(topic)[0].timestamp()[1] > 1_700_000_000_000
    assert consume(other)[0].timestamp()[1] == 1_577_934_245_678


@pytest.mark.parametrize(
    "settings",
    [{"kafka.compression.type": codec} for codec in ("gzip", "snappy", "lz4", "zstd")]
    + [{"kafka.acks": acks} for acks in ("0", "1")],
    ids=lambda settings: next(iter(settings.values())),
)
def test_the_producers_settings_are_honoured(spark, request, make_topic, writing, consume, settings):
    topic = make_topic(name=request.node.name.replace("[", "-").rstrip("]"))
    writing(spark.range(500).selectExpr("repeat('x', 100) value"), topic=topic, **settings)
    assert [record.value() for record in consume(topic)] == [b"x" * 100] * 500


def test_a_topic_is_made_on_first_use(spark, bootstrap, writing, consume):
    writing(spark.range(3).selectExpr("cast(id as string) value"), topic="made-on-first-use")
    assert len(consume("made-on-first-use")) == 3


def test_rows_that_cannot_be_written_fail_the_job_in_one_sentence(spark, make_topic, writing):
    topic = make_topic(3)
    for columns, options, sentence in (
        (
            "1 value",
            {"topic": topic},
            "value attribute unsupported type int. value must be a(n) string or binary",
        ),
        ("'v' value, cast(null as string) topic", {}, "null topic present in the data. Use the topic option"),
        ("'v' value, 9 partition", {"topic": topic}, "which has partitions 0 to 2"),
        (
            "repeat('x', 2000000) value",
            {"topic": topic},
            "A row for .* takes up 20000.. bytes, more than the 1048576 of kafka.max.request.size",
        ),
    ):
        with pytest.raises(PySparkException, match=re.compile(sentence.replace("(n)", r"\(n\)"))):
            writing(spark.sql(f"select {columns}"), **options)


def test_a_topic_is_never_overwritten(spark, bootstrap, make_topic):
    df = spark.sql("select 'v' value")
    writer = (
        df.write.format("headrace").option("kafka.bootstrap.servers", bootstrap).option("topic", make_topic())
    )
    with pytest.raises(PySparkException, match="a topic is only ever appended to"):
        writer.mode("overwrite").save()
