"""Fixtures every test may use: a real broker in this process, and topics with names of their own."""

import itertools
import os
import uuid

import pytest
from hypothesis import HealthCheck, settings

from headrace.testing.broker import BrokerThread

# A busy machine is no reason to fail. In CI the examples are the same every time; elsewhere new ones are tried.
settings.register_profile(
    "headrace",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("headrace")

_numbers = itertools.count()


@pytest.fixture
def make_broker(tmp_path):
    """Brokers on demand: `make_broker({"num.partitions": "3"})`; stopped when the test ends."""
    started = []

    def make(settings=None, data=None, **kwargs):
        broker = BrokerThread(data or tmp_path / f"data-{len(started)}", settings, **kwargs)
        started.append(broker)
        return broker.start()

    yield make
    for broker in started:
        broker.stop()


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """One broker for all tests of a module that do not restart or break it."""
    running = BrokerThread(tmp_path_factory.mktemp("broker")).start()
    yield running
    running.stop()


@pytest.fixture
def bootstrap(broker):
    return broker.bootstrap


@pytest.fixture
def topic(bootstrap):
    """A new topic with one partition."""
    from confluent_kafka.admin import AdminClient, NewTopic

    name = f"topic-{next(_numbers)}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1)])[name].result(30)
    return name


@pytest.fixture
def make_partition(tmp_path):
    """A replica with a real log that no broker runs: `make_partition("topic", 0, replicas=(1, 2))`, led by broker 1."""
    from concurrent.futures import ThreadPoolExecutor

    from headrace.cluster.image import Partition as PartitionState
    from headrace.config.broker import BrokerConfig
    from headrace.log.config import LogConfig
    from headrace.log.flusher import GroupFlusher
    from headrace.log.manager import LogManager
    from headrace.replica.partition import Partition

    logs = LogManager([str(tmp_path / "partitions")])
    logs.open()
    disk = ThreadPoolExecutor(2)

    def make(topic, index=0, replicas=(1,), now=0.0, **settings):
        config = BrokerConfig.load({}).topic_config({k.replace("_", "."): v for k, v in settings.items()})
        log_config = LogConfig.of(config)
        topic_id = uuid.uuid5(uuid.NAMESPACE_URL, topic)
        log = logs.create(topic, index, log_config, topic_id)
        partition = Partition(topic, topic_id, index, log, config, log_config, GroupFlusher(disk))
        partition.take_role(PartitionState(replicas, replicas, leader=1), 1, now)
        return partition

    yield make
    disk.shutdown()
    logs.close()
