"""How a consumer group looks: as a value for JSON, as a headline and as rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cli.parsing import times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.client.administration.groups import Description
    from headrace.client.administration.lag import PartitionLag

Look = dict[str, Any]
LAG_HEADER = ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "BEHIND", "MEMBER", "HOST", "CLIENT")


def lag_rows(look: Look) -> list[tuple[object, ...]]:
    return [
        (
            row["topic"],
            row["partition"],
            row["committed"],
            row["end"],
            row["lag"],
            times.show_seconds(row["lag_seconds"]),
            row["member_id"],
            row["host"],
            row["client_id"],
        )
        for row in look["partitions"]
    ]


def headline(look: Look) -> str:
    parts = [look["state"], count(look["members"], "member")]
    if look["assignor"]:
        parts.append(f"assignor {look['assignor']}")
    parts.append(f"coordinator {look['coordinator']}")
    behind = times.show_seconds(look["lag_seconds"])
    if look["lag"] is None:
        parts.append("nothing committed")
    else:
        parts.append(
            f"lag {count(look['lag'], 'record')}" + (f", {behind}" if behind and look["lag"] else "")
        )
    return f"Group {look['group']}: {', '.join(parts)}"


def assignment_text(assignment: list[tuple[str, int]]) -> str | None:
    """orders:0,1;payments:3"""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in assignment:
        by_topic.setdefault(topic, []).append(partition)
    return ";".join(f"{t}:{','.join(map(str, sorted(ps)))}" for t, ps in sorted(by_topic.items())) or None


def look(description: Description, rows: Sequence[PartitionLag]) -> Look:
    """A group as it is now: its state, and every partition with how far behind it is."""
    from headrace.client.administration import lag

    return {
        "group": description.group,
        "type": description.type,
        "state": description.state,
        "assignor": description.assignor,
        "coordinator": description.coordinator,
        "members": len(description.members),
        "lag": lag.total(rows),
        "lag_seconds": max((row.seconds for row in rows if row.seconds is not None), default=None),
        "partitions": [
            {
                "topic": row.topic,
                "partition": row.partition,
                "committed": row.committed,
                "end": row.end,
                "lag": row.lag,
                "lag_seconds": None if row.seconds is None else round(row.seconds, 3),
                "member_id": row.member.member_id if row.member else None,
                "host": row.member.host if row.member else None,
                "client_id": row.member.client_id if row.member else None,
            }
            for row in rows
        ],
    }


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
