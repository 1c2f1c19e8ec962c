"""What both runners share: options, decisions about failures, hooks, what to commit."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, get_args

from headrace.client.config import Config, connection_settings, consumer_settings, merged
from headrace.client.dead_letters import SUFFIX, DeadLetters, default_name
from headrace.client.degrade.rules import Rule
from headrace.client.degrade.switchboard import Place
from headrace.client.errors import BrokerError, ClientError, ConfigError, HandlerFailed, TryLater
from headrace.client.positions import Offsets
from headrace.client.record import Record, TopicPartition
from headrace.client.runner.degrading import ONLY, Degraded, Degrading
from headrace.client.runner.endpoint import Endpoint
from headrace.client.runner.hooks import Hook, around, tell
from headrace.client.runner.retry import Retry
from headrace.client.runner.schedule import Order, Schedule, Task
from headrace.client.runner.stepping_aside import SteppingAside
from headrace.client.runner.until import Until
from headrace.client.serializers import Serializer

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
    R = TypeVar("R", default=object)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")
    R = TypeVar("R")

GroupType = Literal["consumer", "share"]
log = logging.getLogger("headrace.client.runner")
POLL_SECONDS = 0.1
_FULL_FOR = 1.0
_LONGEST_WAIT_FOR_OFFSETS = 1.0


class Stopping(Protocol):
    def set(self) -> None: ...

    def is_set(self) -> bool: ...


class BaseRunner(ABC, Generic[K, V, R]):
    """The options of both runners, as ``Runner`` describes them; ``R`` is what a handler returns."""

    default_concurrency: int
    _stopping: Stopping
    _is_held: bool
    """The group is switched off: nothing new is taken, what runs is finished."""

    def __init__(
        self,
        handler: Callable[[Record[K, V]], R] | Mapping[str, Callable[[Record[K, V]], R]],
        config: Config = None,
        /,
        *,
        topics: str | Iterable[str] = (),
        pattern: str | None = None,
        key_deserializer: Serializer[K] | Callable[[bytes], K] | None = None,
        value_deserializer: Serializer[V] | Callable[[bytes], V] | None = None,
        concurrency: int | None = None,
        order: Order | None = None,
        retry: Retry | None = None,
        dead_letters: Callable[[str], str] | bool = True,
        max_in_flight: int = 1000,
        commit_interval: float = 1.0,
        drain_timeout: float = 30.0,
        start_offsets: Callable[[Collection[TopicPartition]], Offsets] | None = None,
        until: Offsets | None = None,
        diverts: bool = False,
        hooks: Sequence[Hook] = (),
        degrade: Sequence[Rule] | None = None,
        metrics: str | None = None,
        group_type: GroupType = "consumer",
        **settings: object,
    ) -> None:
        if group_type not in get_args(GroupType):
            raise ConfigError(f'group_type is {group_type!r}: choose "consumer" or "share"')
        self._group_type: GroupType = group_type
        if group_type == "share":
            given = {
                "order": order,
                "pattern": pattern,
                "start_offsets": start_offsets,
                "until": until,
                "diverts": diverts or None,
                "degrade": degrade,
                "several handlers": handler if isinstance(handler, Mapping) else None,
            }
            wrong = [name for name, value in given.items() if value is not None]
            if wrong:
                raise ConfigError(
                    f"a share group hands out single records and keeps no order: leave out {', '.join(wrong)}"
                )
        order = order or "key"
        several = handler if isinstance(handler, Mapping) else {ONLY: handler}
        if not several or (ONLY in several) == isinstance(handler, Mapping):
            raise ConfigError("several handlers are given as a mapping with at least one, each by its name")
        self._handlers = dict(several)
        for each in several.values():
            self._check_handler(each)
        self._handler = next(iter(several.values()))
        self._config = {**merged(config, settings), "enable.auto.commit": False}
        checked = consumer_settings(self._config, {}, None)
        if checked.group_id is None:
            raise ConfigError("a runner needs group_id=: its members share the partitions and commit offsets")
        self._topics = [topics] if isinstance(topics, str) else list(topics)
        self._pattern = pattern
        if bool(self._topics) == (pattern is not None):
            raise ConfigError("a runner needs either topics= or pattern=")
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._concurrency = self.default_concurrency if concurrency is None else concurrency
        if self._concurrency < 1 or max_in_flight < 1:
            raise ConfigError("concurrency and max_in_flight must be at least 1")
        self._retry = retry or Retry()
        self._max_in_flight = max_in_flight
        # More at once could fill a partition so far that it has to be paused.
        self._batch = min(checked.max_poll_records, max_in_flight)
        self._commit_interval = commit_interval
        self._drain_timeout = drain_timeout
        kept_elsewhere = (getattr(each, "headrace_start_offsets", None) for each in self._handlers.values())
        self._start_offsets = start_offsets or next(filter(None, kept_elsewhere), None)
        if self._start_offsets is not None and order != "partition":
            raise ConfigError(
                'a runner that starts from offsets kept elsewhere needs order="partition": one number per '
                "partition cannot say which of several records handled side by side are done"
            )
        if diverts and self._start_offsets is not None:
            raise ConfigError(
                "a runner that starts from offsets kept elsewhere cannot agree to a divert, which moves the group's offsets"
            )
        self._diverts = diverts
        self._group_id = checked.group_id
        self._until = None if until is None else Until(self._config, checked.group_id, until)
        self._endpoint = None if metrics is None else Endpoint(metrics, self)
        self._hooks = (*hooks, *([] if self._endpoint is None else [self._endpoint.hook]))
        self._dead_letters: DeadLetters | None = None
        if dead_letters:
            name = default_name if dead_letters is True else dead_letters
            self._dead_letters = DeadLetters(connection_settings(self._config), name)
            if pattern is not None and dead_letters is True:
                # Dead letters that match, too, would be handled, fail again, and be put into a topic of their own.
                self._config.setdefault("topic.blacklist", rf"\{SUFFIX}$")
        if order not in get_args(Order):
            raise ConfigError(f'order is {order!r}: choose "key", "partition" or "none"')
        self._degrading: Degrading | None = None
        if degrade is not None or ONLY not in self._handlers:
            self._degrading = self._with_rules(degrade or (), checked.group_id)
        self._is_held = False
        self._schedule = Schedule(order)
        self._requested: dict[TopicPartition, int] = {}
        self._full_since: dict[TopicPartition, float] = {}
        self._shown: set[TopicPartition] = set()
        self._next_commit = 0.0
        self._failure: BaseException | None = None
        self._began = False
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None:
        """Make what only one kind of runner has."""

    @abstractmethod
    def _check_handler(self, handler: Callable[[Record[K, V]], R]) -> None:
        """Refuse a handler of the other kind."""

    def degraded(self) -> list[Degraded]:
        """How many records each rule has dropped, by topic and partition; each is written down for a replay."""
        return [] if self._degrading is None else self._degrading.counts()

    def rules(self) -> dict[str, Place]:
        """Where each rule of ``degrade`` stands, since when, and why."""
        return {} if self._degrading is None else self._degrading.rules()

    def _with_rules(self, rules: Sequence[Rule], group: str) -> Degrading:
        if self._pattern is not None:
            raise ConfigError("degrade= and several handlers need topics= rather than pattern=")
        if self._start_offsets is not None:
            raise ConfigError(
                "degrade= and several handlers need offsets that are committed to the group, not start_offsets: "
                "what was dropped would come again after each restart"
            )
        if self._until is not None:
            raise ConfigError(
                "a runner with until= handles every record before its end: it takes one handler and no degrade="
            )
        degrading = Degrading(self._config, group, rules, self._handlers, self._topics)
        # A replay that was interrupted leaves records of a transaction that was never committed.
        self._config.setdefault("isolation.level", "read_committed")
        self._topics = [*self._topics, degrading.replays]
        return degrading

    def _written(self, offsets: Offsets) -> bool:
        """Whether what was dropped before these offsets is written down; until then they must not be committed."""
        if self._degrading is None:
            return True
        try:
            self._degrading.ledger.write()
        except ClientError as error:
            log.warning("what was dropped is not written down yet, so nothing is committed: %s", error)
            for partition in offsets:
                self._requested.pop(partition, None)
            return False
        return True

    def _is_switched_off(self) -> bool:
        return self._degrading is not None and self._degrading.group_is_off

    def _begin(self) -> None:
        if self._began:
            raise ConfigError("this runner has run already: make another")
        self._began = True
        if self._endpoint is not None:
            self._endpoint.open()

    def _close_companions(self) -> None:
        if self._dead_letters is not None:
            self._dead_letters.close()
        if self._degrading is not None:
            self._degrading.close()
        if self._endpoint is not None:
            self._endpoint.close()

    @property
    def metrics_port(self) -> int | None:
        """Where metrics are served while it runs; the port actually bound."""
        return None if self._endpoint is None else self._endpoint.port

    def _where_to_start(self, partitions: Collection[TopicPartition]) -> Offsets | None:
        """The offsets kept elsewhere, asked for as long as it takes: a database that is away ends no runner."""
        calls = 0
        while self._start_offsets is not None:
            calls += 1
            try:
                return self._start_offsets(partitions)
            except TryLater as away:
                if self._stopping.is_set():
                    break
                log.warning("where to start is not known yet: %s", away)
                time.sleep(min(self._retry.delay_after(calls), _LONGEST_WAIT_FOR_OFFSETS))
        return None

    def _after_failure(self, task: Task, error: BaseException) -> float | None:
        """Seconds until the next attempt, None to give up; counts the attempt and notifies the hooks."""
        delay = self._retry.next_delay(task.attempt, task.calls, error)
        self._tell("failed", task.record, task.attempt, error, delay)
        if delay is None:
            log.warning("%s failed for good at attempt %d: %r", task.record, task.attempt, error)
            task.giving_up = error
        else:
            log.info("%s failed (attempt %d), again in %.1f s: %r", task.record, task.attempt, delay, error)
            task.attempt += not isinstance(error, TryLater)
        return delay

    def _without_dead_letters(self, task: Task) -> HandlerFailed:
        failure = HandlerFailed(
            f"{task.record} failed {task.attempt} times, last with {task.giving_up!r}, and dead_letters is off: "
            "the runner stops so that the record is not lost"
        )
        failure.__cause__ = task.giving_up
        return failure

    def _after_failed_burial(self, task: Task, problem: Exception) -> float:
        delay = self._retry.delay_after(task.calls)
        log.error("the dead letter of %s was not written, again in %.1f s: %s", task.record, delay, problem)
        return delay

    def _buried(self, task: Task) -> None:
        if task.giving_up is not None:
            self._tell("dead_letter", task.record, task.attempt, task.giving_up)

    def _offsets_due(self) -> dict[TopicPartition, int]:
        """What has been finished since the last commit, when it is time for one."""
        if time.monotonic() < self._next_commit:
            return {}
        self._next_commit = time.monotonic() + self._commit_interval
        return self._news(self._schedule.committable())

    def _news(self, offsets: Offsets) -> dict[TopicPartition, int]:
        news = {each: offset for each, offset in offsets.items() if self._requested.get(each) != offset}
        self._requested.update(news)
        return news

    def _on_commit(self, offsets: Offsets, error: BrokerError | None) -> None:
        if error is None:
            self._tell("committed", offsets)
            return
        log.warning("%s; it is tried again with the next commit", error)
        for partition in offsets:
            self._requested.pop(partition, None)

    def _pressure(
        self, assigned: set[TopicPartition], paused: set[TopicPartition]
    ) -> tuple[set[TopicPartition], set[TopicPartition], bool]:
        """Which partitions to pause and which to resume, and whether there is room to read more at all.

        Pausing throws away what librdkafka has fetched ahead, so a partition is paused only when it stays
        full; until then reading waits for it, since what comes next is most likely from there as well.
        """
        load, now = self._schedule.load(), time.monotonic()
        if self._hooks:
            self._tell_load(load, len(paused))
        if self._is_held:
            return assigned - paused, set(), False
        full = {each for each in assigned if load.get(each, 0) >= self._max_in_flight}
        self._full_since = {each: self._full_since.get(each, now) for each in full}
        stuck = {each for each in full - paused if now - self._full_since[each] >= _FULL_FOR}
        eased = {each for each in paused if load.get(each, 0) <= self._max_in_flight // 2}
        if self._until is not None:
            stuck |= (self._until.passed & assigned) - paused
            eased -= self._until.passed
        held = (paused | stuck) - eased
        return stuck, eased, full <= held and (not assigned or held < assigned)

    def _stepping_aside(self) -> SteppingAside | None:
        return SteppingAside(self._config, self._group_id, self._topics) if self._diverts else None

    def _to_handle(self, records: list[Record[Any, Any]]) -> list[Record[Any, Any]]:
        return records if self._until is None else self._until.before(records)

    def _tell_load(self, load: dict[TopicPartition, int], paused: int) -> None:
        """Those that have gone are shown as empty, once."""
        shown, self._shown = self._shown, set(load)
        self._tell("loaded", {**dict.fromkeys(shown, 0), **load}, paused)

    def _eased(self, task: Task) -> bool:
        """Whether its partition was full and has room for many again: to read on for each single record costs too much."""
        progress = task.progress
        return len(progress.offsets) <= self._max_in_flight // 2 and progress.partition in self._full_since

    def _around(self, task: Task) -> ExitStack:
        """The hooks' contexts around one call of the handler."""
        return around(self._hooks, task.record, task.attempt)

    def _tell(self, what: str, *about: Any) -> None:
        tell(self._hooks, what, *about)
