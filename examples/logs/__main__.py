"""Log collection: files that grow and are rotated, followed into a topic, parsed, and counted per service and minute."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from examples.chart import line_chart
from examples.kit import Stage, stage, tell

SERVICES = ("basket", "checkout", "search")
START = datetime(2026, 11, 16, 8, tzinfo=UTC)
FOLLOW = """\
name = "follow"

[topic]
name = "logs"

[source]
type = "files"
path = "{path}/*.log*"
format = "text"
line_timeout = "0 seconds"
"""


class Machines:
    """Three services that write their logs."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._chance = random.Random(2)
        self._seconds = 0
        self.lines = 0
        self.errors: Counter[str] = Counter()

    def write(self, count: int) -> None:
        for _ in range(count):
            self._seconds += 1
            at, service = START + timedelta(seconds=self._seconds), self._chance.choice(SERVICES)
            trouble = service == "checkout" and 600 < self._seconds < 900
            level = "ERROR" if self._chance.random() < (0.4 if trouble else 0.02) else "INFO"
            self.errors[service] += level == "ERROR"
            self.lines += 1
            with (self._directory / f"{service}.log").open("a") as file:
                file.write(f"{at.isoformat()} {level} {service} request {self._seconds}\n")

    def rotate(self) -> None:
        for file in sorted(self._directory.glob("*.log")):
            file.rename(file.with_suffix(".log.1"))


def play(stage: Stage) -> None:
    stage.topic("logs")
    directory = stage.out / "var"
    directory.mkdir()
    (stage.out / "follow.toml").write_text(FOLLOW.format(path=directory))
    machines, half = Machines(directory), stage.sizes.lines // 2
    machines.write(half)
    stage.headrace("connect", "run", stage.out / "follow.toml", "--once")
    # The connector is away while the services write on and their files are rotated: it finds what it has not read.
    machines.write(half // 2)
    machines.rotate()
    machines.write(stage.sizes.lines - half - half // 2)
    with (directory / "basket.log").open("a") as file:
        file.write("Segmentation fault\n")
    stage.headrace("connect", "run", stage.out / "follow.toml", "--once")
    stage.headrace("pipeline", "run", stage.project("logs"), "--once")

    errors: dict[tuple[str, str], int] = {}
    for row in stage.rows("logs.errors"):
        errors[row["service"], row["minute"]] = row["count"]
    lines: dict[str, list[tuple[float, float]]] = {service: [] for service in SERVICES}
    for (service, minute), count in sorted(errors.items()):
        lines[service].append(((datetime.fromisoformat(minute) - START).total_seconds() / 60, count))
    line_chart(stage.out / "errors.svg", "Errors per minute", "minutes", "errors", lines)
    tell(
        stage,
        lines_written=machines.lines + 1,
        lines_collected=len(stage.records("logs")),
        lines_parsed=len(stage.rows("logs.parsed")),
        lines_set_aside=len(stage.records("logs.parsed.dlq")),
        errors_written=machines.errors.total(),
        errors_counted=sum(errors.values()),
        worst_service=max(SERVICES, key=lambda name: sum(n for (s, _), n in errors.items() if s == name)),
    )


with stage("logs", __doc__, lines=1_500) as place:
    play(place)
