"""Topics: what went through them (`kafka_server_brokertopicmetrics_*`), and their partitions by kafka_exporter's names.

A broker reports the partitions it leads, so that a sum over brokers counts each once; the controller reports how many there are.
Without `partitions=all` the series of a topic's partitions are added up, under the same names without the label `partition`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace.server.api.engines import Engines
from headrace.server.cluster.image import NO_LEADER, MetadataImage
from headrace.server.log.partition import PartitionLog
from headrace.server.metrics.broker import Survey
from headrace.server.metrics.text import COUNTER, GAUGE, Family, chunks, labels, several
from headrace.server.replica.partition import Partition
from headrace.server.replica.traffic import Traffic

PREFIX = "kafka_server_brokertopicmetrics_"

COUNTS: tuple[tuple[str, str, Callable[[Traffic], int]], ...] = (
    ("messagesin_total", "Records appended by producers and coordinators.", lambda t: t.messages_in),
    ("bytesin_total", "Bytes of those records, as they are stored.", lambda t: t.bytes_in),
    ("bytesout_total", "Bytes of records sent to consumers.", lambda t: t.bytes_out),
    (
        "totalproducerequests_total",
        "Appends asked for, one for each partition in a request.",
        lambda t: t.produce_requests + t.failed_produce_requests,
    ),
    ("failedproducerequests_total", "Appends refused.", lambda t: t.failed_produce_requests),
    (
        "totalfetchrequests_total",
        "Partitions in replies to consumers' fetches.",
        lambda t: t.fetch_requests + t.failed_fetch_requests,
    ),
    ("failedfetchrequests_total", "Of those, the ones with an error.", lambda t: t.failed_fetch_requests),
    ("replicationbytesin_total", "Bytes of records fetched from leaders.", lambda t: t.replication_bytes_in),
    ("replicationbytesout_total", "Bytes of records sent to followers.", lambda t: t.replication_bytes_out),
)


def _is_preferred(partition: Partition, image: MetadataImage) -> int:
    state = image.partition(partition.topic, partition.index)
    return int(state is not None and state.replicas[0] == state.leader)


def _in_sync(partition: Partition) -> int:
    return len(partition.leadership.isr) if partition.leadership is not None else 0


def _replicas(partition: Partition) -> int:
    return len(partition.leadership.followers) + 1 if partition.leadership is not None else 0


def _spare(partition: Partition) -> int:
    """How many replicas may go out of sync before `min.insync.replicas` is not met; negative when it is not."""
    return _in_sync(partition) - min(partition.config.min_insync_replicas, _replicas(partition))


OF_PARTITION: tuple[tuple[str, str, Callable[[Partition, MetadataImage], int]], ...] = (
    ("kafka_topic_partition_current_offset", "The offset up to which consumers can read.", lambda p, _: p.log.high_watermark),
    ("kafka_topic_partition_oldest_offset", "The offset at which the log begins.", lambda p, _: p.log.log_start_offset),
    ("kafka_topic_partition_in_sync_replica", "Replicas in sync.", lambda p, _: _in_sync(p)),
    ("kafka_topic_partition_replicas", "Replicas.", lambda p, _: _replicas(p)),
    ("kafka_topic_partition_leader_is_preferred", "1 when the preferred leader leads.", _is_preferred),
    ("kafka_topic_partition_under_replicated_partition", "1 when a replica is out of sync.", lambda p, _: int(_in_sync(p) < _replicas(p))),
    ("kafka_cluster_partition_replicascount", "Replicas, by the JMX exporter's name.", lambda p, _: _replicas(p)),
    ("kafka_cluster_partition_underminisr", "1 with fewer replicas in sync than min.insync.replicas.", lambda p, _: int(_spare(p) < 0)),
    ("kafka_cluster_partition_atminisr", "1 with exactly min.insync.replicas in sync.", lambda p, _: int(_spare(p) == 0)),
)  # fmt: skip


OF_LOG: tuple[tuple[str, str, Callable[[PartitionLog], int]], ...] = (
    ("kafka_log_log_size", "Bytes of this broker's replica.", lambda log: log.size if log.is_loaded else 0),
    ("kafka_log_log_logendoffset", "The end of this broker's replica.", lambda log: log.log_end_offset),
    ("kafka_log_log_logstartoffset", "Where this broker's replica begins.", lambda log: log.log_start_offset),
)


class TopicFamilies:
    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._image: MetadataImage | None = None
        self._topic_labels: dict[str, str] = {}
        self._partition_labels: dict[str, list[str]] = {}

    def families(self, survey: Survey, every_partition: bool) -> Iterator[Family]:
        self._forget_deleted()
        yield from self._traffic()
        image = self._engines.cluster.image
        if self._engines.cluster.is_controller:
            alive = sum(not broker.fenced for broker in image.brokers.values())
            yield several("kafka_brokers", GAUGE, "Brokers that are alive, on the controller.", [("", alive)])
            counts = ((self._topic(each.name), len(each.partitions)) for each in list(image.topics.values()))
            yield several(
                "kafka_topic_partitions", GAUGE, "Partitions of a topic, on the controller.", counts
            )
        if every_partition:
            yield from self._each(survey.partitions, image)
        else:
            yield from self._added_up(survey, image)

    def _forget_deleted(self) -> None:
        topics = self._engines.cluster.image.topics
        if self._image is None or self._image.topics is not topics:
            self._image = self._engines.cluster.image
            for known in (self._topic_labels, self._partition_labels):
                for name in [each for each in known if each not in topics]:
                    del known[name]

    def _topic(self, name: str) -> str:
        label = self._topic_labels.get(name)
        if label is None:
            label = self._topic_labels[name] = labels(topic=name)
        return label

    def partition_label(self, partition: Partition) -> str:
        known = self._partition_labels.setdefault(partition.topic, [])
        if partition.index >= len(known):
            for index in range(len(known), partition.index + 1):
                known.append(labels(topic=partition.topic, partition=index))
        return known[partition.index]

    def _traffic(self) -> Iterator[Family]:
        traffic = self._engines.replicas.traffic
        total = Traffic()
        topics: list[tuple[str, Traffic]] = []

        def add() -> Iterator[str]:
            total.add(traffic.elsewhere)
            for number, (name, each) in enumerate(traffic.topics()):
                if not number % 32:
                    yield ""
                total.add(each)
                topics.append((self._topic(name), each))

        yield Family("", GAUGE, "", add())
        for name, help_, count in COUNTS:
            yield Family(PREFIX + name, COUNTER, help_, _counted(PREFIX + name, total, topics, count))

    def _each(self, held: list[Partition], image: MetadataImage) -> Iterator[Family]:
        leading: list[tuple[str, Partition]] = []
        loaded: list[tuple[str, PartitionLog]] = []

        def look() -> Iterator[str]:
            for number, each in enumerate(held):
                if not number % 32:
                    yield ""
                label = self.partition_label(each)
                if each.is_leader:
                    leading.append((label, each))
                if each.log.is_loaded:
                    loaded.append((label, each.log))

        yield Family("", GAUGE, "", look())
        for name, help_, value in OF_PARTITION:
            yield Family(name, GAUGE, help_, chunks(name, leading, _in(image, value)))
        yield Family(
            "kafka_topic_partition_leader",
            GAUGE,
            "The broker that leads; -1, on the controller, when none does.",
            self._leaders(leading, image),
        )
        for name, help_, read in OF_LOG:
            yield Family(name, GAUGE, help_, chunks(name, loaded, read))

    def _leaders(self, led: list[tuple[str, Partition]], image: MetadataImage) -> Iterator[str]:
        broker = self._engines.broker_id
        yield from chunks("kafka_topic_partition_leader", led, lambda _: broker)
        if not self._engines.cluster.is_controller:
            return
        for topic in list(image.topics.values()):
            for index, state in enumerate(topic.partitions):
                if state.leader == NO_LEADER:
                    yield f"kafka_topic_partition_leader{labels(topic=topic.name, partition=index)} -1\n"
                elif not index % 32:
                    yield ""

    def _added_up(self, survey: Survey, image: MetadataImage) -> Iterator[Family]:
        sums: dict[str, list[int]] = {}

        def add() -> Iterator[str]:
            for number, each in enumerate(survey.partitions):
                if not number % 32:
                    yield ""
                if not each.is_leader:
                    continue
                row = sums.setdefault(self._topic(each.topic), [0] * len(OF_PARTITION))
                for place, (_, _, value) in enumerate(OF_PARTITION):
                    row[place] += value(each, image)

        yield Family("", GAUGE, "", add())
        for place, (name, help_, _) in enumerate(OF_PARTITION):
            added = ((label, row[place]) for label, row in sums.items())
            yield several(name, GAUGE, f"{help_} Added up over the partitions led here.", added)
        sizes = ((self._topic(name), size) for name, size in survey.sizes.items() if size is not None)
        yield several("kafka_log_log_size", GAUGE, "Bytes of this broker's replicas of a topic.", sizes)


def _in(image: MetadataImage, value: Callable[[Partition, MetadataImage], int]) -> Callable[[Partition], int]:
    return lambda partition: value(partition, image)


def _counted(
    name: str, total: Traffic, topics: list[tuple[str, Traffic]], count: Callable[[Traffic], int]
) -> Iterator[str]:
    """The broker's total, and the topics that have any."""
    yield f"{name} {count(total)}\n"
    for number, (label, traffic) in enumerate(topics):
        value = count(traffic)
        if value:
            yield f"{name}{label} {value}\n"
        elif not number % 32:
            yield ""
