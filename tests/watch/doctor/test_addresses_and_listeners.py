"""What brokers advertise and listen on, with brokers that advertise and listen wrongly."""

import socket

import pytest

from headrace.testing.zookeeper import free_port
from tests.watch.doctor.looking import findings


@pytest.fixture
def listening():
    """A port that something listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_broker_that_answers_where_it_says_is_fine(make_broker):
    broker = make_broker()
    assert findings("advertised-address", broker.bootstrap) == []
    assert findings("advertised-loopback", broker.bootstrap) == []


def test_an_advertised_address_that_does_not_answer_is_an_error(make_broker):
    closed = free_port()
    broker = make_broker({"advertised.listeners": f"PLAINTEXT://127.0.0.1:{closed}"})
    [(severity, sentence, subjects)] = findings("advertised-address", broker.bootstrap)
    assert (severity, subjects) == ("error", ("1",))
    assert sentence.startswith(f"Broker 1 advertises 127.0.0.1:{closed}, which does not answer from here")


def test_a_host_that_cannot_be_resolved_is_an_error(make_broker):
    broker = make_broker({"advertised.listeners": "PLAINTEXT://nowhere.invalid:9092"})
    [(severity, sentence, _)] = findings("advertised-address", broker.bootstrap)
    assert severity == "error"
    assert "nowhere.invalid:9092" in sentence


def test_no_broker_at_all_is_an_error():
    closed = free_port()
    [(severity, sentence, _)] = findings("advertised-address", f"127.0.0.1:{closed}")
    assert severity == "error"
    assert sentence.startswith(f"No broker answers: the broker at 127.0.0.1:{closed} cannot be reached")


def test_a_loopback_address_advertised_to_clients_from_elsewhere_is_an_error(make_broker):
    port = free_port()
    broker = make_broker(
        {
            "listeners": f"PLAINTEXT://0.0.0.0:{port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        }
    )
    [(severity, sentence, _)] = findings("advertised-loopback", broker.bootstrap)
    assert severity == "warning"
    assert "open to other machines, but advertises PLAINTEXT://127.0.0.1" in sentence
    # An address that is not loopback's, as a client on another machine would use.
    [(severity, sentence, subjects)] = findings("advertised-loopback", f"0.0.0.0:{port}")
    assert (severity, subjects) == ("error", ("1",))
    assert sentence.startswith(f"Broker 1 advertises 127.0.0.1:{port}, which means the client's own machine")


def test_a_listener_for_everyone_without_a_login_is_a_warning(make_broker):
    port = free_port()
    assert findings("open-listeners", make_broker().bootstrap) == []
    broker = make_broker(
        {
            "listeners": f"PLAINTEXT://0.0.0.0:{port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        }
    )
    [(severity, sentence, subjects)] = findings("open-listeners", broker.bootstrap)
    assert (severity, subjects) == ("warning", (f"PLAINTEXT://0.0.0.0:{port}",))
    assert sentence.startswith("Everyone who can reach broker 1 may read and write without a login")


def test_a_login_that_crosses_the_network_in_the_clear_is_a_warning(make_broker):
    port, plain = free_port(), free_port()
    broker = make_broker(
        {
            "listeners": f"SASL_PLAINTEXT://0.0.0.0:{port},PLAINTEXT://127.0.0.1:{plain}",
            "advertised.listeners": f"SASL_PLAINTEXT://127.0.0.1:{port},PLAINTEXT://127.0.0.1:{plain}",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "inter.broker.listener.name": "PLAINTEXT",
        }
    )
    assert broker.port
    [(severity, sentence, _)] = findings("open-listeners", f"127.0.0.1:{plain}")
    assert severity == "warning"
    assert sentence.startswith("Logins and records cross the network unencrypted")


def test_zookeeper_that_does_not_answer_is_an_error_and_one_server_of_two_a_warning(listening):
    from headrace.watch.doctor.scene import SettingsFile

    def of(servers):
        return findings(
            "zookeeper", file=SettingsFile("server.properties", {"zookeeper.connect": servers}, {})
        )

    closed = free_port()
    assert of(f"127.0.0.1:{listening}/chroot") == []
    [(severity, sentence, _)] = of(f"127.0.0.1:{listening},127.0.0.1:{closed}/chroot")
    assert (severity, "1 of 2 servers" in sentence) == ("warning", True)
    [(severity, sentence, subjects)] = of(f"127.0.0.1:{closed}")
    assert (severity, subjects) == ("error", (f"127.0.0.1:{closed}",))
