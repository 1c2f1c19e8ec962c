"""Takes notices to one receiver: each by itself, again after a pause when it was not taken, until its time is over.

What does not arrive delays nothing else: not other receivers, which have couriers of their own, and not other notices, which have
their own times. There is one notice of each alert at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from headrace.watch.alerts.notices import Notice
from headrace.watch.alerts.receivers.base import Delivers, NotDelivered
from headrace.watch.alerts.states import Outcome

_WORKERS = 4
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_LOOK_AGAIN = 0.5


class _Stage(StrEnum):
    WAITING = "waiting"
    SENDING = "sending"
    WITHDRAWN = "withdrawn"
    """Still being sent, but not to be tried again."""
    REPORTED = "reported"
    """Over; who asked for it may not have read the report yet."""


@dataclass(slots=True)
class _Errand:
    notice: Notice
    begun: float
    due: float
    stage: _Stage = _Stage.WAITING
    attempts: int = 0
    may_have_arrived: bool = False
    reason: str = "it was not tried"


@dataclass(frozen=True, slots=True)
class Report:
    receiver: str
    notice: Notice
    outcome: Outcome
    attempts: int
    reason: str = ""


class Courier:
    def __init__(
        self,
        name: str,
        receiver: Delivers,
        retry_for: float,
        may_send: Callable[[], bool],
        report: Callable[[Report], None],
        on_retry: Callable[[str, Notice, str], None],
    ) -> None:
        self.name = name
        self._receiver = receiver
        self._retry_for = retry_for
        self._may_send = may_send
        self._report = report
        self._on_retry = on_retry
        self._errands: dict[str, _Errand] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"alerts to {name}", daemon=True)
            for _ in range(_WORKERS)
        ]
        for thread in self._threads:
            thread.start()

    def is_carrying(self, key: str) -> Notice | None:
        """Also one whose report is not `settled` yet: who has not read it would send the notice once more."""
        with self._changed:
            errand = self._errands.get(key)
            return None if errand is None else errand.notice

    def submit(self, notice: Notice) -> None:
        """Only while none of the same alert is under way."""
        with self._changed:
            now = time.monotonic()
            self._errands[notice.key] = _Errand(notice, now, now)
            self._changed.notify()

    def settled(self, key: str) -> None:
        """The report about it has been read."""
        with self._changed:
            self._errands.pop(key, None)

    def withdraw(self, key: str) -> None:
        """What it says is not true any more: try no further, and report it."""
        with self._changed:
            errand = self._errands.get(key)
            if errand is None or errand.stage is _Stage.REPORTED:
                return
            if errand.stage is not _Stage.WAITING:
                errand.stage = _Stage.WITHDRAWN
                return
            errand.stage = _Stage.REPORTED
        self._report(self._given_up(errand))

    def close(self, patience: float) -> None:
        """Deliver what can be delivered at once, and end."""
        deadline = time.monotonic() + patience
        with self._changed:
            while any(
                each.stage is not _Stage.REPORTED and (each.attempts == 0 or each.stage is not _Stage.WAITING)
                for each in self._errands.values()
            ):
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    break
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._receiver.close()

    def _work(self) -> None:
        while True:
            with self._changed:
                errand = self._next()
                if errand is None:
                    if self._closed:
                        return
                    self._changed.wait(_LOOK_AGAIN)
                    continue
                errand.stage = _Stage.SENDING
                errand.attempts += 1
            self._try(errand)

    def _next(self) -> _Errand | None:
        """The one that has waited longest, if it may go now."""
        if self._closed or not self._may_send():
            return None
        now = time.monotonic()
        ready = [each for each in self._errands.values() if each.stage is _Stage.WAITING and each.due <= now]
        return min(ready, key=lambda each: each.due, default=None)

    def _try(self, errand: _Errand) -> None:
        try:
            self._receiver.deliver(errand.notice)
        except NotDelivered as failure:
            errand.reason = str(failure)
            errand.may_have_arrived = errand.may_have_arrived or failure.may_have_arrived
        except Exception as error:  # a mistake of ours in one receiver must not end the thread that serves it
            errand.reason = f"{type(error).__name__} in the receiver"
            errand.may_have_arrived = True
        else:
            self._finish(errand, Report(self.name, errand.notice, Outcome.SENT, errand.attempts))
            return
        now = time.monotonic()
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (errand.attempts - 1))
        with self._changed:
            is_over = errand.stage is _Stage.WITHDRAWN or now + pause - errand.begun > self._retry_for
            if not is_over:
                errand.stage, errand.due = _Stage.WAITING, now + pause
                self._changed.notify_all()
        if is_over:
            self._finish(errand, self._given_up(errand))
        else:
            self._on_retry(self.name, errand.notice, errand.reason)

    def _finish(self, errand: _Errand, report: Report) -> None:
        with self._changed:
            errand.stage = _Stage.REPORTED
            self._changed.notify_all()
        self._report(report)

    def _given_up(self, errand: _Errand) -> Report:
        outcome = Outcome.DOUBTFUL if errand.may_have_arrived else Outcome.FAILED
        return Report(self.name, errand.notice, outcome, errand.attempts, errand.reason)
