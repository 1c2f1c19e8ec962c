"""One run from start to stop: what is run is looked after again and again until it is done, fails or is stopped.

`supervise` does that in the caller's thread, as the commands want it; `in_background` in a thread of its own, as programs do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import StrEnum
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from headrace.streaming.errors import StreamingError

_LOOK = 0.5
"""Seconds from one look to the next."""

Status = TypeVar("Status")


class Ending(StrEnum):
    """How supervision ended, in the word that status files use."""

    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


class Work(Protocol[Status]):
    """What a run is about: connectors, or a pipeline. Only one thread at a time calls anything but `statuses`."""

    def start(self) -> None:
        """Check and start everything. When that fails, nothing is left running, and the reason is reported."""

    def turn(self) -> Ending | None:
        """Look after everything once and report; None while there is more to do. Raises when it cannot continue."""

    def end(self, ending: Ending, error: Exception | None) -> None:
        """Stop what still runs, in bounded time, and report."""

    def failure(self) -> StreamingError | None:
        """Failures that did not stop the rest, for the end of the run."""

    def close(self) -> None:
        """Release Spark and the locks, even when it was never started."""

    def statuses(self) -> list[Status]:
        """What was last reported."""


class Run(Generic[Status]):
    """Connectors or a pipeline that run here. As a context manager it stops at the end of the block."""

    def __init__(self, work: Work[Status]) -> None:
        self._work = work
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._must_end = False
        """Started, and not yet supervised: closing it has to end it first."""

    # For everybody

    @property
    def statuses(self) -> list[Status]:
        """How each connector or flow is doing, at most half a second old while it runs."""
        return self._work.statuses()

    def start(self) -> None:
        """Check and start everything in this thread; what is wrong is raised, and then nothing runs."""
        self._work.start()
        self._must_end = True

    def close(self) -> None:
        """Release Spark and the locks."""
        try:
            if self._must_end:
                self._must_end = False
                self._work.end(Ending.STOPPED, None)
        finally:
            self._work.close()

    # In the caller's thread

    def supervise(
        self, look: Callable[[], None] = lambda: None, stopping: Callable[[], None] = lambda: None
    ) -> Ending:
        """Until everything is done, fails or is stopped; an interrupt stops it, too. ``look`` is called after every turn,
        ``stopping`` when it is stopped before it was done. Raises what it failed with."""
        ending = Ending.STOPPED
        error: Exception | None = None
        self._must_end = False
        try:
            ending, error = self._until_it_ends(look)
        finally:
            try:
                if ending is Ending.STOPPED:
                    stopping()
            finally:
                self._work.end(ending, error)
        error = error or self._work.failure()
        if error is not None:
            raise error
        return ending

    def _until_it_ends(self, look: Callable[[], None]) -> tuple[Ending, Exception | None]:
        while True:
            try:
                ending = self._work.turn()
            except Exception as error:
                return Ending.FAILED, error
            if ending is not None:
                return ending, None
            look()
            if self._stop.wait(_LOOK):
                return Ending.STOPPED, None

    # In a thread of its own

    def in_background(self) -> Self:
        """Start, then continue in a thread; returns when everything is started."""
        try:
            self.start()
            thread = threading.Thread(target=self._work_in_background, name="headrace-run", daemon=True)
            thread.start()
        except BaseException:
            self.close()
            raise
        self._thread = thread
        return self

    @property
    def is_active(self) -> bool:
        """Whether anything still runs in the background."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until everything is done; false when it is not in so many seconds. Raises what it failed with."""
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                return False
        if self._failure is not None:
            raise self._failure
        return True

    def stop(self) -> None:
        """Stop everything, in bounded time; what a batch has begun, the next run does again. Raises what it failed with."""
        self._stop.set()
        self.wait()

    def _work_in_background(self) -> None:
        try:
            try:
                self.supervise()
            finally:
                self.close()
        except Exception as error:
            self._failure = error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is None:
            self.close()
        elif error is None:
            self.stop()
        else:  # the block's own error is the one to see
            self._stop.set()
            self._thread.join()
