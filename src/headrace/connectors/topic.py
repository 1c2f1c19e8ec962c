"""The topic's side of a connector: its settings, and how rows become records and records become rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from headrace.connectors import ddl
from headrace.connectors.settings import Seconds, setting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

OnError = Literal["fail", "dead-letter", "drop"]
BOOTSTRAP = "127.0.0.1:9092"
_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True)
class TopicOut:
    """``[topic]`` of a source: where its rows go."""

    name: str = setting("The topic the records go to.", example="orders")
    bootstrap: str = setting("Any brokers of the cluster, as host:port,…", default=BOOTSTRAP)
    key: tuple[str, ...] = setting("The field or fields that make a record's key.", default=(), example="id")
    on_error: OnError = setting(
        "What to do with a row that cannot be read: fail, dead-letter (to <topic>.dlq) or drop.",
        default="fail",
    )
    partitions: int | None = setting(
        "Create the topic with so many partitions if it is missing.", default=None, minimum=1, example=3
    )
    replication_factor: int = setting("Replicas of a topic that is created.", default=1, minimum=1)
    client: dict[str, str] = setting(
        "Further client settings by Kafka's names, such as security.protocol.",
        default={},
        example={"security.protocol": "SSL"},
    )

    def problems(self) -> Iterator[str]:
        yield from _name_problems(self.name)


@dataclass(frozen=True)
class TopicIn:
    """``[topic]`` of a sink: where its records come from and how they are read."""

    name: tuple[str, ...] = setting("The topic or topics to read.", example="orders")
    bootstrap: str = setting("Any brokers of the cluster, as host:port,…", default=BOOTSTRAP)
    value: Literal["json", "text", "bytes"] | None = setting(
        "How a value is read: json (needs a schema), text or bytes (one field, value). [json with a schema, else text]",
        default=None,
    )
    schema: str | None = setting(
        "The fields of a JSON value in Spark's words.", default=None, example="id BIGINT, name STRING"
    )
    starting: Literal["earliest", "latest"] = setting("Where a new connector begins.", default="earliest")
    recreated: Literal["read", "fail"] = setting(
        "What to do when the topic was deleted and created again: read it from its beginning, or fail.",
        default="read",
    )
    on_error: OnError = setting(
        "What to do with a record that cannot be read or is refused: fail, dead-letter (to <topic>.dlq) or drop.",
        default="fail",
    )
    max_records: int = setting("The most records in one batch.", default=100_000, minimum=1)
    group: str | None = setting(
        "The consumer group that shows how far the connector is. [connect-<name>]",
        default=None,
        example="orders-to-shop",
    )
    client: dict[str, str] = setting(
        "Further client settings by Kafka's names, such as security.protocol.",
        default={},
        example={"security.protocol": "SSL"},
    )

    @property
    def form(self) -> Literal["json", "text", "bytes"]:
        return self.value or ("text" if self.schema is None else "json")

    def problems(self) -> Iterator[str]:
        yield from _name_problems(*self.name)
        if self.form == "json" and self.schema is None:
            yield 'schema is missing: value = "json" needs the fields, such as schema = "id BIGINT, name STRING"'
        if self.form != "json" and self.schema is not None:
            yield f'schema is given, but value is "{self.form}": a schema belongs to value = "json"'
        if self.schema is not None:
            try:
                ddl.parse(self.schema)
            except ValueError as error:
                yield f"schema cannot be read: {error}"


def _name_problems(*names: str) -> Iterator[str]:
    for name in names:
        if not _TOPIC.fullmatch(name):
            yield f"name is {name!r}: a topic's name has letters, digits, '.', '_' and '-', at most 249"


@dataclass(frozen=True)
class RunSettings:
    """``[run]``: when batches are made and where Spark keeps its place."""

    every: Seconds = setting("How often to look for more.", default=1.0, minimum=0)
    retry_for: Seconds = setting(
        "How long to try again, with growing delays, while the cluster or a sink's target does not answer.",
        default=300.0,
        minimum=0,
    )
    checkpoint: str | None = setting(
        "A directory for Spark's checkpoint, on storage all of Spark's machines share. [in the state directory]",
        default=None,
        example="s3a://bucket/checkpoints",
    )


def connection(topic: TopicOut | TopicIn) -> dict[str, object]:
    """Settings for a client of headrace.client."""
    return {"bootstrap.servers": topic.bootstrap, **topic.client}


def spark_options(topic: TopicOut | TopicIn) -> dict[str, str]:
    """The same for the ``headrace`` data source, which takes client settings with a prefix."""
    return {"kafka.bootstrap.servers": topic.bootstrap} | {
        f"kafka.{name}": value for name, value in topic.client.items()
    }


def to_json(value: object) -> bytes:
    text = json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can only write as \uXXXX
        return json.dumps(value, default=_plain, separators=(",", ":")).encode()


def read_json(data: bytes | str) -> Any:
    """A JSON value; ValueError also for ten thousand brackets."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def key_of(row: Mapping[str, object], fields: tuple[str, ...]) -> bytes | None:
    """One field as it is, several as a JSON object; no key when any of them is missing."""
    if not fields or any(row.get(name) is None for name in fields):
        return None
    if len(fields) > 1:
        return to_json({name: row[name] for name in fields})
    value = row[fields[0]]
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else _scalar(value)).encode("utf-8", "replace")


