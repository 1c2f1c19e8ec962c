"""Fetches every partition that this broker follows from one leader, one request at a time over a fetch session.

The request carries the epoch of the last record this log has; when the leader's history diverges, the reply says where, and
the log is truncated there (KIP-595). So a follower never truncates blindly to its own high watermark: see
docs/replication.md.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.clock import Clock
from headrace.link.errors import BrokerDistrusted
from headrace.server.cluster.peers import Peers
from headrace.server.log.agreement import agreed_end
from headrace.server.replica.partition import Partition
from headrace.server.replica.throttle import ReplicationThrottle
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from headrace.wire.messages.fetch import PartitionData as PartitionReply
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from headrace.link.aio import AsyncConnection

log = logging.getLogger(__name__)

FETCH_VERSION = 17
LIST_OFFSETS_VERSION = 7
EARLIEST, LATEST = -2, -1
FIRST_BACKOFF_SECONDS = 0.02

Key = tuple[uuid.UUID, int]


@dataclass(frozen=True, slots=True)
class FetcherSettings:
    """How a follower fetches, by the settings of `replica.fetch.*`."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int
    backoff_ms: int
    socket_timeout_ms: int = 30_000
    receive_buffer_bytes: int = -1
    """SO_RCVBUF; -1 leaves it to the system."""


