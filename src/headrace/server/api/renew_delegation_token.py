"""RenewDelegationToken: a token expires later, though not beyond its longest life. Its owner and its renewers may."""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.token_requests import change_expiry, lifetimes
from headrace.server.cluster.decisions import renew_token
from headrace.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


async def handle(context: Context, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    return await change_expiry(
        context,
        request,
        bytes(request.hmac),
        lambda token_id, now: renew_token(token_id, request.renew_period_ms, now, lifetimes(context)),
        RenewDelegationTokenResponse,
    )
