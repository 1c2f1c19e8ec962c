"""DeleteTopics: by name or by id; refused when delete.topic.enable is off.

- The controller decides; another broker passes the request on.
- 3: the refusal has a code of its own  - 5: error messages, THROTTLING_QUOTA_EXCEEDED  - 6: by id as well as by name
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.api.forwarding import to_controller
from headrace.server.api.mutations import QUOTA_EXCEEDED, MutationCount, deleted
from headrace.server.cluster.image import MetadataImage
from headrace.server.cluster.outcome import Outcome
from headrace.server.cluster.topics import delete_topics
from headrace.server.security.operations import NO_PERMISSION, TOPIC, Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from headrace.wire.schema import ZERO_UUID

UNKNOWN_ID = "This server does not host this topic ID."


async def handle(context: Context, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if not context.engines.guarded or context.may_on_cluster(Operation.DELETE, asked_for=False):
        return await _delete(context, request)
    denied: list[DeletableTopicResult] = []
    allowed: list[DeleteTopicState] = []
    for state in _requested(context, request):
        refusal = _refusal(context, state)
        if refusal is None:
            allowed.append(state)
        else:
            denied.append(refusal)
    response = DeleteTopicsResponse()
    if allowed or not denied:
        _put(request, allowed)
        response = await _delete(context, request)
    response.responses += denied
    return response


def _put(request: DeleteTopicsRequest, states: list[DeleteTopicState]) -> None:
    """Ask for these only, in whatever field the version has."""
    request.topics, request.topic_names = states, [state.name or "" for state in states]


def _requested(context: Context, request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    return (
        request.topics if context.version >= 6 else [DeleteTopicState(name) for name in request.topic_names]
    )


def _refusal(context: Context, state: DeleteTopicState) -> DeletableTopicResult | None:
    """The error when the client may not delete this; a topic's name is shown only to clients that may see it."""
    name = state.name
    if name is None:
        topic = context.engines.cluster.image.topics_by_id.get(state.topic_id)
        if topic is None:
            return DeletableTopicResult(None, state.topic_id, ErrorCode.UNKNOWN_TOPIC_ID, UNKNOWN_ID)
        name = topic.name if context.may(Operation.DESCRIBE, TOPIC, topic.name) else None
    if name is not None and context.may(Operation.DELETE, TOPIC, name):
        return None
    return DeletableTopicResult(name, state.topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, NO_PERMISSION)


@to_controller
async def _delete(context: Context, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    count = MutationCount(context, strict_since=5)
    asked, beyond = count.split(_requested(context, request), deleted)
    results: list[DeletableTopicResult] = []
    if asked or not beyond:
        try:
            _check_enabled(context)
            results = await context.engines.cluster.decide(lambda now: _decide(now.image, asked))
        except KafkaError as error:
            results = [
                DeletableTopicResult(state.name, state.topic_id, error.code, error.message or None)
                for state in asked
            ]
    results += [
        DeletableTopicResult(state.name, state.topic_id, ErrorCode.THROTTLING_QUOTA_EXCEEDED, QUOTA_EXCEEDED)
        for state in beyond
    ]
    return DeleteTopicsResponse(count.throttle_time_ms(), results)


def _decide(image: MetadataImage, asked: list[DeleteTopicState]) -> Outcome[list[DeletableTopicResult]]:
    results = [DeletableTopicResult(state.name, state.topic_id) for state in asked]
    for state, result in zip(asked, results, strict=True):
        _find(image, asked, state, result)
    found = [result.topic_id for result in results if result.error_code == ErrorCode.NONE]
    return Outcome(results, delete_topics(image, found).changes)


def _check_enabled(context: Context) -> None:
    if context.engines.config.boolean("delete.topic.enable"):
        return
    code = ErrorCode.TOPIC_DELETION_DISABLED if context.version >= 3 else ErrorCode.INVALID_REQUEST
    raise KafkaError(code, "Topic deletion is disabled: delete.topic.enable is false.")


def _find(
    image: MetadataImage, asked: list[DeleteTopicState], state: DeleteTopicState, result: DeletableTopicResult
) -> None:
    """Fill in the other half of a name and an id, or say why the topic cannot be deleted."""

    def refuse(code: ErrorCode, message: str | None) -> None:
        result.error_code, result.error_message = code, message

    by_id = state.topic_id != ZERO_UUID
    if state.name is None and not by_id:
        refuse(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    elif state.name is not None and by_id:
        refuse(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    elif state.name is not None and sum(other.name == state.name for other in asked) > 1:
        refuse(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    elif by_id and sum(other.topic_id == state.topic_id for other in asked) > 1:
        refuse(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
    elif state.name is not None:
        topic = image.topics.get(state.name)
        if topic is None:
            refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{state.name}' does not exist.")
        else:
            result.topic_id = topic.id
    else:
        topic = image.topics_by_id.get(state.topic_id)
        if topic is None:
            refuse(ErrorCode.UNKNOWN_TOPIC_ID, UNKNOWN_ID)
        else:
            result.name = topic.name
