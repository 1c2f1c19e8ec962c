"""Logs of partitions that this broker no longer holds, because their topic was deleted, or they were moved elsewhere, while
it was away or just before it was killed.

A log is only touched when the whole image, read after this broker registered, has no place for it. It is then set aside for
a week, because the image of a store restored from a backup also lacks the topics created since. When the image is in doubt,
the log stays and one line in the broker's log says so.
"""

from __future__ import annotations

import logging

from headrace.server.cluster.image import MetadataImage
from headrace.server.log.manager import LogManager
from headrace.server.log.partition import PartitionLog
from headrace.wire.errors import KafkaError

log = logging.getLogger(__name__)

_NAMED = 10
"""How many of them a line names."""


def settle_strays(logs: LogManager, image: MetadataImage, broker_id: int, doubt: str | None) -> None:
    """Set aside the logs that `image` has no place for; with a `doubt` about the image all of them stay."""
    strays = [one for one in logs.logs.values() if not _has_place(one, image, broker_id)]
    certain = [one for one in strays if doubt is None and _is_gone(logs, one, image, broker_id)]
    kept = [one for one in strays if one not in certain]
    if kept:
        why = doubt or "the id of their topic cannot be read"
        log.warning("Keeping partitions that belong to no topic of the cluster (%s): %s.", why, _names(kept))
    if certain:
        log.warning(
            "Setting aside partitions that this broker no longer holds, in directories that end in -stray and are "
            "removed after headrace.stray.retention.ms: %s.",
            _names(certain),
        )
    for one in certain:
        try:
            logs.set_aside(one)
        except KafkaError as error:
            log.error("%s", error.message)


def _has_place(one: PartitionLog, image: MetadataImage, broker_id: int) -> bool:
    """Whether the broker holds a partition of this name. A log left by a deleted topic of the same name is removed when the
    partition is opened."""
    state = image.partition(one.topic, one.partition)
    return state is not None and broker_id in state.replicas


def _is_gone(logs: LogManager, one: PartitionLog, image: MetadataImage, broker_id: int) -> bool:
    try:
        topic_id = logs.topic_id_of(one)
    except OSError:
        return False
    if topic_id is None:
        return False
    topic = image.topics_by_id.get(topic_id)
    state = topic.partition(one.partition) if topic is not None else None
    return state is None or broker_id not in state.replicas


def _names(logs: list[PartitionLog]) -> str:
    more = f" and {len(logs) - _NAMED} more" if len(logs) > _NAMED else ""
    return ", ".join(one.name for one in logs[:_NAMED]) + more
