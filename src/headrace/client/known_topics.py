"""What a producer knows of its topics: how many partitions each has, asked for when needed and kept for a while."""

from __future__ import annotations

import time

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from headrace.client.config import ProducerSettings
from headrace.client.errors import DeliveryError, broker_error, explain, is_retriable, kafka_error

_BETWEEN_TRIES = 0.1
_COMING = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError._UNKNOWN_TOPIC,
    }
)
"""What a broker says about a topic that it may be about to create."""


class KnownTopics:
    def __init__(self, librdkafka: confluent_kafka.Producer, settings: ProducerSettings) -> None:
        self._librdkafka = librdkafka
        self._settings = settings
        self._partitions: dict[str, tuple[int, float]] = {}  # how many, and until when that is believed

    def is_fresh(self, topic: str) -> bool:
        return self._partitions.get(topic, (0, 0.0))[1] > time.monotonic()

    def must_be_asked_for(self, topic: str) -> bool:
        """Whether a caller that waits for the acknowledgement calls ``partition_count`` first.

        As in Java's client max.block.ms bounds the wait for the first word about a topic. The wait for what was sent
        to a known one, or a shorter delivery.timeout.ms, librdkafka sees to.
        """
        return topic not in self._partitions and self._settings.max_block < self._settings.delivery_timeout

    def partition_count(self, topic: str) -> int:
        """Waits max.block.ms for the answer."""
        return self._partitions[topic][0] if self.is_fresh(topic) else self._ask(topic)

    def _ask(self, topic: str) -> int:
        deadline = time.monotonic() + self._settings.max_block
        while True:
            try:
                found = self._librdkafka.list_topics(
                    topic, timeout=max(0.1, deadline - time.monotonic())
                ).topics[topic]
                problem = found.error
            except KafkaException as error:
                problem = kafka_error(error)
            if problem is None:
                until = time.monotonic() + self._settings.metadata_max_age
                self._partitions[topic] = len(found.partitions), until
                return len(found.partitions)
            if problem.code() not in _COMING and not is_retriable(problem):
                raise broker_error(problem, f"asking for the partitions of {topic}")
            if time.monotonic() >= deadline:
                raise DeliveryError(
                    f"a record for {topic} was not sent: nobody knew the topic within {self._settings.max_block:g} s "
                    f"(max.block.ms): {explain(problem)}",
                    problem.code(),
                    retriable=True,
                )
            time.sleep(_BETWEEN_TRIES)
