"""Delegation tokens: having them made, renewed, ended and shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.client.administration.errors import check
from headrace.client.administration.session import Session
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from headrace.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from headrace.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from headrace.wire.messages.renew_delegation_token import RenewDelegationTokenRequest

Principal = tuple[str, str]
"""(type, name)"""

_SENTENCES = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: (
        "Delegation tokens are not enabled; set delegation.token.secret.key on every broker"
    ),
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "Delegation tokens are only for clients that have logged in, and not with a token; give the login with "
        "--command-config"
    ),
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "There is no token with this HMAC",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "Only the owner and the renewers of a token may do that",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "The token has expired",
    ErrorCode.UNSUPPORTED_VERSION: (
        "The cluster keeps no delegation tokens yet; when all its brokers run a version that can, "
        "'headrace features set delegation.token.version=1' lets it"
    ),
}


@dataclass(frozen=True, slots=True)
class Token:
    id: str
    hmac: bytes = field(repr=False)
    owner: Principal
    requester: Principal
    renewers: list[Principal]
    issued_ms: int
    expires_ms: int
    max_ms: int


def create(
    session: Session, renewers: Sequence[Principal], lifetime_ms: int, owner: Principal | None = None
) -> Token:
    asked = [CreatableRenewers(*renewer) for renewer in renewers]
    owner_type, owner_name = owner or (None, None)
    made = session.call(CreateDelegationTokenRequest(owner_type, owner_name, asked, lifetime_ms))
    _check(made.error_code)
    return Token(
        made.token_id,
        bytes(made.hmac),
        (made.principal_type, made.principal_name),
        (made.token_requester_principal_type, made.token_requester_principal_name),
        list(renewers),
        made.issue_timestamp_ms,
        made.expiry_timestamp_ms,
        made.max_timestamp_ms,
    )


def renew(session: Session, hmac: bytes, period_ms: int) -> int:
    """When it expires now."""
    answer = session.call(RenewDelegationTokenRequest(hmac, period_ms))
    _check(answer.error_code)
    return answer.expiry_timestamp_ms


def expire(session: Session, hmac: bytes, period_ms: int) -> int:
    """When it expires now; a negative period ends it at once."""
    answer = session.call(ExpireDelegationTokenRequest(hmac, period_ms))
    _check(answer.error_code)
    return answer.expiry_timestamp_ms


def describe(session: Session, owners: Sequence[Principal] | None = None) -> list[Token]:
    asked = None if owners is None else [DescribeDelegationTokenOwner(*owner) for owner in owners]
    answer = session.call(DescribeDelegationTokenRequest(asked))
    _check(answer.error_code)
    return [
        Token(
            each.token_id,
            bytes(each.hmac),
            (each.principal_type, each.principal_name),
            (each.token_requester_principal_type, each.token_requester_principal_name),
            [(renewer.principal_type, renewer.principal_name) for renewer in each.renewers],
            each.issue_timestamp,
            each.expiry_timestamp,
            each.max_timestamp,
        )
        for each in answer.tokens
    ]


def _check(code: int) -> None:
    known = code in _SENTENCES
    check(code, _SENTENCES[ErrorCode(code)] if known else None)
