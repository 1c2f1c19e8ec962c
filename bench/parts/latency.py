"""End-to-end latency at 1,000 records a second, with nothing else going on."""

from collections.abc import Mapping
from functools import partial

from bench.rows import Bar, Row, Sample
from bench.session import Session
from bench.systems import Running

ORDER = 40
TITLE = "End to end at 1,000 records/s"


def latency_rows(prefix: str, where: str) -> list[Row]:
    """The p50 and p99 rows of one situation."""
    return [
        Row(
            id=f"{prefix}-{percentile}",
            title=f"{percentile}, {where}",
            unit="ms",
            better="less",
            work="10 k records",
            bars=[Bar(0.7, "at most")],
        )
        for percentile in ("p50", "p99")
    ]


def run(session: Session) -> list[Row]:
    with session.running(session.kafka_systems(), "latency") as running:
        return compare_latency(session, running, "latency", "alone")


def compare_latency(session: Session, running: Mapping[str, Running], prefix: str, where: str) -> list[Row]:
    """Both rows of one situation, measured; `prefix` is the topic's name, too."""
    rows = latency_rows(prefix, where)
    for broker in running.values():
        broker.create(prefix)
    session.compare(running, rows, partial(_latency, prefix, session.seconds(8)), rounds=session.rounds(5))
    return rows


def _latency(prefix: str, seconds: int, broker: Running) -> dict[str, Sample]:
    with broker.metered() as usage:
        answer = broker.load("latency", topic=prefix, rate=1000, seconds=seconds, warm_up=1)
    cpu = usage.cpu_seconds * 1e4 / answer["records"]
    return {
        f"{prefix}-p50": Sample(answer["p50_ms"], cpu, usage.rss_mb),
        f"{prefix}-p99": Sample(answer["p99_ms"], cpu, usage.rss_mb),
    }
