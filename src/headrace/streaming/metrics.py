"""What flows and connectors report, for Prometheus: the numbers of `status --json`, by their names there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from headrace.client.errors import require
from headrace.client.metrics_port import MetricsPort

_COUNTERS = frozenset({"rows", "rows_in", "rows_out", "dead_letters", "dropped", "kept", "restarts"})
_NO_NUMBERS = frozenset({"pid", "batch", "at", "began", "updated"})
"""Ids and moments."""

Statuses = Callable[[], Iterable[tuple[str, Mapping[str, Any]]]]


class StatusCollector:
    """``headrace_<kind>_<number>`` for each number that something reports, labelled with its name; and its state."""

    def __init__(self, kind: str, statuses: Statuses) -> None:
        self._kind = kind
        self._statuses = statuses
        self._core = require("prometheus_client.core", "metrics", "a metrics port")

    def collect(self) -> Iterable[Any]:
        families: dict[str, Any] = {}
        state = self._family("state", self._core.GaugeMetricFamily, [self._kind, "state"])
        for name, facts in self._statuses():
            state.add_metric([name, str(facts["state"])], 1.0)
            for field, value in facts.items():
                if isinstance(value, bool) or not isinstance(value, int | float) or field in _NO_NUMBERS:
                    continue
                kind = self._core.CounterMetricFamily if field in _COUNTERS else self._core.GaugeMetricFamily
                if field not in families:
                    families[field] = self._family(field, kind, [self._kind])
                families[field].add_metric([name], float(value))
        return [state, *families.values()]

    def _family(self, field: str, kind: Any, labels: list[str]) -> Any:
        return kind(f"headrace_{self._kind}_{field}", f"{field} as in `status --json`", labels=labels)


@contextmanager
def serving(address: str | None, kind: str, statuses: Statuses) -> Iterator[None]:
    """While the block runs; not at all without an address."""
    if address is None:
        yield
        return
    port = MetricsPort(address)
    port.registry.register(StatusCollector(kind, statuses))
    port.open()
    try:
        yield
    finally:
        port.close()
