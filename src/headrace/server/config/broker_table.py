"""Every broker setting, one row each: name, type, default, meaning, check, importance, update mode.

Names, meanings and defaults are Kafka's. Where a default differs, the row says so. A setting is either read by the code that acts
on it or listed in `inert.py` with the reason. Settings of other Kafka generations are in `retired.py`.
"""

# One row per setting, however long, so that it reads as a table.

from __future__ import annotations

import sys
from collections.abc import Mapping

from headrace.server.config.definition import (
    INT_MAX,
    LONG_MAX,
    ConfigType,
    Importance,
    Setting,
    UpdateMode,
    at_least,
    between,
    list_of,
    one_of,
    one_of_any_case,
    table,
)
from headrace.server.config.ip_overrides import check_overrides
from headrace.server.config.topic_table import COMPRESSION_TYPES, TIMESTAMP_TYPES, gzip_level

ASSIGNOR_CLASSES = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
"""Kafka 3's names for the assignors of the consumer protocol."""

# fmt: off
BOOLEAN, STRING, INT, SHORT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.SHORT, ConfigType.LONG
DOUBLE, LIST, CLASS, PASSWORD = ConfigType.DOUBLE, ConfigType.LIST, ConfigType.CLASS, ConfigType.PASSWORD
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
CLUSTER, BROKER = UpdateMode.CLUSTER_WIDE, UpdateMode.PER_BROKER

RACK_AWARE = ("org.apache.kafka.common.replica.RackAwareReplicaSelector", "RackAwareReplicaSelector")
REPLICA_SELECTORS = (*RACK_AWARE, "org.apache.kafka.common.replica.LeaderSelector", "LeaderSelector")
"""Values of replica.selector.class: Kafka's classes, by their full and their short names."""

