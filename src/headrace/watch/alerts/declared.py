"""What an alerts.toml declares: rules, receivers, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from headrace.watch.alerts.conditions import ClusterAway, Condition

Shape = Literal["generic", "slack", "alertmanager"]
SEVERITIES = ("info", "warning", "critical")
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LogReceiver:
    name: str
    format: str = "text"
    repeat: float | None = None


@dataclass(frozen=True, slots=True)
class WebhookReceiver:
    name: str
    url: str = field(repr=False)
    shape: Shape = "generic"
    secret: str | None = field(default=None, repr=False)
    headers: Labels = field(default=(), repr=False)
    timeout: float = 10.0
    retry_for: float = 3600.0
    repeat: float | None = None


@dataclass(frozen=True, slots=True)
class CommandReceiver:
    name: str
    command: tuple[str, ...] = field(repr=False)
    timeout: float = 30.0
    retry_for: float = 600.0
    repeat: float | None = None


@dataclass(frozen=True, slots=True)
class TopicReceiver:
    name: str
    topic: str
    timeout: float = 10.0
    retry_for: float = 3600.0
    repeat: float | None = None


Receiver = LogReceiver | WebhookReceiver | CommandReceiver | TopicReceiver


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    condition: Condition
    wait: float
    """How long the condition must hold: `for`."""
    severity: str
    labels: Labels
    runbook: str | None
    receivers: tuple[str, ...]
    repeat: float

    @property
    def kind(self) -> str:
        return self.condition.kind


@dataclass(frozen=True, slots=True)
class Declaration:
    rules: tuple[Rule, ...]
    receivers: Mapping[str, Receiver]
    interval: float = 15.0
    """Seconds between looks."""
    window: float = 60.0
    """Of lag states."""
    failover: float = 10.0
    """Seconds without a sign of life after which another instance takes over."""
    cluster: str | None = None
    """What people call this cluster; its id where it has no name."""

    @property
    def away(self) -> Rule:
        return next(rule for rule in self.rules if isinstance(rule.condition, ClusterAway))

    def rule(self, name: str) -> Rule | None:
        return next((rule for rule in self.rules if rule.name == name), None)

    def repeats(self, rule: Rule | None) -> dict[str, float]:
        """After how many seconds each receiver is told again."""
        general = rule.repeat if rule is not None else DEFAULT_REPEAT
        return {name: receiver.repeat or general for name, receiver in self.receivers.items()}


DEFAULT_REPEAT = 4 * 3600.0
EXPIRING_REPEAT = 60.0
"""Alertmanager takes an alert for resolved that it has not heard of for some time."""
