"""ExpireDelegationToken: a token expires after a while, or at once where that is negative. Its owner and its renewers may."""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.token_requests import check_allowed, check_may_renew, find_by_hmac, passed_on
from headrace.server.cluster.decisions import expire_token
from headrace.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


async def handle(context: Context, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    by_client = not passed_on(context)
    if by_client:
        check_allowed(context)
    token = find_by_hmac(context, bytes(request.hmac))
    cluster = context.engines.cluster
    if by_client:
        check_may_renew(context, token)
        if not cluster.is_controller:
            return await cluster.ask_controller(request, context.version)
    token_id = token.id if token is not None else None
    now = context.engines.clock.now_ms()
    return ExpireDelegationTokenResponse(
        0, await cluster.decide(expire_token(token_id, request.expiry_time_period_ms, now))
    )
