"""The partitions a job reads and the offsets its options mean there, as the cluster is now."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping

from headrace.link.cluster import Cluster, TopicMetadata
from headrace.link.settings import SettingsError
from headrace.spark.offsets import EARLIEST, LATEST, Offsets, TopicPartition, list_offsets
from headrace.spark.options import Limit, ReadOptions
from headrace.wire.errors import ErrorCode, KafkaError

Partitions = dict[TopicPartition, uuid.UUID]
"""Each partition with the id of its topic, which tells a topic from another of the same name made later."""


class Subscription:
    def __init__(self, cluster: Cluster, options: ReadOptions) -> None:
        self._cluster = cluster
        self._options = options

    def partitions(self) -> Partitions:
        """Every partition that is subscribed to and exists."""
        options = self._options
        if options.pattern is not None:
            # As Java's Pattern.matches: the whole name. Internal topics only when they are named in full.
            pattern = re.compile(options.pattern)
            found = self._cluster.all_topics().values()
            return _all(t for t in found if pattern.fullmatch(t.name) and not t.internal)
        if options.assigned:
            topics = self._cluster.topics({partition.topic for partition in options.assigned})
            return {
                partition: topics[partition.topic].id
                for partition in options.assigned
                if partition.topic in topics and partition.partition in topics[partition.topic].leaders
            }
        return _all(self._cluster.topics(options.topics).values())

    def must_exist(self) -> Partitions:
        """The same, when every topic that is named has to be there."""
        found = self.partitions()
        there = {partition.topic for partition in found}
        named = [*self._options.topics, *(p.topic for p in self._options.assigned if p not in found)]
        for name in named:
            if name not in there or self._options.assigned:
                self._cluster.topic(name)  # looks once more, and tells what is missing
                found = self.partitions()
        missing = [str(p) for p in self._options.assigned if p not in found]
        if missing:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"assign names {', '.join(missing)}, which the topic does not have.",
            )
        return found

    def resolve(self, limit: Limit, partitions: Iterable[TopicPartition], *, starting: bool) -> Offsets:
        """The offset in each partition that a limit stands for."""
        wanted = list(partitions)
        if limit.everywhere is not None:
            return self.ask(dict.fromkeys(wanted, limit.everywhere))
        if limit.offsets is not None:
            _must_match(limit.offsets, wanted, "start" if starting else "end")
            asked = {p: offset for p, offset in limit.offsets.items() if offset < 0}
            return {**limit.offsets, **self.ask(asked)}
        if limit.timestamps is not None:
            _must_match(limit.timestamps, wanted, "timestamp based " + ("starting" if starting else "ending"))
        moments = limit.timestamps or dict.fromkeys(wanted, limit.timestamp or 0)
        found = self.ask(moments)
        unmatched = [partition for partition, offset in found.items() if offset < 0]
        if unmatched and starting and not self._options.latest_if_no_timestamp:
            partition = min(unmatched)
            raise SettingsError(
                f"No offset matched from request of topic-partition {partition} and timestamp "
                f"{moments[partition]}: nothing is that new; startingOffsetsByTimestampStrategy=latest begins "
                "at the end there."
            )
        return {**found, **self.ask(dict.fromkeys(unmatched, LATEST))}

    def ask(self, moments: Mapping[TopicPartition, int]) -> Offsets:
        if not moments:
            return {}
        return list_offsets(self._cluster, moments, committed=self._options.committed)

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self.ask(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self.ask(dict.fromkeys(partitions, LATEST))


def _all(topics: Iterable[TopicMetadata]) -> Partitions:
    return {TopicPartition(topic.name, number): topic.id for topic in topics for number in topic.partitions}


def _must_match(specified: Offsets, assigned: list[TopicPartition], what: str) -> None:
    if specified.keys() == set(assigned):
        return
    raise SettingsError(
        f"Partitions specified for Kafka {what} offsets don't match what are assigned. Use -1 for latest, -2 for "
        f"earliest. Specified: {_names(specified)} Assigned: {_names(assigned)}"
    )


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(map(str, sorted(partitions)))
