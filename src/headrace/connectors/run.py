"""Runs declared connectors on one Spark session: builds each streaming query, names and places its checkpoint.

A source is its rows written by ``format("headrace")``; a sink is ``format("headrace")`` handed to it by batches.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.client import Admin
from headrace.client.dead_letters import default_name
from headrace.connectors.base import PolledSource, Running, Service, Sink, Source, SparkSource
from headrace.connectors.config import Declaration
from headrace.connectors.errors import ConnectorError
from headrace.connectors.query import Query
from headrace.connectors.state import State
from headrace.connectors.topic import (
    Run,
    TopicIn,
    TopicOut,
    connection,
    decode,
    encode,
    schema_of,
    spark_options,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def check(declaration: Declaration) -> None:
    """Look whether both sides are as the file says; a ConnectorError or ClientError tells what is not."""
    declaration.connector.check()
    topic = declaration.topic
    with Admin({**connection(topic), "default.api.timeout.ms": 15_000}) as admin:
        known = list(admin.topics())
    for name in topic.name if isinstance(topic, TopicIn) else ():
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.6)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConnectorError(f"topic.name is {name!r}, which {topic.bootstrap} does not have{hint}")


def start(
    declaration: Declaration, state: State, spark: Callable[[], SparkSession], *, once: bool = False
) -> Running:
    """Start a connector; the caller holds the state's lock. ``once`` ends when what is there now is done."""
    connector, topic = declaration.connector, declaration.topic
    if isinstance(topic, TopicOut):
        _create_topics(topic)
        if isinstance(connector, Service):
            return connector.start(topic)
    state.keep_identity(_identity(declaration))
    writer = _writer(spark(), declaration)
    writer = writer.queryName(declaration.name).option("checkpointLocation", _checkpoint(declaration, state))
    if once:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{declaration.run.every * 1000:.0f} milliseconds")
    return Query(writer.start, connector, declaration.run.retry_for)


def _writer(spark: SparkSession, declaration: Declaration) -> DataStreamWriter:
    from headrace.spark import register

    register(spark)
    connector, topic = declaration.connector, declaration.topic
    if isinstance(connector, Source) and isinstance(topic, TopicOut):
        return _source(spark, connector, topic)
    assert isinstance(connector, Sink)
    assert isinstance(topic, TopicIn)
    return _sink(spark, connector, topic, declaration.run)


def _source(spark: SparkSession, source: Source, topic: TopicOut) -> DataStreamWriter:
    if isinstance(source, PolledSource):
        from headrace.connectors.polling import stream

        records = stream(spark, source, topic)
    else:
        assert isinstance(source, SparkSource)
        records = encode(source.frame(spark), topic)
    writer = records.writeStream.format("headrace").options(**spark_options(topic))
    return writer if "topic" in records.columns else writer.option("topic", topic.name)


def _sink(spark: SparkSession, sink: Sink, topic: TopicIn, run: Run) -> DataStreamWriter:
    sink.prepare(schema_of(topic))
    records = (
        spark.readStream.format("headrace")
        .options(**{"kafka.isolation.level": "read_committed", **spark_options(topic)})
        .option("subscribe", ",".join(topic.name))
        .option("startingOffsets", topic.starting)
        .option("maxOffsetsPerTrigger", str(topic.max_records))
        .option("includeHeaders", "true")
        .option("group", topic.group or f"connect-{sink.name}")
        .load()
    )
    return decode(records, topic).writeStream.foreachBatch(_handler(sink, topic, run))


def _handler(sink: Sink, topic: TopicIn, run: Run) -> Callable[[DataFrame, int], None]:
    from headrace.connectors.delivery import deliver

    def handle(batch: DataFrame, number: int) -> None:
        deliver(batch, number, sink, topic, run)

    return handle


def _create_topics(topic: TopicOut) -> None:
    if topic.partitions is None:
        return
    with Admin(connection(topic)) as admin:
        known = admin.topics()
        for name in [topic.name] + ([default_name(topic.name)] if topic.on_error == "dead-letter" else []):
            if name not in known:
                admin.create_topic(
                    name,
                    partitions=topic.partitions,
                    replication_factor=topic.replication_factor,
                    exist_ok=True,
                )


def _identity(declaration: Declaration) -> dict[str, Any]:
    topic = declaration.topic
    names = [topic.name] if isinstance(topic.name, str) else list(topic.name)
    return {"type": declaration.type, "topic": names, **declaration.connector.identity()}


def _checkpoint(declaration: Declaration, state: State) -> str:
    given = declaration.run.checkpoint
    return f"{given.rstrip('/')}/{declaration.name}" if given else str(Path(state.checkpoint).absolute())
