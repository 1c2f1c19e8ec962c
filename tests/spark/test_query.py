"""A streaming reader driven as Spark drives it, against a real broker: triggers, limits, topics that change."""

import json
import pickle

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions
from confluent_kafka.admin import NewPartitions
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from headrace.spark.offsets import TopicPartition
from headrace.spark.options import ReadOptions
from headrace.spark.query import share_out
from headrace.spark.read import DataLoss
from headrace.spark.source import HeadraceSource
from headrace.spark.stream import StreamReader

ALL = ReadAllAvailable()


@pytest.fixture
def stream(bootstrap):
    made = []

    def make(**options):
        given = {"kafka.bootstrap.servers": bootstrap, **options}
        made.append(StreamReader(ReadOptions.of(given, streaming=True), HeadraceSource(given).schema()))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()


def values(reader, start, end):
    """What a micro-batch reads, through a copy as a task gets it."""
    task = pickle.loads(pickle.dumps(reader))
    parts = reader.partitions(start, end)
    return [value.as_py() for part in parts for batch in task.read(part) for value in batch["value"]]


def test_micro_batches_follow_each_other_without_gap_or_overlap(stream, make_topic, produce):
    topic = make_topic()
    produce(topic, [b"a", b"b"])
    reader = stream(subscribe=topic, startingOffsets="earliest")
    start = reader.initialOffset()
    assert start[topic] == {"0": 0}
    end = reader.latestOffset(start, ALL)
    assert values(reader, start, end) == [b"a", b"b"]
    assert reader.latestOffset(end, ALL) == end
    produce(topic, [b"c"])
    later = reader.latestOffset(end, ALL)
    assert later[topic] == {"0": 3} == reader.reportLatestOffset()[topic]
    assert values(reader, end, later) == [b"c"]


def test_a_query_stopped_in_its_first_batch_finds_the_same_beginning(stream, make_topic, produce):
    topic = make_topic()
    produce(topic, [b"before"])
    reader = stream(subscribe=topic)
    start = reader.initialOffset()
    produce(topic, [b"first"])
    end = json.loads(json.dumps(reader.latestOffset(start, ALL)))
    produce(topic, [b"second"])
    again = stream(subscribe=topic)  # the batch was planned and never finished
    assert values(again, again.initialOffset(), end) == [b"first"]
    following = again.latestOffset(end, ALL)
    assert values(again, end, following) == [b"second"]
    assert values(again, end, end) == []


def test_a_stream_from_the_end_begins_where_it_first_looked_though_nothing_was_there(
    stream, make_topic, produce
):
    topic = make_topic()
    produce(topic, [b"before"])
    reader = stream(subscribe=topic)
    empty = reader.latestOffset(reader.initialOffset(), ALL)
    produce(topic, [b"first"])
    # For the batch it has planned, Spark asks anew where the stream begins.
    assert values(reader, reader.initialOffset(), empty) == []
    assert values(reader, empty, reader.latestOffset(empty, ALL)) == [b"first"]


def test_a_limit_is_shared_among_partitions_by_what_they_hold(stream, make_topic, produce):
    topic = make_topic(2)
    produce(topic, [b"x"] * 90, 0)
    produce(topic, [b"y"] * 10, 1)
    reader = stream(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="20")
    assert reader.getDefaultReadLimit() == ReadMaxRows(20)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(20))
    assert end[topic] == {"0": 18, "1": 2}
    assert reader.latestOffset(start, ALL)[topic] == {"0": 90, "1": 10}


def test_nobody_starves_and_nothing_is_read_twice():
    a, b = TopicPartition("t", 0), TopicPartition("t", 1)
    assert share_out({a: 0, b: 5}, {a: 1_000_000, b: 6}, 100) == {a: 99, b: 6}
    assert share_out({a: 7}, {a: 7, b: 3}, 100) == {a: 7, b: 3}


def test_a_small_batch_waits_for_more_until_the_delay_is_over(stream, make_topic, produce):
    topic = make_topic()
    produce(topic, [b"x"] * 5)
    options = {"subscribe": topic, "startingOffsets": "earliest", "minOffsetsPerTrigger": "3"}
    reader = stream(**options, maxTriggerDelay="1h")
    assert reader.getDefaultReadLimit() == ReadMinRows(3)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMinRows(3))
    assert end[topic] == {"0": 5}
    produce(topic, [b"y"])
    assert reader.latestOffset(end, ReadMinRows(3)) == end
    produce(topic, [b"y"] * 2)
    assert reader.latestOffset(end, ReadMinRows(3))[topic] == {"0": 8}
    impatient = stream(**options, maxTriggerDelay="0ms")
    assert impatient.latestOffset({topic: {"0": 7}}, ReadMinRows(3))[topic] == {"0": 8}


