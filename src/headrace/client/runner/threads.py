"""The runner for ordinary functions: one thread polls and commits, ``concurrency`` threads handle.

One lock guards the schedule. The consumer is used by the polling thread alone.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

from headrace.client.consumer import Consumer
from headrace.client.errors import BrokerError, ClientError, ConfigError
from headrace.client.handlers import check_done, is_async
from headrace.client.record import Record, TopicPartition
from headrace.client.runner.base import POLL_SECONDS, BaseRunner, K, V, log
from headrace.client.runner.degrading import in_turn
from headrace.client.runner.schedule import Task
from headrace.client.runner.signals import stop_on_signals
from headrace.client.runner.stepping_aside import SteppingAside
from headrace.client.runner.until import Until
from headrace.client.serializers import as_deserializer

_LAST_LOOK = 1.0


class Flag:
    """Like an Event without waiters, and without its lock: a signal that arrives inside ``set`` may set it again."""

    __slots__ = ("_up",)

    def __init__(self) -> None:
        self._up = False

    def set(self) -> None:
        self._up = True

    def is_set(self) -> bool:
        return self._up


class Runner(BaseRunner[K, V, object]):
    """Handle every record of some topics, many at a time, each key in order.

    >>> Runner(handle, "localhost:9092", topics="orders", group_id="billing", concurrency=16).run()

    A record that raises is tried again as ``retry`` says while other keys go on; one that fails for good
    goes to ``<topic>.dlq`` (``dead_letters`` may be a function from topic to name, or False to stop
    instead). Offsets are committed every ``commit_interval`` seconds, only up to the first unfinished
    record. A partition with ``max_in_flight`` unfinished records is paused. When partitions are taken away,
    what runs may finish for ``drain_timeout`` seconds. ``order`` "partition" handles each partition one by
    one, "none" keeps no order. ``start_offsets`` may say where to begin in newly assigned partitions. With ``until``, an offset for
    each partition, no record from there on is handled, and ``run`` returns when the group has read all before. With ``diverts=True`` it
    steps aside for ``headrace backlog divert --wait``.

    ``handler`` may be several, by name: each record goes to all of them in turn. ``degrade`` has rules for doing less under load
    (docs/degrading.md); several handlers can each be switched off without any. ``metrics`` is a HOST:PORT to serve Prometheus
    metrics at.

    ``group_type="share"`` makes it a member of a share group (docs/share-groups.md), a work queue: each record is locked for this
    runner, accepted when it is handled and released when it failed, so that any member may try it again; the number of its
    delivery is its attempt. There is no order, and the lock ends after ``share.record.lock.duration.ms`` of the group.
    """

    default_concurrency = 8

    def _prepare(self) -> None:
        self._lock = threading.Lock()
        self._work_to_do = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._drained = threading.Condition(self._lock)
        self._wants_room = False
        self._draining = False
        self._stopping = Flag()
        self._ended = False

    def _check_handler(self, handler: Callable[[Record[K, V]], object]) -> None:
        if is_async(handler):
            raise ConfigError("Runner takes an ordinary function; for an `async def` there is AsyncRunner")

    def stop(self) -> None:
        """End ``run``: what is being handled is finished and committed. May be called from anywhere."""
        self._stopping.set()

    def run(self) -> None:
        """Handle records until ``stop``, SIGTERM or SIGINT; raises what stopped it otherwise."""
        self._begin()
        if self._group_type == "share":
            self._run_in_share_group()
            return
        consumer: Consumer[Any, Any] = Consumer(
            self._config,
            key_deserializer=self._key_deserializer,
            value_deserializer=self._value_deserializer,
            on_commit=self._on_commit,
        )
        workers = [
            threading.Thread(target=self._work, name=f"headrace-runner-{number}", daemon=True)
            for number in range(self._concurrency)
        ]
        aside = self._stepping_aside()
        with stop_on_signals(self.stop):
            try:
                if self._degrading is not None:
                    self._degrading.degrader.start(self._stopping.is_set)
                self._subscribe(consumer)
                for worker in workers:
                    worker.start()
                while not self._stopping.is_set():
                    if aside is not None and aside.is_asked:
                        self._step_aside(consumer, aside)
                        if self._stopping.is_set():
                            break
                        self._subscribe(consumer)
                    self._turn(consumer)
            finally:
                if aside is not None:
                    aside.close()
                self._finish(consumer, workers)
        if self._failure is not None:
            raise self._failure

    def _run_in_share_group(self) -> None:
        from headrace.client.runner.sharing import Sharing

        sharing = Sharing(
            self._handler,
            self._config,
            self._group_id,
            self._topics,
            self._concurrency,
            self._batch,
            self._retry,
            self._dead_letters,
            as_deserializer(self._key_deserializer),
            as_deserializer(self._value_deserializer),
            self._hooks,
            self._stopping,
        )
        with stop_on_signals(self.stop):
            try:
                sharing.run()
            finally:
                self._stopping.set()
                self._close_companions()

    def _subscribe(self, consumer: Consumer[Any, Any]) -> None:
        degrading = self._degrading
        consumer.subscribe(
            *self._topics,
            pattern=self._pattern,
            on_assign=self._where_to_start
            if degrading is None
            else lambda partitions: degrading.starts(consumer, partitions),
            on_revoke=lambda partitions: self._revoked(consumer, partitions),
            on_lost=self._lost,
        )

    def _step_aside(self, consumer: Consumer[Any, Any], aside: SteppingAside) -> None:
        log.info("leaving group %s for a moment, for a divert", self._group_id)
        consumer.unsubscribe()
        while aside.is_asked and not self._stopping.is_set():
            consumer.fetch(POLL_SECONDS, 1)

    def _turn(self, consumer: Consumer[Any, Any]) -> None:
        off = self._is_switched_off()
        with self._lock:
            if self._is_held and not off:
                self._work_to_do.notify_all()
            self._is_held = off
            stuck, eased, room = self._pressure(consumer.assignment(), consumer.paused())
            offsets = self._offsets_due()
            self._wants_room = not room
        if stuck:
            consumer.pause(*stuck)
        if eased:
            consumer.resume(*eased)
        if offsets and self._written(offsets):
            consumer.commit_async(offsets)
        if not room:
            with self._lock:
                if not self._wants_room or self._room.wait(POLL_SECONDS):
                    return
        # Without room one record is read all the same: reading is also what serves rebalances.
        records = consumer.fetch(POLL_SECONDS, self._batch) if room else consumer.fetch(0, 1)
        if records and not self._stopping.is_set():
            with self._lock:
                self._work_to_do.notify(sum(map(self._schedule.add, self._to_handle(records))))
        elif self._until is not None and self._look_is_due(self._until) and self._until.is_over():
            self._stopping.set()

    def _look_is_due(self, until: Until) -> bool:
        with self._lock:
            return until.look_is_due(self._schedule.load())

    def _finish(self, consumer: Consumer[Any, Any], workers: list[threading.Thread]) -> None:
        self._stopping.set()
        try:
            self._revoked(consumer, consumer.assignment())
        finally:
            with self._lock:
                self._ended = True
                self._work_to_do.notify_all()
            try:
                consumer.close()
            finally:
                # All but those whose handler has not come back within the drain timeout end at once.
                deadline = time.monotonic() + _LAST_LOOK
                for worker in workers:
                    if worker.ident is not None:
                        worker.join(max(0.0, deadline - time.monotonic()))
                self._close_companions()
                if self._hooks:
                    self._tell_load({}, 0)

    def _revoked(self, consumer: Consumer[Any, Any], partitions: Collection[TopicPartition]) -> None:
        """Let what runs finish, commit what is finished, forget the rest: the next owner gets it."""
        with self._lock:
            self._schedule.stop(partitions)
            self._draining = True
            if self._is_held:
                self._work_to_do.notify_all()
            self._drained.wait_for(lambda: not self._schedule.busy(partitions), self._drain_timeout)
            self._draining = False
            committable = self._schedule.committable()
            offsets = {each: committable[each] for each in partitions if each in committable}
        written = self._written(offsets)
        self._lost(partitions)
        if not written:
            return
        try:
            consumer.commit(offsets, timeout=self._drain_timeout)
        except BrokerError as error:
            log.warning("%s; the finished records will be handled again", error)
        else:
            self._tell("committed", offsets)

    def _lost(self, partitions: Collection[TopicPartition]) -> None:
        with self._lock:
            self._schedule.forget(partitions)
            for partition in partitions:
                self._requested.pop(partition, None)
            if self._until is not None:
                self._until.gone(partitions)
        if self._degrading is not None:
            self._degrading.ledger.forget(partitions)

    def _work(self) -> None:
        done: Task | None = None
        while (task := self._next(done)) is not None:
            done = None
            try:
                if self._handle(task):
                    done = task
            except BaseException as error:
                self._failure = error
                self._stopping.set()
                with self._lock:
                    self._schedule.abandon(task)
                    self._drained.notify()

    def _next(self, done: Task | None) -> Task | None:
        """Tick off what is done and wait for the next; what that one let go first is taken here, or by the others."""
        with self._lock:
            if done is not None:
                self._schedule.finish(done)
                if self._draining:
                    self._drained.notify()
                if self._wants_room and self._eased(done):
                    self._wants_room = False
                    self._room.notify()
            while not self._ended:
                held = self._is_held and not self._draining
                task = None if held else self._schedule.take(time.monotonic())
                if task is not None:
                    return task
                due = None if held else self._schedule.next_due()
                self._work_to_do.wait(None if due is None else max(0.0, due - time.monotonic()))
            return None

    def _handle(self, task: Task) -> bool:
        """True when the record is done: handled, or among the dead letters."""
        task.calls += 1
        if task.giving_up is not None:
            return self._bury(task)
        handler, record = self._handler, task.record
        if self._degrading is not None:
            chosen = self._degrading.choose(task)
            if chosen is None:
                return True
            handler, record = in_turn(chosen), chosen.record
        started = time.monotonic() if self._hooks else 0.0
        try:
            if self._hooks:
                with self._around(task):
                    result = handler(record)
            else:
                result = handler(record)
        except (Exception, asyncio.CancelledError) as error:
            delay = self._after_failure(task, error)
            if delay is None:
                return self._bury(task)
            self._again(task, delay)
            return False
        if result is not None:
            check_done(result, "the handler")
        if self._hooks:
            self._tell("handled", task.record, time.monotonic() - started)
        return True

    def _bury(self, task: Task) -> bool:
        if self._dead_letters is None or task.giving_up is None:
            raise self._without_dead_letters(task)
        try:
            self._dead_letters.send(task.record, task.giving_up, task.attempt).result()
        except ClientError as problem:
            self._again(task, self._after_failed_burial(task, problem))
            return False
        self._buried(task)
        return True

    def _again(self, task: Task, delay: float) -> None:
        with self._lock:
            self._schedule.retry(task, time.monotonic() + delay)
            self._work_to_do.notify()
            self._drained.notify()
