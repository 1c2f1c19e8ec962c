"""steady.py BOOTSTRAP TOPIC COUNT: librdkafka sends numbered records, one every 5 ms, and reads them beside that.

Whatever happens to the brokers meanwhile, every one must be acknowledged, and arrive once and in order. It prints each number as it is
acknowledged.
"""

import sys
import threading
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition


def expect(bootstrap: str, topic: str, count: int, wrong: list[str]) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    expected, deadline = 0, time.monotonic() + 120
    while expected < count and not wrong:
        if time.monotonic() > deadline:
            wrong.append(f"{expected} of {count} records arrived in time")
        for message in consumer.consume(100, 0.5):
            if message.error() is None:
                if message.value() != str(expected).encode():
                    wrong.append(
                        f"at offset {message.offset()} came {message.value()!r} where {expected} was due"
                    )
                expected += 1
    consumer.close()


def main(bootstrap: str, topic: str, count: int) -> int:
    wrong: list[str] = []
    reader = threading.Thread(target=expect, args=(bootstrap, topic, count, wrong))
    reader.start()
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "request.timeout.ms": 5000,
            "socket.timeout.ms": 5000,
            "log_level": 0,
        }
    )

    def told(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            wrong.append(str(error))
        else:
            print((message.value() or b"").decode(), flush=True)

    for number in range(count):
        producer.produce(topic, str(number), partition=0, on_delivery=told)
        producer.poll(0.005)
    producer.flush(100)
    reader.join()
    for sentence in wrong:
        print(sentence)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
