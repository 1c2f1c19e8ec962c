"""Requests between brokers about the state of share groups: each names one group and partitions of several topics."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, TypeVar

from headrace.server.api.context import Context
from headrace.server.security.operations import CLUSTER, Operation
from headrace.server.share.coordinator.records import ShareKey
from headrace.wire.errors import ErrorCode, KafkaError

P = TypeVar("P", bound="Partition", contravariant=True)
R = TypeVar("R")


class Partition(Protocol):
    partition: int


class Result(Protocol):
    partition: int
    error_code: int
    error_message: str | None


X = TypeVar("X", bound=Result)
Q = TypeVar("Q", bound=Partition)


async def for_each(
    context: Context,
    group_id: str,
    topics: Iterable[tuple[uuid.UUID, Iterable[Q]]],
    work: Callable[[ShareKey, Q], Awaitable[R]],
    answer: Callable[[int, R], X],
    refused: Callable[[int, ErrorCode, str | None], X],
) -> list[tuple[uuid.UUID, list[X]]]:
    """Begin everything before waiting for anything, so that it is stored together."""
    try:
        context.engines.sharing.settings.require()
        context.require(Operation.CLUSTER_ACTION, *CLUSTER)
        denial = None
    except KafkaError as error:
        denial = error
    begun: list[tuple[uuid.UUID, list[tuple[int, Awaitable[R] | KafkaError]]]] = []
    for topic_id, partitions in topics:
        started: list[tuple[int, Awaitable[R] | KafkaError]] = []
        for each in partitions:
            try:
                if denial is not None:
                    raise denial
                started.append((each.partition, work(ShareKey(group_id, topic_id, each.partition), each)))
            except KafkaError as error:
                started.append((each.partition, error))
        begun.append((topic_id, started))
    results = []
    for topic_id, waiting in begun:
        done: list[X] = []
        for index, one in waiting:
            try:
                if isinstance(one, KafkaError):
                    raise one
                done.append(answer(index, await one))
            except KafkaError as error:
                done.append(refused(index, error.code, error.message or None))
        results.append((topic_id, done))
    return results
