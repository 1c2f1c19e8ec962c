"""Settings of other Kafka generations and of parts Headrace does not have.

Each has a sentence that names its successor or says that it is ignored; none keeps a broker from starting.
"""

# One row per setting, however long, so that it reads as a table.

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.nearest import nearest

_ONE_LOOP = (
    "has no effect: a Headrace broker is one event loop; run more brokers (`--brokers N`) to use more cores"
)
_KRAFT = (
    "has no effect: Headrace keeps the cluster's facts in its embedded store or in ZooKeeper (`zookeeper.connect`), "
    "not in a KRaft quorum"
)
_AT_ONCE = "has no effect: a group gets its new assignment as soon as its members or topics change"
_PURGATORY = "has no effect: a waiting request leaves every list when it ends, so nothing needs purging"
_REMOTE = "has no effect: Headrace has no remote (tiered) storage"
_PLUGIN = "has no effect: Headrace loads no Java classes"
_METRICS = "has no effect: the broker has no metrics yet"
_MOVES = "has no effect: as many replicas move between directories at once as there are directories, under one limit of bytes per second"
_OAUTH = "has no effect: Headrace reads and fetches OAuth tokens in one way, which this does not change"
_MIGRATION = "has no effect: there is nothing to migrate between ZooKeeper and KRaft here"
_FORMAT = "was removed in Kafka 4.0: record batches are always stored in format v2"
_AT_ONCE = "has no effect: a group gets its new assignment at once, as soon as its members or topics change"
_STREAMS = "has no effect: the streams group protocol is not offered"

_REMARKS: Mapping[str, str] = {
    # Renamed or replaced.
    "request.required.acks": "was the old producer's setting: set `acks` on the producer",
    "producer.type": "was the old producer's setting: today's producers are asynchronous; wait for the returned future to be synchronous",
    "metadata.broker.list": "was the old producer's setting: set `bootstrap.servers` on the client",
    "replica.lag.max.messages": "was removed in Kafka 0.9: `replica.lag.time.max.ms` alone decides who is in sync",
    "log.cleanup.interval.mins": "was renamed: set `log.retention.check.interval.ms`",
    "log.file.size": "was renamed: set `log.segment.bytes`",
    "log.default.flush.interval.ms": "was renamed: set `log.flush.interval.ms`",
    "log.flush.interval": "was renamed: set `log.flush.interval.messages`",
    "log.default.flush.scheduler.interval.ms": "was renamed: set `log.flush.scheduler.interval.ms`",
    "max.message.size": "was renamed: set `message.max.bytes`",
    "brokerid": "was renamed: set `node.id`",
    "hostname": "was removed: set `listeners`",
    "host.name": "was removed in Kafka 3.0: set `listeners`",
    "port": "was removed in Kafka 3.0: set `listeners`",
    "advertised.host.name": "was removed in Kafka 3.0: set `advertised.listeners`",
    "advertised.port": "was removed in Kafka 3.0: set `advertised.listeners`",
    "zk.connect": "was renamed: set `zookeeper.connect`",
    "zk.connectiontimeout.ms": "was renamed: set `zookeeper.connection.timeout.ms`",
    "zk.sessiontimeout.ms": "was renamed: set `zookeeper.session.timeout.ms`",
    "quota.producer.default": ("was removed in Kafka 3.0: set a default with `headrace quotas`"),
    "quota.consumer.default": ("was removed in Kafka 3.0: set a default with `headrace quotas`"),
    "log.message.timestamp.difference.max.ms": (
        "was removed in Kafka 4.0: set `log.message.timestamp.before.max.ms` and `log.message.timestamp.after.max.ms`"
    ),
    "message.timestamp.difference.max.ms": (
        "was removed in Kafka 4.0: set `message.timestamp.before.max.ms` and `message.timestamp.after.max.ms`"
    ),
    "log.message.format.version": _FORMAT,
    "message.format.version": _FORMAT,
    "log.message.downconversion.enable": _FORMAT,
    "message.downconversion.enable": _FORMAT,
    "inter.broker.protocol.version": "was removed in Kafka 4.0: feature levels take its place (`headrace features`)",
    "broker.id.generation.enable": "was removed in Kafka 4.0: set `node.id`",
    "reserved.broker.max.id": "was removed in Kafka 4.0: any `node.id` from 0 up is taken",
    "control.plane.listener.name": "was removed in Kafka 4.0: set `inter.broker.listener.name`",
    "offsets.topic.cleanup.policy": "cannot be changed: __consumer_offsets is always compacted",
    "group.coordinator.new.enable": "was removed in Kafka 4.1: there is one group coordinator",
    "leader.imbalance.check.interval.secs": "was renamed: set `leader.imbalance.check.interval.seconds`",
    # Specific to another design.
    "process.roles": _KRAFT,
    "metadata.log.dir": _KRAFT,
    "controller.performance.sample.period.ms": _KRAFT,
    "controller.performance.always.log.threshold.ms": _KRAFT,
    "broker.heartbeat.interval.ms": _KRAFT,
    "broker.session.timeout.ms": "has no effect: set `zookeeper.session.timeout.ms`",
    "initial.broker.registration.timeout.ms": _KRAFT,
    "early.start.listeners": _KRAFT,
    "server.max.startup.time.ms": _KRAFT,
    "sasl.mechanism.controller.protocol": _KRAFT,
    "unclean.leader.election.interval.ms": "has no effect: a leader is looked for as soon as a broker returns",
    "group.coordinator.threads": _ONE_LOOP,
    "group.coordinator.background.threads": _ONE_LOOP,
    "group.coordinator.cached.buffer.max.bytes": "has no effect: what a coordinator appends is made anew for each batch",
    "group.consumer.assignment.interval.ms": _AT_ONCE,
    "group.consumer.min.assignment.interval.ms": _AT_ONCE,
    "group.consumer.max.assignment.interval.ms": _AT_ONCE,
    "consumer.assignment.interval.ms": _AT_ONCE,
    "follower.fetch.last.tiered.offset.enable": _REMOTE,
    "remote.copy.lag.bytes": _REMOTE,
    "remote.copy.lag.ms": _REMOTE,
    "max.decompressed.message.bytes": "has no effect: what a batch may unfold to is bounded for all topics alike",
    "num.replica.alter.log.dirs.threads": _MOVES,
    "group.coordinator.append.linger.ms": "has no effect: what arrives in one turn of the loop is appended together",
    "delete.records.purgatory.purge.interval.requests": _PURGATORY,
    "fetch.purgatory.purge.interval.requests": _PURGATORY,
    "producer.purgatory.purge.interval.requests": _PURGATORY,
    "share.fetch.purgatory.purge.interval.requests": _PURGATORY,
    "share.coordinator.threads": _ONE_LOOP,
    "share.coordinator.append.linger.ms": "has no effect: what arrives in one turn of the loop is appended together",
    "share.coordinator.load.buffer.size": "has no effect: a coordinator loads its partition in pieces of 1 MiB",
    "share.coordinator.cached.buffer.max.bytes": "has no effect: no buffer is kept for reuse",
    "group.share.persister.class.name": _PLUGIN,
    "alter.config.policy.class.name": _PLUGIN,
    "create.topic.policy.class.name": _PLUGIN,
    "client.quota.callback.class": _PLUGIN,
    "security.providers": _PLUGIN,
    "sasl.client.callback.handler.class": _PLUGIN,
    "sasl.login.callback.handler.class": _PLUGIN,
    "sasl.login.class": _PLUGIN,
    "ssl.engine.factory.class": _PLUGIN,
    "ssl.provider": _PLUGIN,
    "ssl.keymanager.algorithm": _PLUGIN,
    "ssl.trustmanager.algorithm": _PLUGIN,
    "ssl.secure.random.implementation": _PLUGIN,
    "metric.reporters": _METRICS,
    "metrics.num.samples": _METRICS,
    "metrics.recording.level": _METRICS,
    "metrics.sample.window.ms": _METRICS,
    "auto.include.jmx.reporter": _METRICS,
    "socket.connection.setup.timeout.max.ms": "has no effect: `socket.connection.setup.timeout.ms` does not grow",
    "zookeeper.max.in.flight.requests": "has no effect: the store sends its requests in one pipeline",
    "zookeeper.sync.time.ms": "was removed in Kafka 3.0 and had no effect before",
    "zookeeper.clientCnxnSocket": "has no effect: `zookeeper.ssl.client.enable` alone turns TLS on",
    "remote.fetch.max.wait.ms": _REMOTE,
    "remote.list.offsets.request.timeout.ms": _REMOTE,
    "unstable.api.versions.enable": "has no effect: only finished versions are served",
    "unstable.feature.versions.enable": "has no effect: only finished versions are served",
}

