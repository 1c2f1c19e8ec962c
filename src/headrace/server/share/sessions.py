"""Share sessions: what a member fetches from this broker, by partition, and the epoch that orders its requests.

A session ends with its last request (epoch -1), with its connection, or when the member opens another one; records the member
still holds are then available again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from headrace.server.share.partition import SharePartition, State
from headrace.server.share.partitions import SharePartitions
from headrace.wire.errors import ErrorCode, KafkaError

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
LAST_EPOCH = 2**31 - 1

Entry = tuple[uuid.UUID, int]


class ShareSession:
    def __init__(self, group_id: str, member_id: str) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.epoch = 1
        """The next request must name it."""
        self.entries: dict[Entry, SharePartition | None] = {}
        """In the order in which they are looked at; None where the partition was not found yet."""
        self.on_end: Callable[[], None] = lambda: None
        """Called when the session ends: a fetch that waits gives up."""

    def add(self, topic_id: uuid.UUID, index: int) -> None:
        self.entries.setdefault((topic_id, index), None)

    def forget(self, topic_id: uuid.UUID, index: int) -> None:
        _stop_using(self.entries.pop((topic_id, index), None))

    def use(self, entry: Entry, partition: SharePartition) -> None:
        before = self.entries.get(entry)
        if before is not partition:
            _stop_using(before)
            partition.users += 1
            self.entries[entry] = partition

    def rotate(self) -> None:
        """The partition that came first comes last next time."""
        first = next(iter(self.entries), None)
        if first is not None and len(self.entries) > 1:
            self.entries[first] = self.entries.pop(first)


class ShareSessions:
    """All share sessions of this broker."""

    def __init__(self, partitions: SharePartitions, most: int) -> None:
        self._partitions = partitions
        self._most = most
        self._sessions: dict[tuple[str, str], ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, group_id: str, member_id: str) -> ShareSession:
        """A new session, in place of one that the member had."""
        known = self._sessions.get((group_id, member_id))
        if known is not None:
            self.end(known)
        if len(self._sessions) >= self._most:
            raise KafkaError(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED,
                f"This broker has its {self._most} share sessions (group.share.max.share.sessions).",
            )
        session = self._sessions[group_id, member_id] = ShareSession(group_id, member_id)
        return session

    def continued(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """The session of a request; its epoch grows, unless the request is its last."""
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise KafkaError(
                ErrorCode.SHARE_SESSION_NOT_FOUND, "The share session has ended; open another one."
            )
        if epoch == FINAL_EPOCH:
            return session
        if epoch != session.epoch:
            raise KafkaError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH,
                f"The share session is in epoch {session.epoch}, not {epoch}.",
            )
        session.epoch = 1 if epoch == LAST_EPOCH else epoch + 1
        return session

    def end(self, session: ShareSession) -> None:
        """Release what the member holds."""
        key = (session.group_id, session.member_id)
        if self._sessions.get(key) is not session:
            return
        del self._sessions[key]
        session.on_end()
        for partition in self._partitions:
            if partition.key.group_id == session.group_id:
                partition.release(session.member_id)
        for topic_id, index in list(session.entries):
            session.forget(topic_id, index)


def _stop_using(partition: SharePartition | None) -> None:
    if partition is not None:
        partition.users -= 1
        if partition.state is not State.GONE:
            partition.leave_if_idle()
