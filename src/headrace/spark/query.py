"""A running streaming query, on the driver: where it begins, how far the next micro-batch goes, what that reads.

Every question is answered from the cluster as it is now, so new partitions join by themselves, and a topic that
was deleted, or deleted and made again, is noticed by its id.
"""

from __future__ import annotations

import math
import time

from headrace.spark.cluster import Cluster
from headrace.spark.group import GroupOffsets
from headrace.spark.offsets import Offsets, TopicPartition
from headrace.spark.options import ReadOptions
from headrace.spark.plan import Range
from headrace.spark.read import report_data_loss
from headrace.spark.subscription import Partitions, Subscription
from headrace.wire.errors import ErrorCode, KafkaError


class Query:
    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._cluster = Cluster(options.kafka)
        self._subscription = Subscription(self._cluster, options)
        self._group = None if options.group is None else GroupOffsets(self._cluster, options.group)
        self._partitions: Partitions = {}
        self._seen: Partitions = {}
        """Every partition as it was when it was last there: a topic may be away for a while before it is made again."""
        self._made_again: set[TopicPartition] = set()
        self._stops = False
        self._last_batch = -math.inf
        self.latest: Offsets = {}
        """The ends of the partitions when they were last looked at."""

    def close(self) -> None:
        self._cluster.close()

    def initial(self) -> Offsets:
        """Where a new query begins."""
        partitions = self._subscription.must_exist()
        return self._subscription.resolve(self._options.start, partitions, starting=True)

    def stop_at_what_is_there_now(self) -> None:
        """Trigger.AvailableNow: the ends seen at the next look are the last."""
        self._stops = True

    def next(self, start: Offsets, minimum: int | None, maximum: int | None) -> Offsets:
        """Where the next micro-batch ends; `start` itself when it is to wait for more.

        Spark asks when everything before `start` is done, so this is also the time to say so to the group.
        """
        if self._group is not None:
            self._group.commit(start)
        if not (self._stops and self.latest):
            self._look(start)
        if start and not self.latest:
            self._must_exist(start)
        if minimum is None and maximum is None:
            return self.latest
        known = start | self._first_offsets((self.latest.keys() - start.keys()) | self._made_again)
        if minimum is not None and self._waits(known, minimum):
            return start
        return self.latest if maximum is None else share_out(known, self.latest, maximum)

    def _look(self, start: Offsets) -> None:
        """See which partitions there are and where they end; look again while an end lies before the start."""
        for attempt in range(self._options.fetch_retries + 1):
            if attempt:
                time.sleep(self._options.fetch_interval)
            self._partitions = self._subscription.partitions()
            self._made_again |= {
                partition
                for partition, topic_id in self._partitions.items()
                if self._seen.get(partition, topic_id) != topic_id
            }
            self._seen |= self._partitions
            self.latest = self._subscription.latest(self._partitions)
            if not start.keys() <= self.latest.keys():
                continue
            if all(end >= start.get(p, 0) or p in self._made_again for p, end in self.latest.items()):
                return

    def _must_exist(self, start: Offsets) -> None:
        """Nothing of what was read is there any more, and so no batch would tell."""
        for topic in sorted({partition.topic for partition in start}):
            try:
                self._cluster.topic(topic)  # looks for a while
            except KafkaError as error:
                if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                report_data_loss(self._options, f"The topic {topic!r} has been deleted.")

    def _first_offsets(self, partitions: set[TopicPartition]) -> Offsets:
        return self._subscription.earliest(partitions & self._partitions.keys())

    def _waits(self, start: Offsets, minimum: int) -> bool:
        """Whether fewer than `minimum` records are there and the last batch was less than maxTriggerDelay ago."""
        if self._stops:
            return False
        now = time.monotonic()
        there = sum(max(0, end - start.get(partition, 0)) for partition, end in self.latest.items())
        if there < minimum and now - self._last_batch < self._options.max_delay:
            return True
        self._last_batch = now
        return False

    def ranges(self, start: Offsets, end: Offsets) -> list[Range]:
        """What lies between two positions, as far as it is still there; what is not is reported."""
        if not end.keys() <= self._partitions.keys():
            self._partitions = self._subscription.partitions()
        gone = (start.keys() - end.keys()) | (end.keys() - self._partitions.keys())
        if gone:
            report_data_loss(self._options, f"Partitions {_names(gone)} have been deleted.")
            self._seen = {p: topic_id for p, topic_id in self._seen.items() if p not in gone}
        added = end.keys() - start.keys() - gone
        shrunk = {
            partition for partition in start.keys() & end.keys() - gone if end[partition] < start[partition]
        }
        again = self._made_again & end.keys()
        self._made_again -= again
        if again:
            report_data_loss(self._options, f"Partitions {_names(again)} were deleted and created again.")
        for partition in sorted(shrunk - again):
            report_data_loss(
                self._options,
                f"Partition {partition} offset was changed from {start[partition]} to {end[partition]}: its topic "
                "was created again, or the offset to start from was too high.",
            )
        first = self._first_offsets(added | shrunk | again)
        for partition in sorted(added):
            if first.get(partition):
                report_data_loss(
                    self._options, f"Added partition {partition} starts from {first[partition]} instead of 0."
                )
        begin = start | first
        return [
            Range(*partition, begin[partition], end[partition], self._partitions[partition])
            for partition in sorted(end.keys() - gone)
        ]


def share_out(start: Offsets, end: Offsets, limit: int) -> Offsets:
    """Ends such that about `limit` records are read: each partition gives in proportion, and at least one."""
    sizes = {partition: max(0, last - start.get(partition, 0)) for partition, last in end.items()}
    total = sum(sizes.values())
    if total <= limit:
        return dict(end)
    return {
        partition: start.get(partition, 0) + max(1, limit * sizes[partition] // total)
        if sizes[partition]
        else last
        for partition, last in end.items()
    }


def _names(partitions: set[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))
