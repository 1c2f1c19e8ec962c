"""A share group's part of a partition, when the share coordinator does not store what it is told."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from headrace.server.coordinator.promise import Promise
from headrace.server.replica.partition import Partition
from headrace.server.replica.turn import Turn
from headrace.server.share.chunk import Batch, Chunk
from headrace.server.share.coordinator.records import ShareKey
from headrace.server.share.coordinator.state import StoredState
from headrace.server.share.in_flight import Acknowledgement
from headrace.server.share.partition import Means, SharePartition, State
from headrace.server.share.settings import ShareGroupSettings
from headrace.server.share.states import AcknowledgeType, DeadRecords, StateBatch
from headrace.wire.errors import ErrorCode, KafkaError
from tests.server.groups.conftest import ManualClock

LOCK_SECONDS = 30
ALL = Chunk(0, 10, b"", [Batch(0, 9, 0, 0)])


class Log:
    log_start_offset = 0
    high_watermark = last_stable_offset = 10


class Led:
    """A partition that this broker leads."""

    is_leader = True
    leader_epoch = 1
    log = Log()

    def watch(self, watcher: object) -> None: ...

    def unwatch(self, watcher: object) -> None: ...


class Store:
    """A share coordinator that answers when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[Promise[None]] = []

    async def read(self, key: ShareKey, leader_epoch: int) -> StoredState:
        return StoredState(1, 0, ())

    async def write(
        self,
        key: ShareKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        written: Promise[None] = Promise()
        self.waiting.append(written)
        await written

    async def answer(self, error: KafkaError | None = None) -> None:
        await turns()
        (written,), self.waiting = self.waiting, []
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)
        await turns()


class Letters:
    async def send(self, key: ShareKey, partition: Partition, dead: Sequence[DeadRecords]) -> None:
        raise NotImplementedError


class Shared:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = Store()
        self.settings = ShareGroupSettings(LOCK_SECONDS * 1000, 5, 2000, "earliest", False, True, "", False)
        means = Means(
            self.clock, Turn(), ThreadPoolExecutor(1), self.store, Letters(), lambda _: self.settings
        )
        key = ShareKey("workers", uuid.UUID(int=1), 0)
        self.partition = SharePartition(key, cast(Partition, Led()), means, lambda _: None)

    def acquire(self, member: str) -> int:
        given = self.partition.acquire(member, ALL, 10, exact=False, group_by=0)
        return sum(each.last - each.first + 1 for each in given)


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def shared() -> Shared:
    made = Shared()
    await turns()
    assert made.partition.state is State.ACTIVE
    return made


@pytest.mark.parametrize("gone", [False, True], ids=["acknowledged", "the member is gone"])
async def test_a_lock_that_ends_while_its_records_are_being_stored_is_not_forgotten(
    shared: Shared, gone: bool
) -> None:
    assert shared.acquire("a") == 10
    if gone:
        shared.partition.release("a")
    else:
        shared.partition.acknowledge("a", [Acknowledgement(0, 9, [AcknowledgeType.ACCEPT])])
    await turns()
    shared.clock.advance(LOCK_SECONDS + 1)
    await shared.store.answer(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    assert shared.acquire("b") == 0, "the first member still holds them"
    for _ in range(2):
        shared.clock.advance(2)
        await shared.store.answer(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    shared.clock.advance(2)
    await shared.store.answer()
    assert shared.acquire("b") == 10
