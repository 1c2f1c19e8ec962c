"""What may not be done to a topic while it is a mirror: it follows its source, and nothing else."""

from __future__ import annotations

import uuid

from headrace.server.cluster.image import MetadataImage, MirrorState
from headrace.wire.errors import ErrorCode, KafkaError

NO_APPEND = (
    "Cannot append records to read-only mirror topic '{}'; 'headrace mirror failover' makes it writable."
)


def refuse_read_only(image: MetadataImage, topic: str, doing: str) -> None:
    """INVALID_REQUEST when `topic` is a mirror that was not failed over; `doing` completes "Cannot …"."""
    found = image.topics.get(topic)
    mirrored = image.mirrored.get(found.id) if found is not None else None
    if mirrored is not None and mirrored.read_only:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Cannot {doing} '{topic}': it is a mirror of the link '{mirrored.link}' and follows its source. Fail it over first.",
        )


def refuse_to_delete(image: MetadataImage, topic_id: uuid.UUID) -> None:
    """A topic that is being mirrored would come back. One that failed may go, to be mirrored anew."""
    mirrored = image.mirrored.get(topic_id)
    if mirrored is not None and mirrored.read_only and mirrored.state is not MirrorState.FAILED:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Cannot delete '{image.topics_by_id[topic_id].name}': it is a mirror of the link '{mirrored.link}'. Fail it over first.",
        )
