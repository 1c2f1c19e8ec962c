"""The producer and the consumer for asyncio: the same settings and meaning, methods that are awaited.

Built on the sync cores and not on confluent-kafka's AIOProducer, which cannot send headers and buffers
records for up to a second before librdkafka sees them. Deliveries reach the event loop in batches; the
blocking calls of a consumer run in one thread of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self

from confluent_kafka import KafkaError, Message

from headrace.client.config import Config, Delivery, log
from headrace.client.consumer import Consumer
from headrace.client.consumer_assignment import OnAssign, OnRevoke
from headrace.client.consumer_offsets import OnCommit
from headrace.client.errors import BrokerError, DeliveryError
from headrace.client.positions import Offsets
from headrace.client.producer import OnDelivery, ProducerCore, outcome
from headrace.client.record import HeadersLike, Record, RecordMetadata, TopicPartition
from headrace.client.serializers import Serializer
from headrace.client.transaction import Transaction

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes | str)
    V = TypeVar("V", default=bytes | str)
    RK = TypeVar("RK", default=bytes)
    RV = TypeVar("RV", default=bytes)
else:
    from typing import TypeVar

    K, V, RK, RV = TypeVar("K"), TypeVar("V"), TypeVar("RK"), TypeVar("RV")

T = TypeVar("T")
P = ParamSpec("P")
_WAIT_FOR_ROOM = 0.01


class AsyncProducer(Generic[K, V]):
    """Send records from asyncio. Make it inside a running loop.

    >>> async with AsyncProducer("localhost:9092") as producer:
    ...     await producer.send_and_wait("orders", "one")
    """

    def __init__(
        self,
        config: Config = None,
        /,
        *,
        delivery: Delivery | None = None,
        key_serializer: Serializer[K] | Callable[[K], bytes] | None = None,
        value_serializer: Serializer[V] | Callable[[V], bytes] | None = None,
        **settings: object,
    ) -> None:
        self._core: ProducerCore[K, V] = ProducerCore(
            config, settings, delivery, key_serializer, value_serializer
        )
        self._loop = asyncio.get_running_loop()
        self._delivered: deque[Callable[[], None]] = deque()
        self._waking = False
        self._transaction = Transaction(self._core.librdkafka, self._core.settings)

    @property
    def failed(self) -> int:
        """How many records sent and forgotten are known not to have been written."""
        return self._core.failed

    async def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        headers: HeadersLike | None = None,
        timestamp: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Send, waiting only for room in the buffer; await the Future for the acknowledgement."""
        future: asyncio.Future[RecordMetadata] = self._loop.create_future()

        def settle(metadata: RecordMetadata | None, failure: DeliveryError | None) -> None:
            if on_delivery is not None:
                try:
                    on_delivery(metadata, failure)
                except Exception:
                    log.exception("the delivery callback of a record for %s failed", topic)
            if future.cancelled():
                return
            if metadata is not None:
                future.set_result(metadata)
            elif failure is not None:
                future.set_exception(failure)

        def delivered(error: KafkaError | None, message: Message) -> None:
            metadata, failure = outcome(error, message)
            self._hand_over(lambda: settle(metadata, failure))

        await self._enqueue(topic, value, key, partition, headers, timestamp, delivered)
        return future

    async def send_and_wait(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        headers: HeadersLike | None = None,
        timestamp: int | None = None,
    ) -> RecordMetadata:
        """Send and return when the record is acknowledged; raises DeliveryError when it is not."""
        return await (
            await self.send(topic, value, key=key, partition=partition, headers=headers, timestamp=timestamp)
        )

    async def send_and_forget(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        headers: HeadersLike | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Send without looking back; ``failed`` counts those that are known not to have been written."""
        await self._enqueue(topic, value, key, partition, headers, timestamp, self._core.count_failure)

    def transaction(self, consumer: AsyncConsumer[Any, Any] | None = None) -> AsyncTransaction:
        """An ``async with`` block, committed as a whole with the consumer's offsets, or not at all."""
        sync = None if consumer is None else consumer.sync
        return AsyncTransaction(self._transaction.including(sync), consumer)

    async def flush(self, timeout: float | None = None) -> None:
        await asyncio.to_thread(self._core.flush, timeout)

    async def close(self, timeout: float | None = None) -> None:
        await asyncio.to_thread(self._core.close, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _enqueue(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        partition: int | None,
        headers: HeadersLike | None,
        timestamp: int | None,
        delivered: Callable[[KafkaError | None, Message], None],
    ) -> None:
        if partition is None and not self._core.knows_partitions(topic):
            await asyncio.to_thread(self._core.partition_count, topic)
        deadline = time.monotonic() + self._core.settings.max_block
        while True:
            try:
                self._core.produce(topic, value, key, partition, headers, timestamp, delivered, 0)
                return
            except BufferError:
                if time.monotonic() >= deadline:
                    raise self._core.buffer_full() from None
                await asyncio.sleep(_WAIT_FOR_ROOM)

    def _hand_over(self, settle: Callable[[], None]) -> None:
        """From librdkafka's callback to the loop, waking it once for all deliveries that are waiting."""
        self._delivered.append(settle)
        if not self._waking:
            self._waking = True
            try:
                self._loop.call_soon_threadsafe(self._settle_all)
            except RuntimeError:
                log.debug("a delivery came after the event loop was closed")

    def _settle_all(self) -> None:
        # Taken back before anything is settled: who appends later than the last look sees it and wakes the loop.
        self._waking = False
        while self._delivered:
            self._delivered.popleft()()


class AsyncTransaction:
    """``async with producer.transaction(consumer):``"""

    def __init__(self, transaction: Transaction, consumer: AsyncConsumer[Any, Any] | None) -> None:
        self._transaction = transaction
        self._consumer = consumer

    async def __aenter__(self) -> Self:
        beginning = asyncio.ensure_future(asyncio.to_thread(self._transaction.begin))
        try:
            await asyncio.shield(beginning)
        except asyncio.CancelledError as cancelled:
            # It begins all the same, and nobody else could end it.
            await asyncio.wait([beginning])
            if beginning.exception() is None:
                await self._end(asyncio.CancelledError, cancelled, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The ending is finished even when the task that waits for it is cancelled.
        await asyncio.shield(self._end(kind, error, trace))

    async def _end(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        taken_back = set() if self._consumer is None else set(self._consumer.sync.uncommitted())
        committed = False
        try:
            await asyncio.to_thread(self._transaction.__exit__, kind, error, trace)
            committed = error is None
        finally:
            if self._consumer is not None and not committed:
                await self._consumer.put_back(except_for=taken_back)


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
