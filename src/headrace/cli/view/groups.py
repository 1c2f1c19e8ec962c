"""How a consumer group looks: as a value for JSON, as a headline and as rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.cli.parsing import times

if TYPE_CHECKING:
    from headrace.client.administration.groups import Description
    from headrace.client.lag import GroupLag, PartitionLag

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


def look(description: Description, lag: GroupLag) -> Look:
    """A group as it is now: its state, and every partition with how far behind it is and which way it goes.

    Members with most partitions first, partitions that nobody reads last.
    """
    committed = [row for row in lag.partitions if row.committed is not None]
    known = [row.seconds for row in committed if row.seconds is not None]
    rows = sorted(lag.partitions, key=_by_member)
    return {
        "group": description.group,
        "type": description.type,
        "state": description.state,
        "assignor": description.assignor,
        "coordinator": description.coordinator,
        "members": len(description.members),
        "lag": sum(row.records for row in committed) if committed else None,
        "lag_seconds": max(known, default=None),
        **_forecast(lag),
        "partitions": [_partition(row) for row in rows]
        + [
            {**_NOTHING, "topic": each.topic, "partition": each.partition, "lag_state": "unknown"}
            for each in lag.unreadable
        ],
    }


_NOTHING = dict.fromkeys(
    (
        "topic",
        "partition",
        "committed",
        "end",
        "lag",
        "lag_seconds",
        "lag_state",
        "trend",
        "rate_in",
        "rate_out",
        "seconds_to_catch_up",
        "seconds_until_loss",
        "member_id",
        "host",
        "client_id",
    )
)


def _by_member(row: PartitionLag) -> tuple[object, ...]:
    member = row.member
    place = (0, -len(member.assignment), member.member_id) if member else (1, 0, "")
    return (*place, row.partition)


def _forecast(lag: PartitionLag | GroupLag) -> Look:
    figures = lag.as_json()
    names = ("trend", "rate_in", "rate_out", "seconds_to_catch_up", "seconds_until_loss")
    return {"lag_state": figures["state"], **{name: figures[name] for name in names}}


def _partition(row: PartitionLag) -> Look:
    known = row.committed is not None
    return {
        "topic": row.partition.topic,
        "partition": row.partition.partition,
        "committed": row.committed,
        "end": row.end,
        "lag": row.records if known else None,
        "lag_seconds": round(row.seconds, 3) if known and row.seconds is not None else None,
        **_forecast(row),
        "member_id": row.member.member_id if row.member else None,
        "host": row.member.host if row.member else None,
        "client_id": row.member.client_id if row.member else None,
    }


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
