"""Client settings under the Java client's names, turned into librdkafka's.

Most names are the same. This file knows those that differ, those that mean nothing outside a JVM, and those
that Kafka has removed, each with its successor. What it does not know it hands on: librdkafka decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.cli.failure import Failure
from headrace.link import java_names

Settings = dict[str, str]


@dataclass(slots=True)
class Translation:
    settings: Settings = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # one sentence each, for stderr


def translate(properties: Settings) -> Translation:
    """Raises Failure for a setting that librdkafka cannot honour and that must not be dropped in silence."""
    result = Translation()
    try:
        for name, value in _with_successors(properties, result.notes).items():
            if name in _RENAMED:
                result.settings[_RENAMED[name]] = value
            elif name in _CONVERTED:
                result.settings.update(_CONVERTED[name](value))
            elif not _means_nothing_here(name):
                result.settings[name] = value
        java_names.replace_stores(result.settings)
    except java_names.SettingRefused as refused:
        text = str(refused)
        raise Failure(f"{text[0].upper() if text.startswith('the ') else text[0]}{text[1:]}.") from None
    return result


# --- removed settings ---

_SUCCESSORS = {
    "auto.commit.enable": "enable.auto.commit",
    "autocommit.enable": "enable.auto.commit",
    "autocommit.interval.ms": "auto.commit.interval.ms",
    "compression.codec": "compression.type",
    "compressed.topics": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "message.send.max.retries": "retries",
    "metadata.broker.list": "bootstrap.servers",
    "queue.buffering.max.ms": "linger.ms",
    "queue.time": "linger.ms",
    "request.required.acks": "acks",
    "socket.buffersize": "receive.buffer.bytes",
    "timeout.ms": "request.timeout.ms",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
}
_REPLACED_BY_OTHER_MEANS = {
    "block.on.buffer.full": "max.block.ms bounds how long a send may wait",
    "consumer.timeout.ms": "the timeout is an option of the command",
    "dual.commit.enabled": "offsets are kept in __consumer_offsets only",
    "metadata.fetch.timeout.ms": "max.block.ms bounds how long a send may wait",
    "offsets.storage": "offsets are kept in __consumer_offsets only",
    "producer.type": "every producer batches; linger.ms=0 sends at once",
    "queue.enqueue.timeout.ms": "max.block.ms bounds how long a send may wait",
    "rebalance.backoff.ms": "the group coordinator runs the rebalance",
    "rebalance.max.retries": "the group coordinator runs the rebalance",
    "zk.connect": "clients find the cluster through bootstrap.servers",
    "zookeeper.connect": "clients find the cluster through bootstrap.servers",
    "zookeeper.session.timeout.ms": "clients no longer speak to ZooKeeper",
}
_OLD_VALUES = {"auto.offset.reset": {"smallest": "earliest", "largest": "latest"}}


def _with_successors(properties: Settings, notes: list[str]) -> Settings:
    kept: Settings = {}
    for name, value in properties.items():
        if name in _REPLACED_BY_OTHER_MEANS:
            notes.append(f"{name} was removed from Kafka and is ignored: {_REPLACED_BY_OTHER_MEANS[name]}.")
            continue
        successor = _SUCCESSORS.get(name)
        if successor is not None:
            notes.append(f"{name} was removed from Kafka; {successor} is its successor and is used instead.")
            if successor in properties:
                continue
        current = _OLD_VALUES.get(name, {}).get(value)
        if current is not None:
            notes.append(f"{name}={value} was removed from Kafka; {name}={current} is used instead.")
        kept[successor or name] = current or value
    return kept


# --- other names ---

_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    **java_names.PEM_NAMES,
}


def _buffer_size(name: str) -> Callable[[str], Settings]:
    return lambda value: {name: "0" if value.strip() == "-1" else value}  # both: the system's default


def _buffer_memory(value: str) -> Settings:
    if not value.strip().isdigit():
        raise Failure(f"buffer.memory is a number of bytes, not '{value}'.")
    return {"queue.buffering.max.kbytes": str(max(1, int(value) // 1024))}


_PARTITIONERS = {
    "defaultpartitioner": "murmur2_random",
    "uniformstickypartitioner": "random",
    "roundrobinpartitioner": "random",
}


def _partitioner(value: str) -> Settings:
    known = _PARTITIONERS.get(value.rpartition(".")[2].lower())
    if known is None:
        raise Failure(
            f"The partitioner class {value} is Java code; use --partition, or partitioner=<librdkafka's name>."
        )
    return {"partitioner": known}


_CONVERTED: dict[str, Callable[[str], Settings]] = {
    "buffer.memory": _buffer_memory,
    "partition.assignment.strategy": lambda value: {
        "partition.assignment.strategy": java_names.assignors(value.split(","))
    },
    "partitioner.class": _partitioner,
    "receive.buffer.bytes": _buffer_size("socket.receive.buffer.bytes"),
    "sasl.jaas.config": java_names.login,
    "send.buffer.bytes": _buffer_size("socket.send.buffer.bytes"),
    "ssl.endpoint.identification.algorithm": lambda value: {
        "ssl.endpoint.identification.algorithm": java_names.endpoint_identification(value)
    },
}


# --- settings of the JVM ---

_JVM_ONLY = {
    "auto.include.jmx.reporter",
    "config.providers",
    "default.api.timeout.ms",
    "enable.metrics.push",
    "exclude.internal.topics",
    "interceptor.classes",
    "key.deserializer",
    "key.serializer",
    "max.block.ms",
    "max.poll.records",
    "metric.reporters",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "partitioner.ignore.keys",
    "security.providers",
    "ssl.enabled.protocols",
    "ssl.engine.factory.class",
    "ssl.keymanager.algorithm",
    "ssl.protocol",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "value.deserializer",
    "value.serializer",
}
_JVM_PREFIXES = ("config.providers.", "metrics.", "sasl.login.", "sasl.client.callback")


def _means_nothing_here(name: str) -> bool:
    return name in _JVM_ONLY or name.startswith(_JVM_PREFIXES)


def known_names() -> set[str]:
    """Names worth offering when librdkafka knows none of the kind."""
    return {*java_names.COMMON, *_RENAMED, *_CONVERTED, *_SUCCESSORS.values()}
