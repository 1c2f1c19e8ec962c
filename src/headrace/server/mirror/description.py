"""What one broker says of the mirror links, as a document of JSON: facts of the cluster, and the partitions that it leads.

Every broker has the same facts; each knows the positions of its own partitions alone.
"""

from __future__ import annotations

from headrace.clock import Clock
from headrace.server.cluster.ids import format_id
from headrace.server.cluster.image import MetadataImage, MirroredTopic, MirrorLink, Topic
from headrace.server.cluster.mirror_links import topics_of
from headrace.server.mirror.mirrors import Mirrors
from headrace.server.mirror.options import shown
from headrace.server.mirror.position import Position

Document = dict[str, object]


def describe(image: MetadataImage, mirrors: Mirrors, clock: Clock) -> list[Document]:
    return [_link(image, mirrors, link, clock.now_ms()) for _, link in sorted(image.links.items())]


def _link(image: MetadataImage, mirrors: Mirrors, link: MirrorLink, now_ms: int) -> Document:
    running = mirrors.running.get(link.name)
    mine: dict[str, list[Position]] = {}
    for position in mirrors.positions_of(link.name):
        mine.setdefault(position.partition.topic, []).append(position)
    trouble = mirrors.broken.get(link.name) or (running.runner.trouble if running is not None else "")
    return {
        "name": link.name,
        "source": link.settings.get("bootstrap.servers", ""),
        "state": link.state.value,
        "patterns": list(link.topics),
        "groups": list(link.groups),
        "throttle": link.throttle,
        "adopts": link.adopts,
        "settings": shown(link.settings),
        "trouble": trouble,
        "obstacles": running.topics.obstacles if running is not None else {},
        "group_offsets": running.groups.mirrored if running is not None else {},
        "topics": [
            _topic(topic, mirrored, mine.get(topic.name, []), now_ms)
            for topic, mirrored in topics_of(image, link.name)
        ],
    }


def _topic(topic: Topic, mirrored: MirroredTopic, positions: list[Position], now_ms: int) -> Document:
    return {
        "name": topic.name,
        "state": mirrored.state.value,
        "reason": mirrored.reason,
        "source_id": format_id(mirrored.source_id),
        "partition_count": len(topic.partitions),
        "partitions": [
            {
                "partition": position.partition.index,
                "phase": position.phase.value,
                "trouble": position.trouble,
                "end_offset": position.partition.log.log_end_offset,
                "source_end_offset": position.source_end,
                "lag_records": position.lag,
                "lag_bytes": position.lag_bytes,
                "lag_seconds": position.lag_seconds(now_ms),
                "complete_until_ms": position.complete_until_ms,
                "missed_records": position.missed,
                "agreed": position.agreed,
            }
            for position in sorted(positions, key=lambda each: each.partition.index)
        ],
        "ends": [
            {
                "partition": index,
                "end_offset": end.offset,
                "source_end_offset": end.source_offset,
                "complete_until_ms": end.complete_until_ms,
                "failed_over_ms": end.failed_over_ms,
            }
            for index, end in sorted(mirrored.ends.items())
        ],
    }
