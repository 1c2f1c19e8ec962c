"""ShareFetch: records for one member of a share group, each locked for it; and what it says of earlier ones.

- Epoch 0 opens a share session, -1 ends it; the partitions stay from one request to the next.
- Waits up to max_wait_ms for min_bytes; an error is reported at once. Acknowledgements are stored before the reply.
- Batches come whole. Of them the member has only what the reply lists as acquired.
- 2: the limit on records may be exact; acknowledgements may renew locks, and then nothing is fetched
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from headrace.clock import Timer
from headrace.server.api.context import Context
from headrace.server.api.share_requests import (
    Entry,
    acknowledge,
    failure,
    leader_of,
    require_share_group,
    require_topic,
    when_all_known,
)
from headrace.server.coordinator.promise import Promise
from headrace.server.share.chunk import Chunk
from headrace.server.share.in_flight import Acquired
from headrace.server.share.partition import SharePartition, State
from headrace.server.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

log = logging.getLogger(__name__)

EXACT = 1
"""The acquire mode in which max_records is a limit, not a hint."""

Reading = Callable[[bool], Chunk | None]


def handle(context: Context, request: ShareFetchRequest) -> ShareFetchResponse | Promise[ShareFetchResponse]:
    try:
        return _Fetch(context, request).start()
    except KafkaError as error:
        return ShareFetchResponse(error_code=error.code, error_message=error.message or None)


class _Step(enum.Enum):
    LOOKING = enum.auto()
    WAITING = enum.auto()
    READING = enum.auto()
    """A thread reads, because the disk is needed."""
    STORING = enum.auto()
    """It has what it gets; its acknowledgements are not stored yet."""
    ANSWERED = enum.auto()


class _Found(NamedTuple):
    entry: Entry
    partition: SharePartition
    chunk: Chunk


class _Fetch:
    """One share fetch from its arrival to its reply."""

    def __init__(self, context: Context, request: ShareFetchRequest) -> None:
        self._context = context
        self._request = request
        self._sharing = context.engines.sharing
        self._member = require_share_group(context, request.group_id, request.member_id)
        self._acknowledged: dict[Entry, Promise[None]] = {}
        self._answer: Promise[ShareFetchResponse] = Promise()
        self._replies: dict[Entry, PartitionData] = {}
        self._step = _Step.LOOKING
        self._last = False
        """The time to wait is over."""
        self._timer: Timer | None = None
        self._watched: list[SharePartition] = []
        self._session = self._open_session()

    def _open_session(self) -> ShareSession:
        request, member, sessions = self._request, self._member, self._sharing.sessions
        if request.share_session_epoch == INITIAL_EPOCH:
            if any(part.acknowledgement_batches for topic in request.topics for part in topic.partitions):
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    "The first request of a share session cannot acknowledge anything.",
                )
            session = sessions.open(*member)
            lost = self._context.connection.when_lost
            key = ("share session", *member)
            lost[key] = lambda: sessions.end(session)
        else:
            session = sessions.continued(*member, request.share_session_epoch)
        if request.share_session_epoch != FINAL_EPOCH:
            for topic in request.topics:
                for part in topic.partitions:
                    session.add(topic.topic_id, part.partition_index)
            for forgotten in request.forgotten_topics_data:
                for index in forgotten.partitions:
                    session.forget(forgotten.topic_id, index)
        return session

    def start(self) -> Promise[ShareFetchResponse]:
        request = self._request
        for topic in request.topics:
            for part in topic.partitions:
                if part.acknowledgement_batches:
                    entry = (topic.topic_id, part.partition_index)
                    self._acknowledged[entry] = acknowledge(
                        self._context,
                        self._member,
                        entry,
                        part.acknowledgement_batches,
                        renewing=request.is_renew_ack,
                    )
        if request.share_session_epoch == FINAL_EPOCH:
            self._sharing.sessions.end(self._session)
            self._finish()
        elif request.is_renew_ack or request.max_records <= 0 or request.max_bytes <= 0:
            self._finish()
        else:
            self._session.on_end = self._session_ended
            self._last = request.max_wait_ms <= 0 or not self._session.entries
            self._look()
        return self._answer

    # Looking

    def _look(self) -> None:
        """Find records in the session's partitions, and take them if they are enough."""
        self._step = _Step.LOOKING
        readings: list[tuple[Entry, SharePartition, Reading]] = []
        room = min(self._request.max_bytes, self._context.engines.fetch_max_bytes)
        for entry in list(self._session.entries):
            try:
                partition = self._partition(entry)
                reading = (
                    partition.reading(room, self._request.max_records)
                    if partition.state is State.ACTIVE
                    else None
                )
            except KafkaError as error:
                self._refuse(entry, error)
            else:
                if reading is not None:
                    readings.append((entry, partition, reading))
        try:
            found = _read(readings, nowait=True)
        except BlockingIOError:
            self._look_in_thread(readings)
        else:
            self._looked(found)

    def _look_in_thread(self, readings: list[tuple[Entry, SharePartition, Reading]]) -> None:
        self._step = _Step.READING
        future = asyncio.get_running_loop().run_in_executor(
            self._context.engines.disk, lambda: _read(readings, nowait=False)
        )

        def arrived(done: asyncio.Future[list[_Found | tuple[Entry, KafkaError]]]) -> None:
            if self._step is not _Step.READING:
                return
            error = done.exception()
            if error is not None:
                self._fail(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)))
            else:
                self._looked(done.result())

        future.add_done_callback(arrived)

    def _partition(self, entry: Entry) -> SharePartition:
        """Perhaps still loading; KafkaError where it cannot be had."""
        require_topic(self._context, entry[0])
        used = self._session.entries[entry]
        if used is not None and used.state is State.GONE:
            self._session.entries[entry] = None
            if used.error is not None:
                raise used.error
        partition = self._sharing.partitions.find(self._member.group_id, *entry)
        self._session.use(entry, partition)
        return partition

    def _looked(self, found: Sequence[_Found | tuple[Entry, KafkaError]]) -> None:
        chunks = []
        for each in found:
            if isinstance(each, _Found):
                chunks.append(each)
            else:
                self._refuse(*each)
        size = sum(len(each.chunk.data) for each in chunks)
        if self._last or self._replies or (chunks and size >= self._request.min_bytes):
            self._take(chunks)
        if self._last or self._replies:
            self._finish()
        else:
            self._wait()

    def _take(self, found: Sequence[_Found]) -> None:
        request = self._request
        left, room = request.max_records, min(request.max_bytes, self._context.engines.fetch_max_bytes)
        for entry, partition, chunk in found:
            if left <= 0 or room <= 0 or partition.state is not State.ACTIVE:
                continue
            acquired = partition.acquire(
                self._member.member_id,
                chunk,
                left,
                exact=request.share_acquire_mode == EXACT,
                group_by=request.batch_size,
            )
            if acquired:
                records = chunk.records(acquired)
                left -= sum(each.last - each.first + 1 for each in acquired)
                room -= len(records)
                traffic = partition.partition.traffic
                traffic.fetch_requests += 1
                traffic.bytes_out += len(records)
                self._replies[entry] = _delivered(entry, records, acquired)

    # Waiting

    def _wait(self) -> None:
        self._step = _Step.WAITING
        if self._timer is None:
            self._timer = self._context.engines.clock.call_later(
                self._request.max_wait_ms / 1000, self._expired
            )
        self._watched = [each for each in self._session.entries.values() if each is not None]
        for partition in self._watched:
            partition.wait(self)

    def share_moved(self, partition: SharePartition) -> None:
        if self._step is _Step.WAITING:
            self._look_again()

    def _expired(self) -> None:
        self._last = True
        if self._step is _Step.WAITING:
            self._look_again()

    def _look_again(self) -> None:
        """Nothing else handles an error here, and without an answer the connection would wait for ever."""
        self._stop_watching()
        try:
            self._look()
        except Exception:
            log.exception("a share fetch failed inside the broker")
            self._fail(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))

    def _session_ended(self) -> None:
        """The connection is gone, or the member has opened another session."""
        if self._step in (_Step.WAITING, _Step.READING):
            self._fail(KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND, "The share session has ended."))

    def _stop_watching(self) -> None:
        watched, self._watched = self._watched, []
        for partition in watched:
            partition.stop_waiting(self)

    # Answering

    def _refuse(self, entry: Entry, error: KafkaError) -> None:
        self._replies[entry] = PartitionData(
            entry[1],
            error.code,
            error.message or None,
            current_leader=LeaderIdAndEpoch(*leader_of(self._context, entry)),
        )

    def _finish(self) -> None:
        self._step = _Step.STORING
        self._end_waiting()
        self._session.rotate()
        when_all_known(self._acknowledged.values()).when_done(lambda _: self._reply())

    def _fail(self, error: KafkaError) -> None:
        self._step = _Step.ANSWERED
        self._end_waiting()
        self._answer.set_result(
            ShareFetchResponse(error_code=error.code, error_message=error.message or None)
        )

    def _end_waiting(self) -> None:
        self._stop_watching()
        if self._timer is not None:
            self._timer.cancel()

    def _reply(self) -> None:
        if self._step is not _Step.STORING:
            return
        self._step = _Step.ANSWERED
        for entry, promise in self._acknowledged.items():
            reply = self._replies.get(entry)
            if reply is None:
                leader = LeaderIdAndEpoch(*leader_of(self._context, entry))
                reply = self._replies[entry] = PartitionData(entry[1], current_leader=leader)
            reply.acknowledge_error_code, reply.acknowledge_error_message = failure(promise)
        topics: dict[bytes, ShareFetchableTopicResponse] = {}
        leaders = set()
        for (topic_id, _), reply in self._replies.items():
            topic = topics.setdefault(topic_id.bytes, ShareFetchableTopicResponse(topic_id))
            topic.partitions.append(reply)
            if ErrorCode.NOT_LEADER_OR_FOLLOWER in (reply.error_code, reply.acknowledge_error_code):
                leaders.add(reply.current_leader.leader_id)
        endpoints = self._context.engines.replicas.endpoints(leaders, self._context.connection.listener_name)
        self._answer.set_result(
            ShareFetchResponse(
                acquisition_lock_timeout_ms=self._sharing.settings.of(self._member.group_id).lock_ms,
                responses=list(topics.values()),
                node_endpoints=[NodeEndpoint(*each) for each in endpoints],
            )
        )


def _read(
    readings: Sequence[tuple[Entry, SharePartition, Reading]], *, nowait: bool
) -> list[_Found | tuple[Entry, KafkaError]]:
    found: list[_Found | tuple[Entry, KafkaError]] = []
    for entry, partition, reading in readings:
        try:
            chunk = reading(nowait)
        except KafkaError as error:
            found.append((entry, error))
        else:
            if chunk is not None:
                found.append(_Found(entry, partition, chunk))
    return found


def _delivered(entry: Entry, records: bytes, acquired: Sequence[Acquired]) -> PartitionData:
    return PartitionData(
        entry[1], records=records, acquired_records=[AcquiredRecords(*each) for each in acquired]
    )
