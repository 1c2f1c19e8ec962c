"""Agreeing to a divert: a runner leaves its group for a moment, so that the group's offsets can be moved, and comes back.

`headrace backlog divert --wait` asks for it, by the state of the divert in the compacted topic `__headrace_backlogs`. Asked once, a runner
stays away for a minute at most: a command that was killed stops nobody for good.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from headrace.client.control_follower import ControlFollower, Table

TOPIC = "__headrace_backlogs"
ASKING = frozenset({"preparing", "moving"})
"""States of a divert in which the group's offsets are about to be moved."""
_LONGEST = 60.0


class SteppingAside:
    def __init__(self, config: Mapping[str, object], group: str, topics: Collection[str]) -> None:
        """Without ``topics``, for a divert of any topic."""
        self._group = group
        self._topics = frozenset(topics)
        self._asked: dict[str, dict[str, Any]] = {}
        self._until = 0.0
        self._follower = ControlFollower(TOPIC, config, self._changed)

    @property
    def is_asked(self) -> bool:
        return time.monotonic() < self._until

    def close(self) -> None:
        self._follower.close()

    def _changed(self, table: Table) -> None:
        asked = {key: each for key, each in table.items() if self._concerns(each)}
        if not asked:
            self._until = 0.0
        elif asked != self._asked:
            self._until = time.monotonic() + _LONGEST
        self._asked = asked

    def _concerns(self, divert: Mapping[str, Any]) -> bool:
        return (
            divert.get("group") == self._group
            and (not self._topics or divert.get("topic") in self._topics)
            and divert.get("state") in ASKING
        )
