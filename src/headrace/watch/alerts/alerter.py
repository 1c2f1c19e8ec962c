"""One instance: takes looks, moves alerts through their states, writes them down, and has notices delivered.

Whichever instance holds the election acts; the others look on, so that their windows are full when it is their turn. What is about to be
sent is written first, in a transaction: an instance that was paused while another took over is fenced there and sends nothing. While the
cluster cannot be written to, the one that acts goes on from memory, because that is when alerts matter most.
"""

from __future__ import annotations

import logging
import os
import queue
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

from headrace.client.admin import Admin
from headrace.client.config import connection_settings
from headrace.client.errors import BrokerError, ClientError, ConfigError, FencedError
from headrace.client.repeats import Repeats
from headrace.watch.alerts.away import Away
from headrace.watch.alerts.courier import Courier, Report
from headrace.watch.alerts.declared import Declaration, LogReceiver, Rule
from headrace.watch.alerts.election import Election, Hold
from headrace.watch.alerts.history import Event, Happened
from headrace.watch.alerts.notices import Notice
from headrace.watch.alerts.observer import Look, Observing
from headrace.watch.alerts.receivers.opening import open_receiver
from headrace.watch.alerts.register import Register
from headrace.watch.alerts.silences import Silence
from headrace.watch.alerts.states import Alert, Outcome, Phase, due, tell
from headrace.watch.alerts.store import Acting, Store, Writer

log = logging.getLogger("headrace.alerts")
log.addFilter(Repeats())

T = TypeVar("T")

_TURN = 0.2
_RETRY_WRITING = 5.0
_LAST_NOTICES = 5.0
_PATIENCE_MS = 10_000


class Role(StrEnum):
    STANDBY = "standby"
    ACTING = "acting"


