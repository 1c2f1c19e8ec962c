"""``SqlOnce``: the id, the handler's effect and, if asked, the offset in one database transaction.

Nothing is left between effect and mark: a crash anywhere leaves all of it or nothing. What it covers is
what the handler does through the connection it is given.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import sqlalchemy as sa

from headrace.client.errors import ConfigError
from headrace.client.handlers import check_done, is_async
from headrace.client.once.ids import IdOf, fitted
from headrace.client.once.store import telling
from headrace.client.once.tables import (
    KEY,
    create,
    insert_or_ignore_statement,
    now_millis,
    reachable,
    unless_passing,
)
from headrace.client.record import Record, TopicPartition

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")
log = logging.getLogger("headrace.client.once")


class SqlOnce:
    """A decorator for handlers that take a record and a SQLAlchemy connection.

    >>> once = SqlOnce("ledger", engine, id=from_fields("transfer_id", "account_id"))
    >>> @once
    ... def handle(record, connection):
    ...     connection.execute(ledger.insert().values(...))

    ``offsets=True`` keeps the offset of each partition in the same transaction and starts from there, so
    that no ids are needed; the records of a partition must then be handled one by one
    (``Runner(order="partition")``, which finds the offsets by itself). Give both to recognise also what a
    producer sent twice.
    """

    def __init__(
        self,
        name: str,
        engine: sa.Engine,
        *,
        id: IdOf | None = None,
        offsets: bool = False,
        table: str = "headrace_handled",
        offsets_table: str = "headrace_offsets",
    ) -> None:
        if id is None and not offsets:
            raise ConfigError(
                "SqlOnce needs an id= (from_header(), from_key(), from_fields(…)), offsets=True, or both"
            )
        self._name = fitted(name.encode())
        self._engine = engine
        self._id_of = id
        self._keeps_offsets = offsets
        metadata = sa.MetaData()
        self._seen = sa.Table(
            table,
            metadata,
            sa.Column("name", KEY, primary_key=True),
            sa.Column("id", KEY, primary_key=True),
            sa.Column("at", sa.BigInteger, nullable=False),
            mysql_engine="InnoDB",
        )
        self._offsets = sa.Table(
            offsets_table,
            metadata,
            sa.Column("name", KEY, primary_key=True),
            sa.Column("topic", KEY, primary_key=True),
            sa.Column("partition", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("next_offset", sa.BigInteger, nullable=False),
            mysql_engine="InnoDB",
        )
        create(engine, self._seen, self._offsets)
        # Made once: building a statement costs SQLAlchemy more than running it.
        dialect, places = engine.dialect.name, self._offsets.c
        this: dict[str, sa.BindParameter[Any]] = {
            "name": sa.bindparam("of_name"),
            "topic": sa.bindparam("of_topic"),
            "partition": sa.bindparam("of"),
        }
        self._note_id = insert_or_ignore_statement(dialect, self._seen).values(
            name=sa.bindparam("of_name"), id=sa.bindparam("of_id"), at=now_millis()
        )
        self._move = (
            self._offsets.update()
            .where(*(places[column] == value for column, value in this.items()))
            .where(places.next_offset < sa.bindparam("next"))
            .values(next_offset=sa.bindparam("next"))
        )
        self._first_move = insert_or_ignore_statement(dialect, self._offsets).values(
            **this, next_offset=sa.bindparam("next")
        )

    def __call__(
        self, handler: Callable[[Record[K, V], sa.Connection], R]
    ) -> Callable[[Record[K, V]], R | None]:
        if is_async(handler):
            raise ConfigError(
                "SqlOnce takes an ordinary function: its transaction ends when the function returns, "
                "before anything is awaited; use Runner"
            )

        @functools.wraps(handler)
        @telling()
        def handle(record: Record[K, V]) -> R | None:
            with reachable():
                connection = self._engine.connect()
            with connection, unless_passing(), connection.begin():
                if not self._is_new(record, connection):
                    log.debug("%s was handled before and is skipped", record)
                    return None
                result = handler(record, connection)
                check_done(result, "a handler inside SqlOnce")
                return result

        if self._keeps_offsets:
            handle.headrace_start_offsets = self.start_offsets  # type: ignore[attr-defined]
        return handle

    def start_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Where to go on in these partitions, for those that have been handled before."""
        statement = sa.select(self._offsets).where(self._offsets.c.name == self._name)
        with reachable(), self._engine.connect() as connection:
            rows = connection.execute(statement).all()
        known = {TopicPartition(row.topic.decode(), row.partition): row.next_offset for row in rows}
        return {partition: known[partition] for partition in partitions if partition in known}

    def purge(self, older_than: float) -> int:
        """Delete ids that were handled more than this many seconds ago; returns how many."""
        statement = self._seen.delete().where(
            self._seen.c.name == self._name, self._seen.c.at < now_millis() - int(older_than * 1000)
        )
        with reachable(), self._engine.begin() as connection:
            return connection.execute(statement).rowcount

    def _is_new(self, record: Record[Any, Any], connection: sa.Connection) -> bool:
        if self._keeps_offsets and not self._advance(record, connection):
            return False
        if self._id_of is None:
            return True
        row = {"of_name": self._name, "of_id": fitted(self._id_of(record))}
        return connection.execute(self._note_id, row).rowcount == 1

    def _advance(self, record: Record[Any, Any], connection: sa.Connection) -> bool:
        """Move the partition's offset past the record; False when it is past it already."""
        row = {
            "of_name": self._name,
            "of_topic": record.topic.encode(),
            "of": record.partition,
            "next": record.offset + 1,
        }
        if connection.execute(self._move, row).rowcount == 1:
            return True
        return connection.execute(self._first_move, row).rowcount == 1
