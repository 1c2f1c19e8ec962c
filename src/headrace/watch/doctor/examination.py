"""Runs the checks one after the other within a limit of time, and says what came of each."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headrace.client.errors import ClientError
from headrace.watch.doctor.findings import Check, Finding, Needs, Severity
from headrace.watch.doctor.scene import Scene

_LAST_WORDS = 5.0
"""Seconds for closing connections."""


class Outcome(StrEnum):
    FINE = "fine"
    PROBLEMS = "problems"
    NOTHING_TO_LOOK_AT = "nothing to look at"
    NOT_POSSIBLE = "not possible"
    """The cluster did not let us look, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class Result:
    check: Check
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    """Why it was not looked at."""
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "check": self.check.name,
            "looked_at": self.check.looks_at,
            "outcome": self.outcome.value,
            "reason": self.reason or None,
            "seconds": round(self.seconds, 3),
            "findings": [
                {
                    "severity": each.severity.value,
                    "sentence": each.sentence,
                    "remedy": each.remedy,
                    "subjects": list(each.subjects),
                }
                for each in self.findings
            ],
        }


def worst(results: Sequence[Result]) -> Severity | None:
    found = [each.severity for result in results for each in result.findings]
    return max(found, key=lambda severity: severity.rank, default=None)


def examine(
    scene: Scene,
    checks: Sequence[Check],
    timeout: float,
    on_start: Callable[[Check], object] = lambda _: None,
) -> Iterator[Result]:
    """Each check's result as it comes; what is not done after `timeout` seconds is not waited for.

    The checks work in a thread of their own, which closes the scene's watch at its end. It may be left behind: a request that gets no
    answer cannot be taken back.
    """
    deadline = time.monotonic() + timeout
    order = sorted(checks, key=lambda check: check.watches)
    done: queue.SimpleQueue[Result | Check | BaseException] = queue.SimpleQueue()
    worker = threading.Thread(target=_work, args=(scene, order, done), name="doctor", daemon=True)
    worker.start()
    left = list(order)
    while left:
        try:
            news = done.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            reason = f"no answer within {timeout:g} s"
            yield from (Result(check, Outcome.NOT_POSSIBLE, reason=reason) for check in left)
            return
        if isinstance(news, BaseException):
            raise news
        if isinstance(news, Check):
            on_start(news)
        else:
            left.remove(news.check)
            yield news
    worker.join(_LAST_WORDS)


def _work(
    scene: Scene, checks: Sequence[Check], done: queue.SimpleQueue[Result | Check | BaseException]
) -> None:
    try:
        if scene.watch is not None and any(check.watches for check in checks):
            scene.watch.begin(scene.live)
        for check in checks:
            done.put(check)
            done.put(_look(scene, check))
    except (
        BaseException
    ) as defect:  # for the thread that waits: a defect of ours must not look like a broker that is silent
        done.put(defect)
    finally:
        if scene.watch is not None:
            scene.watch.close()


def _look(scene: Scene, check: Check) -> Result:
    missing = _missing(scene, check.needs)
    if missing:
        return Result(check, Outcome.NOTHING_TO_LOOK_AT, reason=missing)
    began = time.monotonic()
    try:
        findings = tuple(check.find(scene))
    except ClientError as error:
        return Result(check, Outcome.NOT_POSSIBLE, (), str(error), time.monotonic() - began)
    outcome = Outcome.PROBLEMS if findings else Outcome.FINE
    return Result(check, outcome, findings, "", time.monotonic() - began)


def _missing(scene: Scene, needs: Needs) -> str:
    if needs == Needs.CLUSTER and scene.watch is None:
        return "no broker answers at the address it advertises"
    if needs == Needs.SETTINGS and scene.watch is None and scene.file is None:
        return "no settings: no broker answers at the address it advertises, and no file was named"
    if needs == Needs.BROKERS and not (scene.contacts.brokers or scene.contacts.trouble):
        return "no cluster was named"
    return ""
