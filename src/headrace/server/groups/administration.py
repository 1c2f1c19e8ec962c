"""What administrators ask of groups: listing them, describing their members, deleting them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from headrace.server.coordinator.write import Write
from headrace.server.groups.classic.group import ClassicGroup, ClassicState
from headrace.server.groups.consumer.group import ConsumerGroup
from headrace.server.groups.offsets.delete import all_offset_tombstones
from headrace.server.groups.records import GroupRecord
from headrace.server.groups.state import Group, GroupState
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.delete_groups import DeletableGroupResult
from headrace.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from headrace.wire.messages.list_groups import ListedGroup

if TYPE_CHECKING:
    from headrace.server.groups.share.group import ShareGroup

FIRST_VERSION_WITH_NOT_FOUND = 6


def list_groups(state: GroupState, states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
    """Filters are compared without regard to case; an empty one lets everything through."""
    wanted_states = {each.lower() for each in states}
    wanted_types = {each.lower() for each in types}
    listed = []
    for group in (*state.groups.values(), *state.share_groups.values()):
        name, kind = state_name(group), _kind(group)
        if (not wanted_states or name.lower() in wanted_states) and (
            not wanted_types or kind.lower() in wanted_types
        ):
            protocol = (group.protocol_type or "") if isinstance(group, ClassicGroup) else kind.lower()
            listed.append(ListedGroup(group.group_id, protocol, name, kind))
    return listed


def state_name(group: Group | ShareGroup) -> str:
    return group.state.value if isinstance(group, ClassicGroup) else group.state_name


def _kind(group: Group | ShareGroup) -> str:
    if isinstance(group, ClassicGroup):
        return "Classic"
    return "Consumer" if isinstance(group, ConsumerGroup) else "Share"


def describe_classic(state: GroupState, group_id: str, version: int) -> DescribedGroup:
    """A group that does not exist is Dead; newer versions also get an error."""
    group = state.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        described = DescribedGroup(group_id=group_id, group_state="Dead")
        if version >= FIRST_VERSION_WITH_NOT_FOUND:
            described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            what = "does not exist" if group is None else "is not a classic group"
            described.error_message = f"Group {group_id} {what}."
        return described
    stable = group.state is ClassicState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[
            DescribedGroupMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.metadata(group.protocol) if stable else b"",
                member.assignment if stable else b"",
            )
            for member in group.members.values()
        ],
    )


def delete_group(state: GroupState, group_id: str) -> Write[GroupRecord, DeletableGroupResult]:
    """Delete the group with all its offsets, if it has no members."""
    group = state.group(group_id)
    group.validate_delete()
    records = [*all_offset_tombstones(state, group_id), *group.tombstones()]
    return Write(records, DeletableGroupResult(group_id))
