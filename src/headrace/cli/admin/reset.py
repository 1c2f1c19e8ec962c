"""Where to move a group's offsets: each scenario of Kafka's tool is a function from partitions to new offsets.

Nothing here changes anything; `group_offsets.commit` does, once the user has seen the plan.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from headrace.cli.admin import group_offsets, groups, offsets, topics
from headrace.cli.admin.offsets import Partition
from headrace.cli.cluster.connection import Cluster
from headrace.cli.failure import Failure, Misuse
from headrace.cli.raw.refused import RequestRefused
from headrace.wire.errors import ErrorCode

Plan = dict[Partition, int]
Warn = Callable[[str], None]


def check_inactive(cluster: Cluster, group: str) -> bool:
    """Offsets belong to the members while there are any. Whether there is such a group."""
    try:
        state = groups.describe(cluster, group).state
    except RequestRefused as refused:
        if refused.error == ErrorCode.GROUP_ID_NOT_FOUND:
            return False
        raise
    if state not in ("Empty", "Dead"):
        raise Failure(
            f"Assignments can only be reset if the group '{group}' is inactive, but the current state is {state}; "
            "stop its members first."
        )
    return True


def scope(cluster: Cluster, group: str, wanted: Sequence[str], all_topics: bool) -> list[Partition]:
    """The partitions meant by `topic` or `topic:0,1`, or all that the group has committed."""
    if all_topics:
        return sorted(group_offsets.committed(cluster, group))
    return parse_partitions(cluster, wanted)


def parse_partitions(cluster: Cluster, wanted: Sequence[str]) -> list[Partition]:
    chosen: list[Partition] = []
    for text in wanted:
        topic, colon, numbers = text.partition(":")
        there = [p.id for p in topics.describe(cluster, [topic])[0].partitions]
        if not colon:
            chosen += [(topic, number) for number in there]
            continue
        for number in numbers.split(","):
            if not number.isdigit():
                raise Misuse(f"Invalid partition '{number}' specified in topic arg '{text}'.")
            if int(number) not in there:
                raise Failure(f"Topic '{topic}' has no partition {number}; it has 0 to {there[-1]}.")
            chosen.append((topic, int(number)))
    return chosen


def to_earliest(cluster: Cluster, partitions: Sequence[Partition]) -> Plan:
    return offsets.earliest(cluster, partitions)


def to_latest(cluster: Cluster, partitions: Sequence[Partition]) -> Plan:
    return offsets.latest(cluster, partitions)


def to_offset(cluster: Cluster, partitions: Sequence[Partition], offset: int, warn: Warn) -> Plan:
    return within_range(cluster, dict.fromkeys(partitions, offset), warn)


def shift_by(cluster: Cluster, group: str, partitions: Sequence[Partition], shift: int, warn: Warn) -> Plan:
    current = group_offsets.committed(cluster, group)
    for topic, partition in partitions:
        if (topic, partition) not in current:
            raise Failure(
                f"Cannot shift offset for partition {topic}-{partition} since there is no current committed offset."
            )
    return within_range(cluster, {p: current[p].offset + shift for p in partitions}, warn)


def to_current(cluster: Cluster, group: str, partitions: Sequence[Partition]) -> Plan:
    """What is committed; where nothing is, the end."""
    current = group_offsets.committed(cluster, group)
    ends = offsets.latest(cluster, [p for p in partitions if p not in current])
    return {p: current[p].offset if p in current else ends[p] for p in partitions}


def to_time(cluster: Cluster, partitions: Sequence[Partition], timestamp: int, warn: Warn) -> Plan:
    """The first record at or after a time in milliseconds; where there is none, the end."""
    found = offsets.at_time(cluster, partitions, timestamp)
    ends = offsets.latest(cluster, [p for p in partitions if found[p] is None])
    plan: Plan = {}
    for p in partitions:
        offset = found[p]
        if offset is None:
            warn(
                f"Partition {p[1]} from topic {p[0]} has no record that young. Falling back to latest known offset."
            )
        plan[p] = ends[p] if offset is None else offset
    return plan


def from_file(cluster: Cluster, path: Path, chosen_groups: Sequence[str], warn: Warn) -> dict[str, Plan]:
    """Plans by group, from lines `topic,partition,offset` (for one group) or `group,topic,partition,offset`."""
    try:
        text = path.read_text()
    except OSError as error:
        raise Failure(f"Cannot read {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise Failure(f"{path} is no CSV file: it holds binary data.") from None
    plans: dict[str, Plan] = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), 1):
        if not row:
            continue
        fields = [field.strip() for field in row]
        if len(fields) == 3 and len(chosen_groups) == 1:
            fields.insert(0, chosen_groups[0])
        try:
            group, topic, partition, offset = fields
            plans.setdefault(group, {})[topic, int(partition)] = int(offset)
        except ValueError:
            raise Failure(
                f"Line {number} of {path} is not 'topic,partition,offset' or 'group,topic,partition,offset'."
            ) from None
    return {
        group: within_range(cluster, plan, warn) for group, plan in plans.items() if group in chosen_groups
    }


def to_csv(plans: Mapping[str, Plan]) -> str:
    """What `from_file` reads; with the group only when there are several."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for group, plan in plans.items():
        for (topic, partition), offset in plan.items():
            writer.writerow([*([group] if len(plans) > 1 else []), topic, partition, offset])
    return out.getvalue()


def within_range(cluster: Cluster, plan: Plan, warn: Warn) -> Plan:
    """Offsets outside of what a partition holds are moved to its nearer end."""
    first, end = offsets.earliest(cluster, list(plan)), offsets.latest(cluster, list(plan))
    kept: Plan = {}
    for p, offset in plan.items():
        kept[p] = min(max(offset, first[p]), end[p])
        if kept[p] != offset:
            side = "higher than latest" if offset > end[p] else "lower than earliest"
            warn(
                f"New offset ({offset}) is {side} offset for topic partition {p[0]}-{p[1]}. Value will be set to {kept[p]}."
            )
    return kept
