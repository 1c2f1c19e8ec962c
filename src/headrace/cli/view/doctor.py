"""What the doctor found, for people: the worst first, each with its remedy, and what was not looked at."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.cli.view import output

if TYPE_CHECKING:
    from headrace.watch.doctor.examination import Result
    from headrace.watch.doctor.findings import Check

_COLOURS = {"error": "31;1", "warning": "33", "note": "36"}
_WIDTH = 9


def show(results: Sequence[Result]) -> None:
    from headrace.watch.doctor.examination import Outcome

    found = [(each, result.check) for result in results for each in result.findings]
    for finding, check in sorted(found, key=lambda each: -each[0].severity.rank):
        print(f"{_coloured(finding.severity.value)}{finding.sentence} [{check.name}]")
        print(f"{' ' * _WIDTH}→ {finding.remedy}")
    away = [each for each in results if each.outcome == Outcome.NOT_POSSIBLE]
    for each in away:
        print(f"{'?':<{_WIDTH}}{each.check.name} could not be looked at: {each.reason}")
    counts = {outcome: sum(each.outcome == outcome for each in results) for outcome in Outcome}
    if found or away:
        print()
    summary = [f"{output.count(counts[Outcome.FINE], 'check')} found nothing"]
    if found:
        summary.append(f"{output.count(len(found), 'problem')} found by {counts[Outcome.PROBLEMS]}")
    if counts[Outcome.NOTHING_TO_LOOK_AT]:
        summary.append(f"{counts[Outcome.NOTHING_TO_LOOK_AT]} had nothing to look at")
    if away:
        summary.append(f"{len(away)} not possible")
    print("; ".join(summary) + ".")


def catalogue(checks: Sequence[Check]) -> None:
    output.table(
        ("CHECK", "WORST", "LOOKS AT"), [(each.name, each.severity.value, each.looks_at) for each in checks]
    )


def _coloured(severity: str) -> str:
    padded = f"{severity:<{_WIDTH}}"
    return f"\033[{_COLOURS[severity]}m{padded}\033[0m" if sys.stdout.isatty() else padded
