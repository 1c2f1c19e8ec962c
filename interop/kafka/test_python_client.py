"""Headrace's own Python client, which must work against Apache Kafka (--against kafka) as it does against Headrace."""

import threading
import time

from bench.systems.kafka_protocol import RunningKafka
from headrace.client import (
    Admin,
    Consumer,
    DeadLetterBox,
    Producer,
    Record,
    Reject,
    Retry,
    Runner,
    TopicPartition,
)


def test_the_runner_handles_every_record_and_puts_poison_aside(broker: RunningKafka) -> None:
    topic = "python-runner"
    broker.create(topic, 3)
    with Producer(broker.address) as producer:
        for number in range(300):
            producer.send_and_forget(topic, str(number).encode(), key=str(number % 20).encode())
    handled: list[int] = []
    lock = threading.Lock()
    tries: dict[int, int] = {}

    def handle(record: Record[bytes, bytes]) -> None:
        number = int(record.raw_value or b"")
        with lock:
            tries[number] = tries.get(number, 0) + 1
        if number == 13:
            raise Reject("thirteen is never handled")
        if number % 50 == 7 and tries[number] == 1:
            raise ValueError("not at the first time")
        with lock:
            handled.append(number)

    runner = Runner(
        handle,
        broker.address,
        topics=topic,
        group_id=topic,
        retry=Retry(attempts=3, delay=0.01),
        auto_offset_reset="earliest",
    )
    running = threading.Thread(target=runner.run)
    running.start()
    deadline = time.monotonic() + 60
    try:
        while len(handled) < 299:
            assert time.monotonic() < deadline, f"{len(handled)} of 299 were handled"
            assert running.is_alive()
            time.sleep(0.05)
    finally:
        runner.stop()
        running.join(60)
    assert sorted(handled) == [number for number in range(300) if number != 13]
    with Admin(broker.address) as admin:
        assert sum(admin.group_offsets(topic).values()) == 300
    with DeadLetterBox(f"{topic}.dlq", broker.address) as box:
        (letter,) = box.letters()
    assert "thirteen is never handled" in letter.reason


def test_records_and_offsets_are_one_transaction(broker: RunningKafka) -> None:
    source, target = "python-source", "python-target"
    broker.create(source)
    broker.create(target)
    with Producer(broker.address) as producer:
        for number in range(50):
            producer.send_and_forget(source, str(number).encode())
    failed = False
    with (
        Producer(broker.address, delivery="exactly_once", transactional_id=source) as sender,
        Consumer(
            broker.address,
            group_id=source,
            delivery="exactly_once",
            auto_offset_reset="earliest",
            max_poll_records=7,
        ) as consumer,
    ):
        consumer.subscribe(source)
        last = -1
        while last < 49:
            records = consumer.poll(1)
            try:
                with sender.transaction(consumer):
                    for record in records:
                        sender.send(target, record.raw_value)
                    if records and not failed:
                        failed = True
                        raise ZeroDivisionError
            except ZeroDivisionError:
                continue
            last = max([last, *(record.offset for record in records)])
    assert failed
    with Consumer(
        broker.address, group_id="python-check", delivery="exactly_once", auto_offset_reset="earliest"
    ) as reader:
        reader.subscribe(target)
        found: list[int] = []
        deadline = time.monotonic() + 60
        while len(found) < 50:
            assert time.monotonic() < deadline, f"{len(found)} of 50 came through"
            found += [int(record.raw_value or b"") for record in reader.poll(1)]
    assert found == list(range(50))
    with Admin(broker.address) as admin:
        assert admin.group_offsets(source) == {TopicPartition(source, 0): 50}
