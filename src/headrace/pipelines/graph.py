"""The elements a project defines, collected from its Python and SQL files as Spark's own runner would.

It is a registry of ``pyspark.pipelines``: the decorators of Spark and of Headrace both land here.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.pipelines.flow import AutoCdcFlow, Flow
from pyspark.pipelines.graph_element_registry import graph_element_registration_context
from pyspark.pipelines.output import Output
from pyspark.pipelines.source_code_location import SourceCodeLocation
from pyspark.sql import SparkSession

from headrace.pipelines import sql
from headrace.pipelines.declared import DeclaredTopic
from headrace.pipelines.elements import PatientRegistry, TopicFlow, TopicView
from headrace.pipelines.errors import Problem, SourceLine
from headrace.pipelines.project import Project
from headrace.pipelines.spark_errors import sentence


class Graph(PatientRegistry):
    """The outputs and flows of one project, by name, and what is wrong with how they are defined."""

    def __init__(self, project: Project, spark: SparkSession) -> None:
        self.project = project
        self.spark = spark
        self.outputs: dict[str, Output] = {}
        self.flows: dict[str, Flow] = {}
        self.problems: list[Problem] = []

    def register_output(self, output: Output) -> None:
        if (first := self.outputs.get(output.name)) is not None:
            both = isinstance(output, TopicView) and isinstance(first, TopicView)
            remedy = (
                f"declare it once, and read it elsewhere as spark.readStream.table('{output.name}')"
                if both
                else "give one of them another name"
            )
            self._problem(
                f"'{output.name}' is already defined at {self.place(first.source_code_location)}: {remedy}.",
                output.source_code_location,
            )
            return
        self.outputs[output.name] = output

    def register_flow(self, flow: Flow) -> None:
        if (first := self.flows.get(flow.name)) is not None:
            if flow.name != flow.target:  # of an output defined twice, the output is the problem
                self._problem(
                    f"A flow '{flow.name}' is already defined at {self.place(first.source_code_location)}: "
                    "give one of the two another name.",
                    flow.source_code_location,
                )
            return
        self.flows[flow.name] = flow

    def register_auto_cdc_flow(self, flow: AutoCdcFlow) -> None:
        self._problem(
            "create_auto_cdc_flow is run by Spark's own 'spark-pipelines run' only; with Headrace, "
            "write changes to a table (hp.table) instead.",
            flow.source_code_location,
        )

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        outputs, flows, problems = sql.elements(self.spark, sql_text, str(file_path))
        for output in outputs:
            self.register_output(output)
        for flow in flows:
            self.register_flow(flow)
        self.problems += problems

    @property
    def topics(self) -> dict[str, DeclaredTopic]:
        """Every topic of the project by its name as an identifier."""
        known = [each.topic for each in self.flows.values() if isinstance(each, TopicFlow)]
        known += [each.topic for each in self.outputs.values() if isinstance(each, TopicView)]
        return {topic.element_name: topic for topic in known}

    def load(self) -> None:
        """Run the project's files; an error in one is a problem, and the others are still looked at."""
        with self.defining(), _inside(self.project.root):
            for file in self.project.files():
                self._load_file(file)
            self._adopt_flows_into_topics()
        if not self.flows and not self.problems:
            self.problems.append(
                Problem("The project defines no flow: check 'libraries' in its spark-pipeline.yml.")
            )

    def _adopt_flows_into_topics(self) -> None:
        """A flow of Spark's own, Python or SQL, may name a topic as its target: its rows are encoded then."""
        for flow in list(self.flows.values()):
            target = self.outputs.get(flow.target)
            if isinstance(target, TopicView) and flow.name != flow.target:
                del self.flows[flow.name]
                target.topic.add_flow(flow.name, flow.func, flow.source_code_location)

    @contextmanager
    def defining(self) -> Iterator[None]:
        with graph_element_registration_context(self):
            yield

    def place(self, location: SourceCodeLocation) -> SourceLine:
        return SourceLine(self._relative(location.filename), location.line_number)

    def place_of(self, error: BaseException) -> SourceLine | None:
        """The innermost line of the user's own files that an error went through; SQL leaves it as a note."""
        for note in getattr(error, "__notes__", ()):
            file, _, line = note.rpartition(":")
            if file.endswith(".sql") and line.isdecimal():
                return SourceLine(self._relative(file), int(line))
        root, found, trace = str(self.project.root), None, error.__traceback__
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if file.startswith(root + os.sep) and f"{os.sep}.venv{os.sep}" not in file:
                found = SourceLine(self._relative(file), trace.tb_lineno)
            trace = trace.tb_next
        return found

    def _load_file(self, file: Path) -> None:
        name = str(file.relative_to(self.project.root))
        if file.suffix == ".sql":
            self.register_sql(file.read_text(), Path(name))
            return
        if file.suffix != ".py":
            self.problems.append(Problem("Only .py and .sql files define a pipeline.", SourceLine(name)))
            return
        spec = importlib.util.spec_from_file_location(file.stem, str(file))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        module.__dict__["spark"] = self.spark
        try:
            spec.loader.exec_module(module)
        except SyntaxError as error:
            self.problems.append(Problem(f"{error.msg}.", SourceLine(name, error.lineno)))
        except Exception as error:
            self.problems.append(Problem(sentence(error), self.place_of(error) or SourceLine(name)))

    def _problem(self, text: str, location: SourceCodeLocation) -> None:
        self.problems.append(Problem(text, self.place(location)))

    def _relative(self, file: str) -> str:
        path = Path(file)
        return str(path.relative_to(self.project.root)) if path.is_relative_to(self.project.root) else file


@contextmanager
def _inside(directory: Path) -> Iterator[None]:
    """Spark's runner calls a project's files in its directory; files may open others beside them."""
    before = os.getcwd()
    os.chdir(directory)
    sys.path.insert(0, str(directory))
    try:
        yield
    finally:
        sys.path.remove(str(directory))
        os.chdir(before)
