"""What a group has dropped, by exact offsets, in the topic `<group>.degraded`; and what of it has been replayed since.

A note says kind (dropped, replayed, lost), topic, partition, handler, rule and offsets. Read in order, the notes give what is still to
be replayed: dropped adds, replayed and lost take away. They hold no records, so writing them costs next to nothing under load.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headrace.client.admin import Admin
from headrace.client.config import connection_settings
from headrace.client.control_topic import create_safe
from headrace.client.errors import ClientError
from headrace.client.producer import Producer
from headrace.client.record import RecordMetadata, TopicPartition
from headrace.client.scan import scan
from headrace.client.spans import Spans

SUFFIX = ".degraded"
DROPPED, REPLAYED, LOST = "dropped", "replayed", "lost"
_MOST_TEXT = 200_000
"""Characters of offsets in one note, far below any limit of a topic."""
_QUICK: dict[str, object] = {"linger.ms": 0, "delivery.timeout.ms": 10_000, "request.timeout.ms": 5_000}


class Drop(NamedTuple):
    """Which records: of one partition, for one handler (None: all of them), by one rule."""

    topic: str
    partition: int
    handler: str | None
    rule: str
    reason: str


class Notes:
    """The topic of one group's notes."""

    def __init__(self, config: Mapping[str, object], group: str) -> None:
        self.topic = group + SUFFIX
        self._connection = connection_settings(config)

    def ensure(self, admin: Admin) -> None:
        # They say what is left to do, so they stay until somebody deletes them.
        if self.topic not in admin.topics():
            create_safe(admin, self.topic, {"cleanup.policy": "delete", "retention.ms": "-1"})

    def send(
        self, producer: Producer[Any, Any], kind: str, drop: Drop, offsets: Spans
    ) -> list[Future[RecordMetadata]]:
        sent = []
        for part in _parts(offsets):
            document = {
                "kind": kind,
                **drop._asdict(),
                "offsets": str(part),
                "count": len(part),
                "at": time.time(),
            }
            value = json.dumps(document, separators=(",", ":")).encode()
            key = f"{drop.topic}/{drop.partition}".encode()
            sent.append(producer.send(self.topic, value, key=key, partition=0))
        return sent

    def read(self, admin: Admin) -> Account:
        account = Account()
        if self.topic in admin.topics():
            for record in scan(self._connection, {TopicPartition(self.topic, 0): None}):
                account.take(record.value)
        return account


@dataclass(slots=True)
class Account:
    """The sum of all notes."""

    left: dict[Drop, Spans] = field(default_factory=dict)
    """Still to be replayed."""
    counts: dict[tuple[str, Drop], int] = field(default_factory=dict)

    def take(self, note: bytes | None) -> None:
        try:
            document = json.loads(note or b"")
            drop = Drop(*(document[name] for name in Drop._fields))
            kind, offsets = document["kind"], Spans.from_text(document["offsets"])
        except (ValueError, KeyError, TypeError):
            return  # not a note of ours
        if kind == DROPPED:
            before = len(self.left.setdefault(drop, Spans()))
            self.left[drop].update(offsets)
            self._count(kind, drop, len(self.left[drop]) - before)
        elif kind in (REPLAYED, LOST):
            for other, spans in self.left.items():
                if other[:3] == drop[:3]:
                    before = len(spans)
                    spans.subtract(offsets)
                    self._count(kind, other, before - len(spans))

    def _count(self, kind: str, drop: Drop, number: int) -> None:
        self.counts[kind, drop] = self.counts.get((kind, drop), 0) + number

    def total(self, kind: str, rule: str | None = None) -> int:
        return sum(
            number
            for (each, drop), number in self.counts.items()
            if each == kind and rule in (None, drop.rule)
        )

    @property
    def remaining(self) -> int:
        return sum(map(len, self.left.values()))


class Ledger:
    """Takes drops from any thread, and writes them down before their offsets may be committed."""

    def __init__(self, config: Mapping[str, object], group: str) -> None:
        self._connection = connection_settings(config)
        self._notes = Notes(config, group)
        self._producer: Producer[bytes, bytes] | None = None
        self._pending: dict[Drop, list[int]] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self.counts: dict[Drop, int] = {}
        """Records dropped and written down since the start."""

    def add(self, drop: Drop, offset: int) -> None:
        with self._lock:
            self._pending.setdefault(drop, []).append(offset)

    def write(self) -> None:
        """Write down all that was added before this call; raises ClientError when it is not certain that it is."""
        with self._writing:
            with self._lock:
                pending, self._pending = self._pending, {}
            if not pending:
                return
            try:
                self._send(pending)
            except ClientError:
                with self._lock:
                    for drop, offsets in pending.items():
                        self._pending.setdefault(drop, []).extend(offsets)
                raise
            for drop, offsets in pending.items():
                self.counts[drop] = self.counts.get(drop, 0) + len(offsets)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """They belong to somebody else by now, who drops or handles what was not committed."""
        gone = set(partitions)
        with self._lock:
            self._pending = {
                drop: offsets
                for drop, offsets in self._pending.items()
                if TopicPartition(drop.topic, drop.partition) not in gone
            }

    def dropped_by(self, rule: str) -> int:
        return sum(number for drop, number in self.counts.copy().items() if drop.rule == rule)

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()

    def _send(self, pending: Mapping[Drop, list[int]]) -> None:
        if self._producer is None:
            # Without idempotence, which can end for good; a note that is there twice says nothing new.
            self._producer = Producer({**self._connection, **_QUICK, "enable.idempotence": False})
        sent = [
            future
            for drop, offsets in pending.items()
            for future in self._notes.send(self._producer, DROPPED, drop, Spans.of(offsets))
        ]
        for each in sent:
            each.result()


def _parts(offsets: Spans) -> Iterable[Spans]:
    part, size = Spans(), 0
    for first, last in offsets:
        part.add(first, last)
        size += len(str(first)) + len(str(last)) + 2
        if size > _MOST_TEXT:
            yield part
            part, size = Spans(), 0
    if part:
        yield part
