"""The seven compatibility levels: which earlier versions a new schema is compared with, and in which direction.

Messages have Confluent's form, because people search for them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from headrace.registry.formats.base import Parsed

_LONGEST_SHOWN = 10 * 1024
DIFFERENT_TYPE = "Incompatible because of different schema type"


class Level(StrEnum):
    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def new_reads_old(self) -> bool:
        return self.startswith(("BACKWARD", "FULL"))

    @property
    def old_reads_new(self) -> bool:
        return self.startswith(("FORWARD", "FULL"))

    @property
    def transitive(self) -> bool:
        return self.endswith("_TRANSITIVE")

    @classmethod
    def named(cls, text: str) -> Level | None:
        return cls.__members__.get(text.upper())


@dataclass(frozen=True, slots=True)
class Earlier:
    """A version to be held against; it is parsed when it is its turn."""

    version: int
    parse: Callable[[], Awaitable[Parsed]]


async def check(
    level: Level, new: Parsed, newest_first: Sequence[Earlier], *, lenient: bool = False
) -> list[str]:
    """Why `new` must not follow these versions, as of the first one it is incompatible with; empty when it may."""
    if level is Level.NONE:
        return []
    for earlier in newest_first if level.transitive else newest_first[:1]:
        if found := compare(level, new, await earlier.parse(), earlier.version, lenient=lenient):
            return found
    return []


def compare(level: Level, new: Parsed, old: Parsed, version: int, *, lenient: bool = False) -> list[str]:
    if new.kind != old.kind:
        return [DIFFERENT_TYPE]
    found: list[str] = []
    if level.old_reads_new:
        found += [each.told("old", "new") for each in old.differences_to(new, lenient=lenient)]
    if level.new_reads_old:
        found += [each.told("new", "old") for each in new.differences_to(old, lenient=lenient)]
    if not found:
        return []
    text = old.canonical
    shown = f"'{text}'" if len(text) <= _LONGEST_SHOWN else f"<truncated> '{text[:_LONGEST_SHOWN]}...'"
    return [*found, f"{{oldSchemaVersion: {version}}}", f"{{oldSchema: {shown}}}"]
