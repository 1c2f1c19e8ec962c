"""The shop behind the topic: takes requests at its own pace, sells what there is once, and says what came of each."""

import threading
import time
from pathlib import Path

import sqlalchemy as sa

from headrace.client import Producer, Record, Runner, serializers
from headrace.client.once import SqlOnce, from_header

REQUESTS, RESULTS = "sale.requests", "sale.results"
WORK = 0.001
"""Seconds that the shop takes for one request: looking at the buyer, the price, the address."""


class Shop:
    def __init__(self, bootstrap: str, database: Path, item: str, stock: int, deadline: float) -> None:
        self._engine = sa.create_engine(f"sqlite:///{database}")
        tables = sa.MetaData()
        self.stock = sa.Table(
            "stock", tables, sa.Column("item", sa.String, primary_key=True), sa.Column("pieces", sa.Integer)
        )
        self.sales = sa.Table("sales", tables, sa.Column("buyer", sa.Integer), sa.Column("item", sa.String))
        tables.create_all(self._engine)
        with self._engine.begin() as connection:
            connection.execute(self.stock.insert().values(item=item, pieces=stock))
        self._deadline = deadline
        self._producer = Producer(bootstrap, value_serializer=serializers.json())
        self._sold_out: set[str] = set()
        # The id travels in a header that the gateway made of Idempotency-Key: a second click is the same request.
        self._sell = SqlOnce("sale", self._engine, id=from_header())(self._sell_one)
        self._runner = Runner(
            self._handle,
            bootstrap,
            topics=REQUESTS,
            group_id="shop",
            concurrency=1,
            value_deserializer=serializers.json(),
            auto_offset_reset="earliest",
        )
        self._thread = threading.Thread(target=self._runner.run, name="shop")

    def open(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._runner.stop()
        self._thread.join()
        self._producer.close()

    def sold(self) -> list[int]:
        """The buyers of all pieces sold."""
        with self._engine.connect() as connection:
            return list(connection.execute(sa.select(self.sales.c.buyer)).scalars())

    def _handle(self, record: Record) -> None:
        if time.time() - record.timestamp / 1000 > self._deadline:
            outcome = "too late"  # Whoever asked has gone; the others should not wait for them.
        else:
            time.sleep(WORK)
            gone = record.value["item"] in self._sold_out
            outcome = "sold out" if gone else self._sell(record) or "the same request again"
        self._producer.send_and_forget(
            RESULTS, {**record.value, "outcome": outcome}, key=str(record.value["buyer"])
        )

    def _sell_one(self, record: Record, connection: sa.Connection) -> str:
        buyer, item = record.value["buyer"], record.value["item"]
        there = sa.and_(self.stock.c.item == item, self.stock.c.pieces > 0)
        taken = connection.execute(self.stock.update().where(there).values(pieces=self.stock.c.pieces - 1))
        if taken.rowcount == 0:
            self._sold_out.add(item)
            return "sold out"
        connection.execute(self.sales.insert().values(buyer=buyer, item=item))
        return "sold"
