"""The `kafka.*` options of a Spark job: Kafka's own settings, as the official connector takes them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from headrace.link.settings import KafkaSettings, translate_for_protocol

log = logging.getLogger(__name__)

_PREFIX = "kafka."
_OWN = frozenset(
    {
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "default.api.timeout.ms",
        "fetch.max.wait.ms",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "max.request.size",
        "partition.assignment.strategy",
        "partitioner.class",
        "value.deserializer",
        "value.serializer",
    }
)
"""What the source and the sink read, or refuse, under Java's names."""


def current_options(given: Mapping[str, str]) -> dict[str, str]:
    """A job's options by names in lower case, those of Kafka under the names that librdkafka and this package know."""
    options = {name.lower(): value for name, value in given.items()}
    kafka = {
        name.removeprefix(_PREFIX): options.pop(name) for name in list(options) if name.startswith(_PREFIX)
    }
    translation = translate_for_protocol(kafka, _OWN, _PREFIX)
    for note in translation.notes:
        log.warning("headrace: %s", note)
    return options | {f"{_PREFIX}{name}": value for name, value in translation.settings.items()}


def kafka_settings(options: Mapping[str, str], purpose: str = "configuring Kafka consumer") -> KafkaSettings:
    """`purpose` ends the sentence when the brokers are not named."""
    return KafkaSettings.of(options, purpose, _PREFIX, "headrace-spark")
