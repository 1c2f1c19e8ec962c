"""Which of several instances acts: the member of the group that has the only partition of the alerts' topic.

A member that dies loses it after its session timeout. Assignment is cooperative, so an instance that joins takes nothing from the one
that acts. Holding the partition is permission to begin; what fences an instance that was paused is the writer's transactions.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from enum import StrEnum

from headrace.client.administration import groups
from headrace.client.administration.errors import Refused
from headrace.client.administration.session import Session
from headrace.client.config import connection_settings
from headrace.client.consumer import Consumer
from headrace.client.errors import ClientError
from headrace.client.record import TopicPartition
from headrace.watch.alerts.store import ALERTS
from headrace.wire.errors import ErrorCode

log = logging.getLogger("headrace.alerts")

GROUP = ALERTS
_LONGEST_TURN_MS = 300_000


def is_watched(session: Session) -> bool:
    """Whether an instance runs; one that was killed counts until its session ends."""
    try:
        return bool(groups.describe(session, GROUP).members)
    except Refused as refused:
        if refused.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return False
        raise


class Hold(StrEnum):
    NONE = "none"
    HELD = "held"
    LOST = "lost"
    """The coordinator has not been heard of for a session: it may be away, or another instance may have taken over."""


class Election:
    def __init__(self, config: Mapping[str, object], failover: float) -> None:
        self._consumer: Consumer[bytes, bytes] = Consumer(
            {
                **connection_settings(config),
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": int(failover * 1000),
                "heartbeat.interval.ms": int(failover * 1000 / 4),
                "max.poll.interval.ms": _LONGEST_TURN_MS,
                "allow.auto.create.topics": False,
                "topic.metadata.refresh.interval.ms": 10_000,
            }
        )
        self.hold = Hold.NONE
        self.turns = 0
        """Counts how often the partition was given to this member."""
        self._consumer.subscribe(
            ALERTS, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def poll(self) -> None:
        """Take part. What the partition holds is read elsewhere."""
        try:
            self._consumer.fetch(0, 1)
            if held := self._consumer.assignment() - self._consumer.paused():
                self._consumer.pause(*held)
        except ClientError as error:
            log.warning("the election of the acting instance: %s", error)

    def close(self) -> None:
        """Leave, so that another takes over at once."""
        self._consumer.close()

    def _assigned(self, partitions: Collection[TopicPartition]) -> None:
        if partitions:
            self.hold = Hold.HELD
            self.turns += 1
        elif self.hold is Hold.LOST:
            self.hold = Hold.NONE

    def _revoked(self, partitions: Collection[TopicPartition]) -> None:
        if partitions:
            self.hold = Hold.NONE

    def _lost(self, partitions: Collection[TopicPartition]) -> None:
        if partitions and self.hold is Hold.HELD:
            self.hold = Hold.LOST
