"""Reassignments, asked of the cluster over the wire: librdkafka has no call for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from faults.cluster import Cluster, until
from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from headrace.wire.schema import Request, Response


def _controller(cluster: Cluster, request: Request) -> Response | None:
    broker = cluster.brokers[cluster.controller()]
    try:
        with WireClient(f"127.0.0.1:{broker.ports['CLIENTS']}", timeout=10) as client:
            return client.call(request, 0)
    except OSError:
        return None


def reassign(cluster: Cluster, topic: str, wanted: Mapping[int, Sequence[int]]) -> None:
    """Ask until the controller has taken it up."""
    partitions = [ReassignablePartition(index, list(replicas)) for index, replicas in wanted.items()]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(topic, partitions)])

    def asked() -> bool:
        answer = _controller(cluster, request)
        return (
            isinstance(answer, AlterPartitionReassignmentsResponse)
            and answer.error_code == 0
            and all(
                each.error_code in (0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
                for responded in answer.responses
                for each in responded.partitions
            )
        )

    until("the controller takes up a reassignment", asked, 60)


def reassigning(cluster: Cluster) -> bool:
    """Whether anything is on the move."""
    answer = _controller(cluster, ListPartitionReassignmentsRequest(topics=None))
    return not (
        isinstance(answer, ListPartitionReassignmentsResponse)
        and answer.error_code == 0
        and not answer.topics
    )
