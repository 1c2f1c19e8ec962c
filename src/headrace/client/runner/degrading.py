"""Rules at work in a runner: which handlers a record goes to now, if any, and the ledger of what was dropped.

A drop is noted before the record counts as finished, and notes are written before offsets are committed: after a crash a record has
been handled or is in the notes, or it comes again.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.client.consumer import Consumer
from headrace.client.degrade.degrader import Degrader
from headrace.client.degrade.notes import Drop, Ledger
from headrace.client.degrade.replayed import handler_of, origin_of, topic_of
from headrace.client.degrade.rules import Rule, SwitchOff, completed
from headrace.client.degrade.switchboard import Place
from headrace.client.handlers import check_done
from headrace.client.record import Record, TopicPartition
from headrace.client.runner.schedule import Task

Handler = Callable[[Record[Any, Any]], Any]
ONLY = ""
"""The name of a runner's handler when there is one."""


@dataclass(frozen=True, slots=True)
class Degraded:
    """How many records a rule has dropped since the runner began."""

    rule: str
    handler: str | None
    topic: str
    partition: int
    records: int


@dataclass(slots=True)
class Chosen:
    """What one try of a record consists of."""

    record: Record[Any, Any]
    task: Task
    handlers: list[tuple[str, Handler]]
    drops: list[Drop]
    ledger: Ledger

    def done(self, handler: str) -> None:
        """It is not called again for this record when another one fails."""
        self.task.done = (*self.task.done, handler)

    def finished(self) -> None:
        """All are done, so that what the others were spared is noted, and not before: a failed try may end otherwise."""
        for drop in self.drops:
            self.ledger.add(drop, self.task.record.offset)


def in_turn(chosen: Chosen) -> Callable[[Record[Any, Any]], None]:
    def call(record: Record[Any, Any]) -> None:
        for name, handler in chosen.handlers:
            result = handler(record)
            if result is not None:
                check_done(result, "the handler")
            chosen.done(name)
        chosen.finished()

    return call


def in_turn_async(chosen: Chosen) -> Callable[[Record[Any, Any]], Awaitable[None]]:
    async def call(record: Record[Any, Any]) -> None:
        for name, handler in chosen.handlers:
            await handler(record)
            chosen.done(name)
        chosen.finished()

    return call


class Degrading:
    def __init__(
        self,
        config: Mapping[str, object],
        group: str,
        rules: Sequence[Rule],
        handlers: Mapping[str, Handler],
        topics: Sequence[str],
    ) -> None:
        self._handlers = handlers
        self._replays = topic_of(group)
        names = tuple(name for name in handlers if name != ONLY)
        self.ledger = Ledger(config, group)
        self.degrader = Degrader(
            config,
            group,
            completed(tuple(rules), group, names),
            kind="runner",
            topics=topics,
            dropped_by=self.ledger.dropped_by,
        )

    @property
    def replays(self) -> str:
        """The topic that brings back what was dropped."""
        return self._replays

    @property
    def group_is_off(self) -> bool:
        return self.degrader.active.group_is_off

    def choose(self, task: Task) -> Chosen | None:
        """None when the record is dropped, which is noted then."""
        record = task.record
        handlers = [each for each in self._handlers.items() if each[0] not in task.done]
        is_replay = record.topic == self._replays
        if is_replay and (only := handler_of(record)) is not None:
            handlers = [each for each in handlers if each[0] == only]
        rules = self.degrader.active.rules
        if is_replay:
            # It was dropped once and is asked for now: only a handler that is switched off is still spared.
            rules = tuple(rule for rule in rules if isinstance(rule, SwitchOff))
        drops: list[Drop] = []
        for rule in rules:
            if rule.handler is not None and all(rule.handler != name for name, _ in handlers):
                continue
            reason = rule.reason(record, time.time())
            if reason is None:
                continue
            drop = Drop(record.topic, record.partition, rule.handler, rule.name, reason)
            if rule.handler is None and not task.done:
                self.ledger.add(drop, record.offset)
                return None
            if rule.handler is not None:
                drops.append(drop)
                handlers = [each for each in handlers if each[0] != rule.handler]
        return Chosen(origin_of(record) if is_replay else record, task, handlers, drops, self.ledger)

    def starts(
        self, consumer: Consumer[Any, Any], partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Replays begin at their beginning, whatever auto.offset.reset says: what came while nobody read must not be missed."""
        replays = [each for each in partitions if each.topic == self._replays]
        if not replays:
            return {}
        return {each: 0 for each, offset in consumer.committed(*replays).items() if offset is None}

    def counts(self) -> list[Degraded]:
        return [
            Degraded(drop.rule, drop.handler, drop.topic, drop.partition, number)
            for drop, number in self.ledger.counts.copy().items()
        ]

    def rules(self) -> dict[str, Place]:
        return self.degrader.board.places.copy()

    def close(self) -> None:
        self.degrader.close()
        self.ledger.close()
