"""What a job asks to write, checked before anything runs: columns, topic and the producer's settings.

Names, meanings and sentences are those of Spark's own Kafka connector, so that a job moves over by changing one
word. Added here: `exactlyOnce` and `includeTimestamp`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.link.settings import KafkaSettings, SettingsError
from headrace.spark.settings import current_options, kafka_settings
from headrace.wire.compression import Codec

log = logging.getLogger(__name__)

T = TypeVar("T")

BATCH_BYTES = 256 * 1024
LARGEST_REQUEST = 1024 * 1024
DELIVERY_TIMEOUT_MS = 120_000
TRANSACTION_TIMEOUT_MS = 900_000
"""A broker's default limit (transaction.max.timeout.ms)."""

_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
_TYPES: dict[str, tuple[DataType, ...]] = {
    "topic": (StringType(),),
    "key": (StringType(), BinaryType()),
    "value": (StringType(), BinaryType()),
    "headers": (_HEADERS,),
    "partition": (IntegerType(),),
    "timestamp": (TimestampType(),),
}

_KNOWN = frozenset(
    {"topic", "exactlyonce", "includetimestamp", "includeheaders", "checkpointlocation", "queryname", "path"}
)
_REFUSED = {
    "key.serializer": "is not supported as keys are serialized with ByteArraySerializer.",
    "value.serializer": "is not supported as value are serialized with ByteArraySerializer.",
    "transactional.id": "is not supported: the sink names its transactions after the query, task by task.",
    "partitioner.class": "is not supported: keys are placed by murmur2 as by default; "
    "give the rows a 'partition' column to place them otherwise.",
    "interceptor.classes": "is not supported: interceptors are Java classes.",
}
_ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}
_CODECS = {codec.name.lower(): codec for codec in Codec}


@dataclass(frozen=True, slots=True)
class WriteOptions:
    kafka: KafkaSettings
    columns: tuple[str, ...]
    """Those of the rows' columns that are written."""
    topic: str | None
    """Where all rows go; the rows say it themselves without this."""
    exactly_once: bool = False
    acks: int = -1
    codec: Codec = Codec.NONE
    level: int | None = None
    batch_bytes: int = BATCH_BYTES
    largest_request: int = LARGEST_REQUEST
    in_flight: int = 5
    """Requests on their way to one broker; brokers recognise a repeated batch among the last five."""
    idempotent: bool = True
    delivery_timeout: float = DELIVERY_TIMEOUT_MS / 1000
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS

    @classmethod
    def of(cls, given: Mapping[str, str], schema: StructType, *, streaming: bool) -> WriteOptions:
        """From a job's options and its rows' schema; SettingsError in one sentence for what cannot be meant."""
        options = current_options(given)
        for name in options:
            if name not in _KNOWN and not name.startswith("kafka."):
                log.warning("headrace: the option %r is not known to the sink and has no effect", name)
        for name, sentence in _REFUSED.items():
            if f"kafka.{name}" in options:
                raise SettingsError(f"Kafka option '{name}' {sentence}")
        topic = options.get("topic")
        columns = _columns(schema, topic, _boolean(options, "includeTimestamp", False))
        exactly_once = _boolean(options, "exactlyOnce", streaming)
        if exactly_once and not streaming:
            raise SettingsError(
                "exactlyOnce is for streams: a batch job that runs again is a new job to Spark and writes again. "
                "Take the option away."
            )
        acks = _choice(options, "acks", _ACKS, "all")
        idempotent = _boolean(options, "kafka.enable.idempotence", acks == -1)
        if acks != -1 and (exactly_once or idempotent):
            what = "exactlyOnce" if exactly_once else "kafka.enable.idempotence"
            remedy = " or set exactlyOnce=false" if exactly_once else ""
            raise SettingsError(f"{what} needs kafka.acks=all: leave kafka.acks alone{remedy}.")
        codec = _choice(options, "compression.type", _CODECS, "none")
        level = options.get(f"kafka.compression.{codec.name.lower()}.level")
        largest = _positive(options, "max.request.size", LARGEST_REQUEST)
        return cls(
            kafka=kafka_settings(options, "configuring Kafka producer"),
            columns=columns,
            topic=topic,
            exactly_once=exactly_once,
            acks=acks,
            codec=codec,
            level=None if level is None else _positive(options, f"compression.{codec.name.lower()}.level", 0),
            batch_bytes=min(_positive(options, "batch.size", BATCH_BYTES), largest),
            largest_request=largest,
            in_flight=min(_positive(options, "max.in.flight.requests.per.connection", 5), 5),
            idempotent=idempotent or exactly_once,
            delivery_timeout=_positive(options, "delivery.timeout.ms", DELIVERY_TIMEOUT_MS) / 1000,
            transaction_timeout_ms=_positive(options, "transaction.timeout.ms", TRANSACTION_TIMEOUT_MS),
        )


def _columns(schema: StructType, topic: str | None, with_timestamp: bool) -> tuple[str, ...]:
    if topic is None and "topic" not in schema.names:
        raise SettingsError(
            "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."
        )
    wanted = [name for name in _TYPES if name in schema.names]
    if topic is not None and "topic" in wanted:
        wanted.remove("topic")
    if "timestamp" in wanted and not with_timestamp:
        wanted.remove("timestamp")
    for name in wanted:
        kind = schema[name].dataType
        if kind.simpleString() not in [allowed.simpleString() for allowed in _TYPES[name]]:
            raise SettingsError(
                f"{name} attribute unsupported type {kind.simpleString()}. {name} must be a(n) "
                f"{' or '.join(allowed.simpleString() for allowed in _TYPES[name])}"
            )
    if "value" not in wanted:
        raise SettingsError("Required attribute 'value' not found")
    return tuple(wanted)


def _choice(options: Mapping[str, str], name: str, choices: Mapping[str, T], default: str) -> T:
    text = options.get(f"kafka.{name}", default).strip().lower()
    if text not in choices:
        raise SettingsError(f"kafka.{name} is {text!r}; it is one of {', '.join(choices)}.")
    return choices[text]


def _positive(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(f"kafka.{name}", str(default)).strip()
    if not text.isdigit() or int(text) == 0:
        raise SettingsError(f"kafka.{name} is {text!r}; it is a positive number.")
    return int(text)


def _boolean(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name.lower(), str(default)).strip().lower()
    if text not in ("true", "false"):
        raise SettingsError(f"{name} is {text!r}; it is true or false.")
    return text == "true"
