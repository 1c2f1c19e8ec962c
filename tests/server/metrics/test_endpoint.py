"""The metrics listener as a scraper and a probe meet it."""

import http.client
import socket

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics

from headrace.server.metrics.endpoint import MOST_CONNECTIONS
from headrace.server.metrics.text import OPEN_METRICS, TEXT, labels, negotiated
from headrace.testing.broker import BrokerThread
from tests.server.metrics.scraping import METRICS, Samples, get
from tests.waiting import until

PROMETHEUS = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with BrokerThread(tmp_path_factory.mktemp("broker"), METRICS) as running:
        yield running


def test_a_broker_serves_no_metrics_unless_it_is_asked_to(make_broker):
    assert make_broker().node.metrics_address is None


def test_a_page_comes_in_the_format_that_the_scraper_prefers(broker):
    assert get(broker, "/metrics")[:2] == (200, TEXT)
    status, kind, text = get(broker, "/metrics", Accept=PROMETHEUS)
    assert (status, kind) == (200, OPEN_METRICS)
    assert text.endswith("# EOF\n")
    assert "# TYPE process_cpu_seconds counter\n" in text


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/plain", TEXT),
        ("application/openmetrics-text", OPEN_METRICS),
        ("application/openmetrics-text;q=0.1, text/plain;q=0.9", TEXT),
        ("application/openmetrics-text;q=nonsense", TEXT),
        (PROMETHEUS, OPEN_METRICS),
    ],
)
def test_the_accept_header_decides(accept, expected):
    assert negotiated(accept) == expected


def test_every_family_is_there_once_and_no_sample_twice(broker):
    broker.create_topic("one", 3)
    found = Samples(broker, "/metrics?partitions=all")
    assert len(found.keys) == len(set(found.keys))
    names = [family.name for family in found.families]
    assert len(names) == len(set(names))


def test_openmetrics_has_no_other_samples_than_text(broker):
    _, _, text = get(broker, "/metrics", Accept=PROMETHEUS)
    # Kafka's own names end in suffixes that the strict parser keeps for other types: leave those lines to Prometheus.
    taken = ("kafka_consumergroup_", "connection_count", "activecontrollercount")
    kept = [line for line in text.splitlines(keepends=True) if not any(each in line for each in taken)]
    names = {sample.name for family in open_metrics("".join(kept)) for sample in family.samples}
    assert "kafka_network_requestmetrics_requests_total" in names
    assert names <= Samples(broker).names


def test_labels_are_escaped():
    assert labels(a='say "hi"\n', b="back\\slash") == '{a="say \\"hi\\"\\n",b="back\\\\slash"}'


def test_probes_and_a_wrong_path(broker):
    assert get(broker, "/livez")[::2] == (200, "ok\n")
    assert get(broker, "/readyz")[::2] == (200, "ok\n")
    assert get(broker, "/nowhere")[0] == 404
    assert get(broker, "/metrics?partitions=some")[0] == 400


def test_a_connection_is_kept_for_the_next_scrape(broker):
    connection = http.client.HTTPConnection(*broker.node.metrics_address, timeout=60)
    for _ in range(3):
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        assert (answer.status, answer.will_close) == (200, False)
        assert b"kafka_server_kafkaserver_brokerstate 3" in answer.read()
    connection.request("HEAD", "/livez")
    assert connection.getresponse().read() == b""
    connection.close()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x00\xa5\r\n\r\n", b"400"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"405"),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 40_000 + b"\r\n\r\n", b"431"),
    ],
)
def test_what_is_no_scrape_gets_an_answer_and_the_broker_goes_on(broker, sent, status):
    with socket.create_connection(broker.node.metrics_address, timeout=60) as connection:
        connection.sendall(sent)
        assert connection.recv(1000).split(b" ")[1] == status
    assert get(broker, "/livez")[0] == 200


def test_http_1_0_gets_the_page_without_chunks(broker):
    with socket.create_connection(broker.node.metrics_address, timeout=60) as connection:
        connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        text = b""
        while piece := connection.recv(65536):
            text += piece
    head, _, body = text.partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert body.startswith(b"# HELP ")


