"""The ways of `once`, one class for each row of the table in docs/delivery.md; and a program to kill.

Run as `python once_rows.py ROW FOLDER REDIS_SOCKET DATABASE_URL ID OFFSET` it handles one record and kills
itself right after the effect.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import redis
import sqlalchemy as sa
from redis.backoff import NoBackoff
from redis.retry import Retry

from headrace.client import Record
from headrace.client.once import (
    LayeredStore,
    Once,
    RedisStore,
    SqlOnce,
    SqlStore,
    Store,
    from_header,
    upsert,
)


def delivery(identity: str, offset: int) -> Record:
    return Record("orders", 0, offset, headers=(("headrace.id", identity.encode()),))


class Row:
    """Builds the handler under test; ``after_effect`` runs right after each effect."""

    def __init__(
        self,
        folder: Path,
        redis_socket: str,
        database_url: str,
        after_effect: Callable[[], None],
        lease: float = 600,
    ) -> None:
        self.folder = folder
        self.lease = lease
        self.after_effect = after_effect
        self.redis = redis.Redis(unix_socket_path=redis_socket, retry=Retry(NoBackoff(), 0))
        self.engine = sa.create_engine(database_url)
        self.handler: Callable[[Record], object] = self.build()

    def build(self) -> Callable[[Record], object]:
        raise NotImplementedError

    def effects(self) -> int:
        raise NotImplementedError


class OutsideEffect(Row):
    """The effect is a line in a file: something that no store can undo."""

    def store(self) -> Store:
        raise NotImplementedError

    def build(self) -> Callable[[Record], object]:
        def handle(record: Record) -> None:
            with (self.folder / "effects").open("a") as file:
                file.write("effect\n")
                file.flush()
                os.fsync(file.fileno())
            self.after_effect()

        return Once("test", self.store(), id=from_header(), lease=self.lease)(handle)

    def effects(self) -> int:
        path = self.folder / "effects"
        return len(path.read_text().splitlines()) if path.exists() else 0


class WithRedis(OutsideEffect):
    def store(self) -> Store:
        return RedisStore(self.redis)


class WithSql(OutsideEffect):
    def store(self) -> Store:
        return SqlStore(self.engine)


class WithLayers(OutsideEffect):
    def store(self) -> Store:
        return LayeredStore(RedisStore(self.redis), SqlStore(self.engine))


class InDatabase(Row):
    """The effect is a row of a ledger in the same database."""

    offsets = False

    def build(self) -> Callable[[Record], object]:
        self.ledger = sa.Table(
            "ledger",
            sa.MetaData(),
            sa.Column("entry", sa.Integer, primary_key=True),
            sa.Column("at", sa.Float),
        )
        self.ledger.metadata.create_all(self.engine)

        def handle(record: Record, connection: sa.Connection) -> None:
            connection.execute(self.ledger.insert().values(at=time.time()))
            self.after_effect()

        id_of = None if self.offsets else from_header()
        return SqlOnce("test", self.engine, id=id_of, offsets=self.offsets)(handle)

    def effects(self) -> int:
        self.ledger.metadata.create_all(self.engine)
        with self.engine.connect() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(self.ledger)).scalar_one()


class InDatabaseByOffset(InDatabase):
    offsets = True


class ByVersion(Row):
    """The effect is the state of a row: the stock after a movement, with the movement's number as version."""

    def build(self) -> Callable[[Record], object]:
        self.stock = sa.Table(
            "stock",
            sa.MetaData(),
            sa.Column("item", sa.String(20), primary_key=True),
            sa.Column("version", sa.Integer, nullable=False),
        )
        # How often the row was really written, which the row itself would not tell.
        self.changes = sa.Table(
            "changes", self.stock.metadata, sa.Column("number", sa.Integer, primary_key=True)
        )
        self.stock.metadata.create_all(self.engine)

        def handle(record: Record) -> None:
            number = int(record.header("headrace.id") or b"0")
            with self.engine.begin() as connection:
                if upsert(connection, self.stock, {"item": "tea"}, {"version": number}, version="version"):
                    connection.execute(self.changes.insert())
            self.after_effect()

        return handle

    def effects(self) -> int:
        self.stock.metadata.create_all(self.engine)
        with self.engine.connect() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(self.changes)).scalar_one()


ROWS: dict[str, type[Row]] = {
    "Once, RedisStore": WithRedis,
    "Once, SqlStore": WithSql,
    "Once, LayeredStore": WithLayers,
    "SqlOnce by id": InDatabase,
    "SqlOnce by offset": InDatabaseByOffset,
    "upsert by version": ByVersion,
}

if __name__ == "__main__":
    row, folder, redis_socket, database_url, identity, offset = sys.argv[1:]
    chosen = ROWS[row](
        Path(folder), redis_socket, database_url, lambda: os.kill(os.getpid(), signal.SIGKILL), lease=0.2
    )
    chosen.handler(delivery(identity, int(offset)))
    sys.exit("it was not killed")
