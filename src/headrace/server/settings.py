"""Kafka's settings as the engines of a broker take them."""

from __future__ import annotations

from headrace.server.config.broker import BrokerConfig
from headrace.server.log.cleaner import CleanerSettings
from headrace.server.log.maintenance import MaintenanceSettings
from headrace.server.net.acceptors import ServingLimits
from headrace.server.replica.fetcher import FetcherSettings


def fetcher_settings(config: BrokerConfig) -> FetcherSettings:
    return FetcherSettings(
        max_wait_ms=config.integer("replica.fetch.wait.max.ms"),
        min_bytes=config.integer("replica.fetch.min.bytes"),
        max_bytes=config.integer("replica.fetch.response.max.bytes"),
        partition_max_bytes=config.integer("replica.fetch.max.bytes"),
        backoff_ms=config.integer("replica.fetch.backoff.ms"),
        socket_timeout_ms=config.integer("replica.socket.timeout.ms"),
        receive_buffer_bytes=config.integer("replica.socket.receive.buffer.bytes"),
    )


def maintenance_settings(config: BrokerConfig) -> MaintenanceSettings:
    return MaintenanceSettings(
        log_initial_task_delay_ms=config.integer("log.initial.task.delay.ms"),
        log_retention_check_interval_ms=config.integer("log.retention.check.interval.ms"),
        log_flush_offset_checkpoint_interval_ms=config.integer("log.flush.offset.checkpoint.interval.ms"),
        log_flush_start_offset_checkpoint_interval_ms=config.integer(
            "log.flush.start.offset.checkpoint.interval.ms"
        ),
        replica_high_watermark_checkpoint_interval_ms=config.integer(
            "replica.high.watermark.checkpoint.interval.ms"
        ),
        producer_id_expiration_check_interval_ms=config.integer("producer.id.expiration.check.interval.ms"),
    )


def cleaner_settings(config: BrokerConfig) -> CleanerSettings:
    return CleanerSettings(
        log_cleaner_enable=config.boolean("log.cleaner.enable"),
        log_cleaner_backoff_ms=config.integer("log.cleaner.backoff.ms"),
        log_cleaner_dedupe_buffer_size=config.integer("log.cleaner.dedupe.buffer.size"),
        log_cleaner_io_buffer_load_factor=config.number("log.cleaner.io.buffer.load.factor"),
        log_cleaner_io_max_bytes_per_second=config.number("log.cleaner.io.max.bytes.per.second"),
    )


def limits(config: BrokerConfig) -> ServingLimits:
    largest = config.integer("socket.request.max.bytes")
    queued = config.integer("queued.max.request.bytes")
    return ServingLimits(
        max_request_bytes=largest,
        max_idle_ms=config.integer("connections.max.idle.ms"),
        buffer_bytes=queued if queued > 0 else max(2 * largest, 256 * 1024 * 1024),
        backlog=config.integer("socket.listen.backlog.size"),
    )
