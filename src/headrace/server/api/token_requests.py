"""What the four requests about delegation tokens share: who may ask, the brokers' key, and passing on to the controller.

A request that a broker passes on was judged there, for its client's principal; the controller judges the broker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from headrace.server.api.context import Context
from headrace.server.api.forwarding import is_from_a_broker
from headrace.server.cluster.image import DelegationToken
from headrace.server.cluster.situation import Decision
from headrace.server.cluster.tokens import Lifetimes
from headrace.server.security.principals import ANONYMOUS
from headrace.server.security.tokens import TokenKeys
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.schema import Request, Response

R = TypeVar("R", bound=Response)


def passed_on(context: Context) -> bool:
    """By another broker, for a client of its own."""
    login = context.connection.login
    return not (login is not None and login.by_token) and is_from_a_broker(context)


def check_allowed(context: Context) -> None:
    """A client must have proved who it is, and not with a token: nobody gets a token for a token."""
    login = context.connection.login
    if context.principal == ANONYMOUS or (login is not None and login.by_token):
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on delegation token "
            "authenticated channels.",
        )


def token_keys(context: Context) -> TokenKeys:
    secret = context.engines.config.string("delegation.token.secret.key")
    if not secret:
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
            "Delegation Token feature is not enabled: set delegation.token.secret.key on every broker.",
        )
    return TokenKeys(secret)


def lifetimes(context: Context) -> Lifetimes:
    config = context.engines.config
    return Lifetimes(
        config.integer("delegation.token.max.lifetime.ms"), config.integer("delegation.token.expiry.time.ms")
    )


def find_by_hmac(context: Context, hmac: bytes) -> DelegationToken | None:
    keys = token_keys(context)
    tokens = context.engines.cluster.image.tokens.values()
    return next((token for token in tokens if keys.is_of(token.id, hmac)), None)


def check_may_renew(context: Context, token: DelegationToken | None) -> None:
    """Only the owner and the renewers may, here or at the broker that passed the request on."""
    if token is not None and not token.may_renew(context.principal):
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
            "Specified Principal is not valid Owner/Renewer of Delegation Token.",
        )


async def change_expiry(
    context: Context,
    request: Request[R],
    hmac: bytes,
    decision: Callable[[str | None, int], Decision[int]],
    reply: Callable[[int, int], R],
) -> R:
    """Owner and renewers change when a token expires. The controller decides, from the token's id (None where there is no such token)
    and the time; the reply is made of an error code and the new end."""
    by_client = not passed_on(context)
    if by_client:
        check_allowed(context)
    token = find_by_hmac(context, hmac)
    cluster = context.engines.cluster
    if by_client:
        check_may_renew(context, token)
        if not cluster.is_controller:
            return await cluster.ask_controller(request, context.version)
    token_id = token.id if token is not None else None
    return reply(0, await cluster.decide(decision(token_id, context.engines.clock.now_ms())))


def split_principal(principal: str) -> tuple[str, str]:
    """(type, name)"""
    kind, _, name = principal.partition(":")
    return kind, name
