"""runs.jsonl: a line for every campaign, with the commit it ran on; docs/reliability.md is about these figures."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.simulation.scenario import Verdict

RUNS = Path(__file__).parent / "runs.jsonl"


def note_run(verdicts: Sequence[Verdict], seconds: float, cores: int) -> None:
    line = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": _git("describe", "--always", "--dirty"),
        "python": platform.python_version(),
        "seeds": len(verdicts),
        "first": min(each.seed for each in verdicts),
        "failed": sorted(each.seed for each in verdicts if each.troubles),
        "virtual_hours": round(sum(each.seconds for each in verdicts) / 3600, 2),
        "faults": sum(each.faults for each in verdicts),
        "writes": sum(each.writes for each in verdicts),
        "cpu_seconds": round(sum(each.cpu for each in verdicts)),
        "seconds": round(seconds),
        "cores": cores,
    }
    with RUNS.open("a") as file:
        file.write(json.dumps(line) + "\n")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=RUNS.parent, capture_output=True, text=True, check=False)
    return done.stdout.strip()