_PREFIX_REMARKS: Mapping[str, str] = {
    "controller.quorum.": _KRAFT,
    "metadata.log.": _KRAFT,
    "metadata.max.": _KRAFT,
    "internal.metadata.": _KRAFT,
    "zookeeper.metadata.migration.": _MIGRATION,
    "zookeeper.ssl.": "has no effect: connections to ZooKeeper use Python's defaults here",
    "eligible.leader.replicas.": "has no effect: leaders come from the ISR alone",
    "remote.log.": _REMOTE,
    "rsm.config.": _REMOTE,
    "rlmm.config.": _REMOTE,
    "kafka.metrics.": _METRICS,
    "password.encoder.": "was removed in Kafka 4.0: passwords set while running are kept in the store as they are",
    "alter.log.dirs.replication.quota.": _MOVES,
    "sasl.oauthbearer.": _OAUTH,
    "sasl.login.": _OAUTH,
    "group.share.assignment.": _AT_ONCE,
    "group.share.assignor.": _AT_ONCE,
    "group.share.min.assignment.": _AT_ONCE,
    "group.share.max.assignment.": _AT_ONCE,
    "group.streams.": _STREAMS,
    "confluent.": "belongs to another vendor's server and has no effect here",
}


def remark(name: str) -> str | None:
    """A sentence about a setting that has no meaning here; None for any other name."""
    text = _REMARKS.get(name)
    if text is None:
        text = next((why for prefix, why in _PREFIX_REMARKS.items() if name.startswith(prefix)), None)
    return None if text is None else f"{name} {text}."


def unknown(name: str, known: Iterable[str]) -> str:
    """The sentence for an unknown name."""
    alike = nearest(name, known)
    hint = f" Did you mean {alike}?" if alike is not None else " No setting has a similar name."
    return f"Unknown setting {name}.{hint}"
