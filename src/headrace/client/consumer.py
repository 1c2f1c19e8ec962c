"""Reading records: subscribe or assign, poll, commit, seek. One thread uses a consumer.

A record counts as handled when the next poll begins (as in Kafka's Java client), so auto commit never
commits a record that the program has not come back from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from headrace.client.config import Config, Delivery, consumer_settings, log
from headrace.client.consumer_offsets import OnCommit, PositionedConsumer
from headrace.client.errors import (
    BrokerError,
    ConfigError,
    TransactionAborted,
    broker_error,
    explain,
    kafka_error,
)
from headrace.client.record import Record, TopicPartition, from_message, to_librdkafka
from headrace.client.serializers import Serializer, as_deserializer

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

# What librdkafka gets over by itself: it is logged, and reading goes on.
_PASSING = frozenset(
    {
        KafkaError._PARTITION_EOF,
        KafkaError._MAX_POLL_EXCEEDED,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)


_MOST = 1_000_000
"""More than this librdkafka does not return at once."""


class Consumer(PositionedConsumer, Generic[K, V]):
    """Read records.

    >>> with Consumer("localhost:9092", group_id="billing") as consumer:
    ...     consumer.subscribe("orders")
    ...     for record in consumer:
    ...         print(record.value)

    ``delivery`` chooses "at_least_once" (a record is committed after it was handled; the default),
    "at_most_once" (committed before it is returned) or "exactly_once" (read_committed, and committed by a
    producer's ``transaction(consumer)``). Without group_id the consumer reads alone and commits nothing.
    """

    def __init__(
        self,
        config: Config = None,
        /,
        *,
        delivery: Delivery | None = None,
        key_deserializer: Serializer[K] | Callable[[bytes], K] | None = None,
        value_deserializer: Serializer[V] | Callable[[bytes], V] | None = None,
        on_commit: OnCommit | None = None,
        **settings: object,
    ) -> None:
        super().__init__(consumer_settings(config, settings, delivery), on_commit)
        self._decode_key = as_deserializer(key_deserializer)
        self._decode_value = as_deserializer(value_deserializer)
        self._waiting_error: KafkaError | None = None
        self._in_doubt: dict[TopicPartition, int] = {}
        self._process = os.getpid()
        self.ended: set[TopicPartition] = set()
        """With enable.partition.eof: partitions whose end has been reached at least once."""
        self._closed = False

    def poll(self, timeout: float = 1.0, *, max_records: int | None = None) -> list[Record[K, V]]:
        """The records that are ready, at most max.poll.records; waits ``timeout`` seconds for the first.

        What the previous poll returned counts as handled from here on.
        """
        self.mark_handled()
        records = self.fetch(timeout, max_records or self.settings.max_poll_records)
        self._positions.hand_out(records)
        if self.settings.commit_first and records:
            self.commit_handed_out()
        return records

    def __iter__(self) -> Iterator[Record[K, V]]:
        while not self._closed:
            yield from self.poll(max_records=1)

    def fetch(self, timeout: float, max_records: int) -> list[Record[K, V]]:
        """Records, without counting them as given to the program: ``hand_out`` does that."""
        self._check_process()
        if not self._chosen and not self._closed:
            raise ConfigError("this consumer has nothing to read: call subscribe or assign first")
        self._raise_waiting()
        self._settle_doubt()
        messages: list[Message] = []
        try:
            first = self.librdkafka.poll(timeout)
            # One poll may take a partition away, give it back and return its first record: that one counts.
            self._just_gone.clear()
            if first is not None:
                try:
                    more = self.librdkafka.consume(min(max_records, _MOST) - 1, 0) if max_records > 1 else []
                except BaseException:
                    self._put_back([first])
                    raise
                # A rebalance during the second call may have taken away the partition of the first record.
                taken = (first.topic(), first.partition()) in self._just_gone
                messages = more if taken else [first, *more]
        except KafkaException as error:
            raise broker_error(error, "reading") from error
        except RuntimeError as error:
            raise ConfigError(f"the consumer cannot be read from: {error}") from None
        if self._callback_error is not None:
            self._put_back(messages)
            self._raise_waiting()
        records = []
        for message in messages:
            problem = message.error()
            if problem is None:
                records.append(from_message(message, self._decode_key, self._decode_value))
            elif problem.code() not in _PASSING:
                self._waiting_error = problem
            elif problem.code() != KafkaError._PARTITION_EOF:
                log.warning("%s", explain(problem))
            else:
                self.ended.add(TopicPartition(str(message.topic()), int(message.partition() or 0)))
        if not records:
            self._raise_waiting()
        return records

    def hand_out(self, records: Iterable[Record[K, V]]) -> None:
        self._positions.hand_out(records)

    def mark_handled(self) -> None:
        """With auto commit, let the next commit include everything handed out."""
        if self.settings.auto_commit and (handled := self._positions.uncommitted()):
            try:
                self.librdkafka.store_offsets(offsets=to_librdkafka(handled))
            except KafkaException as error:
                log.warning("handled offsets were not kept for auto commit: %s", explain(kafka_error(error)))
            self._positions.clear()

    def commit_handed_out(self) -> None:
        """For at most once: commit before the program sees the records, or take them back."""
        try:
            self.commit()
        except BrokerError:
            self.rewind()
            raise

    # Transactions: called by the producer's transaction

    def check_transactional(self) -> None:
        self._need_group()
        if self.settings.auto_commit or self.settings.commit_first:
            raise ConfigError(
                "a consumer inside a transaction must leave committing to it: make it with "
                "delivery='exactly_once'"
            )

    def transaction_offsets(self) -> tuple[list[confluent_kafka.TopicPartition], object]:
        # In this order: what goes away after the first line has an older generation, and the broker refuses it.
        generation = self.librdkafka.consumer_group_metadata()
        offsets = to_librdkafka(self._positions.uncommitted())
        if self._positions.lost:
            names = ", ".join(sorted(map(str, self._positions.lost)))
            raise TransactionAborted(
                f"the transaction is rolled back: {names} went to another member of the group while records "
                f"from "
                "there were being processed; the new owner processes them",
                KafkaError.ILLEGAL_GENERATION,
                retriable=True,
            )
        return offsets, generation

    def transaction_ended(self, *, committed: bool) -> None:
        if not committed:
            self.rewind()
        self._positions.clear()

    def transaction_in_doubt(self) -> None:
        """Nobody knows whether the transaction was committed; before the next read the group's offsets tell."""
        self._in_doubt.update(self._positions.starts())
        self._positions.clear()

    def _settle_doubt(self) -> None:
        doubtful = [partition for partition in self._in_doubt if partition in self._assigned]
        if doubtful:
            # Of read_committed consumers this waits until the broker has ended the transaction.
            for partition, offset in self.committed(*doubtful).items():
                self.seek(partition, self._in_doubt[partition] if offset is None else offset)
        self._in_doubt.clear()

    # The end

    def close(self, *, handled: bool = True) -> None:
        """Leave the group. With auto commit, what was returned is committed unless ``handled`` is False."""
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        try:
            if handled:
                self.mark_handled()
        finally:
            self.librdkafka.close()
        if self._callback_error is not None:
            if handled:
                self._raise_waiting()
            log.error("a callback failed while the consumer was closed", exc_info=self._callback_error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(handled=error is None)

    def _put_back(self, messages: list[Message]) -> None:
        """Read these again later: what was fetched together with a callback's error is not returned with it."""
        first: dict[TopicPartition, int] = {}
        for message in messages:
            if message.error() is None:
                partition = TopicPartition(str(message.topic()), int(message.partition() or 0))
                first.setdefault(partition, int(message.offset() or 0))
        for partition in first.keys() & self._assigned:
            self.fetch_from(partition, first[partition])

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise ConfigError(
                "the consumer was made before this process was forked and cannot read here: make one in each process"
            )

    def _raise_waiting(self) -> None:
        callback_error, self._callback_error = self._callback_error, None
        if callback_error is not None:
            raise callback_error
        error, self._waiting_error = self._waiting_error, None
        if error is not None:
            raise broker_error(error, "reading")
