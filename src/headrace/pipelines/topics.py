"""Typed topics and tables: what a pipeline reads and writes.

A topic is declared once. Reading it gives its values as columns; decorating a function with it makes the
function a flow that writes it. Both become ordinary elements of Spark Declarative Pipelines (see elements.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Self

from pyspark.pipelines.source_code_location import SourceCodeLocation, get_caller_source_code_location
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headrace.client.dead_letters import SUFFIX
from headrace.client.degrade.replayed import topic_of
from headrace.client.degrade.rules import Rule, completed
from headrace.pipelines import dead_letters as letters
from headrace.pipelines import degrading, elements, expectations, keys, source
from headrace.pipelines.context import active_session, asking, current_flow, current_run
from headrace.pipelines.declared import DeclaredTopic, Mode, Query
from headrace.pipelines.errors import PipelineError
from headrace.pipelines.expectations import Expectation
from headrace.pipelines.fingerprint import STANDS_FOR
from headrace.pipelines.formats import Format, FormatName, format_named

RECORD = "_record"
"""The column in which ``stream(record=True)`` keeps where a row comes from."""

_ORIGIN = ("topic", "partition", "offset", "timestamp", "key", "headers")

WRITTEN = "written"
"""The name under which rows are counted where Spark does not."""

_observations = itertools.count(1)


class Topic(DeclaredTopic):
    """A topic whose values have columns. Made by ``hp.topic``."""

    def __init__(
        self,
        name: str,
        format: Format,
        *,
        key: Sequence[str] = (),
        expect: Sequence[Expectation] = (),
        mode: Mode = "append",
        start: str = "earliest",
        dead_letter_topic: str | None = None,
        partitions: int | None = None,
        config: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        delete: str | None = None,
        location: SourceCodeLocation,
    ) -> None:
        super().__init__(
            name,
            key=key,
            expect=expect,
            mode=mode,
            start=start,
            dead_letter_topic=dead_letter_topic,
            partitions=partitions,
            config=config,
            options=options,
            location=location,
        )
        self._format = format
        self._delete = delete
        self._is_asked = False  # for its schema, which a flow may have to tell

    # Reading

    def stream(self, *, record: bool = False, degrade: Sequence[Rule] | None = None) -> DataFrame:
        """The rows of the topic as they come. ``record`` adds the column ``_record``: a struct of topic,
        partition, offset, timestamp, key and headers. ``degrade`` has rules for doing less under load; with none, the flow
        can be switched off by command."""
        elements.watch_dead_letters(self)
        if degrade is None:
            return self.unwatched_stream(record=record)
        observation = f"{self.name}#{next(_observations)}"
        decoded = self._decoded(self._degraded(degrade, observation), whole=True)
        return self._good(decoded, record, observation)

    def unwatched_stream(self, *, record: bool = False) -> DataFrame:
        """The same, without a flow for the dead letters."""
        whole = record or self._expects_of_records
        decoded = self._decoded(self._raw_stream() if whole else self._raw_stream("value"), whole)
        return self._good(decoded, record, f"{self.name}#{next(_observations)}")

    def read(self, *, record: bool = False) -> DataFrame:
        """The rows that are in the topic now."""
        elements.watch_dead_letters(self)
        whole = record or self._expects_of_records
        decoded = self._decoded(self._raw_batch() if whole else self._raw_batch("value"), whole)
        return self._good(decoded, record, None)

    def letters(self) -> DataFrame:
        """The records of the topic that cannot be used, as records for its dead-letter topic."""
        assert self.dead_letter_topic is not None
        judged = self._decoded(self._raw_stream(), whole=True).select(RECORD, "_bytes", "_row.*", "_error")
        reason = F.coalesce(F.col("_error"), expectations.broken(self.expectations))
        bad = judged.withColumn("_reason", reason).where(F.col("_reason").isNotNull())
        run = current_run()
        target = run.versioned(self.dead_letter_topic)
        return letters.from_records(bad, RECORD, "_bytes", "_reason", target, again=run.takes_up_dead_letters)

    @property
    def schema(self) -> StructType:
        """The columns of a row, as declared or as the flow that writes the topic gives them."""
        if self._format.schema is not None:
            return self._format.schema
        if not self._flows:
            raise PipelineError(
                f"Topic '{self.name}' has no schema, and no flow of this pipeline writes it: "
                f"""declare it with one, as in hp.topic("{self.name}", "id BIGINT, at TIMESTAMP")."""
            )
        if self._is_asked:
            raise PipelineError(
                f"Topic '{self.name}' is made from itself: declare its schema, or break the circle."
            )
        self._is_asked = True
        try:
            with asking(f"{self.name} schema"):  # asking for the schema does not run its flow
                return self._flows[0]().drop(RECORD).schema
        finally:
            self._is_asked = False

    @property
    def has_declared_schema(self) -> bool:
        return self._format.schema is not None

    # Writing

    def __call__(self, function: Query) -> Self:
        """Make a function a flow that writes this topic; several functions may."""
        self.add_flow(function.__name__, function, get_caller_source_code_location(stacklevel=1))
        return self

    def add_flow(self, name: str, query: Query, location: SourceCodeLocation) -> None:
        self._flows.append(query)
        elements.register_topic_flow(self, name, lambda: self.records(query()), location)

    def records(self, rows: DataFrame) -> DataFrame:
        """Rows as records for the ``headrace`` sink: topic, key, value and, for dead letters, headers."""
        rows = expectations.enforced(
            rows.drop(RECORD), self.expectations, f"{self.name}#{next(_observations)}"
        )
        gone = F.coalesce(F.expr(self._delete), F.lit(False)) if self._delete else F.lit(False)
        staged = rows.select(
            keys.encode(self.key).alias("key"),
            F.struct("*").alias("row"),
            expectations.broken(self.expectations).alias("reason"),
            gone.alias("gone"),
        )
        run = current_run()
        target = run.versioned(self.name)
        if self.mode != "append":  # written batch by batch, of which Spark reports no number of rows
            staged = staged.observe(f"{self.name}#{next(_observations)}", F.count("*").alias(WRITTEN))
        value = F.when(~F.col("gone"), self._format.encode(F.col("row"), lambda: rows.schema))
        if not self.routes_dead_letters:
            return staged.select(F.lit(target).alias("topic"), "key", value.alias("value"))
        good = F.col("reason").isNull()
        assert self.dead_letter_topic is not None
        letter_box = run.versioned(self.dead_letter_topic)
        return staged.select(
            F.when(good, F.lit(target)).otherwise(F.lit(letter_box)).alias("topic"),
            "key",
            value.alias("value"),
            F.when(~good, letters.headers_of_row(F.col("reason"), target)).alias("headers"),
        )

    # What both need

    @property
    def _expects_of_records(self) -> bool:
        """Whether an expectation looks at more than the value."""
        return any(RECORD in each.condition for each in self.expectations)

    def _raw_stream(self, *columns: str, replays: str | None = None) -> DataFrame:
        """The records; only these columns of them, where that is enough, because Spark does not prune them itself.
        With those of a topic of replays, if there is one."""
        run = current_run()
        options = source.stream_options(self, run, columns)
        if run.empty is not None:
            stand_in = active_session().readStream.option(STANDS_FOR, f"headrace {options['subscribe']}")
            return stand_in.schema(source.schema(options)).json(run.empty)
        if replays is not None:
            options["subscribe"] += f",{replays}"
        return active_session().readStream.format("headrace").options(**options).load()

    def _degraded(self, rules: Sequence[Rule], observation: str) -> DataFrame:
        """The records without those that rules drop, and with those that a replay brings back."""
        from headrace.pipelines.formats.json import Json

        run, flow = current_run(), current_flow()
        if run.pipeline is None or flow is None:
            raise PipelineError(
                f"Topic '{self.name}' is read with degrade=, which needs 'headrace pipeline run': "
                "Spark's own runner has no group whose lag and commands could be followed."
            )
        group = source.group_of(run, flow.flow)
        flow.rules[source.place_of(self, run)] = tuple(rules)
        completed(
            tuple(each for rules in flow.rules.values() for each in rules), group, ()
        )  # refuses what is wrong
        raw = self._raw_stream(replays=topic_of(group))
        connection = run.client_config()
        is_json = isinstance(self._format, Json)
        return degrading.without_dropped(raw, rules, group, connection, is_json, f"{observation}-rules")

    def _raw_batch(self, *columns: str) -> DataFrame:
        run = current_run()
        options = source.batch_options(self, run, columns)
        if run.empty is not None:
            return active_session().read.schema(source.schema(options)).json(run.empty)
        return active_session().read.format("headrace").options(**options).load()

    def _decoded(self, raw: DataFrame, whole: bool) -> DataFrame:
        """The record, if it is whole, its bytes, the decoded row, and the error that says why there is none."""
        origin = F.struct(*_ORIGIN) if whole else F.lit(None)
        staged = raw.select(
            origin.alias(RECORD),
            F.col("value").alias("_bytes"),
            self._format.decode(F.col("value"), self.schema).alias("_decoded"),
        )
        return staged.select(
            RECORD,
            "_bytes",
            F.col("_decoded.value").alias("_row"),
            F.col("_decoded.error").alias("_error"),
        )

    def _good(self, decoded: DataFrame, record: bool, observation: str | None) -> DataFrame:
        understood = F.col("_error").isNull()
        if self.dead_letter_topic is None:
            understood = expectations.or_fail(understood, F.col("_error"))
        elif (
            self._flows and observation is not None
        ):  # no dead letters are written of what a flow of this pipeline writes
            lost = F.count_if(~understood).alias("drop what cannot be decoded")
            decoded = decoded.observe(f"{observation}-decoded", lost)
        rows = decoded.where(understood).select("_row.*", RECORD)
        rows = rows.where(expectations.broken(self.expectations).isNull())
        rows = expectations.enforced(rows, self.expectations, observation)
        return rows if record else rows.drop(RECORD)


class Table(Topic):
    """A compacted topic: the latest row of each key is what counts, and a null value deletes its key."""

    def read(self, *, record: bool = False) -> DataFrame:
        """The latest row of each key as of now; read again for every batch of a stream it is joined to."""
        elements.watch_dead_letters(self)
        whole = record or self._expects_of_records
        wanted = [*_ORIGIN, "value"] if whole else ["key", "partition", "offset", "timestamp", "value"]
        raw = self._raw_batch() if whole else self._raw_batch(*wanted)
        return self._good(self._decoded(_latest(raw, wanted), whole), record, None)

    def _decoded(self, raw: DataFrame, whole: bool) -> DataFrame:
        return super()._decoded(raw.where(F.col("value").isNotNull()), whole)


def _latest(raw: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The newest record of each key.

    In one partition that is the one with the highest offset, whatever its timestamp says. A key has records in two
    partitions when partitions were added and it moved: the offsets of the two have nothing to do with each other, so
    there the timestamps decide and, if they are equal, the higher partition, since new ones are numbered last.
    """
    record = F.struct(*columns)
    by_partition = raw.groupBy("key", "partition").agg(F.max_by(record, "offset").alias("newest"))
    age = F.struct("newest.timestamp", "partition")
    return by_partition.groupBy("key").agg(F.max_by("newest", age).alias("newest")).select("newest.*")


