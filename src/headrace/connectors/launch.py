"""Starts a declared connector: builds its streaming query, names it and places its checkpoint.

A source is its rows written by ``format("headrace")``; a sink is ``format("headrace")`` handed to it by batches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.connectors.base import PolledSource, Running, Service, Sink, Source, SparkSource
from headrace.connectors.checks import create_topics, telling
from headrace.connectors.config import Declaration
from headrace.connectors.query import ConnectorQuery
from headrace.connectors.state import State
from headrace.connectors.topic import RunSettings, TopicIn, TopicOut, decode, encode, schema_of, spark_options
from headrace.connectors.waiting import Waiting
from headrace.streaming.starts import Starts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


log = logging.getLogger("headrace.connectors")


def start(
    declaration: Declaration,
    state: State,
    spark: Callable[[], SparkSession],
    *,
    once: bool = False,
    starts: Starts | None = None,
) -> Running:
    """Start a connector; the caller holds the state's lock. ``once`` ends when what is there now is done; ``starts`` is
    shared by all connectors of a session."""
    connector, topic = declaration.connector, declaration.topic
    if isinstance(topic, TopicOut):
        create_topics(topic)
        if isinstance(connector, Service):
            return connector.start(topic)
    state.keep_identity(_identity(declaration))
    writer = _writer(spark(), declaration, state)
    writer = writer.queryName(declaration.name).option("checkpointLocation", _checkpoint(declaration, state))
    if once:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{declaration.run.every * 1000:.0f} milliseconds")
    return ConnectorQuery(
        writer.start, connector, declaration.run.retry_for, state.waiting, starts or Starts()
    )


def _writer(spark: SparkSession, declaration: Declaration, state: State) -> DataStreamWriter:
    from headrace.spark import register

    register(spark)
    connector, topic = declaration.connector, declaration.topic
    if isinstance(connector, Source) and isinstance(topic, TopicOut):
        return _source(spark, connector, topic, declaration.run, state)
    assert isinstance(connector, Sink)
    assert isinstance(topic, TopicIn)
    return _sink(spark, connector, topic, declaration.run, state)


def _source(
    spark: SparkSession, source: Source, topic: TopicOut, run: RunSettings, state: State
) -> DataStreamWriter:
    if isinstance(source, PolledSource):
        from headrace.connectors.polling import stream

        with telling(source):
            start = state.keep_start(source.start)
        waiting = Waiting(state.waiting.absolute())
        records = stream(spark, source, topic, start, waiting, run.every)
    else:
        assert isinstance(source, SparkSource)
        records = encode(source.frame(spark), topic)
    writer = records.writeStream.format("headrace").options(**spark_options(topic))
    return writer if "topic" in records.columns else writer.option("topic", topic.name)


def _sink(
    spark: SparkSession, sink: Sink, topic: TopicIn, run: RunSettings, state: State
) -> DataStreamWriter:
    with telling(sink):
        sink.check_schema(schema_of(topic))
        sink.prepare(schema_of(topic))
    records = (
        spark.readStream.format("headrace")
        .options(**{"kafka.isolation.level": "read_committed", **spark_options(topic)})
        .option("subscribe", ",".join(topic.name))
        .option("startingOffsets", topic.starting)
        .option("maxOffsetsPerTrigger", str(topic.max_records))
        .option("columns", "key,value,topic,partition,offset,timestamp,headers,topicId")
        .option("failOnRecreatedTopic", str(topic.recreated == "fail").lower())
        .option("group", topic.group or f"connect-{sink.name}")
        .load()
    )
    return decode(records, topic).writeStream.foreachBatch(_handler(sink, topic, run, state))


def _handler(sink: Sink, topic: TopicIn, run: RunSettings, state: State) -> Callable[[DataFrame, int], None]:
    from headrace.connectors.delivery import deliver

    def seen(name: str, identifier: str) -> None:
        if state.keep_topic(name, identifier):
            log.warning(
                "%s: the topic %s was deleted and created again; it is read from its beginning, and what the target has "
                "of the old one stays",
                sink.name,
                name,
            )

    def handle(batch: DataFrame, number: int) -> None:
        deliver(batch, number, sink, topic, run, seen, Waiting(state.waiting.absolute()))

    return handle


def _identity(declaration: Declaration) -> dict[str, Any]:
    topic = declaration.topic
    names = [topic.name] if isinstance(topic.name, str) else list(topic.name)
    return {"type": declaration.type, "topic": names, **declaration.connector.identity()}


def _checkpoint(declaration: Declaration, state: State) -> str:
    given = declaration.run.checkpoint
    return f"{given.rstrip('/')}/{declaration.name}" if given else str(Path(state.checkpoint).absolute())
