"""Taking an order: stock, order and the message about it in one database transaction, and nothing slow before the answer."""

import sqlite3
from pathlib import Path

import sqlalchemy as sa

from headrace.client import serializers
from headrace.client.outbox import Relay, SqlOutbox

ORDERS = "orders"


def patient_engine(database: Path) -> sa.Engine:
    """SQLite takes one writer at a time. By default the others give up after 5 seconds, and readers wait, too."""
    engine = sa.create_engine(f"sqlite:///{database}", connect_args={"timeout": 60})

    @sa.event.listens_for(engine, "connect")
    def let_readers_read(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA journal_mode=WAL")

    return engine


class Shop:
    def __init__(self, bootstrap: str, database: Path, stock: int) -> None:
        self._engine = patient_engine(database)
        tables = sa.MetaData()
        self._stock = sa.Table(
            "stock", tables, sa.Column("item", sa.String, primary_key=True), sa.Column("pieces", sa.Integer)
        )
        self._orders = sa.Table(
            "orders", tables, sa.Column("id", sa.Integer, primary_key=True), sa.Column("amount", sa.Float)
        )
        tables.create_all(self._engine)
        with self._engine.begin() as connection:
            connection.execute(self._stock.insert().values(item="lamp", pieces=stock))
        self._outbox = SqlOutbox(self._engine, value_serializer=serializers.json())
        self._relay = Relay(self._outbox, bootstrap, poll_interval=0.1)

    def __enter__(self) -> "Shop":
        self._relay.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._relay.stop()

    def has_orders_to_tell(self) -> bool:
        return len(self._outbox) > 0

    def order(self, number: int, customer: str, amount: float) -> None:
        with self._engine.begin() as connection:
            connection.execute(self._stock.update().values(pieces=self._stock.c.pieces - 1))
            connection.execute(self._orders.insert().values(id=number, amount=amount))
            self._outbox.send(
                connection, ORDERS, {"id": number, "customer": customer, "amount": amount}, key=customer
            )
