"""What `/clients` shows: every connection of this broker with what its client has done, and what clients have pushed (KIP-714).

The connections count for themselves, in plain integers; here they are only read. The text is made in small pieces, so that the
caller can give the event loop its turns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from headrace.server.api.engines import Engines
from headrace.server.cluster.ids import format_id
from headrace.server.net.acceptors import Acceptors
from headrace.server.net.connection import Connection
from headrace.server.telemetry.clients import TelemetryClient
from headrace.wire.otlp import Distribution, Series

Json = dict[str, object]


def document(engines: Engines, acceptors: Acceptors, wanted: str | None) -> Iterator[str]:
    """One JSON object. The metrics themselves are there for the client id, or client instance id, that is wanted."""
    image = engines.cluster.image
    head = {"cluster_id": image.cluster_id, "broker": engines.broker_id}
    yield json.dumps(head)[:-1]
    now, now_ms = engines.clock.monotonic(), engines.clock.now_ms()
    yield ', "clients": '
    yield from _array(_connection(each, now, now_ms) for each in tuple(acceptors.connections))
    yield ', "telemetry": '
    yield from _array(
        _telemetry(each, wanted is not None and wanted in (format_id(each.id), each.identity.client_id))
        for each in engines.telemetry.clients()
    )
    yield "}\n"


def _array(rows: Iterator[Json]) -> Iterator[str]:
    lead = "["
    for row in rows:
        yield lead + json.dumps(row)
        lead = ",\n"
    yield "[]" if lead == "[" else "]"


def _connection(each: Connection, now: float, now_ms: int) -> Json:
    return {
        "client_id": each.client_id,
        "principal": each.principal,
        "address": each.peer_host,
        "port": each.peer_port,
        "listener": each.listener_name,
        "software_name": each.software_name,
        "software_version": each.software_version,
        "since_ms": round(now_ms - (now - each.since) * 1000),
        "idle_seconds": round(now - each.last_active, 3),
        "requests": each.requests,
        "bytes_in": each.bytes_received,
        "bytes_out": each.replies.bytes_sent,
    }


def _telemetry(client: TelemetryClient, whole: bool) -> Json:
    identity, push = client.identity, client.push
    shown: Json = {
        "client_instance_id": format_id(client.id),
        "client_id": identity.client_id,
        "software_name": identity.software_name,
        "software_version": identity.software_version,
        "address": identity.address,
        "port": identity.port,
        "metrics": client.asked.metrics,
        "interval_ms": client.asked.interval_ms,
        "terminated": client.terminated,
        "pushes": client.pushes,
        "pushed_ms": None if push is None else push.at_ms,
        "series": 0 if push is None else len(push.series),
        "left_out": 0 if push is None else push.left_out,
    }
    if whole:
        shown["values"] = [] if push is None else [_series(each) for each in push.series]
    return shown


def _series(series: Series) -> Json:
    value = series.value
    shown: Json = {"name": series.name, "labels": dict(series.labels), "unit": series.unit}
    if isinstance(value, Distribution):
        total = value.sum if math.isfinite(value.sum) else None
        shown |= {
            "count": value.count,
            "sum": total,
            "bounds": [each for each in value.bounds if math.isfinite(each)],
            "counts": value.counts,
        }
    else:
        shown["value"] = value if math.isfinite(value) else None
    return shown | {"monotonic": series.monotonic, "temporality": series.temporality.name.lower()}
