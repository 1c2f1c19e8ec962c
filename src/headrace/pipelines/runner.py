"""Runs the flows of a project as Spark queries until they are done or stopped.

The runner owns the queries: it starts them over their checkpoints, starts one again when the cluster was away for
a while, and ends all of them when one cannot continue.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from pyspark.errors import PySparkException
from pyspark.pipelines.output import MaterializedView, Sink
from pyspark.pipelines.output import Table as TableOutput
from pyspark.sql import DataFrame

from headrace.client.degrade.degrader import Degrader
from headrace.client.degrade.rules import completed
from headrace.client.lag_watch import LagWatch
from headrace.pipelines.checkpoints import Checkpoints
from headrace.pipelines.context import Run
from headrace.pipelines.elements import TopicFlow
from headrace.pipelines.errors import PipelineError
from headrace.pipelines.progress import FlowState, FlowStatus, Meter, waits_for_the_clock
from headrace.pipelines.resolve import Step
from headrace.pipelines.settling import settle
from headrace.pipelines.source import group_of
from headrace.pipelines.spark_errors import sentence
from headrace.pipelines.tables import Tables, quoted_name
from headrace.streaming.restarts import Restarts
from headrace.streaming.starts import Starts, is_starting

_PATIENCE_FOR_RULES = 30.0
"""Seconds that a flow waits at its start to know which of its rules act."""


class FlowFailed(PipelineError):
    """A flow cannot continue, and neither can the pipeline."""


@dataclass(slots=True)
class Flight:
    """One flow on its way."""

    step: Step
    meter: Meter
    restarts: Restarts
    group: str | None  # where it commits how far it is
    query: Any = None
    query_id: str | None = None  # of the last query that wrote to a topic
    was_cut_short: bool = False  # it had caught up, and Spark would not have ended it
    work: Future[None] | None = None  # a materialized view being computed
    fresh_at: float = 0.0  # when a materialized view was computed last
    degrader: Degrader | None = None  # where it reads with rules

    @property
    def status(self) -> FlowStatus:
        return self.meter.status

    @property
    def is_done(self) -> bool:
        return self.status.state is FlowState.DONE


@dataclass(slots=True)
class Runner:
    steps: list[Step]
    run: Run
    checkpoints: Checkpoints
    tables: Tables
    once: bool = False
    interval: float = 1.0  # seconds between the starts of batches
    refresh: float = 60.0
    patience: float = 300.0
    flights: list[Flight] = field(init=False)
    _starts: Starts = field(init=False, default_factory=Starts)
    _lags: LagWatch = field(init=False)
    _batches: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self.flights = [
            Flight(
                step,
                Meter(
                    FlowStatus(step.name, step.writes(self.run)),
                    isinstance(step.flow, TopicFlow) and step.flow.letters,
                ),
                Restarts(self.patience),
                group_of(self.run, step.name) if step.topics and step.rows.isStreaming else None,
            )
            for step in self.steps
        ]
        for flight in self.flights:
            if flight.step.rules:
                flight.degrader = self._degrader(flight)
        self._batches = ThreadPoolExecutor(1, thread_name_prefix="materialized-view")
        groups = [flight.group for flight in self.flights if flight.group is not None]
        self._lags = LagWatch(self.run.client_config(), groups)

    @property
    def statuses(self) -> list[FlowStatus]:
        return [flight.status for flight in self.flights]

    def turn(self) -> bool:
        """Look after every flow once; false when all are done. Raises FlowFailed when one cannot continue."""
        for flight in self.flights:
            if not flight.is_done:
                self._look_after(flight)
            self._take_lag(flight)
        return not all(flight.is_done for flight in self.flights)

    def stop(self) -> None:
        """End all queries, at the same time, for each takes a while; what a batch had begun is not committed and is
        done again by the next run."""
        under_way = [flight for flight in self.flights if flight.query is not None]
        try:
            if under_way:
                with ThreadPoolExecutor(len(under_way), thread_name_prefix="stop") as pool:
                    list(pool.map(lambda flight: flight.query.stop(), under_way))
        finally:  # also when Spark is gone
            for flight in self.flights:
                flight.query = None
                if not flight.status.is_over:
                    flight.status.become(FlowState.STOPPED)
            self._batches.shutdown(cancel_futures=True)
            self._lags.close()
            for flight in self.flights:
                if flight.degrader is not None:
                    flight.degrader.close()
            for flight in self.flights:
                self._take_lag(flight)

    def settle(self) -> None:
        """End what the queries had open when they were stopped, so that no reader waits for the next run. Only when
        Spark's session is closed: until then, a process of Spark's may be about to commit it."""
        unfinished = [flight for flight in self.flights if flight.was_cut_short or not flight.is_done]
        settle(self.run, [flight.query_id for flight in unfinished if flight.query_id is not None])

    def _degrader(self, flight: Flight) -> Degrader:
        """Follows commands and lags for a flow; its tasks read what it reports (see degrading.py)."""
        assert flight.group is not None
        rules = tuple(rule for each in flight.step.rules.values() for rule in each)
        degrader = Degrader(
            self.run.client_config(),
            flight.group,
            completed(rules, flight.group, ()),
            kind="pipeline",
            topics=sorted(flight.step.rules),
        )
        deadline = time.monotonic() + _PATIENCE_FOR_RULES
        degrader.start(lambda: time.monotonic() > deadline)
        return degrader

    def _is_switched_off(self, flight: Flight) -> bool:
        """A flow that is switched off has no query; it goes on from its checkpoint."""
        if flight.degrader is None or not flight.degrader.active.group_is_off:
            return False
        if flight.query is not None and not self._starts.is_one_under_way:
            flight.query.stop()
            flight.meter.take(flight.query.recentProgress)
            flight.query = None
        if flight.query is None:
            flight.status.become(FlowState.SWITCHED_OFF)
        return flight.query is None

    def _look_after(self, flight: Flight) -> None:
        if self._is_switched_off(flight):
            return
        if flight.query is not None:
            is_active = flight.query.isActive  # asked first, so that the last batch is counted, too
            reports = flight.query.recentProgress
            if flight.meter.take(reports):
                flight.restarts.got_something_done()
                flight.status.error = None
            if is_active and self.once and waits_for_the_clock(reports):
                flight.was_cut_short = True
                flight.query.stop()
                self._ended(flight)
            elif is_active:
                self._tell_what_it_does(flight)
            else:
                self._ended(flight)
        elif flight.work is not None:
            if flight.work.done():
                self._computed(flight)
        elif flight.restarts.is_due and self._may_start(flight):
            try:
                self._start(flight)
            except PySparkException as error:
                raise self._failed(flight, "cannot start", error) from error

    def _tell_what_it_does(self, flight: Flight) -> None:
        """Spark itself waits for a cluster that is away, and for its Python processes, without a word."""
        absence = f"the cluster at {self.run.bootstrap} does not answer"
        if flight.group is not None and self._lags.is_cluster_away:
            flight.status.become(FlowState.WAITING)
            flight.status.error = absence
            return
        flight.status.become(FlowState.STARTING if is_starting(flight.query) else FlowState.RUNNING)
        if flight.status.error == absence:
            flight.status.error = None

    def _take_lag(self, flight: Flight) -> None:
        if flight.group is not None:
            flight.status.take_lag(self._lags.lag(flight.group))

    def _may_start(self, flight: Flight) -> bool:
        """One after the other (see streaming/starts.py). Once: after the flows that feed it are done, so that one run carries
        everything through."""
        if self._starts.is_one_under_way:
            return False
        feeders = [other for other in self.flights if self._feeds(other.step, flight.step)]
        if self.once:
            return all(other.is_done for other in feeders)
        if isinstance(flight.step.target, MaterializedView) and flight.fresh_at:
            return time.monotonic() >= flight.fresh_at + self.refresh
        return True

    def _feeds(self, step: Step, other: Step) -> bool:
        reads = other.topics if isinstance(step.target, Sink) else other.tables
        return step is not other and step.writes(self.run) in reads

    def _start(self, flight: Flight) -> None:
        step = flight.step
        if isinstance(step.target, MaterializedView):
            flight.work = self._batches.submit(_compute, step)
            flight.status.become(FlowState.RUNNING)
            return
        self.checkpoints.remember(step)
        writer = step.rows.writeStream.queryName(step.name).outputMode(step.mode)
        writer = writer.option("checkpointLocation", self.checkpoints.location(step))
        if self.once:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{round(self.interval * 1000)} milliseconds")
        if isinstance(step.target, Sink) and step.mode != "append":
            query = writer.foreachBatch(_written_by_batch(step.target)).start()
        elif isinstance(step.target, Sink):
            query = writer.format(step.target.format).options(**step.target.options).start()
        else:
            assert isinstance(step.target, TableOutput)
            query = writer.toTable(quoted_name(step.target.name))
        flight.query = self._starts.started(query)
        flight.query_id = str(query.id) if isinstance(step.target, Sink) else None
        flight.status.become(FlowState.STARTING)

    def _ended(self, flight: Flight) -> None:
        error = flight.query.exception()
        flight.query = None
        if error is None:
            if not self.once:
                raise FlowFailed(f"Flow '{flight.step.name}' was stopped from outside.")
            flight.status.become(FlowState.DONE)
            return
        flight.status.error = sentence(error)
        if flight.restarts.after(str(error)) is None:
            raise self._failed(flight, "failed", error)
        flight.status.become(FlowState.WAITING)
        flight.status.restarts += 1

    def _computed(self, flight: Flight) -> None:
        assert flight.work is not None
        error = flight.work.exception()
        flight.work = None
        if error is not None:
            raise self._failed(flight, "failed", error)
        flight.fresh_at = time.monotonic()
        flight.status.become(FlowState.DONE if self.once else FlowState.FRESH)

    def _failed(self, flight: Flight, how: str, error: BaseException) -> FlowFailed:
        flight.status.become(FlowState.FAILED)
        flight.status.error = sentence(error)
        return FlowFailed(f"Flow '{flight.step.name}' {how}: {flight.status.error}")


def _written_by_batch(sink: Sink) -> Callable[[DataFrame, int], None]:
    """Spark offers a sink in Python output mode append only; in the others each batch is written as a whole."""
    options = {**sink.options, "exactlyOnce": "true"}

    def write(rows: DataFrame, batch: int) -> None:
        rows.write.format(sink.format).options(**options).mode("append").save()

    return write


def _compute(step: Step) -> None:
    step.renewed().write.mode("overwrite").insertInto(quoted_name(step.target.name))
