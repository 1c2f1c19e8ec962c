"""Every topic setting of Kafka 4.3, one row each: name, type, default, meaning, check."""

# One row per setting, however long, so that it reads as a table.

from __future__ import annotations

import re
from collections.abc import Mapping

from headrace.server.config.definition import (
    LONG_MAX,
    ConfigType,
    Setting,
    Value,
    at_least,
    between,
    list_of,
    one_of,
    table,
)

# fmt: off
BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = (
    ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST
)

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")

_THROTTLED = re.compile(r"[0-9]+:[0-9]+")


def gzip_level(value: Value) -> str | None:
    if isinstance(value, int) and (value == -1 or 1 <= value <= 9):
        return None
    return "Value must be between 1 and 9 or equal to -1"


def _throttled_replicas(value: Value) -> str | None:
    if not isinstance(value, tuple) or not value or value == ("*",):
        return None
    if all(_THROTTLED.fullmatch(part) for part in value):
        return None
    return "The value must be '*' or a list like [partitionId]:[brokerId],[partitionId]:[brokerId],..."


TOPIC_SETTINGS: Mapping[str, Setting] = table(
    [
        Setting("cleanup.policy", LIST, ("delete",), "What happens to old segments: `delete` drops them by time or size, `compact` keeps the latest record of each key; both may be given. With neither (an empty value) everything is kept until DeleteRecords removes it.", list_of("compact", "delete", may_be_empty=True)),
        Setting("compression.gzip.level", INT, -1, "The gzip level used when the broker compresses; -1 is gzip's own default.", gzip_level),
        Setting("compression.lz4.level", INT, 9, "The lz4 level used when the broker compresses.", between(1, 17)),
        Setting("compression.type", STRING, "producer", "How batches are stored: as the producer sent them (`producer`), uncompressed, or compressed again with the codec named.", one_of(*COMPRESSION_TYPES)),
        Setting("compression.zstd.level", INT, 3, "The zstd level used when the broker compresses.", between(-131072, 22)),
        Setting("delete.retention.ms", LONG, 86_400_000, "How long a compacted topic keeps a tombstone after its value has gone.", at_least(0)),
        Setting("errors.deadletterqueue.group.enable", BOOLEAN, False, "Whether share groups may use this topic for dead letters."),
        Setting("file.delete.delay.ms", LONG, 60_000, "How long a removed file stays on disk before it is deleted.", at_least(0)),
        Setting("flush.messages", LONG, LONG_MAX, "Force an fsync after this many records; 1 after every one. The default leaves it to the system.", at_least(1)),
        Setting("flush.ms", LONG, LONG_MAX, "Force an fsync when this time has passed since the last one. The default leaves it to the system.", at_least(0)),
        Setting("follower.replication.throttled.replicas", LIST, (), "Replicas whose catching up is throttled on the follower, as partition:broker pairs, or `*` for all.", _throttled_replicas),
        Setting("index.interval.bytes", INT, 4096, "About how many bytes of log lie between two entries of the offset index.", at_least(0)),
        Setting("internal.segment.bytes", INT, None, "A segment size without the lower bound, for tests.", internal=True),
        Setting("leader.replication.throttled.replicas", LIST, (), "Replicas whose catching up is throttled on the leader, as partition:broker pairs, or `*` for all.", _throttled_replicas),
        Setting("local.retention.bytes", LONG, -2, "Bytes kept on local disk when old segments live in remote storage; -2 follows retention.bytes.", at_least(-2)),
        Setting("local.retention.ms", LONG, -2, "Time kept on local disk when old segments live in remote storage; -2 follows retention.ms.", at_least(-2)),
        Setting("max.compaction.lag.ms", LONG, LONG_MAX, "The longest a record stays uncompacted in a compacted topic.", at_least(1)),
        Setting("max.message.bytes", INT, 1_048_588, "The largest record batch taken, after compression.", at_least(0)),
        Setting("message.timestamp.after.max.ms", LONG, 3_600_000, "How far a record's timestamp may lie ahead of the broker's clock (CreateTime only).", at_least(0)),
        Setting("message.timestamp.before.max.ms", LONG, LONG_MAX, "How far a record's timestamp may lie behind the broker's clock (CreateTime only).", at_least(0)),
        Setting("message.timestamp.type", STRING, "CreateTime", "Whether a record keeps the producer's timestamp or gets the time of the append.", one_of(*TIMESTAMP_TYPES)),
        Setting("min.cleanable.dirty.ratio", DOUBLE, 0.5, "The share of a compacted log that must be uncompacted before the cleaner takes it up.", between(0, 1)),
        Setting("min.compaction.lag.ms", LONG, 0, "The shortest a record stays uncompacted in a compacted topic.", at_least(0)),
        Setting("min.insync.replicas", INT, 1, "How many replicas must be in sync for a write with acks=all to be taken.", at_least(1)),
        Setting("preallocate", BOOLEAN, False, "Whether a new segment file gets its full size on disk at once."),
        Setting("remote.log.copy.disable", BOOLEAN, False, "Whether remote storage is read-only for this topic."),
        Setting("remote.log.delete.on.disable", BOOLEAN, False, "Whether remote segments go when remote storage is switched off."),
        Setting("remote.storage.enable", BOOLEAN, False, "Whether old segments move to remote storage."),
        Setting("retention.bytes", LONG, -1, "The size of a partition above which its oldest segments are dropped; -1 for no limit."),
        Setting("retention.ms", LONG, 604_800_000, "The age above which segments are dropped; -1 keeps them forever.", at_least(-1)),
        Setting("segment.bytes", INT, 1_073_741_824, "The size at which a new segment is begun.", at_least(1_048_576)),
        Setting("segment.index.bytes", INT, 10_485_760, "The largest size of a segment's index; a full index begins a new segment.", at_least(4)),
        Setting("segment.jitter.ms", LONG, 0, "A random time taken off segment.ms, so that segments do not all roll at once.", at_least(0)),
        Setting("segment.ms", LONG, 604_800_000, "The age at which a new segment is begun even if the old one is not full.", at_least(1)),
        Setting("unclean.leader.election.enable", BOOLEAN, False, "Whether a replica outside the ISR may lead when no other is left. It brings the partition back and may lose acknowledged records."),
    ]
)
