"""Which partitions a consumer reads: subscribed, assigned, paused, taken away."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import confluent_kafka
from confluent_kafka import KafkaException

from headrace.client.callbacks import Callbacks, OnAssign, OnRevoke
from headrace.client.config import ConsumerSettings
from headrace.client.errors import ConfigError, broker_error
from headrace.client.positions import Offsets, Positions
from headrace.client.record import TopicPartition, from_librdkafka, to_librdkafka


class Assignment:
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
        self.partitions: set[TopicPartition] = set()
        self.just_gone: set[TopicPartition] = set()
        """Partitions taken away since a read last cleared this."""
        self.paused: set[TopicPartition] = set()

    def subscribe(
        self,
        topics: tuple[str, ...],
        on_assign: OnAssign | None,
        on_revoke: OnRevoke | None,
        on_lost: OnRevoke | None,
    ) -> None:
        """Have the group assign partitions of these topics."""

        def assigned(_: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
            gained = set(from_librdkafka(partitions))
            self.partitions |= gained
            starts = self._callbacks.rebalance(on_assign, gained) or {}
            for partition in partitions:
                partition.offset = starts.get(
                    TopicPartition(partition.topic, partition.partition), partition.offset
                )
            if self._settings.incremental:
                self._librdkafka.incremental_assign(partitions)
            else:
                self._librdkafka.assign(partitions)

        def revoked(_: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
            gone = set(from_librdkafka(partitions))
            self._callbacks.rebalance(on_revoke, gone)
            self._forget(gone)

        def lost(_: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
            gone = set(from_librdkafka(partitions))
            self._callbacks.rebalance(on_lost or on_revoke, gone)
            self._forget(gone)

        try:
            self._librdkafka.subscribe(list(topics), on_assign=assigned, on_revoke=revoked, on_lost=lost)
        except KafkaException as error:
            raise broker_error(error, f"subscribing to {', '.join(topics)}") from error

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]] | Offsets) -> None:
        starts = partitions if isinstance(partitions, Mapping) else dict.fromkeys(partitions, None)
        wanted = {TopicPartition(*partition): offset for partition, offset in starts.items()}
        self._forget(self.partitions - wanted.keys())
        self.partitions = set(wanted)
        self._librdkafka.assign(to_librdkafka(wanted))

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self.check(partition)
        self._librdkafka.pause(to_librdkafka(dict.fromkeys(partitions)))
        self.paused.update(partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        self._librdkafka.resume(to_librdkafka(dict.fromkeys(self.partitions & set(partitions))))
        self.paused.difference_update(partitions)

    def check(self, partition: TopicPartition) -> None:
        if partition not in self.partitions:
            raise ConfigError(f"{partition} is not assigned to this consumer")

    def _forget(self, gone: Collection[TopicPartition]) -> None:
        self._positions.gone(gone)
        self.just_gone.update(gone)
        self.partitions.difference_update(gone)
        self.paused.difference_update(gone)
