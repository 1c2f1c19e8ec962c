"""IncrementalAlterConfigs: set, delete, append to and subtract from single settings.

- All of one resource's changes happen or none; another resource's errors do not matter.
- The controller decides; another broker passes the request on. A broker's loggers are its own.
- Versions differ in nothing but their encoding.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.server.api.broker_loggers import alter_loggers
from headrace.server.api.config_permissions import changeable
from headrace.server.api.config_requests import change
from headrace.server.api.context import Context
from headrace.server.api.forwarding import to_controller
from headrace.server.api.own_tls import without_unusable
from headrace.server.cluster.config_changes import ConfigOp, OpType, apply_op
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
    request.resources, unusable = await without_unusable(context, request.resources, _values)
    denied += unusable
    response = IncrementalAlterConfigsResponse()
    if request.resources or not denied:
        response = await _alter_here_or_at_controller(context, request)
    response.responses += [_result(asked, error) for asked, error in denied]
    return response


async def _alter_here_or_at_controller(
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
    def alter_own_loggers(broker: str, ops: list[ConfigOp]) -> None:
        alter_loggers(context.engines.broker_id, broker, ops, request.validate_only)
        if context.engines.permitted_topics is not None:
            context.engines.permitted_topics.follow_audit_log()

    errors = await change(
        context, request.resources, _ops, alter_own_loggers, incremental_alter_configs, request.validate_only
    )
    return IncrementalAlterConfigsResponse(responses=list(map(_result, request.resources, errors)))


def _result(asked: AlterConfigsResource, error: KafkaError | None) -> AlterConfigsResourceResponse:
    code, message = (ErrorCode.NONE, None) if error is None else (error.code, error.message)
    return AlterConfigsResourceResponse(code, message, asked.resource_type, asked.resource_name)


def _ops(asked: AlterConfigsResource) -> list[ConfigOp]:
    try:
        return [
            ConfigOp(config.name, OpType(config.config_operation), config.value) for config in asked.configs
        ]
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Unknown operation: 0 sets, 1 deletes, 2 appends, 3 subtracts."
        ) from None


def _values(asked: AlterConfigsResource, present: Mapping[str, str]) -> dict[str, str | None]:
    resource = ConfigResource(ResourceType.BROKER, asked.resource_name)
    return {op.name: apply_op(resource, op, present.get(op.name)) for op in _ops(asked)}
