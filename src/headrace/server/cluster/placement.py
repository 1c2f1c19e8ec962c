"""Where the replicas of new partitions go: spread over racks first, then over machines, and always evenly over brokers.

Brokers are chosen one by one, each time the one with the least load: least in this topic, so that every topic is spread, then
least in the whole cluster, so that many small topics are spread too. The first replica is the preferred leader; the second takes
over when the first dies, so second replicas are spread as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from headrace.server.cluster.image import Broker, MetadataImage, Partition
from headrace.wire.errors import ErrorCode, KafkaError


class Load:
    """How many partitions each broker leads and holds, in the cluster and in the current topic."""

    def __init__(self, image: MetadataImage, existing: Iterable[Partition] = ()) -> None:
        self.leaders: Counter[int] = Counter()
        self.replicas: Counter[int] = Counter()
        for topic in image.topics.values():
            for partition in topic.partitions:
                self.leaders[partition.replicas[0]] += 1
                for replica in partition.replicas:  # Counter.update is slower for so few.
                    self.replicas[replica] += 1
        self.topic_leaders: Counter[int] = Counter()
        self.topic_replicas: Counter[int] = Counter()
        self.seconds: Counter[tuple[int, int]] = Counter()
        """How often one broker is the second replica where another leads, in the current topic."""
        for partition in existing:
            self.add(partition.replicas, whole_cluster=False)

    def add(self, replicas: Sequence[int], whole_cluster: bool = True) -> None:
        leader = replicas[0]
        self.topic_leaders[leader] += 1
        self.topic_replicas.update(replicas)
        if len(replicas) > 1:
            self.seconds[leader, replicas[1]] += 1
        if whole_cluster:
            self.leaders[leader] += 1
            self.replicas.update(replicas)

    def next_topic(self) -> None:
        """Reset the current topic's counts and keep the cluster's."""
        self.topic_leaders.clear()
        self.topic_replicas.clear()
        self.seconds.clear()


def place(
    brokers: Iterable[Broker],
    load: Load,
    partitions: int,
    replication_factor: int,
    first_partition: int = 0,
    cordoned: Collection[int] = (),
) -> list[tuple[int, ...]]:
    """Replicas for `partitions` new partitions; KafkaError when there are too few brokers for the factor. Cordoned brokers get none."""
    active = [broker for broker in brokers if broker.active]
    usable = sorted((broker for broker in active if broker.id not in cordoned), key=lambda broker: broker.id)
    if not usable:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): "
            "All brokers are currently fenced or in controlled shutdown, or have all their log directories cordoned.",
        )
    if replication_factor > len(usable):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only {len(usable)} broker(s) are live"
            + (
                f" and not cordoned; {len(active) - len(usable)} have all their log directories cordoned."
                if len(active) > len(usable)
                else "."
            ),
        )
    placed: list[tuple[int, ...]] = []
    for number in range(first_partition, first_partition + partitions):
        replicas = _place_one(usable, load, replication_factor, number)
        load.add(replicas)
        placed.append(replicas)
    return placed


def _place_one(usable: list[Broker], load: Load, replication_factor: int, number: int) -> tuple[int, ...]:
    count = len(usable)
    turn = {broker.id: (position - number) % count for position, broker in enumerate(usable)}
    """Breaks ties, so that equally loaded brokers lead in turn."""
    leader = min(
        usable,
        key=lambda broker: (
            load.topic_leaders[broker.id],
            load.leaders[broker.id],
            load.topic_replicas[broker.id],
            load.replicas[broker.id],
            turn[broker.id],
        ),
    )
    chosen = [leader]
    while len(chosen) < replication_factor:
        taken = {broker.id for broker in chosen}
        racks = Counter(broker.rack for broker in chosen)
        hosts = Counter(broker.host for broker in chosen)
        chosen.append(
            min(
                (broker for broker in usable if broker.id not in taken),
                key=lambda broker: (
                    racks[broker.rack],
                    hosts[broker.host] if broker.host is not None else 0,
                    load.topic_replicas[broker.id] - load.topic_leaders[broker.id],
                    load.topic_replicas[broker.id],
                    load.replicas[broker.id],
                    load.seconds[leader.id, broker.id],
                    turn[broker.id],
                ),
            )
        )
    followers = sorted(
        (broker.id for broker in chosen[1:]),
        key=lambda follower: (load.seconds[leader.id, follower], (turn[follower] - turn[leader.id]) % count),
    )
    return (leader.id, *followers)
