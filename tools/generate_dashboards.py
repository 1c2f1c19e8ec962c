"""Writes deploy/grafana/*.json from the panels below: `.venv/bin/python tools/generate_dashboards.py`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "deploy/grafana"
JOB = 'job=~"$job"'


@dataclass(frozen=True)
class Panel:
    title: str
    queries: tuple[tuple[str, str], ...]
    """(expression, legend)"""
    unit: str = "short"
    kind: str = "timeseries"


def rate(name: str, by: str, more: str = "") -> str:
    return f"sum by ({by}) (rate({name}{{{JOB}{more}}}[$__rate_interval]))"


def gauge(name: str, by: str = "", how: str = "sum") -> str:
    return f"{how} by ({by}) ({name}{{{JOB}}})" if by else f"{how}({name}{{{JOB}}})"


def stat(title: str, query: str, unit: str = "short") -> Panel:
    return Panel(title, ((query, ""),), unit, "stat")


def phase(name: str) -> tuple[str, str]:
    full = f"kafka_network_requestmetrics_{name}"
    each = f"sum by (request) (rate({full}_sum{{{JOB}}}[$__rate_interval]))"
    count = f"sum by (request) (rate({full}_count{{{JOB}}}[$__rate_interval]))"
    return f"{each} / ({count} > 0)", "{{request}}"


TOPIC = ',topic!=""'
TOTAL = ',topic=""'
P99 = f"histogram_quantile(0.99, sum by (le, request) (rate(headrace_request_duration_seconds_bucket{{{JOB}}}[$__rate_interval])))"
BROKER_TOPICS = "kafka_server_brokertopicmetrics_"

BROKERS = (
    stat("Brokers up", f"sum(up{{{JOB}}})"),
    stat("Controllers", gauge("kafka_controller_kafkacontroller_activecontrollercount")),
    stat("Partitions without a leader", gauge("kafka_controller_kafkacontroller_offlinepartitionscount")),
    stat("Partitions under-replicated", gauge("kafka_server_replicamanager_underreplicatedpartitions")),
    stat("Partitions below min.insync.replicas", gauge("kafka_server_replicamanager_underminisrpartitioncount")),
    stat("Partitions not led by their preferred leader", gauge("kafka_controller_kafkacontroller_preferredreplicaimbalancecount")),
    Panel("Records in", ((rate(BROKER_TOPICS + "messagesin_total", "instance", TOTAL), "{{instance}}"),), "cps"),
    Panel("Bytes in", ((rate(BROKER_TOPICS + "bytesin_total", "instance", TOTAL), "{{instance}}"),), "Bps"),
    Panel("Bytes out to consumers", ((rate(BROKER_TOPICS + "bytesout_total", "instance", TOTAL), "{{instance}}"),), "Bps"),
    Panel("Bytes between replicas", (
        (rate(BROKER_TOPICS + "replicationbytesin_total", "instance", TOTAL), "{{instance}} in"),
        (rate(BROKER_TOPICS + "replicationbytesout_total", "instance", TOTAL), "{{instance}} out"),
    ), "Bps"),
    Panel("Requests", ((rate("kafka_network_requestmetrics_requests_total", "request"), "{{request}}"),), "reqps"),
    Panel("Request time, 99th percentile", ((P99, "{{request}}"),), "s"),
    Panel("Waiting for earlier requests, mean", (phase("requestqueuetimems"),), "ms"),
    Panel("Work on requests, mean", (phase("localtimems"),), "ms"),
    Panel("Waiting for replicas, records or members, mean", (phase("remotetimems"),), "ms"),
    Panel("Sending replies, mean", (phase("responsesendtimems"),), "ms"),
    Panel("Event loop idle", ((gauge("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", "instance", "min"), "{{instance}}"),), "percentunit"),
    Panel("CPU", ((f"rate(process_cpu_seconds_total{{{JOB}}}[$__rate_interval])", "{{instance}}"),), "percentunit"),
    Panel("Memory", ((gauge("process_resident_memory_bytes", "instance"), "{{instance}}"),), "bytes"),
    Panel("Open files", ((gauge("process_open_fds", "instance"), "{{instance}}"),)),
    Panel("Connections", ((gauge("kafka_server_socket_server_metrics_connection_count", "instance, listener"), "{{instance}} {{listener}}"),)),
    Panel("New connections", ((rate("kafka_server_socket_server_metrics_connection_creation_total", "instance"), "{{instance}}"),), "cps"),
    Panel("Leaders", ((gauge("kafka_server_replicamanager_leadercount", "instance"), "{{instance}}"),)),
    Panel("ISRs that shrink and grow", (
        (rate("kafka_server_replicamanager_isrshrinks_total", "instance"), "{{instance}} shrink"),
        (rate("kafka_server_replicamanager_isrexpands_total", "instance"), "{{instance}} grow"),
    ), "cps"),
    Panel("Free disk", ((gauge("headrace_disk_free_bytes", "instance, directory"), "{{instance}} {{directory}}"),), "bytes"),
    Panel("Throttling by quotas", ((rate("headrace_quota_throttle_seconds_total", "instance"), "{{instance}}"),), "s"),
)  # fmt: skip

TOPICS = (
    stat("Topics", gauge("kafka_controller_kafkacontroller_globaltopiccount")),
    stat("Partitions", gauge("kafka_controller_kafkacontroller_globalpartitioncount")),
    stat("Bytes on disk", gauge("kafka_log_log_size"), "bytes"),
    Panel("Records in", ((rate(BROKER_TOPICS + "messagesin_total", "topic", TOPIC), "{{topic}}"),), "cps"),
    Panel("Bytes in", ((rate(BROKER_TOPICS + "bytesin_total", "topic", TOPIC), "{{topic}}"),), "Bps"),
    Panel("Bytes out to consumers", ((rate(BROKER_TOPICS + "bytesout_total", "topic", TOPIC), "{{topic}}"),), "Bps"),
    Panel("Refused appends and fetches", (
        (rate(BROKER_TOPICS + "failedproducerequests_total", "instance", TOTAL), "{{instance}} produce"),
        (rate(BROKER_TOPICS + "failedfetchrequests_total", "instance", TOTAL), "{{instance}} fetch"),
    ), "cps"),
    Panel("Bytes on disk", ((gauge("kafka_log_log_size", "topic"), "{{topic}}"),), "bytes"),
    Panel("Records held", ((f"{gauge('kafka_topic_partition_current_offset', 'topic')} - {gauge('kafka_topic_partition_oldest_offset', 'topic')}", "{{topic}}"),)),
    Panel("Partitions", ((gauge("kafka_topic_partitions", "topic"), "{{topic}}"),)),
    Panel("Partitions with a replica out of sync", ((gauge("kafka_topic_partition_under_replicated_partition", "topic"), "{{topic}}"),)),
)  # fmt: skip

GROUPS = (
    stat("Groups", gauge("kafka_coordinator_group_groupmetadatamanager_numgroups")),
    stat("Groups rebalancing", gauge("kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance")),
    stat("Longest lag", gauge("kafka_consumergroup_lag_seconds", "", "max"), "s"),
    Panel("Lag in records", ((gauge("kafka_consumergroup_lag_sum", "consumergroup, topic"), "{{consumergroup}} {{topic}}"),)),
    Panel("Lag in seconds", ((gauge("kafka_consumergroup_lag_seconds", "consumergroup, topic", "max"), "{{consumergroup}} {{topic}}"),), "s"),
    Panel("Lag, change per second", ((f"sum by (consumergroup, topic) (deriv(kafka_consumergroup_lag_sum{{{JOB}}}[$__rate_interval]))", "{{consumergroup}} {{topic}}"),)),
    Panel("Records read", ((f"sum by (consumergroup, topic) (deriv(kafka_consumergroup_current_offset_sum{{{JOB}}}[$__rate_interval]))", "{{consumergroup}} {{topic}}"),), "cps"),
    Panel("Members", ((gauge("kafka_consumergroup_members", "consumergroup"), "{{consumergroup}}"),)),
    Panel("Records deleted unread", ((gauge("headrace_consumergroup_lost_records", "consumergroup, topic"), "{{consumergroup}} {{topic}}"),)),
    Panel("Offset commits", ((rate("kafka_network_requestmetrics_requests_total", "request", ',request="OffsetCommit"'), "{{request}}"),), "reqps"),
)  # fmt: skip

DASHBOARDS = {"brokers": BROKERS, "topics": TOPICS, "groups": GROUPS}


def dashboard(name: str, panels: tuple[Panel, ...]) -> dict[str, object]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    drawn, x, y = [], 0, 0
    for number, panel in enumerate(panels, 1):
        width, height = (4, 4) if panel.kind == "stat" else (12, 8)
        if x + width > 24 or (panel.kind != "stat" and panels[number - 2].kind == "stat" and x):
            x, y = 0, y + (4 if panels[number - 2].kind == "stat" else 8)
        drawn.append(
            {
                "id": number,
                "title": panel.title,
                "type": panel.kind,
                "datasource": source,
                "gridPos": {"x": x, "y": y, "w": width, "h": height},
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": None}, "overrides": []},
                "targets": [
                    {"refId": chr(65 + place), "datasource": source, "expr": query, "legendFormat": legend}
                    for place, (query, legend) in enumerate(panel.queries)
                ],
            }
        )
        x += width
    job = {
        "name": "job",
        "type": "query",
        "datasource": source,
        "query": "label_values(kafka_server_kafkaserver_brokerstate, job)",
        "includeAll": True,
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
    }
    return {
        "uid": f"headrace-{name}",
        "title": f"Headrace {name}",
        "tags": ["headrace", "kafka"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}, job],
        },
        "panels": drawn,
    }


def main() -> None:
    for name, panels in DASHBOARDS.items():
        text = json.dumps(dashboard(name, panels), indent=1, ensure_ascii=False)
        (FOLDER / f"headrace-{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
