"""What ShareFetch and ShareAcknowledge have in common: who may ask, acknowledgements, and where leaders are."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from headrace.server.api.context import Context
from headrace.server.coordinator.promise import Promise
from headrace.server.security.operations import GROUP, TOPIC, Operation
from headrace.server.share.acknowledgement import Acknowledgement
from headrace.server.share.states import AcknowledgeType
from headrace.wire.errors import ErrorCode, KafkaError

Entry = tuple[uuid.UUID, int]
NO_LEADER = (-1, -1)


class Batch(Protocol):
    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class Member(NamedTuple):
    group_id: str
    member_id: str


def require_share_group(context: Context, group_id: str | None, member_id: str | None) -> Member:
    """The member, if share groups are switched on and it may read as this group."""
    context.engines.sharing.settings.require()
    if not group_id or not member_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "A share group's request needs a group id and a member id."
        )
    context.require(Operation.READ, GROUP, group_id)
    return Member(group_id, member_id)


def require_topic(context: Context, topic_id: uuid.UUID) -> None:
    topic = context.engines.cluster.image.topics_by_id.get(topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This topic does not exist.")
    context.require(Operation.READ, TOPIC, topic.name)


def acknowledge(
    context: Context, member: Member, entry: Entry, batches: Sequence[Batch], *, renewing: bool
) -> Promise[None]:
    """Known when it is stored; it fails with what is wrong."""
    promise: Promise[None] = Promise()
    try:
        require_topic(context, entry[0])
        acknowledgements = [
            Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for batch in batches
        ]
        if not renewing and any(AcknowledgeType.RENEW in each.types for each in acknowledgements):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The request renews locks without saying so.")
        partition = context.engines.sharing.partitions.find(member.group_id, *entry)
        return partition.acknowledge(member.member_id, acknowledgements)
    except KafkaError as error:
        promise.set_exception(error)
    return promise


def when_all_known(promises: Iterable[Promise[None]]) -> Promise[None]:
    """Known when each of them is, however they end."""
    all_known: Promise[None] = Promise()
    open_ones = [promise for promise in promises if not promise.done()]
    left = len(open_ones)
    if not left:
        all_known.set_result(None)

    def one_more(_: Promise[None]) -> None:
        nonlocal left
        left -= 1
        if not left:
            all_known.set_result(None)

    for promise in open_ones:
        promise.when_done(one_more)
    return all_known


def failure(promise: Promise[None]) -> tuple[ErrorCode, str | None]:
    """How a known one ended, for a reply."""
    error = promise.exception()
    if error is None:
        return ErrorCode.NONE, None
    if isinstance(error, KafkaError):
        return error.code, error.message or None
    return ErrorCode.UNKNOWN_SERVER_ERROR, None


def leader_of(context: Context, entry: Entry) -> tuple[int, int]:
    """Its id and epoch, as this broker knows them."""
    return context.engines.replicas.current_leader(entry[0].bytes, entry[1], by_id=True) or NO_LEADER
