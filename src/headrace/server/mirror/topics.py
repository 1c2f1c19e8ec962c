"""On the controller: looks at the source's topics now and then, and has this cluster follow them."""

from __future__ import annotations

from headrace.clock import Clock
from headrace.server.cluster.image import MirrorLink
from headrace.server.cluster.mirror_following import FollowedTopic, follow_topics
from headrace.server.cluster.mirror_links import is_internal, matches
from headrace.server.cluster.node import ClusterNode
from headrace.server.mirror.source import SourceCluster
from headrace.wire.errors import ErrorCode, KafkaError

LOOKS_PER_COMPARISON = 3
"""How many looks it takes until settings are compared although nothing else has changed: describing thousands of topics is dear."""


class TopicFollower:
    def __init__(self, link: MirrorLink, source: SourceCluster, cluster: ClusterNode, clock: Clock) -> None:
        self._link = link
        self._source = source
        self._cluster = cluster
        self._clock = clock
        self._configs_at = float("-inf")
        self.obstacles: dict[str, str] = {}
        """Topics of the source that cannot be mirrored, and why."""

    async def look(self, interval: float) -> None:
        """One look at the source; OSError or KafkaError when it cannot be asked."""
        found = {
            name: topic
            for name, topic in (await self._source.topics()).items()
            if matches(self._link.topics, name) and not topic.internal and not is_internal(name)
        }
        image = self._cluster.image
        if self._source.cluster_id == image.cluster_id:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"it is this cluster itself. Delete the link ('headrace mirror delete {self._link.name}') and name another source.",
            )
        new = [
            name
            for name, topic in found.items()
            if name not in image.topics or len(topic.epochs) > len(image.topics[name].partitions)
        ]
        now = self._clock.monotonic()
        every = now - self._configs_at >= interval * LOOKS_PER_COMPARISON
        asked = list(found) if every else new
        configs = await self._source.topic_configs(asked) if asked else {}
        if every:
            self._configs_at = now
        topics = [
            FollowedTopic(
                name,
                topic.id,
                tuple(topic.epochs[index] for index in sorted(topic.epochs)),
                configs.get(name),
            )
            for name, topic in sorted(found.items())
            # A topic that is new is made with its settings, or not yet.
            if name in image.topics or name in configs
        ]
        follow = follow_topics(self._link.name, topics)
        self.obstacles = await self._cluster.decide(follow)
