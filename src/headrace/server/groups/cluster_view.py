"""The cluster as groups see it: its topics, and the settings groups have of their own."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence

from headrace.server.cluster.changes import Change, PartitionsChanged, TopicCreated, TopicDeleted
from headrace.server.cluster.image import ConfigResource, MetadataImage, ResourceType


class ClusterView:
    """Topics by the image of the moment. `version` grows only with changes that can move an assignment."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self.version = image.offset

    def changed(self, old: MetadataImage, new: MetadataImage, changes: Sequence[Change]) -> None:
        """A listener for the cluster's changes."""
        self._image = new
        if any(_matters(change, old, new) for change in changes):
            self.version = new.offset

    def names(self) -> Collection[str]:
        return self._image.topics.keys()

    def topic_id(self, name: str) -> uuid.UUID | None:
        topic = self._image.topics.get(name)
        return None if topic is None else topic.id

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        topic = self._image.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def partition_count(self, name: str) -> int:
        topic = self._image.topics.get(name)
        return 0 if topic is None else len(topic.partitions)

    def group_settings(self, group_id: str) -> Mapping[str, str]:
        return self._image.configs.get(ConfigResource(ResourceType.GROUP, group_id), {})


def _matters(change: Change, old: MetadataImage, new: MetadataImage) -> bool:
    if isinstance(change, PartitionsChanged):
        before, after = old.topics_by_id.get(change.topic_id), new.topics_by_id.get(change.topic_id)
        return before is None or after is None or len(before.partitions) != len(after.partitions)
    return isinstance(change, TopicCreated | TopicDeleted)