def test_available_now_ends_where_the_topic_ended_when_it_began(stream, make_topic, produce):
    topic = make_topic()
    produce(topic, [b"x"] * 10)
    reader = stream(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="6")
    reader.prepareForTriggerAvailableNow()
    position = reader.initialOffset()
    seen = []
    while True:
        position, before = reader.latestOffset(position, ReadMaxRows(6)), position
        produce(topic, [b"later"])
        if position == before:
            break
        seen.append(position[topic]["0"])
    assert seen == [6, 10]


def test_partitions_added_while_running_are_read_from_their_first_record(stream, make_topic, produce, admin):
    topic = make_topic()
    reader = stream(subscribe=topic)
    start = reader.initialOffset()
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    produce(topic, [b"new"], 1)
    end = reader.latestOffset(start, ReadMaxRows(5))
    assert end[topic] == {"0": 0, "1": 1}
    assert values(reader, start, end) == [b"new"]


def test_topics_that_come_to_match_a_pattern_join(stream, make_topic, produce):
    make_topic(name="joins-1")
    reader = stream(subscribePattern="joins-.*")
    start = reader.initialOffset()
    produce(make_topic(name="joins-2"), [b"hello"])
    assert values(reader, start, reader.latestOffset(start, ALL)) == [b"hello"]


def test_topics_that_come_before_the_first_batch_is_done_are_read_whole_after_a_restart(
    stream, make_topic, produce
):
    reader = stream(subscribePattern="later-.*")
    start = reader.initialOffset()
    assert start == {}
    topic = make_topic(name="later-1")
    produce(topic, [b"one", b"two"])
    end = json.loads(json.dumps(reader.latestOffset(start, ALL)))
    again = stream(subscribePattern="later-.*")  # the batch was planned and never finished
    assert values(again, again.initialOffset(), end) == [b"one", b"two"]


def test_a_topic_made_again_before_the_first_batch_is_read_whole(stream, make_topic, produce, admin):
    topic = make_topic(name="at-once")
    produce(topic, [b"old"] * 5)
    reader = stream(subscribe=topic)
    start = reader.initialOffset()
    admin.delete_topics([topic])[topic].result(30)
    make_topic(name=topic)
    produce(topic, [b"new"] * 3)
    end = json.loads(json.dumps(reader.latestOffset(start, ALL)))
    assert values(reader, start, end) == [b"new"] * 3
    again = stream(subscribe=topic)
    assert values(again, again.initialOffset(), end) == [b"new"] * 3


@pytest.mark.parametrize("count", [2, 9])
def test_a_topic_made_again_is_noticed_and_read_from_its_beginning(count, stream, make_topic, produce, admin):
    topic = make_topic(name=f"made-again-{count}")
    produce(topic, [b"old"] * 5)
    lenient = stream(subscribe=topic, startingOffsets="earliest", failOnDataLoss="false")
    strict = stream(subscribe=topic, startingOffsets="earliest")
    start = strict.initialOffset()
    end = strict.latestOffset(start, ALL)
    assert values(lenient, start, lenient.latestOffset(lenient.initialOffset(), ALL)) == [b"old"] * 5
    admin.delete_topics([topic])[topic].result(30)
    make_topic(name=topic)
    produce(topic, [b"new"] * count)
    with pytest.raises(DataLoss, match=f"{topic}-0 were deleted and created again"):
        strict.partitions(end, strict.latestOffset(end, ALL))
    later = lenient.latestOffset(end, ALL)
    assert values(lenient, end, later) == [b"new"] * count
    resumed = stream(subscribe=topic, failOnRecreatedTopic="false")  # it was stopped when that happened
    assert resumed.latestOffset(end, ALL) == later
    assert values(resumed, end, later) == [b"new"] * count


def test_a_topic_made_again_as_long_as_it_was_and_with_fewer_partitions_is_noticed(
    stream, make_topic, produce, admin
):
    topic = make_topic(2, name="as-long")
    produce(topic, [b"old"] * 5)
    produce(topic, [b"old"] * 3, 1)
    reader = stream(subscribe=topic, startingOffsets="earliest", failOnRecreatedTopic="false")
    end = reader.latestOffset(reader.initialOffset(), ALL)
    admin.delete_topics([topic])[topic].result(30)
    make_topic(1, name=topic)
    produce(topic, [b"new"] * 5)
    later = reader.latestOffset(end, ALL)
    assert values(reader, end, later) == [b"new"] * 5
    assert reader.latestOffset(later, ALL) == later


