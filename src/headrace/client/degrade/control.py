"""What people order and what running groups report, in the compacted topic `__headrace_degrade` and nowhere else.

A command stays until the next one for the same rule, or until its time is up. A report belongs to one running instance, which
renews it; one that is not renewed is out of date.
"""

from __future__ import annotations

import getpass
import json
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace.client.admin import Admin
from headrace.client.control_documents import Document
from headrace.client.control_topic import ControlTopic
from headrace.client.degrade.states import Order
from headrace.client.producer import Producer

TOPIC = "__headrace_degrade"
RENEWED_EVERY = 5.0
_FRESH_FOR = 3 * RENEWED_EVERY
# Reports are renewed all the time; in small segments, compaction gets at what is out of date, and the topic is read quickly.
_SETTINGS = {
    "segment.bytes": str(2 * 1024 * 1024),
    "segment.ms": "600000",
    "min.cleanable.dirty.ratio": "0.1",
}


@dataclass(frozen=True, slots=True)
class Command:
    group: str
    rule: str
    order: Order
    by: str
    at: float
    until: float | None = None
    """When it is over, as if nothing had been ordered."""
    why: str | None = None

    def at_time(self, now: float) -> Order:
        return Order.AUTO if self.until is not None and now >= self.until else self.order


@dataclass(frozen=True, slots=True)
class RuleReport:
    name: str
    does: str
    """The kind of rule, such as SampleByKey."""
    handler: str | None
    when: str
    state: str
    since: float
    why: str | None = None
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    group: str
    instance: str
    kind: str
    """runner or pipeline."""
    at: float
    rules: tuple[RuleReport, ...] = ()

    def is_fresh(self, now: float) -> bool:
        return now - self.at < _FRESH_FOR


@dataclass(slots=True)
class Board:
    """The newest of everything in the topic."""

    commands: dict[tuple[str, str], Command] = field(default_factory=dict)
    reports: dict[tuple[str, str], Report] = field(default_factory=dict)

    def take(self, key: str, document: Document | None) -> None:
        """What is not understood is of another version, and left alone."""
        try:
            kind, group, name = json.loads(key)
        except ValueError:
            return
        if kind == "command":
            self.commands.pop((group, name), None)
            if document is not None and (command := _command(document)) is not None:
                self.commands[group, name] = command
        elif kind == "report":
            self.reports.pop((group, name), None)
            if document is not None and (report := _report(document)) is not None:
                self.reports[group, name] = report

    def of(self, group: str, now: float) -> list[Report]:
        """Of the instances that run now."""
        return [each for each in self.reports.values() if each.group == group and each.is_fresh(now)]


class Control:
    def __init__(self, config: Mapping[str, object]) -> None:
        self.topic = ControlTopic(TOPIC, config, _SETTINGS)

    def ensure(self, admin: Admin) -> None:
        self.topic.ensure(admin)

    def read(self, admin: Admin) -> Board:
        board = Board()
        for key, document in self.topic.read(admin).items():
            board.take(key, document)
        return board

    def order(self, producer: Producer[Any, Any], command: Command) -> None:
        self.topic.put(producer, _key("command", command.group, command.rule), asdict(command))

    def report(self, producer: Producer[Any, Any], report: Report) -> None:
        self.topic.put(producer, _key("report", report.group, report.instance), asdict(report))

    def forget(self, producer: Producer[Any, Any], group: str, instance: str) -> None:
        """The instance has ended."""
        self.topic.put(producer, _key("report", group, instance), None)


def me() -> str:
    """Who gives a command: user and machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"


def _key(kind: str, group: str, name: str) -> str:
    return json.dumps([kind, group, name])


def _command(document: Document) -> Command | None:
    try:
        return Command(**{**document, "order": Order(document["order"])})
    except (TypeError, ValueError, KeyError):
        return None


def _report(document: Document) -> Report | None:
    try:
        rules = tuple(RuleReport(**each) for each in document["rules"])
        return Report(**{**document, "rules": rules})
    except (TypeError, KeyError):
        return None
