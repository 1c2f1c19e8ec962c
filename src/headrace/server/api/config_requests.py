"""What both requests that change settings do: read each resource, have the controller decide, and return an error for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from headrace.server.api.config_permissions import RequestedResource
from headrace.server.api.context import Context
from headrace.server.cluster.config_changes import Errors
from headrace.server.cluster.image import ConfigResource, ResourceType
from headrace.server.cluster.situation import Decision
from headrace.wire.errors import ErrorCode, KafkaError

A = TypeVar("A", bound=RequestedResource)
C = TypeVar("C")


async def change(
    context: Context,
    resources: Sequence[A],
    read: Callable[[A], C],
    change_loggers: Callable[[str, C], None],
    decision: Callable[[dict[ConfigResource, C]], Decision[Errors]],
    validate_only: bool,
) -> list[KafkaError | None]:
    """An error, or None, for each resource. `read` returns what a resource asks for; loggers are this broker's own."""
    named = [(asked.resource_type, asked.resource_name) for asked in resources]
    errors: dict[int, KafkaError | None] = {}
    wanted: dict[ConfigResource, C] = {}
    positions: dict[ConfigResource, int] = {}
    for position, asked in enumerate(resources):
        try:
            if named.count(named[position]) > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            changes = read(asked)
            resource = _resource(asked)
            if resource.type is ResourceType.BROKER_LOGGER:
                change_loggers(resource.name, changes)
                errors[position] = None
            else:
                wanted[resource] = changes
                positions[resource] = position
        except KafkaError as error:
            errors[position] = error
    if wanted:
        try:
            done = await context.engines.cluster.decide(decision(wanted), validate_only)
        except KafkaError as error:
            done = dict.fromkeys(wanted, error)
        errors.update((positions[resource], error) for resource, error in done.items())
    return [errors[position] for position in range(len(resources))]


def _resource(asked: RequestedResource) -> ConfigResource:
    try:
        return ConfigResource(ResourceType(asked.resource_type), asked.resource_name)
    except ValueError:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource type {asked.resource_type}."
        ) from None
