"""Every setting of Kafka's Java clients (as of 4.3, and those removed since 0.7) and what becomes of it here.

This table is the one place that knows; `link/translation.py` applies it for the client library, the commands and Spark.
A name that is not in it is librdkafka's own or a mistake, and librdkafka tells the two apart.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from headrace.link import java_values
from headrace.link.java_values import Convert


class Same(NamedTuple):
    """librdkafka has it under the same name; some of its values may have been removed from Kafka."""

    old_values: Mapping[str, str] = {}


class Renamed(NamedTuple):
    name: str


class Converted(NamedTuple):
    convert: Convert


class Ignored(NamedTuple):
    """Has no effect outside the Java client, and nothing is lost without it."""

    because: str


class Replaced(NamedTuple):
    """Removed from Kafka; another setting means the same."""

    successor: str


class Obsolete(NamedTuple):
    """Removed from Kafka; ``instead`` says by what other means."""

    instead: str


class Refused(NamedTuple):
    """Must not be dropped in silence; the sentence begins with the setting's name."""

    sentence: str


Fate = Same | Renamed | Converted | Ignored | Replaced | Obsolete | Refused

_JAVA_CODE = Ignored("it names Java classes")
_OF_THE_JVM = Ignored("it is about the Java virtual machine")
_JAVA_TLS = Ignored("it is about Java's TLS; OpenSSL chooses for itself")
_JAVA_METRICS = Ignored("it is about the Java client's metrics")
_JAVA_LOGIN = Ignored("it is about the Java client's login thread; librdkafka renews logins itself")
_BROKERS_ONLY = Ignored("brokers alone read it, to check tokens")
_NO_COUNTERPART = Ignored("librdkafka has nothing to set here")
_BY_MAX_BLOCK = Obsolete("max.block.ms bounds how long a send may wait")
_BY_COORDINATOR = Obsolete("the group coordinator runs the rebalance")
_OFFSETS_IN_KAFKA = Obsolete("offsets are kept in __consumer_offsets only")
_BY_BOOTSTRAP = Obsolete("use bootstrap.servers, by which clients find the cluster")

