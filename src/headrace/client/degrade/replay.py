"""Brings back what a group has dropped: its records, from where they still are, into `<group>.replay`.

Records and the note that they were replayed are one transaction, so that a replay that is killed, or run twice, goes on where the last
committed one ended and sends nothing twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from headrace.client.admin import Admin
from headrace.client.config import connection_settings
from headrace.client.dead_letters import FOR_ANY_SIZE
from headrace.client.degrade import notes
from headrace.client.degrade.notes import Drop, Notes
from headrace.client.degrade.replayed import headers_for, topic_of
from headrace.client.errors import ConfigError
from headrace.client.producer import Producer
from headrace.client.record import Record, TopicPartition
from headrace.client.scan import scan
from headrace.client.spans import Spans

_BATCH = 500
_FAR = 20_000
"""Offsets between two dropped records from which on it is cheaper to begin reading anew."""


@dataclass(frozen=True, slots=True)
class Outcome:
    replayed: int
    lost: int
    """No longer in the topic: retention or compaction has deleted them."""


class Replay:
    def __init__(
        self,
        config: Mapping[str, object],
        group: str,
        *,
        rules: Collection[str] = (),
        to: str | None = None,
        rate: float | None = None,
    ) -> None:
        """``rules`` are those whose drops are brought back, all without any; ``rate`` is at most so many records a second."""
        self.target = to or topic_of(group)
        self._connection = connection_settings(config)
        self._group = group
        self._rules = rules
        self._rate = rate
        self._notes = Notes(self._connection, group)

    def run(
        self, advance: Callable[[int], None], found: Callable[[int], None] = lambda total: None
    ) -> Outcome:
        """``found`` is told how many there are before the first, ``advance`` how many have just been committed."""
        settings = {
            **self._connection,
            **FOR_ANY_SIZE,
            "transactional.id": f"headrace.degrade.replay.{self._group}",
        }
        with Admin(self._connection) as admin, Producer[bytes, bytes](settings) as producer:
            known = admin.topics()
            if self._notes.topic not in known:
                raise ConfigError(
                    f"the group {self._group} has never dropped anything: there is no topic {self._notes.topic}"
                )
            if self.target not in known:
                raise ConfigError(f"there is no topic {self.target} to replay into; create it first")
            width = len(admin.topic(self.target).partitions)
            with producer.transaction():
                pass  # an earlier replay that was killed, or still runs, can commit nothing from here on
            left = self._left(admin)
            found(sum(map(len, left.values())))
            replayed = lost = 0
            for drop, offsets in left.items():
                if drop.topic not in known:
                    raise ConfigError(
                        f"the topic {drop.topic} is gone, and {len(offsets)} dropped records with it; "
                        f"the notes in {self._notes.topic} name their offsets"
                    )
                for found_records, covered in self._batches(drop, offsets):
                    self._commit(producer, drop, found_records, covered, width)
                    replayed += len(found_records)
                    lost += len(covered) - len(found_records)
                    advance(len(covered))
        return Outcome(replayed, lost)

    def _left(self, admin: Admin) -> dict[Drop, Spans]:
        """Each record once, whichever rules have dropped it."""
        left: dict[tuple[str, int, str | None], tuple[Drop, Spans]] = {}
        for drop, spans in self._notes.read(admin).left.items():
            if spans and (not self._rules or drop.rule in self._rules):
                left.setdefault(drop[:3], (drop, Spans()))[1].update(spans)
        return dict(left.values())

    def _batches(self, drop: Drop, offsets: Spans) -> Iterator[tuple[list[Record[bytes, bytes]], Spans]]:
        """Records that are still there, and the offsets they stand for, with those between them that are gone."""
        rest, size = offsets.copy(), min(_BATCH, max(1, round(self._rate or _BATCH)))
        batch: list[Record[bytes, bytes]] = []
        for record in self._records(drop, offsets):
            batch.append(record)
            if len(batch) >= size:
                yield batch, _cut(rest, record.offset)
                batch = []
        if rest:
            yield batch, rest

    def _records(self, drop: Drop, offsets: Spans) -> Iterator[Record[bytes, bytes]]:
        place = TopicPartition(drop.topic, drop.partition)
        for start, end in _stretches(offsets):
            for record in scan(self._connection, {place: start}):
                if record.offset > end:
                    break
                if record.offset in offsets:
                    yield record

    def _commit(
        self,
        producer: Producer[bytes, bytes],
        drop: Drop,
        records: list[Record[bytes, bytes]],
        covered: Spans,
        width: int,
    ) -> None:
        began = time.monotonic()
        there = Spans.of(record.offset for record in records)
        gone = covered.copy()
        gone.subtract(there)
        with producer.transaction():
            sent = [
                producer.send(
                    self.target,
                    record.raw_value,
                    key=record.raw_key,
                    partition=drop.partition % width,
                    headers=headers_for(record, drop.handler, drop.rule),
                )
                for record in records
            ]
            for kind, offsets in ((notes.REPLAYED, there), (notes.LOST, gone)):
                sent += self._notes.send(producer, kind, drop, offsets)
            for each in sent:
                each.result()
        if self._rate is not None:
            time.sleep(max(0.0, len(records) / self._rate - (time.monotonic() - began)))


def _cut(spans: Spans, last: int) -> Spans:
    """Take away and return all up to ``last``."""
    taken = Spans((low, min(high, last)) for low, high in spans if low <= last)
    spans.subtract(taken)
    return taken


def _stretches(offsets: Spans) -> Iterator[tuple[int, int]]:
    """From where to where to read in one go."""
    start: int | None = None
    end = 0
    for low, high in offsets:
        if start is not None and low - end > _FAR:
            yield start, end
            start = None
        if start is None:
            start = low
        end = high
    if start is not None:
        yield start, end
