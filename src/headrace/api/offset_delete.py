"""OffsetDelete: forget committed offsets of partitions that nobody in the group subscribes to.

- GROUP_SUBSCRIBED_TO_TOPIC for topics in use; NON_EMPTY_GROUP for a live group whose members are not consumers.
- A partition without a commit is answered with success.
"""

from __future__ import annotations

from headrace.api.context import Context
from headrace.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse


async def handle(context: Context, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    return await context.services.groups.delete_offsets(request)
