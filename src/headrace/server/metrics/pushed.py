"""What clients have pushed (KIP-714), for Prometheus: on request only, because there are as many series as clients have.

Names keep their words: org.apache.kafka.producer.record.queue.time.avg is org_apache_kafka_producer_record_queue_time_avg. Names
that are not Kafka's begin with `client_`, so that no client can pose as the broker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headrace.server.cluster.ids import format_id
from headrace.server.metrics.text import COUNTER, GAUGE, HISTOGRAM, Family, labels
from headrace.server.telemetry.clients import Telemetry, TelemetryClient
from headrace.wire.otlp import Distribution, Series, Temporality

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]+")
_KAFKAS = "org_apache_kafka_"
_RESERVED = ("le", "quantile")
"""Labels of the format itself."""


@dataclass(slots=True)
class _Pushed:
    """The samples of one name; clients that push another kind under it are left out."""

    kind: str
    original: str
    samples: dict[str, float | Distribution] = field(default_factory=dict)
    """By their labels."""


@dataclass(slots=True)
class PushedSurvey:
    """What one look at the clients finds; the look is taken a little at a time."""

    families: dict[str, _Pushed] = field(default_factory=dict)


class PushedFamilies:
    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    def look(self, survey: PushedSurvey) -> Iterator[str]:
        for client in self._telemetry.clients():
            if client.push is None or client.terminated:
                continue
            for series in client.push.series:
                yield ""
                _take(survey, client, series)

    def families(self, survey: PushedSurvey) -> Iterator[Family]:
        for name, pushed in sorted(survey.families.items()):
            lines = _distributions(name, pushed) if pushed.kind == HISTOGRAM else _values(name, pushed)
            yield Family(name, pushed.kind, f"Pushed by clients as {pushed.original}.", lines)


def _take(survey: PushedSurvey, client: TelemetryClient, series: Series) -> None:
    """A sum or histogram of what was new since the last push says nothing to Prometheus: only /clients shows it."""
    if series.temporality is Temporality.DELTA:
        return
    name = _NOT_IN_NAMES.sub("_", series.name)
    if not name.startswith(_KAFKAS):
        name = f"client_{name}"
    kind = GAUGE
    if isinstance(series.value, Distribution):
        kind = HISTOGRAM
    elif series.monotonic:
        kind, name = COUNTER, f"{name.removesuffix('_total')}_total"
    family = survey.families.setdefault(name, _Pushed(kind, series.name))
    if family.kind == kind:
        family.samples[labels(**_labels(client, series))] = series.value


def _labels(client: TelemetryClient, series: Series) -> Mapping[str, str]:
    found = {name: value for key, value in series.labels if (name := _label_name(key))}
    identity = client.identity
    return found | {
        "client_id": identity.client_id,
        "client_instance_id": format_id(client.id),
        "software": f"{identity.software_name}/{identity.software_version}",
    }


def _label_name(key: str) -> str:
    """One that a label may have, and that a sample does not have already: a single bad one would cost the whole page."""
    name = _NOT_IN_NAMES.sub("_", key).lstrip("_")
    return f"client_{name}" if name[:1].isdigit() or name in _RESERVED else name


def _values(name: str, pushed: _Pushed) -> Iterator[str]:
    for label, value in pushed.samples.items():
        yield f"{name}{label} {value}\n"


def _distributions(name: str, pushed: _Pushed) -> Iterator[str]:
    for label, value in pushed.samples.items():
        assert isinstance(value, Distribution)
        within, start = 0, f"{name}_bucket{label[:-1]},le="
        for bound, count in zip(value.bounds, value.counts, strict=False):
            within += count
            yield f'{start}"{bound}"}} {within}\n'
        yield f'{start}"+Inf"}} {value.count}\n{name}_sum{label} {value.sum}\n{name}_count{label} {value.count}\n'
