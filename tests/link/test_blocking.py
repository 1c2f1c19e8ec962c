"""Connections of our own, plain and over TLS, and patience with brokers that are away."""

import socket
import ssl
import subprocess
import threading

import pytest

from headrace.link.blocking import Connection
from headrace.link.cluster import Cluster
from headrace.link.errors import BrokerUnavailable
from headrace.spark.settings import kafka_settings
from headrace.wire.errors import KafkaError


@pytest.fixture
def relay(broker, tmp_path):
    """TLS in front of the broker: (port, certificate) of a listener that hands every byte on."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    made = subprocess.run(
        [*command.split(), "-keyout", key, "-out", certificate], capture_output=True, check=False
    )
    assert made.returncode == 0, made.stderr
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))
    threads = []

    def pump(source, target):
        try:
            while piece := source.recv(65536):
                target.sendall(piece)
        except OSError:
            pass
        finally:
            target.close()

    def serve():
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            try:
                near = context.wrap_socket(plain, server_side=True)
            except OSError:
                continue
            far = socket.create_connection(("127.0.0.1", broker.port))
            for pair in ((near, far), (far, near)):
                threads.append(threading.Thread(target=pump, args=pair, daemon=True))
                threads[-1].start()

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1], certificate
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def settings(port, **given):
    options = {f"kafka.{name.replace('_', '.')}": str(value) for name, value in given.items()}
    return kafka_settings({"kafka.bootstrap.servers": f"127.0.0.1:{port}", **options})


def test_a_broker_is_spoken_to_over_tls_when_its_authority_is_known(relay):
    port, certificate = relay
    for trust in (
        {"ssl_truststore_location": certificate},
        {"ssl_truststore_certificates": certificate.read_text()},
    ):
        connection = Connection("127.0.0.1", port, settings(port, security_protocol="SSL", **trust))
        assert connection.offer.versions
        connection.close()


def test_a_broker_whose_authority_is_not_known_is_refused_with_the_remedy(relay):
    port, _ = relay
    with pytest.raises(KafkaError, match=r"is not trusted .* set kafka\.ssl\.truststore\.location"):
        Connection("127.0.0.1", port, settings(port, security_protocol="SSL"))


def test_a_file_that_is_no_certificate_is_named(relay, tmp_path):
    port, _ = relay
    with pytest.raises(KafkaError, match="TLS files cannot be used"):
        Connection(
            "127.0.0.1",
            port,
            settings(port, security_protocol="SSL", ssl_truststore_location=tmp_path / "none"),
        )


def test_a_server_that_speaks_something_else_is_told_from_a_broker():
    listener = socket.create_server(("127.0.0.1", 0))

    def answer():
        near, _ = listener.accept()
        near.recv(1000)
        near.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        near.close()

    thread = threading.Thread(target=answer)
    thread.start()
    port = listener.getsockname()[1]
    with pytest.raises(BrokerUnavailable, match="is no Kafka reply"):
        Connection("127.0.0.1", port, settings(port))
    thread.join()
    listener.close()


def test_work_goes_on_over_a_new_connection_when_the_broker_closed_the_old_one(bootstrap, topic):
    cluster = Cluster(settings(bootstrap.rpartition(":")[2]))
    assert list(cluster.topics([topic])) == [topic]
    cluster.any_broker()._socket.shutdown(socket.SHUT_RDWR)
    assert list(cluster.topics([topic])) == [topic]
    cluster.close()


def test_patience_ends_with_the_reason():
    cluster = Cluster(settings(1, default_api_timeout_ms=200))
    with pytest.raises(
        BrokerUnavailable, match=r"Could not list the cluster's topics within 0\.2 s .* cannot be reached"
    ):
        cluster.all_topics()
