"""A runner's own metrics port for Prometheus: what `Metrics` counts, and where the runner's rules stand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from headrace.client.errors import ConfigError, require
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
        prometheus = require("prometheus_client", "metrics", "metrics=")
        host, colon, port = address.rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65535:
            raise ConfigError(f"metrics={address!r}: write HOST:PORT, as in metrics='127.0.0.1:9465'")
        self._host, self._port = host.strip("[]") or "0.0.0.0", int(port)  # as ":9465" says
        self._start = prometheus.start_http_server
        self._registry = prometheus.CollectorRegistry()
        self._registry.register(RuleCollector(runner))
        self.hook = Metrics(self._registry)
        self.port: int | None = None
        """The port actually bound."""
        self._server: Any = None

    def open(self) -> None:
        try:
            self._server, _ = self._start(self._port, self._host, self._registry)
        except OSError as error:
            raise ConfigError(
                f"metrics cannot be served at {self._host}:{self._port}: {error.strerror or error}; choose another port"
            ) from None
        self.port = self._server.server_port

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
