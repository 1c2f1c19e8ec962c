"""What a batch read takes from a real broker, without Spark around it: ranges, isolation, compaction, loss."""

import datetime
import json

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan, Not
from pyspark.sql.pandas.types import to_arrow_schema

from headrace.link.settings import SettingsError
from headrace.spark.batch import FilteringBatchReader
from headrace.spark.ledger import TOPIC as LEDGER
from headrace.spark.options import ReadOptions
from headrace.spark.plan import Range, divide
from headrace.spark.read import DataLoss
from headrace.spark.source import HeadraceSource
from headrace.wire.errors import KafkaError


@pytest.fixture
def reader(bootstrap):
    def make(**options):
        given = {"kafka.bootstrap.servers": bootstrap, **options}
        return FilteringBatchReader(ReadOptions.of(given, streaming=False), HeadraceSource(given).schema())

    return make


def read(reader):
    """Every row, in the order of the ranges."""
    schema = to_arrow_schema(reader._schema, timezone="UTC")
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return pa.Table.from_batches(batches, schema).to_pylist()


def values(reader):
    return [row["value"] for row in read(reader)]


def test_topics_are_chosen_by_name_by_pattern_or_by_partition(reader, make_topic, produce):
    one, two = make_topic(2, name="choose-one"), make_topic(name="choose-two")
    make_topic(name="also-choose-three")
    produce(make_topic(name=LEDGER), [b"of the sink's own"])
    produce(one, [b"1-0"])
    produce(one, [b"1-1"], 1)
    produce(two, [b"2-0"])
    assert values(reader(subscribe="choose-one, choose-two")) == [b"1-0", b"1-1", b"2-0"]
    assert values(reader(subscribePattern="choose-.*|__.*")) == [b"1-0", b"1-1", b"2-0"]
    assert values(reader(assign=json.dumps({one: [1], two: [0]}))) == [b"1-1", b"2-0"]


def test_a_topic_or_partition_that_is_not_there_is_named(reader, make_topic):
    with pytest.raises(KafkaError, match="'nowhere' does not exist"):
        reader(subscribe="nowhere").partitions()
    topic = make_topic()
    with pytest.raises(KafkaError, match=f"{topic}-7"):
        reader(assign=json.dumps({topic: [0, 7]})).partitions()


def test_timestamps_find_the_offsets(reader, make_topic, produce):
    topic = make_topic(2)
    for partition in (0, 1):
        produce(topic, [b"%d" % n for n in range(10)], partition, timestamp=lambda n: 1_000 + 10 * n)
    bounds = {"startingTimestamp": "1035", "endingTimestamp": "1060"}
    assert values(reader(subscribe=topic, **bounds)) == [b"4", b"5"] * 2
    each = {"startingOffsetsByTimestamp": json.dumps({topic: {"0": 1090, "1": 1080}})}
    assert values(reader(subscribe=topic, **each)) == [b"9", b"8", b"9"]
    with pytest.raises(SettingsError, match=f"No offset matched from request of topic-partition {topic}-0"):
        reader(subscribe=topic, startingTimestamp="5000").partitions()
    latest = {"startingTimestamp": "5000", "startingOffsetsByTimestampStrategy": "latest"}
    assert values(reader(subscribe=topic, **latest)) == []


def test_offsets_must_name_every_partition_once(reader, make_topic):
    topic = make_topic(2)
    with pytest.raises(SettingsError, match="don't match what are assigned"):
        reader(subscribe=topic, startingOffsets=json.dumps({topic: {"0": 0}})).partitions()


def test_a_start_after_the_end_is_explained(reader, make_topic, produce):
    topic = make_topic()
    produce(topic, [b"a"])
    with pytest.raises(
        SettingsError, match="resolved start offset 5 is greater than the resolved end offset 1"
    ):
        reader(subscribe=topic, startingOffsets=json.dumps({topic: {"0": 5}})).partitions()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_is_read(codec, reader, make_topic, bootstrap):
    topic = make_topic(name=f"compressed-{codec}")
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20})
    for number in range(500):
        producer.produce(topic, b"value-%d " % number * 3, b"key", headers={"n": b"%d" % number})
    assert producer.flush(30) == 0
    rows = read(reader(subscribe=topic, includeHeaders="true"))
    assert [row["value"] for row in rows] == [b"value-%d " % number * 3 for number in range(500)]
    assert rows[7]["headers"] == [{"key": "n", "value": b"7"}]


def test_small_blocks_and_records_larger_than_a_block_are_read_whole(reader, make_topic, produce):
    topic = make_topic()
    sent = [b"x" * size for size in (10, 5_000, 200_000, 3, 60_000)]
    for value in sent:
        produce(topic, [value])
    assert values(reader(subscribe=topic, **{"kafka.max.partition.fetch.bytes": "1000"})) == sent


