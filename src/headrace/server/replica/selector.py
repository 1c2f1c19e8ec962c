"""The replica a consumer should read from: one in its own rack, as in Kafka's RackAwareReplicaSelector (KIP-392).

Only replicas in sync that have the offset asked for and are up are chosen; the leader, when it is in that rack itself.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.server.cluster.image import MetadataImage
from headrace.server.replica.partition import Partition

LEADER = -1

Selector = Callable[[Partition, int], int]
"""The broker to read a partition from, from an offset on; LEADER for the leader itself."""


def rack_aware(image: MetadataImage, listener: str, rack: str) -> Selector:
    """For a consumer in `rack` that connected to `listener`."""

    def reachable(broker_id: int) -> bool:
        broker = image.brokers.get(broker_id)
        return (
            broker is not None
            and broker.rack == rack
            and not broker.fenced
            and broker.endpoint(listener) is not None
        )

    def select(partition: Partition, offset: int) -> int:
        leadership = partition.leadership
        if leadership is None or reachable(partition.leader_id):
            return LEADER
        near = [
            (follower.caught_up_at, follower.log_end_offset, -broker_id)
            for broker_id, follower in leadership.followers.items()
            if broker_id in leadership.isr
            and reachable(broker_id)
            and follower.log_start_offset <= offset <= follower.log_end_offset
        ]
        return -max(near)[2] if near else LEADER

    return select
