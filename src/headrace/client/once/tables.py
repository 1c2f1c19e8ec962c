"""The SQL that differs between databases: insert-or-ignore, the database's own clock, keys compared by byte.

Works through SQLAlchemy on SQLite, MariaDB/MySQL and PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from headrace.client.errors import ConfigError
from headrace.client.once.store import StoreUnavailable

KEY = sa.LargeBinary(255).with_variant(mysql.VARBINARY(255), "mysql", "mariadb")
"""Compared byte by byte; as text, MariaDB takes "A" for "a" and ignores trailing blanks."""


class now_millis(FunctionElement[int]):
    """The database's clock in milliseconds, so that leases do not depend on the clocks of the clients."""

    type = sa.BigInteger()
    inherit_cache = True


@compiles(now_millis, "sqlite")
def _sqlite_now(element: now_millis, compiler: Any, **_: Any) -> str:
    return "CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER)"


@compiles(now_millis, "mysql")
@compiles(now_millis, "mariadb")
def _mysql_now(element: now_millis, compiler: Any, **_: Any) -> str:
    return "CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)"


@compiles(now_millis, "postgresql")
def _postgresql_now(element: now_millis, compiler: Any, **_: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"


def insert_or_ignore(connection: sa.Connection, table: sa.Table, values: Mapping[str, Any]) -> bool:
    """Insert a row; False, and nothing changed, when its key is there already.

    If another transaction is inserting the same key, this waits for it to end.
    """
    return (
        connection.execute(insert_or_ignore_statement(connection.dialect.name, table).values(values)).rowcount
        == 1
    )


def insert_or_ignore_statement(dialect: str, table: sa.Table) -> sa.Insert:
    if dialect == "sqlite":
        return sqlite.insert(table).on_conflict_do_nothing()
    if dialect == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    if dialect in ("mysql", "mariadb"):
        return mysql.insert(table).prefix_with("IGNORE")
    raise ConfigError(f"{dialect} is not supported: use SQLite, MariaDB, MySQL or PostgreSQL")


def create(engine: sa.Engine, *tables: sa.Table) -> None:
    """Make the tables that are missing; several processes may start at once."""
    insert_or_ignore_statement(engine.dialect.name, tables[0])
    with reachable():
        try:
            tables[0].metadata.create_all(engine, tables=tables)
        except (sa.exc.OperationalError, sa.exc.ProgrammingError, sa.exc.IntegrityError):
            # Another process may have made them between the look and the CREATE.
            tables[0].metadata.create_all(engine, tables=tables)


@contextmanager
def reachable() -> Iterator[None]:
    """Around statements of our own: whatever goes wrong is the database's state, so the record waits."""
    try:
        yield
    except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
        raise unavailable(error) from error


@contextmanager
def unless_passing() -> Iterator[None]:
    """Around a handler's statements: only what passes by itself makes the record wait."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        if not (error.connection_invalidated or _code(error) in _PASSING or "is locked" in str(error.orig)):
            raise
        raise unavailable(error) from error


def unavailable(error: sa.exc.SQLAlchemyError) -> StoreUnavailable:
    cause = getattr(error, "orig", None) or error
    return StoreUnavailable(f"the database cannot be used now ({cause}); the record waits")


def _code(error: sa.exc.DBAPIError) -> object:
    """The SQLSTATE where the driver gives one, else the vendor's number."""
    arguments = getattr(error.orig, "args", ()) or (None,)
    if isinstance(arguments[0], dict):
        return arguments[0].get("C")
    return getattr(error.orig, "sqlstate", None) or arguments[0]


_PASSING = frozenset(
    {
        1205,  # MariaDB: lock wait timeout
        1213,  # MariaDB: deadlock, this transaction was chosen
        "40001",  # PostgreSQL: serialization failure
        "40P01",  # PostgreSQL: deadlock detected
        "57P01",  # PostgreSQL: the server is shutting down
    }
)
