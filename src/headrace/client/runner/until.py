"""Where a run ends: an offset for each partition. No record from there on is handled, and the run is over when the group has nothing
unread before them, in partitions of other members neither."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from headrace.client.admin import Admin, session_of
from headrace.client.config import connection_settings
from headrace.client.errors import BrokerError
from headrace.client.left_to_read import unread
from headrace.client.positions import Offsets
from headrace.client.record import Record, TopicPartition

_BETWEEN_LOOKS = 1.0
log = logging.getLogger("headrace.client.runner")


class Until:
    def __init__(self, config: Mapping[str, object], group: str, ends: Offsets) -> None:
        self._connection = connection_settings(config)
        self._group = group
        self._ends = {TopicPartition(*partition): offset for partition, offset in ends.items()}
        self._next_look = 0.0
        self.passed: set[TopicPartition] = set()
        """Assigned partitions that have nothing left for this run: they stay paused."""

    def before(self, records: Iterable[Record[Any, Any]]) -> list[Record[Any, Any]]:
        """The records that are to be handled."""
        kept = []
        for record in records:
            if record.offset < self._ends.get(record.topic_partition, 0):
                kept.append(record)
            else:
                self.passed.add(record.topic_partition)
        return kept

    def gone(self, partitions: Collection[TopicPartition]) -> None:
        self.passed.difference_update(partitions)

    def look_is_due(self, load: Mapping[TopicPartition, int]) -> bool:
        """Whether to ask `is_over`: now and then, while nothing is under way here."""
        if any(load.values()) or time.monotonic() < self._next_look:
            return False
        self._next_look = time.monotonic() + _BETWEEN_LOOKS
        return True

    def is_over(self) -> bool:
        """Asks the cluster, and takes a moment."""
        try:
            with Admin(self._connection) as admin:
                return not unread(session_of(admin), self._connection, self._group, self._ends)
        except BrokerError as error:
            log.warning("whether the run is at its end is not known yet: %s", error)
            return False
