"""Clients that read slowly over TLS: large replies wait in the log, not in memory, and others are served meanwhile."""

import socket
import ssl

import pytest
from confluent_kafka import Producer

from headrace.link.blocking import Connection
from headrace.link.settings import KafkaSettings
from headrace.testing.broker import BrokerThread
from headrace.wire.frames import encode_request
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.metadata import MetadataRequest
from tests.certificates import Certificates
from tests.waiting import until

RECORDS, SIZE = 40, 500_000


@pytest.fixture
def certificates(tmp_path):
    return Certificates(tmp_path / "certificates")


@pytest.fixture
def broker(certificates, tmp_path):
    with BrokerThread(tmp_path / "data", certificates.listener(log_segment_bytes=50_000_000)) as running:
        yield running


def settings(broker, certificates):
    options = {
        "bootstrap.servers": f"localhost:{broker.port}",
        "security.protocol": "SSL",
        "ssl.truststore.location": str(certificates.ca),
    }
    return KafkaSettings.of(options, "a test")


def waiting_bytes(broker):
    async def found(node):
        return sum(each.transport.get_write_buffer_size() for each in node.acceptors.connections)

    return broker.run(found)


def test_a_slow_reader_costs_no_memory_and_gets_everything(broker, certificates):
    producer = Producer(
        {
            "bootstrap.servers": f"localhost:{broker.port}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(certificates.ca),
        }
    )
    for n in range(RECORDS):
        producer.produce("slow", bytes([n]) * SIZE, partition=0)
    assert producer.flush(60) == 0
    with Connection("localhost", broker.port, settings(broker, certificates)) as quick:
        topic = quick.call(MetadataRequest()).topics[0]
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 30,
            topics=[FetchTopic("slow", topic.topic_id, [FetchPartition(0, -1, 0, -1, -1, 1 << 30)])],
        )
        frame = encode_request(request, 12, 1, b"slow")
        context = ssl.create_default_context(cafile=certificates.ca)
        with socket.socket() as plain:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
            plain.connect(("localhost", broker.port))
            with context.wrap_socket(plain, server_hostname="localhost") as slow:
                slow.sendall(frame)
                until(lambda: waiting_bytes(broker) > 0)
                for _ in range(20):
                    assert quick.call(MetadataRequest()).topics
                    assert waiting_bytes(broker) < 1_000_000
                size = int.from_bytes(exactly(slow, 4), "big")
                assert size > RECORDS * SIZE
                reply = exactly(slow, size)
        for n in range(RECORDS):
            assert bytes([n]) * SIZE in reply


def exactly(connection, size):
    found = bytearray()
    while len(found) < size:
        data = connection.recv(min(65536, size - len(found)))
        assert data
        found += data
    return bytes(found)


def test_a_reader_that_leaves_in_the_middle_of_a_reply_leaves_nothing_behind(broker, certificates):
    producer = Producer(
        {
            "bootstrap.servers": f"localhost:{broker.port}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(certificates.ca),
        }
    )
    for _ in range(RECORDS):
        producer.produce("left", bytes(SIZE), partition=0)
    assert producer.flush(60) == 0
    del producer
    until(lambda: not broker.node.acceptors.connections)
    context = ssl.create_default_context(cafile=certificates.ca)
    for goodbye in (True, False):
        plain = socket.create_connection(("localhost", broker.port))
        slow = context.wrap_socket(plain, server_hostname="localhost")
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 30,
            topics=[FetchTopic("left", partitions=[FetchPartition(0, -1, 0, -1, -1, 1 << 30)])],
        )
        slow.sendall(encode_request(request, 12, 1, b"slow"))
        assert slow.recv(1000)
        if goodbye:
            slow.settimeout(0)
            with pytest.raises((ssl.SSLError, OSError)):
                slow.unwrap()
        slow.close()
        until(lambda: not broker.node.acceptors.connections)
