"""What a client may say before it has logged in, and what becomes of one that says something else."""

import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.server.net.login_gate import LOGIN_SECONDS
from headrace.testing.clock import MovableClock
from headrace.testing.wire import WireClient, frame
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.produce import ProduceRequest
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from headrace.wire.messages.sasl_handshake import SaslHandshakeRequest
from headrace.wire.sasl.logins import Login, client_exchange
from tests.server.security.conftest import PASSWORD
from tests.waiting import until

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
VERSIONS = ApiVersionsRequest("test", "1")


def log_in(client, mechanism="PLAIN", version=2, user="alice", password=PASSWORD):
    """The last reply."""
    assert client.call(SaslHandshakeRequest(mechanism), 1).error_code == 0
    steps = client_exchange(Login(mechanism, user, password))
    message = next(steps)
    while True:
        reply = client.call(SaslAuthenticateRequest(message), version)
        if reply.error_code:
            return reply
        try:
            message = steps.send(reply.auth_bytes)
        except StopIteration:
            return reply


def is_served(client):
    return bool(client.call(MetadataRequest([]), 9).brokers)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_client_logs_in_with_every_version(secured, mechanism, version):
    with WireClient(secured.secured) as client:
        assert client.call(VERSIONS, 3).error_code == 0
        assert log_in(client, mechanism, version).session_lifetime_ms == 0
        assert is_served(client)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_an_old_client_sends_bare_tokens_after_a_handshake_of_version_0(secured, mechanism):
    with WireClient(secured.secured) as client:
        assert client.call(SaslHandshakeRequest(mechanism), 0).mechanisms == MECHANISMS
        steps = client_exchange(Login(mechanism, "alice", PASSWORD))
        message = next(steps)
        while True:
            client.socket.sendall(len(message).to_bytes(4, "big") + message)
            size = int.from_bytes(exactly(client.socket, 4), "big")
            try:
                message = steps.send(exactly(client.socket, size))
            except StopIteration:
                break
        assert is_served(client)


def exactly(opened, size):
    data = b""
    while len(data) < size:
        piece = opened.recv(size - len(data))
        assert piece, "the broker closed the connection"
        data += piece
    return data


def test_a_bare_token_may_be_empty_and_nothing_else_may(secured, caplog):
    cut = "a request of 0 bytes"
    with WireClient(secured.secured) as client:
        client.call(SaslHandshakeRequest("PLAIN"), 0)
        client.socket.sendall(bytes(4))
        assert client.is_closed_by_broker()
        until(lambda: "its message cannot be used" in caplog.text)
        assert cut not in caplog.text
    for version in (None, 1):
        caplog.clear()
        with WireClient(secured.secured) as client:
            if version is not None:
                client.call(SaslHandshakeRequest("PLAIN"), version)
            client.socket.sendall(bytes(4))
            assert client.is_closed_by_broker()
            assert cut in caplog.text


def test_an_old_client_with_a_wrong_password_is_cut_off_without_a_word(secured):
    with WireClient(secured.secured) as client:
        client.call(SaslHandshakeRequest("PLAIN"), 0)
        message = b"\0alice\0wrong"
        client.socket.sendall(len(message).to_bytes(4, "big") + message)
        assert client.is_closed_by_broker()


@pytest.mark.parametrize(
    "said",
    [
        [(MetadataRequest([]), 9)],
        [(ProduceRequest(), 9)],
        [(SaslAuthenticateRequest(b"\0alice\0" + PASSWORD.encode()), 2)],
        [(VERSIONS, 3), (VERSIONS, 3)],
        [(VERSIONS, 3), (SaslAuthenticateRequest(b"\0alice\0" + PASSWORD.encode()), 2)],
        [(SaslHandshakeRequest("PLAIN"), 1), (MetadataRequest([]), 9)],
        [(SaslHandshakeRequest("PLAIN"), 1), (SaslHandshakeRequest("PLAIN"), 1)],
        [(SaslHandshakeRequest("PLAIN"), 1), (VERSIONS, 3)],
    ],
    ids=lambda said: "-".join(type(request).__name__ for request, _ in said),
)
def test_a_request_out_of_turn_ends_the_connection(secured, said):
    with WireClient(secured.secured) as client:
        for request, version in said[:-1]:
            client.call(request, version)
        client.send(*said[-1])
        assert client.is_closed_by_broker()


def test_requests_sent_ahead_of_the_login_are_served_after_it_and_in_order(secured):
    with WireClient(secured.secured) as client:
        requests = [
            (VERSIONS, 3),
            (SaslHandshakeRequest("PLAIN"), 1),
            (SaslAuthenticateRequest(b"\0alice\0" + PASSWORD.encode()), 2),
            (MetadataRequest([]), 9),
        ]
        numbers = [client.send(request, version) for request, version in requests]
        replies = [
            client.receive(request, version, number)
            for (request, version), number in zip(requests, numbers, strict=True)
        ]
        assert replies[-1].brokers


def test_requests_sent_behind_a_login_that_fails_are_not_served(secured):
    with WireClient(secured.secured) as client:
        client.call(SaslHandshakeRequest("PLAIN"), 1)
        request = SaslAuthenticateRequest(b"\0alice\0wrong")
        number = client.send(request, 2)
        client.send(MetadataRequest([]), 9)
        try:
            assert client.receive(request, 2, number).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        except ConnectionError:
            pass  # The end of the connection overtook the reply, since the client sent more than was read.
        assert client.is_closed_by_broker()


