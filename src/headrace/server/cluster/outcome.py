"""What an operation of the controller comes to: an answer, and the changes to append before it is given."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from headrace.server.cluster.changes import Change, PartitionsChanged
from headrace.server.cluster.image import Partition, Topic

T = TypeVar("T")


@dataclass(slots=True)
class Outcome(Generic[T]):
    result: T
    changes: list[Change] = field(default_factory=list)


class PartitionEdits:
    """Collects new partition states by topic, leaving out those that are the same as before."""

    def __init__(self) -> None:
        self._states: dict[uuid.UUID, dict[int, Partition]] = {}

    def put(self, topic: Topic, index: int, state: Partition) -> bool:
        """Whether it changes anything."""
        if topic.partition(index) == state:
            return False
        self._states.setdefault(topic.id, {})[index] = state
        return True

    def changes(self) -> list[Change]:
        return [PartitionsChanged(topic_id, states) for topic_id, states in self._states.items()]

    def __len__(self) -> int:
        return sum(map(len, self._states.values()))
