"""The state of one partition of `__share_group_state`: how far each share group is in each partition that hashes here.

The operations return records. Most writes are small updates; every so many of them a snapshot follows, and what lies before the
oldest snapshot that is still the newest of its key can be deleted from the log.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from headrace.clock import Clock
from headrace.server.coordinator.timers import Timers
from headrace.server.coordinator.write import Write
from headrace.server.share.coordinator.combining import combine
from headrace.server.share.coordinator.records import (
    NOT_COUNTED,
    SNAPSHOT,
    UPDATE,
    ShareKey,
    ShareRecord,
    Snapshot,
    Update,
    decode_record,
    encode_record,
)
from headrace.server.share.states import StateBatch
from headrace.wire.errors import ErrorCode, KafkaError

ShareTimers = Timers[Callable[[], Write[ShareRecord, object]]]
NOT_SET = -1


class Topics(Protocol):
    """The cluster's topics."""

    def has_partition(self, topic_id: uuid.UUID, partition: int) -> bool: ...


class StoredState(NamedTuple):
    """What a new leader of the partition begins with."""

    state_epoch: int
    start_offset: int
    """-1 until it is known: the group begins where share.auto.offset.reset says."""
    batches: tuple[StateBatch, ...]


class Summary(NamedTuple):
    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int


NOTHING_STORED = Summary(0, 0, NOT_SET, NOT_COUNTED)


@dataclass(slots=True)
class _Kept:
    """The state of one key, and where the log has it."""

    value: Snapshot
    snapshot_offset: int
    updates: int = 0