def test_more_connections_than_there_may_be_are_closed_and_do_not_shut_others_out(broker):
    held = [
        socket.create_connection(broker.node.metrics_address, timeout=60) for _ in range(MOST_CONNECTIONS)
    ]
    with socket.create_connection(broker.node.metrics_address, timeout=60) as one_more:
        try:
            assert one_more.recv(1) == b""
        except ConnectionResetError:
            pass
    held[0].sendall(b"GET /livez HTTP/1.1\r\n\r\n")
    assert held[0].recv(100).startswith(b"HTTP/1.1 200")
    for each in held:
        each.close()


def test_tools_find_the_port_in_the_brokers_settings(broker):
    host, port = broker.node.metrics_address
    from confluent_kafka.admin import AdminClient, ConfigResource

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker.node.broker_id))
    found = admin.describe_configs([resource])[resource].result(60)
    assert found["headrace.metrics.listener"].value == f"{host}:{port}"
    assert port


def test_a_broker_that_hands_over_is_alive_and_not_ready(make_broker):
    broker = make_broker(METRICS)
    broker.node._metrics.stop_serving()
    assert get(broker, "/livez")[0] == 200
    assert get(broker, "/readyz")[::2] == (503, "The broker is stopping.\n")
    assert Samples(broker).one("kafka_server_kafkaserver_brokerstate") == 6


def test_a_broker_whose_disks_have_all_failed_is_not_ready(make_broker):
    broker = make_broker(METRICS)
    topic = broker.create_topic("lost")

    async def fail(node):
        for directory in list(node.logs.online_directories):
            node.logs.directory_failed(directory, OSError(5, "a fault that a test put here"))

    broker.run(fail)
    assert get(broker, "/readyz")[::2] == (503, "Every data directory has failed.\n")
    found = Samples(broker)
    assert found.one("kafka_log_logmanager_offlinelogdirectorycount") == 1
    assert found.one("kafka_server_replicamanager_offlinereplicacount") == 1
    assert topic


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"GET //[ HTTP/1.1\r\n\r\n", [b"400"]),
        (b"GET http://broker/livez HTTP/1.1\r\n\r\n", [b"200"]),
        # Nothing behind a body is taken for a request, and a HEAD has no body whatever its answer.
        (
            b"GET /livez HTTP/1.1\r\nContent-Length: 24\r\nContent-Length: 0\r\n\r\nGET /readyz HTTP/1.1\r\n\r\n",
            [b"200"],
        ),
        (
            b"HEAD /metrics?partitions=x HTTP/1.1\r\n\r\nHEAD /livez HTTP/1.0\r\n\r\n",
            [b"400", b"200"],
        ),
    ],
)
def test_each_request_has_one_answer_and_no_answer_is_taken_for_another(broker, sent, expected):
    with socket.create_connection(broker.node.metrics_address, timeout=60) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        text = b""
        while piece := connection.recv(65536):
            text += piece
    answers = text.split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == expected
    if sent.startswith(b"HEAD"):
        assert all(answer.endswith(b"\r\n\r\n") for answer in answers)


def test_a_client_that_reads_nothing_is_cut_off_and_leaves_no_socket_behind(make_broker):
    broker = make_broker({**METRICS, "socket.send.buffer.bytes": "4096"})
    for number in range(5):
        broker.create_topic(f"{'x' * 150}-{number}", 50)

    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(broker.node.metrics_address)
        slow.sendall(b"GET /metrics?partitions=all HTTP/1.1\r\n\r\n")
        slow.recv(1)
        (writer,) = broker.node._metrics._connections
        until(lambda: writer.transport.get_write_buffer_size() > 65536)

        def gone():
            broker.clock.advance(11)
            return not broker.node._metrics._connections

        until(gone)
        assert writer.transport.get_write_buffer_size() == 0, "what was not read is thrown away"
    assert get(broker, "/livez")[0] == 200
