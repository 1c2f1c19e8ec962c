"""How far a group is behind: in records, in seconds, which way it is going, and when it gets there.

The one implementation of lag: commands, alerts, metrics, pipelines and services ask a `LagMeter`. What each figure means for compacted
topics, LogAppendTime, empty partitions and partitions without a commit is in docs/lag.md; `lag_states` judges the state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import confluent_kafka

from headrace.client.admin import Admin, session_of
from headrace.client.administration import groups, lag, offsets, share_groups
from headrace.client.administration.errors import Refused
from headrace.client.administration.retention import Limits, Retention, seconds_until_loss
from headrace.client.administration.session import Session
from headrace.client.config import Config, connection_settings, merged
from headrace.client.consumer import Consumer
from headrace.client.errors import BrokerError, ConfigError
from headrace.client.lag_states import LagState, Look, Window, is_worse, worst
from headrace.client.record import TopicPartition
from headrace.unread import Unread
from headrace.wire.errors import ErrorCode

DEFAULT_WINDOW = 60.0


@dataclass(frozen=True, slots=True)
class PartitionLag:
    partition: TopicPartition
    committed: int | None
    end: int
    records: int
    """Never negative; where nothing is committed, everything the partition holds."""
    seconds: float | None
    """Age of the next record to be read; 0 when there is none, None when it could not be read in time."""
    state: LagState = LagState.UNKNOWN
    trend: float | None = None
    """Records per second by which the lag changes; negative when it shrinks, None when not known yet."""
    rate_in: float | None = None
    """Records per second that arrive."""
    rate_out: float | None = None
    """Records per second that the group gets past."""
    seconds_until_loss: float | None = None
    """Until retention may delete the next record to read, if things go on as they do; None when they do not lead there."""
    lost: int = 0
    """Records that were deleted before the group could read them: its committed offset lies before the beginning of the log."""
    member: groups.Member | None = None

    @property
    def seconds_to_catch_up(self) -> float | None:
        """At this pace; None when it is not catching up."""
        if self.records == 0:
            return 0.0
        return None if self.trend is None or self.trend >= 0 else self.records / -self.trend

    def as_json(self) -> dict[str, Any]:
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "committed": self.committed,
            "end": self.end,
            "records": self.records,
            "lost": self.lost,
            **_figures(self),
        }


@dataclass(frozen=True, slots=True)
class GroupLag:
    group_id: str
    at: float
    partitions: tuple[PartitionLag, ...]
    state: LagState
    """The worst partition's."""
    members: int | None = None
    """None when it is not known."""
    kind: str | None = None
    """classic, consumer (KIP-848) or simple."""
    unreadable: tuple[TopicPartition, ...] = ()
    """Partitions whose end is not known: they have no leader now."""

    @property
    def records(self) -> int:
        return sum(each.records for each in self.partitions)

    @property
    def seconds(self) -> float | None:
        """The worst partition's."""
        return max((each.seconds for each in self.partitions if each.seconds is not None), default=None)

    @property
    def trend(self) -> float | None:
        return _sum(each.trend for each in self.partitions)

    @property
    def rate_in(self) -> float | None:
        return _sum(each.rate_in for each in self.partitions)

    @property
    def rate_out(self) -> float | None:
        return _sum(each.rate_out for each in self.partitions)

    @property
    def seconds_to_catch_up(self) -> float | None:
        """Until the last partition is caught up at this pace; None when one of them is not catching up, or there are none.

        One that only waits, because its reader is at the others for now, is counted with the pace of all.
        """
        known = [left for each in self.partitions if (left := each.seconds_to_catch_up) is not None]
        if len(known) == len(self.partitions):
            return max(known, default=None)
        trend = self.trend
        if trend is None or trend >= 0 or is_worse(self.state, LagState.DRAINING):
            return None
        return max(*known, self.records / -trend)

    @property
    def seconds_until_loss(self) -> float | None:
        """Of the partition that loses records first."""
        known = [each.seconds_until_loss for each in self.partitions if each.seconds_until_loss is not None]
        return min(known, default=None)

    @property
    def lost(self) -> int:
        return sum(each.lost for each in self.partitions)

    def of_topic(self, topic: str) -> GroupLag:
        """What of it is one topic's."""
        kept = tuple(each for each in self.partitions if each.partition.topic == topic)
        unreadable = tuple(each for each in self.unreadable if each.topic == topic)
        return replace(self, partitions=kept, unreadable=unreadable, state=worst(each.state for each in kept))

    def as_json(self) -> dict[str, Any]:
        return {
            "group": self.group_id,
            "at": round(self.at, 3),
            "kind": self.kind,
            "members": self.members,
            "records": self.records,
            "lost": self.lost,
            **_figures(self),
            "unreadable": [f"{each.topic}-{each.partition}" for each in self.unreadable],
            "partitions": [each.as_json() for each in self.partitions],
        }


