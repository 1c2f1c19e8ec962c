"""Produce, batched: 100-byte and 1 KiB records, acks=1, to one and to six partitions.

Each twice: from batches made beforehand, where the broker is the limit, and through librdkafka, which makes every
record and is itself the limit for small ones.
"""

from functools import partial
from itertools import product

from bench.rows import Bar, Row, Sample
from bench.session import Session
from bench.systems import Running

ORDER = 10
TITLE = "Produce, batched, acks=1"

_CASES = (
    ("100 B", 100, 1, 3_000_000),
    ("100 B", 100, 6, 3_000_000),
    ("1 KiB", 1024, 1, 600_000),
    ("1 KiB", 1024, 6, 600_000),
)


_LOADS = (("flood", ", batches made beforehand", 3), ("produce", ", through librdkafka", 1))
"""How the records are sent, and how many times as many, so that a round takes as long."""


def run(session: Session) -> list[Row]:
    rows = []
    with session.running(session.kafka_systems(), "produce") as running:
        for (load, how, times), (name, size, partitions, full) in product(_LOADS, _CASES):
            row = Row(
                id=f"{load}-{size}-{partitions}",
                title=f"{name} records, {partitions} partition{'s' * (partitions > 1)}{how}",
                unit="records/s",
                better="more",
                work="1 M records",
                bars=[Bar(1.3, "at least")],
            )
            records = session.size(full * times, 20_000)
            measure = partial(produce, load, row.id, size, partitions, records)
            session.compare(running, [row], measure, rounds=session.rounds(5))
            rows.append(row)
    return rows


def produce(
    load: str, row_id: str, size: int, partitions: int, records: int, broker: Running
) -> dict[str, Sample]:
    broker.create(row_id, partitions)
    with broker.metered() as usage:
        answer = broker.load(load, topic=row_id, partitions=partitions, records=records, size=size)
    broker.delete(row_id)
    return {row_id: Sample(answer["per_second"], usage.cpu_seconds * 1e6 / answer["records"], usage.rss_mb)}
