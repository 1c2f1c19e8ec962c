"""A sink of headrace.connectors tells a topic made again from the old one on Apache Kafka as on Headrace."""

import json
import time
from pathlib import Path

from pyspark.sql import SparkSession

from headrace.client import Admin, ClientError, Producer
from headrace.connectors.config import declare
from headrace.connectors.launch import start
from headrace.connectors.state import State

TOPIC = "made-again"


def create(address: str) -> None:
    """Kafka deletes a topic after it has said so."""
    with Admin(address) as admin:
        deadline = time.monotonic() + 60
        while True:
            try:
                admin.create_topic(TOPIC, partitions=1, replication_factor=1)
            except ClientError:
                assert time.monotonic() < deadline
                time.sleep(0.2)
            else:
                return


def produce(address: str, first: int, last: int) -> None:
    with Producer(address) as producer:
        for number in range(first, last):
            producer.send(TOPIC, b'{"id":%d}' % number)


def move(spark: SparkSession, address: str, home: Path) -> list[int]:
    """Run the sink over what is there; the ids its files have then."""
    document = {
        "topic": {"name": TOPIC, "bootstrap": address, "schema": "id BIGINT"},
        "sink": {"type": "files", "path": str(home / "out")},
    }
    state = State(home / "state", "sink")
    state.lock()
    running = start(declare(document, default_name="sink"), state, lambda: spark, once=True)
    while running.is_active():
        time.sleep(0.05)
    assert running.failure() is None
    running.stop()
    state.release()
    return sorted(json.loads(line)["id"] for path in (home / "out").iterdir() for line in path.open())


def test_a_topic_made_again_is_read_from_its_beginning(
    spark: SparkSession, address: str, tmp_path: Path
) -> None:
    create(address)
    produce(address, 0, 5)
    assert move(spark, address, tmp_path) == list(range(5))
    with Admin(address) as admin:
        admin.delete_topic(TOPIC)
    create(address)
    produce(address, 5, 25)  # more than the old one had: by offsets alone nobody could tell
    assert move(spark, address, tmp_path) == list(range(25))
