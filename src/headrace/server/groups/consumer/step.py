"""One step of one member, however it arrived: subscription, group epoch, target assignment, reconciliation.

The step reads the group and adds records; nothing changes before they are in the log. Everything is worked
out for the group as it will be, with the member's new subscription and without the one it replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.server.groups.consumer import regex, sessions
from headrace.server.groups.consumer.group import ConsumerGroup, ResolvedRegex
from headrace.server.groups.consumer.member import NO_PARTITIONS, ConsumerMember
from headrace.server.groups.consumer.reconciliation import Owned, reconcile
from headrace.server.groups.consumer.target import compute_target
from headrace.server.groups.messages.consumer import ConsumerGroupPartitionMetadataKey
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.state import GroupState
from headrace.server.groups.topics import Topics, metadata_hash


def step(
    state: GroupState,
    group: ConsumerGroup,
    before: ConsumerMember,
    member: ConsumerMember,
    owned: Owned,
    replaced: str | None,
    may_describe: Callable[[str], bool],
    records: list[GroupRecord],
) -> ConsumerMember:
    """The member after the step. `before` is how the group knows it, `replaced` the id it had."""
    topics = state.topics
    now = state.clock.now_ms()
    subscription_changed = (
        before.subscribed_topic_names != member.subscribed_topic_names
        or before.subscribed_topic_regex != member.subscribed_topic_regex
    )
    if member != before:
        records.append(member.subscription_record(group.group_id))
    epoch = group.epoch
    target = group.target.get(replaced or member.member_id, NO_PARTITIONS)
    target_epoch = group.assignment_epoch
    if epoch == 0 or subscription_changed or _is_due(state, group):
        members = {key: each for key, each in group.members.items() if key != replaced}
        members[member.member_id] = member
        regexes = _resolve(group, members, topics, now, may_describe, records)
        subscriptions = {key: _topics_of(each, regexes) for key, each in members.items()}
        subscribed = frozenset().union(*subscriptions.values())
        new_hash = metadata_hash(topics, subscribed)
        matched = {key: each.topics for key, each in regexes.items()}
        rematched = matched != {key: each.topics for key, each in group.regexes.items()}
        if epoch == 0 or subscription_changed or rematched or new_hash != group.metadata_hash:
            epoch += 1
            records.append(group.epoch_record(epoch, new_hash))
        if group.has_partition_metadata:
            records.append(GroupRecord(ConsumerGroupPartitionMetadataKey(group.group_id), None))
    else:
        members, subscriptions = group.members, {}
    if epoch > group.assignment_epoch:
        if not subscriptions:
            members = {key: each for key, each in group.members.items() if key != replaced}
            members[member.member_id] = member
            subscriptions = {key: group.topics_of(each) for key, each in members.items()}
        assignor = group.preferred_assignor(members.values(), state.config.consumer_assignors[0])
        inherited = {} if replaced is None else {member.member_id: replaced}
        targets, changes = compute_target(group, members, subscriptions, epoch, topics, assignor, inherited)
        records += changes
        target, target_epoch = targets[member.member_id], epoch
    reconciled = member
    if not member.is_reconciled_to(target_epoch):
        reconciled = reconcile(member, target_epoch, target, group.is_owned, owned)
    if reconciled != member:
        records.append(reconciled.assignment_record(group.group_id))
        sessions.expect_revocation(state, group.group_id, reconciled)
    return reconciled


def when_stored(state: GroupState, group: ConsumerGroup) -> Callable[[], None]:
    """To be called when a step is stored: the group then agrees with the cluster as the step has seen it, and need not be
    compared again before that changes. It may have changed meanwhile."""
    if not _is_due(state, group):
        return lambda: None
    seen, now = state.topics.version, state.clock.now_ms()

    def mark_checked() -> None:
        stored = state.groups.get(group.group_id)
        if isinstance(stored, ConsumerGroup):
            stored.checked_version = seen
            stored.regexes_checked_ms = now

    return mark_checked


def _is_due(state: GroupState, group: ConsumerGroup) -> bool:
    """Whether the group must be compared with the cluster: topics came or went, or its patterns were matched so long ago
    that what their members may see can have changed."""
    if group.checked_version != state.topics.version:
        return True
    next_check = group.regexes_checked_ms + state.config.regex_refresh_interval_ms
    return bool(group.regexes) and state.clock.now_ms() >= next_check


def _topics_of(member: ConsumerMember, regexes: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    resolved = regexes.get(member.subscribed_topic_regex)
    if resolved is None:
        return member.subscribed_topic_names
    return member.subscribed_topic_names | resolved.topics


def _resolve(
    group: ConsumerGroup,
    members: Mapping[str, ConsumerMember],
    topics: Topics,
    now: int,
    may_describe: Callable[[str], bool],
    records: list[GroupRecord],
) -> dict[str, ResolvedRegex]:
    """Every pattern in use, matched against the topics that there are now."""
    in_use = {each.subscribed_topic_regex for each in members.values() if each.subscribed_topic_regex}
    resolved: dict[str, ResolvedRegex] = {}
    for pattern in sorted(in_use):
        old = group.regexes.get(pattern)
        matched = regex.resolve(pattern, topics, may_describe)
        if old is not None and old.topics == matched:
            resolved[pattern] = old
        else:
            resolved[pattern] = ResolvedRegex(matched, topics.version, now)
            records.append(group.regex_record(pattern, resolved[pattern]))
    records += [group.regex_tombstone(pattern) for pattern in sorted(group.regexes) if pattern not in in_use]
    return resolved