class ReplicaFetcher:
    """Follows one leader. `follow` and `leave` take effect with the next request."""

    def __init__(
        self,
        leader_id: int,
        broker_id: int,
        broker_epoch: Callable[[], int],
        peers: Peers,
        clock: Clock,
        settings: FetcherSettings,
        throttle: ReplicationThrottle,
    ) -> None:
        self._leader_id = leader_id
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._peers = peers
        self._clock = clock
        self._settings = settings
        self._throttle = throttle
        self._partitions: dict[Key, Partition] = {}
        self._backing_off: dict[Key, float] = {}
        """Partitions that back off after an error, and when to fetch them again."""
        self._backoffs: dict[Key, float] = {}
        """The last backoff of each, in seconds. Most errors mean only that one broker learned of a new leader before the
        other: the first backoff is short, and the next ones grow to replica.fetch.backoff.ms."""
        self._behind: set[Key] = set()
        """Throttled partitions that have not caught up with the leader."""
        self._held: set[Key] = set()
        """Those that are not fetched until the throttle allows it."""
        self._to_send: dict[Key, None] = {}
        """Partitions whose fetch offset the session does not know yet."""
        self._to_forget: dict[Key, None] = {}
        self._asked_in: dict[Key, int] = {}
        """The leader epoch in which each was last fetched; a reply counts only in that epoch."""
        self._session_id = 0
        self._session_epoch = 0
        self._session_broker_epoch = -1
        self._work = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def idle(self) -> bool:
        return not self._partitions

    def follow(self, partition: Partition) -> None:
        key = (partition.topic_id, partition.index)
        self._partitions[key] = partition
        self._to_forget.pop(key, None)
        self._held.discard(key)
        self._backing_off.pop(key, None)
        self._to_send[key] = None
        self._work.set()

    def leave(self, partition: Partition) -> None:
        key = (partition.topic_id, partition.index)
        if self._partitions.pop(key, None) is not None:
            self._to_send.pop(key, None)
            self._backing_off.pop(key, None)
            self._behind.discard(key)
            self._held.discard(key)
            self._asked_in.pop(key, None)
            self._backoffs.pop(key, None)
            self._to_forget[key] = None

    def ask_again(self, partition: Partition) -> None:
        """Send a partition's fetch offset again, if it is followed and not backing off."""
        key = (partition.topic_id, partition.index)
        if key in self._partitions and key not in self._backing_off and key not in self._held:
            self._to_send[key] = None

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        backoff = self._settings.backoff_ms / 1000
        while True:
            connection: AsyncConnection | None = None
            try:
                connection = await self._connect()
                while True:
                    if not self._partitions:
                        self._work.clear()
                        await self._work.wait()
                    while (wait := self._nothing_to_ask_for()) > 0:
                        # Not longer than a long poll: a partition newly followed should not wait for the others.
                        await self._clock.sleep(min(wait, self._settings.max_wait_ms / 1000))
                    if not connection.fresh:
                        # Its login ends soon, and the leader would close it with a fetch under way.
                        connection.close()
                        connection = await self._connect()
                    await self._fetch(connection)
            except BrokerDistrusted:
                pass  # Said by the peers, with the remedy.
            except OSError as error:
                log.info("following broker %d: %s", self._leader_id, error)
            except Exception:
                log.exception("following broker %d failed", self._leader_id)
            finally:
                if connection is not None:
                    connection.close()
            await self._clock.sleep(min(backoff, 0.1) if self._partitions else backoff)

    async def _connect(self) -> AsyncConnection:
        connection = await self._peers.connect(
            self._leader_id, receive_buffer=self._settings.receive_buffer_bytes
        )
        self._start_session_over()
        return connection

    def _start_session_over(self) -> None:
        self._session_broker_epoch = self._broker_epoch()
        self._session_id = self._session_epoch = 0
        self._to_send = dict.fromkeys(self._partitions)
        self._to_forget.clear()
        self._asked_in.clear()
        self._backing_off.clear()
        self._behind.clear()
        self._held.clear()

    async def _fetch(self, connection: AsyncConnection) -> None:
        if self._broker_epoch() != self._session_broker_epoch:
            # This broker registered again; the leader counts it as in sync only under its current epoch.
            self._start_session_over()
        await self._bring_to_disk()
        request = self._request()
        response = await connection.call(request, FETCH_VERSION, self._settings.socket_timeout_ms / 1000)
        assert isinstance(response, FetchResponse)
        if response.error_code:
            if response.error_code not in (
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            ):
                log.info("broker %d refused: %s", self._leader_id, ErrorCode(response.error_code).name)
                await self._clock.sleep(self._settings.backoff_ms / 1000)
            self._start_session_over()
            return
        self._session_id = response.session_id
        self._session_epoch = self._session_epoch + 1 if response.session_id else 0
        out_of_range = []
        for topic in response.responses:
            for reply in topic.partitions:
                key = (topic.topic_id, reply.partition_index)
                partition = self._partitions.get(key)
                if partition is None or self._asked_in.get(key) != partition.leader_epoch:
                    continue  # The partition's role changed meanwhile; `follow` has already asked for it again.
                if self._take(key, partition, reply):
                    out_of_range.append(partition)
        for partition in out_of_range:
            try:
                await self._find_place(connection, partition)
            except KafkaError as error:
                self._back_off((partition.topic_id, partition.index), partition, error.message)
        if not response.session_id:
            asked = self._partitions.keys() - self._backing_off.keys() - self._held
            self._to_send = dict.fromkeys(asked)

    def _nothing_to_ask_for(self) -> float:
        """Seconds until there is something to fetch; 0 when there is already."""
        self._resume_after_backoff()
        self._hold_throttled()
        idle = len(self._backing_off.keys() | self._held)
        if not idle or idle < len(self._partitions):
            return 0.0
        waits = [until - self._clock.monotonic() for until in self._backing_off.values()]
        if self._held:
            waits.append(self._throttle.seconds_left())
        return max(min(waits), 0.001)

    def _hold_throttled(self) -> None:
        """Leave out throttled partitions that are not in sync while the limit is exceeded; those in sync continue."""
        if self._throttle.seconds_left() > 0:
            for key in self._behind:
                self._leave_out(key)
            self._held |= self._behind
            self._behind.clear()
        elif self._held:
            for key in self._held:
                self._ask_for(key)
            self._held.clear()

    def _resume_after_backoff(self) -> None:
        now = self._clock.monotonic()
        for key in [key for key, until in self._backing_off.items() if until <= now]:
            del self._backing_off[key]
            self._ask_for(key)

    def _leave_out(self, key: Key) -> None:
        """Remove it from the session: otherwise every reply would contain records that this broker does not want now."""
        self._to_send.pop(key, None)
        self._to_forget[key] = None

    def _ask_for(self, key: Key) -> None:
        self._to_forget.pop(key, None)
        self._to_send[key] = None

    async def _bring_to_disk(self) -> None:
        """A fetch offset states that everything before it is here: in sync mode, on disk."""
        flushes = {key: self._partitions[key].bring_to_disk() for key in self._to_send}
        waiting = {key: flush for key, flush in flushes.items() if flush is not None}
        if not waiting:
            return
        await asyncio.wait(waiting.values())
        for key, flush in waiting.items():
            error, partition = flush.exception(), self._partitions.get(key)
            if error is not None and partition is not None:
                self._back_off(key, partition, f"the disk: {error}")

    def _request(self) -> FetchRequest:
        settings = self._settings
        topics: dict[uuid.UUID, FetchTopic] = {}
        later: dict[Key, None] = {}
        for key in list(self._to_send):
            partition = self._partitions[key]
            if partition.awaits_disk:  # Followed again while the others were flushed.
                later[key] = None
                continue
            try:
                place = self._place(partition)
            except KafkaError as error:  # Its log failed; the others must continue.
                self._back_off(key, partition, error.message)
                continue
            self._asked_in[key] = partition.leader_epoch
            topics.setdefault(key[0], FetchTopic(topic_id=key[0])).partitions.append(place)
        forgotten: dict[uuid.UUID, ForgottenTopic] = {}
        for topic_id, index in self._to_forget:
            forgotten.setdefault(topic_id, ForgottenTopic(topic_id=topic_id)).partitions.append(index)
        self._to_send, self._to_forget = later, {}
        return FetchRequest(
            max_wait_ms=settings.max_wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
            replica_state=ReplicaState(self._broker_id, self._broker_epoch()),
        )

    def _place(self, partition: Partition) -> FetchPartition:
        log_ = partition.log
        return FetchPartition(
            partition=partition.index,
            current_leader_epoch=partition.leader_epoch,
            fetch_offset=log_.log_end_offset,
            last_fetched_epoch=log_.latest_epoch,
            log_start_offset=log_.log_start_offset,
            partition_max_bytes=self._settings.partition_max_bytes,
        )

    def _take(self, key: Key, partition: Partition, reply: PartitionReply) -> bool:
        """Apply one partition's reply; True when its offset is out of the leader's range and must be looked up."""
        code = ErrorCode(reply.error_code)
        if partition.is_leader or code is ErrorCode.OFFSET_OUT_OF_RANGE:
            return not partition.is_leader
        try:
            if code is not ErrorCode.NONE:
                self._back_off(key, partition, code.name)
            elif reply.diverging_epoch.end_offset >= 0:
                self._cut(partition, reply.diverging_epoch.epoch, reply.diverging_epoch.end_offset)
                self._to_send[key] = None
            else:
                records = reply.records or b""
                before = partition.log.log_end_offset
                partition.append_from_leader(
                    memoryview(records), reply.high_watermark, reply.log_start_offset
                )
                if partition.log.log_end_offset != before:
                    self._to_send[key] = None
                self._count(key, partition, len(records), reply.high_watermark)
                if self._backoffs:
                    self._backoffs.pop(key, None)
        except KafkaError as error:
            self._back_off(key, partition, error.message or error.code.name)
        return False

    def _count(self, key: Key, partition: Partition, size: int, high_watermark: int) -> None:
        self._behind.discard(key)
        if self._throttle.covers(partition):
            self._throttle.count(size)
            if partition.log.log_end_offset < high_watermark:
                self._behind.add(key)

    def _back_off(self, key: Key, partition: Partition, reason: str) -> None:
        log.info("%s backs off from following broker %d: %s", partition, self._leader_id, reason)
        self._leave_out(key)
        seconds = min(
            self._backoffs.get(key, FIRST_BACKOFF_SECONDS / 2) * 2, self._settings.backoff_ms / 1000
        )
        self._backoffs[key] = seconds
        self._backing_off[key] = self._clock.monotonic() + seconds

    def _cut(self, partition: Partition, epoch: int, end_offset: int) -> None:
        target = agreed_end(partition.log, epoch, end_offset)
        log.info("%s: truncating from %d to %d", partition, partition.log.log_end_offset, target)
        partition.truncate(target)

    async def _find_place(self, connection: AsyncConnection, partition: Partition) -> None:
        """The fetch offset is not in the leader's log: start over where it has records."""
        key, epoch = (partition.topic_id, partition.index), partition.leader_epoch

        def still_follows() -> bool:
            """A reply from before a role change no longer applies to this log."""
            return partition.leader_epoch == epoch and self._partitions.get(key) is partition

        latest = await self._offset_of(connection, partition, LATEST)
        if not still_follows():
            return
        if latest is not None and latest < partition.log.log_end_offset:
            log.warning(
                "%s: the leader's log ends at %d, before this one; truncating there", partition, latest
            )
            partition.truncate(latest)
            self._to_send[key] = None
            return
        earliest = await self._offset_of(connection, partition, EARLIEST)
        if not still_follows():
            return
        if earliest is not None and earliest > partition.log.log_end_offset:
            log.info("%s: starts over at %d, the leader's first offset", partition, earliest)
            partition.log.truncate_fully_and_start_at(earliest)
            self._to_send[key] = None
        else:
            self._back_off(key, partition, "its offset is in the leader's log, which still refuses it")

    async def _offset_of(self, connection: AsyncConnection, partition: Partition, time: int) -> int | None:
        asked = ListOffsetsPartition(partition.index, partition.leader_epoch, time)
        topic = ListOffsetsTopic(partition.topic, [asked])
        response = await connection.call(
            ListOffsetsRequest(replica_id=self._broker_id, topics=[topic]),
            LIST_OFFSETS_VERSION,
            self._settings.socket_timeout_ms / 1000,
        )
        assert isinstance(response, ListOffsetsResponse)
        answer = response.topics[0].partitions[0]
        return answer.offset if answer.error_code == 0 else None
