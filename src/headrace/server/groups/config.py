"""The broker's settings for groups and offsets, read once."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.server.config.broker import BrokerConfig
from headrace.server.config.broker_table import ASSIGNOR_CLASSES
from headrace.wire.compression import Codec


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """The settings of the group coordinator."""

    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3000
    max_size: int = 2**31 - 1
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5000
    consumer_max_size: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    share_session_timeout_ms: int = 45_000
    share_heartbeat_interval_ms: int = 5000
    share_max_size: int = 200
    share_initialize_retry_ms: int = 30_000
    upgrade: bool = True
    """Whether a live classic group may become a consumer group, and the other way round."""
    downgrade: bool = True
    regex_refresh_interval_ms: int = 600_000
    offset_metadata_max_bytes: int = 4096
    offsets_retention_ms: int = 7 * 24 * 3600 * 1000
    offsets_retention_check_interval_ms: int = 600_000
    offsets_commit_timeout_ms: int = 5000
    offsets_topic_partitions: int = 50
    offsets_topic_codec: Codec = Codec.NONE

    @classmethod
    def of(cls, settings: BrokerConfig) -> GroupConfig:
        policy = (settings.string("group.consumer.migration.policy") or "").lower()
        return cls(
            min_session_timeout_ms=settings.integer("group.min.session.timeout.ms"),
            max_session_timeout_ms=settings.integer("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=settings.integer("group.initial.rebalance.delay.ms"),
            max_size=settings.integer("group.max.size"),
            consumer_session_timeout_ms=settings.integer("group.consumer.session.timeout.ms"),
            consumer_heartbeat_interval_ms=settings.integer("group.consumer.heartbeat.interval.ms"),
            consumer_max_size=settings.integer("group.consumer.max.size"),
            consumer_assignors=tuple(
                ASSIGNOR_CLASSES.get(name, name) for name in settings.list("group.consumer.assignors")
            ),
            share_session_timeout_ms=settings.integer("group.share.session.timeout.ms"),
            share_heartbeat_interval_ms=settings.integer("group.share.heartbeat.interval.ms"),
            share_max_size=settings.integer("group.share.max.size"),
            share_initialize_retry_ms=settings.integer("group.share.initialize.retry.interval.ms"),
            upgrade=policy in ("bidirectional", "upgrade"),
            downgrade=policy in ("bidirectional", "downgrade"),
            regex_refresh_interval_ms=settings.integer("group.consumer.regex.refresh.interval.ms"),
            offset_metadata_max_bytes=settings.integer("offset.metadata.max.bytes"),
            offsets_retention_ms=settings.integer("offsets.retention.minutes") * 60_000,
            offsets_retention_check_interval_ms=settings.integer("offsets.retention.check.interval.ms"),
            offsets_commit_timeout_ms=settings.integer("offsets.commit.timeout.ms"),
            offsets_topic_partitions=settings.integer("offsets.topic.num.partitions"),
            offsets_topic_codec=Codec(settings.integer("offsets.topic.compression.codec")),
        )
