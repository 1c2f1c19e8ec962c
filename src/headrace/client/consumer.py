"""Reading records: subscribe or assign, poll, commit, seek. Owns the librdkafka consumer; one thread uses it.

A record counts as handled when the next poll begins (as in Kafka's Java client), so auto commit never
commits a record that the program has not come back from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, Message

from headrace.client.config import Config, Delivery, config_error, consumer_settings, log, log_error
from headrace.client.errors import (
    BrokerError,
    CommitError,
    ConfigError,
    FencedError,
    TransactionAborted,
    broker_error,
    explain,
    is_fenced,
    kafka_error,
)
from headrace.client.positions import Offsets, Positions, offsets_of
from headrace.client.record import Record, TopicPartition, from_librdkafka, from_message, to_librdkafka
from headrace.client.serializers import Serializer, as_deserializer

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

OnAssign = Callable[[Collection[TopicPartition]], Offsets | None]
"""Called with newly assigned partitions; may return offsets to start from instead of the committed ones."""
OnRevoke = Callable[[Collection[TopicPartition]], None]
OnCommit = Callable[[Offsets, BrokerError | None], None]

_PAUSE_BETWEEN_TRIES = 0.1
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


class Consumer(Generic[K, V]):
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
        self.settings = consumer_settings(config, settings, delivery)
        self._decode_key = as_deserializer(key_deserializer)
        self._decode_value = as_deserializer(value_deserializer)
        self._user_on_commit = on_commit
        self._positions = Positions()
        self._assigned: set[TopicPartition] = set()
        self._just_gone: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._waiting_error: KafkaError | None = None
        self._callback_error: Exception | None = None
        self.ended: set[TopicPartition] = set()
        """With enable.partition.eof: partitions whose end has been reached at least once."""
        self._closed = False
        try:
            self.librdkafka = confluent_kafka.Consumer(
                {"error_cb": log_error, **self.settings.librdkafka, "on_commit": self._on_commit}
            )
        except KafkaException as error:
            raise config_error(error) from error

    # What to read

    def subscribe(
        self,
        *topics: str,
        pattern: str | None = None,
        on_assign: OnAssign | None = None,
        on_revoke: OnRevoke | None = None,
        on_lost: OnRevoke | None = None,
    ) -> None:
        """Share topics, or all topics whose name matches ``pattern``, with the other members of the group.

        ``on_revoke`` runs while the partitions still belong to this member (commit there); ``on_lost`` when
        they already belong to another (by default it is the same as on_revoke).
        """
        if bool(topics) == (pattern is not None):
            raise ConfigError("subscribe either to topics or to a pattern")
        if pattern is not None:
            topics = (pattern if pattern.startswith("^") else f"^{pattern}",)

        def assigned(_: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
            gained = set(from_librdkafka(partitions))
            self._assigned |= gained
            starts = self._call_back(on_assign, gained) or {}
            for partition in partitions:
                partition.offset = starts.get(
                    TopicPartition(partition.topic, partition.partition), partition.offset
                )
            if self.settings.incremental:
                self.librdkafka.incremental_assign(partitions)
            else:
                self.librdkafka.assign(partitions)

        def revoked(_: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
            gone = set(from_librdkafka(partitions))
            self._call_back(on_revoke, gone)
            self._forget(gone)

        def lost(_: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
            gone = set(from_librdkafka(partitions))
            self._call_back(on_lost or on_revoke, gone)
            self._forget(gone)

        self.librdkafka.subscribe(list(topics), on_assign=assigned, on_revoke=revoked, on_lost=lost)

    def unsubscribe(self) -> None:
        self.librdkafka.unsubscribe()

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]] | Offsets) -> None:
        """Read exactly these partitions, without sharing; a mapping also says from which offsets."""
        starts = partitions if isinstance(partitions, Mapping) else dict.fromkeys(partitions, None)
        wanted = {TopicPartition(*partition): offset for partition, offset in starts.items()}
        self._forget(self._assigned - wanted.keys())
        self._assigned = set(wanted)
        self.librdkafka.assign(to_librdkafka(wanted))

    def assignment(self) -> set[TopicPartition]:
        return set(self._assigned)

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        try:
            found = self.librdkafka.list_topics(topic, timeout=self.settings.api_timeout).topics[topic]
        except KafkaException as error:
            raise broker_error(error, f"asking for the partitions of {topic}") from error
        if found.error is not None:
            raise broker_error(found.error, f"asking for the partitions of {topic}")
        return [TopicPartition(topic, number) for number in sorted(found.partitions)]

    # Reading

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
        self._raise_waiting()
        messages: list[Message] = []
        try:
            first = self.librdkafka.poll(timeout)
            # One poll may take a partition away, give it back and return its first record: that one counts.
            self._just_gone.clear()
            if first is not None:
                more = self.librdkafka.consume(max_records - 1, 0) if max_records > 1 else []
                # A rebalance during the second call may have taken away the partition of the first record.
                taken = (first.topic(), first.partition()) in self._just_gone
                messages = more if taken else [first, *more]
        except KafkaException as error:
            raise broker_error(error, "reading") from error
        except RuntimeError as error:
            raise ConfigError(f"the consumer cannot be read from: {error}") from None
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

    # Committing

    def commit(self, offsets: Offsets | Record[Any, Any] | Iterable[Record[Any, Any]] | None = None) -> None:
        """Commit and wait, retrying what may pass: everything returned so far, or records, or given offsets.

        An offset is that of the next record to read; a record commits everything up to and including itself.
        """
        wanted = self._to_commit(offsets)
        deadline = time.monotonic() + self.settings.api_timeout
        while wanted:
            try:
                done = self.librdkafka.commit(offsets=to_librdkafka(wanted), asynchronous=False)
                failed = next(
                    (partition.error for partition in done or [] if partition.error is not None), None
                )
            except KafkaException as error:
                failed = kafka_error(error)
            if failed is None:
                self._positions.committed(wanted)
                return
            if not failed.retriable() or time.monotonic() >= deadline:
                raise _commit_error(failed)
            time.sleep(_PAUSE_BETWEEN_TRIES)

    def commit_async(
        self, offsets: Offsets | Record[Any, Any] | Iterable[Record[Any, Any]] | None = None
    ) -> None:
        """Commit without waiting or retrying; ``on_commit`` hears the outcome in a later poll."""
        wanted = self._to_commit(offsets)
        if wanted:
            try:
                self.librdkafka.commit(offsets=to_librdkafka(wanted), asynchronous=True)
            except KafkaException as error:
                raise _commit_error(kafka_error(error)) from error
            self._positions.committed(wanted)

    def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, int | None]:
        """The group's committed offsets, None where there is none; by default of the assignment."""
        self._need_group()
        asked = to_librdkafka(dict.fromkeys(partitions or self._assigned))
        try:
            found = from_librdkafka(self.librdkafka.committed(asked, timeout=self.settings.api_timeout))
        except KafkaException as error:
            raise broker_error(error, "asking for committed offsets") from error
        return {partition: offset if offset >= 0 else None for partition, offset in found.items()}

    # Where to read

    def position(self, partition: TopicPartition) -> int | None:
        """The offset the next record will have at least; None until it is known."""
        offset = self.librdkafka.position(to_librdkafka({partition: None}))[0].offset
        return offset if offset >= 0 else None

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.fetch_from(partition, offset)
        self._positions.moved(partition)

    def fetch_from(self, partition: TopicPartition, offset: int) -> None:
        """As seek, but what was returned before stays to be committed."""
        self._check_assigned(partition)
        deadline = time.monotonic() + self.settings.api_timeout
        while True:
            try:
                self.librdkafka.seek(confluent_kafka.TopicPartition(*partition, offset))
                return
            except KafkaException as error:
                # librdkafka refuses to seek in a partition whose fetching has not begun yet.
                if kafka_error(error).code() != KafkaError._STATE or time.monotonic() >= deadline:
                    raise broker_error(error, f"seeking in {partition}") from error
                time.sleep(0.01)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        for partition in partitions or self.assignment():
            self.seek(partition, OFFSET_BEGINNING)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        for partition in partitions or self.assignment():
            self.seek(partition, OFFSET_END)

    def seek_to_time(self, when: datetime | int, *partitions: TopicPartition) -> None:
        """To the first record whose timestamp is not before ``when`` (a datetime or milliseconds)."""
        for partition, offset in self.offsets_for_time(when, *partitions).items():
            self.seek(partition, offset)

    def offsets_for_time(
        self, when: datetime | int, *partitions: TopicPartition
    ) -> dict[TopicPartition, int]:
        millis = int(when.timestamp() * 1000) if isinstance(when, datetime) else when
        asked = to_librdkafka(dict.fromkeys(partitions or self._assigned, millis))
        try:
            return from_librdkafka(
                self.librdkafka.offsets_for_times(asked, timeout=self.settings.api_timeout)
            )
        except KafkaException as error:
            raise broker_error(error, "asking for offsets by time") from error

    def range_of(self, partition: TopicPartition) -> tuple[int, int]:
        """The first offset and the offset after the last record a consumer can see now."""
        try:
            there = confluent_kafka.TopicPartition(*partition)
            return self.librdkafka.get_watermark_offsets(there, timeout=self.settings.api_timeout)
        except KafkaException as error:
            raise broker_error(error, f"asking for the offsets of {partition}") from error

    def pause(self, *partitions: TopicPartition) -> None:
        """Return nothing from these partitions until ``resume``; the membership in the group stays."""
        for partition in partitions:
            self._check_assigned(partition)
        self.librdkafka.pause(to_librdkafka(dict.fromkeys(partitions)))
        self._paused.update(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self.librdkafka.resume(to_librdkafka(dict.fromkeys(self._assigned & set(partitions))))
        self._paused.difference_update(partitions)

    def paused(self) -> set[TopicPartition]:
        return set(self._paused)

    # Transactions: called by the producer's transaction

    def check_transactional(self) -> None:
        self._need_group()
        if self.settings.auto_commit or self.settings.commit_first:
            raise ConfigError(
                "a consumer inside a transaction must leave committing to it: make it with "
                "delivery='exactly_once'"
            )

    def transaction_offsets(self) -> tuple[list[confluent_kafka.TopicPartition], object]:
        if self._positions.lost:
            names = ", ".join(sorted(map(str, self._positions.lost)))
            raise TransactionAborted(
                f"the transaction is rolled back: {names} went to another member of the group while records "
                f"from "
                "there were being processed; the new owner processes them",
                KafkaError.ILLEGAL_GENERATION,
                retriable=True,
            )
        return to_librdkafka(self._positions.uncommitted()), self.librdkafka.consumer_group_metadata()

    def transaction_ended(self, *, committed: bool) -> None:
        if not committed:
            self.rewind()
        self._positions.clear()

    def uncommitted(self) -> dict[TopicPartition, int]:
        """The first record of each partition that was returned and not committed."""
        return self._positions.starts()

    def rewind(self) -> None:
        """Go back, in every partition, to the first record that was returned and not committed."""
        for partition, offset in self._positions.starts().items():
            self.seek(partition, offset)

    # The end

    def close(self, *, handled: bool = True) -> None:
        """Leave the group. With auto commit, what was returned is committed unless ``handled`` is False."""
        if self._closed:
            return
        self._closed = True
        if handled:
            self.mark_handled()
        self.librdkafka.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(handled=error is None)

    def _to_commit(
        self, offsets: Offsets | Record[Any, Any] | Iterable[Record[Any, Any]] | None
    ) -> dict[TopicPartition, int]:
        self._need_group()
        return self._positions.uncommitted() if offsets is None else offsets_of(offsets)

    def _forget(self, gone: Collection[TopicPartition]) -> None:
        self._positions.gone(gone)
        self._just_gone.update(gone)
        self._assigned.difference_update(gone)
        self._paused.difference_update(gone)

    def _call_back(
        self, callback: Callable[[Collection[TopicPartition]], Any] | None, about: set[TopicPartition]
    ) -> Any:
        """Run a rebalance callback; what it raises cannot pass librdkafka, so the next poll raises it."""
        if callback is None:
            return None
        try:
            return callback(about)
        except Exception as error:
            self._callback_error = error
            return None

    def _on_commit(self, error: KafkaError | None, partitions: list[confluent_kafka.TopicPartition]) -> None:
        failed = error or next((each.error for each in partitions if each.error is not None), None)
        failure = None if failed is None or failed.code() == KafkaError._NO_OFFSET else _commit_error(failed)
        if self._user_on_commit is not None:
            self._user_on_commit(from_librdkafka(partitions), failure)
        elif failure is not None:
            log.warning("%s", failure)

    def _raise_waiting(self) -> None:
        callback_error, self._callback_error = self._callback_error, None
        if callback_error is not None:
            raise callback_error
        error, self._waiting_error = self._waiting_error, None
        if error is not None:
            raise broker_error(error, "reading")

    def _check_assigned(self, partition: TopicPartition) -> None:
        if partition not in self._assigned:
            raise ConfigError(f"{partition} is not assigned to this consumer")

    def _need_group(self) -> None:
        if self.settings.group_id is None:
            raise ConfigError("this consumer has no group and cannot commit: give it group_id=")


def _commit_error(error: KafkaError) -> BrokerError:
    kind = FencedError if is_fenced(error) else CommitError
    return kind(f"committing offsets failed: {explain(error)}", error.code(), retriable=error.retriable())
