"""AlterConfigs: the older way to change settings: the given ones replace all settings of the resource.

- The controller decides; another broker passes the request on.
- Versions differ in nothing but their encoding.
"""

from __future__ import annotations

from headrace.server.api.config_permissions import changeable
from headrace.server.api.config_requests import change
from headrace.server.api.context import Context
from headrace.server.api.forwarding import to_controller
from headrace.server.cluster.decisions import alter_configs
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
    response.responses += [_result(asked, error) for asked, error in denied]
    return response


@to_controller
async def _alter(context: Context, request: AlterConfigsRequest) -> AlterConfigsResponse:
    errors = await change(
        context, request.resources, _settings, _refuse_loggers, alter_configs, request.validate_only
    )
    return AlterConfigsResponse(responses=list(map(_result, request.resources, errors)))


def _settings(asked: AlterConfigsResource) -> dict[str, str | None]:
    return {config.name: config.value for config in asked.configs}


def _refuse_loggers(broker: str, settings: dict[str, str | None]) -> None:
    raise KafkaError(
        ErrorCode.INVALID_REQUEST, "AlterConfigs cannot change loggers: use IncrementalAlterConfigs."
    )


def _result(asked: AlterConfigsResource, error: KafkaError | None) -> AlterConfigsResourceResponse:
    code, message = (ErrorCode.NONE, None) if error is None else (error.code, error.message)
    return AlterConfigsResourceResponse(code, message, asked.resource_type, asked.resource_name)
