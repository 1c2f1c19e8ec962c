"""Where a consumer is in its partitions: committing, asking what is committed, seeking."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from datetime import datetime
from typing import Any

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException

from headrace.client.config import ConsumerSettings, log
from headrace.client.consumer_assignment import AssignedConsumer
from headrace.client.errors import (
    BrokerError,
    CommitError,
    ConfigError,
    FencedError,
    broker_error,
    explain,
    is_fenced,
    is_retriable,
    kafka_error,
)
from headrace.client.positions import Offsets, offsets_of
from headrace.client.record import Record, TopicPartition, from_librdkafka, to_librdkafka

OnCommit = Callable[[Offsets, BrokerError | None], None]

_PAUSE_BETWEEN_TRIES = 0.1


class PositionedConsumer(AssignedConsumer):
    """A consumer that knows its place; ``Consumer`` adds reading."""

    def __init__(self, settings: ConsumerSettings, on_commit: OnCommit | None) -> None:
        self._user_on_commit = on_commit
        super().__init__(settings)

    # Committing

    def commit(
        self,
        offsets: Offsets | Record[Any, Any] | Iterable[Record[Any, Any]] | None = None,
        *,
        timeout: float | None = None,
    ) -> None:
        """Commit and wait, retrying what may pass: everything returned so far, or records, or given offsets.

        An offset is that of the next record to read; a record commits everything up to and including itself.
        Raises CommitError after ``timeout`` seconds (default.api.timeout.ms); the offsets may be committed later, and
        ``close`` waits for that: while the cluster stays away, up to session.timeout.ms.
        """
        wanted = self._to_commit(offsets)
        deadline = time.monotonic() + (self.settings.api_timeout if timeout is None else timeout)
        while wanted:
            failed = self._try_to_commit(wanted, deadline)
            if failed is None:
                self._positions.committed(wanted)
                return
            if not is_retriable(failed) or time.monotonic() >= deadline:
                raise _commit_error(failed)
            time.sleep(_PAUSE_BETWEEN_TRIES)

    def _try_to_commit(self, wanted: Offsets, deadline: float) -> KafkaError | None:
        """Commit in a thread of its own: librdkafka's own wait for a cluster that is gone has no limit to set.

        During a rebalance callback librdkafka takes a commit from the callback's own thread only.
        """
        outcome: Future[list[confluent_kafka.TopicPartition] | None] = Future()

        def commit() -> None:
            try:
                outcome.set_result(self.librdkafka.commit(offsets=to_librdkafka(wanted), asynchronous=False))
            except BaseException as error:
                outcome.set_exception(error)

        if self._rebalancing == threading.get_ident():
            commit()
        else:
            threading.Thread(target=commit, name="headrace-commit", daemon=True).start()
        try:
            done = outcome.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            return KafkaError(KafkaError._TIMED_OUT, "no answer from the group's coordinator in time")
        except KafkaException as error:
            return kafka_error(error)
        return next((partition.error for partition in done or [] if partition.error is not None), None)

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
        try:
            offset = self.librdkafka.position(to_librdkafka({partition: None}))[0].offset
        except KafkaException as error:
            raise broker_error(error, f"asking for the position in {partition}") from error
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

    def uncommitted(self) -> dict[TopicPartition, int]:
        """The first record of each partition that was returned and not committed."""
        return self._positions.starts()

    def rewind(self) -> None:
        """Go back, in every partition, to the first record that was returned and not committed."""
        for partition, offset in self._positions.starts().items():
            self.seek(partition, offset)

    def _to_commit(
        self, offsets: Offsets | Record[Any, Any] | Iterable[Record[Any, Any]] | None
    ) -> dict[TopicPartition, int]:
        self._need_group()
        return self._positions.uncommitted() if offsets is None else offsets_of(offsets)

    def _on_commit(self, error: KafkaError | None, partitions: list[confluent_kafka.TopicPartition]) -> None:
        failed = error or next((each.error for each in partitions if each.error is not None), None)
        failure = None if failed is None or failed.code() == KafkaError._NO_OFFSET else _commit_error(failed)
        if self._user_on_commit is not None:
            try:
                self._user_on_commit(from_librdkafka(partitions), failure)
            except Exception as raised:
                self._callback_error = raised
        elif failure is not None:
            log.warning("%s", failure)

    def _need_group(self) -> None:
        if self.settings.group_id is None:
            raise ConfigError("this consumer has no group and cannot commit: give it group_id=")


def _commit_error(error: KafkaError) -> BrokerError:
    kind = FencedError if is_fenced(error) else CommitError
    return kind(f"committing offsets failed: {explain(error)}", error.code(), retriable=is_retriable(error))
