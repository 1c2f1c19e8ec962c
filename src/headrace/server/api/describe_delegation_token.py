"""DescribeDelegationToken: tokens of certain owners, or all, as far as the client may see them, with their secrets.

- Owners and renewers see their tokens; others need DESCRIBE on the token or DESCRIBE_TOKENS on its owner.
- 2: compact  - 3: who requested a token
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.token_requests import check_allowed, split_principal, token_keys
from headrace.server.cluster.image import DelegationToken
from headrace.server.security.operations import Operation, ResourceKind
from headrace.server.security.tokens import TokenKeys
from headrace.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def handle(context: Context, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
    check_allowed(context)
    keys = token_keys(context)
    owners = None
    if request.owners is not None:
        owners = [f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners]
    return DescribeDelegationTokenResponse(
        0,
        [
            _described(token, keys)
            for token in context.engines.cluster.image.tokens.values()
            if (owners is None or any(map(token.may_renew, owners))) and _may_see(context, token)
        ],
    )


def _may_see(context: Context, token: DelegationToken) -> bool:
    return (
        token.may_renew(context.principal)
        or context.may(Operation.DESCRIBE, ResourceKind.DELEGATION_TOKEN, token.id)
        or context.may(Operation.DESCRIBE_TOKENS, ResourceKind.USER, token.owner)
    )


def _described(token: DelegationToken, keys: TokenKeys) -> DescribedDelegationToken:
    (owner_type, owner_name), (requester_type, requester_name) = (
        split_principal(token.owner),
        split_principal(token.requester),
    )
    return DescribedDelegationToken(
        owner_type,
        owner_name,
        requester_type,
        requester_name,
        token.issued_ms,
        token.expires_ms,
        token.max_ms,
        token.id,
        keys.hmac(token.id),
        [DescribedDelegationTokenRenewer(*split_principal(renewer)) for renewer in token.renewers],
    )
