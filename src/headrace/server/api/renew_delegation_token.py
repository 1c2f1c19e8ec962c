"""RenewDelegationToken: a token expires later, though not beyond its longest life. Its owner and its renewers may."""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.token_requests import (
    check_allowed,
    check_may_renew,
    find_by_hmac,
    lifetimes,
    passed_on,
)
from headrace.server.cluster.decisions import renew_token
from headrace.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


async def handle(context: Context, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
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
    expires = await cluster.decide(renew_token(token_id, request.renew_period_ms, now, lifetimes(context)))
    return RenewDelegationTokenResponse(0, expires)