def topic(
    name: str,
    schema: object = None,
    *,
    format: FormatName = "json",
    key: str | Sequence[str] | None = None,
    expect: Sequence[Expectation] = (),
    dead_letters: bool | str = True,
    mode: Mode = "append",
    start: str = "earliest",
    partitions: int | None = None,
    config: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> Topic:
    """Declare a topic, to read it with ``stream()`` or, as a decorator, to write it.

    ``schema`` is DDL such as ``"id BIGINT, at TIMESTAMP"`` (or a StructType) for JSON, an Avro schema, or a
    Protobuf message class; a topic that a flow of this pipeline writes needs none. ``key`` names the column, or
    columns, of the record key. Records that cannot be decoded, and rows that break an expectation, go to
    ``<name>.dlq``; ``dead_letters`` gives another topic, or False to stop the flow instead. ``mode`` is Spark's output
    mode. ``partitions`` and ``config`` are for creating the topic, ``options`` for the data source.
    """
    made = Topic(
        name,
        format_named(format, schema, name),
        key=keys.columns_of(key),
        expect=expect,
        mode=mode,
        start=start,
        dead_letter_topic=_dead_letter_topic(name, dead_letters, expect),
        partitions=partitions,
        config=config,
        options=options,
        location=get_caller_source_code_location(stacklevel=1),
    )
    elements.declare(made)
    return made


def table(
    name: str,
    schema: object = None,
    *,
    key: str | Sequence[str],
    format: FormatName = "json",
    expect: Sequence[Expectation] = (),
    dead_letters: bool | str = True,
    delete: str | None = None,
    mode: Mode = "update",
    start: str = "earliest",
    partitions: int | None = None,
    config: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> Table:
    """Declare a table: a compacted topic that keeps the latest row of each ``key``.

    ``read()`` gives that row for every key, ``stream()`` the changes. A flow that writes it updates rows by key;
    rows for which ``delete`` (a condition in SQL) holds delete their key. The rest is as for ``topic``.
    """
    made = Table(
        name,
        format_named(format, schema, name),
        key=keys.columns_of(key),
        expect=expect,
        mode=mode,
        start=start,
        dead_letter_topic=_dead_letter_topic(name, dead_letters, expect),
        partitions=partitions,
        config={"cleanup.policy": "compact", **(config or {})},
        options=options,
        delete=delete,
        location=get_caller_source_code_location(stacklevel=1),
    )
    elements.declare(made)
    return made


def _dead_letter_topic(name: str, chosen: bool | str, expect: Sequence[Expectation]) -> str | None:
    if isinstance(chosen, str):
        return chosen
    if chosen:
        return name + SUFFIX
    if unsendable := expectations.of_kind(expect, "dead_letter"):
        raise PipelineError(
            f"Topic '{name}' has dead_letters=False, but expects '{unsendable[0].name}' with otherwise='dead_letter': "
            "choose drop, keep or fail."
        )
    return None
