"""The life of a fetch: its states, the events that change them, and the transitions.

A fetch looks at its partitions when it arrives. If they have enough for it, or it may not wait, it is answered. Otherwise
it watches them and waits: for one to move, or for its time to be up. All that moves in one turn of the loop leads to one
check at the end of the turn, which is another look. A look that needs the disk is taken by a thread, and meanwhile
everything else goes on:

- Nothing is watched during the first look, so one that took a thread may have missed a record: a check follows it.
- A partition that moves during a later look may have been looked at before: a check follows that too.
- When the time is up, one last look is sent, whatever it found; a look under way at that moment is the last.

A fetch is answered by entering ANSWERED, and no way leads there from ANSWERED or FAILED: there is no second answer. What may
still reach a fetch that is over (a check that was put off, a partition that was waking its watchers) changes nothing.
"""

from __future__ import annotations

from enum import IntEnum, auto


class State(IntEnum):
    FIRST_LOOK = auto()
    FIRST_LOOK_IN_THREAD = auto()
    WAITING = auto()
    CHECK_DUE = auto()
    """A partition moved; the end of this turn brings another look."""
    LOOKING = auto()
    MOVED_WHILE_LOOKING = auto()
    LAST_LOOK = auto()
    """The time is up."""
    ANSWERED = auto()
    FAILED = auto()


class Event(IntEnum):
    DISK_NEEDED = auto()
    """A look goes on in a thread."""
    TOO_LITTLE = auto()
    """A look found less than min_bytes."""
    ENOUGH = auto()
    """A look found something to send."""
    MOVED = auto()
    CHECK = auto()
    EXPIRED = auto()
    FAILURE = auto()


TRANSITIONS: dict[State, dict[Event, State]] = {
    State.FIRST_LOOK: {
        Event.DISK_NEEDED: State.FIRST_LOOK_IN_THREAD,
        Event.TOO_LITTLE: State.WAITING,
        Event.ENOUGH: State.ANSWERED,
        Event.FAILURE: State.FAILED,
    },
    State.FIRST_LOOK_IN_THREAD: {
        Event.TOO_LITTLE: State.CHECK_DUE,
        Event.ENOUGH: State.ANSWERED,
        Event.FAILURE: State.FAILED,
    },
    State.WAITING: {
        Event.MOVED: State.CHECK_DUE,
        Event.EXPIRED: State.LAST_LOOK,
        Event.FAILURE: State.FAILED,
    },
    State.CHECK_DUE: {
        Event.MOVED: State.CHECK_DUE,
        Event.CHECK: State.LOOKING,
        Event.EXPIRED: State.LAST_LOOK,
        Event.FAILURE: State.FAILED,
    },
    State.LOOKING: {
        Event.DISK_NEEDED: State.LOOKING,
        Event.MOVED: State.MOVED_WHILE_LOOKING,
        Event.TOO_LITTLE: State.WAITING,
        Event.ENOUGH: State.ANSWERED,
        Event.EXPIRED: State.LAST_LOOK,
        Event.FAILURE: State.FAILED,
    },
    State.MOVED_WHILE_LOOKING: {
        Event.MOVED: State.MOVED_WHILE_LOOKING,
        Event.TOO_LITTLE: State.CHECK_DUE,
        Event.ENOUGH: State.ANSWERED,
        Event.EXPIRED: State.LAST_LOOK,
        Event.FAILURE: State.FAILED,
    },
    State.LAST_LOOK: {
        Event.DISK_NEEDED: State.LAST_LOOK,
        Event.MOVED: State.LAST_LOOK,
        Event.ENOUGH: State.ANSWERED,
        Event.FAILURE: State.FAILED,
    },
    State.ANSWERED: {
        Event.MOVED: State.ANSWERED,
        Event.FAILURE: State.FAILED,
    },
    State.FAILED: {
        Event.MOVED: State.FAILED,
        Event.FAILURE: State.FAILED,
    },
}
