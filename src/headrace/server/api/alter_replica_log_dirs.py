"""AlterReplicaLogDirs: bring replicas to other data directories of this broker, while they are in service.

- A replica that is there already, or on its way there, is answered without an error; its own directory ends a move.
- A replica this broker does not hold yet is REPLICA_NOT_AVAILABLE, and is made in that directory when it comes.
- A directory this broker does not have is LOG_DIR_NOT_FOUND, one that is cordoned INVALID_REPLICA_ASSIGNMENT.

- 2: compact
"""

from __future__ import annotations

from headrace.server.api.context import Context
from headrace.server.security.operations import Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(context: Context, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    allowed = context.may_on_cluster(Operation.ALTER)
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            result = results.setdefault(topic.name, AlterReplicaLogDirTopicResult(topic.name))
            for index in topic.partitions:
                code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                if allowed:
                    code = _move(context, topic.name, index, directory.path)
                result.partitions.append(AlterReplicaLogDirPartitionResult(index, code))
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def _move(context: Context, topic: str, index: int, path: str) -> ErrorCode:
    engines = context.engines
    directory = engines.logs.directory_at(path)
    if directory is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if directory.offline_reason is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if directory.cordoned:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    try:
        log = engines.replicas.find(topic.encode(), index, by_id=False).log
    except KafkaError:
        engines.logs.prefer(topic, index, directory)
        return ErrorCode.REPLICA_NOT_AVAILABLE
    try:
        engines.moves.move(log, directory)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
