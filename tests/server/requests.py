"""Produce and fetch requests for one partition, as tests send them over the wire."""

from __future__ import annotations

from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def produce_request(
    topic: str,
    records: bytes,
    *,
    acks: int = -1,
    timeout_ms: int = 30_000,
    partition: int = 0,
    transactional_id: str | None = None,
) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=records)
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def produced(client: WireClient, request: ProduceRequest, version: int = 9) -> ErrorCode:
    """Send the request and return the error code of its partition."""
    reply = client.call(request, version)
    return ErrorCode(reply.responses[0].partition_responses[0].error_code)


def fetch_request(
    topic: str, *, offset: int = 0, max_wait_ms: int = 0, session_epoch: int = -1
) -> FetchRequest:
    """Up to 1 MiB of partition 0; waits for the first byte."""
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )
