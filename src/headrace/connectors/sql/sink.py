"""SQL tables as a sink: rows and the offset they reach are written in one transaction.

The offset is kept by connector, topic (with its id) and partition in a small table, so a chunk that comes again, whole or in part,
adds nothing, even when Spark's checkpoint is lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from headrace.client.once.tables import KEY, insert_or_ignore_statement
from headrace.connectors.base import Chunk, Sink
from headrace.connectors.errors import ConnectorError, Rejected
from headrace.connectors.settings import setting
from headrace.connectors.sql.engine import answering, connect, one_line, reachable, reflect
from headrace.connectors.sql.types import columns_for
from headrace.connectors.topic import to_json

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_ORIGIN = sa.LargeBinary(300).with_variant(mysql.VARBINARY(300), "mysql", "mariadb")
"""A topic's name, of at most 249 bytes, and its id."""
_SUPPORTED = ("mysql", "mariadb", "postgresql", "sqlite")
Row = dict[str, Any]


@dataclass(frozen=True)
class SqlSinkSettings:
    url: str = setting(
        "The database, in SQLAlchemy's words.", example="mysql+pymysql://user:${PASSWORD}@host/shop"
    )
    table: str = setting("The table, or schema.table.", example="orders")
    mode: Literal["upsert", "insert"] = setting(
        "upsert (the newest row of a key stays) or insert (every record is a row).", default="upsert"
    )
    key: tuple[str, ...] = setting(
        "upsert: the columns of the table's primary or unique key.", default=(), example="id"
    )
    delete: bool = setting("upsert: delete the row when a record has a key and no value.", default=False)
    create: bool = setting("Create the table from topic.schema if it is missing.", default=False)
    offsets_table: str = setting(
        "The table that keeps how far each partition is written.", default="headrace_connect"
    )

    def problems(self) -> Iterator[str]:
        if self.mode == "upsert" and not self.key:
            yield 'key is missing: mode = "upsert" needs the columns of the key, or use mode = "insert"'
        if self.mode == "insert" and self.delete:
            yield 'delete is true, but mode = "insert" never deletes'