class Alerter:
    def __init__(
        self, declaration: Declaration, config: Mapping[str, object], instance: str | None = None
    ) -> None:
        self._declaration = declaration
        self._connection = connection_settings(config)
        self.instance = instance or f"{socket.gethostname()}:{os.getpid()}"
        self.role = Role.STANDBY
        self._admin = Admin(self._connection, default_api_timeout_ms=_PATIENCE_MS)
        self._store = Store(self._connection)
        self._observing = Observing(declaration, config)
        self._election: Election | None = None
        self._turn_held = 0
        """The election's turn in which this instance took over."""
        self._writer: Writer | None = None
        self._acting = Acting(self.instance, time.time())
        self._register = Register(declaration)
        self._away = Away(declaration)
        self._silences: tuple[Silence, ...] = ()
        self._cluster = declaration.cluster or ""
        self._retry_at = 0.0
        """Of what the cluster refused: monotonic seconds."""
        self._lease = 0.0
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._couriers = {
            name: Courier(
                name,
                open_receiver(receiver, self._connection),
                0.0 if isinstance(receiver, LogReceiver) else receiver.retry_for,
                self._may_send,
                self._reports.put,
                self._tell_of_retry,
            )
            for name, receiver in declaration.receivers.items()
        }

    def run(self, stop: threading.Event) -> None:
        """Until ``stop`` is set."""
        try:
            while not stop.wait(_TURN):
                self._turn()
        finally:
            self._close()

    def _turn(self) -> None:
        self._confirm_after_a_pause()
        begun = time.monotonic()
        self._stand()
        for look in _drain(self._observing.looks):
            self._take(look)
        self._away.judge(time.time(), is_acting=self.role is Role.ACTING)
        for report in _drain(self._reports):
            self._settle(report)
        self._notify(time.time())
        if self.role is Role.ACTING:
            self._write()
        # From the beginning of the turn: a pause in the middle of it has used it up.
        self._lease = begun + self._declaration.failover

    # Whose turn it is.

    def _confirm_after_a_pause(self) -> None:
        """A process that slept for longer than its session must hear from the cluster that it still acts."""
        if self.role is Role.ACTING and self._lease and time.monotonic() > self._lease:
            log.warning("this instance was paused; checking whether another has taken over")
            self._write(confirm=True)

    def _may_send(self) -> bool:
        return time.monotonic() < self._lease

    def _stand(self) -> None:
        if self._election is None:
            self._join()
            return
        self._election.poll()
        hold = self._election.hold
        if hold is Hold.NONE and self.role is Role.ACTING:
            self._step_down("another instance acts now")
        elif hold is Hold.HELD and self._election.turns != self._turn_held:
            self._take_over(self._election.turns)

    def _join(self) -> None:
        if self._away.is_unanswered or time.monotonic() < self._retry_at:
            return
        try:
            self._store.ensure(self._admin)
            self._election = Election(self._connection, self._declaration.failover)
        except ConfigError:
            raise
        except ClientError as error:
            log.warning("the control topics cannot be made or seen: %s", error)
            self._retry_at = time.monotonic() + _RETRY_WRITING

    def _take_over(self, turn: int) -> None:
        """Fence the instance that acted before, then read what it left. Again after a lost session: another one may have acted meanwhile."""
        if time.monotonic() < self._retry_at:
            return
        self._drop_writer()
        try:
            before = self._store.read(self._admin).acting
            writer = self._store.writer()
            self._writer = writer
            acting = Acting(self.instance, time.time())
            writer.write(acting, {}, ())
            stored = self._store.read(self._admin)
            number = max((event.number for event in self._store.history(self._admin)), default=0)
        except ClientError as error:
            log.warning("taking over failed, it is tried again: %s", error)
            self._drop_writer()
            self._retry_at = time.monotonic() + _RETRY_WRITING
            return
        was_acting = self.role is Role.ACTING and before is not None and before.instance == self.instance
        self.role, self._turn_held, self._acting = Role.ACTING, turn, acting
        if was_acting:
            return  # nobody acted meanwhile: what this instance remembers is newer than what it wrote
        log.warning("%s acts now", self.instance)
        self._withdraw_all()
        self._register.load(stored.alerts, number)
        self._register.record(Event(time.time(), Happened.TOOK_OVER, text=f"{self.instance} acts now"))

    def _step_down(self, why: str) -> None:
        log.warning("%s stands by: %s", self.instance, why)
        self.role, self._turn_held = Role.STANDBY, 0
        self._drop_writer()
        self._withdraw_all()
        self._register.clear()

    def _withdraw_all(self) -> None:
        for key in self._register.alerts:
            self._withdraw(key)

    def _withdraw(self, key: str) -> None:
        for courier in self._couriers.values():
            courier.withdraw(key)

    # What is seen.

    def _take(self, look: Look) -> None:
        self._away.take(look)
        for rule, why in look.missing.items():
            log.warning("the rule %s has no data: %s", rule, why)
        if look.away is not None:
            return
        self._cluster = self._declaration.cluster or look.cluster
        if look.silences is not None:
            self._silences = look.silences
        if self.role is Role.ACTING:
            self._register.take(look)

    # What is sent.

    def _alerts(self) -> list[Alert]:
        away = [self._away.alert] if self._away.alert is not None else []
        return [*self._register.alerts.values(), *away]

    def _notify(self, now: float) -> None:
        leaving: list[tuple[Courier, Notice]] = []
        for alert in self._alerts():
            rule = self._declaration.rule(alert.rule)
            silenced = any(silence.covers(alert, now) for silence in self._silences)
            if silenced and alert.phase is Phase.FIRING:
                self._withdraw(alert.key)  # what was refused so far is not tried again
            for name, phase in due(alert, now, self._repeats(alert, rule), silenced=silenced):
                courier = self._couriers.get(name)
                if courier is None:  # it is no longer in the file
                    self._put(tell(alert, name, phase, now, Outcome.FAILED))
                    continue
                carried = courier.is_carrying(alert.key)
                if carried is not None:
                    if carried.phase is not phase:
                        courier.withdraw(alert.key)
                    continue
                kind = rule.kind if rule is not None else ""
                repeat = self._repeats(alert, rule)[name]
                leaving.append((courier, Notice.of(alert, phase, kind, self._cluster, repeat, now)))
        for courier, notice in leaving:
            current = self._find(notice.key)
            if current is not None:
                self._put(tell(current, courier.name, notice.phase, now, Outcome.SENDING))
        if leaving and self.role is Role.ACTING and not self._write():
            return  # fenced: another instance sends them
        for courier, notice in leaving:
            courier.submit(notice)

    def _repeats(self, alert: Alert, rule: Rule | None) -> dict[str, float]:
        known = self._declaration.repeats(rule)
        return {**dict.fromkeys([*alert.receivers, *alert.told], 0.0), **known}

    def _settle(self, report: Report) -> None:
        notice, now = report.notice, time.time()
        self._couriers[report.receiver].settled(notice.key)
        sent = report.outcome is Outcome.SENT
        if not sent:
            log.error(
                "a notice was not delivered to %s after %d attempts: %s: %s",
                report.receiver,
                report.attempts,
                notice.title,
                report.reason,
            )
        alert = self._find(notice.key)
        if alert is None or alert.episode != notice.episode:
            return
        self._acting = replace(
            self._acting, delivered=self._acting.delivered + sent, failed=self._acting.failed + (not sent)
        )
        self._put(tell(alert, report.receiver, notice.phase, now, report.outcome))
        what = Happened.DELIVERED if sent else Happened.NOT_DELIVERED
        text = f"{notice.phase.value}: {report.reason or notice.summary}"
        self._register.record(Event.of(alert, what, now, text, report.receiver))

    def _tell_of_retry(self, receiver: str, notice: Notice, reason: str) -> None:
        log.warning("a notice to %s is tried again: %s: %s", receiver, notice.title, reason)

    def _find(self, key: str) -> Alert | None:
        away = self._away.alert
        return away if away is not None and away.key == key else self._register.alerts.get(key)

    def _put(self, alert: Alert) -> None:
        if self._away.alert is not None and self._away.alert.key == alert.key:
            self._away.put(alert)
        else:
            self._register.put(alert)

    # What is written.

    def _write(self, *, confirm: bool = False) -> bool:
        """False when another instance has taken over. True when it is written, or cannot be for now: then it is tried again."""
        changed, events = self._register.changes()
        if not (changed or events or confirm) or self._writer is None:
            return True
        if not confirm and (self._away.is_unanswered or time.monotonic() < self._retry_at):
            return True
        try:
            self._writer.write(self._acting, changed, events)
        except FencedError:
            self._step_down("another instance has taken over")
            return False
        except BrokerError as error:
            log.warning("the alerts could not be written down, it is tried again: %s", error)
            self._retry_at = time.monotonic() + _RETRY_WRITING
            if not error.retriable:
                self._turn_held = 0  # this writer is of no more use; a new one fences and reads anew
            return True
        self._register.wrote(changed, len(events))
        return True

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _close(self) -> None:
        for courier in self._couriers.values():
            courier.close(_LAST_NOTICES)
        for report in _drain(self._reports):
            self._settle(report)
        if self.role is Role.ACTING:
            self._write()
        self._drop_writer()
        if self._election is not None:
            self._election.close()
        self._observing.close()
        self._admin.close()


def _drain(waiting: queue.SimpleQueue[T]) -> list[T]:
    found = []
    while True:
        try:
            found.append(waiting.get_nowait())
        except queue.Empty:
            return found
