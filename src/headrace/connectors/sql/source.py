"""SQL tables as a source: what is there (the snapshot), then what is new, by a column that only grows.

A batch is the rows with ``after < column <= until``. Numbers and times are taken before the transaction that uses them ends,
so a row may appear behind others: ``settle`` is how long such a transaction may last.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from headrace.connectors.base import Offset, PolledSource, Row
from headrace.connectors.errors import ConnectorError
from headrace.connectors.settings import Seconds, setting
from headrace.connectors.sql.engine import answering, connect, reflect


@dataclass(frozen=True)
class SqlSourceSettings:
    url: str = setting(
        "The database, in SQLAlchemy's words.", example="mysql+pymysql://user:${PASSWORD}@host/shop"
    )
    table: str = setting("The table or view, or schema.table.", example="orders")
    column: str = setting(
        "A column that only grows: a serial number, or the time of the last change.", example="id"
    )
    columns: tuple[str, ...] = setting("The columns to take. [all]", default=(), example=["id", "total"])
    where: str | None = setting(
        "A condition that rows must meet, in SQL.", default=None, example="status <> 'draft'"
    )
    snapshot: bool = setting("Begin with the rows that are there; false: only what is new.", default=True)
    settle: Seconds = setting(
        "How long a transaction may last between taking a number and showing its row.", default=1.0, minimum=0
    )
    max_rows: int = setting("The most rows in one batch.", default=50_000, minimum=1)
    tasks: int = setting(
        "Read a batch in so many tasks; for a column of whole numbers.", default=1, minimum=1
    )


class SqlSource(PolledSource):
    delivery = "exactly once"
    summary = "A table of a SQL database: a snapshot, then new rows by a column that only grows."
    Settings = SqlSourceSettings
    settings: SqlSourceSettings

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._seen: deque[tuple[float, Any]] = deque()
        self._last: tuple[Any] | None = None

    def check(self) -> None:
        engine = connect(self.settings.url, "source")
        table = self._table(engine)
        for name in self.settings.columns:
            _column(table, name, "columns")
        highest = self._highest(engine)
        _pack(highest)
        if highest is not None and self.settings.where is not None:
            with answering(engine), engine.connect() as connection:
                connection.execute(sa.select(*table.c).where(*self._between(table, None, highest)).limit(1))

    def identity(self) -> dict[str, object]:
        return {"table": self.settings.table, "column": self.settings.column}

    def start(self) -> Offset:
        return _pack(None if self.settings.snapshot else self._highest(connect(self.settings.url, "source")))

    def until_now(self) -> None:
        highest = self._highest(connect(self.settings.url, "source"))
        time.sleep(self.settings.settle)
        self._last = (highest,)

    def latest(self, after: Offset) -> Offset:
        engine = connect(self.settings.url, "source")
        limit = self._last[0] if self._last else self._settled(engine)
        if limit is None:
            return after
        table = self._table(engine)
        column = table.c[self.settings.column]
        range_ = self._between(table, _unpack(after), limit)
        nth = sa.select(column).where(*range_).order_by(column).limit(1).offset(self.settings.max_rows - 1)
        with answering(engine), engine.connect() as connection:
            end = connection.execute(nth).scalar()
            if end is None:
                end = connection.execute(sa.select(sa.func.max(column)).where(*range_)).scalar()
        return after if end is None else _pack(end)

    def split(self, after: Offset, until: Offset) -> Sequence[tuple[Offset, Offset]]:
        low, high = _unpack(after), _unpack(until)
        if low is None and self.settings.tasks > 1 and isinstance(high, int):
            lowest = self._extreme(connect(self.settings.url, "source"), sa.func.min)
            low = min(lowest, high) - 1
        if self.settings.tasks == 1 or not isinstance(low, int) or not isinstance(high, int):
            return [(after, until)]
        count = min(self.settings.tasks, high - low)
        borders = [low + (high - low) * number // count for number in range(count + 1)]
        return [(_pack(a), _pack(b)) for a, b in itertools.pairwise(borders)]

    def rows(self, after: Offset, until: Offset) -> Iterator[Row]:
        engine = connect(self.settings.url, "source")
        table = self._table(engine)
        taken = [table.c[name] for name in self.settings.columns] or list(table.c)
        statement = (
            sa.select(*taken)
            .where(*self._between(table, _unpack(after), _unpack(until)))
            .order_by(table.c[self.settings.column])
        )
        with answering(engine), engine.connect().execution_options(yield_per=1_000) as connection:
            for row in connection.execute(statement):
                yield dict(row._mapping)

    def _between(self, table: sa.Table, after: Any, until: Any) -> list[sa.ColumnElement[bool]]:
        column = table.c[self.settings.column]
        conditions: list[sa.ColumnElement[bool]] = [column <= until]
        if after is not None:
            conditions.append(column > after)
        if self.settings.where is not None:
            conditions.append(sa.text(f"({self.settings.where})"))  # type: ignore[arg-type]
        return conditions

    def _settled(self, engine: sa.Engine) -> Any:
        """The highest value that was there ``settle`` seconds ago: what is below it is complete."""
        now = time.monotonic()
        self._seen.append((now, self._highest(engine)))
        limit = None
        while self._seen and self._seen[0][0] <= now - self.settings.settle:
            limit = self._seen.popleft()
        if limit is None:
            return None
        self._seen.appendleft(limit)
        return limit[1]

    def _highest(self, engine: sa.Engine) -> Any:
        return self._extreme(engine, sa.func.max)

    def _extreme(self, engine: sa.Engine, of: Callable[..., sa.ColumnElement[Any]]) -> Any:
        table = self._table(engine)
        with answering(engine), engine.connect() as connection:
            return connection.execute(sa.select(of(table.c[self.settings.column]))).scalar()

    def _table(self, engine: sa.Engine) -> sa.Table:
        table = reflect(engine, self.settings.table, "source")
        _column(table, self.settings.column, "column")
        return table


def _column(table: sa.Table, name: str, setting_name: str) -> None:
    if name not in table.c:
        raise ConnectorError(
            f"source.{setting_name} is {name!r}, but the table {table.name} has {', '.join(table.c.keys())}"
        )


def _pack(value: Any) -> Offset:
    """JSON has no times and no decimals."""
    if isinstance(value, datetime):
        return {"kind": "time", "value": value.isoformat()}
    if isinstance(value, date):
        return {"kind": "date", "value": value.isoformat()}
    if isinstance(value, Decimal):
        return {"kind": "decimal", "value": str(value)}
    if value is None or isinstance(value, int | float | str):
        return {"kind": "plain", "value": value}
    raise ConnectorError(
        f"source.column has values of the type {type(value).__name__}, which cannot be followed"
    )


def _unpack(offset: Offset) -> Any:
    return _KINDS[offset["kind"]](offset["value"])


_KINDS = {
    "plain": lambda value: value,
    "time": datetime.fromisoformat,
    "date": date.fromisoformat,
    "decimal": Decimal,
}
