"""Delegation tokens: who may have one made, renewed and ended, and when it expires (KIP-48, as Kafka's controller decides)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.server.cluster import features
from headrace.server.cluster.changes import Change
from headrace.server.cluster.ids import format_id, random_id
from headrace.server.cluster.image import DelegationToken, MetadataImage
from headrace.server.cluster.outcome import Outcome
from headrace.server.cluster.policy_changes import TokenChanged
from headrace.wire.errors import ErrorCode, KafkaError


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """delegation.token.max.lifetime.ms and delegation.token.expiry.time.ms"""

    max_ms: int
    renewal_ms: int


def create_token(
    image: MetadataImage,
    owner: str,
    requester: str,
    renewers: Sequence[str],
    wanted_ms: int,
    now_ms: int,
    lifetimes: Lifetimes,
) -> Outcome[DelegationToken]:
    """`wanted_ms` is the lifetime the client asks for, if it is positive."""
    if features.level(image, features.TOKEN_VERSION) < 1:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The cluster keeps no delegation tokens yet: when all its brokers run this version, set the level of "
            f"{features.TOKEN_VERSION} to 1 (`headrace features set {features.TOKEN_VERSION}=1`).",
        )
    last = now_ms + (min(wanted_ms, lifetimes.max_ms) if wanted_ms > 0 else lifetimes.max_ms)
    token = DelegationToken(
        format_id(random_id()),
        owner,
        requester,
        tuple(dict.fromkeys(renewers)),
        now_ms,
        min(last, now_ms + lifetimes.renewal_ms),
        last,
    )
    return Outcome(token, [TokenChanged(token.id, token)])


def renew_token(
    image: MetadataImage, token_id: str | None, wanted_ms: int, now_ms: int, lifetimes: Lifetimes
) -> Outcome[int]:
    """When it expires now."""
    token = _living(image, token_id, now_ms)
    period = min(wanted_ms, lifetimes.renewal_ms) if wanted_ms > 0 else lifetimes.renewal_ms
    return _until(token, now_ms + period)


def expire_token(image: MetadataImage, token_id: str | None, period_ms: int, now_ms: int) -> Outcome[int]:
    """A negative period ends the token at once."""
    if period_ms < 0:
        return Outcome(now_ms, [TokenChanged(_known(image, token_id).id, None)])
    return _until(_living(image, token_id, now_ms), now_ms + period_ms)


def remove_expired(image: MetadataImage, now_ms: int) -> Outcome[None]:
    gone: list[Change] = [
        TokenChanged(token.id, None) for token in image.tokens.values() if token.expired(now_ms)
    ]
    return Outcome(None, gone)


def _until(token: DelegationToken, expires_ms: int) -> Outcome[int]:
    token = token._replace(expires_ms=min(expires_ms, token.max_ms))
    return Outcome(token.expires_ms, [TokenChanged(token.id, token)])


def _known(image: MetadataImage, token_id: str | None) -> DelegationToken:
    token = image.tokens.get(token_id) if token_id is not None else None
    if token is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "There is no such delegation token.")
    return token


def _living(image: MetadataImage, token_id: str | None, now_ms: int) -> DelegationToken:
    token = _known(image, token_id)
    if token.expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED, "The delegation token has expired.")
    return token
