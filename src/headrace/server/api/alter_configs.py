"""AlterConfigs: the older way to change settings: what is given replaces everything the resource had.

- The controller decides; another broker passes the request on.
- Versions differ in nothing but their encoding.
"""

from __future__ import annotations

from headrace.server.api.config_permissions import changeable
from headrace.server.api.context import Context
from headrace.server.api.forwarding import to_controller
from headrace.server.api.incremental_alter_configs import read_resource
from headrace.server.cluster.decisions import alter_configs
from headrace.server.cluster.image import ConfigResource, ResourceType
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(context: Context, request: AlterConfigsRequest) -> AlterConfigsResponse:
    request.resources, denied = changeable(context, request.resources)
    response = AlterConfigsResponse()
    if request.resources or not denied:
        response = await _alter(context, request)
    response.responses += [_denied(asked, error) for asked, error in denied]
    return response


def _denied(asked: AlterConfigsResource, error: KafkaError) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(error.code, error.message, asked.resource_type, asked.resource_name)


@to_controller
async def _alter(context: Context, request: AlterConfigsRequest) -> AlterConfigsResponse:
    named = [(asked.resource_type, asked.resource_name) for asked in request.resources]
    errors: dict[int, KafkaError | None] = {}
    wanted: dict[ConfigResource, dict[str, str | None]] = {}
    positions: dict[ConfigResource, int] = {}
    for position, asked in enumerate(request.resources):
        try:
            if named.count(named[position]) > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            resource = read_resource(asked.resource_type, asked.resource_name)
            if resource.type is ResourceType.BROKER_LOGGER:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    "AlterConfigs cannot change loggers: use IncrementalAlterConfigs.",
                )
            wanted[resource] = {config.name: config.value for config in asked.configs}
            positions[resource] = position
        except KafkaError as error:
            errors[position] = error
    if wanted:
        try:
            done = await context.engines.cluster.decide(alter_configs(wanted), request.validate_only)
        except KafkaError as error:
            done = dict.fromkeys(wanted, error)
        errors.update((positions[resource], error) for resource, error in done.items())
    responses = []
    for position, asked in enumerate(request.resources):
        failed = errors[position]
        responses.append(
            AlterConfigsResourceResponse(
                ErrorCode.NONE if failed is None else failed.code,
                None if failed is None else failed.message,
                asked.resource_type,
                asked.resource_name,
            )
        )
    return AlterConfigsResponse(responses=responses)
