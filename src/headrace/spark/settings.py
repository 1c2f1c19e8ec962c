"""The `kafka.*` options of a Spark job: Kafka's own settings, as the official connector takes them."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.link.settings import KafkaSettings

_PREFIX = "kafka."


def kafka_settings(options: Mapping[str, str], purpose: str = "configuring Kafka consumer") -> KafkaSettings:
    """`purpose` ends the sentence when the brokers are not named."""
    return KafkaSettings.of(options, purpose, _PREFIX, "headrace-spark")
