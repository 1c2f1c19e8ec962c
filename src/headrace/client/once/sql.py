"""Ids in a SQL table with a unique key: as sure as the database.

The effect itself may be anywhere; when it is in the same database, SqlOnce does better.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from headrace.client.once.ids import fitted
from headrace.client.once.store import Claim
from headrace.client.once.tables import KEY, create, insert_or_ignore_statement, now_millis, reachable

_FOR_EVER = 100 * 365 * 86_400.0


class SqlStore:
    """Makes its table when it is missing. ``purge`` deletes old ids; nothing expires by itself.

    >>> Once("billing", SqlStore(create_engine("postgresql://localhost/shop")))
    """

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
        # Made once: building a statement costs SQLAlchemy more than running it.
        columns = self._table.c
        this = sa.and_(columns.name == sa.bindparam("of_name"), columns.id == sa.bindparam("of_id"))
        mine = sa.and_(this, columns.token == sa.bindparam("of_token"))
        until = now_millis() + sa.bindparam("lease", type_=sa.BigInteger)
        self._insert = insert_or_ignore_statement(engine.dialect.name, self._table).values(
            name=sa.bindparam("of_name"),
            id=sa.bindparam("of_id"),
            token=sa.bindparam("of_token"),
            done=False,
            until=until,
        )
        self._look = sa.select(
            columns.token, columns.done, (columns.until - now_millis()).label("left")
        ).where(this)
        self._take_over = (
            self._table.update()
            .where(this, columns.token == sa.bindparam("dead"), ~columns.done)
            .values(token=sa.bindparam("of_token"), until=until)
        )
        self._finish = self._table.update().where(mine).values(done=True, until=now_millis())
        self._forget = self._table.delete().where(mine)

    def claim(self, name: str, identity: bytes, token: str, lease: float | None) -> Claim:
        ours = {
            **_key(name, identity, token),
            "lease": int((_FOR_EVER if lease is None else lease) * 1000),
        }
        with reachable(), self._engine.begin() as connection:
            if connection.execute(self._insert, ours).rowcount == 1:
                return Claim("ours")
            held = connection.execute(self._look, _key(name, identity)).one_or_none()
            if held is None:
                return Claim("running")
            if held.done:
                return Claim("done")
            if held.left > 0 and held.token != token:
                return Claim("running", held.left / 1000)
            taken = connection.execute(self._take_over, {**ours, "dead": held.token})
            return Claim("ours" if taken.rowcount == 1 else "running")

    def done(self, name: str, identity: bytes, token: str) -> bool:
        with reachable(), self._engine.begin() as connection:
            return connection.execute(self._finish, _key(name, identity, token)).rowcount == 1

    def release(self, name: str, identity: bytes, token: str) -> None:
        with reachable(), self._engine.begin() as connection:
            connection.execute(self._forget, _key(name, identity, token))

    def purge(self, older_than: float) -> int:
        """Delete ids that were done more than this many seconds ago; returns how many."""
        statement = self._table.delete().where(
            self._table.c.done, self._table.c.until < now_millis() - int(older_than * 1000)
        )
        with reachable(), self._engine.begin() as connection:
            return connection.execute(statement).rowcount


def _key(name: str, identity: bytes, token: str | None = None) -> dict[str, Any]:
    key: dict[str, Any] = {"of_name": fitted(name.encode()), "of_id": fitted(identity)}
    return key if token is None else {**key, "of_token": token}
