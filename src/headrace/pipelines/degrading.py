"""Rules at work in a flow: which records of a topic it does without now. Runs in Spark's Python processes, task by task.

The driver decides which rules act and reports it to the control topic; a task reads that when it begins. What a task drops is written
down before the task ends, so before Spark commits the batch. The driver's half is in `runner.py`.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructType

from headrace.client.consumer import Consumer
from headrace.client.degrade.control import TOPIC, Board, Control
from headrace.client.degrade.notes import Drop, Ledger
from headrace.client.degrade.replayed import origin_of, topic_of
from headrace.client.degrade.rules import Rule
from headrace.client.degrade.states import RuleState
from headrace.client.errors import ClientError
from headrace.client.record import Record, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("headrace.pipelines")

DROPPED = "_dropped"
_PATIENCE = 10.0
_LOOK = 0.1


def without_dropped(
    raw: DataFrame,
    rules: Sequence[Rule],
    group: str,
    connection: Mapping[str, object],
    is_json: bool,
    name: str,
) -> DataFrame:
    """The records of a topic without those that rules drop; replayed ones look as they did where they were dropped."""
    judged = StructType([*raw.schema.fields]).add(DROPPED, BooleanType())
    judge = Judge(tuple(rules), group, dict(connection), is_json)
    marked = raw.mapInArrow(lambda batches: judge.judged(batches), judged)
    counted = marked.observe(name, F.count_if(F.col(DROPPED)).alias("drop by rules"))
    return counted.where(~F.col(DROPPED)).drop(DROPPED)


@dataclass(frozen=True)
class Judge:
    """One flow's rules, as they travel to the tasks."""

    rules: tuple[Rule, ...]
    group: str
    connection: dict[str, object]
    is_json: bool

    def judged(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        acting = _follower(self.group, self.connection).acting()
        rules = [rule for rule in self.rules if rule.name in acting]
        ledger = _ledger(self.group, self.connection)
        for batch in batches:
            yield self._marked(batch, rules, ledger)
        ledger.write()

    def _marked(self, batch: pa.RecordBatch, rules: list[Rule], ledger: Ledger) -> pa.RecordBatch:
        import pyarrow as pa

        replays = topic_of(self.group)
        has_replays = replays in batch.column("topic").unique().to_pylist()
        if not rules and not has_replays:
            return batch.append_column(DROPPED, pa.repeat(pa.scalar(False), batch.num_rows))
        now = time.time()
        rows = batch.to_pylist()
        for row in rows:
            if row["topic"] == replays:
                row.update(_restored(row), **{DROPPED: False})
            else:
                row[DROPPED] = self._is_dropped(row, rules, ledger, now)
        return pa.RecordBatch.from_pylist(rows, schema=batch.schema.append(pa.field(DROPPED, pa.bool_())))

    def _is_dropped(self, row: dict[str, Any], rules: list[Rule], ledger: Ledger, now: float) -> bool:
        record = _record(row, json.loads if self.is_json else None)
        for rule in rules:
            reason = rule.reason(record, now)
            if reason is not None:
                ledger.add(Drop(record.topic, record.partition, None, rule.name, reason), record.offset)
                return True
        return False


class Follower:
    """Reads the driver's reports; one for each group in a process of Spark's, which is used again and again."""

    def __init__(self, group: str, connection: Mapping[str, object]) -> None:
        self._group = group
        self._topic = Control(connection).topic
        self._place = TopicPartition(TOPIC, 0)
        self._board = Board()
        self._consumer: Consumer[bytes, bytes] = Consumer(
            connection, enable_partition_eof=True, auto_offset_reset="earliest", fetch_max_wait_ms=200
        )
        self._consumer.assign({self._place: 0})

    def acting(self) -> frozenset[str]:
        """The names of the rules that act now. A cluster that cannot be asked leaves it at what was known last."""
        deadline = time.monotonic() + _PATIENCE
        try:
            while True:
                changes = list(self._topic.changes(self._consumer, 0 if self._knows else _LOOK))
                for key, document in changes:
                    self._board.take(key, document)
                if not changes and (self._knows or time.monotonic() >= deadline):
                    break
        except ClientError as error:
            log.warning("which rules of %s act cannot be read: %s", self._group, error)
        reports = [each for (group, _), each in self._board.reports.items() if group == self._group]
        newest = max(reports, key=lambda report: report.at, default=None)
        rules = () if newest is None else newest.rules
        return frozenset(rule.name for rule in rules if RuleState(rule.state).acts)

    @property
    def _knows(self) -> bool:
        return self._place in self._consumer.ended


_followers: dict[str, Follower] = {}
_ledgers: dict[str, Ledger] = {}


def _follower(group: str, connection: Mapping[str, object]) -> Follower:
    if group not in _followers:
        _followers[group] = Follower(group, connection)
    return _followers[group]


def _ledger(group: str, connection: Mapping[str, object]) -> Ledger:
    if group not in _ledgers:
        _ledgers[group] = Ledger(connection, group)
    return _ledgers[group]


def _record(row: dict[str, Any], decode: Any) -> Record[Any, Any]:
    headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
    timestamp = -1 if row["timestamp"] is None else round(row["timestamp"].timestamp() * 1000)
    place = row["topic"], row["partition"], row["offset"]
    return Record(*place, row["key"], row["value"], headers, timestamp, None, decode)


def _restored(row: dict[str, Any]) -> dict[str, Any]:
    origin = origin_of(_record(row, None))
    return {
        "topic": origin.topic,
        "partition": origin.partition,
        "offset": origin.offset,
        "timestamp": datetime.fromtimestamp(origin.timestamp / 1000, UTC),
        "headers": [{"key": name, "value": value} for name, value in origin.headers],
    }
