"""From options to ranges of offsets, and from ranges to the pieces that Spark's tasks read."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from headrace.spark.offsets import TopicPartition
from headrace.wire.schema import ZERO_UUID


@dataclass(slots=True)
class Range(InputPartition):
    """Offsets of one partition, `start` up to but not including `end`; what one task reads."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: uuid.UUID = ZERO_UUID

    @property
    def source(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        return self.end - self.start


def divide(ranges: Iterable[Range], minimum: int | None, largest: int | None) -> list[Range]:
    """Ranges cut so that there are about `minimum` pieces and none is larger than `largest`.

    Large ranges are cut into more pieces than small ones; a range is never cut below one record.
    """
    wanted = [piece for entry in ranges if entry.size > 0 for piece in _cut(entry, _pieces(entry, largest))]
    total = sum(entry.size for entry in wanted)
    if minimum is None or len(wanted) >= minimum or not total:
        return wanted
    pieces = []
    for entry in wanted:
        pieces += _cut(entry, max(1, round(minimum * entry.size / total)))
    return pieces


def _pieces(entry: Range, largest: int | None) -> int:
    return 1 if largest is None else -(-entry.size // largest)


def _cut(entry: Range, count: int) -> list[Range]:
    count = min(count, entry.size)
    edges = [entry.start + entry.size * number // count for number in range(count + 1)]
    return [
        Range(entry.topic, entry.partition, low, high, entry.topic_id)
        for low, high in itertools.pairwise(edges)
    ]
