"""`headrace top` needs nothing but Kafka's protocol: --against kafka runs this with Apache Kafka."""

import json
import os
import subprocess
import sys

from confluent_kafka import Consumer, Producer

from bench.systems.kafka_protocol import RunningKafka


def test_top_shows_brokers_topics_groups_and_members(broker: RunningKafka) -> None:
    broker.create("top", 2)
    producer = Producer({"bootstrap.servers": broker.address})
    reader = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "top-readers",
            "client.id": "top-reader",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200,
        }
    )
    reader.subscribe(["top"])
    while not reader.assignment():
        reader.poll(0.1)
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "top", "--json", "--interval", "0.5", "-b", broker.address],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HEADRACE_CONTEXT": ""},
    )
    assert process.stdout is not None
    try:
        while True:
            for _ in range(20):
                producer.produce("top", b"x" * 200)
            assert producer.flush(60) == 0
            reader.consume(20, 0.5)
            activity = json.loads(process.stdout.readline())
            (topic,) = [each for each in activity["topics"] if each["topic"] == "top"]
            if topic["records_in"] and topic["records_out"] and topic["bytes_in"]:
                break
    finally:
        process.kill()
        process.wait()
    assert (topic["partitions"], topic["offline"], topic["under_replicated"]) == (2, 0, 0)
    (group,) = [each for each in activity["groups"] if each["group"] == "top-readers"]
    assert group["members"] == 1
    (client,) = [each for each in activity["clients"] if each["client_id"] == "top-reader"]
    assert (client["groups"], client["partitions"]) == (["top-readers"], 2)
    assert [each["controller"] for each in activity["brokers"]] == [True]
    assert activity["problems"] == []
    reader.close()
