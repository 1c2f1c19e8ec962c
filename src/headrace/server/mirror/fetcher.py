"""Fetches the mirrored partitions that one broker of the source leads, one request at a time over a fetch session.

Each request names the epoch of the last record this log has, so the reply says where the source's history differs from it
(KIP-595); Apache Kafka answers that to consumers, too. Nothing is cut off here because of it unless an operator has allowed it: the
records that the source does not have were acknowledged once.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from headrace.clock import Clock
from headrace.link.aio import AsyncConnection
from headrace.server.log.agreement import agreed_end
from headrace.server.mirror.position import Phase, Position
from headrace.server.mirror.source import EARLIEST, LATEST, VERSIONS, SourceCluster
from headrace.server.mirror.throttle import LinkThrottle
from headrace.wire.batch import iterate_batches
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from headrace.wire.messages.fetch import PartitionData as PartitionReply

log = logging.getLogger(__name__)

Key = tuple[uuid.UUID, int]

MAX_WAIT_MS = 500
SMALLEST_REPLY, LARGEST_REPLY = 1 << 20, 16 << 20
QUICK_SECONDS, SLOW_SECONDS = 1.0, 2.5
"""A reply must take long beside a round trip, or the line stands idle between two requests; and not too long, because it is lost when
the line breaks meanwhile. So replies become larger while a full one takes less time than this, and smaller when it takes more."""
FIRST_BACKOFF, LONGEST_BACKOFF = 0.1, 5.0

_MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""The source's metadata has to be read again."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    reroute: Callable[[Position], None]
    """Look for the partition's leader at the source again."""
    failed: Callable[[Position, str], None]
    """The source no longer continues this partition; the sentence says how it shows."""
    agreed: Callable[[Position], None]
    """The source continues what is here."""


