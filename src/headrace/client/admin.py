"""Topics, settings, groups and offsets of a cluster, with plain values in and out.

Every call waits for its answer and raises BrokerError with one sentence when the cluster refuses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self, cast

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package re-exports them untyped
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from headrace.client.administration import group_offsets, groups, offsets, reset, topics
from headrace.client.administration.session import Limits, Session
from headrace.client.config import Config, admin_settings, config_error, log_error
from headrace.client.errors import BrokerError, ConfigError, broker_error
from headrace.client.positions import Offsets
from headrace.client.record import TopicPartition, from_librdkafka

Where = Literal["earliest", "latest"] | datetime | int | Offsets
"""A place in the log: an end of it, a time, one offset for all partitions, or an offset for each."""

_LOOK_SECONDS = 0.5
"""How often a call that waits looks whether the cluster refuses it altogether."""


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
        ready, timeout = admin_settings(config, settings)
        waiting = _Waiting(timeout, ready.get("error_cb"))
        try:
            client = AdminClient(cast("dict[str, Any]", {**ready, "error_cb": waiting.report}))
        except (KafkaException, TypeError, ValueError) as error:
            raise config_error(error, ready) from error
        connection = {name: value for name, value in ready.items() if isinstance(value, str)}
        waiting.serve = client.poll
        self._session: Session | None = Session(client, connection, waiting, Limits(timeout))

    # Topics

    def topics(self) -> list[str]:
        return topics.names(session_of(self), internal=True)

    def topic(self, name: str) -> Topic:
        found, refusals = topics.find(session_of(self), [name])
        _raise_first(refusals)
        return Topic(
            name,
            tuple(
                Partition(
                    each.id,
                    -1 if each.leader is None else each.leader,
                    tuple(each.replicas),
                    tuple(each.isr),
                )
                for each in found[name].partitions
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
        refusals = topics.create(
            session_of(self),
            [name],
            partitions=partitions,
            replication_factor=replication_factor,
            config=config,
        )
        if not (exist_ok and name in refusals and refusals[name].code == KafkaError.TOPIC_ALREADY_EXISTS):
            _raise_first(refusals)

    def delete_topic(self, name: str) -> None:
        _raise_first(topics.delete(session_of(self), [name]))

    def add_partitions(self, topic: str, total: int) -> None:
        """Raise the number of partitions to ``total``. Keys may move to other partitions."""
        topics.add_partitions(session_of(self), topic, total)

    def delete_records(self, before: Offsets) -> None:
        """Delete everything below the given offsets."""
        outcomes = offsets.delete_before(session_of(self), _plain(before))
        _raise_first({key: each for key, each in outcomes.items() if isinstance(each, BrokerError)})

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
        groups.delete(session_of(self), group_id)

    def group_offsets(self, group_id: str) -> dict[TopicPartition, int]:
        """The committed offsets of a group, for the partitions that have one."""
        found = group_offsets.committed(session_of(self), group_id)
        return {TopicPartition(*partition): each.offset for partition, each in found.items()}

    def set_group_offsets(self, group_id: str, offsets: Offsets) -> None:
        """Commit offsets for a group that has no running members."""
        _raise_first(group_offsets.commit(session_of(self), group_id, _plain(offsets)))

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
        places = {each: offset + shift for each, offset in self.offsets(to, partitions).items()}
        kept = reset.within_range(session_of(self), _plain(places), warn=lambda sentence: None)
        moved = {TopicPartition(*partition): offset for partition, offset in kept.items()}
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
        found = offsets.all_of(
            offsets.list_offsets(session_of(self), partitions, _spec(where), read_committed=read_committed)
        )
        late = [TopicPartition(*partition) for partition, offset in found.items() if offset < 0]
        ends = self.offsets("latest", late, read_committed=read_committed) if late else {}
        return {**{TopicPartition(*partition): offset for partition, offset in found.items()}, **ends}

    @property
    def librdkafka(self) -> AdminClient:
        return session_of(self).librdkafka

    def close(self) -> None:
        """Nothing to release but connections, and librdkafka's threads, which end with the object."""
        if self._session is not None:
            self._session.close()
            self._session = None

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
        return session_of(self).wait(future, doing)


def session_of(admin: Admin) -> Session:
    """For the operations of `headrace.client.administration` that `Admin` has no method for."""
    if admin._session is None:
        raise ConfigError("the admin is closed")
    return admin._session


class _Waiting:
    """Waits as long as default.api.timeout.ms says, and no longer once a broker refused the login or TLS, which librdkafka tries again
    and again; what goes wrong is a BrokerError that says what was being done."""

    def __init__(self, timeout: float, listener: object) -> None:
        self._timeout = timeout
        self._listener = listener if callable(listener) else log_error
        self._refused: KafkaError | None = None
        self.serve: Callable[[float], int] = lambda _: 0
        """The client's poll, which hands over its reports."""

    def report(self, error: KafkaError) -> None:
        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            self._refused = error
        self._listener(error)

    def wait(self, future: Future[Any], doing: str) -> Any:
        deadline = time.monotonic() + self._timeout
        self._refused = None
        try:
            while True:
                left = deadline - time.monotonic()
                try:
                    return future.result(min(max(left, 0.0), _LOOK_SECONDS))
                except TimeoutError:
                    self.serve(0)
                if self._refused is not None:
                    raise broker_error(self._refused, doing)
                if left <= 0:
                    break
        except KafkaException as error:
            raise broker_error(error, doing) from error
        raise BrokerError(
            f"{doing} got no answer within {self._timeout:g} s (default.api.timeout.ms): "
            "check bootstrap.servers and that the brokers are running",
            KafkaError._TIMED_OUT,
            retriable=True,
        )

    def refusal(self, error: KafkaError, doing: str) -> BrokerError:
        return broker_error(error, doing)


def _raise_first(refusals: Mapping[Any, BrokerError]) -> None:
    for refused in refusals.values():
        raise refused


def _plain(offsets: Offsets) -> dict[tuple[str, int], int]:
    return {(topic, number): offset for (topic, number), offset in offsets.items()}


def _spec(where: Literal["earliest", "latest"] | datetime) -> Any:
    if isinstance(where, datetime):
        return offsets.at(int(where.timestamp() * 1000))
    if where not in ("earliest", "latest"):
        raise ConfigError(f'{where!r} is no place in the log: "earliest", "latest", a datetime or an offset')
    return offsets.EARLIEST if where == "earliest" else offsets.LATEST