def transact(bootstrap, topic, outcomes):
    """One transaction per outcome, each with three records that name it."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-id", "linger.ms": 5})
    producer.init_transactions(30)
    for number, outcome in enumerate(outcomes):
        producer.begin_transaction()
        for _ in range(3):
            producer.produce(topic, b"%d-%s" % (number, outcome.encode()))
        producer.flush(30)
        if outcome == "committed":
            producer.commit_transaction(30)
        elif outcome == "aborted":
            producer.abort_transaction(30)
    return producer


def test_read_committed_leaves_out_what_was_aborted_and_what_is_still_open(
    reader, make_topic, bootstrap, produce
):
    topic = make_topic()
    produce(topic, [b"plain"])
    held = transact(bootstrap, topic, ["committed", "aborted", "committed", "aborted", "committed", "open"])
    produce(topic, [b"late"])
    committed = {"kafka.isolation.level": "read_committed"}
    expected = [b"plain", *[b"0-committed"] * 3, *[b"2-committed"] * 3, *[b"4-committed"] * 3]
    assert values(reader(subscribe=topic, **committed)) == expected
    for size in ("1", "300"):  # block by block, each with its own list of aborted transactions
        limited = {**committed, "kafka.max.partition.fetch.bytes": size}
        assert values(reader(subscribe=topic, **limited)) == expected
    everything = values(reader(subscribe=topic))
    assert everything.count(b"1-aborted") == 3
    assert everything[-4:] == [b"5-open", b"5-open", b"5-open", b"late"]
    held.abort_transaction(30)
    assert values(reader(subscribe=topic, **committed)) == [*expected, b"late"]


def test_records_that_retention_took_fail_the_read_or_are_skipped(reader, make_topic, produce, admin):
    topic = make_topic()
    produce(topic, [b"%d" % n for n in range(10)])
    ranges = reader(subscribe=topic).partitions()
    kept = TopicPartition(topic, 0, 6)
    admin.delete_records([kept])[kept].result(30)
    with pytest.raises(DataLoss, match=r"offset \[0, 10\) for topic partition .* now holds \[6, 10\)"):
        list(reader(subscribe=topic).read(ranges[0]))
    lenient = reader(subscribe=topic, failOnDataLoss="false")
    found = [value.as_py() for batch in lenient.read(ranges[0]) for value in batch["value"]]
    assert found == [b"6", b"7", b"8", b"9"]


def test_ranges_are_cut_into_more_pieces_where_asked(reader, make_topic, produce):
    topic = make_topic()
    produce(topic, [b"%d" % n for n in range(100)])
    assert len(reader(subscribe=topic, minPartitions="4").partitions()) == 4
    assert len(reader(subscribe=topic, maxRecordsPerPartition="30").partitions()) == 4
    assert values(reader(subscribe=topic, minPartitions="7")) == [b"%d" % n for n in range(100)]


def test_large_ranges_are_cut_more_often_than_small_ones():
    ranges = [Range("t", 0, 0, 900), Range("t", 1, 50, 150), Range("t", 2, 5, 5)]
    cut = divide(ranges, 10, None)
    assert [piece.partition for piece in cut] == [0] * 9 + [1]
    assert [(piece.start, piece.end) for piece in cut[-2:]] == [(800, 900), (50, 150)]
    assert max(piece.size for piece in divide(ranges, None, 70)) <= 70


def test_filters_narrow_what_is_fetched(reader, make_topic, produce):
    topic = make_topic(3)
    for partition in range(3):
        produce(topic, [b"v"] * 10, partition, timestamp=lambda n: 1_000_000 + 1000 * n)

    def planned(*filters):
        filtered = reader(subscribe=topic)
        assert list(filtered.pushFilters(list(filters))) == list(filters)
        return [(piece.partition, piece.start, piece.end) for piece in filtered.partitions()]

    assert planned(EqualTo(("partition",), 1)) == [(1, 0, 10)]
    assert planned(In(("partition",), (0, 2)), Not(EqualTo(("partition",), 0))) == [(0, 0, 10), (2, 0, 10)]
    assert planned(EqualTo(("topic",), "another")) == []
    bounded = planned(GreaterThan(("offset",), 3), LessThan(("offset",), 6), EqualTo(("partition",), 0))
    assert bounded == [(0, 4, 6)]
    assert planned(In(("offset",), (None, 7)), EqualTo(("partition",), 0)) == [(0, 7, 8)]
    moment = datetime.datetime.fromtimestamp(1007.0005, datetime.UTC)
    since = planned(GreaterThanOrEqual(("timestamp",), moment), EqualTo(("partition",), 2))
    assert since == [(2, 8, 10)]
    assert planned(GreaterThan(("timestamp",), moment + datetime.timedelta(days=1))) == []
    before_time = datetime.datetime.fromtimestamp(-0.001, datetime.UTC)  # -1 would mean "the end" to a broker
    assert len(planned(GreaterThanOrEqual(("timestamp",), before_time))) == 3
