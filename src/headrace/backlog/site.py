"""The cluster that a backlog is diverted on: where groups are in a topic, what it holds, and moving a group that is stopped."""

from __future__ import annotations

import time
from collections.abc import Mapping

from headrace.backlog.divert import Places
from headrace.backlog.errors import NotYet
from headrace.client import left_to_read
from headrace.client.admin import Admin, session_of
from headrace.client.administration import configs, group_offsets, groups, offsets, topics
from headrace.client.administration.errors import NotPossible, Refused
from headrace.client.administration.group_offsets import Committed
from headrace.client.administration.session import Session
from headrace.client.config import Config, connection_settings, merged
from headrace.client.errors import BrokerError
from headrace.client.record import TopicPartition
from headrace.wire.errors import ErrorCode

_RUNNING = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.NON_EMPTY_GROUP,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
)
"""How a broker refuses to change the offsets of a group that has members."""


class Site:
    def __init__(self, connection: Mapping[str, object], admin: Admin, *, stable: bool = True) -> None:
        """``stable``: offsets that a transaction is about to commit are an error that is worth another try, and not ignored."""
        self.connection = connection
        self.admin = admin
        self._stable = stable

    @classmethod
    def of(cls, config: Config) -> Site:
        connection = connection_settings(merged(config, {}))
        return cls(connection, Admin(connection))

    def for_a_look(self) -> Site:
        """The same cluster, for callers whose decisions do not depend on what is committed."""
        return Site(self.connection, self.admin, stable=False)

    @property
    def session(self) -> Session:
        return session_of(self.admin)

    def close(self) -> None:
        self.admin.close()

    # Topics

    def topic(self, name: str) -> topics.Topic:
        """Raises UnknownTopic when it is not there."""
        return topics.describe(self.session, [name])[0]

    def exists(self, topic: str) -> bool:
        return topic in self.admin.topics()

    def firsts(self, topic: str) -> Places:
        return _numbered(offsets.earliest(self.session, self._partitions(topic)))

    def ends(self, topic: str, *, read_committed: bool = False) -> Places:
        found = offsets.list_offsets(
            self.session, self._partitions(topic), offsets.LATEST, read_committed=read_committed
        )
        return _numbered(offsets.all_of(found))

    def create_like(self, name: str, model: str, settings: Mapping[str, str]) -> None:
        """A topic with the partitions, the replicas and the settings of another one; one that is there already stays."""
        like = self.topic(model)
        found = configs.describe(self.session, "topic", [model])[model]
        same = {
            each.name: each.value
            for each in found
            if each.source == "DYNAMIC_TOPIC_CONFIG" and each.value is not None
        }
        self.admin.create_topic(
            name,
            partitions=len(like.partitions),
            replication_factor=like.replication_factor,
            config={**same, **settings},
            exist_ok=True,
        )

    def longest_batch(self, topic: str) -> int:
        """The most bytes that producers may send it at once; 0 when the broker does not say."""
        return int(self.admin.topic_config(topic).get("max.message.bytes") or 0)

    def remove_topic(self, name: str) -> None:
        """It may be gone already."""
        for refused in topics.delete(self.session, [name]).values():
            if not topics.is_unknown(refused):
                raise refused

    # Groups

    def committed(self, group: str, topic: str) -> dict[int, Committed]:
        found = group_offsets.committed(self.session, group, stable=self._stable)
        return {number: each for (name, number), each in found.items() if name == topic}

    def groups_reading(self, topic: str) -> list[str]:
        """Those that have committed for a topic."""
        names = [each.group for each in groups.listings(self.session)]
        return [name for name in names if self.committed(name, topic)]

    def members(self, group: str) -> list[groups.Member]:
        """None while there is no such group, too."""
        try:
            return groups.describe(self.session, group).members
        except Refused as refused:
            if refused.code == ErrorCode.GROUP_ID_NOT_FOUND:
                return []
            raise

    def check_stopped(self, group: str, why: str) -> None:
        """Raises NotPossible while the group has members, which own its offsets."""
        members = self.members(group)
        if members:
            hosts = ", ".join(sorted({f"{each.client_id} on {each.host}" for each in members}))
            count = "a member" if len(members) == 1 else f"{len(members)} members"
            raise NotYet(f"Group {group} has {count} ({hosts}); {why}")

    def await_stopped(self, group: str, why: str, patience: float) -> None:
        """The same, after up to ``patience`` seconds in which they may leave."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and self.members(group):
            time.sleep(0.3)
        self.check_stopped(group, why)

    def move(self, group: str, topic: str, places: Places, note: str = "") -> None:
        """Commit for a group without members; raises NotPossible when it has some after all."""
        there = {(topic, number): offset for number, offset in places.items()}
        try:
            for refused in group_offsets.commit(self.session, group, there, note).values():
                raise refused
        except BrokerError as refused:
            if refused.code not in _RUNNING:
                raise
            raise NotPossible(
                f"Group {group} has members again, and its offsets are theirs to commit; stop them and run this again."
            ) from None

    def forget(self, group: str, topic: str) -> None:
        """Delete what a group without members has committed for a topic, and the group when nothing else is left of it."""
        there = [(topic, number) for number in self.committed(group, topic)]
        if there:
            code, errors = group_offsets.delete(self.session, group, there)
            for each in (code, *errors.values()):
                if each in _RUNNING:
                    raise NotPossible(f"Group {group} has members; stop them and run this again.")
                if each not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
                    raise Refused(each)
        if not group_offsets.committed(self.session, group) and not self.members(group):
            try:
                groups.delete(self.session, group)
            except BrokerError as refused:
                if refused.code != ErrorCode.GROUP_ID_NOT_FOUND:
                    raise

    # What is unread

    def starts(self, group: str, topic: str) -> Places:
        """The next record that the group reads in each partition: where it committed, and else the first one there is."""
        places = [TopicPartition(*each) for each in self._partitions(topic)]
        return _numbered(left_to_read.starts(self.session, group, places, stable=self._stable))

    def unread(self, group: str, topic: str, ends: Places) -> Places:
        """Offsets before ``ends`` that hold something the group has not read; partitions without are left out."""
        places = {TopicPartition(topic, number): end for number, end in ends.items()}
        return _numbered(
            left_to_read.unread(self.session, self.connection, group, places, stable=self._stable)
        )

    def next_records(self, topic: str, starts: Places) -> dict[int, int | None]:
        """The offset of the first record at or after each place that a reader of committed records gets; None at the end."""
        places = {TopicPartition(topic, number): start for number, start in starts.items()}
        found = left_to_read.next_records(self.connection, places)
        return {each.partition: offset for each, offset in found.items()}

    def _partitions(self, topic: str) -> list[tuple[str, int]]:
        return [(topic, each.id) for each in self.topic(topic).partitions]


def _numbered(found: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int]) -> Places:
    return {number: offset for (_, number), offset in found.items()}
