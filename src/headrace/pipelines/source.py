"""How a topic is read: the options of the ``headrace`` data source for this topic, flow and run."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql.types import StructType

from headrace.pipelines.context import Run, Start, current_flow
from headrace.pipelines.declared import DeclaredTopic
from headrace.spark.source import HeadraceSource

_EARLIEST = -2


def stream_options(topic: DeclaredTopic, run: Run, columns: Sequence[str] = ()) -> dict[str, str]:
    """Of these columns of the records; of all, headers too, when none is named."""
    options = {"startingOffsets": topic.start, **batch_options(topic, run, columns)}
    flow = current_flow()
    if run.pipeline is not None and flow is not None:
        # Offsets are committed to a group of the flow's own, so that lag tools see it.
        options.setdefault("group", group_of(run, flow.flow))
    if run.start is not None and not topic.flows:
        del options["startingOffsets"]
        options |= _replay_options(run, run.start, options["subscribe"])
    return options


def batch_options(topic: DeclaredTopic, run: Run, columns: Sequence[str] = ()) -> dict[str, str]:
    place = place_of(topic, run)
    flow = current_flow()
    if flow is not None:
        flow.reads.add(place)
    return {
        "kafka.isolation.level": "read_committed",  # what another flow has not committed is not there yet
        **run.options(),
        "subscribe": place,
        **({"columns": ",".join(columns)} if columns else {"includeHeaders": "true"}),
        **topic.options,
    }


def schema(options: dict[str, str]) -> StructType:
    """The columns that the data source would answer, without the Python process that Spark starts to ask it."""
    return HeadraceSource(options).schema()


def group_of(run: Run, flow: str) -> str:
    return f"{run.versioned(run.pipeline or '')}.{flow}"


def place_of(topic: DeclaredTopic, run: Run) -> str:
    """The topic to read: the version this run writes, or the dead letters that a replay takes up."""
    if topic.flows:
        return run.versioned(topic.name)
    if run.takes_up_dead_letters and topic.dead_letter_topic is not None:
        return topic.dead_letter_topic
    return topic.name


def _replay_options(run: Run, start: Start, place: str) -> dict[str, str]:
    offsets = start.offsets.get(place)
    if offsets is None:
        return dict(start.options)
    from headrace.client import Admin

    with Admin(run.client_config()) as admin:
        numbers = [each.number for each in admin.topic(place).partitions]
    return {"startingOffsets": json.dumps({place: {str(n): offsets.get(n, _EARLIEST) for n in numbers}})}
