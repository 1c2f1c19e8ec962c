"""A consumer that dies: the programs behind the tables of the delivery choices in docs/delivery.md.

Run as `python delivery_reader.py CHOICE MOMENT BOOTSTRAP TOPIC GROUP FOLDER`. It handles records, each
effect a line in FOLDER/effects, and kills itself at MOMENT of the record "1", the first time. It ends after
the record "2".
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from headrace.client import Consumer, Producer, Runner
from headrace.client.record import Record

choice, moment, bootstrap, topic, group, given_folder = sys.argv[1:]
folder = Path(given_folder)
SETTINGS = {
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 100,
    "session_timeout_ms": 6000,
    "group_instance_id": "the-same-member",
}


def die_at(now: str, record: Record) -> None:
    mark = folder / "died"
    if record.value == b"1" and now == moment and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def effect(record: Record) -> None:
    with (folder / "effects").open("a") as file:
        file.write(f"{record.raw_value!r}\n")
        file.flush()
        os.fsync(file.fileno())


def poll_loop() -> None:
    with Consumer(bootstrap, group_id=group, delivery=choice, max_poll_records=1, **SETTINGS) as consumer:
        consumer.subscribe(topic)
        for record in consumer:
            die_at("before the effect", record)
            effect(record)
            die_at("after the effect", record)
            if record.value == b"2":
                return


def with_runner() -> None:
    def handle(record: Record) -> None:
        die_at("before the effect", record)
        effect(record)
        die_at("after the effect", record)
        if record.value == b"2":
            runner.stop()

    runner = Runner(handle, bootstrap, topics=topic, group_id=group, order="partition", **SETTINGS)
    runner.run()


def in_transactions() -> None:
    """The effect is a record in TOPIC.out, committed together with the offset."""
    with (
        Producer(bootstrap, delivery="exactly_once", transactional_id=f"{group}-producer") as producer,
        Consumer(
            bootstrap, group_id=group, delivery="exactly_once", max_poll_records=1, **SETTINGS
        ) as consumer,
    ):
        consumer.subscribe(topic)
        for record in consumer:
            with producer.transaction(consumer):
                die_at("before the effect", record)
                producer.send_and_wait(f"{topic}.out", record.raw_value)
                die_at("after the effect", record)
            if record.value == b"2":
                return


if choice == "exactly_once":
    in_transactions()
elif choice == "Runner":
    with_runner()
else:
    poll_loop()
