"""IncrementalAlterConfigs: set, take away, append to and subtract from single settings.

- All of one resource's changes happen or none; another resource's errors do not matter.
- The controller decides; another broker passes the request on. A broker's loggers are its own.
- Versions differ in nothing but their encoding.
"""

from __future__ import annotations

from headrace.server.api.broker_loggers import alter_loggers
from headrace.server.api.config_permissions import changeable
from headrace.server.api.context import Context
from headrace.server.api.forwarding import to_controller
from headrace.server.cluster.config_changes import ConfigOp, OpType
from headrace.server.cluster.decisions import incremental_alter_configs
from headrace.server.cluster.image import ConfigResource, ResourceType
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(
    context: Context, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    request.resources, denied = changeable(context, request.resources)
    response = IncrementalAlterConfigsResponse()
    if request.resources or not denied:
        response = await _alter_where_it_belongs(context, request)
    response.responses += [_denied(asked, error) for asked, error in denied]
    return response


def _denied(asked: AlterConfigsResource, error: KafkaError) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(error.code, error.message, asked.resource_type, asked.resource_name)


async def _alter_where_it_belongs(
    context: Context, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    if any(asked.resource_type == ResourceType.BROKER_LOGGER for asked in request.resources):
        return await _alter(context, request)
    return await _alter_at_controller(context, request)


@to_controller
async def _alter_at_controller(
    context: Context, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    return await _alter(context, request)


async def _alter(
    context: Context, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    named = [(asked.resource_type, asked.resource_name) for asked in request.resources]
    errors: dict[int, KafkaError | None] = {}
    wanted: dict[ConfigResource, list[ConfigOp]] = {}
    positions: dict[ConfigResource, int] = {}
    for position, asked in enumerate(request.resources):
        try:
            if named.count(named[position]) > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            ops = _ops(asked)
            resource = read_resource(asked.resource_type, asked.resource_name)
            if resource.type is ResourceType.BROKER_LOGGER:
                alter_loggers(context.engines.broker_id, resource.name, ops, request.validate_only)
                errors[position] = None
            else:
                wanted[resource] = ops
                positions[resource] = position
        except KafkaError as error:
            errors[position] = error
    if wanted:
        try:
            done = await context.engines.cluster.decide(
                incremental_alter_configs(wanted), request.validate_only
            )
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
    return IncrementalAlterConfigsResponse(responses=responses)


def _ops(asked: AlterConfigsResource) -> list[ConfigOp]:
    try:
        return [
            ConfigOp(config.name, OpType(config.config_operation), config.value) for config in asked.configs
        ]
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Unknown operation: 0 sets, 1 deletes, 2 appends, 3 subtracts."
        ) from None


def read_resource(resource_type: int, name: str) -> ConfigResource:
    try:
        return ConfigResource(ResourceType(resource_type), name)
    except ValueError:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource type {resource_type}.") from None
