"""The runner for ordinary functions: one thread polls and commits, ``concurrency`` threads handle.

One lock guards the schedule. The consumer is used by the polling thread alone.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from headrace.client.consumer import Consumer
from headrace.client.errors import BrokerError, ClientError
from headrace.client.record import TopicPartition
from headrace.client.runner.base import POLL_SECONDS, BaseRunner, K, V, log
from headrace.client.runner.schedule import Task


class Runner(BaseRunner[K, V, object]):
    """Handle every record of some topics, many at a time, each key in order.

    >>> Runner(handle, "localhost:9092", topics="orders", group_id="billing", concurrency=16).run()

    A record that raises is tried again as ``retry`` says while other keys go on; one that fails for good
    goes to ``<topic>.dlq`` (``dead_letters`` may be a function from topic to name, or False to stop
    instead). Offsets are committed every ``commit_interval`` seconds, only up to the first unfinished
    record. A partition with ``max_in_flight`` unfinished records is paused. When partitions are taken away,
    what runs may finish for ``drain_timeout`` seconds. ``order`` "partition" handles each partition one by
    one, "none" keeps no order. ``start_offsets`` may say where to begin in newly assigned partitions.
    """

    default_concurrency = 8

    def _prepare(self) -> None:
        self._lock = threading.Lock()
        self._work_to_do = threading.Condition(self._lock)
        self._one_less_running = threading.Condition(self._lock)
        self._stopping = threading.Event()
        self._ended = False

    def stop(self) -> None:
        """End ``run``: what is being handled is finished and committed. May be called from anywhere."""
        self._stopping.set()

    def run(self) -> None:
        """Handle records until ``stop``, SIGTERM or SIGINT; raises what stopped it otherwise."""
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
        with _stop_on_signals(self.stop):
            try:
                consumer.subscribe(
                    *self._topics,
                    pattern=self._pattern,
                    on_assign=self._where_to_start,
                    on_revoke=lambda partitions: self._revoked(consumer, partitions),
                    on_lost=self._lost,
                )
                for worker in workers:
                    worker.start()
                while not self._stopping.is_set():
                    self._turn(consumer)
            finally:
                self._finish(consumer)
        if self._failure is not None:
            raise self._failure

    def _turn(self, consumer: Consumer[Any, Any]) -> None:
        with self._lock:
            stuck, eased, room = self._pressure(consumer.assignment(), consumer.paused())
            offsets = self._offsets_due()
            if not room:
                self._one_less_running.wait(POLL_SECONDS)
        if stuck:
            consumer.pause(*stuck)
        if eased:
            consumer.resume(*eased)
        if offsets:
            consumer.commit_async(offsets)
        # Without room one record is read all the same: reading is also what serves rebalances.
        records = (
            consumer.fetch(POLL_SECONDS, consumer.settings.max_poll_records) if room else consumer.fetch(0, 1)
        )
        with self._lock:
            self._work_to_do.notify(sum(self._schedule.add(record) for record in records))

    def _finish(self, consumer: Consumer[Any, Any]) -> None:
        self._stopping.set()
        self._revoked(consumer, consumer.assignment())
        with self._lock:
            self._ended = True
            self._work_to_do.notify_all()
        consumer.close()
        if self._dead_letters is not None:
            self._dead_letters.close()

    def _revoked(self, consumer: Consumer[Any, Any], partitions: Collection[TopicPartition]) -> None:
        """Let what runs finish, commit what is finished, forget the rest: the next owner gets it."""
        with self._lock:
            self._schedule.stop(partitions)
            self._one_less_running.wait_for(lambda: not self._schedule.busy(partitions), self._drain_timeout)
            committable = self._schedule.committable()
            offsets = {each: committable[each] for each in partitions if each in committable}
        self._lost(partitions)
        try:
            consumer.commit(offsets)
        except BrokerError as error:
            log.warning("%s; the finished records will be handled again", error)
        else:
            self._tell("committed", offsets)

    def _lost(self, partitions: Collection[TopicPartition]) -> None:
        with self._lock:
            self._schedule.forget(partitions)
            for partition in partitions:
                self._requested.pop(partition, None)

    def _work(self) -> None:
        while (task := self._next()) is not None:
            try:
                self._handle(task)
            except BaseException as error:
                self._failure = error
                self._stopping.set()
                with self._lock:
                    self._schedule.abandon(task)
                    self._one_less_running.notify_all()

    def _next(self) -> Task | None:
        with self._lock:
            while not self._ended:
                task = self._schedule.take(time.monotonic())
                if task is not None:
                    return task
                due = self._schedule.next_due()
                self._work_to_do.wait(None if due is None else max(0.0, due - time.monotonic()))
            return None

    def _handle(self, task: Task) -> None:
        task.calls += 1
        if task.giving_up is None:
            started = time.monotonic()
            try:
                with self._around(task):
                    self._handler(task.record)
            except Exception as error:
                delay = self._after_failure(task, error)
                if delay is not None:
                    self._again(task, delay)
                    return
            else:
                self._tell("handled", task.record, time.monotonic() - started)
                self._done(task)
                return
        self._bury(task)

    def _bury(self, task: Task) -> None:
        if self._dead_letters is None or task.giving_up is None:
            raise self._without_dead_letters(task)
        try:
            self._dead_letters.send(task.record, task.giving_up, task.attempt).result()
        except ClientError as problem:
            self._again(task, self._after_failed_burial(task, problem))
        else:
            self._buried(task)
            self._done(task)

    def _done(self, task: Task) -> None:
        with self._lock:
            if self._schedule.finish(task):
                self._work_to_do.notify()
            self._one_less_running.notify_all()

    def _again(self, task: Task, delay: float) -> None:
        with self._lock:
            self._schedule.retry(task, time.monotonic() + delay)
            self._work_to_do.notify()
            self._one_less_running.notify_all()


@contextmanager
def _stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and SIGINT end the run in good order; signals can be handled in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
