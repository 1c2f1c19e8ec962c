"""Mirror links: how far the partitions that this broker leads are behind their source. The controller reports the states of topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from headrace.server.api.engines import Engines
from headrace.server.metrics.text import GAUGE, Family, labels, several
from headrace.server.mirror.position import Position

OF_TOPIC: tuple[tuple[str, str, Callable[[list[Position], int], float]], ...] = (
    (
        "headrace_mirror_lag_records",
        "Records that the source has and this cluster has not.",
        lambda of, _: sum(each.lag for each in of),
    ),
    (
        "headrace_mirror_lag_bytes",
        "Bytes of those records, estimated from the ones that came last.",
        lambda of, _: sum(max(each.lag_bytes, 0) for each in of),
    ),
    (
        "headrace_mirror_lag_seconds",
        "How long ago the copy was complete, the largest of the topic's partitions.",
        lambda of, now_ms: max(each.lag_seconds(now_ms) for each in of),
    ),
    (
        "headrace_mirror_missed_records",
        "Records that the source deleted before they were copied, since this broker leads the partition.",
        lambda of, _: sum(each.missed for each in of),
    ),
)


class MirrorFamilies:
    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    def families(self) -> Iterator[Family]:
        engines, image = self._engines, self._engines.cluster.image
        if not image.links:
            return
        now_ms = engines.clock.now_ms()
        by_topic: list[tuple[str, list[Position]]] = []
        for link in image.links:
            found: dict[str, list[Position]] = {}
            for position in engines.mirrors.positions_of(link):
                found.setdefault(position.partition.topic, []).append(position)
            by_topic += [(labels(link=link, topic=topic), found[topic]) for topic in sorted(found)]
        # A partition that has not been asked for yet has no lag that is known.
        known = [(label, of) for label, of in by_topic if all(each.complete_until_ms >= 0 for each in of)]
        for name, help_, value in OF_TOPIC:
            rows = by_topic if name == "headrace_mirror_missed_records" else known
            yield several(name, GAUGE, help_, [(label, value(of, now_ms)) for label, of in rows])
        if engines.cluster.is_controller:
            states = Counter((each.link, each.state.value) for each in image.mirrored.values())
            yield several(
                "headrace_mirror_topics",
                GAUGE,
                "Mirrored topics by the state of their mirror; on the controller.",
                [(labels(link=link, state=state), count) for (link, state), count in sorted(states.items())],
            )
