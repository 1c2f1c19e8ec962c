"""The target assignment: what every member of a consumer group is to end up with."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping

from headrace.server.groups.assignors import ASSIGNORS
from headrace.server.groups.assignors.spec import MemberSpec
from headrace.server.groups.consumer.group import ConsumerGroup
from headrace.server.groups.consumer.member import NO_PARTITIONS, Assignment, ConsumerMember
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.topics import Topics

logger = logging.getLogger(__name__)


def compute_target(
    group: ConsumerGroup,
    members: Mapping[str, ConsumerMember],
    subscriptions: Mapping[str, frozenset[str]],
    epoch: int,
    topics: Topics,
    assignor: str,
    inherited: Mapping[str, str],
) -> tuple[dict[str, Assignment], list[GroupRecord]]:
    """The target for `epoch`, and records for the members whose target changes.

    `members` and `subscriptions` are as they will be once this heartbeat is applied; `inherited` says whose
    target a static member that came back under a new id takes over.
    """
    ids: dict[str, uuid.UUID] = {}
    counts: dict[uuid.UUID, int] = {}
    for name in sorted(frozenset().union(*subscriptions.values())):
        topic_id = topics.topic_id(name)
        if topic_id is not None:
            ids[name] = topic_id
            counts[topic_id] = topics.partition_count(name)
    specs = {
        member_id: MemberSpec(
            member.instance_id,
            frozenset(ids[name] for name in subscriptions[member_id] if name in ids),
            group.target.get(inherited.get(member_id, member_id), NO_PARTITIONS),
        )
        for member_id, member in members.items()
    }
    target: dict[str, Assignment] = {**ASSIGNORS[assignor](specs, counts)}
    records = [
        group.target_record(member_id, assignment)
        for member_id, assignment in target.items()
        if member_id in inherited or group.target.get(member_id) != assignment
    ]
    records.append(group.target_epoch_record(epoch))
    logger.info("Group %s has a new target assignment for epoch %d (%s).", group.group_id, epoch, assignor)
    return target, records