class SourceFetcher:
    """Owns the positions it was given, while they are FETCHING. `follow` and `leave` take effect with the next request."""

    def __init__(
        self, node: int, source: SourceCluster, clock: Clock, throttle: LinkThrottle, callbacks: Callbacks
    ) -> None:
        self._node = node
        self._source = source
        self._clock = clock
        self._throttle = throttle
        self._callbacks = callbacks
        self._positions: dict[Key, Position] = {}
        self._to_send: dict[Key, None] = {}
        self._to_forget: dict[Key, None] = {}
        self._backing_off: dict[Key, float] = {}
        self._session_id = self._session_epoch = 0
        self._reply_bytes = 2 << 20
        self._work = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def idle(self) -> bool:
        return not self._positions

    def follow(self, position: Position) -> None:
        self._positions[position.key] = position
        self._to_forget.pop(position.key, None)
        self._backing_off.pop(position.key, None)
        self._to_send[position.key] = None
        self._work.set()

    def leave(self, position: Position) -> None:
        key = position.key
        if self._positions.pop(key, None) is not None:
            position.fell_silent()
            self._to_send.pop(key, None)
            self._backing_off.pop(key, None)
            self._to_forget[key] = None

    async def stop(self) -> None:
        for position in self._positions.values():
            position.fell_silent()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        backoff = FIRST_BACKOFF
        connected = False
        while True:
            connection: AsyncConnection | None = None
            try:
                connection = await self._connect()
                while True:
                    await self._wait_for_work()
                    if not connection.fresh:
                        connection.close()
                        connection = await self._connect()
                    await self._fetch(connection)
                    connected, backoff = True, FIRST_BACKOFF
            except (OSError, KafkaError) as error:
                if connected:
                    # The line broke: most often the leader is still there. If not, it is looked for.
                    connected = False
                    for position in self._positions.values():
                        position.fell_silent()
                    continue
                self._lost(f"{error}.")
            except Exception as error:
                log.exception("mirroring from broker %d of the source failed", self._node)
                self._lost(f"{type(error).__name__}: {error}.")
            finally:
                if connection is not None:
                    connection.close()
            await self._clock.sleep(backoff)
            backoff = min(backoff * 2, LONGEST_BACKOFF)

    def _lost(self, trouble: str) -> None:
        """The connection is gone; perhaps the partitions are led elsewhere by now."""
        for position in list(self._positions.values()):
            position.fell_silent()
            position.trouble = trouble
            self._callbacks.reroute(position)

    async def _connect(self) -> AsyncConnection:
        connection = await self._source.connect(self._node)
        self._start_session_over()
        return connection

    def _start_session_over(self) -> None:
        self._session_id = self._session_epoch = 0
        self._to_send = dict.fromkeys(self._positions)
        self._to_forget.clear()
        self._backing_off.clear()

    async def _wait_for_work(self) -> None:
        while True:
            wait = self._throttle.seconds_left()
            if wait > 0:
                await self._clock.sleep(min(wait, 1.0))
                continue
            now = self._clock.monotonic()
            for key in [key for key, until in self._backing_off.items() if until <= now]:
                del self._backing_off[key]
                self._to_forget.pop(key, None)
                self._to_send[key] = None
            if not self._positions:
                self._work.clear()
                await self._work.wait()
            elif len(self._backing_off) == len(self._positions):
                await self._clock.sleep(max(0.001, min(self._backing_off.values()) - now))
            else:
                return

    async def _fetch(self, connection: AsyncConnection) -> None:
        asked_anew = list(self._to_send)
        request = self._request()
        asked_at_ms = self._clock.now_ms()
        began = self._clock.monotonic()
        response = await connection.call(request, VERSIONS[FetchRequest], 30.0)
        if response.error_code:
            if response.error_code not in (
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            ):
                raise KafkaError(ErrorCode(response.error_code))
            self._start_session_over()
            return
        self._adapt(response, self._clock.monotonic() - began)
        self._session_id = response.session_id
        self._session_epoch = self._session_epoch + 1 if response.session_id else 0
        if not response.session_id:
            self._to_send = {key: None for key in self._positions if key not in self._backing_off}
        out_of_range = []
        answered = set()
        for topic in response.responses:
            for reply in topic.partitions:
                key = (topic.topic_id, reply.partition_index)
                position = self._positions.get(key)
                if position is None or position.phase is not Phase.FETCHING:
                    continue
                answered.add(key)
                if self._take(position, reply, asked_at_ms):
                    out_of_range.append(position)
        for key in asked_anew:
            if key not in answered and (quiet := self._positions.get(key)) is not None:
                self._accept(quiet, quiet.source_end, asked_at_ms)  # The session says only what is new.
        for key, position in self._positions.items():
            if key not in answered and position.caught_up_at_ms is not None:
                position.caught_up_at_ms = asked_at_ms  # The session would have told of anything new.
        for position in out_of_range:
            await self._find_place(position)

    def _adapt(self, response: FetchResponse, seconds: float) -> None:
        size = sum(len(reply.records or b"") for topic in response.responses for reply in topic.partitions)
        if size >= self._reply_bytes * 3 // 4:
            if seconds < QUICK_SECONDS:
                self._reply_bytes = min(self._reply_bytes * 2, LARGEST_REPLY)
            elif seconds > SLOW_SECONDS:
                self._reply_bytes = max(self._reply_bytes // 2, SMALLEST_REPLY)

    def _request(self) -> FetchRequest:
        topics: dict[uuid.UUID, FetchTopic] = {}
        for key in self._to_send:
            position = self._positions[key]
            log_ = position.partition.log
            end = log_.log_end_offset
            place = FetchPartition(
                partition=key[1],
                current_leader_epoch=position.source_epoch,
                fetch_offset=end,
                # Of the last record: this cluster may have had a leader since that wrote nothing.
                last_fetched_epoch=log_.epoch_for(end - 1) if end > log_.log_start_offset else -1,
                partition_max_bytes=LARGEST_REPLY,
            )
            topics.setdefault(key[0], FetchTopic(topic_id=key[0])).partitions.append(place)
        forgotten: dict[uuid.UUID, ForgottenTopic] = {}
        for topic_id, index in self._to_forget:
            forgotten.setdefault(topic_id, ForgottenTopic(topic_id=topic_id)).partitions.append(index)
        self._to_send, self._to_forget = {}, {}
        return FetchRequest(
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=self._reply_bytes,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
        )

    def _take(self, position: Position, reply: PartitionReply, asked_at_ms: int) -> bool:
        """Apply one partition's reply; True when its offset is out of the source's range and must be looked up."""
        key, partition = position.key, position.partition
        code = ErrorCode(reply.error_code)
        if not partition.is_leader or not partition.mirrored:
            return False
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            return True
        if code in _MOVED:
            position.fell_silent()
            self._callbacks.reroute(position)
            return False
        if code is not ErrorCode.NONE:
            self._back_off(position, f"The source answers {code.name}.")
            return False
        try:
            if reply.diverging_epoch.end_offset >= 0:
                position.source_end = reply.high_watermark
                agreed = agreed_end(
                    partition.log, reply.diverging_epoch.epoch, reply.diverging_epoch.end_offset
                )
                self._part(position, agreed)
                return False
            self._append(position, memoryview(reply.records or b""), reply.log_start_offset)
            self._accept(position, reply.high_watermark, asked_at_ms)
        except KafkaError as error:
            self._back_off(position, f"{error.message or error.code.name}")
            return False
        if reply.records:
            self._to_send[key] = None
        return False

    def _accept(self, position: Position, source_end: int, asked_at_ms: int) -> None:
        """The source has answered, and continues what is here."""
        position.answered(source_end, asked_at_ms)
        if not position.agreed:
            position.agreed = True
            self._callbacks.agreed(position)

    def _append(self, position: Position, records: memoryview, log_start_offset: int) -> None:
        partition = position.partition
        before = partition.log.log_end_offset
        if len(records) and before == partition.log.log_start_offset:
            # The source's log may start inside a batch, which then comes whole.
            _, first = next(iterate_batches(records))
            if first.base_offset < before <= first.last_offset:
                partition.start_over_at(first.base_offset)
                before = first.base_offset
        partition.append_from_source(records, log_start_offset)
        position.records_in += partition.log.log_end_offset - before
        position.bytes_in += len(records)
        self._throttle.count(len(records))

    def _part(self, position: Position, agreed: int) -> None:
        """From offset `agreed` on, the source has not what is here."""
        if not position.discards:
            self._callbacks.failed(position, _diverged(position, agreed))
            return
        partition = position.partition
        log.warning(
            "%s: discarding offsets %d to %d, which the source does not have",
            partition,
            agreed,
            partition.log.log_end_offset - 1,
        )
        partition.discard_from(agreed)
        self._to_send[position.key] = None

    def _back_off(self, position: Position, trouble: str) -> None:
        log.info("%s backs off from mirroring: %s", position.partition, trouble)
        position.fell_silent()
        position.trouble = trouble
        self._to_send.pop(position.key, None)
        self._to_forget[position.key] = None
        self._backing_off[position.key] = self._clock.monotonic() + 1.0

    async def _find_place(self, position: Position) -> None:
        """The source's log does not hold the offset where this one ends."""
        partition, topic = position.partition, position.partition.topic
        try:
            latest = await self._source.offset(self._node, topic, partition.index, LATEST)
            earliest = await self._source.offset(self._node, topic, partition.index, EARLIEST)
        except KafkaError as error:
            self._back_off(position, f"The source answers {error.code.name}.")
            return
        if self._positions.get(position.key) is not position or not partition.is_leader:
            return
        end = partition.log.log_end_offset
        if latest < end:
            self._part(position, latest)
        elif earliest > end:
            if end > partition.log.log_start_offset or end > 0:
                position.missed += earliest - end
                log.warning(
                    "%s: the source deleted %d records before they were mirrored; it goes on at %d",
                    partition,
                    earliest - end,
                    earliest,
                )
            partition.start_over_at(earliest)
            self._to_send[position.key] = None
        else:
            self._back_off(position, "Its offset is in the source's log, which still refuses it.")


def _diverged(position: Position, agreed: int) -> str:
    log_ = position.partition.log
    return (
        f"The source does not have the records of {position.partition} from offset {agreed} on: {log_.log_end_offset - agreed} of them "
        "are only here. It lost or replaced them (an unclean leader election, a truncation), or they were written here."
    )
