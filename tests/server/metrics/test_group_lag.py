"""A broker and the client's lag monitor say the same of a group, because docs/lag.md defines it once."""

import time

import pytest
from confluent_kafka import Producer

from headrace.client import Admin, LagMonitor, TopicPartition
from headrace.testing import cluster as testing
from headrace.testing.broker import BrokerThread
from tests.server.metrics.scraping import METRICS, Samples
from tests.waiting import until


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with BrokerThread(tmp_path_factory.mktemp("broker"), METRICS) as running:
        yield running


@pytest.fixture(scope="module")
def admin(broker):
    with Admin(broker.bootstrap) as admin:
        yield admin


def produce(bootstrap, topic, ages, partition=0, **settings):
    """Records written so many seconds ago, in one batch if the producer can."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, **settings})
    if "transactional.id" in settings:
        producer.init_transactions(60)
        producer.begin_transaction()
    now = int(time.time() * 1000)
    for age in ages:
        producer.produce(topic, b"x" * 20, partition=partition, timestamp=now - int(age * 1000))
    assert producer.flush(60) == 0
    return producer


def group_of(topic):
    """A group of its own for each topic: nobody has to look at what other tests have left unread."""
    return f"readers-of-{topic}"


def by_the_broker(broker, topic):
    """(records, seconds) of partition 0."""
    found = Samples(broker, "/metrics?partitions=all")
    where = {"consumergroup": group_of(topic), "topic": topic, "partition": "0"}
    return found.one("kafka_consumergroup_lag", **where), found.one(
        "kafka_consumergroup_lag_seconds", **where
    )


def by_the_client(broker, topic):
    with LagMonitor(broker.bootstrap) as monitor:
        [lag] = [
            each for each in monitor.measure(group_of(topic)).partitions if each.partition.topic == topic
        ]
    return lag.records, lag.seconds


def agree(broker, topic):
    records, seconds = by_the_broker(broker, topic)
    expected_records, expected_seconds = by_the_client(broker, topic)
    assert records == expected_records
    if expected_seconds is None:
        assert seconds is None
    else:
        assert seconds == pytest.approx(expected_seconds, abs=30)
    return records, seconds


@pytest.mark.parametrize("compression", ["none", "gzip", "lz4"])
def test_in_the_middle_of_a_batch_of_records_of_different_ages(broker, admin, compression):
    topic = broker.create_topic()
    produce(broker.bootstrap, topic, [900, 700, 500, 300, 100], **{"compression.type": compression})
    admin.set_group_offsets(group_of(topic), {TopicPartition(topic, 0): 2})
    records, seconds = agree(broker, topic)
    assert (records, round(seconds, -2)) == (3, 500)


def test_nothing_unread_is_no_lag(broker, admin):
    topic = broker.create_topic()
    produce(broker.bootstrap, topic, [900])
    admin.set_group_offsets(group_of(topic), {TopicPartition(topic, 0): 1})
    assert agree(broker, topic) == (0, 0)


def test_a_commit_beyond_the_end_is_no_negative_lag(broker, admin):
    topic = broker.create_topic()
    admin.set_group_offsets(group_of(topic), {TopicPartition(topic, 0): 50})
    assert agree(broker, topic) == (0, 0)


def test_records_deleted_before_they_were_read(broker, admin):
    topic = broker.create_topic()
    produce(broker.bootstrap, topic, [900, 800, 300, 200])
    place = TopicPartition(topic, 0)
    admin.set_group_offsets(group_of(topic), {place: 0})
    admin.delete_records({place: 2})
    records, seconds = agree(broker, topic)
    assert (records, round(seconds, -2)) == (2, 300)
    found = Samples(broker)
    assert found.one("headrace_consumergroup_lost_records", consumergroup=group_of(topic), topic=topic) == 2


def test_a_timestamp_in_the_future_counts_as_now(broker, admin):
    topic = broker.create_topic()
    produce(broker.bootstrap, topic, [-1800])
    admin.set_group_offsets(group_of(topic), {TopicPartition(topic, 0): 0})
    assert agree(broker, topic) == (1, 0)


def test_log_append_time_counts_from_the_arrival(broker, admin):
    topic = broker.create_topic(config={"message.timestamp.type": "LogAppendTime"})
    produce(broker.bootstrap, topic, [900])
    admin.set_group_offsets(group_of(topic), {TopicPartition(topic, 0): 0})
    assert agree(broker, topic)[1] < 300


def test_behind_an_aborted_transaction_the_next_record_counts(broker, admin):
    topic = broker.create_topic()
    producer = produce(broker.bootstrap, topic, [900, 900], **{"transactional.id": "aborts"})
    producer.abort_transaction(60)
    produce(broker.bootstrap, topic, [500])
    admin.set_group_offsets(group_of(topic), {TopicPartition(topic, 0): 0})
    records, seconds = agree(broker, topic)
    assert (records, round(seconds, -2)) == (4, 500)


def test_in_an_open_transaction_nobody_knows(broker, admin):
    topic = broker.create_topic()
    producer = produce(broker.bootstrap, topic, [900], **{"transactional.id": "stays-open"})
    admin.set_group_offsets(group_of(topic), {TopicPartition(topic, 0): 0})
    assert agree(broker, topic) == (1, None)
    producer.commit_transaction(60)
    until(lambda: by_the_broker(broker, topic)[1] is not None)
    assert round(agree(broker, topic)[1], -2) == 900


def test_what_another_broker_leads_is_known_from_the_second_scrape_on(tmp_path):
    offsets = {"offsets.topic.num.partitions": 1, "offsets.topic.replication.factor": 1}
    with testing.threads(tmp_path, 2, {**METRICS, **offsets}) as cluster:
        # One replica each: whoever coordinates the group holds only one of the two.
        topic = cluster.create_topic(partitions=2, replication_factor=1)
        for partition in range(2):
            produce(cluster.bootstrap, topic, [600, 500, 400], partition)
        with Admin(cluster.bootstrap) as admin:
            admin.set_group_offsets(group_of(topic), {TopicPartition(topic, each): 1 for each in range(2)})

        def lags():
            rows = {}
            for broker in cluster:
                found = Samples(broker, "/metrics?partitions=all")
                for partition in ("0", "1"):
                    where = {"consumergroup": group_of(topic), "topic": topic, "partition": partition}
                    seconds = found.one("kafka_consumergroup_lag_seconds", **where)
                    if seconds is not None:
                        rows[partition] = found.one("kafka_consumergroup_lag", **where), round(seconds, -2)
            return rows

        until(lambda: lags() == {"0": (2, 500), "1": (2, 500)})
        # Each partition is reported by its leader, the number of partitions by the controller.
        every = [Samples(broker) for broker in cluster]
        assert sum(sum(each.of("kafka_topic_partition_current_offset", topic=topic)) for each in every) == 6
        assert [each.one("kafka_topic_partitions", topic=topic) for each in every].count(2) == 1
