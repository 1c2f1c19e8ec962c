"""Changes to mirror links and mirrored topics. They are written only at the feature level that allows it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import ClassVar, TypedDict

from headrace.server.cluster.ids import format_id, parse_id
from headrace.server.cluster.image import (
    ImageBuilder,
    LinkState,
    MirroredTopic,
    MirrorEnd,
    MirrorLink,
    MirrorState,
)


class _LinkFields(TypedDict):
    topics: list[str]
    groups: list[str]
    settings: dict[str, str]
    throttle: int
    state: str
    adopts: bool


_TopicFields = tuple[str, str, str, str, list[tuple[int, int, int, int, int]], list[int]]
"""Link, the topic's id at the source, state, reason, ends, and the partitions that agree."""


@dataclass(frozen=True, slots=True)
class LinkChanged:
    """A link under its name; None removes it."""

    TAG: ClassVar[str] = "mirror"
    name: str
    link: MirrorLink | None

    def fields(self) -> list[object]:
        link = self.link
        if link is None:
            return [self.name, None]
        written: _LinkFields = {
            "topics": list(link.topics),
            "groups": list(link.groups),
            "settings": dict(link.settings),
            "throttle": link.throttle,
            "state": link.state.value,
            "adopts": link.adopts,
        }
        return [self.name, written]

    @classmethod
    def read(cls, name: str, link: _LinkFields | None) -> LinkChanged:
        if link is None:
            return cls(name, None)
        made = MirrorLink(
            name,
            tuple(link["topics"]),
            link["settings"],
            tuple(link["groups"]),
            link["throttle"],
            LinkState(link["state"]),
            link["adopts"],
        )
        return cls(name, made)

    def apply(self, image: ImageBuilder) -> None:
        if self.link is None:
            image.links.pop(self.name, None)
        else:
            image.links[self.name] = self.link


@dataclass(frozen=True, slots=True)
class MirroredTopicChanged:
    """What a link says of a topic; None makes it a topic like any other."""

    TAG: ClassVar[str] = "mirrored-topic"
    topic_id: uuid.UUID
    topic: MirroredTopic | None

    def fields(self) -> list[object]:
        topic = self.topic
        if topic is None:
            return [format_id(self.topic_id), None]
        ends = [[index, *end] for index, end in topic.ends.items()]
        return [
            format_id(self.topic_id),
            [
                topic.link,
                format_id(topic.source_id),
                topic.state.value,
                topic.reason,
                ends,
                list(topic.agreed),
            ],
        ]

    @classmethod
    def read(cls, topic_id: str, topic: _TopicFields | None) -> MirroredTopicChanged:
        if topic is None:
            return cls(parse_id(topic_id), None)
        link, source_id, state, reason, ends, agreed = topic
        read = {index: MirrorEnd(*end) for index, *end in ends}
        mirrored = MirroredTopic(link, parse_id(source_id), MirrorState(state), reason, read, tuple(agreed))
        return cls(parse_id(topic_id), mirrored)

    def apply(self, image: ImageBuilder) -> None:
        if self.topic is None:
            image.mirrored.pop(self.topic_id, None)
        else:
            image.mirrored[self.topic_id] = self.topic