class LagMeter:
    """Measures groups through a session; ``window`` seconds of looks make trend and state, so keep it and ask again.

    The consumer, made with `lag.ONE_RECORD`, is the caller's to close.
    """

    def __init__(
        self,
        session: Session,
        consumer: confluent_kafka.Consumer,
        window: float = DEFAULT_WINDOW,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._times = lag.NextRecordTimes(consumer)
        self._retention = Retention()
        self._window = window
        self._now = now
        self._windows: dict[str, dict[TopicPartition, Window]] = {}

    def measure(
        self,
        group_id: str,
        topics: Iterable[TopicPartition] = (),
        description: groups.Description | None = None,
        ends: Mapping[TopicPartition, int] | None = None,
    ) -> GroupLag:
        """The lag of the partitions the group has committed or reads, and of ``topics``' partitions.

        Raises BrokerError when the cluster does not answer. A ``description`` that was just asked for saves asking again. Where
        ``ends`` has an offset, what comes after it does not count.
        """
        description = description or self._describe(group_id)
        owners = _owners(description)
        shared = description is not None and description.type == share_groups.TYPE
        found = lag.positions(self._session, group_id, {*owners, *topics}, shared=shared)
        first, _ = offsets.list_offsets(self._session, list(found), offsets.EARLIEST)
        known: dict[TopicPartition, Unread] = {}
        unreadable = []
        for each, position in found.items():
            partition = TopicPartition(*each)
            if isinstance(position.end, BrokerError) or each not in first:
                unreadable.append(partition)
            else:
                end = position.end if ends is None else min(position.end, ends.get(partition, position.end))
                known[partition] = Unread(position.committed, first[each], end, position.finished)
        ages = self._times.ages(
            {(p.topic, p.partition): place.start for p, place in known.items() if place.records}
        )
        attended = description is None or description.is_simple or bool(description.members)
        before, now = self._windows.get(group_id, {}), self._now()
        windows: dict[TopicPartition, Window] = {}
        for partition, place in known.items():
            age = ages.get(partition) if place.records else 0.0
            look = Look(
                now, place.start + place.finished, place.end, attended, place.committed is not None, age
            )
            windows[partition] = before.get(partition, Window(self._window)).take(look)
        # A partition that has no leader now is not forgotten: its window goes on when it is back.
        kept = {partition: before[partition] for partition in unreadable if partition in before}
        self._windows[group_id] = {**windows, **kept} or before
        limits, sizes = self._limits(known)
        partitions = tuple(
            self._partition(partition, place, windows[partition], limits, sizes, owners.get(partition))
            for partition, place in known.items()
        )
        state = worst(each.state for each in partitions)
        if not found and before:
            state = LagState.GONE  # it was there, and has neither offsets nor members any more
        return GroupLag(
            group_id,
            time.time(),
            partitions,
            state,
            None if description is None else len(description.members),
            _kind(description),
            tuple(unreadable),
        )

    def forget(self, group_id: str) -> None:
        """Begin anew with a group's window."""
        self._windows.pop(group_id, None)

    def _describe(self, group_id: str) -> groups.Description | None:
        """None when there is no such group, or its members cannot be asked for: commits alone are judged then."""
        try:
            return groups.describe(self._session, group_id)
        except Refused as refused:
            if refused.code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_AUTHORIZATION_FAILED):
                return None
            raise
        except ConfigError:
            return None  # a login that only librdkafka knows

    def _limits(
        self, places: dict[TopicPartition, Unread]
    ) -> tuple[dict[str, Limits], dict[tuple[str, int], int]]:
        behind = [partition for partition, place in places.items() if place.records]
        limits = self._retention.limits(self._session, {partition.topic for partition in behind})
        by_size = [(p.topic, p.partition) for p in behind if limits[p.topic].bytes is not None]
        return limits, self._retention.sizes(self._session, by_size) if by_size else {}

    def _partition(
        self,
        partition: TopicPartition,
        place: Unread,
        window: Window,
        limits: dict[str, Limits],
        sizes: dict[tuple[str, int], int],
        member: groups.Member | None,
    ) -> PartitionLag:
        held, size = place.end - place.first, sizes.get(partition)
        until_loss = seconds_until_loss(
            limits.get(partition.topic, Limits()),
            age=window.looks[-1].age,
            ageing=window.ageing,
            unread=place.records,
            trend=window.trend,
            bytes_per_record=size / held if size is not None and held > 0 else None,
        )
        return PartitionLag(
            partition,
            place.committed,
            place.end,
            place.records,
            window.looks[-1].age,
            window.state,
            window.trend,
            window.rate_in,
            window.rate_out,
            until_loss,
            place.lost,
            member,
        )


