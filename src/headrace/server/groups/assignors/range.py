"""The `range` assignor: of each topic every subscriber gets one run of neighbouring partitions.

Topics with as many partitions and the same subscribers are cut in the same places, so what is keyed alike in
both lands on one member. Static members are ordered by instance id, so a restart moves nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from headrace.server.groups.assignors.spec import MemberSpec, Partitions


def assign_range(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[uuid.UUID, int]
) -> dict[str, Partitions]:
    assigned: dict[str, dict[uuid.UUID, frozenset[int]]] = {member_id: {} for member_id in members}
    # Static members first, among themselves by instance id, then the others by member id.
    ordered = sorted(members, key=lambda m: (members[m].instance_id is None, members[m].instance_id or m))
    for topic_id, count in partition_counts.items():
        subscribers = [member_id for member_id in ordered if topic_id in members[member_id].topics]
        if not subscribers:
            continue
        each, extra = divmod(count, len(subscribers))
        start = 0
        for index, member_id in enumerate(subscribers):
            end = start + each + (index < extra)
            if end > start:
                assigned[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return {**assigned}
