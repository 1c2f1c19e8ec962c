"""Sending records, and waiting for acknowledgements or not. Owns the librdkafka producer.

``send`` gives a Future, ``send_and_wait`` the result, ``send_and_forget`` nothing but a count of failures.
Callbacks and futures are served by one background thread.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, cast

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from headrace.client import partitioners
from headrace.client.config import (
    Config,
    Delivery,
    config_error,
    log,
    log_error,
    merged,
    producer_settings,
)
from headrace.client.errors import (
    BrokerError,
    BufferFull,
    ConfigError,
    DeliveryError,
    SerializationError,
    broker_error,
    explain,
    is_retriable,
    kafka_error,
)
from headrace.client.known_topics import KnownTopics
from headrace.client.record import HeadersLike, RecordMetadata, header_list
from headrace.client.serializers import Serializer, as_serializer
from headrace.client.transaction import Transaction

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from headrace.client.consumer import Consumer
    from headrace.client.routes import Routes

    K = TypeVar("K", default=bytes | str)
    V = TypeVar("V", default=bytes | str)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

OnDelivery = Callable[[RecordMetadata | None, DeliveryError | None], None]
"""Called once per record, in the producer's thread, with where it was written or why it was not."""

_POLL_SECONDS = 0.1
_NATIVE = {"murmur2": "murmur2_random"}
_LIBRDKAFKA_OWN = ("random", "consistent", "consistent_random", "murmur2_random", "fnv1a", "fnv1a_random")


