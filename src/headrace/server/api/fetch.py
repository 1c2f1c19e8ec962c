"""Fetch: record batches from an offset on, for consumers up to the high watermark, for followers to the end.

- Waits up to max_wait_ms for min_bytes; an error or a divergence is reported at once.
- Sessions (7+): only partitions with news are in the reply.
- At least one whole batch is sent from the first partition that has one, however small the limits.
- 9: leader epochs are checked  - 11: rack  - 12: the reply reports divergence  - 13: topic ids
- 15: the follower's id travels as a tagged field
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from headrace.clock import Timer
from headrace.server.api.context import Context
from headrace.server.api.fetch_states import TRANSITIONS, Event, State
from headrace.server.api.topic_permissions import topic_permission
from headrace.server.config.broker_table import RACK_AWARE
from headrace.server.net.connection import FAILED_INSIDE
from headrace.server.quotas.meter import Meter
from headrace.server.replica.fetching import FetchEntry, FetchReader, Permission
from headrace.server.replica.partition import Partition
from headrace.server.replica.selector import Selector, rack_aware
from headrace.server.replica.sessions import FIRST_EPOCH, INITIAL_EPOCH, FetchSession
from headrace.server.security.operations import Operation
from headrace.wire.codec import decode
from headrace.wire.errors import KafkaError
from headrace.wire.fetch import TOPIC_IDS, Part, PartitionReply, encode_reply, size_of
from headrace.wire.messages.fetch import FetchRequest

log = logging.getLogger(__name__)

Replies = list[tuple[FetchEntry, PartitionReply]]

READ = Operation.READ
"""Python 3.11 takes its time to look up a member of an enum."""


def handle_frame(context: Context, frame: memoryview, position: int) -> None:
    request, _ = decode(FetchRequest, context.version, frame, position)
    try:
        fetch = _Fetch(context, request)
    except KafkaError as error:
        throttle_ms = 0 if context.meter is None else context.meter.answered()
        parts = encode_reply(
            context.version,
            context.correlation_id,
            (),
            error_code=error.code,
            throttle_time_ms=throttle_ms,
        )
        context.reply_parts(parts)
        return
    fetch.look()


def _permission(context: Context, by_id: bool, replica_id: int) -> Permission:
    """A consumer needs READ on the topic; a follower, which sees more than consumers, must be a broker."""
    if replica_id < 0:
        return topic_permission(context, READ, by_id)
    is_broker = context.may_on_cluster(Operation.CLUSTER_ACTION)
    return frozenset(), lambda topic: is_broker


def _selector(context: Context, rack: str) -> Selector | None:
    """Only a consumer that names its rack can be redirected, and only when the broker has a replica selector."""
    engines = context.engines
    if not rack or engines.config.string("replica.selector.class") not in RACK_AWARE:
        return None
    return rack_aware(engines.cluster.image, context.connection.listener_name, rack)


class _Fetch:
    """One fetch from its arrival to its reply, through the states in `fetch_states`; while it waits, the connection is muted."""

    __slots__ = (
        "_context",
        "_entries",
        "_max_wait_ms",
        "_min_bytes",
        "_reader",
        "_session",
        "_state",
        "_timer",
        "_watched",
    )

    def __init__(self, context: Context, request: FetchRequest) -> None:
        engines = context.engines
        by_id = context.version >= TOPIC_IDS
        replica_id = request.replica_id if context.version < 15 else request.replica_state.replica_id
        self._context = context
        self._max_wait_ms = request.max_wait_ms
        max_bytes = min(request.max_bytes, engines.fetch_max_bytes)
        if context.meter is not None:
            max_bytes = min(max_bytes, context.meter.most_fetched())
        self._min_bytes = min(request.min_bytes, max_bytes)
        self._timer: Timer | None = None
        self._watched: list[Partition] = []
        self._state = State.FIRST_LOOK
        replication = engines.replicas.replication
        self._reader = FetchReader(
            engines.replicas,
            by_id=by_id,
            version=context.version,
            replica_id=replica_id,
            isolation=request.isolation_level,
            max_bytes=max_bytes,
            permission=_permission(context, by_id, replica_id) if engines.guarded else None,
            throttle=replication.leader_throttle if replication is not None and replica_id >= 0 else None,
            selector=_selector(context, request.rack_id) if replica_id < 0 else None,
        )
        self._session = self._open_session(request, by_id, follower=replica_id >= 0)
        session, acls = self._session, engines.acls
        if session is not None and acls is not None and session.permissions != acls.generation:
            session.judge_by(acls.generation)
        self._entries = self._read_entries(request)
        context.connection.is_follower = replica_id >= 0
        if replica_id >= 0 and context.may_on_cluster(Operation.CLUSTER_ACTION):
            self._note_follower(replica_id, request)

    def _open_session(self, request: FetchRequest, by_id: bool, follower: bool) -> FetchSession | None:
        sessions = self._context.engines.sessions
        if request.session_epoch > 0:
            return sessions.continued(request.session_id, request.session_epoch, by_id)
        if request.session_id:
            sessions.remove(request.session_id)
        if self._context.version >= 7 and request.session_epoch == INITIAL_EPOCH:
            selector = self._context.engines.config.string("replica.selector.class")
            return sessions.create(by_id, follower, followers_serve=selector in RACK_AWARE)
        return None

    def _read_entries(self, request: FetchRequest) -> list[FetchEntry]:
        """The partitions named in this request; a session adds them to those it has."""
        session = self._session
        entries = []
        for topic in request.topics:
            name = topic.topic_id.bytes if self._reader.by_id else topic.topic.encode()
            for asked in topic.partitions:
                key = (name, asked.partition)
                entry = session.entries.get(key) if session is not None else None
                if entry is None:
                    entry = FetchEntry(name, asked.partition)
                entry.ask(
                    asked.fetch_offset,
                    asked.partition_max_bytes,
                    asked.current_leader_epoch,
                    asked.last_fetched_epoch,
                    asked.log_start_offset,
                )
                entries.append(entry)
                if session is not None:
                    session.add(entry)
        if session is not None:
            for forgotten in request.forgotten_topics_data:
                name = forgotten.topic_id.bytes if self._reader.by_id else forgotten.topic.encode()
                for index in forgotten.partitions:
                    session.forget(name, index)
        return entries

    def _note_follower(self, replica_id: int, request: FetchRequest) -> None:
        replication = self._context.engines.replicas.replication
        if replication is None:
            return
        named = []
        for entry in self._entries:
            partition = self._find(entry.topic, entry.index)
            # A follower that has not seen this epoch yet may still hold records this log does not have.
            if (
                partition is not None
                and entry.leader_epoch == partition.leader_epoch
                and not self._reader.diverges(partition, entry)
            ):
                epoch = request.replica_state.replica_epoch
                entry.noted = replication.fetched(
                    partition, replica_id, epoch, entry.offset, entry.log_start_offset
                )
                if entry.noted:
                    named.append(partition)
        forgotten = (
            self._find(topic.topic_id.bytes if self._reader.by_id else topic.topic.encode(), index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        )
        replication.heard_from(
            replica_id,
            anew=request.session_epoch <= INITIAL_EPOCH,
            named=named,
            forgotten=(partition for partition in forgotten if partition is not None),
        )

    def _find(self, topic: bytes, index: int) -> Partition | None:
        try:
            return self._context.engines.replicas.find(topic, index, self._reader.by_id)
        except KafkaError:
            return None

    def _become(self, event: Event) -> State:
        before = self._state
        after = self._state = TRANSITIONS[before][event]
        if after is State.CHECK_DUE and before is not State.CHECK_DUE:
            # One check for everything that changes in this turn of the loop.
            self._context.engines.turn.put_off(self._check)
        return after

    def look(self) -> None:
        """Read the requested partitions and continue: at once, or from a thread when the disk is needed."""
        entries = self._entries if self._session is None else self._session.candidates()
        try:
            found = self._reader.read(entries)
        except BlockingIOError:
            self._look_in_thread(entries)
        except Exception:
            self._fail()
        else:
            self._found(*found)

    def _look_in_thread(self, entries: list[FetchEntry]) -> None:
        self._become(Event.DISK_NEEDED)
        self._context.connection.mute()
        read = partial(self._reader.read, entries, nowait=False)
        future = asyncio.get_running_loop().run_in_executor(self._context.engines.disk, read)

        def arrived(done: asyncio.Future[tuple[Replies, int, bool]]) -> None:
            try:
                found = done.result()
            except Exception:
                self._fail()
            else:
                self._found(*found)

        future.add_done_callback(arrived)

    def _found(self, replies: Replies, size: int, urgent: bool) -> None:
        """A read has finished."""
        state = self._state
        try:
            if urgent or size >= self._min_bytes or state is State.LAST_LOOK or self._waits_for_nothing():
                self._answer(replies)
            elif state is State.FIRST_LOOK or state is State.FIRST_LOOK_IN_THREAD:
                self._begin_to_wait(replies)
            else:
                if self._session is not None:
                    self._session.attend(replies)
                self._become(Event.TOO_LITTLE)
        except Exception:
            self._fail()

    def _waits_for_nothing(self) -> bool:
        if self._max_wait_ms <= 0:
            return True
        return not self._entries and (self._session is None or not self._session.entries)

    def _begin_to_wait(self, replies: Replies) -> None:
        self._context.connection.mute()
        longest = self._max_wait_ms / 1000
        held_back = self._reader.throttled_for(replies)
        wait = min(longest, held_back) if held_back else longest
        self._timer = self._context.engines.clock.call_later(wait, self._expired)
        if self._session is not None:
            self._session.on_change = self._moved
            self._session.attend(replies)
        else:
            self._watched = [entry.partition for entry in self._entries if entry.partition is not None]
            for partition in self._watched:
                partition.watch(self, end=self._reader.replica_id >= 0)
        self._become(Event.TOO_LITTLE)

    def partition_moved(self, partition: Partition) -> None:
        self._become(Event.MOVED)

    def _moved(self) -> None:
        self._become(Event.MOVED)

    def _check(self) -> None:
        if self._state is State.CHECK_DUE:
            self._become(Event.CHECK)
            self._look_again()

    def _expired(self) -> None:
        before = self._state
        self._become(Event.EXPIRED)
        if before is State.WAITING or before is State.CHECK_DUE:
            self._look_again()  # Otherwise a thread looks now, and what it finds is the last.

    def _look_again(self) -> None:
        meter = self._context.meter
        if meter is None:
            self.look()
            return
        meter.resume()
        self.look()
        meter.pause()

    def _answer(self, replies: Replies) -> None:
        self._become(Event.ENOUGH)
        meter = self._context.meter
        if meter is None:
            self._reply(replies)
        else:
            self._reply_metered(replies, meter)
        self._stop_waiting()  # after the reply, which somebody is waiting for
        if self._context.connection.muted:
            self._context.connection.unmute()

    def _fail(self) -> None:
        """Nothing else handles an error here: without an answer, the connection must at least be closed."""
        log.exception("a fetch failed inside the broker")
        self._become(Event.FAILURE)
        self._stop_waiting()
        self._context.connection.cut(FAILED_INSIDE)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            session = self._session
            if session is not None and session.on_change == self._moved:
                session.on_change = None
            for partition in self._watched:
                partition.unwatch(self)

    def _reply(self, replies: Replies) -> None:
        if self._session is not None:
            replies = self._session.settle(replies)
        self._reader.count_sent(replies)
        self._context.reply_parts(self._encode(replies))

    def _reply_metered(self, replies: Replies, meter: Meter) -> None:
        """A client beyond its quota gets an empty reply, and is told how long to wait."""
        session = self._session
        news = replies if session is None else session.news(replies)
        parts = self._encode(news)
        throttle_ms, held_back = meter.fetched(size_of(parts))
        if not held_back:
            if session is not None:
                session.settle(replies)
            self._reader.count_sent(news)
            self._context.reply_parts(self._encode(news, throttle_ms) if throttle_ms else parts)
            return
        if session is not None and session.epoch == FIRST_EPOCH:
            # Its first reply would have to name every partition.
            self._context.engines.sessions.remove(session.id)
            self._session = None
        elif session is not None:
            session.attend(replies)
        self._context.reply_parts(self._encode([], throttle_ms))

    def _encode(self, replies: Replies, throttle_ms: int = 0) -> list[Part]:
        topics: dict[bytes, list[PartitionReply]] = {}
        for entry, reply in replies:
            topics.setdefault(entry.topic, []).append(reply)
        return encode_reply(
            self._context.version,
            self._context.correlation_id,
            list(topics.items()),
            session_id=self._session.id if self._session is not None else 0,
            throttle_time_ms=throttle_ms,
        )
