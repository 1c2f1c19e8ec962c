"""A running streaming query, on the driver: where it begins, how far the next micro-batch goes, what that reads.

Every question is answered from the cluster as it is now, so new partitions are picked up automatically. A position has the
topics' ids beside the offsets, so a topic that was deleted and made again is noticed, also when that happened while
the query was stopped.
"""

from __future__ import annotations

import math
import time

from headrace.link.cluster import PATIENCE_WITH_UNKNOWN, Cluster
from headrace.spark.group import GroupOffsets
from headrace.spark.offsets import Offsets, TopicPartition
from headrace.spark.options import ReadOptions
from headrace.spark.plan import Range
from headrace.spark.read import report_data_loss, report_recreated
from headrace.spark.subscription import Partitions, Subscription
from headrace.spark.topic_ids import Ids, differ, shown
from headrace.wire.errors import ErrorCode, KafkaError


class StreamQuery:
    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._cluster = Cluster(options.kafka)
        self._subscription = Subscription(self._cluster, options)
        self._group = None if options.group is None else GroupOffsets(self._cluster, options.group)
        self._partitions: Partitions = {}
        self._stops = False
        self._last_batch = -math.inf
        self.latest: Offsets = {}
        """The ends of the partitions when they were last looked at."""

    def close(self) -> None:
        self._cluster.close()

    @property
    def ids(self) -> Ids:
        """The ids of the topics when they were last looked at."""
        known = ((partition.topic, shown(topic_id)) for partition, topic_id in self._partitions.items())
        return {topic: text for topic, text in known if text is not None}

    def initial(self) -> Offsets:
        """Where a new query begins."""
        self._partitions = self._subscription.must_exist()
        return self._subscription.resolve(self._options.start, self._partitions, starting=True)

    def stop_at_what_is_there_now(self) -> None:
        """Trigger.AvailableNow: the ends seen at the next look are the last."""
        self._stops = True

    def next(self, start: Offsets, ids: Ids, minimum: int | None, maximum: int | None) -> Offsets | None:
        """Where the next micro-batch ends; None when there is nothing to read yet. `ids` are those of `start`.

        Spark asks when everything before `start` is done, so this is also the time to say so to the group.
        """
        if self._group is not None:
            self._group.commit(start)
        if not (self._stops and self.latest):
            self._look(start, ids)
        if not self.latest:
            self._must_exist(start)
            return None
        again, end = self._made_again(ids), self.latest
        if minimum is not None or maximum is not None:
            known = start | self._first_offsets((end.keys() - start.keys()) | again)
            if minimum is not None and self._waits(known, minimum):
                return None
            end = end if maximum is None else share_out(known, end, maximum)
        return None if end == start and not again else end

    def _look(self, start: Offsets, ids: Ids) -> None:
        """See which partitions there are and where they end; look again while an end lies before the start."""
        for attempt in range(self._options.fetch_retries + 1):
            if attempt:
                time.sleep(self._options.fetch_interval)
            again = self._see(start, ids)
            if all(end >= start.get(p, 0) or p in again for p, end in self.latest.items()):
                return

    def _see(self, start: Offsets, ids: Ids) -> set[TopicPartition]:
        """Look once, and for a while where something is missing that was there: a broker that just started may not
        know everything yet. The partitions of topics that were made again.
        """
        deadline = time.monotonic() + PATIENCE_WITH_UNKNOWN
        while True:
            self._partitions = self._subscription.partitions()
            self.latest = self._subscription.latest(self._partitions)
            again = self._made_again(ids)
            topics = {partition.topic for partition in again}
            missing = [p for p in start if p not in self.latest and p.topic not in topics]
            if not missing or not self.latest or time.monotonic() > deadline:
                return again
            time.sleep(self._cluster.settings.retry_backoff)

    def _made_again(self, ids: Ids) -> set[TopicPartition]:
        """Partitions of topics that had other ids."""
        now = self.ids
        return {partition for partition in self._partitions if differ(ids, now, partition.topic)}

    def _must_exist(self, start: Offsets) -> None:
        """Nothing of what was read is left, so no batch would report it."""
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

    def ranges(self, start: Offsets, end: Offsets, start_ids: Ids, end_ids: Ids) -> list[Range]:
        """What lies between two positions, as far as it still exists; what is gone is reported."""
        if not end.keys() <= self._partitions.keys() or self._made_again(end_ids):
            self._partitions = self._subscription.partitions()
        # A batch that was planned for a topic that is no more has nothing to read; the next one reads the new topic.
        replaced = {p for p in end if differ(end_ids, self.ids, p.topic)}
        again = {p for p in end if differ(start_ids, end_ids, p.topic)} - replaced
        if replaced or again:
            report_recreated(self._options, f"Partitions {_names(replaced | again)}")
        recreated = {partition.topic for partition in replaced | again}
        missing = (start.keys() - end.keys()) | (end.keys() - self._partitions.keys())
        gone = {partition for partition in missing if partition.topic not in recreated}
        if gone:
            report_data_loss(self._options, f"Partitions {_names(gone)} have been deleted.")
        there = end.keys() - missing - replaced
        begin = self._begin(start, end, there, again, start_ids.keys() & end_ids.keys())
        return [
            Range(*partition, begin[partition], end[partition], self._partitions[partition])
            for partition in sorted(there)
        ]

    def _begin(
        self,
        start: Offsets,
        end: Offsets,
        there: set[TopicPartition],
        again: set[TopicPartition],
        known: set[str],
    ) -> Offsets:
        """Where reading begins in each partition that is `there`; `known` are the topics whose ids can be compared."""
        added = there - start.keys()
        shrunk = {p for p in (there & start.keys()) - again if end[p] < start[p]}
        for partition in sorted(shrunk):
            report_data_loss(
                self._options,
                f"Partition {partition} offset was changed from {start[partition]} to {end[partition]}: its topic was "
                "created again, its log was cut back (an unclean election), or the offset to start from was too high.",
            )
        # The same topic goes on behind what is lost; what may be another is read as a whole.
        cut = {partition for partition in shrunk if partition.topic in known}
        first = self._first_offsets(added | again | (shrunk - cut))
        for partition in sorted(added - again):
            if first.get(partition):
                report_data_loss(
                    self._options, f"Added partition {partition} starts from {first[partition]} instead of 0."
                )
        return start | first | {partition: end[partition] for partition in cut}


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
