"""librdkafka pushes its metrics by itself when somebody subscribes to them."""

from confluent_kafka import Consumer, Producer

from tests.server.telemetry.conftest import alter, known
from tests.waiting import until


def test_librdkafka_pushes_what_is_asked_for(make_broker):
    broker = make_broker()
    alter(
        broker.bootstrap,
        "producers",
        metrics="org.apache.kafka.producer.",
        interval_ms="100",
        match="client_software_name=confluent-kafka-.*|librdkafka",
    )
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "seller", "log_level": 0})
    producer.produce("orders", b"1")
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "client.id": "reader"})
    consumer.subscribe(["orders"])

    def pushed(client_id):
        found = [
            client
            for client in known(broker).values()
            if client.identity.client_id == client_id and client.push
        ]
        return found[0] if found else None

    until(lambda: producer.poll(0) or pushed("seller"), "a push of the producer")
    client = pushed("seller")
    names = {series.name for series in client.push.series}
    assert names, "something was pushed"
    assert all(name.startswith("org.apache.kafka.producer.") for name in names)
    assert client.identity.software_version
    consumer.close()
