"""What librdkafka reports about connections becomes one sentence with the address, the cause and the remedy.

Nobody listens on the ports 1 and 2, which matters: the sentence says so where a broker does listen.
"""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from headrace.cli.cluster.connection import Cluster
from headrace.cli.cluster.probe import spoken_at
from headrace.cli.cluster.trouble import Names, Trouble
from headrace.cli.failure import Exit, Failure
from tests.certificates import Certificates

REFUSED = "127.0.0.1:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused (after 0ms in state CONNECT)"


def trouble(*reports: tuple[int, str], bootstrap: str = "127.0.0.1:1") -> str:
    heard = Trouble(bootstrap)
    for code, text in reports:
        heard.report(KafkaError(code, text))
    with pytest.raises(Failure) as caught:
        heard.check()
    assert caught.value.code == Exit.UNREACHABLE
    return caught.value.sentence


ALL_DOWN = (KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")


def test_a_refused_connection_says_where_and_how_to_start_a_broker() -> None:
    sentence = trouble((KafkaError._TRANSPORT, REFUSED), ALL_DOWN)
    assert "No broker answers at 127.0.0.1:1 (connection refused)" in sentence
    assert "headrace up --listen 127.0.0.1:1" in sentence


def test_a_broker_elsewhere_is_not_offered_to_be_started_here() -> None:
    report = REFUSED.replace("127.0.0.1", "192.0.2.1")
    sentence = trouble((KafkaError._TRANSPORT, report), ALL_DOWN, bootstrap="192.0.2.1:9092")
    assert "headrace up" not in sentence
    assert "check --bootstrap-server" in sentence


def test_an_advertised_address_that_nobody_answers_at_is_told_apart_from_the_bootstrap_address() -> None:
    report = (
        "inside:9092/1: Connect to ipv4#10.0.0.1:9092 failed: Connection refused (after 0ms in state CONNECT)"
    )
    sentence = trouble((KafkaError._TRANSPORT, report), ALL_DOWN)
    assert "broker 1 is at inside:9092" in sentence
    assert "--advertise" in sentence


def test_a_refused_login_ends_the_command_at_once() -> None:
    report = "sasl_plaintext://127.0.0.1:1/bootstrap: SASL authentication error: Invalid password (after 3ms in state AUTH_REQ)"
    sentence = trouble((KafkaError._AUTHENTICATION, report))
    assert "refused the login (SASL authentication error: Invalid password)" in sentence


def test_one_broker_of_several_that_is_down_is_no_trouble() -> None:
    heard = Trouble("127.0.0.1:1,127.0.0.1:2")
    heard.report(KafkaError(KafkaError._TRANSPORT, REFUSED))
    heard.check()


def test_every_address_a_name_stands_for_gets_its_chance() -> None:
    heard = Trouble("127.0.0.1:1,127.0.0.1:2")
    heard.report(KafkaError(KafkaError._TRANSPORT, REFUSED))
    heard.report(KafkaError(*ALL_DOWN))
    heard.check()
    heard.report(KafkaError(KafkaError._TRANSPORT, REFUSED.replace("9092", "9093")))
    with pytest.raises(Failure):
        heard.check()


def test_a_client_of_another_protocol_is_told_which_one_the_broker_speaks(make_broker) -> None:
    users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="x";'
    broker = make_broker(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": users,
        }
    )
    ports = {name: address[1] for name, address in broker.node.addresses.items()}

    def sentence(listener: str, protocol: str) -> str:
        heard = Trouble(f"127.0.0.1:{ports[listener]}", protocol=protocol)
        return heard.silence(10).sentence

    plain, login = (f"The broker at 127.0.0.1:{ports[name]} speaks {name}, and" for name in ports)
    assert sentence("PLAINTEXT", "SSL") == (
        f"{plain} the client SSL: set security.protocol=PLAINTEXT in --command-config."
    )
    assert sentence("SASL_PLAINTEXT", "PLAINTEXT") == (
        f"{login} the client PLAINTEXT: set security.protocol=SASL_PLAINTEXT and sasl.* to a login in --command-config."
    )
    assert sentence("SASL_PLAINTEXT", "SASL_SSL") == (
        f"{login} the client SASL_SSL: set security.protocol=SASL_PLAINTEXT in --command-config."
    )
    assert "it hangs, or it is no broker" in sentence("PLAINTEXT", "PLAINTEXT"), "that was not the reason"


def test_the_protocol_of_a_tls_listener_is_found_out(make_broker, tmp_path) -> None:
    broker = make_broker(Certificates(tmp_path / "certificates").listener())
    assert spoken_at(f"127.0.0.1:1,127.0.0.1:{broker.port}") == (f"127.0.0.1:{broker.port}", "SSL")


def test_a_listener_that_wants_a_certificate_says_so(make_broker, tmp_path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    broker = make_broker(certificates.listener(ssl_client_auth="required"))
    address = f"localhost:{broker.port}"
    assert spoken_at(address) == (address, "SSL")
    with pytest.raises(
        Failure, match=f"The broker at {address} wants a client certificate: set ssl.keystore.location"
    ):
        Cluster(address, {"security.protocol": "SSL", "ssl.ca.location": str(certificates.ca)}, Names())


def test_an_unreadable_file_is_named() -> None:
    with pytest.raises(
        Failure, match=r"ssl\.ca\.location=/no/such\.pem: the file cannot be read: No such file"
    ):
        Cluster("127.0.0.1:1", {"security.protocol": "SSL", "ssl.ca.location": "/no/such.pem"}, Names())
