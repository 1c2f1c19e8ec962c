"""A consume-transform-produce chain that kills itself at a step of its third transaction.

Run as `python chain.py BOOTSTRAP FROM TO GROUP COUNT STEP`; with the step "none" it ends when all COUNT records are copied.
"""

import os
import signal
import sys
import threading

from confluent_kafka import Consumer, Producer

bootstrap, source, target, group, count, step = sys.argv[1:]
rounds = 0


def reached(name: str) -> None:
    if name == step and rounds == 3:
        os.kill(os.getpid(), signal.SIGKILL)


def die_soon() -> None:
    """While the commit is under way, or on a busy machine just after it."""
    if step == "committing" and rounds == 3:
        threading.Timer(0.001, os.kill, [os.getpid(), signal.SIGKILL]).start()


producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": group, "log_level": 0})
producer.init_transactions(60)
consumer = Consumer(
    {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.instance.id": "chain",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "session.timeout.ms": 6000,
        "log_level": 0,
    }
)
consumer.subscribe([source])
while True:
    records = [record for record in consumer.consume(7, 0.5) if record.error() is None]
    if not records:
        continue
    rounds += 1
    reached("consumed")
    producer.begin_transaction()
    reached("begun")
    for record in records:
        producer.produce(target, record.value())
    reached("produced")
    producer.flush(60)
    reached("flushed")
    producer.send_offsets_to_transaction(
        consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 60
    )
    reached("offsets sent")
    die_soon()
    producer.commit_transaction(60)
    reached("committed")
    if records[-1].offset() == int(count) - 1:
        break
consumer.close()
