"""Real clients beyond their quotas: they see the throttle time, and get all their records through in the end."""

import threading

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaProducer

from tests.server.api.quota_client import set_quota
from tests.waiting import until

RECORD = bytes(20_000)
RATE = 1000
"""A single record is more than a client may send or fetch at once, so the first one is throttled however slow the machine is."""


@pytest.fixture
def hurry():
    """Moves a broker's time along until the test ends, so that nobody waits for long."""
    over, moving = threading.Event(), []

    def move(broker):
        while not over.wait(0.05):
            broker.clock.advance(0.5)

    def start(broker):
        moving.append(threading.Thread(target=move, args=(broker,)))
        moving[-1].start()

    yield start
    over.set()
    for thread in moving:
        thread.join()


def test_librdkafkas_producer_is_told_that_it_is_throttled(make_broker, hurry):
    broker = make_broker()
    topic = broker.create_topic(config={"retention.ms": -1})
    set_quota(broker.bootstrap, [("client-id", "loader")], producer_byte_rate=RATE)
    throttled, delivered = [], []
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "client.id": "loader",
            "compression.type": "none",
            "linger.ms": 0,
            "throttle_cb": throttled.append,
        }
    )
    for _ in range(6):
        producer.produce(topic, RECORD, on_delivery=lambda error, _: delivered.append(error))
    until(lambda: producer.poll(0.1) is not None and throttled)
    hurry(broker)
    assert producer.flush(90) == 0
    assert delivered == [None] * 6
    assert throttled[0].throttle_time >= 10


def test_librdkafkas_consumer_gets_every_record_in_spite_of_empty_replies(make_broker, hurry):
    broker = make_broker()
    topic = broker.create_topic(config={"retention.ms": -1})
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "batch.num.messages": 1})
    for number in range(6):
        producer.produce(topic, b"%d " % number + RECORD)
    assert producer.flush(60) == 0
    set_quota(broker.bootstrap, [("client-id", "reader")], consumer_byte_rate=RATE)
    throttled = []
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "client.id": "reader",
            "group.id": "readers",
            "throttle_cb": throttled.append,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while len(found) < 6:
        message = consumer.poll(90)
        if not found:
            hurry(broker)
        assert message is not None
        assert message.error() is None
        found.append(int(message.value().split()[0]))
    consumer.close()
    assert found == list(range(6))
    assert throttled[0].throttle_time >= 10


def test_kafka_pythons_producer_measures_how_long_it_is_throttled(make_broker, hurry):
    broker = make_broker()
    topic = broker.create_topic(config={"retention.ms": -1})
    set_quota(broker.bootstrap, [("client-id", "loader")], producer_byte_rate=RATE)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, client_id="loader", acks="all")
    assert producer.send(topic, RECORD).get(60).offset == 0
    hurry(broker)
    assert producer.send(topic, RECORD).get(60).offset == 1
    measured = producer.metrics()["producer-metrics"]["throttle-time-max"]
    producer.close()
    assert measured >= 10_000
