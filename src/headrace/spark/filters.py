"""What a batch query's filters say about where to look: topics, partitions, offsets, the earliest moment.

They only narrow what is fetched; Spark still checks every row. A latest moment cannot be used: producers set
timestamps, so an older one may come after a newer one.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from headrace.spark.offsets import TopicPartition

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


@dataclass(slots=True)
class Bounds:
    """Everything that passes the filters lies within; no filter, no bound."""

    topics: frozenset[object] | None = None
    partitions: frozenset[object] | None = None
    first_offset: int = 0
    end_offset: int | None = None
    first_timestamp: int | None = None
    """Milliseconds."""

    @classmethod
    def of(cls, filters: Iterable[Filter]) -> Bounds:
        bounds = cls()
        for entry in filters:
            column = getattr(entry, "attribute", None)
            if column == ("topic",):
                bounds.topics = _narrowed(bounds.topics, entry)
            elif column == ("partition",):
                bounds.partitions = _narrowed(bounds.partitions, entry)
            elif column == ("offset",):
                bounds._offset(entry)
            elif column == ("timestamp",):
                bounds._timestamp(entry)
        return bounds

    def allows(self, partition: TopicPartition) -> bool:
        return (self.topics is None or partition.topic in self.topics) and (
            self.partitions is None or partition.partition in self.partitions
        )

    def _offset(self, entry: Filter) -> None:
        if isinstance(entry, EqualTo | EqualNullSafe):
            self._from(entry.value)
            self._before(entry.value + 1)
        elif isinstance(entry, In):
            values = [value for value in entry.value if value is not None]  # IN (NULL, …) holds for no NULL
            self._from(min(values, default=0))
            self._before(max(values, default=-1) + 1)
        elif isinstance(entry, GreaterThan):
            self._from(entry.value + 1)
        elif isinstance(entry, GreaterThanOrEqual):
            self._from(entry.value)
        elif isinstance(entry, LessThan):
            self._before(entry.value)
        elif isinstance(entry, LessThanOrEqual):
            self._before(entry.value + 1)

    def _from(self, offset: int) -> None:
        self.first_offset = max(self.first_offset, offset)

    def _before(self, offset: int) -> None:
        self.end_offset = offset if self.end_offset is None else min(self.end_offset, offset)

    def _timestamp(self, entry: Filter) -> None:
        if isinstance(entry, EqualTo | GreaterThanOrEqual):
            first = math.ceil(_microseconds(entry.value) / 1000)
        elif isinstance(entry, GreaterThan):
            first = _microseconds(entry.value) // 1000 + 1
        else:
            return
        if first <= 0:
            return  # no record is older, and below zero brokers read other wishes than times
        self.first_timestamp = first if self.first_timestamp is None else max(self.first_timestamp, first)


def _narrowed(allowed: frozenset[object] | None, entry: Filter) -> frozenset[object] | None:
    """The values that an equality leaves of those allowed so far; None for any."""
    if isinstance(entry, EqualTo | EqualNullSafe):
        values = frozenset({entry.value})
    elif isinstance(entry, In):
        values = frozenset(entry.value)
    else:
        return allowed
    return values if allowed is None else allowed & values


def _microseconds(moment: datetime.datetime) -> int:
    if moment.tzinfo is None:
        moment = moment.astimezone()
    return (moment - _EPOCH) // _MICROSECOND
