"""A broker with a SASL_PLAINTEXT listener beside its plain one, and users of every kind."""

import pytest

from headrace.testing.broker import BrokerThread
from headrace.testing.wire import WireClient
from headrace.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from headrace.wire.sasl.scram import salted_password

SCRAM_NUMBERS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
PASSWORD = "p,=äss"
PLAIN_JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_alice="{PASSWORD}" user_my-app.1="other";'
)
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_JAAS,
    "connection.failed.authentication.delay.ms": "1",
}


class SecuredBroker(BrokerThread):
    """`bootstrap` is the plain listener's, `secured` the one that asks for a login."""

    @property
    def secured(self):
        return f"127.0.0.1:{self.node.addresses['SASL_PLAINTEXT'][1]}"

    def add_user(self, user, password=PASSWORD, mechanisms=tuple(SCRAM_NUMBERS), iterations=4096):
        salt = b"a salt of this user " + user.encode()
        upsertions = [
            ScramCredentialUpsertion(
                user,
                SCRAM_NUMBERS[mechanism],
                iterations,
                salt,
                salted_password(mechanism, password, salt, iterations),
            )
            for mechanism in mechanisms
        ]
        with WireClient(self.bootstrap) as client:
            reply = client.call(AlterUserScramCredentialsRequest(upsertions=upsertions), 0)
        assert [result.error_code for result in reply.results] == [0]


@pytest.fixture
def make_secured(tmp_path):
    started = []

    def make(settings=None, **kwargs):
        data = tmp_path / f"data-{len(started)}"
        broker = SecuredBroker(data, {**SETTINGS, **(settings or {})}, **kwargs)
        broker.start()
        started.append(broker)
        return broker

    yield make
    for broker in started:
        broker.stop()


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """One broker for all tests of a module; alice may log in with any mechanism."""
    with SecuredBroker(tmp_path_factory.mktemp("secured"), SETTINGS) as broker:
        broker.add_user("alice")
        yield broker
