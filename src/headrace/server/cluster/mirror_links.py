"""Mirror links: making, pausing and deleting them, and what belongs to one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from headrace.server.cluster import features
from headrace.server.cluster.changes import Change, ProducerIdsAllocated
from headrace.server.cluster.image import LinkState, MetadataImage, MirroredTopic, MirrorLink, Topic
from headrace.server.cluster.internal_topics import INTERNAL_TOPICS
from headrace.server.cluster.mirror_changes import LinkChanged, MirroredTopicChanged
from headrace.server.cluster.outcome import Outcome
from headrace.server.cluster.situation import Decision, Situation
from headrace.wire.errors import ErrorCode, KafkaError

FIRST_ID_SHIFT = 16
"""A link made at some millisecond moves this cluster's producer ids to that number, shifted by so many bits: a cluster would have to
hand out 65,536 ids a millisecond, from 1970 on, to reach it. So of two clusters the one with the younger link is ahead."""

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,100}")


def create_link(link: MirrorLink, now_ms: int) -> Decision[None]:
    def decide(now: Situation) -> Outcome[None]:
        if features.level(now.image, features.MIRROR_VERSION) < 1:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "The cluster keeps no mirror links yet: when all its brokers run this version, set the level of "
                f"{features.MIRROR_VERSION} to 1 (`headrace features set {features.MIRROR_VERSION}=1`).",
            )
        if link.name in now.image.links:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is a mirror link '{link.name}' already.")
        _check(link)
        changes: list[Change] = [LinkChanged(link.name, link)]
        if now.image.next_producer_id < now_ms << FIRST_ID_SHIFT:
            changes.append(ProducerIdsAllocated(now_ms << FIRST_ID_SHIFT))
        return Outcome(None, changes)

    return decide


def _check(link: MirrorLink) -> None:
    if _NAME.fullmatch(link.name) is None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"'{link.name}' cannot name a mirror link; use up to 100 letters, digits, '.', '_' and '-'.",
        )
    if not link.topics:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"The mirror link '{link.name}' names no topics.")
    if link.throttle < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A throttle is a number of bytes per second, or 0.")
    for pattern in (*link.topics, *link.groups):
        try:
            re.compile(pattern)
        except re.error as error:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"'{pattern}' is no regular expression: {error}."
            ) from None


def the_link(image: MetadataImage, name: str) -> MirrorLink:
    link = image.links.get(name)
    if link is None:
        known = ", ".join(sorted(image.links)) or "none"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is no mirror link '{name}'; there are: {known}.")
    return link


def topics_of(image: MetadataImage, link: str) -> list[tuple[Topic, MirroredTopic]]:
    """The topics that a link mirrors or has mirrored, by name."""
    found = [
        (image.topics_by_id[topic_id], mirrored)
        for topic_id, mirrored in image.mirrored.items()
        if mirrored.link == link
    ]
    return sorted(found, key=lambda each: each[0].name)


def set_state(name: str, state: LinkState) -> Decision[None]:
    """Pause or resume a link."""

    def decide(now: Situation) -> Outcome[None]:
        link = the_link(now.image, name)
        return Outcome(None, [LinkChanged(name, replace(link, state=state))] if link.state != state else [])

    return decide


def delete_link(name: str) -> Decision[None]:
    def decide(now: Situation) -> Outcome[None]:
        the_link(now.image, name)
        mine = topics_of(now.image, name)
        waiting = [topic.name for topic, mirrored in mine if mirrored.read_only]
        if waiting:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"The mirror link '{name}' still owns {some(waiting)}; fail over ('headrace mirror failover {name}') "
                "or delete those topics first.",
            )
        changes: list[Change] = [MirroredTopicChanged(topic.id, None) for topic, _ in mine]
        return Outcome(None, [*changes, LinkChanged(name, None)])

    return decide


def some(names: Sequence[str]) -> str:
    """A few of the names, and how many more there are."""
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def matches(patterns: Sequence[str], name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def is_internal(topic: str) -> bool:
    """Topics that belong to one cluster and are never mirrored, whatever the pattern."""
    return topic in INTERNAL_TOPICS or topic.startswith("__")
