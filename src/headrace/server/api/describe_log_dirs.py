"""DescribeLogDirs: the data directories, how full their disks are, and the size of the partitions in them.

- A replica on its way to another directory is listed there, too, with the records it still lacks.
- topics null means all.

- 3: a top-level error  - 4: total and usable bytes of the volume  - 5: whether no new replicas come to the directory
"""

from __future__ import annotations

import asyncio
import os

from headrace.server.api.context import Context, requires_on_cluster
from headrace.server.log.directory import LogDirectory
from headrace.server.security.operations import Operation
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


@requires_on_cluster(Operation.DESCRIBE)
async def handle(context: Context, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    asked = None
    if request.topics is not None:
        asked = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    results = []
    for directory in context.engines.logs.directories:
        result = DescribeLogDirsResult(log_dir=directory.path, is_cordoned=directory.cordoned)
        if directory.offline_reason is not None:
            result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        else:
            result.topics = _topics(context, directory, asked)
            loop = asyncio.get_running_loop()
            volume = await loop.run_in_executor(context.engines.disk, os.statvfs, directory.path)
            result.total_bytes = volume.f_blocks * volume.f_frsize
            result.usable_bytes = volume.f_bavail * volume.f_frsize
        results.append(result)
    return DescribeLogDirsResponse(results=results)


def _topics(
    context: Context, directory: LogDirectory, asked: set[tuple[str, int]] | None
) -> list[DescribeLogDirsTopic]:
    topics: dict[str, DescribeLogDirsTopic] = {}
    logs = context.engines.logs
    for log in logs.files_in(directory):
        if asked is not None and (log.topic, log.partition) not in asked:
            continue
        try:
            size = log.size
        except KafkaError:
            continue  # This log is offline; list the others.
        topic = topics.setdefault(log.topic, DescribeLogDirsTopic(log.topic))
        on_its_way = logs.futures.get(log.topic, log.partition) is log
        lag = 0
        if on_its_way and (current := logs.get(log.topic, log.partition)) is not None:
            lag = max(0, current.log_end_offset - log.log_end_offset)
        topic.partitions.append(DescribeLogDirsPartition(log.partition, size, lag, on_its_way))
    return list(topics.values())
