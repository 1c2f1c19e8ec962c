"""A runner's own metrics port for Prometheus: what `Metrics` counts, and where the runner's rules stand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from headrace.client.errors import require
from headrace.client.metrics_port import MetricsPort
from headrace.client.runner.degrading import Degraded
from headrace.client.runner.hooks import Metrics

if TYPE_CHECKING:
    from headrace.client.degrade.switchboard import Place


class Degradable(Protocol):
    """What is asked for each scrape."""

    def degraded(self) -> list[Degraded]: ...

    def rules(self) -> dict[str, Place]: ...


class RuleCollector:
    """Reads the plain counters of a runner when it is scraped; register it in a registry of your own."""

    def __init__(self, runner: Degradable) -> None:
        self._runner = runner
        self._core = require("prometheus_client.core", "metrics", "metrics=")

    def collect(self) -> Iterable[Any]:
        dropped = self._core.CounterMetricFamily(
            "headrace_degraded_records",
            "Records dropped by a rule and written down for a replay",
            labels=["rule", "handler", "topic", "partition"],
        )
        for each in self._runner.degraded():
            dropped.add_metric([each.rule, each.handler or "", each.topic, str(each.partition)], each.records)
        acts = self._core.GaugeMetricFamily(
            "headrace_degrade_rule_engaged", "1 while the rule acts", labels=["rule", "state"]
        )
        times = self._core.CounterMetricFamily(
            "headrace_degrade_rule_engagements", "How often the rule has begun to act", labels=["rule"]
        )
        for name, place in self._runner.rules().items():
            acts.add_metric([name, place.state.value], float(place.state.acts))
            times.add_metric([name], place.engagements)
        return [dropped, acts, times]


class Endpoint:
    def __init__(self, address: str, runner: Degradable) -> None:
        self._port = MetricsPort(address)
        self._port.registry.register(RuleCollector(runner))
        self.hook = Metrics(self._port.registry)

    @property
    def port(self) -> int | None:
        return self._port.port

    def open(self) -> None:
        self._port.open()

    def close(self) -> None:
        self._port.close()
