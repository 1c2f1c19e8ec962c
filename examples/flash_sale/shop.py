"""The shop behind the topic: takes requests at its own pace, sells what there is once, and says what came of each.

It also counts who wanted what, which is nice to know and takes longer than a sale: under load that can wait.
"""

import sqlite3
import threading
import time
from pathlib import Path

import sqlalchemy as sa

from headrace.client import LagBounds, Producer, Record, Runner, SwitchOff, serializers
from headrace.client.once import SqlOnce, from_header, from_position

REQUESTS, RESULTS = "sale.requests", "sale.results"
WORK = 0.001
"""Seconds that the shop takes for one request: looking at the buyer, the price, the address."""
COUNTING = 0.001
"""Seconds that the statistics take: looking up where the buyer lives, how old they are, what else they bought."""
GROUP = "shop"
STATISTICS = "statistics"


class Shop:
    def __init__(
        self, bootstrap: str, database: Path, item: str, stock: int, deadline: float, busy: int
    ) -> None:
        """``busy``: from so many waiting requests on there is no time for statistics, until nearly all are served."""
        self._engine = sa.create_engine(f"sqlite:///{database}")
        tables = sa.MetaData()
        self.stock = sa.Table(
            "stock", tables, sa.Column("item", sa.String, primary_key=True), sa.Column("pieces", sa.Integer)
        )
        self.sales = sa.Table("sales", tables, sa.Column("buyer", sa.Integer), sa.Column("item", sa.String))
        tables.create_all(self._engine)
        counts = sa.MetaData()
        self.demand = sa.Table(
            "demand",
            counts,
            sa.Column("item", sa.String, primary_key=True),
            sa.Column("buyer", sa.Integer, primary_key=True),
            sa.Column("clicks", sa.Integer),
        )
        self._counts = sa.create_engine(f"sqlite:///{database.with_name('statistics.sqlite')}")
        sa.event.listen(self._counts, "connect", _without_waiting_for_the_disk)
        counts.create_all(self._counts)
        with self._engine.begin() as connection:
            connection.execute(self.stock.insert().values(item=item, pieces=stock))
        self._deadline = deadline
        self._producer = Producer(bootstrap, value_serializer=serializers.json())
        self._sold_out: set[str] = set()
        # The id travels in a header that the gateway made of Idempotency-Key: a second click is the same request.
        self._sell = SqlOnce("sale", self._engine, id=from_header())(self._sell_one)
        # A request that is counted late is the same request: where it stood tells whether it was counted already.
        self._count = SqlOnce(STATISTICS, self._counts, id=from_position())(self._count_one)
        self._runner = Runner(
            {"orders": self._handle, STATISTICS: self._look_up_and_count},
            bootstrap,
            topics=REQUESTS,
            group_id=GROUP,
            degrade=[SwitchOff(handler=STATISTICS, when=LagBounds(records=(busy, busy // 10)))],
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

    def demanded(self, item: str) -> dict[int, int]:
        """How often each buyer asked for it, as far as it has been counted."""
        mine = sa.select(self.demand.c.buyer, self.demand.c.clicks).where(self.demand.c.item == item)
        with self._counts.connect() as connection:
            return dict(connection.execute(mine).tuples().all())

    @property
    def counts_now(self) -> bool:
        """Whether there is time for statistics."""
        return not self._runner.rules()[STATISTICS].state.acts

    @property
    def left_out(self) -> int:
        """Requests that the statistics have been spared, and that are written down to be counted later."""
        return sum(each.records for each in self._runner.degraded())

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

    def _look_up_and_count(self, record: Record) -> None:
        time.sleep(COUNTING)
        self._count(record)

    def _count_one(self, record: Record, connection: sa.Connection) -> None:
        item, buyer = record.value["item"], record.value["buyer"]
        mine = sa.and_(self.demand.c.item == item, self.demand.c.buyer == buyer)
        again = self.demand.update().where(mine).values(clicks=self.demand.c.clicks + 1)
        if connection.execute(again).rowcount == 0:
            connection.execute(self.demand.insert().values(item=item, buyer=buyer, clicks=1))

    def _sell_one(self, record: Record, connection: sa.Connection) -> str:
        buyer, item = record.value["buyer"], record.value["item"]
        there = sa.and_(self.stock.c.item == item, self.stock.c.pieces > 0)
        taken = connection.execute(self.stock.update().where(there).values(pieces=self.stock.c.pieces - 1))
        if taken.rowcount == 0:
            self._sold_out.add(item)
            return "sold out"
        connection.execute(self.sales.insert().values(buyer=buyer, item=item))
        return "sold"


def _without_waiting_for_the_disk(connection: sqlite3.Connection, _: object) -> None:
    """What is counted survives the end of this program; for statistics that is enough."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
