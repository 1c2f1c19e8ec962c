"""A compacted control topic as a table: what must survive a restart is the newest record of each key.

Created when it is first needed, with one partition, so that its records have one order, and with three replicas where there
are three brokers, whatever the cluster's default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.client import control_documents
from headrace.client.admin import Admin, session_of
from headrace.client.administration import brokers
from headrace.client.config import connection_settings
from headrace.client.consumer import Consumer
from headrace.client.control_documents import Document
from headrace.client.errors import ConfigError
from headrace.client.producer import Producer
from headrace.client.record import TopicPartition
from headrace.client.scan import scan

_REPLICAS = 3


class ControlTopic:
    def __init__(
        self, name: str, config: Mapping[str, object], settings: Mapping[str, str] | None = None
    ) -> None:
        """``settings`` are the topic's own, beside cleanup.policy."""
        self.name = name
        self._connection = connection_settings(config)
        self._settings = {"cleanup.policy": "compact", **(settings or {})}

    def ensure(self, admin: Admin) -> None:
        """Create it if it is not there; raises ConfigError when a topic of this name would forget what it holds."""
        if self.name not in admin.topics():
            create_safe(admin, self.name, self._settings)
        elif "compact" not in (admin.topic_config(self.name).get("cleanup.policy") or ""):
            raise ConfigError(
                f"the topic {self.name} is not compacted and would lose what it holds: "
                f"headrace configs alter topic {self.name} --set cleanup.policy=compact"
            )

    def read(self, admin: Admin) -> dict[str, Document]:
        """The newest document of each key; empty while the topic does not exist."""
        found: dict[str, Document] = {}
        for key, document in self._records(admin):
            if document is None:
                found.pop(key, None)
            else:
                found[key] = document
        return found

    def put(self, producer: Producer[Any, Any], key: str, document: Document | None) -> None:
        """Returns when it is written; None removes the key."""
        producer.send_and_wait(self.name, control_documents.encode(document), key=key.encode(), partition=0)

    def send(self, producer: Producer[Any, Any], key: str, document: Document | None) -> None:
        """The same within a transaction, whose commit waits for it."""
        producer.send_and_forget(self.name, control_documents.encode(document), key=key.encode(), partition=0)

    def changes(
        self, consumer: Consumer[bytes, bytes], timeout: float
    ) -> Iterator[tuple[str, Document | None]]:
        """What has been written since the last call; the consumer is assigned the topic's partition 0."""
        return control_documents.read(consumer.poll(timeout))

    def _records(self, admin: Admin) -> Iterator[tuple[str, Document | None]]:
        if self.name not in admin.topics():
            return
        yield from control_documents.read(scan(self._connection, {TopicPartition(self.name, 0): None}))


def create_safe(admin: Admin, name: str, settings: Mapping[str, str]) -> None:
    """One partition, and three replicas where there are three brokers."""
    live = sum(broker.live for broker in brokers.describe(session_of(admin)).brokers)
    admin.create_topic(
        name, partitions=1, replication_factor=min(_REPLICAS, live), config=settings, exist_ok=True
    )
