"""The life of a partition's log: its states, the events that change them, and the transitions.

A log is CLOSED after a clean stop and UNCHECKED after anything else, and is opened when it is first touched: one that is
UNCHECKED goes through recovery. A failing disk takes it OFFLINE. Then every call raises KAFKA_STORAGE_ERROR, until `reopen`
brings it back through recovery, which trusts nothing in the page cache. A full disk, or a process that has run out of
descriptors or memory, only refuses what was asked: the log stays OPEN. A log whose partition was deleted or set aside is
RETIRED for good: a thread that has just opened its files closes them again.

The event loop owns this state. A thread may open a log, and fail at it, so opening holds a lock.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from dataclasses import dataclass
from enum import Enum, auto

from headrace.server.log.environment import Environment
from headrace.server.log.files import FULL_DISK
from headrace.server.log.store import LogStore
from headrace.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

_OPENING = [threading.RLock() for _ in range(64)]
_PASSING = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""The process or machine ran out of something other than disk; the log itself is sound."""


class State(Enum):
    UNCHECKED = auto()
    CLOSED = auto()
    OPEN = auto()
    OFFLINE = auto()
    RETIRED = auto()


class Event(Enum):
    OPENED = auto()
    CLOSED = auto()
    FAILED = auto()
    RETIRED = auto()


TRANSITIONS: dict[State, dict[Event, State]] = {
    State.UNCHECKED: {
        Event.OPENED: State.OPEN,
        Event.FAILED: State.OFFLINE,
        Event.RETIRED: State.RETIRED,
    },
    State.CLOSED: {
        Event.OPENED: State.OPEN,
        Event.FAILED: State.OFFLINE,
        Event.RETIRED: State.RETIRED,
    },
    State.OPEN: {
        Event.CLOSED: State.CLOSED,
        Event.FAILED: State.OFFLINE,
        Event.RETIRED: State.RETIRED,
    },
    State.OFFLINE: {
        Event.OPENED: State.OPEN,
        Event.FAILED: State.OFFLINE,
        Event.RETIRED: State.RETIRED,
    },
    State.RETIRED: {
        Event.OPENED: State.RETIRED,
        Event.FAILED: State.RETIRED,
        Event.RETIRED: State.RETIRED,
    },
}


@dataclass(slots=True, frozen=True)
class ReopenFacts:
    """What is known of a log before it is opened: from the checkpoints, or from the summary of a clean stop."""

    clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    end: tuple[int, int] | None = None
    """End offset and size of the active segment, after a clean stop."""


class LogLife:
    """The state of one log, its open files while it is OPEN, and how disk errors change it."""

    __slots__ = (
        "_environment",
        "directory",
        "known_end",
        "name",
        "reason",
        "state",
        "store",
        "truncations",
    )

    def __init__(self, environment: Environment, directory: str, name: str, facts: ReopenFacts) -> None:
        self._environment = environment
        self.directory = directory
        self.name = name
        self.state = State.CLOSED if facts.clean else State.UNCHECKED
        self.store: LogStore | None = None
        """What the log reads and writes; None unless it is OPEN."""
        self.known_end = facts.end
        """See ReopenFacts; None unless the log is CLOSED."""
        self.reason: str | None = None
        """Why the log is OFFLINE or RETIRED."""
        self.truncations = 0
        """How often records were removed from the end, or may have been by a failure."""

    @property
    def opening(self) -> threading.RLock:
        """Held while the directory is opened, which a thread may do while the loop first touches the log."""
        return _OPENING[hash(self.directory) % len(_OPENING)]

    # What happens to it

    def opened(self, store: LogStore) -> None:
        """Serve `store` from now on; KAFKA_STORAGE_ERROR when the log was retired while a thread opened it."""
        self.state = TRANSITIONS[self.state][Event.OPENED]
        if self.state is State.OPEN:
            self.known_end = None
            self.reason = None
            self.store = store
        else:
            store.release()
            self.check_usable()

    def closed(self, end: tuple[int, int]) -> None:
        """Everything is on the disk."""
        self.state = TRANSITIONS[self.state][Event.CLOSED]
        self.known_end = end
        self._drop_store()

    def moved(self, directory: str, store: LogStore) -> None:
        """Serve another copy of the log from now on. What threads are about to do with the files until now must not count."""
        self.directory = directory
        self.store = store
        self.truncations += 1

    def fail(self, reason: str) -> KafkaError:
        """Go offline; returns the error to raise."""
        if self.reason is None:
            logger.error("%s goes offline: %s.", self.name, reason)
        self._refuse(Event.FAILED, reason)
        return self.storage_error(reason)

    def retire(self, reason: str) -> LogStore | None:
        """Refuse everything for good, without an error in the log; returns the store that was open."""
        return self._refuse(Event.RETIRED, reason)

    def _refuse(self, event: Event, reason: str) -> LogStore | None:
        if self.state is not State.RETIRED:
            self.reason = reason
        self.state = TRANSITIONS[self.state][event]
        self.known_end = None
        self.truncations += 1
        return self._drop_store()

    def _drop_store(self) -> LogStore | None:
        store, self.store = self.store, None
        if store is not None:
            store.release()
        return store

    # What an error means

    def check_usable(self) -> None:
        """KAFKA_STORAGE_ERROR while the log is OFFLINE or RETIRED."""
        if self.reason is not None:
            raise self.storage_error(self.reason)

    def storage_error(self, reason: str) -> KafkaError:
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} in {self.directory} is offline: {reason}."
        )

    def read_failed(self, error: OSError) -> KafkaError:
        """Go offline unless the error has nothing to do with the disk; returns the error to raise."""
        if error.errno in _PASSING:
            return self._passing_error(error)
        return self.fail(f"reading failed: {error}")

    def write_failed(self, store: LogStore, error: OSError) -> KafkaError:
        """Undo a write that may succeed another time, or go offline; returns the error to raise."""
        if error.errno not in _PASSING and error.errno not in FULL_DISK:
            return self.fail(f"writing failed: {error}")
        if store.active.torn:
            try:
                store.active.cut_partial_write()
            except OSError as second:
                return self.fail(f"a partial write cannot be undone: {second}")
        if error.errno in _PASSING:
            return self._passing_error(error)
        self._environment.note_full_disk(os.path.dirname(self.directory))
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"No room is left on the disk of {self.directory} for {self.name}; free some and try again.",
        )

    def _passing_error(self, error: OSError) -> KafkaError:
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{self.name} cannot be used right now: {error.strerror}. Raise the limit of open files (ulimit -n).",
        )
