"""InitProducerId: an id and an epoch for an idempotent producer.

- A producer that already has an id gets a new one: nothing but its own numbers depends on it.
- 2: compact  - 3: the producer may say which id and epoch it has
"""

from __future__ import annotations

from headrace.api.context import Context
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


async def handle(context: Context, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)
    producer_id = await context.services.producer_ids.next()
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
