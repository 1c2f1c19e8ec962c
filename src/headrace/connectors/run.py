"""Runs declared connectors on one Spark session: builds each streaming query, names and places its checkpoint.

A source is its rows written by ``format("headrace")``; a sink is ``format("headrace")`` handed to it by batches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.client import Admin, ClientError
from headrace.client.dead_letters import default_name
from headrace.connectors import catalogue
from headrace.connectors.base import Connector, PolledSource, Running, Service, Sink, Source, SparkSource
from headrace.connectors.config import Declaration
from headrace.connectors.errors import ConnectorError, one_line
from headrace.connectors.query import Query, Starts
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
from headrace.connectors.waiting import Waiting
from headrace.nearest import nearest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


log = logging.getLogger("headrace.connectors")


def check_connector(declaration: Declaration) -> None:
    """Look whether the other side is as the file says; a ConnectorError or ClientError tells what is not."""
    connector, topic = declaration.connector, declaration.topic
    with _telling(connector):
        connector.check()
        if isinstance(connector, Sink) and isinstance(topic, TopicIn):
            connector.check_schema(schema_of(topic))


def check_topics(declaration: Declaration, created: Collection[str] = ()) -> None:
    """The same for the topic's side; ``created`` are topics that sources of the same run create before it starts."""
    topic = declaration.topic
    try:
        with Admin({**connection(topic), "default.api.timeout.ms": 15_000}) as admin:
            known = list(admin.topics())
    except ClientError as error:
        raise ConnectorError(
            f"the cluster at {topic.bootstrap} (topic.bootstrap) cannot be asked: {error}"
        ) from error
    for name in topic.name if isinstance(topic, TopicIn) else ():
        if name not in known and name not in created:
            near = nearest(name, known)
            hint = f"; did you mean {near}?" if near else ""
            raise ConnectorError(
                f"topic.name is {name!r}, which {topic.bootstrap} does not have{hint or _who_creates(name)}"
            )


def _who_creates(name: str) -> str:
    return f": create it with 'headrace topics create {name}', or run the source that fills it along with this sink"


def topics_filled(topic: TopicOut) -> list[str]:
    return [topic.name] + ([default_name(topic.name)] if topic.on_error == "dead-letter" else [])


def create_topics(topic: TopicOut, read_by_others: Collection[str] = ()) -> None:
    """Create what a source fills and the cluster does not have, when its file says with how many partitions; what sinks
    of the same run read in any case, with the cluster's defaults."""
    wanted = [name for name in topics_filled(topic) if topic.partitions is not None or name in read_by_others]
    if not wanted:
        return
    with Admin(connection(topic)) as admin:
        known = admin.topics()
        for name in wanted:
            if name not in known:
                admin.create_topic(
                    name,
                    partitions=topic.partitions or -1,
                    replication_factor=-1 if topic.partitions is None else topic.replication_factor,
                    exist_ok=True,
                )


@contextmanager
def _telling(connector: Connector) -> Iterator[None]:
    """Whatever a connector, perhaps somebody's own, meets on the driver becomes a sentence."""
    try:
        yield
    except (ConnectorError, ClientError):
        raise
    except ImportError as error:
        raise ConnectorError(f"{connector.name} cannot run ({error}): {catalogue.remedy(error)}") from error
    except Exception as error:
        kind = type(error).__name__
        raise ConnectorError(f"{connector.name} cannot run: {kind}: {one_line(error)}") from error


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
    return Query(writer.start, connector, declaration.run.retry_for, state.waiting, starts or Starts())


def _writer(spark: SparkSession, declaration: Declaration, state: State) -> DataStreamWriter:
    from headrace.spark import register

    register(spark)
    connector, topic = declaration.connector, declaration.topic
    if isinstance(connector, Source) and isinstance(topic, TopicOut):
        return _source(spark, connector, topic, declaration.run, state)
    assert isinstance(connector, Sink)
    assert isinstance(topic, TopicIn)
    return _sink(spark, connector, topic, declaration.run, state)


def _source(spark: SparkSession, source: Source, topic: TopicOut, run: Run, state: State) -> DataStreamWriter:
    if isinstance(source, PolledSource):
        from headrace.connectors.polling import stream

        with _telling(source):
            start = state.keep_start(source.start)
        waiting = Waiting(state.waiting.absolute())
        records = stream(spark, source, topic, start, waiting, run.every)
    else:
        assert isinstance(source, SparkSource)
        records = encode(source.frame(spark), topic)
    writer = records.writeStream.format("headrace").options(**spark_options(topic))
    return writer if "topic" in records.columns else writer.option("topic", topic.name)


def _sink(spark: SparkSession, sink: Sink, topic: TopicIn, run: Run, state: State) -> DataStreamWriter:
    with _telling(sink):
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


def _handler(sink: Sink, topic: TopicIn, run: Run, state: State) -> Callable[[DataFrame, int], None]:
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
