"""One partition as this broker holds it: the log, its role, the high watermark, and who waits for it to move.

The partition is the only one that moves the high watermark. Whoever waits registers here and leaves when served:
a fetch (or a fetch session) as a watcher, an acknowledgement as a callback at an offset.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Callable
from typing import Protocol

from headrace.cluster.image import Partition as PartitionState
from headrace.config.topic import TopicConfig
from headrace.log.config import LogConfig
from headrace.log.flusher import GroupFlusher
from headrace.log.partition import AppendResult, PartitionLog
from headrace.log.producers import AppendOrigin
from headrace.wire.errors import ErrorCode, KafkaError

Committed = Callable[[ErrorCode], None]
"""Called once: NONE when the offset is committed, an error when it never will be from here."""


class Watcher(Protocol):
    def partition_moved(self, partition: Partition) -> None:
        """There may be more to read, or the partition's role changed."""
        ...


class Partition:
    __slots__ = (
        "_committed",
        "_flush_messages",
        "_flusher",
        "_flushing",
        "_watchers",
        "config",
        "index",
        "is_leader",
        "leader_epoch",
        "leader_id",
        "log",
        "sync_before_ack",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        topic_id: uuid.UUID,
        index: int,
        log: PartitionLog,
        config: TopicConfig,
        log_config: LogConfig,
        flusher: GroupFlusher,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.is_leader = False
        self.leader_id = -1
        self.leader_epoch = -1
        self._flusher = flusher
        self._flushing = False
        self._watchers: set[Watcher] = set()
        self._committed: deque[tuple[int, Committed]] = deque()
        self.configure(config, log_config)

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    def configure(self, config: TopicConfig, log_config: LogConfig) -> None:
        """Take new settings; `log_config` is the log's part of them."""
        self.config = config
        self._flush_messages = config.flush_messages
        self.sync_before_ack = config.flush_messages == 1
        self.log.update_config(log_config)

    # Roles.

    def take_role(self, state: PartitionState, broker_id: int) -> None:
        """Follow what the cluster's image says of this partition."""
        self.leader_id = state.leader
        if state.leader == broker_id:
            if not self.is_leader or state.leader_epoch > self.leader_epoch:
                self.is_leader = True
                self.leader_epoch = state.leader_epoch
                self._advance()
        else:
            self.resign(state.leader_epoch)

    def resign(self, leader_epoch: int) -> None:
        self.is_leader = False
        self.leader_epoch = leader_epoch
        self._give_up(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def close(self) -> None:
        """The partition is deleted or moved away: whoever waits is told."""
        self.is_leader = False
        self._give_up(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _give_up(self, code: ErrorCode) -> None:
        waiting, self._committed = self._committed, deque()
        for _, callback in waiting:
            callback(code)
        self._wake()

    # Writing.

    def append(self, records: memoryview, origin: AppendOrigin = AppendOrigin.CLIENT) -> AppendResult:
        """Append as the leader. The reply to acks=all waits for `when_committed`, as does any in sync mode."""
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {self}")
        appended = self.log.append_as_leader(records, leader_epoch=self.leader_epoch, origin=origin)
        self._advance()
        return appended

    def delete_records(self, offset: int) -> int:
        """Move the start of the log to `offset` (-1: the high watermark); returns where it starts now."""
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {self}")
        if not self.config.delete:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"{self.topic} is compacted and never deletes by offset"
            )
        target = self.log.high_watermark if offset == -1 else offset
        if target < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.log.delete_records(target)
        self._wake()
        return self.log.log_start_offset

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(the largest epoch not above the one asked, where its records end); the current one ends with the log."""
        if epoch == self.leader_epoch:
            return epoch, self.log.log_end_offset
        return self.log.end_offset_for(epoch)

    def when_committed(self, offset: int, callback: Committed) -> None:
        """Call back when the record at `offset` is committed: at once if it is already."""
        if offset < self.log.high_watermark:
            callback(ErrorCode.NONE)
        else:
            self._committed.append((offset, callback))

    def forget(self, offset: int, callback: Committed) -> bool:
        """Whoever waited gives up (a timeout); False when it was called already."""
        try:
            self._committed.remove((offset, callback))
        except ValueError:
            return False
        return True

    def _advance(self) -> None:
        """Move the high watermark as far as the replicas, and in sync mode the disk, allow."""
        log = self.log
        reached = log.log_end_offset
        if reached - log.recovery_point >= self._flush_messages:
            if self.sync_before_ack:
                reached = log.recovery_point
            self._flush()
        if reached > log.high_watermark:
            log.set_high_watermark(reached)
            committed = self._committed
            while committed and committed[0][0] < reached:
                committed.popleft()[1](ErrorCode.NONE)
            if self._watchers:
                self._wake()

    def _flush(self) -> None:
        """Bring what is written to the disk in one go; what arrives meanwhile goes with the next."""
        if self._flushing:
            return
        self._flushing = True

        def flushed(done: asyncio.Future[None]) -> None:
            self._flushing = False
            if done.exception() is not None:
                self._give_up(ErrorCode.KAFKA_STORAGE_ERROR)
            elif self.is_leader:
                self._advance()

        self._flusher.flush_through(self.log, self.log.log_end_offset).add_done_callback(flushed)

    # Watching.

    def watch(self, watcher: Watcher) -> None:
        self._watchers.add(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self._watchers.discard(watcher)

    def _wake(self) -> None:
        for watcher in tuple(self._watchers):
            watcher.partition_moved(self)
