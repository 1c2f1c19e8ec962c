"""The topic settings that shape a log, with Kafka's names (dots turned into underscores) and defaults."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from headrace.server.config.topic import TopicConfig
from headrace.wire.compression import Codec

LONG_MAX = 2**63 - 1

_CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


@dataclass(slots=True, frozen=True)
class LogConfig:
    """Immutable; a running log gets new settings through `PartitionLog.update_config`."""

    cleanup_policy: tuple[str, ...] = ("delete",)
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = LONG_MAX
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000

    @classmethod
    def of(cls, settings: TopicConfig) -> LogConfig:
        """The fields of the same names of a topic's settings; `internal.segment.bytes` wins over the size that has a lower bound."""
        config = cls(**{field.name: getattr(settings, field.name) for field in fields(cls)})
        small = settings.internal_segment_bytes
        return config if small is None else replace(config, segment_bytes=small)

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """When a segment must end: compaction cannot touch the active one, so its own limit counts too."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms

    @property
    def preallocate_bytes(self) -> int:
        """The size a new segment's file gets at once; 0 for none."""
        return self.segment_bytes if self.preallocate else 0

    @property
    def log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def target_codec(self) -> Codec | None:
        """The codec batches are stored in; None keeps the producer's."""
        return _CODECS.get(self.compression_type)

    def compression_level(self, codec: Codec) -> int | None:
        if codec == Codec.GZIP:
            return self.compression_gzip_level
        if codec == Codec.LZ4:
            return self.compression_lz4_level
        return self.compression_zstd_level if codec == Codec.ZSTD else None
