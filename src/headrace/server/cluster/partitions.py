"""AlterPartition: a leader asks to shrink or grow an ISR, and the controller checks that it may.

A leader that leaves itself out resigns: its log failed, and another member of the ISR takes over. A leader that is the only member
asks for an empty ISR and stays the leader in a new epoch. Its log may come back without records of the old epoch that others
have, and in the old epoch it could give their offsets to other records.
"""

from __future__ import annotations

from collections.abc import Set

from headrace.server.cluster.brokers import Unclean
from headrace.server.cluster.elections import Election, next_state
from headrace.server.cluster.image import NO_LEADER, MetadataImage, Partition
from headrace.server.cluster.outcome import Outcome, PartitionEdits
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
)
from headrace.wire.messages.alter_partition import ResponsePartitionData as PartitionReply
from headrace.wire.messages.alter_partition import ResponseTopicData as TopicReply

RECOVERED, RECOVERING = 0, 1


def alter_partition(
    image: MetadataImage, request: AlterPartitionRequest, unclean: Unclean, full: Set[int] = frozenset()
) -> Outcome[AlterPartitionResponse]:
    """Brokers in `full` have no room on their disks and join no ISR that has a member with room."""
    broker = image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return Outcome(AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    edits = PartitionEdits()
    replies: list[TopicReply] = []
    for topic_data in request.topics:
        topic = image.topics_by_id.get(topic_data.topic_id)
        parts: list[PartitionReply] = []
        for data in topic_data.partitions:
            index = data.partition_index
            if topic is None:
                parts.append(PartitionReply(index, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            partition = topic.partition(index)
            wanted = data.new_isr_with_epochs or [BrokerState(replica) for replica in data.new_isr]
            error = _refusal(image, request.broker_id, partition, data, wanted, full)
            if partition is None or error is not ErrorCode.NONE:
                parts.append(PartitionReply(index, error))
                continue
            election = Election.UNCLEAN if unclean(topic.name) else Election.ONLINE
            if wanted:
                state = next_state(
                    partition,
                    image.active,
                    election=election,
                    isr=[replica.broker_id for replica in wanted],
                    recovering=data.leader_recovery_state == RECOVERING,
                )
            else:
                state = _without_its_log(image, partition, election)
            edits.put(topic, index, state)
            if state.leader != request.broker_id:
                # The new ISR completed a reassignment that moved leadership; the old leader must read the image again.
                parts.append(PartitionReply(index, ErrorCode.NEW_LEADER_ELECTED))
                continue
            parts.append(
                PartitionReply(
                    partition_index=index,
                    leader_id=state.leader,
                    leader_epoch=state.leader_epoch,
                    isr=list(state.isr),
                    leader_recovery_state=RECOVERING if state.recovering else RECOVERED,
                    partition_epoch=state.partition_epoch,
                )
            )
        replies.append(TopicReply(topic_data.topic_id, parts))
    return Outcome(AlterPartitionResponse(topics=replies), edits.changes())


def _without_its_log(image: MetadataImage, partition: Partition, election: Election) -> Partition:
    """The only member of the ISR lost its log: it stays the leader in a new epoch, or another replica is elected uncleanly."""
    if election is Election.UNCLEAN:
        state = next_state(
            partition, lambda each: each != partition.leader and image.active(each), election=election
        )
        if state.leader != NO_LEADER:
            return state
    return next_state(partition, image.active, new_epoch=True)


def _refusal(
    image: MetadataImage,
    broker_id: int,
    partition: Partition | None,
    data: PartitionData,
    wanted: list[BrokerState],
    full: Set[int],
) -> ErrorCode:
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if data.leader_epoch > partition.leader_epoch or data.partition_epoch > partition.partition_epoch:
        # The leader has seen later metadata, so this broker is no longer the controller.
        return ErrorCode.NOT_CONTROLLER
    if data.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if data.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    isr = [replica.broker_id for replica in wanted]
    if len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas):
        return ErrorCode.INVALID_REQUEST
    if not isr:
        return ErrorCode.NONE if partition.isr == (broker_id,) else ErrorCode.INVALID_REQUEST
    if broker_id not in isr and not set(isr) <= set(partition.isr):
        return ErrorCode.INVALID_REQUEST
    recovering = data.leader_recovery_state == RECOVERING
    if recovering and (len(isr) > 1 or not partition.recovering):
        return ErrorCode.INVALID_REQUEST
    if not all(_eligible(image, replica) for replica in wanted):
        return ErrorCode.INELIGIBLE_REPLICA
    if not full.isdisjoint(set(isr) - set(partition.isr)) and not set(partition.isr) <= full:
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _eligible(image: MetadataImage, replica: BrokerState) -> bool:
    """Whether a replica is active in the epoch in which the leader saw it catch up; -1 matches any epoch."""
    broker = image.brokers.get(replica.broker_id)
    return broker is not None and broker.active and replica.broker_epoch in (-1, broker.epoch)
