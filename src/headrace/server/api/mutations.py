"""Requests that create and delete partitions, against the quota controller_mutation_rate of their client.

The broker that takes the request counts: it knows the client. It works out from its own metadata how many partitions each
topic takes; a topic that the controller would refuse anyway takes none. From the version on in which a client understands
THROTTLING_QUOTA_EXCEEDED, topics beyond the quota are refused; an older client gets them and has to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from headrace.server.api.context import Context
from headrace.server.cluster.topics import create_partitions, create_topics
from headrace.wire.messages.create_partitions import CreatePartitionsTopic
from headrace.wire.messages.create_topics import CreatableTopic
from headrace.wire.messages.delete_topics import DeleteTopicState

T = TypeVar("T")

QUOTA_EXCEEDED = "The throttling quota has been exceeded."


def within_quota(
    context: Context,
    topics: list[T],
    partitions: Callable[[Context, Sequence[T]], list[int]],
    *,
    strict_since: int = 0,
    waits: bool = True,
) -> tuple[list[T], list[T]]:
    """The topics to go on with, and those beyond the quota. `partitions` tells how many each creates or deletes; the client
    does not have to wait unless it `waits`."""
    meter = context.meter
    if meter is None or not meter.limits_mutations:
        return topics, []
    strict = context.version >= strict_since
    kept: list[T] = []
    refused: list[T] = []
    for topic, count in zip(topics, partitions(context, topics), strict=True):
        beyond = count > 0 and meter.mutates(count, strict, waits) > 0
        (refused if beyond and strict else kept).append(topic)
    return kept, refused


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
