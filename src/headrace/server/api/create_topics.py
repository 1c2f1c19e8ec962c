"""CreateTopics: each topic succeeds or fails by itself, with an error message.

- The controller decides; another broker passes the request on.
- -1 partitions or replicas take the broker's defaults; replicas may be placed by hand.
- 5: the reply has the settings and numbers in effect  - 6: THROTTLING_QUOTA_EXCEEDED  - 7: the topic's id
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.forwarding import to_controller
from headrace.server.api.mutations import QUOTA_EXCEEDED, MutationCount, created
from headrace.server.cluster.decisions import create_topics
from headrace.server.cluster.topics import CreatedTopic
from headrace.server.config.describe import describe_topic
from headrace.server.security.operations import NO_PERMISSION, TOPIC, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


async def handle(context: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
    denied: list[CreatableTopic] = []
    if not context.may_on_cluster(Operation.CREATE, asked_for=False):
        request.topics, denied = context.split(
            Operation.CREATE, TOPIC, request.topics, lambda topic: topic.name
        )
    response = CreateTopicsResponse()
    if request.topics or not denied:
        response = await _create(context, request)
    for result in response.topics:
        if not result.error_code and not context.may(
            Operation.DESCRIBE_CONFIGS, TOPIC, result.name, asked_for=False
        ):
            _hide_configs(result)
    response.topics += [
        CreatableTopicResult(
            topic.name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=NO_PERMISSION
        )
        for topic in denied
    ]
    return response


def _hide_configs(result: CreatableTopicResult) -> None:
    result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    result.num_partitions = result.replication_factor = -1
    result.configs = []


@to_controller
async def _create(context: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
    count = MutationCount(context, strict_since=6)
    topics, beyond = count.split(request.topics, created)
    made: list[CreatedTopic] = []
    if topics or not beyond:
        try:
            made = await context.engines.cluster.decide(create_topics(topics), request.validate_only)
        except KafkaError as error:
            made = [CreatedTopic(topic.name, error) for topic in topics]
    exceeded = KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, QUOTA_EXCEEDED)
    made += [CreatedTopic(topic.name, exceeded) for topic in beyond]
    results = [_result(context, topic) for topic in made]
    return CreateTopicsResponse(count.throttle_time_ms(), results)


def _result(context: Context, created: CreatedTopic) -> CreatableTopicResult:
    if created.error is not None or created.topic is None:
        error = created.error or KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return CreatableTopicResult(created.name, error_code=error.code, error_message=error.message or None)
    topic = created.topic
    entries = sorted(
        describe_topic(context.engines.config, created.configs or {}), key=lambda entry: entry.name
    )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=[
            CreatableTopicConfigs(entry.name, entry.value, entry.read_only, entry.source, entry.sensitive)
            for entry in entries
        ],
    )
