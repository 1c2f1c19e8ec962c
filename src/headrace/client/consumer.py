"""Reading records: subscribe or assign, poll, commit, seek. One thread uses a consumer.

A record counts as handled when the next poll begins (as in Kafka's Java client), so auto commit never
commits a record that the program has not come back from.

A Consumer is made of parts that each own one thing: the partitions it reads (``Assignment``), what it has returned and not
committed (``Positions``), commits (``Commits``), where it reads next (``Seeking``), and the program's callbacks (``Callbacks``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, Message

from headrace.client.assignment import Assignment
from headrace.client.callbacks import Callbacks, OnAssign, OnCommit, OnRevoke
from headrace.client.commits import Commits, Committable
from headrace.client.config import Config, Delivery, config_error, consumer_settings, log, log_error
from headrace.client.consumer_states import TRANSITIONS, Event, State
from headrace.client.errors import (
    BrokerError,
    ConfigError,
    TransactionAborted,
    broker_error,
    explain,
    kafka_error,
)
from headrace.client.positions import Offsets, Positions
from headrace.client.record import Record, TopicPartition, from_message, to_librdkafka
from headrace.client.seeking import Seeking
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
        self._callbacks = Callbacks(on_commit)
        try:
            self.librdkafka = confluent_kafka.Consumer(
                {"error_cb": log_error, **self.settings.librdkafka, "on_commit": self._callbacks.committed}
            )
        except (KafkaException, TypeError, ValueError) as error:
            raise config_error(error, self.settings.librdkafka) from error
        self._positions = Positions()
        self._assignment = Assignment(self.librdkafka, self.settings, self._positions, self._callbacks)
        self._commits = Commits(self.librdkafka, self.settings, self._positions, self._callbacks)
        self._seeking = Seeking(self.librdkafka, self.settings, self._positions, self._assignment)
        self._decode_key = as_deserializer(key_deserializer)
        self._decode_value = as_deserializer(value_deserializer)
        self._waiting_error: KafkaError | None = None
        self._in_doubt: dict[TopicPartition, int] = {}
        self._process = os.getpid()
        self.ended: set[TopicPartition] = set()
        """With enable.partition.eof: partitions whose end has been reached at least once."""
        self._state = State.NEW

    def _become(self, event: Event) -> None:
        self._state = TRANSITIONS[self._state][event]

    # What to read

    def subscribe(
        self,
        *topics: str,
        pattern: str | None = None,
        on_assign: OnAssign | None = None,
        on_revoke: OnRevoke | None = None,
        on_lost: OnRevoke | None = None,
    ) -> None:
        """Share topics, or all topics whose whole name matches ``pattern``, with the other members of the group.

        ``on_revoke`` runs while the partitions still belong to this member (commit there); ``on_lost`` when
        they already belong to another (by default it is the same as on_revoke).
        """
        if bool(topics) == (pattern is not None):
            raise ConfigError("subscribe either to topics or to a pattern")
        if pattern is not None:
            # Java matches the whole name, librdkafka any part of it.
            topics = (f"^({pattern})$",)
        self._become(Event.SUBSCRIBE)
        self._assignment.subscribe(topics, on_assign, on_revoke, on_lost)

    def unsubscribe(self) -> None:
        self.librdkafka.unsubscribe()
        self._become(Event.UNSUBSCRIBE)

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]] | Offsets) -> None:
        """Read exactly these partitions, without sharing; a mapping also says from which offsets."""
        self._become(Event.ASSIGN)
        self._assignment.assign(partitions)

    def assignment(self) -> set[TopicPartition]:
        return set(self._assignment.partitions)

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        try:
            found = self.librdkafka.list_topics(topic, timeout=self.settings.api_timeout).topics[topic]
        except KafkaException as error:
            raise broker_error(error, f"asking for the partitions of {topic}") from error
        if found.error is not None:
            raise broker_error(found.error, f"asking for the partitions of {topic}")
        return [TopicPartition(topic, number) for number in sorted(found.partitions)]

    def pause(self, *partitions: TopicPartition) -> None:
        """Return nothing from these partitions until ``resume``; the membership in the group stays."""
        self._assignment.pause(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._assignment.resume(partitions)

    def paused(self) -> set[TopicPartition]:
        return set(self._assignment.paused)

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
        while self._state is not State.CLOSED:
            yield from self.poll(max_records=1)

    def fetch(self, timeout: float, max_records: int) -> list[Record[K, V]]:
        """Records, without counting them as given to the program: ``hand_out`` does that."""
        self._check_process()
        if self._state is State.NEW:
            raise ConfigError("this consumer has nothing to read: call subscribe or assign first")
        self._raise_waiting()
        self._settle_doubt()
        messages: list[Message] = []
        try:
            first = self.librdkafka.poll(timeout)
            # One poll may take a partition away, give it back and return its first record: that one counts.
            self._assignment.just_gone.clear()
            if first is not None:
                try:
                    more = self.librdkafka.consume(min(max_records, _MOST) - 1, 0) if max_records > 1 else []
                except BaseException:
                    self._put_back([first])
                    raise
                # A rebalance during the second call may have taken away the partition of the first record.
                taken = (first.topic(), first.partition()) in self._assignment.just_gone
                messages = more if taken else [first, *more]
        except KafkaException as error:
            raise broker_error(error, "reading") from error
        except RuntimeError as error:
            raise ConfigError(f"the consumer cannot be read from: {error}") from None
        if self._callbacks.error is not None:
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

    # Committing

    def commit(self, offsets: Committable = None, *, timeout: float | None = None) -> None:
        """Commit and wait, retrying what may pass: everything returned so far, or records, or given offsets.

        An offset is that of the next record to read; a record commits everything up to and including itself.
        Raises CommitError after ``timeout`` seconds (default.api.timeout.ms); the offsets may be committed later, and
        ``close`` waits for that: while the cluster stays away, up to session.timeout.ms.
        """
        self._commits.commit(offsets, timeout)

    def commit_async(self, offsets: Committable = None) -> None:
        """Commit without waiting or retrying; ``on_commit`` gets the outcome in a later poll."""
        self._commits.commit_async(offsets)

    def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, int | None]:
        """The group's committed offsets, None where there is none; by default of the assignment."""
        return self._commits.committed(partitions or self._assignment.partitions)

    def uncommitted(self) -> dict[TopicPartition, int]:
        """The first record of each partition that was returned and not committed."""
        return self._positions.starts()

    # Where to read

    def position(self, partition: TopicPartition) -> int | None:
        """The offset the next record will have at least; None until it is known."""
        return self._seeking.position(partition)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._seeking.seek(partition, offset)

    def fetch_from(self, partition: TopicPartition, offset: int) -> None:
        """As seek, but what was returned before stays to be committed."""
        self._seeking.fetch_from(partition, offset)

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
        return self._seeking.offsets_for_time(when, partitions or self._assignment.partitions)

    def range_of(self, partition: TopicPartition) -> tuple[int, int]:
        """The first offset and the offset after the last record a consumer can see now."""
        return self._seeking.range_of(partition)

    def rewind(self) -> None:
        """Go back, in every partition, to the first record that was returned and not committed."""
        self._seeking.rewind()

    # Transactions: called by the producer's transaction

    def check_transactional(self) -> None:
        self._commits.need_group()
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
        """It is not known whether the transaction was committed; the group's offsets decide before the next read."""
        self._in_doubt.update(self._positions.starts())
        self._positions.clear()

    def _settle_doubt(self) -> None:
        doubtful = [partition for partition in self._in_doubt if partition in self._assignment.partitions]
        if doubtful:
            # Of read_committed consumers this waits until the broker has ended the transaction.
            for partition, offset in self.committed(*doubtful).items():
                self.seek(partition, self._in_doubt[partition] if offset is None else offset)
        self._in_doubt.clear()

    # The end

    def close(self, *, handled: bool = True) -> None:
        """Leave the group. With auto commit, what was returned is committed unless ``handled`` is False."""
        if self._state is State.CLOSED or os.getpid() != self._process:
            return
        self._become(Event.CLOSE)
        try:
            if handled:
                self.mark_handled()
        finally:
            self.librdkafka.close()
        if self._callbacks.error is not None:
            if handled:
                self._raise_waiting()
            log.error("a callback failed while the consumer was closed", exc_info=self._callbacks.error)

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
        for partition in first.keys() & self._assignment.partitions:
            self.fetch_from(partition, first[partition])

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise ConfigError(
                "the consumer was made before this process was forked and cannot read here: make one in each process"
            )

    def _raise_waiting(self) -> None:
        self._callbacks.raise_error()
        error, self._waiting_error = self._waiting_error, None
        if error is not None:
            raise broker_error(error, "reading")
