"""/clients, and what clients have pushed on /metrics: as a browser and Prometheus see them."""

import json
import re
import urllib.error
import urllib.request

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as pb
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from headrace.server.cluster.ids import format_id
from headrace.testing.wire import batch
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.server.telemetry.conftest import TelemetryWire, alter, counter, of

OPEN = "application/openmetrics-text; version=1.0.0"


@pytest.fixture
def broker(make_broker):
    return make_broker({"headrace.metrics.listener": "127.0.0.1:0"})


def page(broker, path, accept="text/plain"):
    host, port = broker.node.metrics_address
    request = urllib.request.Request(f"http://{host}:{port}{path}", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


def clients(broker, query=""):
    return json.loads(page(broker, f"/clients{query}"))


def samples(broker, query="?clients=all", parse=prometheus, accept="text/plain"):
    """(name, labels, value) of what clients have pushed."""
    return [
        (sample.name, sample.labels, sample.value)
        for family in parse(page(broker, f"/metrics{query}", accept))
        for sample in family.samples
        if "client_instance_id" in sample.labels
    ]


def test_every_connection_is_there_with_who_it_is_and_what_it_has_done(broker, client):
    own = client.socket.getsockname()
    (before,) = (each for each in clients(broker)["clients"] if each["port"] == own[1])
    assert (before["client_id"], before["principal"], before["address"]) == (
        "wire-test",
        "User:ANONYMOUS",
        "127.0.0.1",
    )
    assert (before["software_name"], before["software_version"]) == ("test-client", "1.2.3")
    assert (before["listener"], before["requests"]) == ("PLAINTEXT", 1)
    record = PartitionProduceData(0, batch(b"x" * 1000))
    client.call(ProduceRequest(None, 1, 1000, [TopicProduceData("t", partition_data=[record])]), 9)
    broker.clock.advance(5)
    (after,) = (each for each in clients(broker)["clients"] if each["port"] == own[1])
    assert after["requests"] == 2
    assert 1000 < after["bytes_in"] - before["bytes_in"] < 1300
    assert 0 < after["bytes_out"] - before["bytes_out"] < 300
    assert after["idle_seconds"] >= 5
    assert abs(after["since_ms"] - before["since_ms"]) < 1000, "a connection keeps its beginning"


def test_a_connection_that_ends_is_gone(broker, client):
    with TelemetryWire(broker.bootstrap) as other:
        port = other.socket.getsockname()[1]
        assert port in [each["port"] for each in clients(broker)["clients"]]
    other.socket.close()
    client.subscriptions()
    while port in [each["port"] for each in clients(broker)["clients"]]:
        pass


def test_telemetry_is_listed_and_its_values_are_told_for_the_client_that_is_asked_for(broker, client):
    alter(broker.bootstrap, "a", metrics="org.", interval_ms="5000")
    told = client.subscriptions()
    instance = format_id(told.client_instance_id)
    client.push(told, counter("org.sent", 7, node="1"))
    (listed,) = clients(broker)["telemetry"]
    assert listed["client_instance_id"] == instance
    assert (listed["metrics"], listed["interval_ms"], listed["pushes"], listed["series"]) == (
        ["org."],
        5000,
        1,
        1,
    )
    assert (listed["terminated"], listed["port"]) == (False, client.socket.getsockname()[1])
    assert "values" not in listed
    for wanted in (instance, "wire-test"):
        (whole,) = clients(broker, f"?id={wanted}")["telemetry"]
        assert whole["values"] == [
            {"name": "org.sent", "labels": {"node": "1"}, "unit": "", "value": 7, "monotonic": True, "temporality": "cumulative"}
        ]  # fmt: skip
    assert "values" not in clients(broker, "?id=other")["telemetry"][0]


def push_all(broker, client, *metrics):
    alter(broker.bootstrap, "a", metrics="*")
    told = client.subscriptions()
    assert client.push(told, of(*metrics)) == 0
    return format_id(told.client_instance_id)


def text(key, value):
    return KeyValue(key=key, value=AnyValue(string_value=value))


COUNTED = pb.Metric(
    name="org.apache.kafka.producer.connection.creation.total",
    sum=pb.Sum(data_points=[pb.NumberDataPoint(as_int=3)], aggregation_temporality=2, is_monotonic=True),
)
GAUGED = pb.Metric(
    name="org.apache.kafka.producer.queue.time-avg",
    gauge=pb.Gauge(data_points=[pb.NumberDataPoint(as_double=1.5, attributes=[text("node.id", 'a"b')])]),
)
MEASURED = pb.Metric(
    name="latency",
    histogram=pb.Histogram(
        data_points=[
            pb.HistogramDataPoint(count=6, sum=9.5, explicit_bounds=[1, 2], bucket_counts=[1, 2, 3])
        ],
        aggregation_temporality=2,
    ),
)
SINCE = pb.Metric(
    name="org.apache.kafka.producer.since.last",
    sum=pb.Sum(data_points=[pb.NumberDataPoint(as_int=3)], aggregation_temporality=1, is_monotonic=True),
)
POSING = pb.Metric(name="kafka_brokers", gauge=pb.Gauge(data_points=[pb.NumberDataPoint(as_int=99)]))


@pytest.mark.parametrize(("parse", "accept"), [(prometheus, "text/plain"), (open_metrics, OPEN)])
def test_prometheus_reads_what_clients_have_pushed_with_who_they_are(broker, client, parse, accept):
    instance = push_all(broker, client, COUNTED, GAUGED, MEASURED, SINCE, POSING)
    who = {"client_id": "wire-test", "client_instance_id": instance, "software": "test-client/1.2.3"}
    found = samples(broker, parse=parse, accept=accept)
    assert sorted((name, labels.get("le", ""), value) for name, labels, value in found) == [
        ("client_kafka_brokers", "", 99),
        ("client_latency_bucket", "+Inf", 6),
        ("client_latency_bucket", "1.0", 1),
        ("client_latency_bucket", "2.0", 3),
        ("client_latency_count", "", 6),
        ("client_latency_sum", "", 9.5),
        ("org_apache_kafka_producer_connection_creation_total", "", 3),
        ("org_apache_kafka_producer_queue_time_avg", "", 1.5),
    ]
    assert all(who.items() <= labels.items() for _, labels, _ in found)
    (gauge,) = (labels for name, labels, _ in found if name.endswith("queue_time_avg"))
    assert gauge["node_id"] == 'a"b'


def test_they_are_left_out_unless_asked_for_or_the_setting_says_so(broker, client):
    push_all(broker, client, COUNTED)
    assert samples(broker, "") == []
    assert len(samples(broker, "?clients=all")) == 1
    with pytest.raises(urllib.error.HTTPError) as refused:
        page(broker, "/metrics?clients=some")
    assert refused.value.code == 400


def test_the_setting_includes_them_in_every_page(make_broker):
    broker = make_broker({"headrace.metrics.listener": "127.0.0.1:0", "headrace.metrics.clients": "true"})
    with TelemetryWire(broker.bootstrap) as client:
        push_all(broker, client, COUNTED)
        assert len(samples(broker, "")) == 1


def test_a_client_that_has_ended_is_no_longer_on_the_page(broker, client):
    alter(broker.bootstrap, "a", metrics="*")
    told = client.subscriptions()
    client.push(told, of(COUNTED), terminating=True)
    assert samples(broker) == []
    assert clients(broker)["telemetry"][0]["terminated"] is True


def test_clients_that_push_different_kinds_under_one_name_do_not_break_the_page(broker, client):
    other_kind = pb.Metric(name="org.apache.kafka.x", histogram=MEASURED.histogram)
    gauge = pb.Metric(name="org.apache.kafka.x", gauge=POSING.gauge)
    push_all(broker, client, gauge, other_kind, gauge)
    assert [(name, value) for name, _, value in samples(broker)] == [("org_apache_kafka_x", 99)]


def test_numbers_that_json_does_not_have_are_null(broker, client):
    alter(broker.bootstrap, "a", metrics="*")
    told = client.subscriptions()
    client.push(
        told,
        of(pb.Metric(name="x", gauge=pb.Gauge(data_points=[pb.NumberDataPoint(as_double=float("nan"))]))),
    )
    assert clients(broker, "?id=wire-test")["telemetry"][0]["values"][0]["value"] is None


def test_no_label_of_a_client_costs_prometheus_the_page(broker, client):
    awkward = [
        text("-1st", "a"),
        text("le", "0.5"),
        text("\u00e92", "b"),
        text("quantile", "q"),
        text("__x", "c"),
    ]
    point = pb.HistogramDataPoint(
        count=1, sum=1, explicit_bounds=[1], bucket_counts=[1, 0], attributes=awkward
    )
    histogram = pb.Histogram(data_points=[point], aggregation_temporality=2)
    push_all(broker, client, pb.Metric(name="latency", histogram=histogram))
    lines = [
        line
        for line in page(broker, "/metrics?clients=all").splitlines()
        if line.startswith("client_latency")
    ]
    assert len(lines) == 4
    for line in lines:
        names = re.findall(r'[{,]([^=,{]*)="', line)
        assert len(names) == len(set(names)), "no label stands there twice"
        assert all(re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name) for name in names)
    found = samples(broker)
    assert {labels["le"] for name, labels, _ in found if name == "client_latency_bucket"} == {"1.0", "+Inf"}
    for _, labels, _ in found:
        assert labels["client_1st"] == "a"
        assert labels["client_2"] == "b"
        assert labels["client_le"] == "0.5"
        assert labels["client_quantile"] == "q"
        assert labels["x"] == "c"
