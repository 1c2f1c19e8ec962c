"""Mirror links as text and as JSON."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from headrace.cli.parsing.mirror_maker import Flow
from headrace.cli.view import output
from headrace.client.administration.mirrors import MirrorEnd, MirrorLink, MirrorPosition, MirrorTopic

SUMMARY_HEADER = ("LINK", "SOURCE", "STATE", "TOPICS", "PARTITIONS", "LAG", "BYTES", "SECONDS", "PROBLEMS")
_TOPIC_HEADER = ("TOPIC", "STATE", "PARTITIONS", "LAG", "BYTES", "SECONDS", "MISSED")
_PARTITION_HEADER = ("TOPIC", "PARTITION", "END", "SOURCE END", "LAG", "BYTES", "SECONDS", "MISSED", "PHASE")
_END_HEADER = ("TOPIC", "PARTITION", "LAST OFFSET", "LOST RECORDS", "LOST SECONDS", "COMPLETE UNTIL")


def _total(positions: list[MirrorPosition]) -> tuple[int | None, str | None, float | None]:
    """Lag in records, bytes and seconds; None for what is not known of every partition."""
    if not positions:
        return None, None, None
    records = [each.lag_records for each in positions]
    sizes = [each.lag_bytes for each in positions]
    seconds = [each.lag_seconds for each in positions]
    return (
        sum(records) if min(records) >= 0 else None,
        output.size(sum(sizes)) if min(sizes) >= 0 else None,
        round(max(seconds), 1) if min(seconds) >= 0 else None,
    )


def problems(link: MirrorLink) -> list[str]:
    """What is wrong, as sentences, each once."""
    found = [*link.trouble]
    found += [f"{topic}: {why}" for topic, why in sorted(link.obstacles.items())]
    found += [f"{topic.name}: {topic.reason}" for topic in link.topics if topic.reason]
    found += [
        f"{topic.name}-{position.partition}: {position.trouble}"
        for topic, position in link.positions
        if position.trouble and not topic.reason
    ]
    found += [
        f"{topic.name}: {topic.partition_count - len(topic.positions)} partitions have no leader in this cluster."
        for topic in link.topics
        if topic.state == "mirroring" and len(topic.positions) < topic.partition_count
    ]
    return list(dict.fromkeys(found))


def summary_row(link: MirrorLink) -> list[object]:
    positions = [position for _, position in link.positions]
    partitions = sum(topic.partition_count for topic in link.topics)
    wrong = len(problems(link))
    return [
        link.name,
        link.source,
        link.state,
        len(link.topics),
        partitions,
        *_total(positions),
        wrong or None,
    ]


def summary_document(link: MirrorLink) -> dict[str, Any]:
    whole = document(link)
    return {name: whole[name] for name in ("name", "source", "state", "lag", "problems")} | {
        "topics": len(link.topics)
    }


def document(link: MirrorLink) -> dict[str, Any]:
    positions = [position for _, position in link.positions]

    def known(values: list[float]) -> list[float]:
        return values if values and min(values) >= 0 else []

    records = known([each.lag_records for each in positions])
    sizes = known([each.lag_bytes for each in positions])
    seconds = known([each.lag_seconds for each in positions])
    return {
        "name": link.name,
        "source": link.source,
        "state": link.state,
        "patterns": link.patterns,
        "groups": link.groups,
        "throttle": link.throttle,
        "adopts": link.adopts,
        "settings": link.settings,
        "lag": {
            "records": sum(records) if records else None,
            "bytes": sum(sizes) if sizes else None,
            "seconds": max(seconds) if seconds else None,
        },
        "problems": problems(link),
        "group_offsets": link.group_offsets,
        "topics": [topic_document(topic) for topic in link.topics],
    }


def topic_document(topic: MirrorTopic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "state": topic.state,
        "reason": topic.reason,
        "partition_count": topic.partition_count,
        "partitions": [asdict(position) for position in topic.positions],
        "ends": [
            {
                **asdict(end),
                "last_offset": end.last_offset,
                "lost_records": end.lost_records,
                "lost_seconds": end.lost_seconds,
            }
            for end in topic.ends
        ],
    }


def show(link: MirrorLink, partitions: bool) -> None:
    print(f"{link.name}: {link.state}, from {link.source}")
    print(f"Topics: {', '.join(link.patterns)}   Groups: {', '.join(link.groups) or output.MISSING}")
    if link.throttle:
        print(f"Throttle: {output.size(link.throttle)} a second for each broker")
    for sentence in problems(link):
        print(f"! {sentence}")
    if not link.topics:
        print("No topic of the source has been found yet.")
        return
    print()
    if partitions:
        output.table(
            _PARTITION_HEADER, [_partition_row(topic, position) for topic, position in link.positions]
        )
    else:
        output.table(_TOPIC_HEADER, [_topic_row(topic) for topic in link.topics])
    failed_over = [topic for topic in link.topics if topic.ends]
    if failed_over:
        print()
        show_ends(failed_over)
    if link.group_offsets:
        print()
        output.table(("GROUP", "OFFSETS AS AT THE SOURCE"), sorted(link.group_offsets.items()))


def _topic_row(topic: MirrorTopic) -> list[object]:
    missed = sum(position.missed_records for position in topic.positions)
    return [topic.name, topic.state, topic.partition_count, *_total(topic.positions), missed]


def _partition_row(topic: MirrorTopic, position: MirrorPosition) -> list[object]:
    source_end = position.source_end_offset if position.source_end_offset >= 0 else None
    return [
        topic.name,
        position.partition,
        position.end_offset,
        source_end,
        *_total([position]),
        position.missed_records,
        position.phase,
    ]


def show_ends(topics: list[MirrorTopic]) -> None:
    """Where failed-over partitions ended, and what was lost."""
    output.table(_END_HEADER, [_end_row(topic, end) for topic in topics for end in topic.ends])
    unknown = any(end.lost_records is None for topic in topics for end in topic.ends)
    lost = sum(end.lost_records or 0 for topic in topics for end in topic.ends)
    sentence = (
        f"{output.count(lost, 'record')} of the source {'is' if lost == 1 else 'are'} known to be missing."
    )
    print(f"{sentence} Of some partitions nothing was known." if unknown else sentence)


def _end_row(topic: MirrorTopic, end: MirrorEnd) -> list[object]:
    until = None
    if end.complete_until_ms >= 0:
        moment = datetime.fromtimestamp(end.complete_until_ms / 1000, UTC)
        until = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    seconds = end.lost_seconds
    last = end.last_offset if end.last_offset >= 0 else None
    return [
        topic.name,
        end.partition,
        last,
        end.lost_records,
        None if seconds is None else round(seconds, 1),
        until,
    ]


def show_flow(flow: Flow) -> None:
    """The command that makes the link, and what to know about it."""
    print(f"# {flow.source} -> {flow.target}: a link in {flow.target}")
    parts = ["headrace", "mirror", "create", flow.source, "--source", flow.source_servers]
    parts += ["--topics", ",".join(flow.topics)]
    if flow.groups:
        parts += ["--groups", ",".join(flow.groups)]
    if flow.client:
        parts += ["--config", f"{flow.source}.properties"]
    print(shlex.join([*parts, "-b", flow.target_servers]))
    if flow.client:
        print(f"# {flow.source}.properties holds, from this file: {', '.join(flow.client)}")
    for sentence in flow.notes:
        print(f"# {sentence}")


def flow_document(flow: Flow) -> dict[str, Any]:
    return asdict(flow)
