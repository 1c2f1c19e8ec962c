"""One broker with an authorizer of the tests' own; every test starts with everything allowed."""

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.testing.broker import BrokerThread
from tests.server.api.authorization.rules import Rules


@pytest.fixture(scope="module")
def rules():
    return Rules()


@pytest.fixture(scope="module")
def broker(tmp_path_factory, rules):
    running = BrokerThread(tmp_path_factory.mktemp("broker"), authorizer=rules).start()
    # A group that has committed, so that its coordinator exists.
    client = Consumer({"bootstrap.servers": running.bootstrap, "group.id": "g", "log_level": 0})
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    admin.create_topics([NewTopic("committed", 1)])["committed"].result(30)
    client.commit(offsets=[TopicPartition("committed", 0, 0)], asynchronous=False)
    client.close()
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def start_with_everything_allowed(rules):
    rules.denied.clear()
    rules.asked.clear()
