"""Ids in a SQL table with a unique key: as sure as the database.

The effect itself may be anywhere; when it is in the same database, SqlOnce does better.
"""

from __future__ import annotations

import sqlalchemy as sa

from headrace.client.once.ids import fitted
from headrace.client.once.store import Claim
from headrace.client.once.tables import KEY, create, insert_or_ignore, now_millis, reachable

_FOR_EVER = 100 * 365 * 86_400.0


class SqlStore:
    """Makes its table when it is missing. ``purge`` deletes old ids; nothing expires by itself."""

    def __init__(self, engine: sa.Engine, *, table: str = "headrace_once") -> None:
        self._engine = engine
        self._table = sa.Table(
            table,
            sa.MetaData(),
            sa.Column("name", KEY, primary_key=True),
            sa.Column("id", KEY, primary_key=True),
            sa.Column("token", sa.String(32), nullable=False),
            sa.Column("done", sa.Boolean, nullable=False),
            sa.Column("until", sa.BigInteger, nullable=False),
            mysql_engine="InnoDB",
        )
        create(engine, self._table)

    def claim(self, name: str, identity: bytes, token: str, lease: float | None) -> Claim:
        until = now_millis() + int((_FOR_EVER if lease is None else lease) * 1000)
        row = {"token": token, "done": False, "until": until}
        with reachable(), self._engine.begin() as connection:
            if insert_or_ignore(
                connection, self._table, {"name": name.encode(), "id": fitted(identity), **row}
            ):
                return Claim("ours")
            held = connection.execute(
                sa.select(
                    self._table.c.token,
                    self._table.c.done,
                    (self._table.c.until - now_millis()).label("left"),
                ).where(self._is(name, identity))
            ).one_or_none()
            if held is None:
                return Claim("running")
            if held.done:
                return Claim("done")
            if held.left > 0:
                return Claim("running", held.left / 1000)
            taken = connection.execute(
                self._table.update()
                .where(self._is(name, identity), self._table.c.token == held.token, ~self._table.c.done)
                .values(row)
            )
            return Claim("ours" if taken.rowcount == 1 else "running")

    def done(self, name: str, identity: bytes, token: str) -> bool:
        statement = (
            self._table.update()
            .where(self._is(name, identity), self._table.c.token == token)
            .values(done=True, until=now_millis())
        )
        with reachable(), self._engine.begin() as connection:
            return connection.execute(statement).rowcount == 1

    def release(self, name: str, identity: bytes, token: str) -> None:
        statement = self._table.delete().where(self._is(name, identity), self._table.c.token == token)
        with reachable(), self._engine.begin() as connection:
            connection.execute(statement)

    def purge(self, older_than: float) -> int:
        """Delete ids that were done more than this many seconds ago; returns how many."""
        statement = self._table.delete().where(
            self._table.c.done, self._table.c.until < now_millis() - int(older_than * 1000)
        )
        with reachable(), self._engine.begin() as connection:
            return connection.execute(statement).rowcount

    def _is(self, name: str, identity: bytes) -> sa.ColumnElement[bool]:
        return sa.and_(self._table.c.name == name.encode(), self._table.c.id == fitted(identity))
