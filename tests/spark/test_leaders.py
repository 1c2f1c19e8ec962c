"""Reading from a cluster whose leaders move, and from the replica next to the reader."""

import pytest
from confluent_kafka import Producer

from headrace.spark.batch import BatchReader
from headrace.spark.cluster import shared_cluster
from headrace.spark.options import ReadOptions
from headrace.spark.read import DataLoss
from headrace.spark.source import HeadraceSource
from headrace.testing import cluster as testing


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    selector = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    with testing.threads(tmp_path_factory.mktemp("cluster"), 3, selector, racks=("a", "b", "c")) as running:
        yield running


def filled(brokers):
    topic = brokers.create_topic()
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "acks": "all", "log_level": 0})
    for number in range(30):
        producer.produce(topic, b"%02d" % number * 500)
        assert producer.flush(30) == 0  # a batch of its own
    return topic, [b"%02d" % number * 500 for number in range(30)]


def reader(brokers, topic, **options):
    given = {"kafka.bootstrap.servers": brokers.bootstrap, "subscribe": topic, **options}
    return BatchReader(ReadOptions.of(given, streaming=False), HeadraceSource(given).schema())


def values(batches):
    return [value.as_py() for batch in batches for value in batch["value"]]


def test_a_read_goes_on_when_the_leader_stops(brokers):
    topic, sent = filled(brokers)
    reading = reader(brokers, topic, **{"kafka.max.partition.fetch.bytes": "1500"})
    (part,) = reading.partitions()
    leader = shared_cluster(reading._options.kafka).topic(topic).leaders[0]
    batches = reading.read(part)
    found = values([next(batches)])
    brokers[leader].stop()
    try:
        found += values(batches)
    finally:
        brokers[leader].start()
    assert found == sent


@pytest.mark.parametrize("rack", ["a", "b", "c"])
def test_a_reader_that_names_its_rack_reads_the_replica_there(brokers, rack):
    topic, sent = filled(brokers)
    small = {"kafka.client.rack": rack, "kafka.max.partition.fetch.bytes": "1500"}
    reading = reader(brokers, topic, **small)
    assert values(batch for part in reading.partitions() for batch in reading.read(part)) == sent


def test_a_topic_deleted_while_it_is_read_is_data_loss(brokers):
    from confluent_kafka.admin import AdminClient

    topic, sent = filled(brokers)
    small = {"kafka.max.partition.fetch.bytes": "1500"}
    strict, lenient = (reader(brokers, topic, **small, failOnDataLoss=word) for word in ("true", "false"))
    (part,) = strict.partitions()
    strictly, leniently = strict.read(part), lenient.read(part)
    next(strictly)
    begun = values([next(leniently)])
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap, "log_level": 0})
    admin.delete_topics([topic])[topic].result(30)
    with pytest.raises(DataLoss, match="the topic was deleted"):
        list(strictly)
    found = begun + values(leniently)
    assert found == sent[: len(found)]
