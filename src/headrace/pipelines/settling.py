"""Ending what the queries of a pipeline have left open in the cluster when they were stopped in the middle of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from headrace.link.cluster import Cluster
from headrace.pipelines.context import Run
from headrace.spark import sink_commit
from headrace.spark.settings import kafka_settings


def settle(run: Run, queries: Sequence[str]) -> None:
    """Commit what they had recorded, abort what they had not; `queries` are ids of Spark's."""
    if queries:
        with closing(Cluster(kafka_settings(run.options()))) as cluster:
            sink_commit.settle(cluster, queries)
