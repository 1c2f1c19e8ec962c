"""Transactions a second: small ones show what a commit costs, larger ones how it spreads over the records."""

import json
import subprocess
import sys
from functools import partial
from itertools import count

from bench.processes import Broken
from bench.rows import Bar, Row, Sample, figure
from bench.session import Session
from bench.systems import Running

ORDER = 85
TITLE = "Transactions, and the test fixture's start"

_BAR = Bar(1, "at least")
_WITHIN_HALF_A_SECOND = Bar(0.5, "at most", times=False)
_rounds = count()


def run(session: Session) -> list[Row]:
    rows = []
    with session.running(session.kafka_systems(), "transactions") as running:
        for producers, who in ((1, "one producer"), (10, "10 producers")):
            for records in (1, 10, 100):
                row = Row(
                    id=f"transactions-{producers}-{records}",
                    title=f"{records} record{'s' if records > 1 else ''} each, {who}",
                    unit="transactions/s",
                    better="more",
                    work="10 k transactions",
                    bars=[_BAR],
                )
                measure = partial(_commit, row.id, producers, records, session.seconds(6))
                session.compare(running, [row], measure, rounds=session.rounds(3))
                rows.append(row)
    if not session.only or "headrace" in session.only:
        rows.append(_fixture(session))
    return rows


def _commit(row_id: str, producers: int, records: int, seconds: int, broker: Running) -> dict[str, Sample]:
    # A name for each round: a client that looks for a topic just deleted makes Kafka create it again.
    topic = f"{row_id}-{next(_rounds)}"
    broker.create(topic, producers)
    with broker.metered() as usage:
        answer = broker.load(
            "transactions", topic=topic, producers=producers, records=records, seconds=seconds
        )
    broker.delete(topic)
    done = answer["transactions"]
    return {row_id: Sample(answer["per_second"], usage.cpu_seconds * 1e4 / done, usage.rss_mb)}


_START = """
import json, pathlib, sys, tempfile, time
begun = time.perf_counter()
from headrace.testing.broker import BrokerThread
times = []
for number in range(int(sys.argv[1])):
    with tempfile.TemporaryDirectory() as home:
        if number:
            begun = time.perf_counter()
        with BrokerThread(pathlib.Path(home) / "data") as broker:
            broker.create_topic()
            times.append(time.perf_counter() - begun)
print(json.dumps(times))
"""


def _fixture(session: Session) -> Row:
    """`headrace_broker` as a test sees it: a broker that serves, and a topic on it. The first of a process imports."""
    row = Row("fixture", "headrace_broker and a topic", "s", "less", "one start", [_WITHIN_HALF_A_SECOND])
    done = subprocess.run(
        [sys.executable, "-c", _START, str(session.rounds(10) + 1)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode != 0:
        raise Broken(f"the fixture failed: {done.stderr.strip().splitlines()[-1:]}")
    first, *others = json.loads(done.stdout)
    session.say(
        f"  fixture: {first:.3f} s with the imports, then {', '.join(f'{each:.3f}' for each in others)}"
    )
    row.figures = {"headrace": figure([Sample(each) for each in others])}
    return row
