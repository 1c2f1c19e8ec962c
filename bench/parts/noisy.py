"""End-to-end latency at 1,000 records a second while others work the broker hard.

One client produces flat out, one reads a cold backlog, and compaction runs.
"""

from functools import partial

from bench.compaction import CompactionWatch
from bench.parts.latency import latency_rows, latency_samples
from bench.processes import Broken, drop_from_page_cache
from bench.rows import Row, Sample
from bench.session import Session
from bench.systems import Running
from bench.systems.kafka_protocol import RunningKafka

ORDER = 60
TITLE = "End to end at 1,000 records/s beside noisy neighbours"

_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 << 20),
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "0",
}
_SETTINGS = {"log.cleaner.backoff.ms": "1000"}


def run(session: Session) -> list[Row]:
    rows = [
        *latency_rows("noisy", "beside a flat-out producer, a cold backlog reader and compaction"),
        Row("noisy-produced", "what the flat-out producer got", "records/s", "more", "the round"),
        Row("noisy-read", "what the reader of the cold backlog got", "MB/s", "more", "the round"),
        Row("noisy-compacted", "what compaction replaced meanwhile", "MB/s", "more", "the round"),
    ]
    running: dict[str, RunningKafka] = {}
    try:
        for system in session.kafka_systems():
            data = session.backlog(system)
            running[system.name] = system.start(data, _SETTINGS)
            running[system.name].create("quiet")
        measure = partial(_latency_beside, session, int(session.seconds(12)))
        session.compare(running, rows, measure, rounds=session.rounds(3))
        for broker in running.values():
            broker.delete("quiet")
            broker.stop()
    finally:
        for broker in running.values():
            broker.kill()
    return rows


def _latency_beside(session: Session, seconds: int, broker: Running) -> dict[str, Sample]:
    assert isinstance(broker, RunningKafka)
    keys = session.size(200_000, 1000)
    broker.create("flat-out")
    broker.create("compacted", config=_COMPACTED)
    broker.load("produce", topic="compacted", records=session.size(4_000_000, 200_000), size=100, keys=keys)
    drop_from_page_cache(broker.data / "backlog-0")
    busy = seconds + 4
    with broker.metered() as usage:
        neighbours = [
            broker.start_load("produce", topic="flat-out", seconds=busy, size=100, queue_records=100_000),
            broker.start_load("consume", topic="backlog", seconds=busy, queue_records=100_000),
            broker.start_load("produce", topic="compacted", seconds=busy, size=100, keys=keys, rate=50_000),
        ]
        try:
            with CompactionWatch(broker.data / "compacted-0") as compaction:
                answer = broker.load("latency", topic="quiet", rate=1000, seconds=seconds, warm_up=2)
            produced, read, _ = (neighbour.answer() for neighbour in neighbours)
        finally:
            for neighbour in neighbours:
                neighbour.cancel()
    if not compaction.seen:
        raise Broken(f"no compaction was under way in {broker.data} during the measurement")
    broker.delete("flat-out")
    broker.delete("compacted")
    cost = usage.cpu_seconds
    share = cost * 1e4 / answer["records"]
    return {
        **latency_samples("noisy", answer, share, usage.rss_mb),
        "noisy-produced": Sample(produced["per_second"], cost, usage.rss_mb),
        "noisy-read": Sample(read["bytes"] / 1e6 / busy, cost, usage.rss_mb),
        "noisy-compacted": Sample(compaction.replaced_per_second / 1e6, cost, usage.rss_mb),
    }
