"""Moving partitions to other brokers: start, list and cancel.

A partition that moves has the old and the new replicas at once. When the leader has brought every new replica into the ISR, the
move is complete and the old replicas are removed (`elections.next_state`). Cancelling removes the new ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.server.cluster.brokers import Unclean
from headrace.server.cluster.elections import Election, next_state
from headrace.server.cluster.image import MetadataImage, Partition, Topic
from headrace.server.cluster.outcome import Outcome, PartitionEdits
from headrace.server.cluster.topics import check_assignment
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from headrace.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def alter_reassignments(
    image: MetadataImage, request: AlterPartitionReassignmentsRequest, unclean: Unclean
) -> Outcome[AlterPartitionReassignmentsResponse]:
    edits = PartitionEdits()
    responses: list[ReassignableTopicResponse] = []
    for asked in request.topics:
        topic = image.topics.get(asked.name)
        partitions: list[ReassignablePartitionResponse] = []
        for target in asked.partitions:
            try:
                if topic is None:
                    raise KafkaError(
                        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {asked.name}."
                    )
                state = _alter(image, topic, target, unclean, request.allow_replication_factor_change)
                edits.put(topic, target.partition_index, state)
                partitions.append(ReassignablePartitionResponse(target.partition_index, 0, None))
            except KafkaError as error:
                partitions.append(
                    ReassignablePartitionResponse(target.partition_index, error.code, error.message or None)
                )
        responses.append(ReassignableTopicResponse(asked.name, partitions))
    return Outcome(
        AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_message=None,
            responses=responses,
        ),
        edits.changes(),
    )


def _alter(
    image: MetadataImage, topic: Topic, target: ReassignablePartition, unclean: Unclean, any_factor: bool
) -> Partition:
    partition = topic.partition(target.partition_index)
    if partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition {topic.name}:{target.partition_index}.",
        )
    election = Election.UNCLEAN if unclean(topic.name) else Election.ONLINE
    if target.replicas is None:
        return _cancel(image, topic, target.partition_index, partition, election)
    check_assignment(image, target.replicas, None)
    factor = len(partition.replicas) - len(partition.removing)
    if not any_factor and len(target.replicas) != factor:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {factor} to {len(target.replicas)}",
        )
    # Replicas that an unfinished move was adding are dropped, unless the new move wants them or no others are in sync.
    original = _before_move(partition)
    wanted = tuple(target.replicas)
    adding = tuple(replica for replica in wanted if replica not in original)
    removing = tuple(replica for replica in original if replica not in wanted)
    isr = tuple(replica for replica in partition.isr if replica in wanted or replica in removing)
    if not isr:
        isr = partition.isr
        removing += tuple(replica for replica in isr if replica not in wanted + removing)
    return next_state(
        partition,
        image.active,
        election=election,
        isr=isr,
        replicas=wanted + removing,
        adding=adding,
        removing=removing,
    )


def _cancel(
    image: MetadataImage, topic: Topic, index: int, partition: Partition, election: Election
) -> Partition:
    if not partition.reassigning:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    original = _before_move(partition)
    isr = tuple(replica for replica in partition.isr if replica not in partition.adding)
    if not isr:
        if election is not Election.UNCLEAN:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{index} because it would require an "
                "unclean leader election.",
            )
        isr = original[:1]
    return next_state(
        partition, image.active, election=election, isr=isr, replicas=original, adding=(), removing=()
    )


def _before_move(partition: Partition) -> tuple[int, ...]:
    return tuple(replica for replica in partition.replicas if replica not in partition.adding)


def list_reassignments(
    image: MetadataImage, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """The partitions being moved: of the named topics, or of all."""
    response = ListPartitionReassignmentsResponse(error_message=None)
    wanted: list[tuple[Topic, Sequence[int]]] = []
    if request.topics is None:
        wanted = [(topic, range(len(topic.partitions))) for topic in image.topics.values()]
    else:
        for asked in request.topics:
            if asked.name in image.topics:
                wanted.append((image.topics[asked.name], asked.partition_indexes))
    for topic, indexes in wanted:
        moving = []
        for index in indexes:
            partition = topic.partition(index)
            if partition is not None and partition.reassigning:
                moving.append(
                    OngoingPartitionReassignment(
                        index, list(partition.replicas), list(partition.adding), list(partition.removing)
                    )
                )
        if moving:
            response.topics.append(OngoingTopicReassignment(topic.name, moving))
    return response
