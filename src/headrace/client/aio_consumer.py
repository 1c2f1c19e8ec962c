"""The consumer for asyncio: the same settings and meaning as the sync one, methods that are awaited.

Its blocking calls run in one thread of its own; what that thread has fetched waits here until it is asked for.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Generic, ParamSpec, Self

from headrace.client.callbacks import OnAssign, OnCommit, OnRevoke
from headrace.client.commits import Committable
from headrace.client.config import Config, Delivery
from headrace.client.consumer import Consumer
from headrace.client.errors import BrokerError, ConfigError
from headrace.client.positions import Offsets
from headrace.client.record import Record, TopicPartition
from headrace.client.serializers import Serializer
from headrace.client.to_the_end import to_the_end

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    RK = TypeVar("RK", default=bytes)
    RV = TypeVar("RV", default=bytes)
else:
    from typing import TypeVar

    RK, RV = TypeVar("RK"), TypeVar("RV")

T = TypeVar("T")
P = ParamSpec("P")
_SLICE = 0.1
"""How long the thread waits for records before it checks for urgent work."""


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
        self._in_a_hurry = threading.Event()
        self._ready: deque[Record[RK, RV]] = deque()
        self._gone: set[TopicPartition] = set()
        interval = float(str(self.sync.settings.librdkafka.get("max.poll.interval.ms", 300_000))) / 1000
        self._longest_pause = min(1.0, interval / 3)
        self._fetch_due = 0.0
        self._closed = False

    async def subscribe(
        self,
        *topics: str,
        pattern: str | None = None,
        on_assign: OnAssign | None = None,
        on_revoke: OnRevoke | None = None,
        on_lost: OnRevoke | None = None,
    ) -> None:
        def noting(callback: OnRevoke | None) -> OnRevoke:
            def gone(partitions: Collection[TopicPartition]) -> None:
                self._gone.update(partitions)
                if callback is not None:
                    callback(partitions)

            return gone

        revoked, lost = noting(on_revoke), noting(on_lost or on_revoke)
        await self._run(
            lambda: self.sync.subscribe(
                *topics, pattern=pattern, on_assign=on_assign, on_revoke=revoked, on_lost=lost
            )
        )

    async def unsubscribe(self) -> None:
        await self._elsewhere(None, self.sync.unsubscribe)

    async def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]] | Offsets) -> None:
        await self._elsewhere(None, self.sync.assign, partitions)

    def assignment(self) -> set[TopicPartition]:
        return self.sync.assignment()

    async def partitions_of(self, topic: str) -> list[TopicPartition]:
        return await self._run(self.sync.partitions_of, topic)

    async def poll(self, timeout: float = 1.0, *, max_records: int | None = None) -> list[Record[RK, RV]]:
        """As Consumer.poll. A cancelled poll loses nothing: the next one returns what it had fetched."""
        limit = max_records or self.sync.settings.max_poll_records
        if not self._ready:
            await self._fetch(timeout, self.sync.settings.max_poll_records)
        elif time.monotonic() >= self._fetch_due:
            # A program that takes its time over what was fetched ahead stays a member of the group all the same.
            await self._fetch(0, 1)
        records = [self._ready.popleft() for _ in range(min(limit, len(self._ready)))]
        self.sync.hand_out(records)
        if self.sync.settings.commit_first and records:
            await self._commit_first(records)
        return records

    async def __aiter__(self) -> AsyncIterator[Record[RK, RV]]:
        while not self._closed:
            for record in await self.poll(max_records=1):
                yield record

    async def commit(self, offsets: Committable = None, *, timeout: float | None = None) -> None:
        await self._run(lambda: self.sync.commit(offsets, timeout=timeout))

    async def commit_async(self, offsets: Committable = None) -> None:
        await self._run(self.sync.commit_async, offsets)

    async def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, int | None]:
        return await self._run(self.sync.committed, *partitions)

    async def position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record that poll will return."""
        held = next((record.offset for record in self._ready if record.topic_partition == partition), None)
        return held if held is not None else await self._run(self.sync.position, partition)

    async def seek(self, partition: TopicPartition, offset: int) -> None:
        await self._elsewhere({partition}, self.sync.seek, partition, offset)

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        await self._elsewhere(partitions, self.sync.seek_to_beginning, *partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        await self._elsewhere(partitions, self.sync.seek_to_end, *partitions)

    async def seek_to_time(self, when: datetime | int, *partitions: TopicPartition) -> None:
        await self._elsewhere(partitions, self.sync.seek_to_time, when, *partitions)

    async def offsets_for_time(
        self, when: datetime | int, *partitions: TopicPartition
    ) -> dict[TopicPartition, int]:
        return await self._run(self.sync.offsets_for_time, when, *partitions)

    async def range_of(self, partition: TopicPartition) -> tuple[int, int]:
        """The first offset and the offset after the last record a consumer can see now."""
        return await self._run(self.sync.range_of, partition)

    async def pause(self, *partitions: TopicPartition) -> None:
        await to_the_end(self._pause(partitions))

    async def resume(self, *partitions: TopicPartition) -> None:
        await self._run(self.sync.resume, *partitions)

    def paused(self) -> set[TopicPartition]:
        return self.sync.paused()

    async def close(self, *, handled: bool = True) -> None:
        if not self._closed:
            self._closed = True
            await to_the_end(self._close(handled))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(handled=error is None)

    async def put_back(self, except_for: Collection[TopicPartition]) -> None:
        """Forget what is fetched but not returned, and fetch it again later.

        The exceptions are partitions that have been taken back further already.
        """
        if not self._closed:
            await to_the_end(self._put_back(self.assignment(), except_for))

    async def _fetch(self, timeout: float, limit: int) -> None:
        """Fill ``_ready``. If this task is cancelled, the fetch ends soon in its thread, and is kept."""
        self._check_open()
        if self._under_way is None:
            self._in_a_hurry.clear()
            self._under_way = self._submit(lambda: self._fetch_in_thread(timeout, limit))
        try:
            await asyncio.shield(self._under_way)
        except asyncio.CancelledError:
            self._in_a_hurry.set()
            raise
        except BaseException:
            self._under_way = None
            raise
        self._take_in()

    def _fetch_in_thread(self, timeout: float, limit: int) -> list[Record[RK, RV]]:
        self.sync.mark_handled()
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            records = self.sync.fetch(max(0.0, min(left, _SLICE)), limit)
            if records or left <= _SLICE or self._in_a_hurry.is_set():
                return records

    def _take_in(self) -> None:
        """Move what the thread has fetched to ``_ready``, and drop there what a rebalance took away meanwhile."""
        if self._under_way is not None:
            fetched, self._under_way = self._under_way.result(), None
            if self._gone:
                self._drop(self._gone)
                self._gone.clear()
            self._ready.extend(fetched)
            self._fetch_due = time.monotonic() + self._longest_pause

    async def _collect(self) -> None:
        """Take in what a cancelled poll has left behind; what it has raised is left to the next poll."""
        if self._under_way is not None:
            self._in_a_hurry.set()
            await asyncio.wait([self._under_way])
            if self._under_way is not None and self._under_way.exception() is None:
                self._take_in()

    async def _elsewhere(
        self,
        partitions: Collection[TopicPartition] | None,
        move: Callable[P, None],
        *args: P.args,
        **kw: P.kwargs,
    ) -> None:
        """Change where is read, in these or in all partitions, and forget what was fetched there before."""

        async def go() -> None:
            await self._collect()
            await self._run(move, *args, **kw)
            self._drop(partitions or {record.topic_partition for record in self._ready})

        await to_the_end(go())

    async def _pause(self, partitions: Collection[TopicPartition]) -> None:
        await self._collect()
        await self._run(self.sync.pause, *partitions)
        await self._put_back(partitions, ())

    async def _put_back(
        self, partitions: Collection[TopicPartition], except_for: Collection[TopicPartition]
    ) -> None:
        await self._collect()
        first = self._drop(partitions)

        def fetch_again() -> None:
            for partition in first.keys() & self.assignment() - set(except_for):
                self.sync.fetch_from(partition, first[partition])

        await self._run(fetch_again)

    async def _commit_first(self, records: list[Record[RK, RV]]) -> None:
        try:
            await to_the_end(self._run(self.sync.commit_handed_out))
        except BrokerError:
            await self.put_back(except_for={record.topic_partition for record in records})
            raise
        except asyncio.CancelledError as cancelled:
            if cancelled.__cause__ is None:
                self._ready.extendleft(reversed(records))
            else:
                await self.put_back(except_for={record.topic_partition for record in records})
            raise

    async def _close(self, handled: bool) -> None:
        try:
            await self._collect()
            await self._submit(lambda: self.sync.close(handled=handled))
        finally:
            self._thread.shutdown(wait=False)

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
        self._check_open()
        return await self._submit(lambda: call(*args, **kwargs))

    def _check_open(self) -> None:
        if self._closed:
            raise ConfigError("the consumer is closed")

    def _submit(self, call: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._thread, call)
