"""Settings with which nobody could log in, or not as they promise, keep the broker from starting, and say what to write."""

import pytest

from headrace.server.identity import StartError
from headrace.testing.wire import WireClient
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.server.security.conftest import SETTINGS
from tests.server.security.test_before_the_login import log_in
from tests.waiting import until

JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"sasl.enabled.mechanisms": ""}, "offers no mechanism: set sasl.enabled.mechanisms"),
        (
            {"sasl.enabled.mechanisms": "PLAIN,DIGEST-MD5"},
            "offers DIGEST-MD5, which is not served here: set sasl.enabled.mechanisms to some of PLAIN",
        ),
        ({JAAS: ""}, "offers PLAIN but has no users"),
        (
            {
                JAAS: 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="hush";'
            },
            "offers PLAIN but has no users",
        ),
        (
            {JAAS: 'org.apache.kafka.common.security.scram.ScramLoginModule required user_alice="hush";'},
            "offers PLAIN but has no users",
        ),
        ({JAAS: 'PlainLoginModule required user_alice="hush'}, f"{JAAS} cannot be read"),
    ],
)
def test_a_broker_that_nobody_could_log_in_to_does_not_start(make_secured, settings, complaint, tmp_path):
    with pytest.raises(StartError, match=complaint) as caught:
        make_secured(settings)
    assert "hush" not in str(caught.value)
    assert not any(tmp_path.iterdir()), "it has not even opened its data"


def test_the_mechanisms_of_a_running_broker_can_be_changed_and_a_mistake_leaves_them(make_secured, caplog):
    broker = make_secured()
    broker.add_user("alice")
    alter(broker, "PLAIN")
    until(lambda: broker.run(mechanisms) == ["PLAIN"])
    alter(broker, "PLAIN,DIGEST-MD5")
    until(lambda: "The logins of listener SASL_PLAINTEXT stay as they were" in caplog.text)
    with WireClient(broker.secured) as client:
        assert log_in(client).error_code == 0
    alter(broker, SETTINGS["sasl.enabled.mechanisms"])
    until(lambda: "SCRAM-SHA-256" in broker.run(mechanisms))


def alter(broker, value):
    configs = [AlterableConfig("sasl.enabled.mechanisms", 0, value)]
    with WireClient(broker.bootstrap) as client:
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(4, "1", configs)])
        (response,) = client.call(request, 1).responses
    assert response.error_code == 0, response.error_message


async def mechanisms(node):
    return list(node.logins.gate("SASL_PLAINTEXT").offer.mechanisms)
