"""What is known of one divert: plain values, as they stand in the control topic."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.backlog.states import NEXT, State, Way
from headrace.client.control_documents import Document
from headrace.client.record import TopicPartition

SUFFIX = ".backlog"
FRESH_SUFFIX = ".fresh"

Places = dict[int, int]
"""An offset for each partition of the topic."""


@dataclass(frozen=True, slots=True)
class Divert:
    group: str
    topic: str
    way: Way
    state: State
    before: Places
    """Where the group was: the first record of the backlog."""
    cut: Places
    """The end of each partition at the divert: the first record that is not of the backlog."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    since: float = field(default_factory=time.time)
    moved_from: Places = field(default_factory=dict)
    """While UNDOING: where the group was when it began."""
    moved_to: Places = field(default_factory=dict)
    """While UNDOING: where it goes on."""
    proof: Mapping[str, Any] = field(default_factory=dict)
    """Once JOINED or UNDONE: the offsets that show that nothing was skipped or left over."""

    @property
    def backlog_group(self) -> str:
        return f"{self.group}{SUFFIX}"

    @property
    def copy(self) -> str:
        """The topic of the copy; a group's name may have characters that a topic's may not."""
        return re.sub(r"[^a-zA-Z0-9._-]", "_", f"{self.topic}{SUFFIX}.{self.group}")[:249]

    @property
    def fresh(self) -> str:
        """The topic that new records are written to."""
        return f"{self.topic}{FRESH_SUFFIX}"

    @property
    def backlog_topic(self) -> str:
        """Where the backlog is read."""
        return self.copy if self.way is Way.COPY else self.topic

    @property
    def records(self) -> int:
        """How many offsets the backlog had at the divert."""
        return sum(self.cut[each] - self.before[each] for each in self.cut)

    @property
    def note(self) -> str:
        """Stands beside the offsets that this divert commits for the group, until the group commits its own."""
        return f"headrace backlog {self.id}"

    def at(self, places: Places) -> dict[TopicPartition, int]:
        return {TopicPartition(self.topic, number): offset for number, offset in places.items()}

    def becomes(self, state: State, **changes: Any) -> Divert:
        if state not in NEXT[self.state]:
            raise ValueError(f"a divert that is {self.state} cannot become {state}")
        return replace(self, state=state, **changes)

    def as_document(self) -> Document:
        return {
            "group": self.group,
            "topic": self.topic,
            "way": self.way.value,
            "state": self.state.value,
            "id": self.id,
            "since": self.since,
            "before": _texts(self.before),
            "cut": _texts(self.cut),
            "moved_from": _texts(self.moved_from),
            "moved_to": _texts(self.moved_to),
            "proof": dict(self.proof),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Divert | None:
        """None for what another version has written and this one does not understand."""
        try:
            return cls(
                document["group"],
                document["topic"],
                Way(document["way"]),
                State(document["state"]),
                _places(document["before"]),
                _places(document["cut"]),
                document["id"],
                document["since"],
                _places(document["moved_from"]),
                _places(document["moved_to"]),
                document["proof"],
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return None


def _texts(places: Places) -> dict[str, int]:
    return {str(number): offset for number, offset in sorted(places.items())}


def _places(texts: Mapping[str, int]) -> Places:
    return {int(number): int(offset) for number, offset in texts.items()}
