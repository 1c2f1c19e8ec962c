"""Changes as bytes: a JSON list of lists, each the tag of a change and its fields."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import cast

from headrace.server.cluster.changes import (
    BrokerChanged,
    BrokerUnregistered,
    Change,
    ClusterNamed,
    ControllerElected,
    PartitionsChanged,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)
from headrace.server.cluster.mirror_changes import LinkChanged, MirroredTopicChanged
from headrace.server.cluster.policy_changes import (
    AclChanged,
    ConfigsChanged,
    FeatureChanged,
    QuotaChanged,
    ScramChanged,
    TokenChanged,
)

_COMPRESS_FROM = 4096

_KINDS = {
    kind.TAG: kind.read
    for kind in (
        ControllerElected,
        ClusterNamed,
        BrokerChanged,
        BrokerUnregistered,
        TopicCreated,
        TopicDeleted,
        PartitionsChanged,
        ConfigsChanged,
        ProducerIdsAllocated,
        FeatureChanged,
        AclChanged,
        QuotaChanged,
        ScramChanged,
        TokenChanged,
        LinkChanged,
        MirroredTopicChanged,
    )
}


def encode_changes(changes: Sequence[Change]) -> bytes:
    """Compact JSON, compressed when it is long: partitions compress well."""
    text = json.dumps([[change.TAG, *change.fields()] for change in changes], separators=(",", ":")).encode()
    return zlib.compress(text, 1) if len(text) >= _COMPRESS_FROM else text


def decode_changes(data: bytes) -> list[Change]:
    text = data if data[:1] == b"[" else zlib.decompress(data)
    changes: list[Change] = []
    for tag, *values in json.loads(text):
        read = _KINDS.get(tag)
        if read is None:
            raise ValueError(
                f"The cluster's metadata has a change of kind {tag!r}, which this version of Headrace does not know; "
                "run the version that wrote it, or a newer one."
            )
        changes.append(cast(Change, read(*values)))
    return changes