class ShareState:
    def __init__(self, timers: ShareTimers, clock: Clock, topics: Topics, updates_per_snapshot: int) -> None:
        self.timers = timers
        self.clock = clock
        self._topics = topics
        self._updates_per_snapshot = updates_per_snapshot
        self.keys: dict[ShareKey, _Kept] = {}
        self.on_loaded: Callable[[], None] = lambda: None

    # Operations

    def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> Write[ShareRecord, None]:
        """Begin anew at an offset, or with -1 where the group's settings say.

        Once in each epoch: the same request may come late, from a group coordinator that has been replaced or asks again, and
        members may have worked since.
        """
        self._require_partition(key)
        kept = self.keys.get(key)
        if kept is not None and kept.value.state_epoch > state_epoch:
            raise _fenced_state(key)
        if kept is not None and kept.value.state_epoch == state_epoch:
            return Write((), None)
        now = self.clock.now_ms()
        if kept is None:
            value = Snapshot(0, state_epoch, NOT_SET, start_offset, 0, (), now, now)
        else:
            old = kept.value
            value = Snapshot(
                old.snapshot_epoch + 1, state_epoch, old.leader_epoch, start_offset, 0, (), now, now
            )
        return Write([ShareRecord(key, value)], None)

    def read(self, key: ShareKey, leader_epoch: int) -> Write[ShareRecord, StoredState]:
        """For the leader in this epoch: from now on older ones are refused."""
        self._require_partition(key)
        kept = self.keys.get(key)
        if kept is None:
            raise _not_initialized(key)
        value = kept.value
        self._check_leader(key, value, leader_epoch)
        reply = StoredState(value.state_epoch, value.start_offset, value.batches)
        if leader_epoch <= value.leader_epoch:
            return Write((), reply)
        update = Update(value.snapshot_epoch, leader_epoch, NOT_SET, value.complete_count, ())
        return Write([ShareRecord(key, update, UPDATE)], reply)

    def write(
        self,
        key: ShareKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        complete_count: int,
        batches: Sequence[StateBatch],
    ) -> Write[ShareRecord, None]:
        self._require_partition(key)
        kept = self.keys.get(key)
        if kept is None:
            raise _not_initialized(key)
        value = kept.value
        self._check_leader(key, value, leader_epoch)
        if value.state_epoch > state_epoch:
            raise _fenced_state(key)
        start = value.start_offset if start_offset == NOT_SET else start_offset
        if kept.updates >= self._updates_per_snapshot:
            now = self.clock.now_ms()
            whole = Snapshot(
                value.snapshot_epoch + 1,
                state_epoch,
                leader_epoch,
                start,
                complete_count,
                combine(value.batches, batches, start),
                now,
                now,
            )
            return Write([ShareRecord(key, whole)], None)
        update = Update(
            value.snapshot_epoch, leader_epoch, start_offset, complete_count, combine((), batches, start)
        )
        return Write([ShareRecord(key, update, UPDATE)], None)

    def delete(self, key: ShareKey) -> Write[ShareRecord, None]:
        if key not in self.keys:
            return Write((), None)
        return Write([ShareRecord(key, None, UPDATE), ShareRecord(key, None, SNAPSHOT)], None)

    def summary(self, key: ShareKey, leader_epoch: int) -> Summary:
        """For administrators, who name no leader epoch (-1). A state that does not exist has no start."""
        self._require_partition(key)
        kept = self.keys.get(key)
        if kept is None:
            return NOTHING_STORED
        value = kept.value
        if leader_epoch != NOT_SET:
            self._check_leader(key, value, leader_epoch)
        return Summary(value.state_epoch, value.leader_epoch, value.start_offset, value.complete_count)

    def refresh(self, older_than_ms: int) -> Write[ShareRecord, None]:
        """Snapshots of what has not been written for so long, so that the log before it can go."""
        now = self.clock.now_ms()
        records = [
            ShareRecord(
                key,
                kept.value._replace(
                    snapshot_epoch=kept.value.snapshot_epoch + 1, created_ms=now, written_ms=now
                ),
            )
            for key, kept in self.keys.items()
            if now - kept.value.written_ms >= older_than_ms
        ]
        return Write(records, None)

    def drop_deleted_topics(self) -> Write[ShareRecord, None]:
        gone = [key for key in self.keys if not self._topics.has_partition(key.topic_id, key.partition)]
        records = [ShareRecord(key, None, kind) for key in gone for kind in (UPDATE, SNAPSHOT)]
        return Write(records, None)

    def needed_from(self) -> int | None:
        """Where the log begins that the state can be read from; None while nothing is kept."""
        return min((kept.snapshot_offset for kept in self.keys.values()), default=None)

    def _require_partition(self, key: ShareKey) -> None:
        if not self._topics.has_partition(key.topic_id, key.partition):
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"There is no partition {key.partition} of topic {key.topic_id}.",
            )

    def _check_leader(self, key: ShareKey, value: Snapshot, leader_epoch: int) -> None:
        if value.leader_epoch > leader_epoch:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"Partition {key.partition} of {key.topic_id} has a newer leader, of epoch {value.leader_epoch}.",
            )

    # The state machine

    def encode(self, record: ShareRecord) -> tuple[bytes | bytearray, bytes | bytearray | None]:
        return encode_record(record)

    def decode(self, key: bytes, value: bytes | None) -> ShareRecord | None:
        return decode_record(key, value)

    def replay(self, record: ShareRecord, offset: int, producer_id: int) -> None:
        key, value, kind = record
        kept = self.keys.get(key)
        if value is None:
            if kind == SNAPSHOT:
                self.keys.pop(key, None)
        elif isinstance(value, Snapshot):
            self.keys[key] = _Kept(value, offset)
        elif kept is not None:
            old = kept.value
            start = old.start_offset if value.start_offset == NOT_SET else value.start_offset
            kept.value = old._replace(
                leader_epoch=old.leader_epoch if value.leader_epoch == NOT_SET else value.leader_epoch,
                start_offset=start,
                complete_count=value.complete_count,
                batches=combine(old.batches, value.batches, start),
                written_ms=self.clock.now_ms(),
            )
            kept.updates += 1

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """Nothing here is part of a transaction."""

    def loaded(self) -> None:
        self.on_loaded()

    def unloaded(self) -> None:
        """No request waits in the state."""


def _not_initialized(key: ShareKey) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"Share group {key.group_id} has no state for partition {key.partition} of {key.topic_id}; "
        "a member that subscribes to the topic makes it.",
    )


def _fenced_state(key: ShareKey) -> KafkaError:
    return KafkaError(
        ErrorCode.FENCED_STATE_EPOCH,
        f"The offsets of share group {key.group_id} for partition {key.partition} of {key.topic_id} were reset.",
    )
