"""The outcome of a decision: a result, and the changes to append before the result is reported."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from headrace.server.cluster.changes import Change, PartitionsChanged
from headrace.server.cluster.image import Partition, Topic

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What a decision answers, and what it changes."""

    result: T
    changes: list[Change] = field(default_factory=list)

    def followed_by(self, changes: Iterable[Change]) -> Outcome[T]:
        """The same result with more changes."""
        return Outcome(self.result, [*self.changes, *changes])


class PartitionEdits:
    """Collects new partition states by topic and drops those that change nothing."""

    def __init__(self) -> None:
        self._states: dict[uuid.UUID, dict[int, Partition]] = {}

    def put(self, topic: Topic, index: int, state: Partition) -> None:
        if topic.partition(index) != state:
            self._states.setdefault(topic.id, {})[index] = state

    def changes(self) -> list[Change]:
        return [PartitionsChanged(topic_id, states) for topic_id, states in self._states.items()]
