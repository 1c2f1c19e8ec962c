"""Consumer groups of both protocols, and share groups: listing them, and their members.

Asked through `link/`: librdkafka reports neither epochs nor the states of the newer protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headrace.client.administration import share_groups
from headrace.client.administration.errors import Refused, check
from headrace.client.administration.names import Partition
from headrace.client.administration.session import Session
from headrace.link.cluster import GROUP
from headrace.wire.codec import WireError, decode
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import consumer_group_describe as modern
from headrace.wire.messages import describe_groups as classic
from headrace.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from headrace.wire.messages.list_groups import ListGroupsRequest

STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
TYPES = ("Classic", "Consumer")
ALL_TYPES = (*TYPES, share_groups.TYPE)
_NOT_ONE_OF_THESE = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)


@dataclass(frozen=True, slots=True)
class Listing:
    group: str
    type: str  # Classic, Consumer or Share
    state: str
    protocol: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: list[Partition]
    target: list[Partition] | None  # the newer protocol only
    epoch: int | None
    upgraded: bool | None  # whether the member itself speaks the newer protocol


@dataclass(frozen=True, slots=True)
class Description:
    group: str
    type: str
    state: str
    assignor: str
    coordinator: int
    members: list[Member]
    group_epoch: int | None
    assignment_epoch: int | None
    is_simple: bool = False
    """It only commits offsets: its consumers assign partitions to themselves and never join."""


def everything(session: Session, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[Listing]:
    """Groups of every type, sorted by name."""
    found = []
    for node in session.nodes:
        answer = session.call(ListGroupsRequest(list(states), list(types)), node.id)
        check(answer.error_code)
        found += [
            Listing(
                group.group_id,
                group.group_type.capitalize() or "Classic",
                group.group_state or "Unknown",
                group.protocol_type,
            )
            for group in answer.groups
        ]
    # Brokers too old to filter send everything.
    found = [g for g in found if (not states or g.state in states) and (not types or g.type in types)]
    return sorted(found, key=lambda listing: listing.group)


def listings(session: Session, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[Listing]:
    """Groups of consumers, sorted by name. Share groups only where `types` names them: they commit no offsets."""
    # A group without a protocol type only commits offsets; other types are no consumers.
    return [
        group
        for group in everything(session, states, types)
        if group.protocol in ("", "consumer", "share") and group.type in (types or TYPES)
    ]


def describe(session: Session, group: str) -> Description:
    """Raises Refused (GROUP_ID_NOT_FOUND) for a group that is not there."""
    try:
        found = _describe_modern(session, group)
    except Refused as refused:
        if refused.code not in _NOT_ONE_OF_THESE:
            raise
        try:
            found = _describe_classic(session, group)
        except Refused as not_classic:
            if not_classic.code not in _NOT_ONE_OF_THESE:
                raise
            found = _describe_share(session, group, not_classic)
    return found


def _describe_share(session: Session, group: str, otherwise: Refused) -> Description:
    try:
        answer, coordinator = share_groups.described(session, group)
    except Refused as refused:
        if refused.code not in _NOT_ONE_OF_THESE:
            raise
        raise otherwise from None
    members = [
        Member(
            member_id=m.member_id,
            instance_id=None,
            client_id=m.client_id,
            host=m.client_host,
            assignment=_partitions((t.topic_name, t.partitions) for t in m.assignment.topic_partitions),
            target=None,
            epoch=m.member_epoch,
            upgraded=None,
        )
        for m in answer.members
    ]
    return Description(
        answer.group_id,
        share_groups.TYPE,
        answer.group_state,
        answer.assignor_name,
        coordinator,
        members,
        answer.group_epoch,
        answer.assignment_epoch,
    )


def _describe_modern(session: Session, group: str) -> Description:
    request = modern.ConsumerGroupDescribeRequest([group])
    answer = session.call_coordinator(GROUP, group, request, lambda a: a.groups[0].error_code).groups[0]
    check(answer.error_code, answer.error_message)
    return _modern(answer, session.coordinator(GROUP, group))


def _describe_classic(session: Session, group: str) -> Description:
    request = classic.DescribeGroupsRequest([group])
    answer = session.call_coordinator(GROUP, group, request, lambda a: a.groups[0].error_code).groups[0]
    check(answer.error_code, answer.error_message)
    if answer.group_state == "Dead":  # how brokers before 4.0 say that there is no such group
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group} not found.")
    return _classic(answer, session.coordinator(GROUP, group))


def delete(session: Session, group: str) -> None:
    """Delete a group without members. Raises a BrokerError when the cluster refuses."""
    futures = session.librdkafka.delete_consumer_groups([group], **session.limits.request)
    session.wait(futures[group], f"deleting group {group}")


def _modern(group: modern.DescribedGroup, coordinator: int) -> Description:
    members = [
        Member(
            member_id=m.member_id,
            instance_id=m.instance_id,
            client_id=m.client_id,
            host=m.client_host,
            assignment=_partitions((t.topic_name, t.partitions) for t in m.assignment.topic_partitions),
            target=_partitions((t.topic_name, t.partitions) for t in m.target_assignment.topic_partitions),
            epoch=m.member_epoch,
            upgraded=None if m.member_type < 0 else m.member_type == 1,
        )
        for m in group.members
    ]
    return Description(
        group.group_id,
        "Consumer",
        group.group_state,
        group.assignor_name,
        coordinator,
        members,
        group.group_epoch,
        group.assignment_epoch,
    )


def _classic(group: classic.DescribedGroup, coordinator: int) -> Description:
    members = [
        Member(
            member_id=m.member_id,
            instance_id=m.group_instance_id,
            client_id=m.client_id,
            host=m.client_host,
            assignment=_classic_assignment(bytes(m.member_assignment)),
            target=None,
            epoch=None,
            upgraded=None,
        )
        for m in group.members
    ]
    return Description(
        group.group_id,
        "Classic",
        group.group_state,
        group.protocol_data,
        coordinator,
        members,
        None,
        None,
        is_simple=not group.protocol_type,
    )


def _classic_assignment(data: bytes) -> list[Partition]:
    """The assignment is the clients' own affair, by convention in this format; what is not, shows as none."""
    if len(data) < 2:
        return []
    try:
        assignment, _ = decode(ConsumerProtocolAssignment, int.from_bytes(data[:2], "big"), data, 2)
    except WireError:
        return []
    return _partitions((t.topic, t.partitions) for t in assignment.assigned_partitions)


def _partitions(topics: Iterable[tuple[str, Sequence[int]]]) -> list[Partition]:
    return sorted((topic, partition) for topic, partitions in topics for partition in partitions)
