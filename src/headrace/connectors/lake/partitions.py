"""Which partition of a lake a row belongs to: by day or by hour (UTC) of the record's time or of one of its fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

By = Literal["day", "hour", "none"]
UNKNOWN = "__HIVE_DEFAULT_PARTITION__"
"""What Hive, Spark and Delta call the partition of rows without a time."""


@dataclass(frozen=True, slots=True)
class Partitioning:
    by: By
    field: str

    @property
    def columns(self) -> list[str]:
        return {"none": [], "day": ["date"], "hour": ["date", "hour"]}[self.by]

    @property
    def fields(self) -> list[pa.Field]:
        return [pa.field(name, pa.date32() if name == "date" else pa.int32()) for name in self.columns]

    def split(self, rows: pa.RecordBatch) -> Iterator[tuple[dict[str, str | None], pa.RecordBatch]]:
        """Each partition's values by column, with its rows in their order."""
        if self.by == "none":
            yield {}, rows
            return
        times = rows[self.field].cast(pa.timestamp("us"))
        form = "%Y-%m-%d" if self.by == "day" else "%Y-%m-%d %H"
        keys = pc.fill_null(pc.strftime(times, form), UNKNOWN)
        for key in pc.unique(keys).to_pylist():
            yield self._values(key), rows.filter(pc.equal(keys, key))

    def _values(self, key: str) -> dict[str, str | None]:
        if key == UNKNOWN:
            return dict.fromkeys(self.columns)
        date, _, hour = key.partition(" ")
        return {"date": date, "hour": str(int(hour))} if hour else {"date": date}


def directory(values: dict[str, str | None]) -> str:
    return "/".join(f"{name}={UNKNOWN if value is None else value}" for name, value in values.items())
