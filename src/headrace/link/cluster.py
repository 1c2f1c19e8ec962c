"""The brokers of one cluster: the partitions' leaders, one connection to each broker, and retries.

Every operation is retried while leaders move and brokers restart, until `default.api.timeout.ms` has passed; then one
sentence gives the last reason. Nothing here is shared between threads.
"""

from __future__ import annotations

import functools
import random
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from headrace.link.blocking import Connection
from headrace.link.errors import BrokerUnavailable
from headrace.link.settings import KafkaSettings
from headrace.wire.errors import RETRIABLE, ErrorCode, KafkaError
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.schema import Request, Response

T = TypeVar("T")
R = TypeVar("R", bound=Response)

GROUP, TRANSACTION = 0, 1
"""The two kinds of coordinator."""

_LOST_LEADER = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)

PATIENCE_WITH_UNKNOWN = 3.0
"""Seconds after which an unknown topic is taken not to exist: the metadata of a new one may still be spreading."""

CONTROL_TOPICS = "__headrace_"
"""How the names of Headrace's own topics begin; like a broker's internal topics, no pattern matches them."""


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic as metadata describes it; leaders by partition, -1 where there is none."""

    name: str
    id: uuid.UUID
    leaders: dict[int, int]
    epochs: dict[int, int]
    internal: bool = False

    @property
    def partitions(self) -> Sequence[int]:
        return sorted(self.leaders)


class Cluster:
    """Use `cluster(settings)` to share connections within a process, or make one and close it."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        self._topics: dict[str, TopicMetadata] = {}
        self._nodes: dict[int, tuple[str, int]] = {}
        self._connections: dict[tuple[str, int], Connection] = {}
        self._coordinators: dict[tuple[int, str], tuple[str, int]] = {}
        self._coordinator_ids: dict[tuple[int, str], int] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # What the cluster holds.

    def topics(self, names: Iterable[str]) -> dict[str, TopicMetadata]:
        """Those of the named topics that exist, from fresh metadata."""
        return self.retry("read the cluster's metadata", lambda: self._ask_topics(list(names)))

    def all_topics(self) -> dict[str, TopicMetadata]:
        return self.retry("list the cluster's topics", lambda: self._ask_topics(None))

    def topic(self, name: str) -> TopicMetadata:
        """One topic, from the cache if known; UNKNOWN_TOPIC_OR_PARTITION if it does not exist."""
        return self.retry(f"find the topic {name!r}", lambda: self._topic(name))

    def _topic(self, name: str) -> TopicMetadata:
        found = self._topics.get(name) or self._ask_topics([name]).get(name)
        if found is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"The topic {name!r} does not exist on {self._where()}; create it or correct its name.",
            )
        return found

    def _ask_topics(self, names: list[str] | None) -> dict[str, TopicMetadata]:
        request = MetadataRequest(
            None if names is None else [MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        )
        reply = self.any_broker().call(request)
        self._nodes = {broker.node_id: (broker.host, broker.port) for broker in reply.brokers}
        found = {}
        for topic in reply.topics:
            code = ErrorCode(topic.error_code)
            name = topic.name or ""
            self._topics.pop(name, None)
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                continue
            if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED and names is None:
                continue
            if code and not (code == ErrorCode.LEADER_NOT_AVAILABLE and topic.partitions):
                raise KafkaError(code, f"The topic {name!r} cannot be used: {code.name}.")
            found[name] = self._topics[name] = TopicMetadata(
                name,
                topic.topic_id,
                {entry.partition_index: entry.leader_id for entry in topic.partitions},
                {entry.partition_index: entry.leader_epoch for entry in topic.partitions},
                topic.is_internal or name.startswith(CONTROL_TOPICS),
            )
        return found

    # Connections.

    def any_broker(self) -> Connection:
        """A connection to some broker: one already open, a known one, or one of the bootstrap list."""
        for address, connection in list(self._connections.items()):
            if connection.open:
                return connection
            del self._connections[address]
        known = list(self._nodes.values())
        random.shuffle(known)
        reasons = []
        for address in dict.fromkeys([*known, *self.settings.bootstrap]):
            try:
                return self.connection(address)
            except BrokerUnavailable as error:
                reasons.append(str(error))
        raise BrokerUnavailable("; ".join(reasons) or "no broker is named")

    def leaders_of(self, name: str) -> TopicMetadata | None:
        """A topic with its current leaders, requested once; None if it does not exist or this user may not see it."""
        try:
            return self._ask_topics([name]).get(name)
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise
            return None

    def brokers(self) -> list[int]:
        """The ids of the brokers that were alive when metadata was last asked for."""
        return sorted(self._nodes)

    def connection(self, address: tuple[str, int]) -> Connection:
        found = self._connections.get(address)
        if found is None or not found.open:
            found = self._connections[address] = Connection(*address, self.settings)
        return found

    def leader(self, topic: str, partition: int) -> Connection:
        """A connection to the broker that leads a partition."""
        found = self._topic(topic)
        if partition not in found.leaders:
            found = self._ask_topics([topic]).get(topic, found)
        node = found.leaders.get(partition)
        if node is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic {topic!r} has no partition {partition}."
            )
        address = self._nodes.get(node)
        if address is None:
            self.forget(topic)
            raise KafkaError(
                ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader at the moment."
            )
        return self.connection(address)

    def node(self, node_id: int) -> Connection:
        """A connection to a broker by its id."""
        address = self._nodes.get(node_id)
        if address is None:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"Broker {node_id} is not known at the moment.")
        return self.connection(address)

    def forget(self, topic: str) -> None:
        """Refresh the topic's leaders before they are next used."""
        self._topics.pop(topic, None)

    def by_leader(self, partitions: Iterable[tuple[str, int]]) -> dict[Connection, list[tuple[str, int]]]:
        """Partitions grouped by the connection to their leader."""
        wanted = list(partitions)
        unknown = {topic for topic, _ in wanted} - self._topics.keys()
        if unknown:
            self._ask_topics(sorted(unknown))
        grouped: dict[Connection, list[tuple[str, int]]] = {}
        for topic, partition in wanted:
            grouped.setdefault(self.leader(topic, partition), []).append((topic, partition))
        return grouped

    def coordinator(self, kind: int, key: str) -> Connection:
        """A connection to the broker that coordinates a group or a transactional id."""
        address = self._coordinators.get((kind, key))
        if address is None:
            reply = self.any_broker().call(FindCoordinatorRequest(key, kind, [key]))
            answer = reply.coordinators[0] if reply.coordinators else reply
            if answer.error_code:
                code = ErrorCode(answer.error_code)
                raise KafkaError(code, answer.error_message or code.name)
            address = self._coordinators[kind, key] = (answer.host, answer.port)
            self._coordinator_ids[kind, key] = answer.node_id
        return self.connection(address)

    def coordinator_id(self, kind: int, key: str) -> int:
        """The id of the broker that `coordinator` last found."""
        return self._coordinator_ids[kind, key]

    def call_coordinator(
        self,
        kind: int,
        key: str,
        request: Request[R],
        failed: Callable[[R], int],
        patience: float | None = None,
    ) -> R:
        """Ask the coordinator, retrying while it moves or loads; `failed` finds the error code in a reply."""

        def ask() -> R:
            answer = self.coordinator(kind, key).call(request)
            code = ErrorCode(failed(answer))
            if code:
                raise KafkaError(code, code.name)
            return answer

        def forget() -> None:
            self._coordinators.pop((kind, key), None)

        return self.retry(f"ask the coordinator of {key!r}", ask, forget, patience)

    # Retries.

    def retry(
        self,
        what: str,
        action: Callable[[], T],
        forget: Callable[[], None] | None = None,
        patience: float | None = None,
    ) -> T:
        """`action`'s result, with retries until the timeout. `what` completes "Could not …"."""
        allowed = self.settings.api_timeout if patience is None else patience
        deadline = time.monotonic() + allowed
        pause = self.settings.retry_backoff
        unknown_since: float | None = None
        while True:
            try:
                return action()
            except (BrokerUnavailable, KafkaError) as error:
                if isinstance(error, KafkaError) and error.code not in RETRIABLE:
                    raise
                now = time.monotonic()
                if isinstance(error, KafkaError) and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    # Counted from the first such answer: before that, brokers may have been unavailable for long.
                    unknown_since = now if unknown_since is None else unknown_since
                    if now + pause > min(deadline, unknown_since + PATIENCE_WITH_UNKNOWN):
                        raise
                else:
                    unknown_since = None
                if now + pause > deadline:
                    setting = f" ({self.settings.prefix}default.api.timeout.ms)" if patience is None else ""
                    raise _told(f"{what} within {allowed:g} s{setting}", error) from None
            self._topics.clear()
            if forget is not None:
                forget()
            time.sleep(pause * random.uniform(0.8, 1.2))
            pause = min(pause * 2, self.settings.retry_backoff_max)

    def _where(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.settings.bootstrap)


def _told(what: str, error: BrokerUnavailable | KafkaError) -> Exception:
    sentence = f"Could not {what}: {error}"
    return KafkaError(error.code, sentence) if isinstance(error, KafkaError) else BrokerUnavailable(sentence)


def lost_leader(code: ErrorCode) -> bool:
    """Whether an answer means that the partition is led elsewhere now."""
    return code in _LOST_LEADER


@functools.lru_cache(maxsize=8)
def shared_cluster(settings: KafkaSettings) -> Cluster:
    """The process's own Cluster for these settings: Spark's Python workers live on between tasks."""
    return Cluster(settings)