def _scalar(value: object) -> str:
    text = json.dumps(value, default=_plain, ensure_ascii=False)
    return str(json.loads(text)) if text.startswith('"') else text


def _plain(value: object) -> object:
    """What JSON has no word for, as Spark writes it: ISO times, decimals as text that keeps every digit."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        import base64

        return base64.b64encode(value).decode()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)


def encode(frame: DataFrame, topic: TopicOut) -> DataFrame:
    """Columns to key and value, in Spark itself."""
    from pyspark.sql import functions as f

    value = f.to_json(f.struct(*(f.col(f"`{name}`") for name in frame.columns))).cast("binary")
    if not topic.key:
        return frame.select(f.lit(None).cast("binary").alias("key"), value.alias("value"))
    if len(topic.key) == 1:
        key = f.col(f"`{topic.key[0]}`").cast("string")
    else:
        key = f.to_json(f.struct(*(f.col(f"`{name}`") for name in topic.key)))
    return frame.select(key.cast("binary").alias("key"), value.alias("value"))


METADATA = ("_topic", "_partition", "_offset", "_timestamp", "_key", "_value", "_headers")
"""Columns every chunk begins with: where the record came from, its key, value and headers as bytes."""
UNREADABLE = "_unreadable"
"""Set where a value is not what the schema says; the task that meets it deals with it."""
TOPIC_ID = "_topic_id"
"""The topic's id, which becomes the chunk's."""


def decode(records: DataFrame, topic: TopicIn) -> DataFrame:
    """Records to metadata, TOPIC_ID, fields and UNREADABLE."""
    from pyspark.sql import functions as f

    metadata = [f.col(name[1:]).alias(name) for name in METADATA] + [f.col("topicId").alias(TOPIC_ID)]
    if topic.form == "bytes":
        return records.select(*metadata, "value", f.lit(False).alias(UNREADABLE))
    if topic.form == "text":
        text = f.col("value").cast("string")
        return records.select(*metadata, text.alias("value"), f.lit(False).alias(UNREADABLE))
    schema = schema_of(topic)
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": UNREADABLE}
    names = list(schema.names)
    parsed = f.from_json(f.col("value").cast("string"), schema.add(UNREADABLE, "string"), options)
    fields = [f.col(f"_fields.`{name}`").alias(name) for name in names]
    bad = f.col(f"_fields.{UNREADABLE}").isNotNull() | (
        f.col("_value").isNotNull() & f.col("_fields").isNull()
    )
    return records.select(*metadata, parsed.alias("_fields")).select(
        *METADATA, TOPIC_ID, *fields, bad.alias(UNREADABLE)
    )


def schema_of(topic: TopicIn) -> StructType:
    """The fields a sink will see."""
    return ddl.parse(topic.schema or ("value BINARY" if topic.form == "bytes" else "value STRING"))
