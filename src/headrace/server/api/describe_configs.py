"""DescribeConfigs: settings with the value in effect, where it comes from and what it overrides.

- Topics, this broker, the cluster-wide default (a broker with an empty name), this broker's loggers, groups, client
  metrics.
- Only a broker itself describes its settings; clients ask that broker.
- 1: sources and synonyms  - 3: types and documentation, if asked for
"""

from __future__ import annotations

from headrace.server.api.broker_loggers import describe_loggers
from headrace.server.api.config_permissions import resource_of
from headrace.server.api.context import Context
from headrace.server.cluster.image import ConfigResource, ResourceType
from headrace.server.cluster.topics import check_topic_name
from headrace.server.config.describe import (
    ConfigEntry,
    describe_broker,
    describe_client_metrics,
    describe_cluster_default,
    describe_group,
    describe_topic,
)
from headrace.server.security.operations import Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def handle(context: Context, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_result(context, request, asked) for asked in request.resources])


def _result(
    context: Context, request: DescribeConfigsRequest, asked: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        error_message=None, resource_type=asked.resource_type, resource_name=asked.resource_name
    )
    try:
        entries = _describe(context, asked)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message or None
        return result
    wanted = set(asked.configuration_keys or ())
    result.configs = [
        _line(entry, request.include_synonyms, request.include_documentation)
        for entry in entries
        if not wanted or entry.name in wanted
    ]
    return result


def _describe(context: Context, asked: DescribeConfigsResource) -> list[ConfigEntry]:
    engines = context.engines
    image, config, name = engines.cluster.image, engines.config, asked.resource_name
    context.require(Operation.DESCRIBE_CONFIGS, *resource_of(asked))
    if asked.resource_type == ResourceType.TOPIC:
        check_topic_name(name)
        if name not in image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        return describe_topic(config, image.topic_configs(name))
    if asked.resource_type == ResourceType.BROKER:
        if not name:
            return describe_cluster_default(config)
        _check_this_broker(engines.broker_id, name, "or empty string, ")
        return describe_broker(config)
    if asked.resource_type == ResourceType.BROKER_LOGGER:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        _check_this_broker(engines.broker_id, name, "")
        return describe_loggers()
    if asked.resource_type == ResourceType.GROUP:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return describe_group(config, image.configs.get(ConfigResource(ResourceType.GROUP, name), {}))
    if asked.resource_type == ResourceType.CLIENT_METRICS:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        return describe_client_metrics(
            image.configs.get(ConfigResource(ResourceType.CLIENT_METRICS, name), {})
        )
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {asked.resource_type}")


def _check_this_broker(broker_id: int, name: str, alternative: str) -> None:
    if not name.isascii() or not name.lstrip("-").isdigit():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != broker_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {broker_id} {alternative}but received {name}",
        )


def _line(entry: ConfigEntry, synonyms: bool, documentation: bool) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            DescribeConfigsSynonym(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms
        ]
        if synonyms
        else [],
        config_type=entry.type or 0,
        documentation=entry.documentation if documentation else None,
    )
