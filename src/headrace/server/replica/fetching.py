"""Reading for a fetch: which slice of which partition, within the byte limits, or why not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from headrace.server.replica.partition import Partition
from headrace.server.replica.replicas import Replicas
from headrace.server.replica.selector import LEADER, Selector
from headrace.server.replica.throttle import ReplicationThrottle
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.fetch import PartitionReply

READ_COMMITTED = 1
CONSUMER = -1


class FetchEntry:
    """One partition that a fetch asks for. In a session it lives on, and remembers what was last sent."""

    __slots__ = (
        "index",
        "last_fetched_epoch",
        "leader_epoch",
        "left_out",
        "log_start_offset",
        "max_bytes",
        "noted",
        "offset",
        "partition",
        "sent_high_watermark",
        "sent_log_start",
        "topic",
    )

    def __init__(self, topic: bytes, index: int) -> None:
        self.topic = topic
        self.index = index
        self.partition: Partition | None = None
        self.left_out = False
        """The last read had no room for its records."""
        self.noted = False
        """The leader has recorded the follower's latest fetch offset."""
        self.sent_high_watermark = -1
        self.sent_log_start = -1

    def ask(
        self,
        offset: int,
        max_bytes: int,
        leader_epoch: int,
        last_fetched_epoch: int,
        log_start_offset: int = -1,
    ) -> None:
        """The partition as the request names it; only a follower sends its log start offset."""
        self.noted = False
        self.log_start_offset = log_start_offset
        self.offset = offset
        self.max_bytes = max_bytes
        self.leader_epoch = leader_epoch
        self.last_fetched_epoch = last_fetched_epoch


Permission = tuple[AbstractSet[bytes], Callable[[bytes], bool]]
"""Topics known to be allowed, which ACLs that change take out, and whom to ask about the others."""