def test_a_client_newer_than_the_broker_is_told_the_versions_and_asks_again(secured):
    with WireClient(secured.secured) as client:
        number = client.send(VERSIONS, 3)
        client.receive(VERSIONS, 3, number)
    with WireClient(secured.secured) as client:
        newer = bytearray(frame(VERSIONS, 3))
        newer[6:8] = (99).to_bytes(2, "big")
        client.socket.sendall(newer)
        assert int.from_bytes(client.receive_frame()[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION
        assert client.call(VERSIONS, 3).error_code == 0
        log_in(client)
        assert is_served(client)


@pytest.mark.parametrize("size", [524_289, 2**31 - 1, 0, -1])
def test_a_frame_longer_than_a_login_needs_ends_the_connection(secured, size):
    with WireClient(secured.secured) as client:
        client.socket.sendall(size.to_bytes(4, "big", signed=True))
        assert client.is_closed_by_broker()


def test_larger_frames_are_taken_after_the_login(make_secured):
    broker = make_secured({"sasl.server.max.receive.size": 512})
    with WireClient(broker.secured) as client:
        log_in(client)
        names = [f"a-topic-that-is-not-there-{number}" for number in range(200)]
        wanted = MetadataRequest([MetadataRequestTopic(name=name) for name in names], False)
        assert len(client.call(wanted, 9).topics) == 200
    with WireClient(broker.secured) as client:
        client.socket.sendall((513).to_bytes(4, "big"))
        assert client.is_closed_by_broker()


def test_a_slow_client_is_cut_off_and_one_that_logged_in_is_not(make_secured, caplog):
    clock = MovableClock()
    broker = make_secured(clock=clock)
    with WireClient(broker.secured) as done, WireClient(broker.secured) as slow:
        log_in(done)
        slow.call(VERSIONS, 3)
        slow.socket.sendall(b"\0\0")
        clock.advance(LOGIN_SECONDS + 1)
        assert slow.is_closed_by_broker()
        assert is_served(done)
    assert "did not finish its login within 60 s" in caplog.text


def test_a_failed_login_is_answered_after_the_delay_and_not_before(make_secured):
    clock = MovableClock()
    broker = make_secured({"connection.failed.authentication.delay.ms": 5000}, clock=clock)
    with WireClient(broker.secured) as client:
        client.call(SaslHandshakeRequest("PLAIN"), 1)
        wrong = SaslAuthenticateRequest(b"\0alice\0wrong")
        number = client.send(wrong, 2)
        client.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            client.socket.recv(1)
        client.socket.settimeout(30)
        clock.advance(5.1)
        assert client.receive(wrong, 2, number).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert client.is_closed_by_broker()


def test_the_log_says_why_a_login_failed_but_not_the_password(secured, caplog):
    with WireClient(secured.secured) as client:
        log_in(client, "SCRAM-SHA-256", user="bob", password="secret-word")
    with WireClient(secured.secured) as client:
        log_in(client, "PLAIN", password="secret-word")
    until(lambda: caplog.text.count("Refused a login") >= 2)
    lines = [record.message for record in caplog.records if "Refused a login" in record.message]
    assert lines[-2:] == [
        "Refused a login of 'bob' from 127.0.0.1 on listener SASL_PLAINTEXT with SCRAM-SHA-256: there is no such user "
        "for SCRAM-SHA-256; add it with `headrace users add`, or correct the client's user.",
        "Refused a login of 'alice' from 127.0.0.1 on listener SASL_PLAINTEXT with PLAIN: the password is wrong; "
        "correct the password of the client.",
    ]
    assert "secret-word" not in caplog.text


REQUESTS = [
    frame(VERSIONS, 3),
    frame(SaslHandshakeRequest("PLAIN"), 1),
    frame(SaslHandshakeRequest("SCRAM-SHA-256"), 1),
    frame(SaslHandshakeRequest("PLAIN"), 0),
    frame(SaslHandshakeRequest("NONE"), 1),
    frame(SaslAuthenticateRequest(b"n,,n=alice,r=abc"), 1),
    frame(SaslAuthenticateRequest(b"\0alice\0wrong"), 2),
    frame(SaslAuthenticateRequest(b""), 0),
    frame(MetadataRequest(None), 9),
    frame(ProduceRequest(), 9),
]
JUNK = st.binary(max_size=200).map(lambda body: len(body).to_bytes(4, "big") + body)
DAMAGED = st.sampled_from(REQUESTS).flatmap(
    lambda whole: st.integers(4, len(whole) - 1).map(
        lambda at: whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]
    )
)
PIECES = st.lists(st.sampled_from(REQUESTS) | JUNK | DAMAGED | st.binary(max_size=50), max_size=8)


@given(pieces=PIECES)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_nothing_but_a_login_opens_the_door(secured, pieces):
    """Whatever is sent before a login, no topic is listed, and the broker goes on serving others."""
    topic = "only-for-those-who-logged-in"
    if topic not in known_topics(secured):
        secured.create_topic(topic)
    with WireClient(secured.secured) as client:
        data = b""
        try:
            client.socket.sendall(b"".join(pieces))
            client.socket.shutdown(socket.SHUT_WR)
            while piece := client.socket.recv(65536):
                data += piece
        except ConnectionError:
            pass
        assert topic.encode() not in data
    with WireClient(secured.secured) as client:
        assert log_in(client).error_code == 0


def known_topics(broker):
    with WireClient(broker.bootstrap) as client:
        return [topic.name for topic in client.call(MetadataRequest(None), 9).topics]