class ProducerCore(Generic[K, V]):
    """What the sync and the asyncio producer share: settings, serialization, partitioning, polling."""

    def __init__(
        self,
        config: Config,
        keywords: dict[str, object],
        delivery: Delivery | None,
        key_serializer: Serializer[K] | Callable[[K], bytes] | None,
        value_serializer: Serializer[V] | Callable[[V], bytes] | None,
        routes: bool = False,
    ) -> None:
        self.settings = producer_settings(config, keywords, delivery)
        self.failed = 0
        self._serialize_key = as_serializer(key_serializer, "key")
        self._serialize_value = as_serializer(value_serializer, "value")
        native, self._partitioner = _partitioner(self.settings.partitioner)
        self._partitioning = threading.Lock()
        self._process = os.getpid()
        try:
            self.librdkafka = confluent_kafka.Producer(
                {"error_cb": log_error, **self.settings.librdkafka, "partitioner": native}
            )
        except (KafkaException, TypeError, ValueError) as error:
            raise config_error(error, self.settings.librdkafka) from error
        self.topics = KnownTopics(self.librdkafka, self.settings)
        self.routes = _routes(merged(config, keywords)) if routes else None
        self._closing = False
        self._closed = threading.Event()
        self._poller = threading.Thread(
            target=_serve, args=(self.librdkafka, self._closed), name="headrace-producer", daemon=True
        )
        self._poller.start()
        weakref.finalize(self, self._closed.set)
        if self.routes is not None:
            weakref.finalize(self, self.routes.end)

    @property
    def places_records(self) -> bool:
        """Whether ``prepare`` must know how many partitions a topic has: librdkafka lacks the partitioner."""
        return self._partitioner is not None

    def route(self, topic: str) -> str:
        """Where records for a topic go now; waits max.block.ms until that is known for the first time."""
        if self.routes is None:
            return topic
        if not self.routes.known:
            self.routes.await_known(self.settings.max_block)
        return self.routes.of(topic)

    def check_open(self) -> None:
        if self._closing:
            raise _closed()
        if os.getpid() != self._process:
            raise ConfigError(
                "the producer was made before this process was forked and cannot send here: make one in each process"
            )

    def prepare(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        partition: int | None,
        headers: HeadersLike | None,
        timestamp: int | None,
        on_delivery: Callable[[KafkaError | None, Message], None],
    ) -> Callable[[], None]:
        """Serialize and place the record; the call that is returned hands it over, or raises BufferError."""
        self.check_open()
        key_bytes = self._serialize_key(key)
        value_bytes = self._serialize_value(value)
        if partition is None:
            partition = self._place(topic, key_bytes, value_bytes)
        pairs = cast("list[tuple[str, str | bytes | None]]", header_list(headers))
        at = timestamp or 0

        def hand_over() -> None:
            if self._closing:
                raise _closed()
            try:
                self.librdkafka.produce(
                    topic, value_bytes, key_bytes, partition, on_delivery, timestamp=at, headers=pairs
                )
            except KafkaException as error:
                raise self._refused(error, topic) from error
            except (TypeError, ValueError) as error:
                raise SerializationError(f"a record for {topic!r} cannot be sent: {error}") from error
            if self._closed.is_set():
                # close() came in between and nothing else waits for this record any more.
                self.librdkafka.flush()

        return hand_over

    def buffer_full(self) -> BufferFull:
        return BufferFull(
            f"the producer's buffer stayed full for {self.settings.max_block:g} s (max.block.ms): the "
            f"brokers do not "
            "take records as fast as they are sent; send slower, or raise buffer.memory"
        )

    def count_failure(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed += 1
            if self.failed == 1 or self.failed % 1000 == 0:
                log.warning(
                    "%d records sent and forgotten were not written; last: %s", self.failed, explain(error)
                )

    def flush(self, timeout: float | None = None) -> None:
        """Wait until every record sent so far is acknowledged or has failed."""
        left = self._wait_for_all(-1 if timeout is None else timeout)
        if left:
            raise DeliveryError(
                f"{left} records were still unacknowledged after {timeout:g} s; they may or may not be "
                f"written",
                KafkaError._TIMED_OUT,
                retriable=True,
            )

    def _wait_for_all(self, timeout: float) -> int:
        """How many records are still under way. librdkafka tells of a fatal error, such as being fenced, in whichever call
        comes next; the records fail by themselves."""
        try:
            return self.librdkafka.flush(timeout)
        except KafkaException as error:
            if not kafka_error(error).fatal():
                raise
            return self.librdkafka.flush(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Wait for what is under way; what is not acknowledged after ``timeout`` seconds fails, and this raises."""
        if self._closed.is_set() or os.getpid() != self._process:
            return
        self._closing = True
        patience = _POLL_SECONDS
        try:
            self.flush(timeout)
            patience = -1 if timeout is None else timeout
        except DeliveryError:
            self.librdkafka.purge()
            raise
        finally:
            self._closed.set()
            if self.routes is not None:
                self.routes.close()
            if threading.current_thread() is not self._poller:
                self._poller.join()
            # For records that a thread handed over just before; later ones find the producer closed.
            self._wait_for_all(patience)

    def abandon(self) -> None:
        """Close without waiting; what is not acknowledged fails."""
        with suppress(DeliveryError):
            self.close(0)

    def _place(self, topic: str, key: bytes | None, value: bytes | None) -> int:
        if self._partitioner is None:
            return -1
        count = self.topics.partition_count(topic)
        with self._partitioning:
            return self._partitioner.partition(topic, key, len(key or b"") + len(value or b""), count)

    def _refused(self, error: KafkaException, topic: str) -> ConfigError | BrokerError:
        cause = kafka_error(error)
        if cause.code() == KafkaError._STATE and self.settings.transactional_id is not None:
            return ConfigError(
                "this producer has a transactional.id and sends only inside a transaction: "
                "put the call into `with producer.transaction():`"
            )
        if cause.code() in (KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC):
            # The same words as for a topic that was not known yet when the record was taken.
            return DeliveryError(_not_acknowledged(topic, cause), cause.code())
        return broker_error(cause, f"sending to {topic}")


class Producer(ProducerCore[K, V]):
    """Send records.

    >>> with Producer("localhost:9092", value_serializer=serializers.json()) as producer:
    ...     producer.send_and_wait("orders", {"id": 1}, key="a")

    ``config`` is the bootstrap servers or a mapping of Kafka's settings; further settings are keywords with
    underscores. ``delivery`` chooses "at_most_once" (acks=0, no retries), "at_least_once" (acks=all,
    idempotent retries; the default) or "exactly_once" (transactions; needs transactional_id). With ``routes=True`` records follow the
    routes that ``headrace backlog divert --fresh`` sets, and their metadata names the topic they went to.
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
        super().__init__(config, settings, delivery, key_serializer, value_serializer, routes)
        self._transaction = Transaction(self.librdkafka, self.settings)

    def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        headers: HeadersLike | None = None,
        timestamp: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Future[RecordMetadata]:
        """Send; the Future gives the RecordMetadata or raises DeliveryError."""
        future: Future[RecordMetadata] = Future()
        future.set_running_or_notify_cancel()

        def delivered(error: KafkaError | None, message: Message) -> None:
            metadata, failure = outcome(error, message)
            if on_delivery is not None:
                try:
                    on_delivery(metadata, failure)
                except BaseException:  # it would end the thread that serves everybody
                    log.exception("the delivery callback of a record for %s failed", topic)
            if metadata is not None:
                future.set_result(metadata)
            else:
                future.set_exception(cast(DeliveryError, failure))

        self._enqueue(topic, value, key, partition, headers, timestamp, delivered)
        return future

    def send_and_wait(
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
        self.check_open()
        going_to = self.route(topic)
        if self.topics.must_be_asked_for(going_to):
            self.topics.partition_count(going_to)
        return self.send(
            topic, value, key=key, partition=partition, headers=headers, timestamp=timestamp
        ).result()

    def send_and_forget(
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
        self._enqueue(topic, value, key, partition, headers, timestamp, self.count_failure)

    def transaction(self, consumer: Consumer[Any, Any] | None = None) -> Transaction:
        """A ``with`` block: its records and the consumer's offsets are committed together or not at all."""
        return self._transaction.including(consumer)

    def _enqueue(
        self,
        topic: str,
        value: V | None,
        key: K | None,
        partition: int | None,
        headers: HeadersLike | None,
        timestamp: int | None,
        on_delivery: Callable[[KafkaError | None, Message], None],
    ) -> None:
        hand_over = self.prepare(self.route(topic), value, key, partition, headers, timestamp, on_delivery)
        deadline = 0.0
        while True:
            try:
                hand_over()
                return
            except BufferError:
                now = time.monotonic()
                deadline = deadline or now + self.settings.max_block
                if now >= deadline:
                    raise self.buffer_full() from None
                self.librdkafka.poll(_POLL_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _serve(librdkafka: confluent_kafka.Producer, closed: threading.Event) -> None:
    """Run callbacks as acknowledgements come; must not know the producer, which ends when it is forgotten."""
    while not closed.is_set():
        try:
            librdkafka.poll(_POLL_SECONDS)
        except KafkaException as fatal:
            # The producer is fenced or broken for good; its next use raises the reason.
            log.warning("%s", explain(kafka_error(fatal)))
            closed.wait(_POLL_SECONDS)


def _routes(settings: dict[str, object]) -> Routes:
    from headrace.client.routes import Routes  # with the consumer that it reads with: few producers need it

    return Routes(settings)


def _closed() -> ConfigError:
    return ConfigError("the producer is closed")


def _not_acknowledged(topic: str, error: KafkaError) -> str:
    return f"a record for {topic} was not acknowledged: {explain(error)}"


def outcome(error: KafkaError | None, message: Message) -> tuple[RecordMetadata | None, DeliveryError | None]:
    topic = cast(str, message.topic())
    if error is not None:
        return None, DeliveryError(
            _not_acknowledged(topic, error), error.code(), retriable=is_retriable(error)
        )
    offset = message.offset()
    return RecordMetadata(
        topic, cast(int, message.partition()), -1 if offset is None else offset, message.timestamp()[1]
    ), None


def _partitioner(chosen: object) -> tuple[str, partitioners.Partitioner | None]:
    """librdkafka's own partitioner when it has the chosen one, else ours, called for every record."""
    if isinstance(chosen, str):
        if chosen in _NATIVE or chosen in _LIBRDKAFKA_OWN:
            return _NATIVE.get(chosen, chosen), None
        return "murmur2_random", partitioners.named(chosen)
    return "murmur2_random", cast(partitioners.Partitioner, chosen)
