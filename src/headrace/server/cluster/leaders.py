"""Electing leaders on request or when settings newly allow it, and giving leadership back to preferred leaders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set

from headrace.server.cluster.brokers import Unclean
from headrace.server.cluster.changes import Change
from headrace.server.cluster.elections import Election, next_state
from headrace.server.cluster.image import NO_LEADER, MetadataImage, Topic
from headrace.server.cluster.outcome import Outcome, PartitionEdits
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

PREFERRED, UNCLEAN = 0, 1


def elect_leaders(
    image: MetadataImage, request: ElectLeadersRequest, full: Set[int] = frozenset()
) -> Outcome[ElectLeadersResponse]:
    """Elect the preferred leader, unless its disk is `full`, or any live replica for a partition without a leader.

    A request without a list means every partition; those that need no election are left out of the response.
    """
    if request.election_type not in (PREFERRED, UNCLEAN):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    edits = PartitionEdits()
    results: list[ReplicaElectionResult] = []
    if request.topic_partitions is None:
        for topic in image.topics.values():
            partitions = [
                result
                for index in range(len(topic.partitions))
                if (result := _elect(image, topic.name, index, request.election_type, edits, full)).error_code
                != ErrorCode.ELECTION_NOT_NEEDED
            ]
            if partitions:
                results.append(ReplicaElectionResult(topic.name, partitions))
    else:
        for asked in request.topic_partitions:
            partitions = [
                _elect(image, asked.topic, index, request.election_type, edits, full)
                for index in asked.partitions
            ]
            results.append(ReplicaElectionResult(asked.topic, partitions))
    return Outcome(ElectLeadersResponse(replica_election_results=results), edits.changes())


def _elect(
    image: MetadataImage, name: str, index: int, kind: int, edits: PartitionEdits, full: Set[int]
) -> PartitionResult:
    topic = image.topics.get(name)
    partition = topic.partition(index) if topic is not None else None
    if topic is None or partition is None:
        missing = f"No such topic as {name}" if topic is None else f"No such partition as {name}-{index}"
        return PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, missing)
    settled = (
        partition.leader == partition.replicas[0] if kind == PREFERRED else partition.leader != NO_LEADER
    )
    if settled:
        return PartitionResult(
            index, ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
        )
    election = Election.PREFERRED if kind == PREFERRED else Election.UNCLEAN
    state = next_state(partition, image.active, election=election)
    if kind == PREFERRED and (state.leader != partition.replicas[0] or state.leader in full):
        return PartitionResult(
            index, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
        )
    if state.leader == NO_LEADER:
        return PartitionResult(
            index,
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            "Eligible topic partition leaders are not available.",
        )
    edits.put(topic, index, state)
    return PartitionResult(index, ErrorCode.NONE, None)


def elect_uncleanly(image: MetadataImage, unclean: Unclean) -> list[Change]:
    """Elect any live replica for every partition that has no leader and allows unclean election."""
    edits = PartitionEdits()
    for topic in image.topics.values():
        if not unclean(topic.name):
            continue
        for index, partition in enumerate(topic.partitions):
            if partition.leader == NO_LEADER:
                edits.put(topic, index, next_state(partition, image.active, election=Election.UNCLEAN))
    return edits.changes()


def balance_leaders(
    image: MetadataImage, tolerated_percentage: int, full: Set[int] = frozenset()
) -> list[Change]:
    """Give leadership back to each preferred leader that has lost more than the tolerated share of it and whose disk is not `full`."""
    preferred: Counter[int] = Counter()
    misplaced: dict[int, list[tuple[Topic, int]]] = {}
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            first = partition.replicas[0]
            preferred[first] += 1
            able = image.active(first) and first in partition.isr and first not in full
            if partition.leader != first and able:
                misplaced.setdefault(first, []).append((topic, index))
    edits = PartitionEdits()
    for broker_id, partitions in misplaced.items():
        if 100 * len(partitions) > tolerated_percentage * preferred[broker_id]:
            for topic, index in partitions:
                state = next_state(topic.partitions[index], image.active, election=Election.PREFERRED)
                edits.put(topic, index, state)
    return edits.changes()
