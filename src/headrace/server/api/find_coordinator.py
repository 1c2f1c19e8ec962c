"""FindCoordinator: which broker coordinates a group, a transactional id, or what a share group has of a partition.

- The coordinator is the leader of the partition of `__consumer_offsets` (`__transaction_state`, `__share_group_state`) that the
  key hashes to. The topic is created when it is first asked for.
- COORDINATOR_NOT_AVAILABLE while the topic cannot be made or the partition has no leader: the client asks again.

- 0: groups only  - 1: key type, so transactions too; throttle time  - 3: compact  - 4: many keys
- 5: TRANSACTION_ABORTABLE for transactions  - 6: share groups, by keys like group:topic id:partition
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.cluster.ids import parse_id
from headrace.server.cluster.internal_topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from headrace.server.coordinator.partitioning import partition_for
from headrace.server.security.operations import CLUSTER, GROUP, TRANSACTIONAL_ID, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

FIRST_VERSION_WITH_MANY_KEYS = 4
FIRST_VERSION_WITH_SHARE_GROUPS = 6
SHARE = 2
KINDS = {0: (GROUP, CONSUMER_OFFSETS), 1: (TRANSACTIONAL_ID, TRANSACTION_STATE)}


async def handle(context: Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if context.version >= FIRST_VERSION_WITH_MANY_KEYS:
        found = [await _find(context, request.key_type, key) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)
    one = await _find(context, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


async def _find(context: Context, key_type: int, key: str) -> Coordinator:
    try:
        if key_type == SHARE and context.version >= FIRST_VERSION_WITH_SHARE_GROUPS:
            return await _find_share(context, key)
        if key_type not in KINDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"There are no coordinators of type {key_type}.")
        kind, topic = KINDS[key_type]
        context.require(Operation.DESCRIBE, kind, key)
        return await _locate(context, topic, key)
    except KafkaError as error:
        return Coordinator(key, -1, "", -1, error.code, error.message)


async def _find_share(context: Context, key: str) -> Coordinator:
    """Asked by brokers only."""
    context.engines.sharing.settings.require()
    context.require(Operation.CLUSTER_ACTION, *CLUSTER)
    group_id, topic, partition = (*key.rsplit(":", 2), "", "")[:3]
    try:
        parse_id(topic)
        valid = bool(group_id) and int(partition) >= 0
    except ValueError:
        valid = False
    if not valid:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The key of a share coordinator is group:topic id:partition, not {key!r}.",
        )
    return await _locate(context, SHARE_GROUP_STATE, key)


async def _locate(context: Context, topic: str, key: str) -> Coordinator:
    cluster = context.engines.cluster
    if topic not in cluster.image.topics:
        await _create(context, topic)
    known = cluster.image.topics[topic]
    leader = known.partitions[partition_for(key, len(known.partitions))].leader
    broker = cluster.image.brokers.get(leader)
    endpoint = None
    if broker is not None and not broker.fenced:
        endpoint = broker.endpoint(context.connection.listener_name)
    if endpoint is None:
        raise _not_available(f"The partition of {topic} for {key} has no leader now.")
    return Coordinator(key, leader, endpoint.host, endpoint.port, error_message=None)


async def _create(context: Context, topic: str) -> None:
    """In a cluster this fails until there are as many brokers as the topic has replicas."""
    engines = context.engines
    error = (await engines.auto_topic_creation.create([topic])).get(topic)
    if error is not None:
        raise _not_available(f"{topic} cannot be created yet: {error.name}.")
    await engines.cluster.until(lambda image: topic in image.topics)


def _not_available(message: str) -> KafkaError:
    return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
