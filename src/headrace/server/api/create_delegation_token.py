"""CreateDelegationToken: a token with which others may log in as its owner.

- The controller decides. A broker that passes the request on fills in the owner, and names the requester as a renewer of the type
  `Requester`, which no client may send: the request itself has no place for it.
- 2: compact  - 3: somebody else as the owner, for those who may CREATE_TOKENS on that user
"""

from __future__ import annotations

import logging

from headrace.server.api.context import Context
from headrace.server.api.token_requests import (
    check_allowed,
    lifetimes,
    passed_on,
    split_principal,
    token_keys,
)
from headrace.server.cluster.decisions import create_token
from headrace.server.security.operations import Operation, ResourceKind
from headrace.server.security.principals import USER
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

log = logging.getLogger(__name__)

REQUESTER = "Requester"
NEWEST = 3


async def handle(context: Context, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    if passed_on(context):
        return await _decide(context, request)
    check_allowed(context)
    token_keys(context)
    judged = _judged(context, request)
    if context.engines.cluster.is_controller:
        return await _decide(context, judged)
    return await context.engines.cluster.ask_controller(judged, NEWEST)


def _judged(context: Context, request: CreateDelegationTokenRequest) -> CreateDelegationTokenRequest:
    """The request with owner and requester in it, if the client may make it."""
    owner = context.principal
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    if owner != context.principal and not context.may(Operation.CREATE_TOKENS, ResourceKind.USER, owner):
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
            f"{context.principal} may not create tokens for {owner}.",
        )
    if any(f"{renewer.principal_type}:" != USER for renewer in request.renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE, "Renewers must be users.")
    renewers = [*request.renewers, CreatableRenewers(REQUESTER, context.principal)]
    return CreateDelegationTokenRequest(*split_principal(owner), renewers, request.max_lifetime_ms)


async def _decide(context: Context, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    keys = token_keys(context)
    owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    requesters = [each.principal_name for each in request.renewers if each.principal_type == REQUESTER]
    renewers = [USER + each.principal_name for each in request.renewers if each.principal_type != REQUESTER]
    decision = create_token(
        owner,
        requesters[0] if requesters else owner,
        renewers,
        request.max_lifetime_ms,
        context.engines.clock.now_ms(),
        lifetimes(context),
    )
    try:
        token = await context.engines.cluster.decide(decision)
    except KafkaError as error:
        if error.code == ErrorCode.UNSUPPORTED_VERSION:
            log.warning("A delegation token was refused. %s", error.message)  # The reply has no place for it.
        raise
    (owner_type, owner_name), (requester_type, requester_name) = (
        split_principal(token.owner),
        split_principal(token.requester),
    )
    return CreateDelegationTokenResponse(
        0,
        owner_type,
        owner_name,
        requester_type,
        requester_name,
        token.issued_ms,
        token.expires_ms,
        token.max_ms,
        token.id,
        keys.hmac(token.id),
    )
