"""Topics for tests: made over the wire in a moment, under names that no other test has."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping

from headrace.link.addresses import split_address
from headrace.link.blocking import Connection
from headrace.link.settings import KafkaSettings
from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

_CREATE, _METADATA = 7, 12
PATIENCE_SECONDS = 30.0


def unique_name(prefix: str = "topic") -> str:
    """Unique among all tests, processes and runs; what Kafka allows in a topic's name is kept of the prefix."""
    return f"{re.sub(r'[^a-zA-Z0-9._-]+', '-', prefix)[:80].strip('-')}-{uuid.uuid4().hex[:12]}"


def create_topic(
    bootstrap: str,
    name: str,
    partitions: int = 1,
    replication_factor: int = -1,
    config: Mapping[str, object] | None = None,
    login: Mapping[str, str] | None = None,
) -> None:
    """Returns when every partition has a leader. ValueError says why the broker refused. `login` holds a client's settings of TLS and
    SASL."""
    settings = [CreatableTopicConfig(key, str(value)) for key, value in (config or {}).items()]
    topic = CreatableTopic(name, partitions, replication_factor, configs=settings)
    with _connect(bootstrap.partition(",")[0], login or {}) as client:
        result = client.call(CreateTopicsRequest([topic], timeout_ms=30_000), _CREATE).topics[0]
        if result.error_code:
            why = result.error_message or ErrorCode(result.error_code).name
            raise ValueError(f"The topic {name} could not be created: {why}")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not _has_leaders(client, name, partitions):
            if time.monotonic() > deadline:
                raise TimeoutError(f"The topic {name} had no leaders within {PATIENCE_SECONDS:.0f} s.")
            time.sleep(0.01)


def _connect(address: str, login: Mapping[str, str]) -> WireClient | Connection:
    if not login:
        return WireClient(address)
    settings = KafkaSettings.of({**login, "bootstrap.servers": address}, "a test's topics")
    return Connection(*split_address(address), settings)


def _has_leaders(client: WireClient | Connection, name: str, partitions: int) -> bool:
    reply = client.call(MetadataRequest([MetadataRequestTopic(name=name)]), _METADATA)
    assert isinstance(reply, MetadataResponse)
    topic = reply.topics[0]
    led = [each for each in topic.partitions if not each.error_code and each.leader_id >= 0]
    return not topic.error_code and len(led) >= max(partitions, 1)