class SqlSink(Sink):
    delivery = "exactly once"
    summary = "A table of a SQL database: upserts or inserts, rows and offsets in one transaction."
    Settings = SqlSinkSettings
    settings: SqlSinkSettings

    def check(self) -> None:
        engine = connect(self.settings.url, "sink")
        if engine.dialect.name not in _SUPPORTED:
            raise ConnectorError(
                f"sink.url names {engine.dialect.name}: this sink writes to MariaDB, MySQL, PostgreSQL and SQLite"
            )
        if not self.settings.create:
            self._check_table(engine)

    def identity(self) -> dict[str, object]:
        return {"table": self.settings.table}

    def check_schema(self, schema: StructType) -> None:
        missing = [name for name in self.settings.key if name not in schema.names]
        if missing:
            raise ConnectorError(
                f"sink.key names {missing[0]}, but topic.schema has only {', '.join(schema.names)}"
            )
        if not self.settings.create:
            engine = connect(self.settings.url, "sink")
            self._check_columns(reflect(engine, self.settings.table, "sink"), schema.names, "topic.schema")

    def prepare(self, schema: StructType) -> None:
        engine = connect(self.settings.url, "sink")
        with answering(engine):
            if self.settings.create:
                self._create(engine, schema)
            _offsets(self.settings.offsets_table).create(engine, checkfirst=True)
        self._check_columns(self._check_table(engine), schema.names, "topic.schema")

    def open(self) -> None:
        self._engine = connect(self.settings.url, "sink")
        self._table = reflect(self._engine, self.settings.table, "sink")
        self._offsets = _offsets(self.settings.offsets_table)
        with answering(self._engine):
            self._connection = self._engine.connect()

    def close(self) -> None:
        self._connection.close()

    def write(self, chunk: Chunk) -> None:
        rows = chunk.rows.to_pylist()
        try:
            self._write(chunk, rows, self._apply)
        except sa.exc.StatementError:
            with answering(self._engine):
                self._write(chunk, rows, self._apply_one_by_one)

    def _write(self, chunk: Chunk, rows: list[Row], apply: Callable[[list[Row]], None]) -> None:
        with reachable(self._engine), self._connection.begin():
            written = self._lock(chunk)
            apply([row for row in rows if row["_offset"] >= written])
            self._connection.execute(
                self._offsets.update().where(*self._this(chunk)).values(next_offset=max(written, chunk.next))
            )

    def _lock(self, chunk: Chunk) -> int:
        """The first offset that is not written yet; this partition has no other writer until we are done."""
        places, this = self._offsets, self._this(chunk)
        touch = places.update().where(*this).values(next_offset=places.c.next_offset)
        if not self._connection.execute(touch).rowcount:
            values = {**self._names(chunk), "next_offset": 0}
            self._connection.execute(
                insert_or_ignore_statement(self._engine.dialect.name, places).values(**values)
            )
            self._connection.execute(touch)
        return int(self._connection.execute(sa.select(places.c.next_offset).where(*this)).scalar_one())

    def _apply(self, rows: list[Row]) -> None:
        if self.settings.mode == "insert":
            values = [self._values(row) for row in rows if row["_value"] is not None]
            if values:
                self._connection.execute(self._table.insert(), values)
            return
        # In the records' order: a key may look different in a record without a value, so only upserts are brought together.
        newest: dict[tuple[object, ...], Row] = {}
        for row in rows:
            if row["_value"] is not None:
                values_ = self._values(row)
                newest[tuple(values_[name] for name in self.settings.key)] = values_
            elif self.settings.delete and row["_key"] is not None:
                self._put(newest)
                newest = {}
                self._remove(self._deleted(row))
        self._put(newest)

    def _put(self, rows: dict[tuple[object, ...], Row]) -> None:
        if rows:
            upserts = list(rows.values())
            self._connection.execute(self._upsert(list(upserts[0])), upserts)

    def _remove(self, key: tuple[object, ...]) -> None:
        where = (self._table.c[name] == value for name, value in zip(self.settings.key, key, strict=True))
        self._connection.execute(self._table.delete().where(*where))

    def _apply_one_by_one(self, rows: list[Row]) -> None:
        """Find what the database refuses: every row in a savepoint of its own."""
        reasons: dict[int, str] = {}
        for row in rows:
            try:
                with reachable(self._engine), self._connection.begin_nested():
                    self._apply([row])
            except sa.exc.DBAPIError as error:
                reasons[row["_offset"]] = f"the database refused it: {one_line(error)}"
            except sa.exc.StatementError as error:
                reasons[row["_offset"]] = f"the database cannot take it: {error}"
        if reasons:
            raise Rejected(reasons)  # rolls the transaction back: the chunk comes again without them

    def _upsert(self, names: Sequence[str]) -> sa.Insert:
        others = [name for name in names if name not in self.settings.key]
        dialect = self._engine.dialect.name
        if dialect in ("mysql", "mariadb"):
            statement = mysql.insert(self._table)
            changed = others or list(self.settings.key)
            return statement.on_duplicate_key_update({name: statement.inserted[name] for name in changed})
        insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
        conflict = insert(self._table)
        key = list(self.settings.key)
        if not others:
            return conflict.on_conflict_do_nothing(index_elements=key)
        return conflict.on_conflict_do_update(
            index_elements=key, set_={name: conflict.excluded[name] for name in others}
        )

    def _values(self, row: Row) -> Row:
        return {
            name: to_json(value).decode() if isinstance(value, dict | list) else value
            for name, value in row.items()
            if not name.startswith("_") or name in self._table.c
        }

    def _deleted(self, row: Row) -> tuple[object, ...]:
        """The key of a record without a value: the field itself, or an object of the fields."""
        names = self.settings.key
        text = row["_key"].decode("utf-8", "replace")
        try:
            given = {names[0]: text} if len(names) == 1 else json.loads(text)
            return tuple(_as_column(self._table.c[name], given[name]) for name in names)
        except (ValueError, KeyError, TypeError):
            raise Rejected({row["_offset"]: f"its key {text!r} does not give {', '.join(names)}"}) from None

    def _this(self, chunk: Chunk) -> list[sa.ColumnElement[bool]]:
        return [self._offsets.c[name] == value for name, value in self._names(chunk).items()]

    def _names(self, chunk: Chunk) -> dict[str, object]:
        return {"connector": self.name.encode(), "topic": chunk.origin.encode(), "partition": chunk.partition}

    def _check_table(self, engine: sa.Engine) -> sa.Table:
        table = reflect(engine, self.settings.table, "sink")
        self._check_columns(table, self.settings.key, "sink.key")
        if self.settings.mode == "upsert":
            keys = [
                set(constraint.columns.keys()) for constraint in table.constraints if _is_unique(constraint)
            ]
            keys += [set(index.columns.keys()) for index in table.indexes if index.unique]
            if set(self.settings.key) not in keys:
                names = ", ".join(self.settings.key)
                raise ConnectorError(
                    f"sink.key is {names}, but the table {self.settings.table} has no primary or unique key of just that: an "
                    'upsert would find no row to replace; add the key, or use mode = "insert"'
                )
        return table

    def _check_columns(self, table: sa.Table, names: Sequence[str], where: str) -> None:
        missing = [name for name in names if name not in table.c]
        if missing:
            raise ConnectorError(
                f"{where} names {missing[0]}, but the table {self.settings.table} has only {', '.join(table.c.keys())}"
            )

    def _create(self, engine: sa.Engine, schema: StructType) -> None:
        namespace, _, name = self.settings.table.rpartition(".")
        columns = columns_for(schema, self.settings.key)
        sa.Table(name, sa.MetaData(), *columns, schema=namespace or None, mysql_engine="InnoDB").create(
            engine, checkfirst=True
        )


def _is_unique(constraint: sa.Constraint) -> TypeGuard[sa.PrimaryKeyConstraint | sa.UniqueConstraint]:
    return isinstance(constraint, sa.PrimaryKeyConstraint | sa.UniqueConstraint)


def _offsets(name: str) -> sa.Table:
    return sa.Table(
        name,
        sa.MetaData(),
        sa.Column("connector", KEY, primary_key=True),
        sa.Column("topic", _ORIGIN, primary_key=True),
        sa.Column("partition", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("next_offset", sa.BigInteger, nullable=False),
        mysql_engine="InnoDB",
    )


def _as_column(column: sa.Column[Any], value: object) -> object:
    try:
        kind = column.type.python_type
    except NotImplementedError:
        return value
    return kind(value) if kind in (int, float, str) else value