class FetchReader:
    """What applies to a whole request: the reader, how far it may read, and its byte limits."""

    __slots__ = (
        "_allowed",
        "_denied",
        "_permission",
        "_replicas",
        "_selector",
        "_throttle",
        "by_id",
        "isolation",
        "max_bytes",
        "replica_id",
        "version",
    )

    def __init__(
        self,
        replicas: Replicas,
        *,
        by_id: bool,
        version: int,
        replica_id: int,
        isolation: int,
        max_bytes: int,
        permission: Permission | None = None,
        throttle: ReplicationThrottle | None = None,
        selector: Selector | None = None,
    ) -> None:
        self._replicas = replicas
        self.by_id = by_id
        self.version = version
        self.replica_id = replica_id
        self.isolation = isolation
        self.max_bytes = max_bytes
        self._permission = permission
        """Which topics the reader is allowed; asked with each look, because permissions change. None: all."""
        self._allowed: bytes | None = None
        """The last topic that was asked about and allowed: a request names all its partitions one after the other."""
        self._denied: bytes | None = None
        """The last one that was not."""
        self._throttle = throttle
        """For followers: what they may take while they catch up."""
        self._selector = selector
        """For consumers that name their rack: where they should read instead."""

    def read(
        self, entries: Iterable[FetchEntry], *, nowait: bool = True
    ) -> tuple[list[tuple[FetchEntry, PartitionReply]], int, bool]:
        """(replies, bytes of records in them, whether one of them must be sent at once).

        With `nowait`, BlockingIOError when finding the records needs the disk.
        """
        replies = []
        total = 0
        urgent = False
        self._allowed = None
        for entry in entries:
            try:
                reply = self._read_entry(entry, self.max_bytes - total, total == 0, nowait)
            except KafkaError as error:
                reply = self._refusal(entry, error.code)
            total += reply.records_size()
            urgent = urgent or reply.is_urgent
            replies.append((entry, reply))
        return replies, total, urgent

    def _read_entry(self, entry: FetchEntry, room: int, first: bool, nowait: bool) -> PartitionReply:
        entry.left_out = False
        permission = self._permission
        if permission is not None and entry.topic not in permission[0] and entry.topic != self._allowed:
            self._require(entry.topic, permission)
        partition = self._replicas.find(entry.topic, entry.index, self.by_id)
        entry.partition = partition
        self._check(partition, entry)
        log = partition.log
        high_watermark = log.high_watermark
        if self.replica_id >= 0:
            limit = log.log_end_offset
        elif self.isolation == READ_COMMITTED:
            limit = log.last_stable_offset
        else:
            limit = high_watermark
        reply = PartitionReply(entry.index, 0, high_watermark, log.last_stable_offset, log.log_start_offset)
        if entry.last_fetched_epoch >= 0:
            reply.diverging_epoch = self._divergence(partition, entry)
            if reply.diverging_epoch is not None:
                return reply
        if self.replica_id >= 0 and not entry.noted and log.log_start_offset <= entry.offset <= limit:
            # When the follower sent its offset, this leader did not know it or its epoch yet. A session sends an offset
            # only once, so the leader would wait for it forever: ask for it again.
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if self._selector is not None:
            reply.preferred_read_replica = self._selector(partition, entry.offset)
            if reply.preferred_read_replica != LEADER:
                return reply
        size = min(entry.max_bytes, room)
        if self._throttled(partition):
            entry.left_out = entry.offset < limit
            return reply
        if size > 0 or first:
            piece = log.read(
                entry.offset, max(size, 0), up_to_offset=limit, min_one_batch=first, nowait=nowait
            )
            if piece.size:
                reply.records = piece if piece.held is None else piece.held
                if self.isolation == READ_COMMITTED:
                    aborted = log.aborted_transactions(entry.offset, piece.end_offset)
                    reply.aborted = [(one.producer_id, one.first_offset) for one in aborted]
        elif not log.log_start_offset <= entry.offset <= log.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        entry.left_out = entry.offset < limit and not reply.records
        if self.isolation == READ_COMMITTED and reply.aborted is None:
            reply.aborted = []
        return reply

    def _require(self, topic: bytes, permission: Permission) -> None:
        if topic == self._denied or not permission[1](topic):
            self._denied = topic
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        self._allowed = topic

    def _throttled(self, partition: Partition) -> bool:
        """Whether a follower that is catching up has to wait for the throttle."""
        throttle = self._throttle
        if throttle is None or not throttle.covers(partition) or partition.has_in_sync(self.replica_id):
            return False
        return throttle.seconds_left() > 0

    def throttled_for(self, replies: Iterable[tuple[FetchEntry, PartitionReply]]) -> float:
        """Seconds until throttled partitions may continue; 0 when none is held back."""
        throttle = self._throttle
        if throttle is None:
            return 0.0
        held = any(
            entry.left_out and entry.partition is not None and self._throttled(entry.partition)
            for entry, _ in replies
        )
        return throttle.seconds_left() if held else 0.0

    def count_sent(self, replies: Iterable[tuple[FetchEntry, PartitionReply]]) -> None:
        """These replies are being sent: count them, and what the throttle covers."""
        follower = self.replica_id >= 0
        for entry, reply in replies:
            if entry.partition is None:
                name = self._replicas.name_of(entry.topic, self.by_id)
                self._replicas.traffic.known(name).failed_fetch_requests += 1
                continue
            traffic = entry.partition.traffic
            if reply.error_code:
                traffic.failed_fetch_requests += 1
            elif follower:
                traffic.replication_bytes_out += reply.records_size()
            else:
                traffic.fetch_requests += 1
                traffic.bytes_out += reply.records_size()
        throttle = self._throttle
        if throttle is not None:
            for entry, reply in replies:
                if reply.records and entry.partition is not None and throttle.covers(entry.partition):
                    throttle.count(reply.records_size())

    def _check(self, partition: Partition, entry: FetchEntry) -> None:
        follower_may_serve = self.replica_id == CONSUMER and self.version >= 11
        if not partition.is_leader and not follower_may_serve:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        check_leader_epoch(partition, entry.leader_epoch)

    def diverges(self, partition: Partition, entry: FetchEntry) -> bool:
        """Whether the reader must truncate its log first, and so has not caught up."""
        if entry.last_fetched_epoch < 0:
            return False
        try:
            return self._divergence(partition, entry) is not None
        except KafkaError:
            return True

    def _divergence(self, partition: Partition, entry: FetchEntry) -> tuple[int, int] | None:
        """Where the reader's history diverges from this log's, if it does (KIP-595's truncation on fetch)."""
        epoch, end_offset = partition.end_offset_for_epoch(entry.last_fetched_epoch)
        if epoch < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < entry.last_fetched_epoch or end_offset < entry.offset:
            return epoch, end_offset
        return None

    def _refusal(self, entry: FetchEntry, code: ErrorCode) -> PartitionReply:
        reply = PartitionReply(entry.index, code)
        if code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            reply.current_leader = self._replicas.current_leader(entry.topic, entry.index, self.by_id)
        return reply


def check_leader_epoch(partition: Partition, epoch: int) -> None:
    """A client that names the epoch it knows (-1 for none) must know the current one."""
    if 0 <= epoch != partition.leader_epoch:
        older = epoch < partition.leader_epoch
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)
