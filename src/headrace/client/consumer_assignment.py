"""Which partitions a consumer reads: subscribed, assigned, paused, taken away. Owns the librdkafka consumer.

What a callback raises cannot pass librdkafka, which would drop a record with it; it is kept, and raised by the read.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from headrace.client.config import ConsumerSettings, config_error, log_error
from headrace.client.errors import ConfigError, broker_error
from headrace.client.positions import Offsets, Positions
from headrace.client.record import TopicPartition, from_librdkafka, to_librdkafka

OnAssign = Callable[[Collection[TopicPartition]], Offsets | None]
"""Called with newly assigned partitions; may return offsets to start from instead of the committed ones."""
OnRevoke = Callable[[Collection[TopicPartition]], None]


class AssignedConsumer(ABC):
    """A consumer as far as its partitions go; ``Consumer`` adds reading and committing."""

    def __init__(self, settings: ConsumerSettings) -> None:
        self.settings = settings
        self._positions = Positions()
        self._assigned: set[TopicPartition] = set()
        self._just_gone: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._callback_error: Exception | None = None
        self._rebalancing: int | None = None
        """The thread in which a rebalance callback runs now."""
        self._chosen = False
        try:
            self.librdkafka = confluent_kafka.Consumer(
                {"error_cb": log_error, **settings.librdkafka, "on_commit": self._on_commit}
            )
        except (KafkaException, TypeError, ValueError) as error:
            raise config_error(error) from error

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

        self._chosen = True
        try:
            self.librdkafka.subscribe(list(topics), on_assign=assigned, on_revoke=revoked, on_lost=lost)
        except KafkaException as error:
            raise broker_error(error, f"subscribing to {', '.join(topics)}") from error

    def unsubscribe(self) -> None:
        self.librdkafka.unsubscribe()

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]] | Offsets) -> None:
        """Read exactly these partitions, without sharing; a mapping also says from which offsets."""
        self._chosen = True
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

    def _forget(self, gone: Collection[TopicPartition]) -> None:
        self._positions.gone(gone)
        self._just_gone.update(gone)
        self._assigned.difference_update(gone)
        self._paused.difference_update(gone)

    def _call_back(
        self, callback: Callable[[Collection[TopicPartition]], Any] | None, about: set[TopicPartition]
    ) -> Any:
        """Run a rebalance callback; what it raises cannot pass librdkafka, so the poll raises it."""
        if callback is None:
            return None
        self._rebalancing = threading.get_ident()
        try:
            return callback(about)
        except Exception as error:
            self._callback_error = error
            return None
        finally:
            self._rebalancing = None

    @abstractmethod
    def _on_commit(self, error: KafkaError | None, partitions: list[confluent_kafka.TopicPartition]) -> None:
        """librdkafka's word about a commit that nobody waits for."""

    def _check_assigned(self, partition: TopicPartition) -> None:
        if partition not in self._assigned:
            raise ConfigError(f"{partition} is not assigned to this consumer")
