"""Spark with Headrace's data source beside Spark with its own Kafka connector: one topic, one broker, one session."""

import uuid
from functools import partial

from confluent_kafka import Consumer, TopicPartition

from bench.processes import Broken
from bench.rows import Bar, Better, Row, Sample
from bench.session import Session
from bench.systems import Headrace, Running
from bench.systems.kafka_protocol import RunningKafka
from bench.systems.spark import RunningConnector, SparkKafka, spark_session

ORDER = 100
TITLE = "Spark, 2 cores, one Headrace broker"

_PARTITIONS = 4


def run(session: Session) -> list[Row]:
    rows: list[Row] = []
    with session.running([Headrace()], "spark") as brokers:
        broker = brokers["headrace"]
        small = _fill(broker, "small", session.size(3_000_000, 20_000), 100)
        large = _fill(broker, "large", session.size(1_000_000, 5_000), 1024)
        with spark_session(session.work, 2) as connectors:
            rows += _batch(session, broker, connectors, "small", small, "batch read, 100 B records")
            rows += _batch(session, broker, connectors, "large", large, "batch read, 1 KiB records")
            rows += _window(session, broker, connectors, small)
            rows += _write(session, broker, connectors)
            rows += _delay(session, broker, connectors)
        with spark_session(session.work, 1) as connectors:
            title = "batch read, 100 B records, all of Spark on 1 core"
            rows += _batch(session, broker, connectors, "small", small, title, "-one-core", [])
    return rows


def _fill(broker: RunningKafka, topic: str, records: int, size: int) -> int:
    """Makes a topic and returns how many records it holds: the load primes each partition with one more."""
    broker.create(topic, _PARTITIONS)
    broker.load("produce", topic=topic, partitions=_PARTITIONS, records=records, size=size)
    return _held(broker, topic)


def _row(row_id: str, title: str, bars: list[Bar], unit: str = "records/s", better: Better = "more") -> Row:
    return Row(f"spark-{row_id}", title, unit, better, "1 M records", bars, against=SparkKafka.name)


def _batch(
    session: Session,
    broker: RunningKafka,
    connectors: dict[str, Running],
    topic: str,
    records: int,
    title: str,
    suffix: str = "",
    bars: list[Bar] | None = None,
) -> list[Row]:
    row = _row(f"batch-{topic}{suffix}", title, [Bar(2.0, "at least")] if bars is None else bars)
    checked: set[str] = set()

    def measure(running: Running) -> dict[str, Sample]:
        assert isinstance(running, RunningConnector)
        check = running.connector not in checked
        checked.add(running.connector)
        sample = _rate(running, "batch", records, address=broker.address, topic=topic, check=check)
        return {row.id: sample}

    session.compare(connectors, [row], measure, rounds=session.rounds(3 if suffix else 7))
    return [row]


def _rate(running: RunningConnector, kind: str, records: int, **options: object) -> Sample:
    with running.metered() as usage:
        answer = running.work(kind, records=records, **options)
    return Sample(answer["per_second"], usage.cpu_seconds * 1e6 / records)


def _window(
    session: Session, broker: RunningKafka, connectors: dict[str, Running], records: int
) -> list[Row]:
    row = _row("window", "stream of 100 B records counted by windows", [Bar(1.5, "at least")])
    limit = max(records // 3, 1)

    def measure(running: Running) -> dict[str, Sample]:
        assert isinstance(running, RunningConnector)
        sample = _rate(running, "window", records, address=broker.address, topic="small", limit=limit)
        return {row.id: sample}

    session.compare(connectors, [row], measure, rounds=session.rounds(5))
    return [row]


def _write(session: Session, broker: RunningKafka, connectors: dict[str, Running]) -> list[Row]:
    row = _row("write", "batch write, 100 B values with keys", [Bar(1.0, "at least")])
    records = session.size(1_000_000, 20_000)

    def measure(running: Running) -> dict[str, Sample]:
        assert isinstance(running, RunningConnector)
        topic = f"written-{uuid.uuid4().hex[:8]}"
        broker.create(topic, _PARTITIONS)
        sample = _rate(running, "write", records, address=broker.address, topic=topic, size=100)
        if (held := _held(broker, topic)) != records:
            raise Broken(f"{running.connector} wrote {held} records where there were {records} rows")
        broker.delete(topic)
        return {row.id: sample}

    session.compare(connectors, [row], measure, rounds=session.rounds(5))
    return [row]


def _held(broker: RunningKafka, topic: str) -> int:
    """How many records a topic holds."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "bench", "log_level": 2})
    try:
        ends = [
            consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
            for partition in range(_PARTITIONS)
        ]
    finally:
        consumer.close()
    return sum(high - low for low, high in ends)


def _delay(session: Session, broker: RunningKafka, connectors: dict[str, Running]) -> list[Row]:
    rows = [
        _row(
            f"delay-{percentile}",
            f"event to row at 1,000 rows/s, {percentile}",
            [Bar(1.0, "at most")],
            "ms",
            "less",
        )
        for percentile in ("p50", "p99")
    ]
    broker.create("events")
    measure = partial(_measure_delay, broker, session.seconds(20))
    session.compare(connectors, rows, measure, rounds=session.rounds(3))
    return rows


def _measure_delay(broker: RunningKafka, seconds: int, running: Running) -> dict[str, Sample]:
    assert isinstance(running, RunningConnector)
    load = broker.start_load(
        "latency", topic="events", rate=1000, seconds=seconds + 90, time_limit=seconds + 120
    )
    try:
        with running.metered() as usage:
            answer = running.work("delay", address=broker.address, topic="events", seconds=seconds)
    finally:
        load.cancel()
    cpu = usage.cpu_seconds * 1e6 / answer["records"]
    return {f"spark-delay-{name}": Sample(answer[f"{name}_ms"], cpu) for name in ("p50", "p99")}
