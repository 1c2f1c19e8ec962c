"""Topics as elements of Spark Declarative Pipelines: a sink for what is written, a temporary view for what is
read, a flow between them, and one flow for the dead letters of each topic that is read.

`spark-pipelines` and `headrace pipeline` get the same elements.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkRuntimeError
from pyspark.pipelines.flow import Flow
from pyspark.pipelines.graph_element_registry import GraphElementRegistry, get_active_graph_element_registry
from pyspark.pipelines.output import Sink, TemporaryView
from pyspark.pipelines.source_code_location import SourceCodeLocation
from pyspark.sql import DataFrame

from headrace.pipelines.context import asking, current_run
from headrace.pipelines.declared import DeclaredTopic, Query
from headrace.pipelines.errors import PipelineError

_with_letters: WeakKeyDictionary[GraphElementRegistry, set[str]] = WeakKeyDictionary()
"""For each project being loaded, the topics whose dead letters some flow takes care of."""


_reading: ContextVar[list[DeclaredTopic] | None] = ContextVar("headrace_pipeline_reading", default=None)
"""Topics that a flow being registered has been seen to read. Spark's own runner calls its function there and then, and
inside a function it takes no definitions, so those of the dead letters wait until it has returned."""


class PatientRegistry(GraphElementRegistry):
    """One that calls no function before everything is defined, and takes further definitions from functions."""


@dataclass(frozen=True)
class TopicFlow(Flow):
    """A flow into a topic. Spark's own runner sees a flow into a sink; Headrace's sees the rest as well."""

    topic: DeclaredTopic
    mode: str
    letters: bool


@dataclass(frozen=True)
class TopicView(TemporaryView):
    """A topic that other files, and SQL above all, read by its name, as in ``FROM STREAM orders``."""

    topic: DeclaredTopic


def declare(topic: DeclaredTopic) -> None:
    """Make a topic with a declared schema known by name.

    Spark's own runner calls the view's function at once, when it is not known yet whether a flow will write the topic or
    read it, so this one does not see to the dead letters.
    """
    if not topic.has_declared_schema:
        return
    registry = _registry()
    name = topic.element_name
    registry.register_output(TopicView(name, None, topic.location, topic))
    registry.register_flow(Flow(name, name, {}, topic.location, topic.unwatched_stream))


def register_topic_flow(
    topic: DeclaredTopic, name: str, records: Query, location: SourceCodeLocation
) -> None:
    """Register the flow that a decorated function is; the topic's first one brings the sink."""
    sink = f"{topic.element_name}_topic"
    if topic.has_declared_schema and name == topic.element_name:
        name += "_flow"  # the topic's view has the name already
    registry = _registry()
    if topic.flows == 1:
        registry.register_output(_sink(sink, location))
    flow = TopicFlow(name, sink, {}, location, _asked(name, records), topic, topic.mode, False)
    read: list[DeclaredTopic] = []
    token = _reading.set(read)
    try:
        registry.register_flow(flow)
    finally:
        _reading.reset(token)
    for each in read:
        _register_dead_letters(registry, each)


def watch_dead_letters(topic: DeclaredTopic) -> None:
    """See that one flow, however many read the topic, sends its bad records to the dead-letter topic."""
    registry = _registry()
    watched = _with_letters.setdefault(registry, set())
    if topic.dead_letter_topic is None or topic.flows or topic.name in watched:
        return
    if isinstance(registry, PatientRegistry):
        watched.add(topic.name)
        _register_dead_letters(registry, topic)
    elif (reading := _reading.get()) is not None:
        watched.add(topic.name)
        reading.append(topic)


def _register_dead_letters(registry: GraphElementRegistry, topic: DeclaredTopic) -> None:
    name = f"{topic.element_name}_dead_letters"
    registry.register_output(_sink(name, topic.location))
    query = _asked(name, topic.letters)
    registry.register_flow(TopicFlow(name, name, {}, topic.location, query, topic, "append", True))


def _registry() -> GraphElementRegistry:
    try:
        return get_active_graph_element_registry()
    except PySparkRuntimeError:
        raise PipelineError(
            "A topic is declared in a file of a pipeline project: run it with 'headrace pipeline run', or with Spark's "
            "'spark-pipelines run'."
        ) from None


def _sink(name: str, location: SourceCodeLocation) -> Sink:
    return Sink(name, None, location, format="headrace", options=current_run().options())


def _asked(name: str, query: Query) -> Query:
    def asked() -> DataFrame:
        with asking(name):
            return query()

    return asked
