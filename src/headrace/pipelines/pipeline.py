"""One project made ready: its files loaded, its flows resolved, its topics looked up; then run, or just checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.pipelines.output import Sink
from pyspark.sql import SparkSession

from headrace.client import Admin
from headrace.pipelines.checkpoints import Checkpoints
from headrace.pipelines.context import Run, running
from headrace.pipelines.declared import DeclaredTopic
from headrace.pipelines.elements import TopicFlow
from headrace.pipelines.errors import Problem, ProjectBroken
from headrace.pipelines.graph import Graph
from headrace.pipelines.project import Project
from headrace.pipelines.resolve import Resolver, Step
from headrace.pipelines.settling import settle
from headrace.pipelines.tables import Tables


@dataclass(frozen=True, slots=True)
class Pipeline:
    project: Project
    run: Run
    graph: Graph
    steps: list[Step]
    tables: Tables
    checkpoints: Checkpoints

    def missing_topics(self) -> list[Problem]:
        """Topics that flows read, that the cluster does not have, and that are not for this run to create."""
        own = {name for name, _ in self._own_topics()} | {name for name, _ in self._letter_boxes()}
        with Admin(self.run.client_config()) as admin:
            own |= set(admin.topics())
        return [
            Problem(
                f"Flow '{step.name}' reads topic '{name}', which {self.run.bootstrap} does not have: create it with "
                f"'headrace topics create {name}', or say how many partitions it gets where it is declared.",
                self.graph.place(step.flow.source_code_location),
            )
            for step in self.steps
            if not (isinstance(step.flow, TopicFlow) and step.flow.letters)
            for name in sorted(step.topics - own)
        ]

    def create_topics(self) -> list[str]:
        """Create what is not there yet of the topics that flows write and of those declared with their partitions."""
        created = []
        with Admin(self.run.client_config()) as admin:
            there = set(admin.topics())
            for name, topic in self._own_topics():
                if name not in there:
                    partitions = topic.partitions or -1
                    admin.create_topic(name, partitions=partitions, config=topic.config, exist_ok=True)
                    there.add(name)
                    created.append(name)
            for name, origin in self._letter_boxes():
                if name not in there:
                    partitions = len(admin.topic(origin).partitions) if origin in there else -1
                    admin.create_topic(name, partitions=partitions, exist_ok=True)
                    there.add(name)
                    created.append(name)
        return created

    def reset(self, step: Step) -> None:
        """Have a flow begin anew. What its last run has left open, no later one would end: it is another query then."""
        query = self.checkpoints.query_id(step)
        if query is not None:
            settle(self.run, [query])
        self.checkpoints.reset(step)

    def _own_topics(self) -> Iterator[tuple[str, DeclaredTopic]]:
        """What this run may create, by the name it has in this version."""
        for topic in self.graph.topics.values():
            if topic.flows:
                yield self.run.versioned(topic.name), topic
            elif topic.partitions:
                yield topic.name, topic

    def _letter_boxes(self) -> Iterator[tuple[str, str]]:
        """Each dead-letter topic that flows write or a replay reads, and the topic whose letters it takes."""
        for step in self.steps:
            if not isinstance(step.flow, TopicFlow):
                continue
            topic = step.flow.topic
            if step.flow.letters:
                yield step.writes(self.run), topic.name
                if self.run.takes_up_dead_letters:
                    yield str(topic.dead_letter_topic), topic.name
            elif topic.routes_dead_letters:
                yield self.run.versioned(str(topic.dead_letter_topic)), step.writes(self.run)


def prepare(project: Project, spark: SparkSession, run: Run, storage: str | None = None) -> Pipeline:
    """Load and resolve a project; ProjectBroken with all its problems when it cannot run. ``storage`` is where
    its tables are declared if not among those of the version."""
    home = project.storage if run.version is None else f"{project.storage}/versions/{run.version}"
    graph = Graph(project, spark)
    tables = Tables(spark, storage or home)
    with running(run):
        graph.load()
        steps = Resolver(graph, run, tables).steps()
    if run.version is not None:
        graph.problems += [_shared_sink(graph, step) for step in steps if _is_plain_sink(step)]
    if graph.problems:
        raise ProjectBroken(graph.problems)
    return Pipeline(project, run, graph, steps, tables, Checkpoints(spark, home))


def _is_plain_sink(step: Step) -> bool:
    return isinstance(step.target, Sink) and not isinstance(step.flow, TopicFlow)


def _shared_sink(graph: Graph, step: Step) -> Problem:
    return Problem(
        f"Flow '{step.name}' writes the sink '{step.target.name}', and a new version would write into the same place "
        "as the current one: declare its topic with hp.topic, which gives each version a topic of its own.",
        graph.place(step.flow.source_code_location),
    )
