"""From a project's functions to DataFrames: each flow is called, and what it reads is defined when it asks.

Spark analyses a query as it is written, so every mistake in a query is found here, before anything runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.pipelines.flow import Flow
from pyspark.pipelines.output import MaterializedView, Output, Sink, TemporaryView
from pyspark.pipelines.output import Table as TableOutput
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headrace.client.degrade.rules import Rule
from headrace.pipelines.context import Run, asking, running
from headrace.pipelines.declared import Query
from headrace.pipelines.elements import TopicFlow
from headrace.pipelines.errors import PipelineError, Problem
from headrace.pipelines.graph import Graph
from headrace.pipelines.spark_errors import sentence
from headrace.pipelines.tables import Tables, quoted_name
from headrace.streaming.spark_errors import condition_of, parameters_of

_TABLE_IN_PLAN = re.compile(r"SubqueryAlias spark_catalog\.[\w]+\.(\w+)")


@dataclass(frozen=True, slots=True)
class Step:
    """A flow that is ready to run."""

    flow: Flow
    target: Output
    rows: DataFrame
    topics: frozenset[str]  # it reads
    tables: frozenset[str]  # it reads
    rules: Mapping[str, tuple[Rule, ...]]  # for the topics it reads with degrade=
    renewed: Callable[[], DataFrame]  # the same rows, looked up anew: Spark lists a table's files only once

    @property
    def name(self) -> str:
        return self.flow.name

    @property
    def mode(self) -> str:
        if isinstance(self.flow, TopicFlow):
            return self.flow.mode
        return "complete" if isinstance(self.target, MaterializedView) else "append"

    def writes(self, run: Run) -> str:
        """The topic or table it writes, as others name it when they read."""
        if not isinstance(self.flow, TopicFlow):
            return self.target.name
        if self.flow.letters:
            return run.versioned(str(self.flow.topic.dead_letter_topic))
        return run.versioned(self.flow.topic.name)


class Cycle(Exception):
    def __init__(self, names: list[str]) -> None:
        super().__init__(" → ".join(names))


class Resolver:
    def __init__(self, graph: Graph, run: Run, tables: Tables) -> None:
        self._graph = graph
        self._run = run
        self._tables = tables
        self._declared: set[str] = set()
        self._views: set[str] = set()

    def steps(self) -> list[Step]:
        """Every flow that can run; what cannot is among the graph's problems."""
        done: dict[str, Step | None] = {}
        # Calling one flow may define another: the one for the dead letters of a topic it reads.
        while waiting := [flow for name, flow in self._graph.flows.items() if name not in done]:
            for flow in waiting:
                done[flow.name] = None if self._is_view(flow) else self._step(flow)
        found = [step for step in done.values() if step is not None]
        self._look_for_cycles(found)
        return found

    def _is_view(self, flow: Flow) -> bool:
        return isinstance(self._graph.outputs.get(flow.target), TemporaryView)

    def _step(self, flow: Flow) -> Step | None:
        target = self._graph.outputs.get(flow.target)
        if target is None:
            self._problem(f"Flow '{flow.name}' writes '{flow.target}', which nothing defines.", flow)
            return None
        self._forget_views()
        try:
            with running(self._run), self._graph.defining(), asking(flow.name) as asked:
                own = flow.topic.element_name if isinstance(flow, TopicFlow) else flow.target
                rows = self._rows(flow.func, [own])
                if isinstance(target, TableOutput):
                    self._declare(target, rows)
        except Cycle as cycle:
            self._problem(f"These feed each other in a circle: {cycle}.", flow)
            return None
        except Exception as error:
            self._failed(flow, error)
            return None
        if not rows.isStreaming and not isinstance(target, MaterializedView):
            self._problem(
                f"Flow '{flow.name}' does not read a stream: read a topic with stream(), a table with "
                "spark.readStream.table(…), or make its target a materialized view.",
                flow,
            )
            return None
        tables = frozenset(_TABLE_IN_PLAN.findall(_plan(rows)))
        reads = frozenset(asked.reads)
        step = Step(flow, target, rows, reads, tables, asked.rules, lambda: self._renewed(flow, tables))
        try:
            self._see_that_it_can_stream(step)
        except AnalysisException as error:
            self._failed(flow, error)
            return None
        return step

    def _renewed(self, flow: Flow, tables: frozenset[str]) -> DataFrame:
        for name in tables:
            self._graph.spark.catalog.refreshTable(quoted_name(name))
        self._forget_views()
        with running(self._run), self._graph.defining(), asking(flow.name):
            return self._rows(flow.func, [flow.target])

    def _see_that_it_can_stream(self, step: Step) -> None:
        """What Spark looks at only when a query starts: an aggregation that never ends, a join it cannot do, …"""
        if step.rows.isStreaming:
            jvm: Any = self._graph.spark._jvm
            mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, step.mode.title())()
            checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
            checker.checkForStreaming(step.rows._jdf.queryExecution().analyzed(), mode)

    def _rows(self, query: Query, path: list[str]) -> DataFrame:
        """Call a function; each thing it turns out to lack is defined, and it is called again."""
        while True:
            try:
                rows = query()
            except AnalysisException as error:
                if condition_of(error) != "TABLE_OR_VIEW_NOT_FOUND" or not self._define(
                    _missing(error), path
                ):
                    raise
                continue
            if not isinstance(rows, DataFrame):
                raise PipelineError(f"This flow returns {type(rows).__name__}, not a DataFrame.")
            return rows

    def _define(self, name: str, path: list[str]) -> bool:
        """Have what a query calls ``name``; false when the project has no such thing."""
        if name in path:
            raise Cycle([*path[path.index(name) :], name])
        output = self._graph.outputs.get(name)
        inside = [*path, name]
        if (topic := self._graph.topics.get(name)) is not None:
            self._view(name, self._rows(topic.stream, inside))
            return True
        if isinstance(output, TemporaryView):
            self._view(name, self._rows(self._graph.flows[name].func, inside))
            return True
        if isinstance(output, TableOutput):
            if name in self._declared:
                return False
            flows = [flow for flow in self._graph.flows.values() if flow.target == name]
            if output.schema is None and not flows:
                raise PipelineError(
                    f"Table '{name}' has no flow and no schema, so nothing says what it holds."
                )
            self._declare(output, self._rows(flows[0].func, inside) if output.schema is None else None)
            return True
        return False

    def _declare(self, output: TableOutput, rows: DataFrame | None) -> None:
        self._tables.declare(output, StructType() if rows is None else rows.schema)
        self._declared.add(output.name)

    def _view(self, name: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView(name)
        self._views.add(name)

    def _forget_views(self) -> None:
        """Each flow gets its views anew, because a view reads its topics on behalf of one flow."""
        for name in self._views:
            self._graph.spark.catalog.dropTempView(name)
        self._views.clear()

    def _look_for_cycles(self, steps: list[Step]) -> None:
        feeds = {
            step.name: [
                other
                for other in steps
                if step.writes(self._run) in (other.topics if isinstance(step.target, Sink) else other.tables)
            ]
            for step in steps
        }
        reported: set[str] = set()
        for step in steps:
            circle = _way_back(step, feeds)
            if circle and not reported & {each.name for each in circle}:
                reported |= {each.name for each in circle}
                names = " → ".join([*(each.name for each in circle), step.name])
                self._problem(
                    f"These flows feed each other in a circle and would never come to rest: {names}.",
                    step.flow,
                )

    def _failed(self, flow: Flow, error: Exception) -> None:
        place = self._graph.place_of(error) or self._graph.place(flow.source_code_location)
        self._graph.problems.append(Problem(sentence(error), place))

    def _problem(self, text: str, flow: Flow) -> None:
        self._graph.problems.append(Problem(text, self._graph.place(flow.source_code_location)))


def _way_back(start: Step, feeds: dict[str, list[Step]]) -> list[Step]:
    """The steps from one back to itself; empty when there is no way."""
    paths = [[start]]
    seen: set[str] = set()
    while paths:
        path = paths.pop()
        for following in feeds[path[-1].name]:
            if following.name == start.name:
                return path
            if following.name not in seen:
                seen.add(following.name)
                paths.append([*path, following])
    return []


def _missing(error: AnalysisException) -> str:
    name = parameters_of(error).get("relationName", "")
    return (
        name.rsplit(".", 1)[-1].replace("`", "")
        if name.startswith("`spark_catalog`")
        else name.replace("`", "")
    )


def _plan(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().analyzed().treeString())
