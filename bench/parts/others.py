"""What people might pick instead: Redis Streams, NATS JetStream, RabbitMQ streams; beside Headrace and Kafka.

One system at a time, each with a load program compiled for it, each as durable as it is out of the box (Redis
with its append-only file): none of the five syncs before it acknowledges.
"""

import shutil
import time
from collections import defaultdict
from collections.abc import Iterator

from bench.rows import Row, Sample, figure
from bench.session import Session
from bench.systems import ALL, Running, System

ORDER = 90
TITLE = "What else one might pick"


def run(session: Session) -> list[Row]:
    rows = [
        Row("others-start", "start to first answer", "s", "less", "one start"),
        Row("others-idle", "resident memory, idle", "MB", "less", "3 s of nothing"),
        Row(
            "others-produce",
            "produce 100 B records, as batched as the system allows",
            "records/s",
            "more",
            "1 M records",
        ),
        Row(
            "others-single",
            "produce 100 B records, next after the reply",
            "records/s",
            "more",
            "100 k records",
        ),
        Row("others-consume", "consume 100 B records from the beginning", "records/s", "more", "1 M records"),
        Row("others-p50", "end to end at 1,000 records/s, p50", "ms", "less", "10 k records"),
        Row("others-p99", "end to end at 1,000 records/s, p99", "ms", "less", "10 k records"),
        Row("others-after", "resident memory after these loads", "MB", "less", "the loads"),
    ]
    taken: dict[str, dict[str, list[Sample]]] = {row.id: defaultdict(list) for row in rows}
    for system in session.others([kind() for kind in ALL]):
        for row_id, sample in _measure(session, system):
            taken[row_id][system.name].append(sample)
            session.say(f"  {row_id} {system.name}: {sample.value:,.6g}")
    for row in rows:
        row.figures = {name: figure(samples) for name, samples in taken[row.id].items()}
    return rows


def _measure(session: Session, system: System) -> Iterator[tuple[str, Sample]]:
    system.prepare()
    data = session.fresh(system, "others")
    records, rounds = session.size(1_000_000, 20_000), session.rounds(3)
    with system.start(data) as running:
        yield "others-start", Sample(running.ready_seconds, running.cpu_seconds(), running.rss_mb())
        with running.metered() as usage:
            time.sleep(3)
        yield "others-idle", Sample(usage.rss_mb, usage.cpu_seconds, usage.rss_mb)
        for number in range(rounds + 1):  # the first round is the warm-up
            samples = list(_round(session, running, f"others{number}", records))
            if number > 0:
                yield from samples
        yield "others-after", Sample(running.rss_mb(), running.cpu_seconds(), running.rss_mb())
    shutil.rmtree(data.parent, ignore_errors=True)


def _round(session: Session, running: Running, topic: str, records: int) -> Iterator[tuple[str, Sample]]:
    running.create(topic)
    with running.metered() as usage:
        answer = running.load("produce", topic=topic, records=records)
    yield "others-produce", Sample(answer["per_second"], usage.cpu_seconds * 1e6 / records, usage.rss_mb)
    with running.metered() as usage:
        answer = running.load("consume", topic=topic, records=records)
    yield "others-consume", Sample(answer["per_second"], usage.cpu_seconds * 1e6 / records, usage.rss_mb)
    running.delete(topic)

    running.create(f"{topic}-single")
    with running.metered() as usage:
        seconds = session.seconds(4)
        answer = running.load("produce", topic=f"{topic}-single", seconds=seconds, **running.one_by_one)
    yield (
        "others-single",
        Sample(answer["per_second"], usage.cpu_seconds * 1e5 / answer["records"], usage.rss_mb),
    )
    running.delete(f"{topic}-single")

    running.create(f"{topic}-latency")
    with running.metered() as usage:
        answer = running.load("latency", topic=f"{topic}-latency", seconds=session.seconds(6), warm_up=1)
    cpu = usage.cpu_seconds * 1e4 / answer["records"]
    yield "others-p50", Sample(answer["p50_ms"], cpu, usage.rss_mb)
    yield "others-p99", Sample(answer["p99_ms"], cpu, usage.rss_mb)
    running.delete(f"{topic}-latency")
