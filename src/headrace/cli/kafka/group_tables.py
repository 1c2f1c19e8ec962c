"""The tables of kafka-consumer-groups.sh, column by column as Kafka's tool lays them out."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.cli.view.groups import assignment_text

if TYPE_CHECKING:
    from headrace.client.administration.groups import Description, Listing
    from headrace.client.administration.lag import PartitionLag
    from headrace.client.administration.names import Partition
    from headrace.client.administration.reset import Plan
    from headrace.client.administration.share_groups import ShareOffset

MISSING = "-"
_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


def listings(found: Sequence[Listing], *, types: bool, states: bool) -> None:
    width = max([15, *(len(listing.group) for listing in found)]) + 10

    def line(group: str, kind: str, state: str) -> str:
        return f"{group:<{width}}" + (f" {kind:<20}" if types else "") + (f" {state:<20}" if states else "")

    print(line("GROUP", "TYPE", "STATE"))
    for listing in found:
        print(line(listing.group, listing.type, listing.state))


def offsets(description: Description, rows: Sequence[PartitionLag], *, verbose: bool) -> None:
    if not _worth_showing(description, len(rows)):
        return
    cells = [
        (
            description.group,
            row.topic,
            str(row.partition),
            *((_text(row.leader_epoch),) if verbose else ()),
            _text(row.committed),
            _text(row.end),
            _text(row.lag),
            row.member.member_id if row.member else MISSING,
            row.member.host if row.member else MISSING,
            row.member.client_id if row.member else MISSING,
        )
        for row in rows
    ]
    epoch = ("LEADER-EPOCH",) if verbose else ()
    header = (
        "GROUP",
        "TOPIC",
        "PARTITION",
        *epoch,
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
    )
    widths = [15, 15, 10, *([15] if verbose else []), 15, 15, 15, 15, 15, 0]
    for column in (0, 1, -3, -2):  # Kafka widens these to their longest value, and no other
        widths[column] = max(widths[column], *(len(row[column]) for row in cells))
    for row in [(*header, "CLIENT-ID"), *cells]:
        print("\n" + _pad(row, widths), end="")
    print()


def members(description: Description, *, verbose: bool) -> None:
    shown = description.members if _worth_showing(description, len(description.members)) else []
    static = any(m.instance_id for m in shown)
    both_kinds = {m.upgraded for m in shown} >= {True, False}
    header = [
        "GROUP",
        "CONSUMER-ID",
        *(["GROUP-INSTANCE-ID"] if static else []),
        "HOST",
        "CLIENT-ID",
        "#PARTITIONS",
    ]
    if verbose:
        header += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        header += ["UPGRADED"] if both_kinds else []
    rows = []
    for m in shown:
        row = [
            description.group,
            m.member_id,
            *([m.instance_id or ""] if static else []),
            m.host,
            m.client_id,
        ]
        row.append(str(len(m.assignment)))
        if verbose:
            row += [
                _text(m.epoch),
                assignment_text(m.assignment) or MISSING,
                _text(description.assignment_epoch),
                assignment_text(m.target or []) or MISSING,
            ]
            row += [_text(m.upgraded).lower()] if both_kinds else []
        rows.append(row)
    least = {"GROUP-INSTANCE-ID": 17, "CURRENT-ASSIGNMENT": 20, "TARGET-ASSIGNMENT": 20}
    fixed = ("#PARTITIONS", "CURRENT-EPOCH", "TARGET-EPOCH")
    widths = [
        15 if name in fixed else max([least.get(name, 15), *(len(row[i]) for row in rows)])
        for i, name in enumerate(header)
    ]
    # Without the assignment columns, Kafka's lines end with the space that would come before them.
    end = "" if verbose else " "
    print()
    for row in [header, *rows]:
        print(_pad(row, widths) + end)


def state(description: Description, nodes: Sequence[Any], *, verbose: bool) -> None:
    if not _worth_showing(description, 1):
        return
    node = next((node for node in nodes if node.id == description.coordinator), None)
    coordinator = (
        f"{node.host}:{node.port}  ({node.id})" if node is not None else f"({description.coordinator})"
    )
    header = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    row = [description.group, coordinator, description.assignor or MISSING, description.state]
    widths = [max(15, len(description.group)), max(25, len(coordinator)), 20, 20]
    if verbose:
        header += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        row += [_text(description.group_epoch), _text(description.assignment_epoch)]
        widths += [15, 25]
    print("\n" + _pad([*header, "#MEMBERS"], [*widths, 0]))
    print(_pad([*row, str(len(description.members))], [*widths, 0]))


def share_offsets(group: str, places: Mapping[Partition, ShareOffset], *, verbose: bool) -> None:
    epoch = ("LEADER-EPOCH",) if verbose else ()
    header = ("GROUP", "TOPIC", "PARTITION", *epoch, "START-OFFSET", "LAG")
    cells = [
        (
            group,
            topic,
            str(index),
            *((str(place.leader_epoch),) if verbose else ()),
            _text(place.start),
            _text(place.lag),
        )
        for (topic, index), place in sorted(places.items())
    ]
    _columns(header, cells)


def share_members(description: Description, *, verbose: bool) -> None:
    if not _worth_showing(description, len(description.members)):
        return
    epoch = ("MEMBER-EPOCH",) if verbose else ()
    header = ("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", *epoch, "ASSIGNMENT")
    cells = [
        (
            description.group,
            member.member_id,
            member.host,
            member.client_id,
            str(len(member.assignment)),
            *((_text(member.epoch),) if verbose else ()),
            assignment_text(member.assignment) or MISSING,
        )
        for member in description.members
    ]
    _columns(header, cells)


def share_state(description: Description, nodes: Sequence[Any], *, verbose: bool) -> None:
    node = next((node for node in nodes if node.id == description.coordinator), None)
    coordinator = (
        f"{node.host}:{node.port}  ({node.id})" if node is not None else f"({description.coordinator})"
    )
    epochs = ("GROUP-EPOCH", "ASSIGNMENT-EPOCH") if verbose else ()
    header = ("GROUP", "COORDINATOR (ID)", "STATE", *epochs, "#MEMBERS")
    known = (_text(description.group_epoch), _text(description.assignment_epoch)) if verbose else ()
    _columns(
        header,
        [(description.group, coordinator, description.state, *known, str(len(description.members)))],
    )


def _columns(header: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """Each as wide as its longest value."""
    widths = [max(15, *(len(row[i]) for row in [header, *cells])) for i in range(len(header))]
    print()
    for row in [header, *cells]:
        print(_pad(row, widths).rstrip())


def plans(by_group: Mapping[str, Plan]) -> None:
    widths = (30, 30, 10, 15)
    if by_group:
        print("\n" + _pad(("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), widths), end="")
    for group, plan in by_group.items():
        for (topic, partition), offset in plan.items():
            print("\n" + _pad((group, topic, str(partition), str(offset)), widths), end="")
    print()


def deleted_offsets(group: str, error: int, by_partition: Mapping[Partition, int]) -> None:
    from headrace.client.administration.errors import Refused

    if error:
        print(f"\nError: {Refused(error)}")
    elif any(by_partition.values()):
        print("\nError: Encountered some partition-level error, see the follow-up details.")
    else:
        print(f"Request succeeded for deleting offsets from group {group}.")
    widths = (max([15, *(len(topic) for topic, _ in by_partition)]), 10, 15)
    print("\n" + _pad(("TOPIC", "PARTITION", "STATUS"), widths), end="")
    for (topic, partition), code in sorted(by_partition.items()):
        status = f"Error: {Refused(code)}" if code else "Successful"
        print("\n" + _pad((topic, str(partition), status), widths), end="")
    print()


def _worth_showing(description: Description, rows: int) -> bool:
    """Says what is special about the group's state, on stderr as Kafka's tool does."""
    if description.state == "Empty":
        print(f"\nConsumer group '{description.group}' has no active members.", file=sys.stderr)
    elif description.state in _REBALANCING:
        print(f"\nWarning: Consumer group '{description.group}' is rebalancing.", file=sys.stderr)
    return rows > 0


def _pad(values: Sequence[str], widths: Sequence[int]) -> str:
    return " ".join(value.ljust(width) for value, width in zip(values, widths, strict=True))


def _text(value: object) -> str:
    return MISSING if value is None else str(value)
