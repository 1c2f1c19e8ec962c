"""Topics, settings, groups and offsets of a cluster, with plain values in and out.

Every call waits for its answer and raises BrokerError with one sentence when the cluster refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, cast

import confluent_kafka
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package re-exports them untyped
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from headrace.client.config import Config, admin_settings, config_error
from headrace.client.errors import BrokerError, ConfigError, broker_error
from headrace.client.positions import Offsets
from headrace.client.record import TopicPartition, from_librdkafka, to_librdkafka

T = TypeVar("T")
Where = Literal["earliest", "latest"] | datetime | int | Offsets
"""A place in the log: an end of it, a time, one offset for all partitions, or an offset for each."""


@dataclass(frozen=True, slots=True)
class Partition:
    number: int
    leader: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Member:
    member_id: str
    client_id: str
    host: str
    assignment: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Group:
    group_id: str
    state: str
    coordinator: int
    members: tuple[Member, ...]


class Admin:
    """Look at a cluster and change it.

    >>> with Admin("localhost:9092") as admin:
    ...     admin.create_topic("orders", partitions=6)
    """

    def __init__(self, config: Config = None, /, **settings: object) -> None:
        ready, self._timeout = admin_settings(config, settings)
        try:
            self._librdkafka: AdminClient | None = AdminClient(cast("dict[str, Any]", ready))
        except (KafkaException, TypeError, ValueError) as error:
            raise config_error(error) from error

    # Topics

    def topics(self) -> list[str]:
        try:
            return sorted(self.librdkafka.list_topics(timeout=self._timeout).topics)
        except KafkaException as error:
            raise broker_error(error, "asking for metadata") from error

    def topic(self, name: str) -> Topic:
        # Not by its metadata: asking for that makes the topic where brokers create topics on first use.
        asked = self.librdkafka.describe_topics(TopicCollection([name]), request_timeout=self._timeout)
        found = self._wait(asked[name], f"describing topic {name}")
        return Topic(
            name,
            tuple(
                Partition(
                    each.id,
                    -1 if each.leader is None else each.leader.id,
                    tuple(node.id for node in each.replicas),
                    tuple(node.id for node in each.isr),
                )
                for each in sorted(found.partitions, key=lambda each: each.id)
            ),
        )

    def partitions_of(self, *topics: str) -> list[TopicPartition]:
        return [TopicPartition(name, each.number) for name in topics for each in self.topic(name).partitions]

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        config: Mapping[str, str] | None = None,
        exist_ok: bool = False,
    ) -> None:
        """Create a topic; -1 takes the broker's num.partitions and default.replication.factor."""
        new = NewTopic(name, partitions, replication_factor, config=dict(config or {}))
        try:
            self._wait(self.librdkafka.create_topics([new])[name], f"creating topic {name}")
        except BrokerError as error:
            if not (exist_ok and error.code == KafkaError.TOPIC_ALREADY_EXISTS):
                raise

    def delete_topic(self, name: str) -> None:
        self._wait(self.librdkafka.delete_topics([name])[name], f"deleting topic {name}")

    def add_partitions(self, topic: str, total: int) -> None:
        """Raise the number of partitions to ``total``. Keys may move to other partitions."""
        futures = self.librdkafka.create_partitions([NewPartitions(topic, total)])
        self._wait(futures[topic], f"adding partitions to {topic}")

    def delete_records(self, before: Offsets) -> None:
        """Delete everything below the given offsets."""
        futures = self.librdkafka.delete_records(to_librdkafka(before))
        for partition, future in futures.items():
            self._wait(future, f"deleting records of {partition.topic}-{partition.partition}")

    # Settings

    def topic_config(self, topic: str) -> dict[str, str | None]:
        return self._config(ConfigResource(ResourceType.TOPIC, topic))

    def broker_config(self, broker: int) -> dict[str, str | None]:
        return self._config(ConfigResource(ResourceType.BROKER, str(broker)))

    def set_topic_config(self, topic: str, changes: Mapping[str, str | None]) -> None:
        """Change some settings of a topic; None goes back to the default."""
        entries = [
            ConfigEntry(
                name,
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for name, value in changes.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        futures = self.librdkafka.incremental_alter_configs([resource])
        self._wait(futures[resource], f"changing the settings of topic {topic}")

    # Groups

    def groups(self) -> list[str]:
        listing = self._wait(self.librdkafka.list_consumer_groups(), "listing groups")
        return sorted(group.group_id for group in listing.valid)

    def group(self, group_id: str) -> Group:
        futures = self.librdkafka.describe_consumer_groups([group_id])
        found = self._wait(futures[group_id], f"describing group {group_id}")
        members = tuple(
            Member(
                each.member_id,
                each.client_id,
                each.host,
                frozenset(from_librdkafka(each.assignment.topic_partitions)),
            )
            for each in found.members
        )
        return Group(group_id, found.state.name.lower(), found.coordinator.id, members)

    def delete_group(self, group_id: str) -> None:
        futures = self.librdkafka.delete_consumer_groups([group_id])
        self._wait(futures[group_id], f"deleting group {group_id}")

    def group_offsets(self, group_id: str) -> dict[TopicPartition, int]:
        """The committed offsets of a group, for the partitions that have one."""
        request = ConsumerGroupTopicPartitions(group_id)
        futures = self.librdkafka.list_consumer_group_offsets([request])
        found = self._wait(futures[group_id], f"reading the offsets of group {group_id}")
        offsets = from_librdkafka(found.topic_partitions)
        return {partition: offset for partition, offset in offsets.items() if offset >= 0}

    def set_group_offsets(self, group_id: str, offsets: Offsets) -> None:
        """Commit offsets for a group that has no running members."""
        request = ConsumerGroupTopicPartitions(group_id, to_librdkafka(offsets))
        futures = self.librdkafka.alter_consumer_group_offsets([request])
        done = self._wait(futures[group_id], f"setting the offsets of group {group_id}")
        failed = next((each.error for each in done.topic_partitions if each.error is not None), None)
        if failed is not None:
            raise broker_error(failed, f"setting the offsets of group {group_id}")

    def reset_group(
        self, group_id: str, to: Where, *topics: str, shift: int = 0
    ) -> dict[TopicPartition, int]:
        """Move a stopped group to a place in the log and return where it is now.

        Without topics, all that the group has committed for. The offsets are moved by ``shift`` records and
        kept inside the log, so ``reset_group(g, admin.group_offsets(g), shift=-100)`` goes back by 100.
        """
        partitions = self.partitions_of(*topics) if topics else sorted(self.group_offsets(group_id))
        if not partitions:
            raise ConfigError(f"group {group_id} has committed nothing: name the topics to reset")
        offsets = self.offsets(to, partitions)
        first, last = self.offsets("earliest", partitions), self.offsets("latest", partitions)
        moved = {
            partition: min(max(offset + shift, first[partition]), last[partition])
            for partition, offset in offsets.items()
        }
        self.set_group_offsets(group_id, moved)
        return moved

    # Offsets

    def offsets(
        self, where: Where, partitions: Iterable[TopicPartition], *, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        """The offset of a place in each partition; a time after the last record gives the end."""
        partitions = list(partitions)
        if isinstance(where, Mapping):
            return {partition: where[partition] for partition in partitions if partition in where}
        if isinstance(where, int):
            return dict.fromkeys(partitions, where)
        level = IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
        asked = {confluent_kafka.TopicPartition(*each): _spec(where) for each in partitions}
        answers = self.librdkafka.list_offsets(asked, isolation_level=level) if asked else {}
        found = {
            TopicPartition(each.topic, each.partition): self._wait(
                future, f"asking for the offsets of {each.topic}-{each.partition}"
            ).offset
            for each, future in answers.items()
        }
        late = [partition for partition, offset in found.items() if offset < 0]
        return {**found, **(self.offsets("latest", late, read_committed=read_committed) if late else {})}

    @property
    def librdkafka(self) -> AdminClient:
        if self._librdkafka is None:
            raise ConfigError("the admin is closed")
        return self._librdkafka

    def close(self) -> None:
        """Nothing to release but librdkafka's threads, which end with the object."""
        self._librdkafka = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _config(self, resource: ConfigResource) -> dict[str, str | None]:
        entries = self._wait(
            self.librdkafka.describe_configs([resource])[resource], f"reading the settings of {resource.name}"
        )
        return {name: entry.value for name, entry in sorted(entries.items())}

    def _wait(self, future: Future[Any], doing: str) -> Any:
        try:
            return future.result(self._timeout)
        except KafkaException as error:
            raise broker_error(error, doing) from error
        except TimeoutError:
            raise BrokerError(
                f"{doing} got no answer within {self._timeout:g} s (default.api.timeout.ms): "
                "check bootstrap.servers and that the brokers are running",
                KafkaError._TIMED_OUT,
                retriable=True,
            ) from None


def _spec(where: Literal["earliest", "latest"] | datetime) -> Any:
    if isinstance(where, datetime):
        return OffsetSpec.for_timestamp(int(where.timestamp() * 1000))
    if where not in ("earliest", "latest"):
        raise ConfigError(f'{where!r} is no place in the log: "earliest", "latest", a datetime or an offset')
    spec: Any = OffsetSpec
    return spec.earliest() if where == "earliest" else spec.latest()