def test_a_batch_planned_for_a_topic_that_is_no_more_is_empty_and_the_next_reads_the_new_one(
    stream, make_topic, produce, admin
):
    topic = make_topic(name="planned")
    produce(topic, [b"old"] * 5)
    reader = stream(subscribe=topic, startingOffsets="earliest", failOnRecreatedTopic="false")
    start = reader.initialOffset()
    planned = reader.latestOffset(start, ALL)
    ranges = reader.partitions(start, planned)
    admin.delete_topics([topic])[topic].result(30)
    make_topic(name=topic)
    produce(topic, [b"new"] * 7)
    assert [batch for part in ranges for batch in reader.read(part)] == []
    resumed = stream(subscribe=topic, startingOffsets="earliest", failOnRecreatedTopic="false")
    assert values(resumed, resumed.initialOffset(), planned) == []
    assert values(resumed, planned, resumed.latestOffset(planned, ALL)) == [b"new"] * 7


def test_a_start_behind_the_end_is_told_or_passed_over(stream, make_topic, produce):
    topic = make_topic()
    produce(topic, [b"x"] * 3)
    behind = json.dumps({topic: {"0": 8}})
    strict = stream(subscribe=topic, startingOffsets=behind)
    start = strict.initialOffset()
    with pytest.raises(DataLoss, match=r"was changed from 8 to 3: .* the offset to start from was too high"):
        strict.partitions(start, strict.latestOffset(start, ALL))
    lenient = stream(subscribe=topic, startingOffsets=behind, failOnDataLoss="false")
    end = lenient.latestOffset(start, ALL)
    assert values(lenient, start, end) == []
    produce(topic, [b"y"])
    assert values(lenient, end, lenient.latestOffset(end, ALL)) == [b"y"]


def test_rows_tell_the_id_of_their_topic_to_those_who_ask(stream, make_topic, produce):
    topic = make_topic()
    produce(topic, [b"x"])
    reader = stream(subscribe=topic, startingOffsets="earliest", columns="offset,topicId")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    (batch,) = reader.read(reader.partitions(start, end)[0])
    assert batch.to_pylist() == [{"offset": 0, "topicId": end[f"{topic}@id"]}]


def test_a_query_whose_only_topic_is_away_fails_or_waits_for_its_return(stream, make_topic, produce, admin):
    topic = make_topic(name="away")
    produce(topic, [b"old"] * 2)
    strict = stream(subscribe=topic, startingOffsets="earliest")
    lenient = stream(subscribe=topic, startingOffsets="earliest", failOnDataLoss="false")
    strict.initialOffset()
    end = lenient.latestOffset(lenient.initialOffset(), ALL)
    assert strict.latestOffset(end, ALL) == end
    admin.delete_topics([topic])[topic].result(30)
    with pytest.raises(DataLoss, match="The topic 'away' has been deleted"):
        strict.latestOffset(end, ALL)
    assert lenient.latestOffset(end, ALL) == end
    make_topic(name=topic)
    produce(topic, [b"new"] * 5)
    assert values(lenient, end, lenient.latestOffset(end, ALL)) == [b"new"] * 5


def test_a_topic_that_was_deleted_fails_the_query_or_is_left_out(stream, make_topic, produce, admin):
    gone, stays = make_topic(name="goes"), make_topic(name="stays")
    produce(gone, [b"x"])
    produce(stays, [b"y"])
    strict = stream(subscribe=f"{gone},{stays}", startingOffsets="earliest")
    lenient = stream(subscribe=f"{gone},{stays}", startingOffsets="earliest", failOnDataLoss="false")
    start = strict.initialOffset()
    admin.delete_topics([gone])[gone].result(30)
    end = strict.latestOffset(start, ALL)
    assert end[stays] == {"0": 1}
    with pytest.raises(DataLoss, match="goes-0 have been deleted"):
        strict.partitions(start, end)
    assert values(lenient, start, end) == [b"y"]


def test_what_is_done_is_committed_to_the_group(stream, make_topic, produce, admin):
    topic = make_topic(2)
    produce(topic, [b"x"] * 4)

    def committed():
        answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("lag-seen")])["lag-seen"]
        return {p.partition: p.offset for p in answer.result(30).topic_partitions}

    reader = stream(subscribe=topic, startingOffsets="earliest", group="lag-seen")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    assert committed() == {0: 0, 1: 0}
    reader.latestOffset(end, ALL)
    assert committed() == {0: 4, 1: 0}


def test_a_group_that_takes_no_offsets_is_told_of_once_and_not_at_every_look(
    stream, make_topic, produce, bootstrap, caplog
):
    topic = make_topic()
    produce(topic, [b"x"])
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "taken", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    assert consumer.poll(30) is not None  # it has joined
    try:
        reader = stream(subscribe=topic, startingOffsets="earliest", group="taken")
        start = reader.initialOffset()
        for _ in range(5):
            reader.latestOffset(start, ALL)
    finally:
        consumer.close()
    told = [record.getMessage() for record in caplog.records if "'taken'" in record.getMessage()]
    assert len(told) == 1
    assert "give the query a group that nobody else uses" in told[0]
