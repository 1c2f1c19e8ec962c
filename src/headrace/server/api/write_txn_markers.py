"""WriteTxnMarkers: a coordinator, or an administrator aborting a hanging transaction, ends it in partitions led here.

- 2: the transaction version. From 2 on every marker has an epoch of its own, so a late one of an earlier transaction is refused (KIP-1228).
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.security.operations import Operation
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


async def handle(context: Context, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse([await _write(context, marker) for marker in request.markers])


async def _write(context: Context, marker: WritableTxnMarker) -> WritableTxnMarkerResult:
    partitions = [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]
    if context.may_on_cluster(Operation.ALTER, asked_for=False) or context.may_on_cluster(
        Operation.CLUSTER_ACTION
    ):
        codes = await context.engines.transactions.markers.write(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.transaction_result,
            partitions,
            marker.transaction_version,
        )
    else:
        codes = dict.fromkeys(partitions, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    topics = [
        WritableTxnMarkerTopicResult(
            topic.name,
            [
                WritableTxnMarkerPartitionResult(index, codes[topic.name, index])
                for index in topic.partition_indexes
            ],
        )
        for topic in marker.topics
    ]
    return WritableTxnMarkerResult(marker.producer_id, topics)
