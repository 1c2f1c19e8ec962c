"""Consumers as users have them, for the tests that kill them: nothing in here knows of diverts but `drain`.

Run as `python handler.py transactional BOOTSTRAP TOPIC GROUP RESULTS NAME PROTOCOL`: each record's value goes to the topic RESULTS,
together with the offset, in one transaction. Or as `python handler.py drain BOOTSTRAP TOPIC GROUP RESULTS NAME RATE`: the backlog
of GROUP goes to RESULTS, each record as "value@partition:offset", and the program ends with the backlog.
"""

from __future__ import annotations

import signal
import sys

import confluent_kafka

from headrace.backlog import drain
from headrace.client import Producer, Record

kind, bootstrap, topic, group, results, name, option = sys.argv[1:]


def transactional() -> None:
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    session = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500} if option == "classic" else {}
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": option,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            **session,
        }
    )
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(90)
    consumer.subscribe([topic])
    while not stopped:
        records = [each for each in consumer.consume(20, timeout=0.2) if each.error() is None]
        if not records:
            continue
        try:
            producer.begin_transaction()
            for record in records:
                producer.produce(results, record.value())
            ends = {
                (each.topic(), each.partition()): confluent_kafka.TopicPartition(
                    each.topic(), each.partition(), each.offset() + 1
                )
                for each in records
            }
            producer.send_offsets_to_transaction(list(ends.values()), consumer.consumer_group_metadata(), 30)
            producer.commit_transaction(30)
        except confluent_kafka.KafkaException:
            # A rebalance or an outage: whoever starts this program again goes on at the last commit.
            sys.exit(1)
    consumer.close()


def draining() -> None:
    with Producer[bytes, bytes](bootstrap) as producer:

        def handle(record: Record) -> None:
            place = f"{record.raw_value!r}@{record.partition}:{record.offset}"
            producer.send_and_wait(results, place.encode())

        drain(
            handle,
            bootstrap,
            group=group,
            topic=topic,
            rate=float(option) or None,
            order="partition",
            commit_interval=0.1,
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
        )


if kind == "transactional":
    transactional()
else:
    draining()