class LagMonitor:
    """Measures the lag of groups of one cluster; ``window`` seconds of measurements make trend and state.

    >>> with LagMonitor("localhost:9092") as monitor:
    ...     print(monitor.measure("billing").records)
    """

    def __init__(
        self, config: Config = None, /, *, window: float = DEFAULT_WINDOW, **settings: object
    ) -> None:
        connection = connection_settings(merged(config, settings))
        self._admin = Admin(connection)
        self._consumer: Consumer[bytes, bytes] = Consumer({**connection, **lag.ONE_RECORD})
        self._meter = LagMeter(session_of(self._admin), self._consumer.librdkafka, window)

    def measure(self, group_id: str, topics: Iterable[str] = ()) -> GroupLag:
        """The lag of the partitions the group reads or has committed for, and of all partitions of ``topics``."""
        return self._meter.measure(group_id, self._admin.partitions_of(*topics))

    def groups(self) -> list[str]:
        """The names of all groups, share groups included."""
        return [each.group for each in groups.listings(session_of(self._admin), types=groups.ALL_TYPES)]

    @property
    def admin(self) -> Admin:
        """Open as long as the monitor."""
        return self._admin

    def close(self) -> None:
        self._consumer.close()
        self._admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _owners(description: groups.Description | None) -> dict[TopicPartition, groups.Member]:
    members = [] if description is None else description.members
    return {TopicPartition(*each): member for member in members for each in member.assignment}


def _kind(description: groups.Description | None) -> str | None:
    if description is None:
        return None
    return "simple" if description.is_simple else description.type.lower()


def _figures(lag: PartitionLag | GroupLag) -> dict[str, Any]:
    numbers = {
        "seconds": lag.seconds,
        "trend": lag.trend,
        "rate_in": lag.rate_in,
        "rate_out": lag.rate_out,
        "seconds_to_catch_up": lag.seconds_to_catch_up,
        "seconds_until_loss": lag.seconds_until_loss,
    }
    rounded = {name: None if value is None else round(value, 3) for name, value in numbers.items()}
    return {"state": lag.state.value, **rounded}


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
