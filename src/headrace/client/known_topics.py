"""What a producer knows of its topics: how many partitions each has, asked for when needed and kept for a while."""

from __future__ import annotations

import time

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from headrace.client.config import ProducerSettings
from headrace.client.errors import DeliveryError, broker_error, explain, is_retriable, kafka_error

BETWEEN_TRIES = 0.1
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
        """Whether a caller that waits for the acknowledgement waits for the topic first.

        As in Java's client max.block.ms bounds the wait for the first answer about a topic. Afterwards, or when
        delivery.timeout.ms is shorter, librdkafka's own timeout applies.
        """
        return topic not in self._partitions and self._settings.max_block < self._settings.delivery_timeout

    def partition_count(self, topic: str) -> int:
        """Waits max.block.ms for the answer."""
        if not self.is_fresh(topic):
            deadline = time.monotonic() + self._settings.max_block
            heard: KafkaError | None = None
            while (problem := self.ask(topic, max(0.1, deadline - time.monotonic()))) is not None:
                heard = more_telling(heard, problem)
                if time.monotonic() >= deadline:
                    raise self.unknown(topic, heard)
                time.sleep(BETWEEN_TRIES)
        return self._partitions[topic][0]

    def ask(self, topic: str, timeout: float) -> KafkaError | None:
        """Ask a broker once; returns why the topic is not known yet, and raises when it is not worth asking again."""
        problem: KafkaError | None
        try:
            found = self._librdkafka.list_topics(topic, timeout=timeout).topics[topic]
            problem = found.error
        except KafkaException as error:
            problem = kafka_error(error)
        if problem is None:
            until = time.monotonic() + self._settings.metadata_max_age
            self._partitions[topic] = len(found.partitions), until
        elif problem.code() not in _COMING and not is_retriable(problem):
            raise broker_error(problem, f"asking for the partitions of {topic}")
        return problem

    def unknown(self, topic: str, problem: KafkaError | None) -> DeliveryError:
        """The error for a caller that has waited max.block.ms; without a problem there was no answer at all."""
        answered = problem is not None and problem.code() in _COMING
        happened = f"no broker {'knew' if answered else 'answered for'} topic {topic}"
        reason = "" if problem is None else f": {explain(problem)}"
        return DeliveryError(
            f"a record for {topic} was not sent: {happened} within {self._settings.max_block:g} s (max.block.ms){reason}",
            KafkaError._TIMED_OUT if problem is None else problem.code(),
            retriable=True,
        )


def more_telling(before: KafkaError | None, now: KafkaError) -> KafkaError:
    """A broker's answer that it does not know the topic says more than the silence after it."""
    return before if before is not None and before.code() in _COMING else now
