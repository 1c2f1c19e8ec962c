"""The ways to divert a backlog, and the life of a divert, drawn: its states and every step from one to the next.

A step is written to the control topic before the next thing is changed. A command that is run again after a crash finds out what is
already done and continues there. In PREPARING nothing of the group has changed. In MOVING its offsets may
have, or not. COPYING is DIVERTED while the copy is not complete. JOINING and UNDOING are carried to their end by the same command.

A route and the state change in one transaction, so the fresh topic needs no MOVING: from PREPARING it is DIVERTED. When records came to
the fresh topic while its divert was UNDOING, it is JOINING instead.
"""

from __future__ import annotations

from enum import StrEnum


class Way(StrEnum):
    OFFSETS = "offsets"
    """The group goes on from the cut; GROUP.backlog reads the same topic up to it."""
    COPY = "copy"
    """The group goes on from the cut; GROUP.backlog reads a copy of what lies before it."""
    FRESH = "fresh"
    """Producers of headrace.client write to a fresh topic; the old one drains."""


class State(StrEnum):
    PREPARING = "preparing"
    MOVING = "moving"
    COPYING = "copying"
    DIVERTED = "diverted"
    JOINING = "joining"
    JOINED = "joined"
    UNDOING = "undoing"
    UNDONE = "undone"

    @property
    def over(self) -> bool:
        return self in (State.JOINED, State.UNDONE)


NEXT: dict[State, frozenset[State]] = {
    State.PREPARING: frozenset({State.PREPARING, State.MOVING, State.DIVERTED, State.UNDONE}),
    State.MOVING: frozenset(
        {State.PREPARING, State.MOVING, State.COPYING, State.DIVERTED, State.UNDOING, State.UNDONE}
    ),
    State.COPYING: frozenset({State.COPYING, State.DIVERTED, State.UNDOING}),
    State.DIVERTED: frozenset({State.JOINING, State.UNDOING}),
    State.JOINING: frozenset({State.JOINING, State.JOINED}),
    State.UNDOING: frozenset({State.UNDOING, State.UNDONE, State.JOINING}),
    State.JOINED: frozenset({State.PREPARING}),
    State.UNDONE: frozenset({State.PREPARING}),
}
