"""All partitions this broker holds a replica of, kept in line with the cluster's image.

Lookups come by the bytes a request carries (a name or a 16-byte id), so that the hot path converts nothing.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import islice
from typing import Protocol

from headrace.clock import Clock
from headrace.server.cluster.image import MetadataImage, Topic
from headrace.server.cluster.image import Partition as PartitionState
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.topic import TopicConfig
from headrace.server.log.config import LogConfig
from headrace.server.log.flusher import GroupFlusher
from headrace.server.log.manager import LogManager
from headrace.server.log.partition import PartitionLog
from headrace.server.replica.partition import Partition
from headrace.server.replica.replication import Replication
from headrace.server.replica.traffic import BrokerTraffic
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.frames import Endpoint

log = logging.getLogger(__name__)

NEW_LOGS_AT_ONCE = 100
"""How many logs are created as soon as they appear in the image."""

NEW_LOGS_A_TURN = 20
"""How many of the rest are created in one turn of the loop: creating files takes long, and the broker must keep serving and
pinging."""


class LeadershipListener(Protocol):
    """A coordinator that runs on the leader of a partition."""

    def elected(self, partition: Partition) -> None: ...

    def resigned(self, partition: Partition) -> None: ...


class Replicas:
    def __init__(
        self,
        broker_id: int,
        logs: LogManager,
        config: BrokerConfig,
        flusher: GroupFlusher,
        clock: Clock,
        replication: Replication | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.image = MetadataImage()
        self._logs = logs
        self._config = config
        self._flusher = flusher
        self._clock = clock
        self._by_name: dict[bytes, dict[int, Partition]] = {}
        self._by_id: dict[bytes, dict[int, Partition]] = {}
        self._unmade: dict[tuple[uuid.UUID, int], None] = {}
        """Partitions whose logs are still to be made, in order."""
        self._made = 0
        self._listeners: dict[str, LeadershipListener] = {}
        self.replication = replication
        self.traffic = BrokerTraffic()

    def listen(self, topic: str, listener: LeadershipListener) -> None:
        """Notify `listener` of every partition of `topic` this broker starts or stops leading."""
        self._listeners[topic] = listener
        for partition in self._by_name.get(topic.encode(), {}).values():
            if partition.is_leader:
                listener.elected(partition)

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            yield from partitions.values()

    def close(self) -> None:
        """The broker stops: make no more logs."""
        self._unmade.clear()

    # Lookups.

    def find(self, topic: bytes, index: int, by_id: bool) -> Partition:
        held = (self._by_id if by_id else self._by_name).get(topic)
        if held is not None:
            partition = held.get(index)
            if partition is not None:
                return partition
        raise self._missing(topic, index, by_id)

    def _missing(self, topic: bytes, index: int, by_id: bool) -> KafkaError:
        known = self._known(topic, by_id)
        if known is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return KafkaError(code, "this topic does not exist")
        if known.partition(index) is None:
            text = f"{known.name} has no partition {index}"
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        if (known.id, index) in self._unmade:
            text = f"the log of {known.name}-{index} is being made"
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker has no replica of {known.name}-{index}"
        )

    def _known(self, topic: bytes, by_id: bool) -> Topic | None:
        if by_id:
            return self.image.topics_by_id.get(uuid.UUID(bytes=topic))
        return self.image.topics.get(topic.decode("utf-8", "replace"))

    def name_of(self, topic: bytes, by_id: bool) -> str | None:
        """The name of a topic that a request names by id or name; None for an unknown id."""
        if not by_id:
            return topic.decode("utf-8", "replace")
        known = self._known(topic, by_id)
        return known.name if known is not None else None

    def current_leader(self, topic: bytes, index: int, by_id: bool) -> tuple[int, int] | None:
        known = self._known(topic, by_id)
        state = known.partition(index) if known is not None else None
        return (state.leader, state.leader_epoch) if state is not None else None

    def endpoints(self, broker_ids: Collection[int], listener: str) -> list[Endpoint]:
        found = []
        for broker_id in broker_ids:
            broker = self.image.brokers.get(broker_id)
            endpoint = broker.endpoint(listener) if broker is not None else None
            if broker is not None and endpoint is not None:
                found.append((broker_id, endpoint.host, endpoint.port, broker.rack))
        return found

    # Following the image.

    def configure(self, config: BrokerConfig) -> None:
        """Broker-wide defaults changed; every topic without its own value takes them."""
        self._config = config
        if self.replication is not None:
            self.replication.limit(
                config.integer("leader.replication.throttled.rate"),
                config.integer("follower.replication.throttled.rate"),
            )
        for topic in self.image.topics.values():
            self._configure_topic(self.image, topic)

    def apply(self, image: MetadataImage) -> None:
        """Bring the replicas on this broker in line with `image`."""
        old, self.image = self.image, image
        self._made = 0
        for topic_id, topic in old.topics_by_id.items():
            if topic_id not in image.topics_by_id:
                self._remove_topic(topic)
                self.traffic.forget(topic.name)
        for topic in image.topics.values():
            try:
                if old.topics_by_id.get(topic.id) is not topic:
                    self._update_topic(image, topic)
                elif old.topic_configs(topic.name) is not image.topic_configs(topic.name):
                    self._configure_topic(image, topic)
                elif old.mirrored is not image.mirrored and _read_only(old, topic) != _read_only(
                    image, topic
                ):
                    self._update_topic(image, topic)
            except Exception:
                # The others would not be updated before their next change.
                log.exception("%s could not be updated from the cluster's metadata", topic.name)

    def _update_topic(self, image: MetadataImage, topic: Topic) -> None:
        config, log_config = self._settings(image, topic)
        mirrored = _read_only(image, topic)
        for index, state in enumerate(topic.partitions):
            held = self._by_id.get(topic.id.bytes, {}).get(index)
            if self.broker_id not in state.replicas:
                if held is not None:
                    self._drop(held)
                continue
            if held is not None:
                held.mirrored = mirrored
                held.configure(config, log_config)
                self._assign(held, state)
            elif not self._is_put_off(topic, index):
                self._open(topic, index, config, log_config, state)

    def _is_put_off(self, topic: Topic, index: int) -> bool:
        """Whether the partition's log is created later, because there are too many to create now."""
        key = (topic.id, index)
        if key in self._unmade:
            return True
        if self._logs.get(topic.name, index) is not None:
            return False
        self._made += 1
        if self._made <= NEW_LOGS_AT_ONCE:
            return False
        if not self._unmade:
            self._clock.call_later(0, self._make_some)
        self._unmade[key] = None
        return True

    def _make_some(self) -> None:
        try:
            for key in list(islice(self._unmade, NEW_LOGS_A_TURN)):
                del self._unmade[key]
                topic = self.image.topics_by_id.get(key[0])
                state = topic.partition(key[1]) if topic is not None else None
                if topic is not None and state is not None and self.broker_id in state.replicas:
                    self._open(topic, key[1], *self._settings(self.image, topic), state)
        finally:
            if self._unmade:
                self._clock.call_later(0, self._make_some)

    def _settings(self, image: MetadataImage, topic: Topic) -> tuple[TopicConfig, LogConfig]:
        config = self._config.topic_config(image.topic_configs(topic.name))
        log_config = LogConfig.of(config)
        if _read_only(image, topic):
            # What the source still has must not go here; its log start says what may.
            log_config = replace(log_config, retention_ms=-1, retention_bytes=-1)
        return config, log_config

    def _open(
        self, topic: Topic, index: int, config: TopicConfig, log_config: LogConfig, state: PartitionState
    ) -> None:
        opened = self._log_of(topic, index, log_config)
        traffic = self.traffic.of(topic.name)
        partition = Partition(topic.name, topic.id, index, opened, config, log_config, self._flusher, traffic)
        partition.mirrored = _read_only(self.image, topic)
        self._by_name.setdefault(topic.name.encode(), {})[index] = partition
        self._by_id.setdefault(topic.id.bytes, {})[index] = partition
        self._assign(partition, state)

    def _log_of(self, topic: Topic, index: int, config: LogConfig) -> PartitionLog:
        """The log on disk, or one that is offline. A log left over from a deleted topic of the same name is removed."""
        known = self._logs.get(topic.name, index)
        if known is not None:
            try:
                if self._logs.topic_id_of(known) not in (None, topic.id):
                    self._logs.delete(topic.name, index)
            except OSError as error:
                known.take_offline(f"its topic id cannot be read: {error}")
            except KafkaError as error:
                log.error("%s", error.message)  # It is removed when the new one is created.
        return self._logs.create(topic.name, index, config, topic.id)

    def _assign(self, partition: Partition, state: PartitionState) -> None:
        led_epoch = partition.leader_epoch if partition.is_leader else None
        try:
            partition.take_role(state, self.broker_id, self._clock.monotonic())
        except KafkaError as error:
            # It has its role and answers with that error. The others must get their roles too.
            _log_fails(partition, error)
        if self.replication is not None:
            self.replication.assign(partition)
        listener = self._listeners.get(partition.topic)
        if listener is None:
            return
        if led_epoch is not None and (not partition.is_leader or partition.leader_epoch != led_epoch):
            listener.resigned(partition)
        if partition.is_leader and partition.leader_epoch != led_epoch:
            listener.elected(partition)

    # Logs that failed and come back.

    def reopening(self, log: PartitionLog) -> bool:
        """Forget what depends on records that recovery may not find: requests that wait for them, a coordinator's state.

        False while other replicas rely on this one having everything, or in a leader epoch of which it may have lost
        records.
        """
        partition = self._holder(log)
        if partition is None:
            return True
        partition.log_failed()
        listener = self._listeners.get(partition.topic)
        if listener is not None and partition.is_leader:
            listener.resigned(partition)
        return not self._others_rely_on(partition) and not partition.needs_new_term

    def _others_rely_on(self, partition: Partition) -> bool:
        """Whether other in-sync replicas lead or could lead: this one must not come back with less than it confirmed."""
        if partition.leadership is not None:
            counted = partition.leadership.maximal_isr
        else:
            state = self.image.partition(partition.topic, partition.index)
            counted = frozenset(state.isr) if state is not None else frozenset()
        return self.broker_id in counted and len(counted) > 1

    def reopened(self, log: PartitionLog) -> None:
        partition = self._holder(log)
        if partition is None:
            return
        try:
            partition.log_returned()
        except KafkaError as error:
            _log_fails(partition, error)
        listener = self._listeners.get(partition.topic)
        if listener is not None and partition.is_leader:
            listener.elected(partition)

    def _holder(self, log: PartitionLog) -> Partition | None:
        partition = self._by_name.get(log.topic.encode(), {}).get(log.partition)
        return partition if partition is not None and partition.log is log else None

    def _configure_topic(self, image: MetadataImage, topic: Topic) -> None:
        held = self._by_id.get(topic.id.bytes)
        if held:
            config, log_config = self._settings(image, topic)
            for partition in held.values():
                partition.configure(config, log_config)

    def _remove_topic(self, topic: Topic) -> None:
        for partition in list(self._by_id.get(topic.id.bytes, {}).values()):
            self._drop(partition)

    def _drop(self, partition: Partition) -> None:
        """This broker no longer holds the partition: answer waiting requests, and delete the files in the background."""
        led = partition.is_leader
        for table, key in (
            (self._by_name, partition.topic.encode()),
            (self._by_id, partition.topic_id.bytes),
        ):
            held = table.get(key, {})
            if held.get(partition.index) is partition:
                del held[partition.index]
                if not held:
                    del table[key]
        if self.replication is not None:
            self.replication.drop(partition)
        partition.close()
        listener = self._listeners.get(partition.topic)
        if led and listener is not None:
            listener.resigned(partition)
        try:
            self._logs.delete(partition.topic, partition.index)
        except KafkaError as error:
            log.error("the files of %s could not be removed: %s", partition, error)


def _read_only(image: MetadataImage, topic: Topic) -> bool:
    """Whether the topic is a mirror that was not failed over."""
    mirrored = image.mirrored.get(topic.id)
    return mirrored is not None and mirrored.read_only


def _log_fails(partition: Partition, error: KafkaError) -> None:
    log.error("%s has a failed log: %s", partition, error)
