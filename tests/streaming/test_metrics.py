"""What flows and connectors report is what Prometheus reads."""

import urllib.request

import pytest

from headrace.client.errors import ConfigError
from headrace.client.metrics_port import MetricsPort
from headrace.streaming.metrics import StatusCollector


def test_numbers_are_counters_or_gauges_by_the_names_of_status_and_the_state_is_a_label():
    port = MetricsPort("127.0.0.1:0")
    flows = [
        ("large", {"state": "running", "rows_in": 7, "lag_rows": 3, "lag_seconds": None, "batch": 9}),
        ("small", {"state": "switched off", "rows_in": 2, "lag_rows": 500, "error": "no"}),
    ]
    port.registry.register(StatusCollector("flow", lambda: flows))
    port.open()
    try:
        page = urllib.request.urlopen(f"http://127.0.0.1:{port.port}/metrics").read().decode()
    finally:
        port.close()
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    assert sorted(lines) == [
        'headrace_flow_lag_rows{flow="large"} 3.0',
        'headrace_flow_lag_rows{flow="small"} 500.0',
        'headrace_flow_rows_in_total{flow="large"} 7.0',
        'headrace_flow_rows_in_total{flow="small"} 2.0',
        'headrace_flow_state{flow="large",state="running"} 1.0',
        'headrace_flow_state{flow="small",state="switched off"} 1.0',
    ]


def test_a_port_that_is_taken_is_named_in_a_sentence():
    first = MetricsPort("127.0.0.1:0")
    first.open()
    try:
        with pytest.raises(ConfigError, match="choose another port"):
            MetricsPort(f"127.0.0.1:{first.port}").open()
    finally:
        first.close()
    with pytest.raises(ConfigError, match="write HOST:PORT"):
        MetricsPort("9465")