JAVA_SETTINGS: Mapping[str, Fate] = {
    # All clients.
    "bootstrap.controllers": Refused("is for Kafka's controllers; name brokers in bootstrap.servers."),
    "bootstrap.servers": Same(),
    "client.dns.lookup": Same(),
    "client.id": Same(),
    "client.rack": Same(),
    "config.providers": Converted(java_values.read_with_another),
    "connections.max.idle.ms": Same(),
    "default.api.timeout.ms": _NO_COUNTERPART,
    "enable.metrics.push": Same(),
    "interceptor.classes": _JAVA_CODE,
    "metadata.max.age.ms": Same(),
    "metadata.recovery.rebootstrap.trigger.ms": Same(),
    "metadata.recovery.strategy": Same(),
    "metric.reporters": _JAVA_CODE,
    "metrics.num.samples": _JAVA_METRICS,
    "metrics.recording.level": _JAVA_METRICS,
    "metrics.sample.window.ms": _JAVA_METRICS,
    "receive.buffer.bytes": Converted(java_values.buffer_size("socket.receive.buffer.bytes")),
    "reconnect.backoff.max.ms": Same(),
    "reconnect.backoff.ms": Same(),
    "request.timeout.ms": Same(),
    "retries": Same(),
    "retry.backoff.max.ms": Same(),
    "retry.backoff.ms": Same(),
    "security.protocol": Same(),
    "security.providers": _JAVA_CODE,
    "send.buffer.bytes": Converted(java_values.buffer_size("socket.send.buffer.bytes")),
    "socket.connection.setup.timeout.max.ms": _NO_COUNTERPART,
    "socket.connection.setup.timeout.ms": Same(),
    # Producers.
    "acks": Same(),
    "batch.size": Same(),
    "buffer.memory": Converted(java_values.buffer_memory),
    "compression.gzip.level": Converted(java_values.compression_level("gzip")),
    "compression.lz4.level": Converted(java_values.compression_level("lz4")),
    "compression.type": Same(),
    "compression.zstd.level": Converted(java_values.compression_level("zstd")),
    "delivery.timeout.ms": Same(),
    "enable.idempotence": Same(),
    "key.serializer": _JAVA_CODE,
    "linger.ms": Same(),
    "max.block.ms": _NO_COUNTERPART,
    "max.in.flight.requests.per.connection": Same(),
    "max.request.size": Renamed("message.max.bytes"),
    "metadata.max.idle.ms": _NO_COUNTERPART,
    "partitioner.adaptive.partitioning.enable": _NO_COUNTERPART,
    "partitioner.availability.timeout.ms": _NO_COUNTERPART,
    "partitioner.class": Converted(java_values.partitioner),
    "partitioner.ignore.keys": _NO_COUNTERPART,
    "transaction.timeout.ms": Same(),
    "transaction.two.phase.commit.enable": Converted(java_values.two_phase_commit),
    "transactional.id": Same(),
    "value.serializer": _JAVA_CODE,
    # Consumers.
    "allow.auto.create.topics": Same(),
    "auto.commit.interval.ms": Same(),
    "auto.offset.reset": Same(old_values={"smallest": "earliest", "largest": "latest"}),
    "check.crcs": Same(),
    "enable.auto.commit": Same(),
    "exclude.internal.topics": _NO_COUNTERPART,
    "fetch.max.bytes": Same(),
    "fetch.max.wait.ms": Renamed("fetch.wait.max.ms"),
    "fetch.min.bytes": Same(),
    "group.id": Same(),
    "group.instance.id": Same(),
    "group.protocol": Same(),
    "group.remote.assignor": Same(),
    "heartbeat.interval.ms": Same(),
    "isolation.level": Same(),
    "key.deserializer": _JAVA_CODE,
    "max.partition.fetch.bytes": Same(),
    "max.poll.interval.ms": Same(),
    "max.poll.records": _NO_COUNTERPART,
    "partition.assignment.strategy": Converted(java_values.assignors),
    "session.timeout.ms": Same(),
    "share.acknowledgement.mode": Ignored(
        "members of share groups here say of each record what became of it"
    ),
    "share.acquire.mode": _NO_COUNTERPART,
    "value.deserializer": _JAVA_CODE,
    # TLS.
    "ssl.cipher.suites": Same(),
    "ssl.enabled.protocols": _JAVA_TLS,
    "ssl.endpoint.identification.algorithm": Converted(java_values.endpoint_identification),
    "ssl.engine.factory.class": _JAVA_TLS,
    "ssl.key.password": Same(),
    "ssl.keymanager.algorithm": _JAVA_TLS,
    "ssl.keystore.certificate.chain": Renamed("ssl.certificate.pem"),
    "ssl.keystore.key": Renamed("ssl.key.pem"),
    "ssl.keystore.location": Converted(java_values.key_store),
    "ssl.keystore.password": Same(),
    "ssl.keystore.type": Converted(java_values.read_with_another),
    "ssl.protocol": _JAVA_TLS,
    "ssl.provider": _JAVA_TLS,
    "ssl.secure.random.implementation": _JAVA_TLS,
    "ssl.trustmanager.algorithm": _JAVA_TLS,
    "ssl.truststore.certificates": Renamed("ssl.ca.pem"),
    "ssl.truststore.location": Converted(java_values.trust_store),
    "ssl.truststore.password": Ignored("PEM files with authorities have no password"),
    "ssl.truststore.type": Converted(java_values.read_with_another),
    # Logins.
    "sasl.client.callback.handler.class": _JAVA_CODE,
    "sasl.jaas.config": Converted(java_values.login),
    "sasl.kerberos.kinit.cmd": Same(),
    "sasl.kerberos.min.time.before.relogin": Same(),
    "sasl.kerberos.service.name": Same(),
    "sasl.kerberos.ticket.renew.jitter": _JAVA_LOGIN,
    "sasl.kerberos.ticket.renew.window.factor": _JAVA_LOGIN,
    "sasl.login.callback.handler.class": _JAVA_CODE,
    "sasl.login.class": _JAVA_CODE,
    "sasl.login.connect.timeout.ms": _JAVA_LOGIN,
    "sasl.login.read.timeout.ms": _JAVA_LOGIN,
    "sasl.login.refresh.buffer.seconds": _JAVA_LOGIN,
    "sasl.login.refresh.min.period.seconds": _JAVA_LOGIN,
    "sasl.login.refresh.window.factor": _JAVA_LOGIN,
    "sasl.login.refresh.window.jitter": _JAVA_LOGIN,
    "sasl.login.retry.backoff.max.ms": _JAVA_LOGIN,
    "sasl.login.retry.backoff.ms": _JAVA_LOGIN,
    "sasl.mechanism": Same(),
    "sasl.oauthbearer.assertion.algorithm": Same(),
    "sasl.oauthbearer.assertion.claim.aud": Same(),
    "sasl.oauthbearer.assertion.claim.exp.seconds": Same(),
    "sasl.oauthbearer.assertion.claim.iss": Same(),
    "sasl.oauthbearer.assertion.claim.jti.include": Same(),
    "sasl.oauthbearer.assertion.claim.nbf.seconds": Same(),
    "sasl.oauthbearer.assertion.claim.sub": Same(),
    "sasl.oauthbearer.assertion.file": Same(),
    "sasl.oauthbearer.assertion.private.key.file": Same(),
    "sasl.oauthbearer.assertion.private.key.passphrase": Same(),
    "sasl.oauthbearer.assertion.template.file": Renamed("sasl.oauthbearer.assertion.jwt.template.file"),
    "sasl.oauthbearer.client.credentials.client.id": Same(),
    "sasl.oauthbearer.client.credentials.client.secret": Same(),
    "sasl.oauthbearer.clock.skew.seconds": _BROKERS_ONLY,
    "sasl.oauthbearer.expected.audience": _BROKERS_ONLY,
    "sasl.oauthbearer.expected.issuer": _BROKERS_ONLY,
    "sasl.oauthbearer.header.urlencode": _NO_COUNTERPART,
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": _BROKERS_ONLY,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _BROKERS_ONLY,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _BROKERS_ONLY,
    "sasl.oauthbearer.jwks.endpoint.url": _BROKERS_ONLY,
    "sasl.oauthbearer.jwt.retriever.class": _JAVA_CODE,
    "sasl.oauthbearer.jwt.validator.class": _JAVA_CODE,
    "sasl.oauthbearer.scope": Same(),
    "sasl.oauthbearer.scope.claim.name": _BROKERS_ONLY,
    "sasl.oauthbearer.sub.claim.name": Same(),
    "sasl.oauthbearer.token.endpoint.url": Same(),
    # Removed from Kafka.
    "auto.commit.enable": Replaced("enable.auto.commit"),
    "auto.include.jmx.reporter": _OF_THE_JVM,
    "autocommit.enable": Replaced("enable.auto.commit"),
    "autocommit.interval.ms": Replaced("auto.commit.interval.ms"),
    "block.on.buffer.full": _BY_MAX_BLOCK,
    "broker.list": Replaced("bootstrap.servers"),
    "compressed.topics": Replaced("compression.type"),
    "compression.codec": Replaced("compression.type"),
    "consumer.timeout.ms": Obsolete("the timeout is an argument of a poll, an option of a command"),
    "dual.commit.enabled": _OFFSETS_IN_KAFKA,
    "fetch.message.max.bytes": Replaced("max.partition.fetch.bytes"),
    "metadata.broker.list": Replaced("bootstrap.servers"),
    "metadata.fetch.timeout.ms": _BY_MAX_BLOCK,
    "offsets.storage": _OFFSETS_IN_KAFKA,
    "producer.type": Obsolete("every producer sends in batches; linger.ms=0 sends at once"),
    "queue.buffering.max.ms": Replaced("linger.ms"),
    "queue.enqueue.timeout.ms": _BY_MAX_BLOCK,
    "queue.time": Replaced("linger.ms"),
    "rebalance.backoff.ms": _BY_COORDINATOR,
    "rebalance.max.retries": _BY_COORDINATOR,
    "request.required.acks": Replaced("acks"),
    "socket.buffersize": Replaced("receive.buffer.bytes"),
    "timeout.ms": Replaced("request.timeout.ms"),
    "zk.connect": _BY_BOOTSTRAP,
    "zookeeper.connect": _BY_BOOTSTRAP,
    "zookeeper.session.timeout.ms": Obsolete("clients no longer speak to ZooKeeper"),
}

_PREFIXES: Mapping[str, Fate] = {
    "config.providers.": _JAVA_CODE,
    "metrics.": _JAVA_METRICS,
    "sasl.client.callback": _JAVA_CODE,
    "sasl.login.": _JAVA_LOGIN,
}
"""Names with parts that users choose, and relatives of those above that other versions have."""

_LIBRDKAFKAS = frozenset(
    {"sasl.password", "sasl.username", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location"}
)


def fate_of(name: str) -> Fate | None:
    """None for a name that the Java client does not have."""
    fate = JAVA_SETTINGS.get(name)
    if fate is None:
        fate = next((each for prefix, each in _PREFIXES.items() if name.startswith(prefix)), None)
    return fate


def known_names(own: Collection[str] = ()) -> set[str]:
    """Names to suggest instead of one that librdkafka does not know."""
    return {
        *own,
        *_LIBRDKAFKAS,
        *(name for name, fate in JAVA_SETTINGS.items() if isinstance(fate, Same | Renamed | Converted)),
    }
