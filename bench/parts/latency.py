"""End-to-end latency at 1,000 records a second, with nothing else going on."""

from collections.abc import Mapping
from functools import partial

from bench.rows import Bar, Row, Sample
from bench.session import Session
from bench.systems import Running
from bench.systems.base import Answer

ORDER = 40
TITLE = "End to end at 1,000 records/s"

_PERCENTILES = {"p50": "p50_ms", "p99": "p99_ms", "p99.9": "p999_ms"}
"""And their names in the load's answer."""


def latency_rows(prefix: str, where: str) -> list[Row]:
    """The rows of one situation, one for each percentile."""
    return [
        Row(
            id=f"{prefix}-{percentile}",
            title=f"{percentile}, {where}",
            unit="ms",
            better="less",
            work="10 k records",
            bars=[Bar(0.7, "at most")],
        )
        for percentile in _PERCENTILES
    ]


def run(session: Session) -> list[Row]:
    with session.running(session.kafka_systems(), "latency") as running:
        return compare_latency(session, running, "latency", "alone")


def compare_latency(session: Session, running: Mapping[str, Running], prefix: str, where: str) -> list[Row]:
    """The rows of one situation, measured; `prefix` is the topic's name, too."""
    rows = latency_rows(prefix, where)
    for broker in running.values():
        broker.create(prefix)
    session.compare(running, rows, partial(_latency, prefix, session.seconds(8)), rounds=session.rounds(5))
    return rows


def _latency(prefix: str, seconds: int, broker: Running) -> dict[str, Sample]:
    with broker.metered() as usage:
        answer = broker.load("latency", topic=prefix, rate=1000, seconds=seconds, warm_up=1)
    cpu = usage.cpu_seconds * 1e4 / answer["records"]
    return latency_samples(prefix, answer, cpu, usage.rss_mb)


def latency_samples(prefix: str, answer: Answer, cpu: float, rss_mb: float) -> dict[str, Sample]:
    return {
        f"{prefix}-{percentile}": Sample(answer[figure], cpu, rss_mb)
        for percentile, figure in _PERCENTILES.items()
    }
