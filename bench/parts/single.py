"""Produce with one record in each request: what a request costs, when batching does not spread it."""

from functools import partial

from bench.rows import Bar, Row, Sample
from bench.session import Session
from bench.systems import Running

ORDER = 20
TITLE = "Produce, one record per request, acks=1"


def run(session: Session) -> list[Row]:
    rows = []
    with session.running(session.kafka_systems(), "single") as running:
        for name, in_flight, bars in (
            ("pipelined", 1000, [Bar(3, "at least")]),
            ("next after the reply", 1, []),
        ):
            row = Row(
                id=f"single-{in_flight}",
                title=f"100 B records, one per request, {name}",
                unit="records/s",
                better="more",
                work="100 k records",
                bars=bars,
            )
            measure = partial(_produce, row.id, in_flight, session.seconds(4))
            session.compare(running, [row], measure, rounds=session.rounds(5))
            rows.append(row)
    return rows


def _produce(row_id: str, in_flight: int, seconds: int, broker: Running) -> dict[str, Sample]:
    broker.create(row_id)
    with broker.metered() as usage:
        answer = broker.load(
            "produce", topic=row_id, seconds=seconds, **{**broker.one_by_one, "in_flight": in_flight}
        )
    broker.delete(row_id)
    return {row_id: Sample(answer["per_second"], usage.cpu_seconds * 1e5 / answer["records"], usage.rss_mb)}
