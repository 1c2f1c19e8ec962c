"""Committing a group's offsets, and asking for those that are committed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from headrace.client.callbacks import Callbacks
from headrace.client.config import ConsumerSettings
from headrace.client.errors import ConfigError, broker_error, commit_error, is_retriable, kafka_error
from headrace.client.positions import Offsets, Positions, offsets_of
from headrace.client.record import Record, TopicPartition, from_librdkafka, to_librdkafka

Committable = Offsets | Record[Any, Any] | Iterable[Record[Any, Any]] | None
"""What a program may ask to commit: offsets, records, or (None) everything returned so far."""

_PAUSE_BETWEEN_TRIES = 0.1


class Commits:
    def __init__(
        self,
        librdkafka: confluent_kafka.Consumer,
        settings: ConsumerSettings,
        positions: Positions,
        callbacks: Callbacks,
    ) -> None:
        self._librdkafka = librdkafka
        self._settings = settings
        self._positions = positions
        self._callbacks = callbacks

    def commit(self, offsets: Committable, timeout: float | None) -> None:
        """Commit and wait, retrying what may pass."""
        wanted = self._to_commit(offsets)
        deadline = time.monotonic() + (self._settings.api_timeout if timeout is None else timeout)
        while wanted:
            failed = self._try_to_commit(wanted, deadline)
            if failed is None:
                self._positions.committed(wanted)
                return
            if not is_retriable(failed) or time.monotonic() >= deadline:
                raise commit_error(failed)
            time.sleep(_PAUSE_BETWEEN_TRIES)

    def _try_to_commit(self, wanted: Offsets, deadline: float) -> KafkaError | None:
        """Commit in a thread of its own: librdkafka's own wait for a cluster that is gone has no limit to set.

        During a rebalance callback librdkafka takes a commit from the callback's own thread only.
        """
        outcome: Future[list[confluent_kafka.TopicPartition] | None] = Future()

        def commit() -> None:
            try:
                outcome.set_result(self._librdkafka.commit(offsets=to_librdkafka(wanted), asynchronous=False))
            except BaseException as error:
                outcome.set_exception(error)

        if self._callbacks.is_rebalancing_here:
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

    def commit_async(self, offsets: Committable) -> None:
        """Commit without waiting or retrying."""
        wanted = self._to_commit(offsets)
        if wanted:
            try:
                self._librdkafka.commit(offsets=to_librdkafka(wanted), asynchronous=True)
            except KafkaException as error:
                raise commit_error(kafka_error(error)) from error
            self._positions.committed(wanted)

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """The group's committed offsets, None where there is none."""
        self.need_group()
        asked = to_librdkafka(dict.fromkeys(partitions))
        try:
            found = from_librdkafka(self._librdkafka.committed(asked, timeout=self._settings.api_timeout))
        except KafkaException as error:
            raise broker_error(error, "asking for committed offsets") from error
        return {partition: offset if offset >= 0 else None for partition, offset in found.items()}

    def need_group(self) -> None:
        if self._settings.group_id is None:
            raise ConfigError("this consumer has no group and cannot commit: give it group_id=")

    def _to_commit(self, offsets: Committable) -> dict[TopicPartition, int]:
        self.need_group()
        return self._positions.uncommitted() if offsets is None else offsets_of(offsets)
