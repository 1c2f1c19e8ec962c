"""WriteTxnMarkers: a coordinator, or an administrator who aborts a hanging transaction, ends it in partitions here."""

from __future__ import annotations

from headrace.api.context import Context
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
    codes = await context.services.transactions.markers.write(
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.transaction_result,
        partitions,
    )
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
