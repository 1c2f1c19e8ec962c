"""Where a consumer reads next: asking for it, moving it, and finding offsets to move to."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from headrace.client.assignment import Assignment
from headrace.client.config import ConsumerSettings
from headrace.client.errors import broker_error, kafka_error
from headrace.client.positions import Positions
from headrace.client.record import TopicPartition, from_librdkafka, to_librdkafka


class Seeking:
    def __init__(
        self,
        librdkafka: confluent_kafka.Consumer,
        settings: ConsumerSettings,
        positions: Positions,
        assignment: Assignment,
    ) -> None:
        self._librdkafka = librdkafka
        self._settings = settings
        self._positions = positions
        self._assignment = assignment

    def position(self, partition: TopicPartition) -> int | None:
        try:
            offset = self._librdkafka.position(to_librdkafka({partition: None}))[0].offset
        except KafkaException as error:
            raise broker_error(error, f"asking for the position in {partition}") from error
        return offset if offset >= 0 else None

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.fetch_from(partition, offset)
        self._positions.moved(partition)

    def fetch_from(self, partition: TopicPartition, offset: int) -> None:
        """As seek, but what was returned before stays to be committed."""
        self._assignment.check(partition)
        deadline = time.monotonic() + self._settings.api_timeout
        while True:
            try:
                self._librdkafka.seek(confluent_kafka.TopicPartition(*partition, offset))
                return
            except KafkaException as error:
                # librdkafka refuses to seek in a partition whose fetching has not begun yet.
                if kafka_error(error).code() != KafkaError._STATE or time.monotonic() >= deadline:
                    raise broker_error(error, f"seeking in {partition}") from error
                time.sleep(0.01)

    def rewind(self) -> None:
        """Go back, in every partition, to the first record that was returned and not committed."""
        for partition, offset in self._positions.starts().items():
            self.seek(partition, offset)

    def offsets_for_time(
        self, when: datetime | int, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        millis = int(when.timestamp() * 1000) if isinstance(when, datetime) else when
        asked = to_librdkafka(dict.fromkeys(partitions, millis))
        try:
            return from_librdkafka(
                self._librdkafka.offsets_for_times(asked, timeout=self._settings.api_timeout)
            )
        except KafkaException as error:
            raise broker_error(error, "asking for offsets by time") from error

    def range_of(self, partition: TopicPartition) -> tuple[int, int]:
        """The first offset and the offset after the last record a consumer can see now."""
        try:
            there = confluent_kafka.TopicPartition(*partition)
            return self._librdkafka.get_watermark_offsets(there, timeout=self._settings.api_timeout)
        except KafkaException as error:
            raise broker_error(error, f"asking for the offsets of {partition}") from error
