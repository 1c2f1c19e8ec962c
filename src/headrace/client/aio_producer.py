"""The producer for asyncio: the same settings and meaning as the sync one, methods that are awaited.

Built on the sync core and not on confluent-kafka's AIOProducer, which cannot send headers and buffers
records for up to a second before librdkafka sees them. Deliveries reach the event loop in batches.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self

from confluent_kafka import KafkaError, Message

from headrace.client.aio_known_topics import AwaitedTopics
from headrace.client.config import Config, Delivery, log
from headrace.client.errors import ConfigError, DeliveryError
from headrace.client.producer import OnDelivery, ProducerCore, outcome
from headrace.client.record import HeadersLike, RecordMetadata
from headrace.client.serializers import Serializer
from headrace.client.to_the_end import to_the_end
from headrace.client.transaction import Transaction

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from headrace.client.aio_consumer import AsyncConsumer

    K = TypeVar("K", default=bytes | str)
    V = TypeVar("V", default=bytes | str)
else:
    from typing import TypeVar

    K, V = TypeVar("K"), TypeVar("V")

_WAIT_FOR_ROOM = 0.01
_TAKEN_BACK = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
"""What becomes of records that were under way when their transaction was rolled back."""


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
        routes: bool = False,
        **settings: object,
    ) -> None:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise ConfigError("make an AsyncProducer inside the event loop that uses it") from None
        self._core: ProducerCore[K, V] = ProducerCore(
            config, settings, delivery, key_serializer, value_serializer, routes
        )
        self._topics = AwaitedTopics(self._loop, self._core.topics, self._core.settings.max_block)
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
        return await self._send(topic, value, key, partition, headers, timestamp, on_delivery)

    async def _send(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        partition: int | None,
        headers: HeadersLike | None,
        timestamp: int | None,
        on_delivery: OnDelivery | None = None,
        *,
        to_known_topic: bool = False,
    ) -> asyncio.Future[RecordMetadata]:
        future: asyncio.Future[RecordMetadata] = self._loop.create_future()

        def settle(metadata: RecordMetadata | None, failure: DeliveryError | None) -> None:
            if on_delivery is not None:
                try:
                    on_delivery(metadata, failure)
                except BaseException:  # it would hold up the reports of later deliveries
                    log.exception("the delivery callback of a record for %s failed", topic)
            if future.cancelled():
                return
            if metadata is not None:
                future.set_result(metadata)
            elif failure is not None:
                future.set_exception(failure)
                if failure.code in _TAKEN_BACK:
                    future.exception()  # the caller that rolled back knows it, so asyncio need not complain

        def delivered(error: KafkaError | None, message: Message) -> None:
            metadata, failure = outcome(error, message)
            self._hand_over(lambda: settle(metadata, failure))

        await self._enqueue(
            topic, value, key, partition, headers, timestamp, delivered, to_known_topic=to_known_topic
        )
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
        sent = await self._send(topic, value, key, partition, headers, timestamp, to_known_topic=True)
        return await sent

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
        *,
        to_known_topic: bool = False,
    ) -> None:
        self._core.check_open()
        if self._core.routes is not None:
            if not self._core.routes.known:
                await asyncio.to_thread(self._core.route, topic)
            topic = self._core.route(topic)
        if partition is None and self._core.places_records:
            await self._topics.wait_for(topic, known=self._core.topics.is_fresh(topic))
        elif to_known_topic:
            await self._topics.wait_for(topic, known=not self._core.topics.must_be_asked_for(topic))
        hand_over = self._core.prepare(topic, value, key, partition, headers, timestamp, delivered)
        deadline = time.monotonic() + self._core.settings.max_block
        while True:
            try:
                hand_over()
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
        # Taken back before anything is settled: a thread that appends after the last look sees it and wakes the loop.
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
            await to_the_end(beginning)
        except asyncio.CancelledError as cancelled:
            # It may have begun all the same, and only we can end it.
            if not beginning.cancelled() and beginning.exception() is None:
                await to_the_end(self._end(asyncio.CancelledError, cancelled, None))
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A caller cancelled here may close the producer next: end the transaction first.
        await to_the_end(self._end(kind, error, trace))

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
