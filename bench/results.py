"""bench/results.json: the figures of the last full run of every part, with the machine and
the versions they belong to.
"""

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.rows import Row
from bench.systems import NAMED

FILE = Path(__file__).resolve().parent / "results.json"


@dataclass(slots=True)
class PartResult:
    """One part's rows, and where and when they were measured; the versions stand with the figures."""

    name: str
    title: str
    order: int
    measured: str
    scale: float
    machine: str
    rows: list[Row]

    def versions(self) -> dict[str, str]:
        """The version of each system in this part, which is measured in one run."""
        found = {name: figure.version for row in self.rows for name, figure in row.figures.items()}
        return {kind.name: found[kind.name] for kind in NAMED if kind.name in found}

    def rounds(self) -> list[int]:
        """How often each row was measured."""
        return [len(figure.samples) for row in self.rows for figure in row.figures.values()]

    def to_json(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "rows": [row.to_json() for row in self.rows]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "PartResult":
        return cls(**{**data, "rows": [Row.from_json(row) for row in data["rows"]]})


def part_result(name: str, title: str, order: int, scale: float, rows: list[Row]) -> PartResult:
    measured = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    versions = {
        kind.name: kind().version() for kind in NAMED if any(kind.name in row.figures for row in rows)
    }
    for row in rows:
        for system, taken in row.figures.items():
            taken.version = versions[system]
    return PartResult(name, title, order, measured, scale, _machine(), rows)


def opponents(results: Iterable[PartResult]) -> list[str]:
    """The versions of Apache Kafka that the compared rows were measured with, the newest first."""
    found = {
        row.figures["kafka"].version for result in results for row in result.rows if "kafka" in row.figures
    }
    return sorted(found, key=lambda version: [int(number) for number in version.split(".")], reverse=True)


def load(file: Path = FILE) -> dict[str, PartResult]:
    if not file.exists():
        return {}
    parts = json.loads(file.read_text())["parts"]
    return {part["name"]: PartResult.from_json(part) for part in parts}


def merge(results: Iterable[PartResult], file: Path = FILE) -> dict[str, PartResult]:
    """Puts these parts in the place of their older selves and writes the file."""
    merged = load(file)
    merged.update({result.name: result for result in results})
    ordered = sorted(merged.values(), key=lambda result: result.order)
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"parts": [result.to_json() for result in ordered]}, indent=1, ensure_ascii=False)
    file.write_text(text + "\n")
    return {result.name: result for result in ordered}


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    model = "processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    python = platform.python_version()
    kernel = platform.release().split("-")[0]
    return f"{os.cpu_count()} × {model}, {memory:.0f} GiB, Linux {kernel}, Python {python}"
