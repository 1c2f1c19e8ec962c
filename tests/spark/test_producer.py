"""The sink's producer when connections break: what it was given is written, once and in order."""

import socket

import pyarrow as pa
import pytest

from headrace.link.cluster import Cluster
from headrace.spark.fetch import Fetcher, FetchSettings
from headrace.spark.offsets import TopicPartition
from headrace.spark.settings import kafka_settings
from headrace.spark.sink_options import WriteOptions
from headrace.spark.sink_producer import SinkProducer
from headrace.spark.sink_rows import RowWriter
from headrace.wire.records import decode_records


@pytest.fixture
def cluster(bootstrap):
    made = Cluster(kafka_settings({"kafka.bootstrap.servers": bootstrap}))
    yield made
    made.close()


def values(cluster, topic, end):
    blocks = Fetcher(cluster, TopicPartition(topic, 0), 0, end, FetchSettings(1024 * 1024)).blocks()
    return [
        record.value
        for block in blocks
        for position, header in block.batches
        for record in decode_records(block.data[position : position + header.size], header)
    ]


def test_a_connection_lost_with_all_its_requests_on_their_way_costs_nothing(cluster, make_topic):
    topic = make_topic()
    options = WriteOptions(cluster.settings, ("value",), topic, in_flight=2)
    producer = SinkProducer(cluster, options)
    writer = RowWriter(cluster, options, producer)

    def send(value):
        writer._send(pa.record_batch([pa.array([value])], ["value"]))

    send(b"a")
    send(b"b")
    for connection in producer._on_the_way:
        connection._socket.shutdown(socket.SHUT_RDWR)
    send(b"c")
    producer.flush()
    assert values(cluster, topic, 3) == [b"a", b"b", b"c"]
