"""Reading from a cluster whose leaders move, and from the replica next to the reader."""

from contextlib import closing

import confluent_kafka
import pyarrow as pa
import pytest

from headrace.link.cluster import Cluster, shared_cluster
from headrace.spark.batch import BatchReader
from headrace.spark.options import ReadOptions
from headrace.spark.read import DataLoss
from headrace.spark.settings import kafka_settings
from headrace.spark.sink_options import WriteOptions
from headrace.spark.sink_producer import SinkProducer
from headrace.spark.sink_rows import RowWriter
from headrace.spark.sink_transactions import SinkTransactions
from headrace.spark.source import HeadraceSource
from headrace.testing import cluster as testing
from headrace.wire.errors import KafkaError


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    settings = {
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "6",
    }
    with testing.threads(tmp_path_factory.mktemp("cluster"), 3, settings, racks=("a", "b", "c")) as running:
        yield running


def filled(brokers):
    topic = brokers.create_topic()
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": brokers.bootstrap, "acks": "all", "log_level": 0}
    )
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


def test_a_list_of_open_transactions_that_would_not_be_whole_is_none(brokers):
    kafka = kafka_settings({"kafka.bootstrap.servers": brokers.bootstrap})
    options = WriteOptions(kafka, ("value",), brokers.create_topic())
    with closing(Cluster(kafka)) as cluster:
        transactions = SinkTransactions(cluster)
        begun = [transactions.begin(f"task-{number}", 60_000) for number in range(12)]
        for identity in begun:
            producer = SinkProducer(cluster, options, identity, transactions)
            RowWriter(cluster, options, producer).write([pa.record_batch([pa.array([b"row"])], ["value"])])
        ids = {identity.transactional_id for identity in begun}
        assert set(transactions.open_ids("task-")) == ids
        brokers[2].stop()
        try:
            with pytest.raises(KafkaError, match="has no leader at the moment"):
                transactions.open_ids("task-", patience=1)
        finally:
            brokers[2].start()
        assert set(transactions.open_ids("task-")) == ids
        transactions.end(begun, commit=False)
        assert transactions.open_ids("task-") == []
