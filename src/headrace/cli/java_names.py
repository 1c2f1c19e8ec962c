"""Client settings under the Java client's names, turned into librdkafka's.

Most names are the same. This file knows those that differ, those that mean nothing outside a JVM, and those
that Kafka has removed, each with its successor. What it does not know it hands on: librdkafka decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.cli.failure import Failure

Settings = dict[str, str]


@dataclass(slots=True)
class Translation:
    settings: Settings = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # one sentence each, for stderr


def translate(properties: Settings) -> Translation:
    """Raises Failure for a setting that librdkafka cannot honour and that must not be dropped in silence."""
    result = Translation()
    for name, value in _with_successors(properties, result.notes).items():
        if name in _RENAMED:
            result.settings[_RENAMED[name]] = value
        elif name in _CONVERTED:
            result.settings.update(_CONVERTED[name](value))
        elif not _means_nothing_here(name):
            result.settings[name] = value
    _translate_stores(result.settings)
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
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}


def _buffer_size(name: str) -> Callable[[str], Settings]:
    return lambda value: {name: "0" if value.strip() == "-1" else value}  # both: the system's default


def _buffer_memory(value: str) -> Settings:
    if not value.strip().isdigit():
        raise Failure(f"buffer.memory is a number of bytes, not '{value}'.")
    return {"queue.buffering.max.kbytes": str(max(1, int(value) // 1024))}


def _endpoint_identification(value: str) -> Settings:
    return {"ssl.endpoint.identification.algorithm": value.strip() or "none"}


_PARTITIONERS = {
    "defaultpartitioner": "murmur2_random",
    "uniformstickypartitioner": "random",
    "roundrobinpartitioner": "random",
}
_ASSIGNORS = {
    "rangeassignor": "range",
    "roundrobinassignor": "roundrobin",
    "cooperativestickyassignor": "cooperative-sticky",
}


def _partitioner(value: str) -> Settings:
    known = _PARTITIONERS.get(value.rpartition(".")[2].lower())
    if known is None:
        raise Failure(
            f"The partitioner class {value} is Java code; use --partition, or partitioner=<librdkafka's name>."
        )
    return {"partitioner": known}


def _assignors(value: str) -> Settings:
    chosen = []
    for name in (part.strip() for part in value.split(",") if part.strip()):
        assignor = _ASSIGNORS.get(name.rpartition(".")[2].lower(), name)
        if "." in assignor or assignor.lower() == "stickyassignor":
            raise Failure(
                f"The assignor {name} is not available here; use range, roundrobin or cooperative-sticky."
            )
        chosen.append(assignor)
    return {"partition.assignment.strategy": ",".join(chosen)}


_JAAS_MODULE = re.compile(r"^\s*([\w.$]+)\s+\w+\s*(.*?);?\s*$", re.DOTALL)
_JAAS_OPTION = re.compile(r'(\w+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^\s";]+))')


def _jaas(value: str) -> Settings:
    match = _JAAS_MODULE.match(value)
    if match is None:
        raise Failure(
            'sasl.jaas.config cannot be read; it looks like \'<module> required username="…" password="…";\'.'
        )
    options = {
        m[1]: m[3] if m[3] is not None else re.sub(r"\\(.)", r"\1", m[2])
        for m in _JAAS_OPTION.finditer(match[2])
    }
    module = match[1].rpartition(".")[2]
    if module in ("PlainLoginModule", "ScramLoginModule"):
        return {"sasl.username": options.get("username", ""), "sasl.password": options.get("password", "")}
    if module == "Krb5LoginModule":
        names = {"principal": "sasl.kerberos.principal", "keyTab": "sasl.kerberos.keytab"}
        return {names[key]: text for key, text in options.items() if key in names}
    if module == "OAuthBearerLoginModule":
        names = {"clientId": "sasl.oauthbearer.client.id", "clientSecret": "sasl.oauthbearer.client.secret"}
        return {names[key]: text for key, text in options.items() if key in names}
    raise Failure(
        f"sasl.jaas.config names the login module {module}, which is Java code; use PLAIN, SCRAM or GSSAPI."
    )


_CONVERTED: dict[str, Callable[[str], Settings]] = {
    "buffer.memory": _buffer_memory,
    "partition.assignment.strategy": _assignors,
    "partitioner.class": _partitioner,
    "receive.buffer.bytes": _buffer_size("socket.receive.buffer.bytes"),
    "sasl.jaas.config": _jaas,
    "send.buffer.bytes": _buffer_size("socket.send.buffer.bytes"),
    "ssl.endpoint.identification.algorithm": _endpoint_identification,
}


# --- key stores ---


def _translate_stores(settings: Settings) -> None:
    """Java keeps certificates in stores; librdkafka wants PEM, or PKCS#12 for the client's own key."""
    trust = settings.pop("ssl.truststore.location", None)
    trust_type = settings.pop("ssl.truststore.type", "JKS").upper()
    settings.pop("ssl.truststore.password", None)
    if trust is not None:
        if trust_type != "PEM":
            raise Failure(
                f"The trust store {trust} is {trust_type}; write it as PEM "
                f"(keytool -exportcert -rfc -keystore {trust} -alias … > ca.pem) and set ssl.ca.location=ca.pem."
            )
        settings["ssl.ca.location"] = trust
    key_type = settings.pop("ssl.keystore.type", "JKS").upper()
    store = settings.get("ssl.keystore.location")
    if store is None or key_type == "PKCS12":
        return
    if key_type != "PEM":
        raise Failure(
            f"The key store {store} is {key_type}; convert it (keytool -importkeystore -srckeystore {store} "
            "-destkeystore client.p12 -deststoretype PKCS12) and set ssl.keystore.type=PKCS12."
        )
    del settings["ssl.keystore.location"]
    settings["ssl.certificate.location"] = settings["ssl.key.location"] = store


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
    return {*_COMMON, *_RENAMED, *_CONVERTED, *_SUCCESSORS.values()}


_COMMON = {
    "acks", "allow.auto.create.topics", "auto.commit.interval.ms", "auto.offset.reset", "batch.size",
    "bootstrap.servers", "client.dns.lookup", "client.id", "client.rack", "compression.type",
    "connections.max.idle.ms", "delivery.timeout.ms", "enable.auto.commit", "enable.idempotence",
    "fetch.max.bytes", "fetch.min.bytes", "group.id", "group.instance.id", "group.protocol",
    "heartbeat.interval.ms", "isolation.level", "linger.ms", "max.in.flight.requests.per.connection",
    "max.partition.fetch.bytes", "max.poll.interval.ms", "metadata.max.age.ms", "reconnect.backoff.max.ms",
    "reconnect.backoff.ms", "request.timeout.ms", "retries", "retry.backoff.ms", "sasl.mechanism",
    "sasl.password", "sasl.username", "security.protocol", "session.timeout.ms", "ssl.ca.location",
    "ssl.certificate.location", "ssl.key.location", "ssl.key.password", "ssl.keystore.location",
    "ssl.keystore.password", "ssl.truststore.location", "transactional.id",
}  # fmt: skip
