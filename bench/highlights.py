"""The eight rows that the README quotes, chosen to show where Headrace stands, its losses included."""

from collections.abc import Mapping

from bench.results import PartResult
from bench.rows import Row

HIGHLIGHTS = {
    "flood-100-6": "Produce 100 B records in prepared batches, 6 partitions",
    "single-1000": "Produce one 100 B record per request, pipelined",
    "consume-12": "Consume 100 B records from 12 partitions",
    "latency-p99": "End to end at 1,000 records/s, p99",
    "commits-64-64": "Offset commits of 64 consumer groups",
    "cluster-produce-1": "Produce 100 B records to three replicas, acks=all",
    "start-empty": "Start, until the first request is answered",
    "memory-after": "Memory after 3 million records",
}


def highlights(results: Mapping[str, PartResult]) -> list[tuple[str, Row]]:
    """The chosen rows that have been measured beside Kafka, each with a title that stands by itself."""
    rows = {row.id: row for result in results.values() for row in result.rows}
    return [(title, rows[id]) for id, title in HIGHLIGHTS.items() if id in rows and rows[id].ratio()]


def verdict(row: Row) -> str:
    """How Headrace compares, in words: `3.2 × faster`, `2.5 × slower`, `12 × less`."""
    advantage = row.advantage()
    if advantage is None:
        return ""
    better, worse = ("less", "more") if row.unit == "MB" else ("faster", "slower")
    times = max(advantage, 1 / advantage)
    figure = f"{times:.0f}" if times >= 10 else f"{times:.1f}"
    if figure == "1.0":
        return "the same"
    return f"{figure} × {better if advantage > 1 else worse}"
