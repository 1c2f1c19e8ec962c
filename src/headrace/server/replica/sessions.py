"""Fetch sessions (KIP-227): a client names its partitions once, then only what changes goes both ways.

A session watches its partitions and keeps those that moved, so that a fetch over thousands of quiet partitions
looks at none of them.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable

from headrace.clock import Clock
from headrace.server.replica.fetching import FetchEntry
from headrace.server.replica.partition import Partition
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.fetch import PartitionReply

INITIAL_EPOCH = 0
FIRST_EPOCH = 1
"""Of a session that has just been made."""
IDLE_SECONDS = 120.0
"""A session unused for this long makes room for a new one."""

Key = tuple[bytes, int]


class FetchSession:
    __slots__ = (
        "_by_partition",
        "_followers_serve",
        "_watched",
        "by_id",
        "changed",
        "entries",
        "epoch",
        "follower",
        "id",
        "last_used",
        "on_change",
        "permissions",
    )

    def __init__(
        self, session_id: int, by_id: bool, follower: bool, now: float, followers_serve: bool = False
    ) -> None:
        self.id = session_id
        self.by_id = by_id
        self.follower = follower
        self._followers_serve = followers_serve
        """Consumers read from followers, so a follower must learn the high watermark at once."""
        self.epoch = FIRST_EPOCH
        self.last_used = now
        self.entries: dict[Key, FetchEntry] = {}
        self.changed: dict[Key, None] = {}
        """Entries worth looking at, in the order they are served; those served go to the end."""
        self._by_partition: dict[Partition, Key] = {}
        self._watched: dict[Key, Partition] = {}
        self.on_change: Callable[[], None] | None = None
        """Set while a fetch of this session waits."""
        self.permissions = 0
        """The generation of permissions that the last fetch was judged by."""

    def partition_moved(self, partition: Partition) -> None:
        key = self._by_partition.get(partition)
        if key is not None:
            self.changed[key] = None
            if self.on_change is not None and not self._can_wait(partition, self.entries[key]):
                self.on_change()

    def _can_wait(self, partition: Partition, entry: FetchEntry) -> bool:
        """Whether a follower has all records: then only the high watermark moved, and the next reply carries it."""
        if not self.follower or self._followers_serve:
            return False
        return partition.is_leader and entry.offset >= partition.log.log_end_offset

    def add(self, entry: FetchEntry) -> None:
        key = (entry.topic, entry.index)
        self.entries[key] = entry
        self.changed[key] = None

    def forget(self, topic: bytes, index: int) -> None:
        key = (topic, index)
        self.changed.pop(key, None)
        if self.entries.pop(key, None) is not None:
            self._unwatch(key)

    def close(self) -> None:
        for key in list(self._watched):
            self._unwatch(key)
        self.entries.clear()
        self.changed.clear()

    def judge_by(self, permissions: int) -> None:
        """Permissions have changed: look at every partition again, because one that is quiet may be forbidden now."""
        self.permissions = permissions
        self.changed |= dict.fromkeys(self.entries)

    def candidates(self) -> list[FetchEntry]:
        """The partitions worth reading; those that change from now on, while a thread reads, become candidates again."""
        taken, self.changed = self.changed, {}
        return [self.entries[key] for key in taken]

    def attend(self, replies: list[tuple[FetchEntry, PartitionReply]]) -> None:
        """Watch these partitions from now on instead of reading them each time; those with changes stay for the next reply."""
        kept: dict[Key, None] = {}
        for entry, reply in replies:
            key = (entry.topic, entry.index)
            if self._watch(entry, key) or _has_changed(entry, reply) or entry.left_out:
                kept[key] = None
        self.changed = self._known(kept | self.changed)

    def news(
        self, replies: list[tuple[FetchEntry, PartitionReply]]
    ) -> list[tuple[FetchEntry, PartitionReply]]:
        """The replies worth sending."""
        return [(entry, reply) for entry, reply in replies if _has_changed(entry, reply)]

    def settle(
        self, replies: list[tuple[FetchEntry, PartitionReply]]
    ) -> list[tuple[FetchEntry, PartitionReply]]:
        """The replies worth sending, remembered as sent."""
        news = []
        first: dict[Key, None] = {}
        last: dict[Key, None] = {}
        for entry, reply in replies:
            key = (entry.topic, entry.index)
            if self._watch(entry, key) or entry.left_out:
                first[key] = None  # ahead of those served
            if _has_changed(entry, reply):
                news.append((entry, reply))
                entry.sent_high_watermark = reply.high_watermark
                entry.sent_log_start = reply.log_start_offset
                if reply.records or reply.is_urgent:
                    first.pop(key, None)
                    last[key] = None
        moved = {key: None for key in self.changed if key not in last}
        self.changed = self._known(first | moved | last)
        return news

    def _known(self, keys: dict[Key, None]) -> dict[Key, None]:
        """Without those that the session no longer has: it may have been closed while a thread looked."""
        return (
            keys if self.entries.keys() >= keys.keys() else {key: None for key in keys if key in self.entries}
        )

    def _watch(self, entry: FetchEntry, key: Key) -> bool:
        """Whether the watch is new, so that what was read may be outdated."""
        partition = entry.partition
        if partition is None or self._watched.get(key) is partition or self.entries.get(key) is not entry:
            return False
        self._unwatch(key)  # An earlier replica of the partition, since dropped.
        self._watched[key] = partition
        self._by_partition[partition] = key
        partition.watch(self)
        if self.follower:
            partition.watch(self, end=True)
        return True

    def _unwatch(self, key: Key) -> None:
        partition = self._watched.pop(key, None)
        if partition is not None:
            del self._by_partition[partition]
            partition.unwatch(self)


def _has_changed(entry: FetchEntry, reply: PartitionReply) -> bool:
    return (
        bool(reply.records)
        or reply.is_urgent
        or reply.high_watermark != entry.sent_high_watermark
        or reply.log_start_offset != entry.sent_log_start
    )


class FetchSessions:
    """All sessions of this broker; the least recently used makes room when it has been idle long enough."""

    def __init__(self, slots: int, clock: Clock) -> None:
        self._slots = slots
        self._clock = clock
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def create(self, by_id: bool, follower: bool, followers_serve: bool = False) -> FetchSession | None:
        """A new session, or None when all slots are in use."""
        now = self._clock.monotonic()
        if len(self._sessions) >= self._slots and not self._evict(now, follower):
            return None
        session_id = random.randrange(1, 2**31)
        while session_id in self._sessions:
            session_id = random.randrange(1, 2**31)
        session = FetchSession(session_id, by_id, follower, now, followers_serve)
        self._sessions[session_id] = session
        return session

    def continued(self, session_id: int, epoch: int, by_id: bool) -> FetchSession:
        """The session that a client continues; raises when it is unknown or its epoch is wrong."""
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = 1 if epoch == 2**31 - 1 else epoch + 1
        session.last_used = self._clock.monotonic()
        self._sessions.move_to_end(session_id)
        return session

    def remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def _evict(self, now: float, for_follower: bool) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is not None and now - oldest.last_used >= IDLE_SECONDS:
            self.remove(oldest.id)
            return True
        if for_follower:
            for session in self._sessions.values():
                if not session.follower:
                    self.remove(session.id)
                    return True
        return False
