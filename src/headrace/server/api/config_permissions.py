"""Which permission reading or changing settings needs: on the topic, on the group, and on the cluster for all else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from headrace.server.api.context import Context
from headrace.server.cluster.image import ResourceType
from headrace.server.security.operations import CLUSTER, GROUP, TOPIC, Operation, Resource
from headrace.wire.errors import KafkaError


class RequestedResource(Protocol):
    resource_type: int
    resource_name: str


A = TypeVar("A", bound=RequestedResource)


def resource_of(asked: RequestedResource) -> Resource:
    if asked.resource_type == ResourceType.TOPIC:
        return Resource(TOPIC, asked.resource_name)
    if asked.resource_type == ResourceType.GROUP:
        return Resource(GROUP, asked.resource_name)
    return CLUSTER


def changeable(context: Context, resources: Sequence[A]) -> tuple[list[A], list[tuple[A, KafkaError]]]:
    """The resources whose settings the client may change, and those it may not, with the error."""
    allowed: list[A] = []
    denied: list[tuple[A, KafkaError]] = []
    for asked in resources:
        try:
            context.require(Operation.ALTER_CONFIGS, *resource_of(asked))
            allowed.append(asked)
        except KafkaError as error:
            denied.append((asked, error))
    return allowed, denied
