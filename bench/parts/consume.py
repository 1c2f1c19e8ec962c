"""Consume from the beginning, one partition and many: the speed of replay, and what it costs the broker. Through librdkafka, which is
itself the limit for small records, and by a reader that looks at no record, where the broker is."""

from functools import partial

from bench.rows import Bar, Row, Sample
from bench.session import GB, Session
from bench.systems import Running

ORDER = 30
TITLE = "Consume from the beginning"

_SIZE = 100


def run(session: Session) -> list[Row]:
    rows = []
    records = session.size(8_000_000, 50_000)
    with session.running(session.kafka_systems(), "consume") as running:
        for partitions in (1, 12):
            name = f"100 B records, {partitions} partition{'s' * (partitions > 1)}"
            speed = Row(
                id=f"consume-{partitions}",
                title=f"consume {name}",
                unit="records/s",
                better="more",
                work="1 GB",
                bars=[Bar(1.0, "at least")],
            )
            cost = Row(
                id=f"consume-{partitions}-cpu",
                title=f"broker CPU to consume 1 GB of {name}",
                unit="CPU-s",
                better="less",
                work="1 GB",
                bars=[Bar(1.0, "at most")],
            )
            for broker in running.values():
                broker.create(speed.id, partitions)
                broker.load("produce", topic=speed.id, partitions=partitions, records=records, size=_SIZE)
            measure = partial(_consume, speed.id, partitions, records)
            session.compare(running, [speed, cost], measure, rounds=session.rounds(9))
            undecoded = Row(
                id=f"drain-{partitions}",
                title=f"consume {name}, by a reader that does not decode",
                unit="records/s",
                better="more",
                work="1 GB",
                bars=[Bar(1.5, "at least")],
            )
            measure = partial(_drain, speed.id, undecoded.id, partitions, records)
            session.compare(running, [undecoded], measure, rounds=session.rounds(9))
            rows += [speed, cost, undecoded]
            for broker in running.values():
                broker.delete(speed.id)
    return rows


def _consume(row_id: str, partitions: int, records: int, broker: Running) -> dict[str, Sample]:
    with broker.metered() as usage:
        answer = broker.load("consume", topic=row_id, partitions=partitions, records=records)
    per_gb = usage.cpu_seconds * GB / answer["bytes"]
    return {
        row_id: Sample(answer["per_second"], per_gb, usage.rss_mb),
        f"{row_id}-cpu": Sample(per_gb, per_gb, usage.rss_mb),
    }


def _drain(topic: str, row_id: str, partitions: int, records: int, broker: Running) -> dict[str, Sample]:
    with broker.metered() as usage:
        answer = broker.load("drain", topic=topic, partitions=partitions, records=records)
    return {row_id: Sample(answer["per_second"], usage.cpu_seconds * GB / answer["bytes"], usage.rss_mb)}
