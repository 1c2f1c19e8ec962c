"""What acks=0 means: there is no reply, so records are lost or reordered without an error. These tests show it."""

import os
import signal

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing.process import BrokerProcess
from headrace.testing.wire import WireClient, batch, frame
from headrace.wire.batch import iterate_batches
from headrace.wire.records import decode_records
from tests.server.requests import fetch_request, produce_request


def values(bootstrap, topic, least=0):
    """What the topic holds, once it holds so many records."""
    found = []
    with WireClient(bootstrap) as client:
        while True:
            request = fetch_request(topic, offset=len(found), max_wait_ms=100)
            data = memoryview(client.call(request, 11).responses[0].partitions[0].records or b"")
            for position, header in iterate_batches(data):
                records = decode_records(data[position : position + header.size], header)
                found += [bytes(record.value) for record in records]
            if len(found) >= least:
                return found


@pytest.mark.parametrize("acks", [0, 1])
def test_a_broker_dies_before_it_reads_what_was_sent(tmp_path, acks):
    """With acks=0 every record counts as sent and is gone; with acks=1 the producer knows, and sends them again."""
    broker = BrokerProcess(tmp_path / "broker").start()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic("orders", 1)])["orders"].result(30)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": acks, "log_level": 0})
    outcomes = []

    def send(value):
        producer.produce("orders", value, on_delivery=lambda error, _: outcomes.append(error))

    send(b"before")
    assert producer.flush(30) == 0
    assert values(broker.bootstrap, "orders", least=1) == [b"before"]
    os.kill(broker.process.pid, signal.SIGSTOP)
    sent = [b"%d" % number for number in range(50)]
    for value in sent:
        send(value)
    unanswered = producer.flush(30 if acks == 0 else 1)
    broker.kill()
    assert (outcomes[1:], unanswered) == (([None] * 50, 0) if acks == 0 else ([], 50))
    broker.start()
    assert producer.flush(60) == 0
    found = values(broker.bootstrap, "orders", least=1 if acks == 0 else 51)
    assert set(found) == ({b"before"} if acks == 0 else {b"before", *sent})
    broker.stop()


def test_two_connections_bring_records_in_another_order(bootstrap, topic):
    """A producer whose connection stalls goes on over a new one: without an answer it cannot wait for the first."""

    def request(value):
        return produce_request(topic, batch(value), acks=0)

    first = frame(request(b"first"), 9)
    with WireClient(bootstrap) as stalled, WireClient(bootstrap) as other:
        stalled.socket.sendall(first[:-10])
        other.send(request(b"second"), 9)
        assert values(bootstrap, topic, least=1) == [b"second"]
        stalled.socket.sendall(first[-10:])
        assert values(bootstrap, topic, least=2) == [b"second", b"first"]
