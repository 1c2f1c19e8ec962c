"""The `uniform` assignor: loads as equal as subscriptions allow, moving as little as that takes.

Everybody keeps what they had, up to a fair share; free partitions go to the members with the fewest. Where members
differ in what they subscribe to, partitions then move from fuller to emptier subscribers of the same topic
until no move makes any two of them more equal.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Mapping, Sequence

from headrace.server.groups.assignors.spec import MemberSpec, Partitions

Loads = dict[str, dict[uuid.UUID, set[int]]]


def assign_uniform(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[uuid.UUID, int]
) -> dict[str, Partitions]:
    ordered = sorted(members)
    subscriptions = {member.topics for member in members.values()}
    if len(subscriptions) <= 1:
        assigned = _assign_alike(members, ordered, partition_counts)
    else:
        assigned = _assign_different(members, ordered, partition_counts)
    return {
        member_id: {topic_id: frozenset(partitions) for topic_id, partitions in topics.items() if partitions}
        for member_id, topics in assigned.items()
    }


def _keep_owned(
    members: Mapping[str, MemberSpec], ordered: Sequence[str], counts: Mapping[uuid.UUID, int]
) -> tuple[Loads, dict[uuid.UUID, set[int]]]:
    """What each member may keep of what it had, and the partitions nobody has."""
    free = {topic_id: set(range(count)) for topic_id, count in counts.items()}
    kept: Loads = {member_id: {} for member_id in ordered}
    for member_id in ordered:
        member = members[member_id]
        for topic_id, partitions in member.owned.items():
            if topic_id in member.topics and topic_id in free:
                mine = free[topic_id].intersection(partitions)
                if mine:
                    kept[member_id][topic_id] = mine
                    free[topic_id] -= mine
    return kept, free


def _assign_alike(
    members: Mapping[str, MemberSpec], ordered: Sequence[str], partition_counts: Mapping[uuid.UUID, int]
) -> Loads:
    """All subscribe to the same: everybody gets the average, and as many as it takes get one more."""
    if not ordered:
        return {}
    topics = members[ordered[0]].topics
    counts = {topic_id: count for topic_id, count in partition_counts.items() if topic_id in topics}
    kept, free = _keep_owned(members, ordered, counts)
    quota, extras = divmod(sum(counts.values()), len(ordered))
    # The members that had most may keep the extra one.
    for member_id in sorted(ordered, key=lambda m: -_load(kept[m])):
        allowed = quota
        if extras and _load(kept[member_id]) > quota:
            allowed, extras = quota + 1, extras - 1
        _shed(kept[member_id], free, allowed)
    pool = [(topic_id, partition) for topic_id in sorted(free) for partition in sorted(free[topic_id])]
    pool.reverse()
    for share in (quota, quota + 1):
        for member_id in ordered:
            room = share - _load(kept[member_id])
            while pool and room > 0 and (share == quota or extras > 0):
                topic_id, partition = pool.pop()
                kept[member_id].setdefault(topic_id, set()).add(partition)
                room -= 1
                if share > quota:
                    extras -= 1
    return kept


def _load(topics: Mapping[uuid.UUID, set[int]]) -> int:
    return sum(len(partitions) for partitions in topics.values())


def _shed(topics: dict[uuid.UUID, set[int]], free: dict[uuid.UUID, set[int]], allowed: int) -> None:
    """Give up what is beyond the allowed number, from the topics held most of."""
    excess = _load(topics) - allowed
    while excess > 0:
        topic_id = max(topics, key=lambda t: (len(topics[t]), t))
        partition = max(topics[topic_id])
        topics[topic_id].remove(partition)
        if not topics[topic_id]:
            del topics[topic_id]
        free[topic_id].add(partition)
        excess -= 1


def _assign_different(
    members: Mapping[str, MemberSpec], ordered: Sequence[str], partition_counts: Mapping[uuid.UUID, int]
) -> Loads:
    kept, free = _keep_owned(members, ordered, partition_counts)
    subscribers = {
        topic_id: [member_id for member_id in ordered if topic_id in members[member_id].topics]
        for topic_id in partition_counts
    }
    loads = {member_id: _load(kept[member_id]) for member_id in ordered}
    # Topics with the fewest takers first: what only few may have decides their load.
    topics = sorted(
        (topic_id for topic_id in partition_counts if subscribers[topic_id]),
        key=lambda t: (len(subscribers[t]), t),
    )
    for topic_id in topics:
        heap = [(loads[member_id], member_id) for member_id in subscribers[topic_id]]
        heapq.heapify(heap)
        for partition in sorted(free[topic_id]):
            _, member_id = heap[0]
            kept[member_id].setdefault(topic_id, set()).add(partition)
            loads[member_id] += 1
            heapq.heapreplace(heap, (loads[member_id], member_id))
    # Each move lowers the sum of squared loads, so this ends; the bound is for the sake of the loop.
    for _ in range(len(topics) + len(ordered)):
        if not sum(_even_out(topic_id, subscribers[topic_id], kept, loads) for topic_id in topics):
            break
    return kept


def _even_out(topic_id: uuid.UUID, subscribers: Sequence[str], kept: Loads, loads: dict[str, int]) -> int:
    """Move partitions of one topic from its fullest to its emptiest subscriber; returns how many."""
    moved = 0
    emptiest = [(loads[member_id], member_id) for member_id in subscribers]
    heapq.heapify(emptiest)
    fullest = [(-loads[member_id], member_id) for member_id in subscribers if kept[member_id].get(topic_id)]
    heapq.heapify(fullest)
    while fullest:
        load, giver = fullest[0]
        while emptiest[0][0] != loads[emptiest[0][1]]:
            heapq.heapreplace(emptiest, (loads[emptiest[0][1]], emptiest[0][1]))
        taker = emptiest[0][1]
        if -load - loads[taker] < 2:
            break
        partition = max(kept[giver][topic_id])
        kept[giver][topic_id].remove(partition)
        kept[taker].setdefault(topic_id, set()).add(partition)
        loads[giver] -= 1
        loads[taker] += 1
        moved += 1
        heapq.heapreplace(emptiest, (loads[taker], taker))
        if kept[giver][topic_id]:
            heapq.heapreplace(fullest, (-loads[giver], giver))
        else:
            heapq.heappop(fullest)
    return moved
