"""DescribeQuorum: who keeps the cluster's metadata, and how far each broker has followed it.

There is no Raft quorum here. What plays its part is one sequence of changes in the store, written by the controller alone:

- the leader is the controller, its epoch the controller's, and the high watermark the end of the sequence;
- every broker that is alive may become the controller, so all of them are voters, and there are no observers;
- the controller asks each of them for the number of changes it has applied. -1 is the answer for one that does not say.

A request without a topic is what the controller asks: the broker answers for itself alone.

- 1: times of the last fetch and of being caught up: that of this answer, -1 for a broker that does not say or is behind
- 2: an error in words, the voters' addresses
"""

from __future__ import annotations

import asyncio

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.api.forwarding import to_controller
from headrace.server.security.operations import Operation
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)

TOPIC = "__cluster_metadata"
_VERSION = 2
_ASK_SECONDS = 2.0


@requires_on_cluster(Operation.DESCRIBE)
async def handle(context: Context, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    if not request.topics:
        engines = context.engines
        voter = ReplicaState(engines.broker_id, log_end_offset=_applied(context))
        return _quorum(context, [voter])
    if [
        (topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics
    ] != [(TOPIC, [0])]:
        return DescribeQuorumResponse(
            topics=[
                ResponseTopicData(
                    topic.topic_name,
                    [
                        ResponsePartitionData(
                            each.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        )
    return await _by_controller(context, request)


@to_controller
async def _by_controller(context: Context, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    engines = context.engines
    image = engines.cluster.image
    alive = [broker.id for broker in image.brokers.values() if not broker.fenced]
    end = _applied(context)
    found = await asyncio.gather(*(_position(context, broker_id) for broker_id in alive))
    now_ms = engines.clock.now_ms()
    voters = []
    for broker_id, offset in zip(alive, found, strict=True):
        voter = ReplicaState(broker_id, log_end_offset=offset)
        if broker_id == engines.broker_id:
            voter.last_caught_up_timestamp = now_ms
        elif offset >= 0:
            voter.last_fetch_timestamp = now_ms
            voter.last_caught_up_timestamp = now_ms if offset >= end else -1
        voters.append(voter)
    return _quorum(context, voters)


def _quorum(context: Context, voters: list[ReplicaState]) -> DescribeQuorumResponse:
    image = context.engines.cluster.image
    leader = image.controller_id if image.alive(image.controller_id) else -1
    partition = ResponsePartitionData(
        0, ErrorCode.NONE, None, leader, image.controller_epoch, _applied(context), voters
    )
    nodes = [
        Node(broker.id, [Listener(each.listener, each.host, each.port) for each in broker.endpoints])
        for broker in image.brokers.values()
        if any(broker.id == voter.replica_id for voter in voters)
    ]
    return DescribeQuorumResponse(
        error_message=None, topics=[ResponseTopicData(TOPIC, [partition])], nodes=nodes
    )


def _applied(context: Context) -> int:
    return context.engines.cluster.image.offset + 1


async def _position(context: Context, broker_id: int) -> int:
    engines = context.engines
    if broker_id == engines.broker_id:
        return _applied(context)
    try:
        if DescribeQuorumRequest.API_KEY not in await engines.peers.offered(broker_id):
            return -1
        reply = await engines.peers.call(broker_id, DescribeQuorumRequest(), _VERSION, _ASK_SECONDS)
    except OSError:
        return -1
    return reply.topics[0].partitions[0].current_voters[0].log_end_offset if reply.topics else -1