_IDENTITY_AND_NETWORK = [
    Setting("node.id", INT, None, "This broker's number, unique in the cluster. Without it broker.id counts, and without both a standalone broker is 1.", at_least(0), HIGH),
    Setting("broker.id", INT, -1, "The older name of node.id.", None, HIGH),
    Setting("broker.rack", STRING, None, "Where the broker stands (rack, zone); replicas of a partition are spread over racks."),
    Setting("headrace.host", STRING, None, "The machine the broker runs on; after racks, replicas are spread over machines. Default: the machine's name."),
    Setting("headrace.stray.retention.ms", LONG, 604_800_000, "How long a broker keeps partitions that it no longer holds when it starts, because their topic was deleted or they were moved meanwhile. They are set aside in directories that end in `-stray`; -1 keeps them.", at_least(-1)),
    Setting("listeners", STRING, "PLAINTEXT://:9092", "Where the broker listens: NAME://host:port, separated by commas; no host means every interface, port 0 any free port.", None, HIGH),
    Setting("advertised.listeners", STRING, None, "The addresses clients are told to use, when they differ from `listeners` (containers, NAT, remote hosts).", None, HIGH),
    Setting("listener.security.protocol.map", STRING, "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", "Which protocol each listener name speaks.", None, LOW),
    Setting("inter.broker.listener.name", STRING, None, "The listener brokers use among themselves."),
    Setting("security.inter.broker.protocol", STRING, "PLAINTEXT", "The protocol brokers use among themselves when no listener name is given.", one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    Setting("controller.listener.names", STRING, None, "Listeners of a KRaft controller; Headrace opens none of them.", None, HIGH),
    Setting("socket.request.max.bytes", INT, 104_857_600, "The largest request taken; a larger one ends its connection.", at_least(1), HIGH),
    Setting("socket.send.buffer.bytes", INT, -1, "SO_SNDBUF of client connections; -1 leaves it to the system. (Kafka: 102,400.)", None, HIGH),
    Setting("socket.receive.buffer.bytes", INT, -1, "SO_RCVBUF of client connections; -1 leaves it to the system. (Kafka: 102,400.)", None, HIGH),
    Setting("socket.listen.backlog.size", INT, 1024, "How many connections may wait to be accepted. (Kafka: 50.)", at_least(1)),
    Setting("max.connections", INT, INT_MAX, "How many connections the broker holds at once; one more is closed. As `listener.name.<listener>.max.connections` the limit of one listener.", at_least(0), MEDIUM, CLUSTER),
    Setting("max.connections.per.ip", INT, INT_MAX, "How many connections one address may hold; one more is closed.", at_least(0), MEDIUM, CLUSTER),
    Setting("max.connections.per.ip.overrides", STRING, "", "Limits for single addresses: host:count, separated by commas.", check_overrides, MEDIUM, CLUSTER),
    Setting("max.connection.creation.rate", INT, INT_MAX, "How many connections may open per second; those beyond it wait for their turn. As `listener.name.<listener>.max.connection.creation.rate` the rate of one listener.", at_least(0), MEDIUM, CLUSTER),
    Setting("connections.max.idle.ms", LONG, 600_000, "A connection without traffic for this long is closed."),
    Setting("connection.failed.authentication.delay.ms", INT, 100, "How long the reply to a failed login is delayed.", at_least(0), LOW),
    Setting("num.io.threads", INT, 8, "Threads for whatever waits for a disk.", at_least(1), HIGH, CLUSTER),
    Setting("num.network.threads", INT, 3, "Kafka's threads that read requests and write replies.", at_least(1), HIGH, CLUSTER),
    Setting("background.threads", INT, 10, "Kafka's threads for background work.", at_least(1), HIGH, CLUSTER),
    Setting("queued.max.requests", INT, 500, "Requests that may wait for one of Kafka's threads.", at_least(1), HIGH),
    Setting("queued.max.request.bytes", LONG, -1, "Bytes of requests held in memory before reading pauses; -1 lets Headrace choose."),
    Setting("socket.connection.setup.timeout.ms", LONG, 10_000, "How long a connection to another broker may take to open.", at_least(1)),
    Setting("request.timeout.ms", INT, 30_000, "How long a broker waits for another one's reply.", None, HIGH),
    Setting("fetch.max.bytes", INT, 57_671_680, "The most bytes returned for one fetch.", at_least(1024)),
    Setting("max.incremental.fetch.session.cache.slots", INT, 1000, "How many fetch sessions are kept.", at_least(0)),
    Setting("max.request.partition.size.limit", INT, 2000, "How many partitions one DescribeTopicPartitions reply holds.", at_least(1)),
]

_TOPICS_AND_LOG = [
    Setting("log.dir", STRING, "data", "The data directory, when log.dirs is not set. (Kafka: /tmp/kafka-logs, which a restart may empty.)", None, HIGH),
    Setting("log.dirs", STRING, None, "The data directories, separated by commas.", None, HIGH),
    Setting("num.partitions", INT, 1, "Partitions of a topic created without a number.", at_least(1)),
    Setting("default.replication.factor", INT, 1, "Replicas of a topic created without a number."),
    Setting("auto.create.topics.enable", BOOLEAN, True, "Whether a topic is created when a client first asks for it.", None, HIGH),
    Setting("delete.topic.enable", BOOLEAN, True, "Whether topics may be deleted.", None, HIGH),
    Setting("message.max.bytes", INT, 1_048_588, "The largest record batch taken, after compression; a topic's max.message.bytes wins.", at_least(0), HIGH, CLUSTER),
    Setting("compression.type", STRING, "producer", "How batches are stored; a topic's own setting wins.", one_of(*COMPRESSION_TYPES), HIGH, CLUSTER),
    Setting("compression.gzip.level", INT, -1, "The gzip level used when the broker compresses.", gzip_level, MEDIUM, CLUSTER),
    Setting("compression.lz4.level", INT, 9, "The lz4 level used when the broker compresses.", between(1, 17), MEDIUM, CLUSTER),
    Setting("compression.zstd.level", INT, 3, "The zstd level used when the broker compresses.", between(-131072, 22), MEDIUM, CLUSTER),
    Setting("log.cleanup.policy", LIST, ("delete",), "The default of cleanup.policy.", list_of("compact", "delete", may_be_empty=True), MEDIUM, CLUSTER),
    Setting("log.segment.bytes", INT, 1_073_741_824, "The default of segment.bytes.", at_least(1_048_576), HIGH, CLUSTER),
    Setting("log.roll.ms", LONG, None, "The default of segment.ms; without it log.roll.hours counts.", None, HIGH, CLUSTER),
    Setting("log.roll.hours", INT, 168, "Hours before a new segment is begun, when log.roll.ms is not set.", at_least(1), HIGH),
    Setting("log.roll.jitter.ms", LONG, None, "The default of segment.jitter.ms; without it log.roll.jitter.hours counts.", None, HIGH, CLUSTER),
    Setting("log.roll.jitter.hours", INT, 0, "Hours of jitter, when log.roll.jitter.ms is not set.", at_least(0), HIGH),
    Setting("log.retention.ms", LONG, None, "The default of retention.ms; without it log.retention.minutes counts, then log.retention.hours. -1 keeps forever.", None, HIGH, CLUSTER),
    Setting("log.retention.minutes", INT, None, "Minutes records are kept, when log.retention.ms is not set.", None, HIGH),
    Setting("log.retention.hours", INT, 168, "Hours records are kept, when neither log.retention.ms nor log.retention.minutes is set.", None, HIGH),
    Setting("log.retention.bytes", LONG, -1, "The default of retention.bytes.", None, HIGH, CLUSTER),
    Setting("log.retention.check.interval.ms", LONG, 300_000, "How often retention looks for segments to drop.", at_least(1)),
    Setting("log.index.size.max.bytes", INT, 10_485_760, "The default of segment.index.bytes.", at_least(4), MEDIUM, CLUSTER),
    Setting("log.index.interval.bytes", INT, 4096, "The default of index.interval.bytes.", at_least(0), MEDIUM, CLUSTER),
    Setting("log.flush.interval.messages", LONG, LONG_MAX, "The default of flush.messages; 1 acknowledges only what is on disk.", at_least(1), HIGH, CLUSTER),
    Setting("log.flush.interval.ms", LONG, None, "The default of flush.ms; without it log.flush.scheduler.interval.ms counts.", None, HIGH, CLUSTER),
    Setting("log.flush.scheduler.interval.ms", LONG, LONG_MAX, "How often the broker looks for logs to flush.", None, HIGH),
    Setting("log.flush.offset.checkpoint.interval.ms", INT, 60_000, "How often the recovery points are checkpointed.", at_least(0), HIGH),
    Setting("log.flush.start.offset.checkpoint.interval.ms", INT, 60_000, "How often the log start offsets are checkpointed.", at_least(0), HIGH),
    Setting("log.segment.delete.delay.ms", LONG, 60_000, "The default of file.delete.delay.ms.", at_least(0), HIGH, CLUSTER),
    Setting("log.preallocate", BOOLEAN, False, "The default of preallocate.", None, MEDIUM, CLUSTER),
    Setting("log.message.timestamp.type", STRING, "CreateTime", "The default of message.timestamp.type.", one_of(*TIMESTAMP_TYPES), MEDIUM, CLUSTER),
    Setting("log.message.timestamp.before.max.ms", LONG, LONG_MAX, "The default of message.timestamp.before.max.ms.", at_least(0), MEDIUM, CLUSTER),
    Setting("log.message.timestamp.after.max.ms", LONG, 3_600_000, "The default of message.timestamp.after.max.ms.", at_least(0), MEDIUM, CLUSTER),
    Setting("log.local.retention.bytes", LONG, -2, "The default of local.retention.bytes.", at_least(-2), MEDIUM, CLUSTER),
    Setting("log.local.retention.ms", LONG, -2, "The default of local.retention.ms.", at_least(-2), MEDIUM, CLUSTER),
    Setting("log.initial.task.delay.ms", LONG, 30_000, "How long after the start the first retention and checkpoint runs come.", at_least(0), LOW, internal=True),
    Setting("log.dir.failure.timeout.ms", LONG, 30_000, "How long a broker tries to tell the controller that a directory failed before it stops.", at_least(1), LOW),
    Setting("log.cleaner.enable", BOOLEAN, True, "Whether compacted topics are compacted."),
    Setting("log.cleaner.threads", INT, 1, "How many cleaner processes run.", at_least(0), MEDIUM, CLUSTER),
    Setting("log.cleaner.backoff.ms", LONG, 15_000, "How long the cleaner waits when nothing needs cleaning.", at_least(0), MEDIUM, CLUSTER),
    Setting("log.cleaner.dedupe.buffer.size", LONG, 134_217_728, "Memory for the cleaner's map of keys.", None, MEDIUM, CLUSTER),
    Setting("log.cleaner.io.buffer.size", INT, 524_288, "Memory for the cleaner's reads and writes.", at_least(0), MEDIUM, CLUSTER),
    Setting("log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, "How full the map of keys may become.", None, MEDIUM, CLUSTER),
    Setting("log.cleaner.io.max.bytes.per.second", DOUBLE, sys.float_info.max, "The cleaner's limit on reads and writes together.", None, MEDIUM, CLUSTER),
    Setting("log.cleaner.delete.retention.ms", LONG, 86_400_000, "The default of delete.retention.ms.", at_least(0), MEDIUM, CLUSTER),
    Setting("log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, "The default of min.cleanable.dirty.ratio.", between(0, 1), MEDIUM, CLUSTER),
    Setting("log.cleaner.min.compaction.lag.ms", LONG, 0, "The default of min.compaction.lag.ms.", at_least(0), MEDIUM, CLUSTER),
    Setting("log.cleaner.max.compaction.lag.ms", LONG, LONG_MAX, "The default of max.compaction.lag.ms.", at_least(1), MEDIUM, CLUSTER),
    Setting("num.recovery.threads.per.data.dir", INT, 4, "Threads that recover the logs of a directory after a crash. (Kafka: 2.)", at_least(1), HIGH, CLUSTER),
]

_REPLICATION_AND_CONTROLLER = [
    Setting("min.insync.replicas", INT, 1, "How many replicas must be in sync for a write with acks=all; a topic's own setting wins.", at_least(1), HIGH, CLUSTER),
    Setting("unclean.leader.election.enable", BOOLEAN, False, "Whether a replica outside the ISR may lead when no other is left; a topic's own setting wins.", None, HIGH, CLUSTER),
    Setting("replica.lag.time.max.ms", LONG, 10_000, "A follower that has not caught up for this long leaves the ISR. (Kafka since 2.5: 30,000.)", None, HIGH),
    Setting("replica.fetch.max.bytes", INT, 1_048_576, "Bytes a follower asks for per partition.", at_least(0)),
    Setting("replica.fetch.min.bytes", INT, 1, "Bytes a follower waits for.", None, HIGH),
    Setting("replica.fetch.response.max.bytes", INT, 10_485_760, "Bytes a follower takes in one reply.", at_least(0)),
    Setting("replica.fetch.wait.max.ms", INT, 500, "How long a follower's fetch waits for data.", None, HIGH),
    Setting("replica.fetch.backoff.ms", INT, 1000, "How long a follower waits after an error.", at_least(0)),
    Setting("replica.socket.timeout.ms", INT, 30_000, "How long a follower waits for a reply.", None, HIGH),
    Setting("replica.socket.receive.buffer.bytes", INT, -1, "SO_RCVBUF of a follower's connection; -1 leaves it to the system. (Kafka: 65,536.)", None, HIGH),
    Setting("replica.high.watermark.checkpoint.interval.ms", LONG, 5000, "How often high watermarks are checkpointed.", None, HIGH),
    Setting("replica.selector.class", STRING, None, "Which replica consumers read from: the leader, or with `org.apache.kafka.common.replica.RackAwareReplicaSelector` (for short `RackAwareReplicaSelector`) one in the rack a consumer names (`client.rack`).", one_of(*REPLICA_SELECTORS)),
    Setting("num.replica.fetchers", INT, 1, "Connections to each leader a follower pulls from.", None, HIGH, CLUSTER),
    Setting("leader.replication.throttled.rate", LONG, LONG_MAX, "Bytes per second a leader sends to throttled replicas. Set while running only.", at_least(0), MEDIUM, CLUSTER),
    Setting("follower.replication.throttled.rate", LONG, LONG_MAX, "Bytes per second a follower takes for throttled replicas. Set while running only.", at_least(0), MEDIUM, CLUSTER),
    Setting("replica.alter.log.dirs.io.max.bytes.per.second", LONG, LONG_MAX, "Bytes per second for moving replicas between directories. Set while running only.", at_least(0), MEDIUM, CLUSTER),
    Setting("auto.leader.rebalance.enable", BOOLEAN, True, "Whether leadership automatically goes back to preferred leaders.", None, HIGH),
    Setting("leader.imbalance.check.interval.seconds", LONG, 300, "How often the balance of leaders is checked.", at_least(1), HIGH),
    Setting("leader.imbalance.per.broker.percentage", INT, 10, "The share of partitions, per broker, not led by their preferred leader that is still accepted.", None, HIGH),
    Setting("controlled.shutdown.enable", BOOLEAN, True, "Whether leadership moves away before a broker stops."),
    Setting("controlled.shutdown.max.retries", INT, 3, "How often a stopping broker asks the controller to move its leaders."),
    Setting("controlled.shutdown.retry.backoff.ms", LONG, 5000, "How long it waits in between."),
    Setting("controller.socket.timeout.ms", INT, 30_000, "How long a broker waits for the controller's reply."),
    Setting("headrace.store", STRING, None, "The socket of this machine's supervisor, which keeps the cluster's metadata; `headrace up --brokers N` sets it."),
    Setting("zookeeper.connect", STRING, None, "The ZooKeeper ensemble, host:port[,…][/chroot]; without it the embedded store holds the cluster's metadata.", None, HIGH),
    Setting("zookeeper.session.timeout.ms", INT, 6000, "How long ZooKeeper waits before it declares a silent broker dead.", None, HIGH),
    Setting("zookeeper.connection.timeout.ms", INT, None, "How long the first connection to ZooKeeper may take; without it a broker waits for ZooKeeper.", None, HIGH),
    Setting("zookeeper.set.acl", BOOLEAN, False, "Whether the cluster's nodes in ZooKeeper are for the broker's login alone.", None, HIGH),
    Setting("headrace.zookeeper.user", STRING, None, "The user that the broker logs in to ZooKeeper as; one for all brokers.", None, HIGH),
    Setting("headrace.zookeeper.password", PASSWORD, None, "The password of that user.", None, HIGH),
    Setting("headrace.zookeeper.login.scheme", STRING, "DIGEST", "How it logs in: ZooKeeper's scheme digest, or SASL with DIGEST-MD5, for which the servers need a JAAS file.", one_of("DIGEST", "DIGEST-MD5"), MEDIUM),
    Setting("zookeeper.ssl.client.enable", BOOLEAN, False, "Whether the broker speaks TLS with ZooKeeper.", None, MEDIUM),
    Setting("zookeeper.ssl.keystore.location", STRING, None, "The key store with the certificate that the broker shows to ZooKeeper.", None, MEDIUM),
    Setting("zookeeper.ssl.keystore.password", PASSWORD, None, "Its password.", None, MEDIUM),
    Setting("zookeeper.ssl.keystore.type", STRING, None, "Its kind, PEM or PKCS12; otherwise seen from the file.", None, MEDIUM),
    Setting("zookeeper.ssl.truststore.location", STRING, None, "The trust store for ZooKeeper's certificates.", None, MEDIUM),
    Setting("zookeeper.ssl.truststore.password", PASSWORD, None, "Its password.", None, MEDIUM),
    Setting("zookeeper.ssl.truststore.type", STRING, None, "Its kind, PEM or PKCS12; otherwise seen from the file.", None, MEDIUM),
    Setting("zookeeper.ssl.crl.enable", BOOLEAN, False, "Whether to look for ZooKeeper's certificate in revocation lists; not offered.", None, LOW),
    Setting("zookeeper.ssl.ocsp.enable", BOOLEAN, False, "Whether to ask its authority about ZooKeeper's certificate; not offered.", None, LOW),
    Setting("zookeeper.ssl.endpoint.identification.algorithm", STRING, "HTTPS", "Whether ZooKeeper's certificate must name its host; empty for no.", None, LOW),
]

_GROUPS_AND_TRANSACTIONS = [
    Setting("offsets.topic.num.partitions", INT, 50, "Partitions of __consumer_offsets.", at_least(1), HIGH),
    Setting("offsets.topic.replication.factor", SHORT, 3, "Replicas of __consumer_offsets; 1 on a standalone broker; in a cluster the topic is created once there are that many brokers.", at_least(1), HIGH),
    Setting("offsets.topic.segment.bytes", INT, 104_857_600, "Segment size of __consumer_offsets.", at_least(1), HIGH),
    Setting("offsets.topic.compression.codec", INT, 0, "Codec of __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.", between(0, 4), HIGH),
    Setting("offsets.retention.minutes", INT, 10_080, "How long the offsets of an empty group are kept.", at_least(1), HIGH),
    Setting("offsets.retention.check.interval.ms", LONG, 600_000, "How often expired offsets are looked for.", at_least(1), HIGH),
    Setting("offsets.commit.timeout.ms", INT, 5000, "How long a commit may wait for its replicas.", at_least(1), HIGH),
    Setting("offsets.load.buffer.size", INT, 5_242_880, "Bytes read at a time when offsets are loaded.", at_least(1), HIGH),
    Setting("offset.metadata.max.bytes", INT, 4096, "The largest metadata text of a commit.", None, HIGH),
    Setting("group.initial.rebalance.delay.ms", INT, 3000, "How long an empty group waits for more members before its first rebalance."),
    Setting("group.min.session.timeout.ms", INT, 6000, "The shortest session.timeout.ms a member may ask for."),
    Setting("group.max.session.timeout.ms", INT, 1_800_000, "The longest session.timeout.ms a member may ask for."),
    Setting("group.max.size", INT, INT_MAX, "The most members of a classic group.", at_least(1)),
    Setting("group.coordinator.rebalance.protocols", LIST, ("classic", "consumer", "streams"), "The group protocols offered. Without `consumer` its requests get UNSUPPORTED_VERSION; `streams` and `share` are not offered even when they are named.", list_of("consumer", "classic", "share", "streams")),
    Setting("group.consumer.session.timeout.ms", INT, 45_000, "The session timeout of the consumer protocol.", at_least(1)),
    Setting("group.consumer.min.session.timeout.ms", INT, 45_000, "The shortest session timeout a group may be given.", at_least(1)),
    Setting("group.consumer.max.session.timeout.ms", INT, 60_000, "The longest session timeout a group may be given.", at_least(1)),
    Setting("group.consumer.heartbeat.interval.ms", INT, 5000, "The heartbeat interval of the consumer protocol.", at_least(1)),
    Setting("group.consumer.min.heartbeat.interval.ms", INT, 5000, "The shortest heartbeat interval a group may be given.", at_least(1)),
    Setting("group.consumer.max.heartbeat.interval.ms", INT, 15_000, "The longest heartbeat interval a group may be given.", at_least(1)),
    Setting("group.consumer.max.size", INT, INT_MAX, "The most members of a consumer-protocol group.", at_least(1)),
    Setting("group.consumer.assignors", LIST, ("uniform", "range"), "Assignors of the consumer protocol; the first is the default.", list_of("uniform", "range", *ASSIGNOR_CLASSES)),
    Setting("group.consumer.migration.policy", STRING, "bidirectional", "Whether a group may change between the classic and the consumer protocol.", one_of_any_case("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL")),
    Setting("group.consumer.regex.refresh.interval.ms", INT, 600_000, "How often subscribed patterns are matched again.", at_least(10_000), internal=True),
    Setting("transaction.state.log.num.partitions", INT, 50, "Partitions of __transaction_state.", at_least(1), HIGH),
    Setting("transaction.state.log.replication.factor", SHORT, 3, "Replicas of __transaction_state; 1 on a standalone broker; in a cluster the topic is created once there are that many brokers.", at_least(1), HIGH),
    Setting("transaction.state.log.min.isr", INT, 2, "min.insync.replicas of __transaction_state.", at_least(1), HIGH),
    Setting("transaction.state.log.segment.bytes", INT, 104_857_600, "Segment size of __transaction_state.", at_least(1), HIGH),
    Setting("transaction.state.log.load.buffer.size", INT, 5_242_880, "Bytes read at a time when transactions are loaded.", at_least(1), HIGH),
    Setting("transaction.max.timeout.ms", INT, 900_000, "The longest transaction.timeout.ms a producer may ask for.", at_least(1), HIGH),
    Setting("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, 10_000, "How often overdue transactions are looked for.", at_least(1), LOW),
    Setting("transaction.remove.expired.transaction.cleanup.interval.ms", INT, 3_600_000, "How often expired transactional ids are looked for.", at_least(1), LOW),
    Setting("add.partitions.to.txn.retry.backoff.ms", INT, 20, "How long a broker waits before it asks a transaction's coordinator again whether a write belongs to the transaction.", at_least(1), HIGH),
    Setting("add.partitions.to.txn.retry.backoff.max.ms", INT, 100, "Total retry time before the producer gets a retriable error.", at_least(0), HIGH),
    Setting("transaction.partition.verification.enable", BOOLEAN, True, "Whether a transactional write is checked against the coordinator.", None, LOW, CLUSTER),
    Setting("transaction.two.phase.commit.enable", BOOLEAN, False, "Whether producers may keep transactions open without a timeout.", None, LOW),
    Setting("transactional.id.expiration.ms", INT, 604_800_000, "How long an unused transactional id is remembered.", at_least(1), HIGH),
    Setting("producer.id.expiration.ms", INT, 86_400_000, "How long a partition remembers a silent producer.", at_least(1), LOW, CLUSTER),
    Setting("producer.id.expiration.check.interval.ms", INT, 600_000, "How often forgotten producers are looked for.", at_least(1), LOW, internal=True),
]

_QUOTAS = [
    Setting("quota.window.num", INT, 11, "Samples a client quota is averaged over.", at_least(1), LOW),
    Setting("quota.window.size.seconds", INT, 1, "Length of one sample of a client quota.", at_least(1), LOW),
    Setting("controller.quota.window.num", INT, 11, "Samples a controller quota is averaged over.", at_least(1), LOW),
    Setting("controller.quota.window.size.seconds", INT, 1, "Length of one sample of a controller quota.", at_least(1), LOW),
    Setting("replication.quota.window.num", INT, 11, "Samples a replication throttle is averaged over.", at_least(1), LOW),
    Setting("replication.quota.window.size.seconds", INT, 1, "Length of one sample of a replication throttle.", at_least(1), LOW),
]

_SECURITY = [
    Setting("authorizer.class.name", STRING, "", "What decides who may do what; `org.apache.kafka.metadata.authorizer.StandardAuthorizer` for ACLs, a Python class of your own, empty for no checks.", None, LOW),
    Setting("super.users", STRING, "", "Principals that may do everything: User:name, separated by semicolons.", None, MEDIUM),
    Setting("allow.everyone.if.no.acl.found", BOOLEAN, False, "Whether a resource without ACLs is open to all.", None, MEDIUM),
    Setting("sasl.enabled.mechanisms", LIST, ("GSSAPI",), "SASL mechanisms offered.", None, MEDIUM, BROKER),
    Setting("sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", "The SASL mechanism brokers use among themselves.", None, MEDIUM, BROKER),
    Setting("sasl.jaas.config", PASSWORD, None, "Login of the broker, in JAAS form.", None, MEDIUM, BROKER),
    Setting("sasl.kerberos.service.name", STRING, None, "The Kerberos principal name Kafka runs as.", None, MEDIUM, BROKER),
    Setting("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", "Kerberos' kinit command.", None, MEDIUM, BROKER),
    Setting("sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, "The share of a ticket's life after which it is renewed.", None, MEDIUM, BROKER),
    Setting("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, "Random jitter added to the renewal time.", None, MEDIUM, BROKER),
    Setting("sasl.kerberos.min.time.before.relogin", LONG, 60_000, "How long a login thread sleeps between refreshes.", None, MEDIUM, BROKER),
    Setting("sasl.kerberos.principal.to.local.rules", LIST, ("DEFAULT",), "How a Kerberos principal becomes a short name.", None, MEDIUM, BROKER),
    Setting("sasl.server.max.receive.size", INT, 524_288, "The largest SASL message taken."),
    Setting("connections.max.reauth.ms", LONG, 0, "How long a SASL session lasts before it must log in again; 0 forever."),
    Setting("sasl.server.callback.handler.class", STRING, None, "The Java class that checks logins; Kafka's own OAuthBearerValidatorCallbackHandler is what OAUTHBEARER does here, and no other can be used.", None, LOW, BROKER),
    Setting("sasl.oauthbearer.jwks.endpoint.url", STRING, None, "Where the keys of the identity provider are: http://, https:// or file://.", None, MEDIUM, BROKER),
    Setting("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, "How often the keys are fetched anew.", at_least(1), LOW, BROKER),
    Setting("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, "The first pause between tries to fetch the keys; it doubles.", at_least(0), LOW, BROKER),
    Setting("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10_000, "The longest pause between tries to fetch the keys.", at_least(0), LOW, BROKER),
    Setting("sasl.oauthbearer.expected.issuer", STRING, None, "Who must have issued a token (`iss`).", None, LOW, BROKER),
    Setting("sasl.oauthbearer.expected.audience", LIST, (), "For whom a token must be (`aud`), one of these.", None, LOW, BROKER),
    Setting("sasl.oauthbearer.allow.unverified.issuer", BOOLEAN, False, "Whether tokens of any issuer are taken when none is expected.", None, LOW, BROKER),
    Setting("sasl.oauthbearer.allow.unverified.audience", BOOLEAN, False, "Whether tokens for any audience are taken when none is expected.", None, LOW, BROKER),
    Setting("sasl.oauthbearer.scope.claim.name", STRING, "scope", "The claim that has a token's scope.", None, LOW, BROKER),
    Setting("sasl.oauthbearer.sub.claim.name", STRING, "sub", "The claim that has the user's name.", None, LOW, BROKER),
    Setting("sasl.oauthbearer.clock.skew.seconds", INT, 30, "How far the clocks of the identity provider and the broker may differ.", at_least(0), LOW, BROKER),
    Setting("sasl.oauthbearer.token.endpoint.url", STRING, None, "Where the broker itself gets tokens, to log in to other brokers.", None, MEDIUM, BROKER),
    Setting("sasl.login.read.timeout.ms", INT, 10_000, "How long the identity provider may take to answer. Kafka's default is no limit.", at_least(1), LOW, BROKER),
    Setting("ssl.client.auth", STRING, "none", "Whether clients must show a certificate.", one_of("required", "requested", "none"), MEDIUM, BROKER),
    Setting("ssl.protocol", STRING, "TLSv1.3", "The TLS version.", None, MEDIUM, BROKER),
    Setting("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), "The TLS versions taken.", None, MEDIUM, BROKER),
    Setting("ssl.cipher.suites", LIST, (), "The cipher suites taken; empty for all of the library's.", None, MEDIUM, BROKER),
    Setting("ssl.endpoint.identification.algorithm", STRING, "https", "How a server's name is checked; empty for not at all.", None, LOW, BROKER),
    Setting("principal.builder.class", CLASS, None, "A Python class that decides who a connection belongs to, such as my.module.MyBuilder; without it, the login's name or the certificate's.", None, LOW),
    Setting("ssl.principal.mapping.rules", STRING, "DEFAULT", "How a certificate's name becomes a principal.", None, LOW),
    Setting("ssl.allow.dn.changes", BOOLEAN, False, "Whether a certificate that replaces another while the broker runs may have another distinguished name.", None, LOW),
    Setting("ssl.allow.san.changes", BOOLEAN, False, "Whether a certificate that replaces another while the broker runs may lack some of its subject alternative names.", None, LOW),
    Setting("ssl.keystore.type", STRING, "JKS", "The kind of key store, PEM or PKCS12.", None, MEDIUM, BROKER),
    Setting("ssl.keystore.location", STRING, None, "The key store's file.", None, MEDIUM, BROKER),
    Setting("ssl.keystore.password", PASSWORD, None, "The key store's password.", None, MEDIUM, BROKER),
    Setting("ssl.keystore.certificate.chain", PASSWORD, None, "The certificate chain, as PEM text.", None, MEDIUM, BROKER),
    Setting("ssl.keystore.key", PASSWORD, None, "The private key, as PEM text.", None, MEDIUM, BROKER),
    Setting("ssl.key.password", PASSWORD, None, "The private key's password.", None, MEDIUM, BROKER),
    Setting("ssl.truststore.type", STRING, "JKS", "The kind of trust store, PEM or PKCS12.", None, MEDIUM, BROKER),
    Setting("ssl.truststore.location", STRING, None, "The trust store's file.", None, MEDIUM, BROKER),
    Setting("ssl.truststore.password", PASSWORD, None, "The trust store's password.", None, MEDIUM, BROKER),
    Setting("ssl.truststore.certificates", PASSWORD, None, "The trusted certificates, as PEM text.", None, MEDIUM, BROKER),
    Setting("delegation.token.secret.key", PASSWORD, None, "The key delegation tokens are made with; the same on every broker."),
    Setting("delegation.token.max.lifetime.ms", LONG, 604_800_000, "The longest a delegation token lives.", at_least(1)),
    Setting("delegation.token.expiry.time.ms", LONG, 86_400_000, "How long a delegation token lives without renewal.", at_least(1)),
    Setting("delegation.token.expiry.check.interval.ms", LONG, 3_600_000, "How often expired tokens are looked for.", at_least(1), LOW),
]

BROKER_SETTINGS: Mapping[str, Setting] = table(
    [*_IDENTITY_AND_NETWORK, *_TOPICS_AND_LOG, *_REPLICATION_AND_CONTROLLER, *_GROUPS_AND_TRANSACTIONS, *_QUOTAS, *_SECURITY]
)

DYNAMIC_ONLY = frozenset(
    {"leader.replication.throttled.rate", "follower.replication.throttled.rate", "replica.alter.log.dirs.io.max.bytes.per.second"}
)
"""Settings that do not belong in a properties file: they are set on a running cluster."""
