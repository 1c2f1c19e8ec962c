"""An outbox in a SQL table: the record is written by the same transaction as the change it reports.

So there is never one without the other. Rows are deleted one by one when acknowledged, not by "all up to
number n": transactions do not commit in the order of their row numbers.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from headrace.client.once.tables import KEY, create, insert_or_ignore, now_millis, reachable
from headrace.client.outbox.entry import Entry, decode_headers, encode_headers, make_entry
from headrace.client.record import HeadersLike
from headrace.client.serializers import Serializer, as_serializer

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes | str)
    V = TypeVar("V", default=bytes | str)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

_LARGE = sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


class SqlOutbox(Generic[K, V]):
    """Records sent if, and only if, a database transaction commits.

    >>> outbox = SqlOutbox(engine)
    >>> with engine.begin() as connection:
    ...     connection.execute(orders.insert().values(...))
    ...     outbox.send(connection, "orders", "one")

    Any number of processes may send; of their relays one works and the others stand by (``lease`` seconds).
    """

    def __init__(
        self,
        engine: sa.Engine,
        *,
        key_serializer: Serializer[K] | Callable[[K], bytes] | None = None,
        value_serializer: Serializer[V] | Callable[[V], bytes] | None = None,
        table: str = "headrace_outbox",
        lease: float = 10.0,
    ) -> None:
        self._engine = engine
        self._serialize_key = as_serializer(key_serializer, "key")
        self._serialize_value = as_serializer(value_serializer, "value")
        self._lease = lease
        self._token = uuid.uuid4().hex
        self._something_new = threading.Event()
        metadata = sa.MetaData()
        self._table = sa.Table(
            table,
            metadata,
            sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
            sa.Column("id", KEY, nullable=False),
            sa.Column("topic", KEY, nullable=False),
            sa.Column("key", _LARGE),
            sa.Column("value", _LARGE),
            sa.Column("headers", _LARGE, nullable=False),
            sa.Column("partition", sa.Integer),
            sa.Column("timestamp", sa.BigInteger),
            mysql_engine="InnoDB",
            sqlite_autoincrement=True,
        )
        self._relay = sa.Table(
            f"{table}_relay",
            metadata,
            sa.Column("one", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("token", sa.String(32), nullable=False),
            sa.Column("until", sa.BigInteger, nullable=False),
            mysql_engine="InnoDB",
        )
        create(engine, self._table, self._relay)

    def send(
        self,
        connection: sa.Connection,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        headers: HeadersLike | None = None,
        timestamp: int | None = None,
    ) -> str:
        """Write the record with the caller's transaction; returns its id."""
        entry = make_entry(
            topic, self._serialize_key(key), self._serialize_value(value), headers, partition, timestamp
        )
        connection.execute(
            self._table.insert().values(
                id=entry.id.encode(),
                topic=entry.topic.encode(),
                key=entry.key,
                value=entry.value,
                headers=encode_headers(entry.headers),
                partition=entry.partition,
                timestamp=entry.timestamp,
            )
        )
        self._something_new.set()
        return entry.id

    def __len__(self) -> int:
        """How many records wait to be sent."""
        with reachable(), self._engine.connect() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(self._table)).scalar_one()

    # For the relay

    def pending(self, limit: int) -> list[tuple[int, Entry]]:
        statement = sa.select(self._table).order_by(self._table.c.number).limit(limit)
        with reachable(), self._engine.connect() as connection:
            return [(row.number, _entry(row)) for row in connection.execute(statement)]

    def sent(self, handles: list[int]) -> None:
        with reachable(), self._engine.begin() as connection:
            connection.execute(self._table.delete().where(self._table.c.number.in_(handles)))

    def wait(self, timeout: float) -> None:
        self._something_new.wait(timeout)
        self._something_new.clear()

    def hold(self) -> bool:
        until = now_millis() + int(self._lease * 1000)
        relay = self._relay
        with reachable(), self._engine.begin() as connection:
            if insert_or_ignore(connection, relay, {"one": 1, "token": self._token, "until": until}):
                return True
            free = sa.or_(relay.c.token == self._token, relay.c.until < now_millis())
            taken = connection.execute(relay.update().where(free).values(token=self._token, until=until))
            return taken.rowcount == 1


def _entry(row: Any) -> Entry:
    return Entry(
        row.id.decode("utf-8", "replace"),
        row.topic.decode(),
        row.key,
        row.value,
        decode_headers(row.headers),
        row.partition,
        row.timestamp,
    )
