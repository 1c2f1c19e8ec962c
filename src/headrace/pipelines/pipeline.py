"""One project made ready: its files loaded, its flows resolved, its topics looked up; then run, or just checked."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from headrace.client import Admin
from headrace.pipelines.checkpoints import Checkpoints
from headrace.pipelines.context import Run, running
from headrace.pipelines.elements import TopicFlow
from headrace.pipelines.errors import Problem, ProjectBroken
from headrace.pipelines.graph import Graph
from headrace.pipelines.project import Project
from headrace.pipelines.resolve import Resolver, Step
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
        """Topics that flows read, that no flow writes, and that the cluster does not have."""
        written = {step.writes(self.run) for step in self.steps}
        with Admin(self.run.client_config()) as admin:
            there = set(admin.topics())
        problems = []
        for step in self.steps:
            letters = isinstance(step.flow, TopicFlow) and step.flow.letters
            for name in sorted(step.topics - written - there):
                if not letters:
                    problems.append(
                        Problem(
                            f"Flow '{step.name}' reads topic '{name}', which {self.run.bootstrap} does not have: "
                            f"create it with 'headrace topics create {name}'.",
                            self.graph.place(step.flow.source_code_location),
                        )
                    )
        return problems

    def create_topics(self) -> list[str]:
        """Create the topics that flows write and that are not there yet; their names."""
        created = []
        with Admin(self.run.client_config()) as admin:
            there = set(admin.topics())
            for step in self.steps:
                if not isinstance(step.flow, TopicFlow):
                    continue
                topic, name = step.flow.topic, step.writes(self.run)
                if step.flow.letters or topic.routes_dead_letters:
                    letters = str(topic.dead_letter_topic)
                    if letters not in there:
                        source = name if not step.flow.letters else topic.name
                        width = len(admin.topic(source).partitions) if source in there else -1
                        admin.create_topic(letters, partitions=width, exist_ok=True)
                        there.add(letters)
                        created.append(letters)
                if name not in there:
                    admin.create_topic(
                        name, partitions=topic.partitions or -1, config=topic.config, exist_ok=True
                    )
                    there.add(name)
                    created.append(name)
        return created


def prepare(project: Project, spark: SparkSession, run: Run, storage: str | None = None) -> Pipeline:
    """Load and resolve a project; ProjectBroken with all its problems when it cannot run."""
    place = storage or project.storage
    graph = Graph(project, spark)
    tables = Tables(spark, place)
    with running(run):
        graph.load()
        steps = Resolver(graph, run, tables).steps()
    if graph.problems:
        raise ProjectBroken(graph.problems)
    return Pipeline(project, run, graph, steps, tables, Checkpoints(spark, project.storage, run.version))
