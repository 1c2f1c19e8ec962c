"""Changes of rows that may be applied again without harm: insert-or-update by version, update on a condition.

For handlers whose effect is the state of a row; both work on SQLite, MariaDB/MySQL and PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from headrace.client.errors import ConfigError


def upsert(
    connection: sa.Connection,
    table: sa.Table,
    key: Mapping[str, Any],
    values: Mapping[str, Any],
    *,
    version: str | None = None,
) -> bool:
    """Insert the row or update it; returns whether anything was written.

    With ``version``, the name of a column in ``values``, an existing row changes only if the new version is
    higher: old and repeated records change nothing, in whatever order they come.
    """
    if version is not None and version not in values:
        raise ConfigError(f'upsert by version needs a value for the column "{version}"')
    conditions = [] if version is None else [table.c[version] < values[version]]
    if _update(connection, table, key, conditions, values):
        return True
    # Not INSERT IGNORE: on MariaDB that would also swallow a value that does not fit.
    try:
        with connection.begin_nested():
            connection.execute(table.insert().values({**key, **values}))
        return True
    except sa.exc.IntegrityError:
        if not _exists(connection, table, key):
            raise
    return _update(connection, table, key, conditions, values)


def update_if(
    connection: sa.Connection,
    table: sa.Table,
    key: Mapping[str, Any],
    expected: Mapping[str, Any],
    values: Mapping[str, Any],
) -> bool:
    """Update the row only if it is still as expected; returns whether it was.

    A repeated record finds the row already changed and does nothing.
    """
    return _update(connection, table, key, _matching(table, expected), values)


def _update(
    connection: sa.Connection,
    table: sa.Table,
    key: Mapping[str, Any],
    conditions: list[sa.ColumnElement[bool]],
    values: Mapping[str, Any],
) -> bool:
    found = _matching(table, key)
    return connection.execute(table.update().where(*found, *conditions).values(values)).rowcount > 0


def _exists(connection: sa.Connection, table: sa.Table, key: Mapping[str, Any]) -> bool:
    # A locking read sees what another transaction has committed since ours began.
    statement = sa.select(sa.literal(1)).select_from(table).where(*_matching(table, key)).with_for_update()
    return connection.execute(statement).first() is not None


def _matching(table: sa.Table, values: Mapping[str, Any]) -> list[sa.ColumnElement[bool]]:
    return [table.c[column] == value for column, value in values.items()]
