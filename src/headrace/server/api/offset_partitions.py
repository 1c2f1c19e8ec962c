"""Which partitions of a request about offsets get an error of their own, independent of the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from headrace.server.api.context import Context
from headrace.server.security.operations import TOPIC, Operation
from headrace.wire.errors import ErrorCode

Codes = dict[tuple[str, int], int]
"""The error of each partition."""


class _Partition(Protocol):
    @property
    def partition_index(self) -> int: ...


class _Topic(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> Sequence[_Partition]: ...


def refused_partitions(context: Context, topics: Iterable[_Topic]) -> Codes:
    """The partitions the client may not read, or that are not there, and why."""
    image = context.engines.cluster.image
    codes: Codes = {}
    for topic in topics:
        allowed = context.may(Operation.READ, TOPIC, topic.name)
        for each in topic.partitions:
            if not allowed:
                codes[topic.name, each.partition_index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif image.partition(topic.name, each.partition_index) is None:
                codes[topic.name, each.partition_index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return codes
