"""Sessions with an end: the client hears how long it has, goes on when it logs in again, and is cut off when it does not."""

import json
import time

import pytest
from confluent_kafka import Producer

from headrace.link.blocking import Connection
from headrace.testing.clock import MovableClock
from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode, KafkaError
from headrace.wire.messages.metadata import MetadataRequest, MetadataResponse
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from headrace.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.server.security.conftest import PASSWORD
from tests.server.security.test_before_the_login import is_served, log_in
from tests.server.security.test_clients_log_in import address, rdkafka, settings
from tests.waiting import until

HOUR = 3600


@pytest.fixture
def clock():
    return MovableClock()


@pytest.fixture
def broker(make_secured, clock):
    broker = make_secured(
        {"connections.max.reauth.ms": HOUR * 1000, "connections.max.idle.ms": 24 * HOUR * 1000}, clock=clock
    )
    broker.add_user("alice")
    return broker


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_client_that_logs_in_again_goes_on(broker, clock, mechanism):
    with WireClient(broker.secured) as client:
        assert log_in(client, mechanism).session_lifetime_ms == HOUR * 1000
        for _ in range(3):
            clock.advance(HOUR - 10)
            assert is_served(client)
            assert log_in(client, mechanism).session_lifetime_ms == HOUR * 1000
            assert is_served(client)


def test_a_client_that_does_not_is_cut_off_at_its_next_request(broker, clock):
    with WireClient(broker.secured) as client:
        log_in(client)
        clock.advance(HOUR - 1)
        assert is_served(client)
        clock.advance(2)
        client.send(MetadataRequest([]), 9)
        assert client.is_closed_by_broker()


def test_a_client_may_still_log_in_again_when_its_session_is_over(broker, clock):
    with WireClient(broker.secured) as client:
        log_in(client, "SCRAM-SHA-256")
        clock.advance(HOUR + 1)
        assert log_in(client, "SCRAM-SHA-256").error_code == 0
        assert is_served(client)


def test_a_client_must_stay_who_it_was(broker, clock):
    with WireClient(broker.secured) as client:
        log_in(client)
        clock.advance(HOUR / 2)
        refused = log_in(client, user="my-app.1", password="other")
        assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert refused.error_message == (
            "Cannot change principals during re-authentication from User:alice to User:my-app.1"
        )
        assert client.is_closed_by_broker()


def test_a_client_must_keep_its_mechanism(broker, clock):
    with WireClient(broker.secured) as client:
        log_in(client)
        clock.advance(HOUR / 2)
        refused = log_in(client, "SCRAM-SHA-256")
        assert "is not supported for re-authentication of mechanism 'PLAIN'" in refused.error_message
        assert client.is_closed_by_broker()


def test_a_wrong_password_the_second_time_ends_the_connection(broker, clock):
    with WireClient(broker.secured) as client:
        log_in(client, "SCRAM-SHA-256")
        clock.advance(HOUR / 2)
        refused = log_in(client, "SCRAM-SHA-256", password="wrong")
        assert refused.error_message == (
            "Authentication failed during re-authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
        )
        assert client.is_closed_by_broker()


def test_a_client_may_not_log_in_again_every_moment(broker, clock):
    with WireClient(broker.secured) as client:
        log_in(client)
        log_in(client)
        assert client.call(SaslHandshakeRequest("PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
        clock.advance(1.1)
        log_in(client)
        assert is_served(client)


@pytest.mark.parametrize("listener", ["secured", "bootstrap"])
def test_where_sessions_have_no_end_nobody_logs_in_again(secured, listener):
    with WireClient(getattr(secured, listener)) as client:
        if listener == "secured":
            log_in(client)
        assert client.call(SaslHandshakeRequest("PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
        refused = client.call(SaslAuthenticateRequest(b"\0alice\0" + PASSWORD.encode()), 2)
        assert refused.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert is_served(client)


def test_a_listener_and_a_mechanism_have_sessions_of_their_own_length(make_secured):
    broker = make_secured(
        {
            "connections.max.reauth.ms": 1000,
            "listener.name.sasl_plaintext.connections.max.reauth.ms": 2000,
            "listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms": 3000,
        }
    )
    broker.add_user("alice")
    with WireClient(broker.secured) as client:
        assert log_in(client).session_lifetime_ms == 2000
    with WireClient(broker.secured) as client:
        assert log_in(client, "SCRAM-SHA-256").session_lifetime_ms == 3000


def test_a_client_that_went_away_leaves_no_timer_behind(broker, clock):
    with WireClient(broker.secured) as client:
        log_in(client)
        (login,) = broker.run(logins_of)
        assert login._timer is not None
    until(lambda: login._timer is None)


async def logins_of(node):
    return [each.login for each in node.acceptors.connections if each.login is not None]


@pytest.fixture
def short_sessions(make_secured):
    """Sessions of a second of real time, because the client has no other clock."""
    broker = make_secured({"connections.max.reauth.ms": 1000})
    broker.add_user("alice")
    return broker


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_our_blocking_connection_renews_its_session(short_sessions, mechanism):
    with Connection(*address(short_sessions), settings(short_sessions, mechanism)) as connection:
        before = _peers(short_sessions)
        for _ in range(3):
            time.sleep(1.1)  # The session is over: without a new login the broker closes the connection.
            assert connection.call(MetadataRequest([])).brokers
        assert _peers(short_sessions) == before


def test_it_does_not_log_in_while_replies_are_awaited(short_sessions):
    with Connection(*address(short_sessions), settings(short_sessions, "PLAIN")) as connection:
        first = connection.send(MetadataRequest([]), 9)
        time.sleep(0.9)  # A new login is due, and its replies would come after the one that is on its way.
        second = connection.send(MetadataRequest([]), 9)
        for number in (first, second):
            assert connection.receive(MetadataResponse, 9, number).brokers


def test_librdkafka_renews_its_session(make_secured):
    # It logs in again after 85 % of a session or more, and may do so once a second.
    broker = make_secured({"connections.max.reauth.ms": 2000})
    broker.add_user("alice")
    given = {**rdkafka(broker, "SCRAM-SHA-512"), "statistics.interval.ms": 100}
    seen = []
    producer = Producer({**given, "stats_cb": lambda text: seen.append(json.loads(text)["brokers"])})
    begin = time.monotonic()
    while time.monotonic() - begin < 4.5:  # into the third session
        producer.produce("renewed", b"x")
        assert producer.flush(10) == 0
        time.sleep(0.1)
    (leader,) = [each for each in seen[-1].values() if each["nodeid"] == 1]
    assert (leader["connects"], leader["disconnects"]) == (1, 0)


def test_a_password_that_changed_meanwhile_is_told(short_sessions):
    with Connection(*address(short_sessions), settings(short_sessions, "SCRAM-SHA-512")) as connection:
        short_sessions.add_user("alice", "another")
        time.sleep(1.1)
        with pytest.raises(KafkaError, match="refused the login of 'alice'"):
            connection.call(MetadataRequest([]))
        assert not connection.open


def _peers(broker):
    async def ports(node):
        return {each.transport.get_extra_info("peername") for each in node.acceptors.connections}

    return broker.run(ports)
