"""Offset requests that name topics by id: their names, and the ids for the reply."""

from __future__ import annotations

import uuid

from headrace.server.cluster.image import MetadataImage

UNKNOWN = "?"
"""Begins the stand-in for the name of a topic whose id nobody knows; no topic is called so."""


def name_of(image: MetadataImage, topic_id: uuid.UUID) -> str:
    topic = image.topics_by_id.get(topic_id)
    return topic.name if topic is not None else f"{UNKNOWN}{topic_id}"
