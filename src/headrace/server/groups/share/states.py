"""Where the share coordinator keeps state for a share group: asked for when members subscribe, moved and removed by administrators.

Each change is written down before the share coordinator is asked and after it has answered, so that another group coordinator
can go on with it.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import replace

from headrace.server.coordinator.write import Write
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.share.group import Partitions, ShareStates, union, without
from headrace.server.groups.state import GroupState


def begin(state: GroupState, group_id: str, partitions: Partitions) -> Write[GroupRecord, int]:
    """State for these is about to be made; replies with the epoch that it belongs to."""
    group = state.share_group(group_id)
    states = _of_existing_topics(state, group.states)
    begun = replace(
        states,
        initializing=union(states.initializing, partitions),
        names={**states.names, **_names(state, partitions)},
    )
    return Write([begun.to_record(group_id)], group.epoch)


def end(state: GroupState, group_id: str, made: Partitions) -> Write[GroupRecord, None]:
    """It is there: the partitions may be given to members."""
    group = state.share_groups.get(group_id)
    if group is None or not made:
        return Write((), None)
    states = group.states
    ended = replace(
        states,
        initializing=without(states.initializing, made),
        initialized=union(states.initialized, made),
        deleting=states.deleting - made.keys(),
        names={**states.names, **_names(state, made)},
    )
    return Write([ended.to_record(group_id), group.epoch_record(group.epoch + 1, group.metadata_hash)], None)


def begin_reset(state: GroupState, group_id: str, partitions: Partitions) -> Write[GroupRecord, int]:
    """An administrator moves the start: in a new epoch, so that writes under the old one are refused."""
    group = state.share_group(group_id)
    group.require_empty()
    epoch = group.epoch + 1
    begun = replace(
        group.states,
        initializing=union(group.states.initializing, partitions),
        names={**group.states.names, **_names(state, partitions)},
    )
    return Write([group.epoch_record(epoch, group.metadata_hash), begun.to_record(group_id)], epoch)


def begin_removal(
    state: GroupState, group_id: str, topics: Collection[uuid.UUID]
) -> Write[GroupRecord, Partitions]:
    """The state of these topics is about to be removed; replies with the partitions that have some, or may have since an earlier
    removal failed."""
    group = state.share_group(group_id)
    group.require_empty()
    known = union(group.states.known, _all_of(state, group.states.deleting))
    doomed = {topic: known[topic] for topic in topics if topic in known}
    begun = replace(
        group.states,
        initializing=without(group.states.initializing, doomed),
        initialized=without(group.states.initialized, doomed),
        deleting=group.states.deleting | doomed.keys(),
    )
    return Write([begun.to_record(group_id)] if doomed else [], doomed)


def end_removal(state: GroupState, group_id: str, topics: Collection[uuid.UUID]) -> Write[GroupRecord, None]:
    group = state.share_groups.get(group_id)
    if group is None:
        return Write((), None)
    ended = replace(group.states, deleting=group.states.deleting - set(topics))
    return Write([ended.to_record(group_id)], None)


def _of_existing_topics(state: GroupState, states: ShareStates) -> ShareStates:
    """The share coordinator forgets topics that are deleted by itself."""
    there = {topic for topic in states.names if state.topics.topic_name(topic) is not None}
    return ShareStates(
        _only(states.initializing, there),
        _only(states.initialized, there),
        states.deleting & there,
        {topic: name for topic, name in states.names.items() if topic in there},
    )


def _all_of(state: GroupState, topics: Collection[uuid.UUID]) -> Partitions:
    names = {topic: state.topics.topic_name(topic) for topic in topics}
    return {
        topic: frozenset(range(state.topics.partition_count(name)))
        for topic, name in names.items()
        if name is not None
    }


def _only(partitions: Partitions, topics: Collection[uuid.UUID]) -> Partitions:
    return {topic: indexes for topic, indexes in partitions.items() if topic in topics}


def _names(state: GroupState, partitions: Partitions) -> Mapping[uuid.UUID, str]:
    return {topic: state.topics.topic_name(topic) or "" for topic in partitions}
