"""The rules of one group in this process: follows the control topic and the lags in a thread, and keeps `active` up to date.

A command acts within a fraction of a second. While the cluster does not answer, every rule stays as it is.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence

from headrace.client.admin import Admin
from headrace.client.config import connection_settings
from headrace.client.consumer import Consumer
from headrace.client.degrade.control import RENEWED_EVERY, TOPIC, Board, Control, Report
from headrace.client.degrade.notes import Notes
from headrace.client.degrade.replayed import topic_of
from headrace.client.degrade.rules import Rule
from headrace.client.degrade.switchboard import Active, Switchboard
from headrace.client.errors import BrokerError, ClientError
from headrace.client.lag_watch import LagWatch
from headrace.client.producer import Producer
from headrace.client.record import TopicPartition
from headrace.client.repeats import Repeats

log = logging.getLogger("headrace.client.degrade")
log.addFilter(Repeats())

_TURN = 0.2
_LAG_INTERVAL = 1.0
_PAUSE_AFTER_FAILURE = 1.0
_LAST_TURN = 5.0
_ROOM_FOR_HEADERS = 64 * 1024
_QUICK: dict[str, object] = {"linger.ms": 0, "delivery.timeout.ms": 5_000, "request.timeout.ms": 4_000}


class Degrader:
    def __init__(
        self,
        config: Mapping[str, object],
        group: str,
        rules: Sequence[Rule],
        *,
        kind: str,
        topics: Sequence[str],
        dropped_by: Callable[[str], int] = lambda rule: 0,
    ) -> None:
        self.active = Active()
        self.board = Switchboard(group, rules, time.time())
        self.instance = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:6]}"
        self._connection = connection_settings(config)
        self._kind = kind
        self._topics = topics
        self._dropped_by = dropped_by
        self._control = Control(self._connection)
        self._known = Board()
        self._lags: LagWatch | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._reported = 0.0

    def start(self, is_stopping: Callable[[], bool]) -> None:
        """Returns when the commands there are have been read: what is switched off begins switched off."""
        while not is_stopping():
            try:
                self._ensure()
                break
            except BrokerError as error:
                if error.code >= 0 and not error.retriable:
                    raise  # the cluster has refused, and would again
                log.warning("the rules of %s cannot begin yet: %s", self.board.group, error)
                time.sleep(_PAUSE_AFTER_FAILURE)
        if groups := self.board.watched_groups():
            self._lags = LagWatch(self._connection, groups, _LAG_INTERVAL)
        ready = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(ready,), name="degrade", daemon=True)
        self._thread.start()
        while not ready.wait(_TURN) and not is_stopping():
            pass

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join(_LAST_TURN)
        if self._lags is not None:
            self._lags.close()

    def _ensure(self) -> None:
        group = self.board.group
        with Admin(self._connection) as admin:
            self._control.ensure(admin)
            Notes(self._connection, group).ensure(admin)
            known = admin.topics()
            if topic_of(group) not in known:
                # What its source could hold must fit, and a key stays in the partition of its number.
                there = [name for name in self._topics if name in known]
                sources = [admin.topic(name) for name in there]
                limits = [admin.topic_config(name).get("max.message.bytes") for name in there]
                most = max((int(limit) for limit in limits if limit), default=0) + _ROOM_FOR_HEADERS
                admin.create_topic(
                    topic_of(group),
                    partitions=max((len(each.partitions) for each in sources), default=1),
                    config={"max.message.bytes": str(most)},
                    exist_ok=True,
                )

    def _work(self, ready: threading.Event) -> None:
        place = TopicPartition(TOPIC, 0)
        follower: Consumer[bytes, bytes] = Consumer(
            self._connection, enable_partition_eof=True, auto_offset_reset="earliest", fetch_max_wait_ms=200
        )
        reporter: Producer[bytes, bytes] = Producer(
            {**self._connection, **_QUICK, "enable.idempotence": False}
        )
        with follower, reporter:
            follower.assign({place: 0})
            while not self._closed.is_set():
                try:
                    for key, document in self._control.topic.changes(follower, _TURN):
                        self._known.take(key, document)
                except ClientError as error:
                    log.warning("commands for %s cannot be read: %s", self.board.group, error)
                    self._closed.wait(_PAUSE_AFTER_FAILURE)
                if not ready.is_set():
                    if place not in follower.ended:
                        continue
                    self.board.resume(self._known.of(self.board.group, time.time()))
                self._turn(reporter)
                ready.set()
            self._say(lambda: self._control.forget(reporter, self.board.group, self.instance))

    def _turn(self, reporter: Producer[bytes, bytes]) -> None:
        now = time.time()
        lags = self._lags
        before = self.board.places.copy()
        changed = self.board.step(self._known, lambda group: None if lags is None else lags.lag(group), now)
        if changed or not self._reported:
            for name, place in self.board.places.items():
                if place.state is not before[name].state:
                    why = "" if place.why is None else f": {place.why}"
                    log.warning("rule %s of %s is %s%s", name, self.board.group, place.state, why)
            self.active = self.board.active()
        if changed or now - self._reported >= RENEWED_EVERY:
            self._reported = now
            rules = self.board.reports(self._dropped_by)
            report = Report(self.board.group, self.instance, self._kind, now, rules)
            self._say(lambda: self._control.report(reporter, report))

    def _say(self, send: Callable[[], None]) -> None:
        try:
            send()
        except ClientError as error:
            log.warning("the rules of %s cannot be reported: %s", self.board.group, error)
