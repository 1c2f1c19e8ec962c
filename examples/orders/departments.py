"""Who hears of an order: three groups that each get every order, and each take their own time.

A record can come twice: a relay that crashes sends again, a group that rebalances reads again. Each department
handles an order once all the same, in the way that suits what it does.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from examples.orders.shop import ORDERS, patient_engine
from headrace.client import Producer, Record, Retry, Runner, serializers
from headrace.client.errors import TryLater
from headrace.client.once import Once, SqlOnce, SqlStore, from_header

ALERTS = "risk.alerts"


class Department:
    """One group of the topic, in a thread of its own."""

    def __init__(
        self, name: str, bootstrap: str, handle: Callable[[Record], object], concurrency: int
    ) -> None:
        self.name = name
        self.handled: set[tuple[int, int]] = set()
        """Where the records lie that were handled, or recognised as handled before."""
        self.finished_at = 0.0
        self._handle_one = handle
        self._runner = Runner(
            self._handle,
            bootstrap,
            topics=ORDERS,
            group_id=name,
            concurrency=concurrency,
            retry=Retry(delay=0.05),
            value_deserializer=serializers.json(),
            auto_offset_reset="earliest",
        )
        self._thread = threading.Thread(target=self._runner.run, name=name)
        self._thread.start()

    def _handle(self, record: Record) -> None:
        self._handle_one(record)
        self.handled.add((record.partition, record.offset))
        self.finished_at = time.monotonic()

    def close(self) -> None:
        self._runner.stop()
        self._thread.join()


def risk(bootstrap: str, database: Path) -> tuple[Callable[[Record], object], Producer]:
    """At once: large orders become alerts."""
    producer = Producer(bootstrap, value_serializer=serializers.json())

    @Once("risk", SqlStore(patient_engine(database)))
    def alert(record: Record) -> None:
        producer.send(ALERTS, record.value, key=record.value["customer"]).result()

    def check(record: Record) -> None:
        if record.value["amount"] > 900:
            alert(record)

    return check, producer


def customer_service(sent: list[int], database: Path) -> Callable[[Record], object]:
    """Slow, and sometimes the text message service is away: the record waits, others of other customers go on.

    A text message cannot be part of a transaction: its id is claimed before and marked as done after.
    """
    refused: set[int] = set()

    @Once("service", SqlStore(patient_engine(database)))
    def text_message(record: Record) -> None:
        if record.value["id"] % 50 == 0 and record.value["id"] not in refused:
            refused.add(record.value["id"])
            raise TryLater("the text message service is away")
        time.sleep(0.01)
        sent.append(record.value["id"])

    return text_message


class Analytics:
    """The revenue, in the same database transaction as the id of the order it came from."""

    def __init__(self, database: Path) -> None:
        self._engine = patient_engine(database)
        tables = sa.MetaData()
        self._revenue = sa.Table("revenue", tables, sa.Column("total", sa.Integer))
        tables.create_all(self._engine)
        with self._engine.begin() as connection:
            connection.execute(self._revenue.insert().values(total=0))
        self.add = SqlOnce("analytics", self._engine, id=from_header())(self._add)

    def _add(self, record: Record, connection: sa.Connection) -> None:
        connection.execute(
            self._revenue.update().values(total=self._revenue.c.total + record.value["amount"])
        )

    def total(self) -> int:
        with self._engine.connect() as connection:
            return connection.execute(sa.select(self._revenue.c.total)).scalar_one()
