"""ExpireDelegationToken: a token expires after a while, or at once where that is negative. Its owner and its renewers may."""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.token_requests import change_expiry
from headrace.server.cluster.decisions import expire_token
from headrace.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


async def handle(context: Context, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    return await change_expiry(
        context,
        request,
        bytes(request.hmac),
        lambda token_id, now: expire_token(token_id, request.expiry_time_period_ms, now),
        ExpireDelegationTokenResponse,
    )
