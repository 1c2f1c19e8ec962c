"""Resident memory of the broker: after a start, when nothing has happened yet, and after 3 million
records.
"""

import shutil
import time
from collections import defaultdict

from bench.rows import Bar, Row, Sample, figure
from bench.session import Session

ORDER = 70
TITLE = "Resident memory"


def run(session: Session) -> list[Row]:
    records = session.size(3_000_000, 50_000)
    idle = Row(
        "memory-idle", "idle after start", "MB", "less", "5 s of nothing", [Bar(80, "at most", times=False)]
    )
    after = Row(
        "memory-after",
        f"after {records / 1e6:g} M records of 100 B",
        "MB",
        "less",
        "the load",
        [Bar(150, "at most", times=False)],
    )
    taken: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    systems = session.kafka_systems()
    for number in range(session.rounds(3)):
        for system in systems if number % 2 == 0 else reversed(systems):
            system.prepare()
            data = session.fresh(system, "memory")
            with system.start(data) as running:
                with running.metered() as quiet:
                    time.sleep(5)
                taken[idle.id, system.name].append(Sample(quiet.rss_mb, quiet.cpu_seconds, quiet.rss_mb))
                running.create("memory")
                with running.metered() as busy:
                    running.load("produce", topic="memory", records=records)
                taken[after.id, system.name].append(Sample(busy.rss_mb, busy.cpu_seconds, busy.rss_mb))
            shutil.rmtree(data.parent, ignore_errors=True)
            session.say(
                f"  memory {system.name}: idle {quiet.rss_mb:.0f} MB, after the load {busy.rss_mb:.0f} MB"
            )
    for row in (idle, after):
        row.figures = {system.name: figure(taken[row.id, system.name]) for system in systems}
    return [idle, after]
