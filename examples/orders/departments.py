"""Who hears of an order: three groups that each get every order, and each take their own time."""

import threading
import time
from collections import Counter
from collections.abc import Callable

from headrace.client import Producer, Record, Retry, Runner, serializers
from headrace.client.errors import TryLater

ALERTS = "risk.alerts"


class Department:
    """One group of the topic, in a thread of its own."""

    def __init__(self, name: str, bootstrap: str, handle: Callable[[Record], None], concurrency: int) -> None:
        self.name = name
        self.done = 0
        self.finished_at = 0.0
        self._handle_one = handle
        self._runner = Runner(
            self._handle,
            bootstrap,
            topics="orders",
            group_id=name,
            concurrency=concurrency,
            retry=Retry(delay=0.05),
            value_deserializer=serializers.json(),
            auto_offset_reset="earliest",
        )
        self._count = threading.Lock()
        self._thread = threading.Thread(target=self._runner.run, name=name)
        self._thread.start()

    def _handle(self, record: Record) -> None:
        self._handle_one(record)
        with self._count:
            self.done += 1
            self.finished_at = time.monotonic()

    def close(self) -> None:
        self._runner.stop()
        self._thread.join()


def risk(bootstrap: str) -> tuple[Callable[[Record], None], Producer]:
    """At once: large orders become alerts."""
    producer = Producer(bootstrap, value_serializer=serializers.json())

    def check(record: Record) -> None:
        if record.value["amount"] > 900:
            producer.send(ALERTS, record.value, key=record.value["customer"]).result()

    return check, producer


def customer_service(sent: Counter[str]) -> Callable[[Record], None]:
    """Slow, and sometimes the text message service is away: the record waits, others of other customers go on."""
    refused: set[int] = set()

    def text_message(record: Record) -> None:
        if record.value["id"] % 50 == 0 and record.value["id"] not in refused:
            refused.add(record.value["id"])
            raise TryLater("the text message service is away")
        time.sleep(0.01)
        sent[record.value["customer"]] += 1

    return text_message


def analytics(revenue: Counter[str]) -> Callable[[Record], None]:
    def add(record: Record) -> None:
        revenue["total"] += record.value["amount"]

    return add
