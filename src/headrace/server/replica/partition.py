"""One partition as this broker holds it: the log, its role, the high watermark, and the requests that wait for it to move.

Only the partition moves the high watermark. A waiting request registers here and leaves when served: a fetch (or a fetch
session) as a watcher, an acknowledgement as a callback at an offset.
"""

from __future__ import annotations

import asyncio
import uuid
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from typing import Protocol

from headrace.server.cluster.image import Partition as PartitionState
from headrace.server.cluster.read_only import NO_APPEND
from headrace.server.config.topic import TopicConfig
from headrace.server.log.config import LogConfig
from headrace.server.log.flusher import GroupFlusher
from headrace.server.log.partition import AppendResult, PartitionLog
from headrace.server.log.producers import AppendOrigin, VerificationGuard
from headrace.server.replica.leadership import Leadership
from headrace.server.replica.traffic import Traffic
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
        "_end_watchers",
        "_flush_messages",
        "_flusher",
        "_flushing",
        "_log_took_part",
        "_watchers",
        "config",
        "index",
        "leader_epoch",
        "leader_id",
        "leadership",
        "log",
        "mirrored",
        "sync_before_ack",
        "topic",
        "topic_id",
        "traffic",
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
        traffic: Traffic | None = None,
    ) -> None:
        """`traffic` counts what goes through the topic's partitions on this broker."""
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.traffic = traffic or Traffic()
        self.leadership: Leadership | None = None
        """What it knows as the leader; None while it follows."""
        self.leader_id = -1
        self.leader_epoch = -1
        self.mirrored = False
        """It follows a partition of another cluster: nobody else appends, and its epochs are those of the source."""
        self._flusher = flusher
        self._flushing = False
        self._log_took_part = False
        """As leader: the log was usable in this epoch, and may have records of it."""
        # Woken in the order in which they came.
        self._watchers: dict[Watcher, None] = {}
        self._end_watchers: dict[Watcher, None] = {}
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

    @property
    def is_leader(self) -> bool:
        return self.leadership is not None

    def take_role(self, state: PartitionState, broker_id: int, now: float) -> None:
        """Follow what the cluster's image says of this partition."""
        if state.leader_epoch < self.leader_epoch:
            return
        self.leader_id = state.leader
        if state.leader != broker_id:
            self._follow(state.leader_epoch)
        elif self.leadership is None or state.leader_epoch > self.leader_epoch:
            self._lead(state, broker_id, now)
        else:
            self.leadership.adopt(state, now)
            self._advance()

    def _lead(self, state: PartitionState, broker_id: int, now: float) -> None:
        self.leader_epoch = state.leader_epoch
        self.leadership = Leadership(state, broker_id, self.log.log_end_offset, now)
        self._log_took_part = self.log.offline_reason is None
        self._begin_term(self.leadership)

    def _begin_term(self, leadership: Leadership) -> None:
        if leadership.followers and not self.mirrored:
            self.log.begin_epoch(self.leader_epoch)
        self._advance()

    def _follow(self, leader_epoch: int) -> None:
        led = self.leadership is not None
        self.leadership = None
        if led or leader_epoch != self.leader_epoch:
            self.leader_epoch = leader_epoch
            self._give_up(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def close(self) -> None:
        """The partition is deleted or moved away: waiting requests get the error."""
        self.leadership = None
        self._give_up(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def log_failed(self) -> None:
        """The log will come back from recovery, perhaps without its last records: fail the requests that wait for them."""
        self._give_up(ErrorCode.KAFKA_STORAGE_ERROR)

    @property
    def needs_new_term(self) -> bool:
        """Whether a leader's log, offline now, may come back without records of this epoch that followers have.

        Continuing in the same epoch would give the same offset and epoch to other records.
        """
        leadership = self.leadership
        return leadership is not None and bool(leadership.followers) and self._log_took_part

    def log_returned(self) -> None:
        """The log is back: if this broker leads and has appended nothing in this epoch, the epoch begins at the end of the log."""
        if self.leadership is not None:
            self._log_took_part = True
            self.leadership.epoch_start = self.log.log_end_offset
            self._begin_term(self.leadership)

    def _give_up(self, code: ErrorCode) -> None:
        waiting, self._committed = self._committed, deque()
        for _, callback in waiting:
            callback(code)
        self._wake(self._end_watchers)
        self._wake(self._watchers)

    # Following.

    def append_from_leader(self, records: memoryview, high_watermark: int, log_start_offset: int) -> None:
        """Append what the leader sent, and take over its high watermark."""
        log = self.log
        if len(records):
            log.append_as_follower(records)
            self.traffic.replication_bytes_in += len(records)
        if log_start_offset > log.log_start_offset:
            log.advance_log_start(min(log_start_offset, log.log_end_offset))
        reached = min(high_watermark, log.log_end_offset)
        if reached > log.high_watermark:
            log.set_high_watermark(reached)
            self._wake(self._watchers)

    @property
    def awaits_disk(self) -> bool:
        """Whether, in sync mode, some records are not on disk yet."""
        return self.sync_before_ack and self.log.log_end_offset > self.log.recovery_point

    def bring_to_disk(self) -> asyncio.Future[None] | None:
        """What flush.messages asks of a follower. In sync mode: done when the leader may count the records as replicated."""
        log = self.log
        if not log.must_flush:
            return None
        if self.sync_before_ack:
            return self._flusher.flush_through(log, log.log_end_offset)
        self._flush()
        return None

    def truncate(self, offset: int) -> None:
        """Remove records that are not in the leader's history."""
        self.log.truncate_to(offset)

    # Leading.

    def follower_fetched(
        self, replica: int, offset: int, broker_epoch: int, now: float, log_start_offset: int = 0
    ) -> bool:
        """A follower fetches from `offset`; returns whether that was recorded, which it is for a known follower."""
        leadership = self.leadership
        follower = leadership.followers.get(replica) if leadership is not None else None
        if leadership is None or follower is None:
            return False
        if not self.log.log_start_offset <= offset <= self.log.log_end_offset:
            return False  # It gets OFFSET_OUT_OF_RANGE: its log is not a prefix of this one.
        follower.fetched(offset, self.log.log_end_offset, broker_epoch, now, log_start_offset)
        if replica in leadership.maximal_isr:
            self._advance()
        return True

    def may_join(self, replica: int) -> bool:
        """Whether a follower has caught up and can be added to the ISR."""
        leadership = self.leadership
        return leadership is not None and leadership.may_join(replica, self.log.high_watermark)

    def follower_left(self, replica: int) -> None:
        """A follower no longer fetches this partition."""
        follower = self.leadership.followers.get(replica) if self.leadership is not None else None
        if follower is not None:
            follower.left()

    def isr_changed(self) -> None:
        """The ISR or what is proposed for it changed: the high watermark may move."""
        if self.leadership is not None:
            self._advance()

    @property
    def has_caught_up(self) -> bool:
        """Whether a leader's high watermark has reached the start of its epoch, so that it is not below one reported earlier."""
        return self.leadership is not None and self.log.high_watermark >= self.leadership.epoch_start

    def has_in_sync(self, replica: int) -> bool:
        """As leader: whether a replica is in the ISR."""
        return self.leadership is not None and replica in self.leadership.isr

    @property
    def below_minimum(self) -> bool:
        """Fewer replicas are in sync than min.insync.replicas asks for."""
        leadership = self.leadership
        return leadership is not None and len(leadership.isr) < self.config.min_insync_replicas

    # Writing.

    def append(
        self,
        records: memoryview,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        acks: int = 1,
        guard: VerificationGuard | None = None,
    ) -> AppendResult:
        """Append as the leader. The reply to acks=all waits for `when_committed`, as does any in sync mode."""
        leadership = self.leadership
        if leadership is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {self}")
        if self.mirrored:
            raise KafkaError(ErrorCode.INVALID_REQUEST, NO_APPEND.format(self.topic))
        if acks == -1 and self.below_minimum:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self} has {len(leadership.isr)} in-sync replicas, and min.insync.replicas asks for "
                f"{self.config.min_insync_replicas}",
            )
        appended = self.log.append_as_leader(
            records, leader_epoch=self.leader_epoch, origin=origin, guard=guard
        )
        traffic = self.traffic
        traffic.produce_requests += 1
        traffic.bytes_in += len(records)
        traffic.messages_in += appended.last_offset - appended.first_offset + 1
        if self._end_watchers:
            self._wake(self._end_watchers)
        self._advance()
        return appended

    # Mirroring: the leader follows a partition of another cluster.

    def append_from_source(self, records: memoryview, log_start_offset: int) -> None:
        """Append what the source's leader sent, as it is, and let the log start where the source's does."""
        log = self.log
        if len(records):
            before = log.log_end_offset
            appended = log.append_as_follower(records)
            if appended is not None:
                self.traffic.bytes_in += len(records)
                self.traffic.messages_in += log.log_end_offset - before
                self._wake(self._end_watchers)
                self._advance()
        start = min(log_start_offset, log.high_watermark)
        if start > log.log_start_offset:
            log.advance_log_start(start)
            self._wake(self._end_watchers)
            self._wake(self._watchers)

    def start_over_at(self, offset: int) -> None:
        """The source has nothing before `offset` any more: what is here goes, and mirroring continues there."""
        self.log.truncate_fully_and_start_at(offset)
        for follower in self.leadership.followers.values() if self.leadership is not None else ():
            follower.left()  # What it has is not in this log.
        self._wake(self._end_watchers)
        self._wake(self._watchers)

    def discard_from(self, offset: int) -> None:
        """The source does not have what is here from `offset` on, and an operator gave it up."""
        self.log.truncate_to(offset)
        for follower in self.leadership.followers.values() if self.leadership is not None else ():
            follower.left()
        self._wake(self._end_watchers)
        self._wake(self._watchers)

    @property
    def is_whole(self) -> bool:
        """Whether every replica in sync is known to have all of a leader's log."""
        leadership, end = self.leadership, self.log.log_end_offset
        return leadership is not None and leadership.committed_end(end) == end

    def must_wait(self, offset: int, acks: int) -> bool:
        """Whether the reply to a produce whose last record is at `offset` has to wait for `when_committed`."""
        return offset >= self.log.high_watermark and (acks == -1 or self.sync_before_ack)

    def delete_records(self, offset: int) -> int:
        """Move the start of the log to `offset` (-1: the high watermark); returns where it starts now."""
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {self}")
        if self.mirrored:
            raise KafkaError(ErrorCode.INVALID_REQUEST, NO_APPEND.format(self.topic))
        if self.config.compact and not self.config.delete:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"{self.topic} is compacted and never deletes by offset"
            )
        target = self.log.high_watermark if offset == -1 else offset
        if target < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.log.delete_records(target)
        self._wake(self._end_watchers)
        self._wake(self._watchers)
        return self.log.log_start_offset

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(the largest epoch not above the one asked, where its records end); the current one ends with the log."""
        if epoch == self.leader_epoch:
            return epoch, self.log.log_end_offset
        return self.log.end_offset_for(epoch)

    def when_committed(self, offset: int, callback: Committed) -> None:
        """Call back when the record at `offset` is committed: at once if it is already."""
        waiting = self._committed
        if offset < self.log.high_watermark:
            callback(ErrorCode.NONE)
        elif not waiting or waiting[-1][0] <= offset:
            waiting.append((offset, callback))
        else:
            # A batch that was sent twice, with others in between: it waits with the first copy.
            waiting.insert(bisect_right(waiting, offset, key=lambda each: each[0]), (offset, callback))

    def forget(self, offset: int, callback: Committed) -> bool:
        """The waiting request gives up (a timeout); False when it was called already."""
        try:
            self._committed.remove((offset, callback))
        except ValueError:
            return False
        return True

    def _advance(self) -> None:
        """Move the high watermark as far as the replicas, and in sync mode the disk, allow."""
        log, leadership = self.log, self.leadership
        if log.offline_reason is not None:
            return  # It is not known which of its records will survive.
        reached = log.log_end_offset
        if reached - log.recovery_point >= self._flush_messages:
            if self.sync_before_ack:
                reached = log.recovery_point
            self._flush()
        if leadership is not None and leadership.followers:
            reached = leadership.committed_end(reached)
        if reached > log.high_watermark:
            log.set_high_watermark(reached)
            committed = self._committed
            while committed and committed[0][0] < reached:
                committed.popleft()[1](ErrorCode.NONE)
            if self._watchers:
                self._wake(self._watchers)

    def _flush(self) -> None:
        """Flush what is written in one go; what arrives meanwhile goes with the next flush."""
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

    def watch(self, watcher: Watcher, *, end: bool = False) -> None:
        """Notify `watcher` when the high watermark moves, or with `end` (a follower) when the log grows."""
        (self._end_watchers if end else self._watchers)[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        self._watchers.pop(watcher, None)
        self._end_watchers.pop(watcher, None)

    def _wake(self, watchers: dict[Watcher, None]) -> None:
        for watcher in tuple(watchers):
            watcher.partition_moved(self)
