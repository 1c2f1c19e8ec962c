"""What an assignor is given and gives back."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import NamedTuple

Partitions = Mapping[uuid.UUID, frozenset[int]]


class MemberSpec(NamedTuple):
    instance_id: str | None
    topics: frozenset[uuid.UUID]
    """The existing topics it is subscribed to."""
    owned: Partitions
    """What the last target assignment gave it."""


Assignor = Callable[[Mapping[str, MemberSpec], Mapping[uuid.UUID, int]], dict[str, Partitions]]
"""(members by id, partition count by topic id) → partitions by member id, for every member."""
