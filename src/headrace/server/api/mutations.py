"""Requests that create and delete partitions, against the quota controller_mutation_rate of their client.

The controller counts, for whichever broker took the request and passed it on, so that a client gains nothing by asking several. From
the version on in which a client understands THROTTLING_QUOTA_EXCEEDED, topics beyond the quota are refused; an older client gets
them and has to wait. A topic that would be refused anyway takes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from headrace.server.api.context import Context
from headrace.server.api.forwarding import asking_client
from headrace.server.cluster.passed_on import Client
from headrace.server.cluster.topics import create_partitions, create_topics
from headrace.wire.messages.create_partitions import CreatePartitionsTopic
from headrace.wire.messages.create_topics import CreatableTopic
from headrace.wire.messages.delete_topics import DeleteTopicState

T = TypeVar("T")

QUOTA_EXCEEDED = "The throttling quota has been exceeded."


class MutationCount:
    """What one request takes of its client's quota."""

    __slots__ = ("_client", "_context", "_quotas", "_strict", "_told", "_wait")

    def __init__(self, context: Context, strict_since: int = 0) -> None:
        client, engines = asking_client(context), context.engines
        limited = client is not None and engines.quotas.mutations.limits(*client)
        self._context = context
        self._client = client if limited and engines.cluster.is_controller else None
        self._quotas = engines.quotas
        self._strict = context.version >= strict_since
        self._wait = self._told = 0

    def split(
        self, topics: list[T], partitions: Callable[[Context, Sequence[T]], list[int]]
    ) -> tuple[list[T], list[T]]:
        """The topics to go on with, and those beyond the quota; `partitions` tells how many of each are about to change."""
        if self._client is None:
            return topics, []
        kept: list[T] = []
        beyond: list[T] = []
        for topic, count in zip(topics, partitions(self._context, topics), strict=True):
            overdrawn = count > 0 and self._take(self._client, count)
            (beyond if overdrawn and self._strict else kept).append(topic)
        return kept, beyond

    def _take(self, client: Client, count: int) -> bool:
        mutations, now = self._quotas.mutations, self._now()
        take = mutations.take_if_allowed if self._strict else mutations.take
        wait = take(*client, count, now)
        if wait:
            self._wait, self._told = wait, now
        return wait > 0

    def throttle_time_ms(self) -> int:
        """How long the client has to wait from now on."""
        return max(self._wait - (self._now() - self._told), 0) if self._wait else 0

    def _now(self) -> int:
        return int(self._quotas.monotonic() * 1000)


def created(context: Context, topics: Sequence[CreatableTopic]) -> list[int]:
    """How many partitions each of these topics would have."""
    cluster = context.engines.cluster
    results = create_topics(cluster.image, cluster.config, topics).result
    return [0 if each.topic is None else len(each.topic.partitions) for each in results]


def added(context: Context, topics: Sequence[CreatePartitionsTopic]) -> list[int]:
    """How many partitions each of these topics would get."""
    image = context.engines.cluster.image
    results = create_partitions(image, topics).result
    return [
        0 if result.error_code else topic.count - len(image.topics[topic.name].partitions)
        for topic, result in zip(topics, results, strict=True)
    ]


def deleted(context: Context, states: Sequence[DeleteTopicState]) -> list[int]:
    """How many partitions each of these topics has."""
    image = context.engines.cluster.image
    found = (
        image.topics_by_id.get(state.topic_id) if state.name is None else image.topics.get(state.name)
        for state in states
    )
    return [0 if topic is None else len(topic.partitions) for topic in found]
