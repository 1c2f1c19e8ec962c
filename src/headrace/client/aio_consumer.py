"""The consumer for asyncio: the same settings and meaning as the sync one, methods that are awaited.

Its blocking calls run in one thread of its own; what that thread has fetched waits here until it is asked for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self

from headrace.client.config import Config, Delivery
from headrace.client.consumer import Consumer
from headrace.client.consumer_assignment import OnAssign, OnRevoke
from headrace.client.consumer_offsets import OnCommit
from headrace.client.errors import BrokerError
from headrace.client.positions import Offsets
from headrace.client.record import Record, TopicPartition
from headrace.client.serializers import Serializer

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    RK = TypeVar("RK", default=bytes)
    RV = TypeVar("RV", default=bytes)
else:
    from typing import TypeVar

    RK, RV = TypeVar("RK"), TypeVar("RV")

T = TypeVar("T")
P = ParamSpec("P")


class AsyncConsumer(Generic[RK, RV]):
    """Read records from asyncio.

    >>> async with AsyncConsumer("localhost:9092", group_id="billing") as consumer:
    ...     await consumer.subscribe("orders")
    ...     async for record in consumer:
    ...         print(record.value)

    Rebalance callbacks run in the consumer's thread, not in the loop.
    """

    def __init__(
        self,
        config: Config = None,
        /,
        *,
        delivery: Delivery | None = None,
        key_deserializer: Serializer[RK] | Callable[[bytes], RK] | None = None,
        value_deserializer: Serializer[RV] | Callable[[bytes], RV] | None = None,
        on_commit: OnCommit | None = None,
        **settings: object,
    ) -> None:
        self.sync: Consumer[RK, RV] = Consumer(
            config,
            delivery=delivery,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            on_commit=on_commit,
            **settings,
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="headrace-consumer")
        self._under_way: asyncio.Future[list[Record[RK, RV]]] | None = None
        self._ready: deque[Record[RK, RV]] = deque()

    async def subscribe(
        self,
        *topics: str,
        pattern: str | None = None,
        on_assign: OnAssign | None = None,
        on_revoke: OnRevoke | None = None,
        on_lost: OnRevoke | None = None,
    ) -> None:
        await self._run(
            lambda: self.sync.subscribe(
                *topics, pattern=pattern, on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost
            )
        )

    async def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]] | Offsets) -> None:
        self._ready.clear()
        await self._run(self.sync.assign, partitions)

    def assignment(self) -> set[TopicPartition]:
        return self.sync.assignment()

    async def poll(self, timeout: float = 1.0, *, max_records: int | None = None) -> list[Record[RK, RV]]:
        """As Consumer.poll. A cancelled poll loses nothing: the next one returns what it had fetched."""
        limit = max_records or self.sync.settings.max_poll_records
        if not self._ready:
            await self._fetch(timeout)
        records = [self._ready.popleft() for _ in range(min(limit, len(self._ready)))]
        self.sync.hand_out(records)
        if self.sync.settings.commit_first and records:
            try:
                await self._run(self.sync.commit_handed_out)
            except BrokerError:
                await self.put_back(except_for={record.topic_partition for record in records})
                raise
        return records

    async def __aiter__(self) -> AsyncIterator[Record[RK, RV]]:
        while True:
            for record in await self.poll(max_records=1):
                yield record

    async def commit(
        self, offsets: Offsets | Record[Any, Any] | Iterable[Record[Any, Any]] | None = None
    ) -> None:
        await self._run(self.sync.commit, offsets)

    async def commit_async(
        self, offsets: Offsets | Record[Any, Any] | Iterable[Record[Any, Any]] | None = None
    ) -> None:
        await self._run(self.sync.commit_async, offsets)

    async def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, int | None]:
        return await self._run(self.sync.committed, *partitions)

    async def position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record that poll will return."""
        held = next((record.offset for record in self._ready if record.topic_partition == partition), None)
        return held if held is not None else await self._run(self.sync.position, partition)

    async def seek(self, partition: TopicPartition, offset: int) -> None:
        self._drop({partition})
        await self._run(self.sync.seek, partition, offset)

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        self._drop(partitions or self.assignment())
        await self._run(self.sync.seek_to_beginning, *partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        self._drop(partitions or self.assignment())
        await self._run(self.sync.seek_to_end, *partitions)

    async def seek_to_time(self, when: datetime | int, *partitions: TopicPartition) -> None:
        self._drop(partitions or self.assignment())
        await self._run(self.sync.seek_to_time, when, *partitions)

    async def pause(self, *partitions: TopicPartition) -> None:
        await self._run(self.sync.pause, *partitions)
        for partition, offset in self._drop(partitions).items():
            await self._run(self.sync.fetch_from, partition, offset)

    async def resume(self, *partitions: TopicPartition) -> None:
        await self._run(self.sync.resume, *partitions)

    def paused(self) -> set[TopicPartition]:
        return self.sync.paused()

    async def close(self, *, handled: bool = True) -> None:
        if self._under_way is not None:
            await asyncio.wait([self._under_way])
        await self._run(lambda: self.sync.close(handled=handled))
        self._thread.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(handled=error is None)

    async def _fetch(self, timeout: float) -> None:
        """Fill ``_ready``. If this task is cancelled, the fetch goes on in its thread and is kept."""
        if self._under_way is None:
            limit = self.sync.settings.max_poll_records

            def fetch() -> list[Record[RK, RV]]:
                self.sync.mark_handled()
                return self.sync.fetch(timeout, limit)

            self._under_way = asyncio.get_running_loop().run_in_executor(self._thread, fetch)
        try:
            records = await asyncio.shield(self._under_way)
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._under_way = None
            raise
        self._under_way = None
        self._ready.extend(records)

    async def put_back(self, except_for: Collection[TopicPartition]) -> None:
        """Forget what is fetched but not returned, and fetch it again later.

        The exceptions are partitions that have been taken back further already.
        """
        for partition, offset in self._drop(self.assignment()).items():
            if partition not in except_for:
                await self._run(self.sync.fetch_from, partition, offset)

    def _drop(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Forget fetched records of these partitions; returns where each must be read again."""
        first: dict[TopicPartition, int] = {}
        kept: deque[Record[RK, RV]] = deque()
        for record in self._ready:
            if record.topic_partition in partitions:
                first.setdefault(record.topic_partition, record.offset)
            else:
                kept.append(record)
        self._ready = kept
        return first

    async def _run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: call(*args, **kwargs))
