"""Topics and records for Spark to read, and time for a busy machine."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic


def pytest_collection_modifyitems(items):
    """A test that is interrupted inside a call to the JVM leaves the session useless to the others, so on a busy
    machine, where a session alone may take a minute to start, those that use one get more time.
    """
    for item in items:
        if "spark" in item.fixturenames and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(400))


@pytest.fixture
def admin(bootstrap):
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def make_topic(admin, request):
    """New topics on the module's broker: `make_topic(3)` or `make_topic(1, {"cleanup.policy": "compact"})`."""
    made = []

    def make(partitions=1, config=None, name=None):
        name = name or f"{request.node.name.split('[')[0][5:45]}-{len(made)}"
        admin.create_topics([NewTopic(name, partitions, config=config or {})])[name].result(30)
        made.append(name)
        return name

    return make


@pytest.fixture
def produce(bootstrap):
    """Write records and wait until they are there: `produce(topic, [b"a", b"b"], partition=0)`."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})

    def write(topic, values, partition=0, key=None, headers=None, timestamp=0):
        for number, value in enumerate(values):
            producer.produce(
                topic,
                value,
                key(number) if callable(key) else key,
                partition,
                headers=headers,
                timestamp=timestamp(number) if callable(timestamp) else timestamp,
            )
        assert producer.flush(30) == 0

    return write


@pytest.fixture
def reading(spark, bootstrap):
    """A batch reader of the module's broker: `reading(subscribe=topic).load()`."""

    def make(**options):
        reader = spark.read.format("headrace").option("kafka.bootstrap.servers", bootstrap)
        return reader.options(**options)

    return make
