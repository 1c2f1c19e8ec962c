"""Finding the highest rate that is sustained: the search by itself, and steps through a real broker."""

import math

import pytest
from confluent_kafka import Consumer, Producer

from headrace.client import Admin
from headrace.client.admin import session_of
from headrace.client.administration import topics
from headrace.client.load.capacity import scratch_topic, search
from headrace.client.load.open_loop import CONSUMER, PRODUCER, Bound, OpenLoop


@pytest.mark.parametrize("limit", [1.5, 80, 999, 1000, 1001, 12_345, 900_000])
def test_the_limit_is_found_between_the_two_rates(limit):
    low, high = search(lambda rate: rate <= limit, 1_000, 1_000_000, 0.1)
    assert low is not None
    assert high is not None
    assert low <= limit < high
    assert high - low <= 0.1 * low


def test_the_highest_rate_asked_for_is_enough():
    tried = []
    assert search(lambda rate: not tried.append(rate), 1_000, 3_000, 0.1) == (3_000, None)
    assert tried == [1_000, 2_000, 3_000]


def test_nothing_is_sustained_by_what_sustains_nothing():
    low, high = search(lambda rate: False, 1_000, 1_000_000, 0.1)
    assert (low, high) == (None, 1.0)


@pytest.fixture
def topic(broker):
    return broker.create_topic()


@pytest.fixture
def loop(broker, topic):
    """Through a topic of a real broker: `loop(handling=…)`."""
    made = []

    def make(**options):
        producer = Producer({**PRODUCER, "bootstrap.servers": broker.bootstrap, "acks": "all"})
        consumer = Consumer({**CONSUMER, "bootstrap.servers": broker.bootstrap})
        made.append(consumer)
        return OpenLoop(producer, consumer, [(topic, 0)], 100, **options)

    yield make
    for consumer in made:
        consumer.close()


def test_a_step_times_every_record_and_leaves_out_those_of_others(loop, broker, topic):
    other = Producer({"bootstrap.servers": broker.bootstrap})
    other.produce(topic, b"x" * 100)
    other.flush(30)
    step = loop().run(200, 0.5, Bound(0.99, 60.0, "p99"))
    assert (step.sent, step.arrived, step.failure) == (100, 100, "")
    assert 0 < step.latency.p50 <= step.at_bound <= step.latency.max
    assert step.shortfall(Bound(0.99, 60.0, "p99")) == ""


def test_waiting_counts_from_the_moment_a_record_was_due(loop):
    """Ten milliseconds for each of 200 records a second: the last one is due long before its turn comes."""
    step = loop(handling=0.01).run(200, 1.0, Bound(0.99, 60.0, "p99"))
    assert step.arrived == 200
    assert step.latency.max > 900, "it takes 2 s to handle what arrived within 1 s"
    assert step.shortfall(Bound(0.99, 0.05, "p99")).startswith("p99 was ")


def test_a_record_is_handed_on_when_it_arrives_and_does_not_wait_for_others(loop):
    """One record at a time: a consumer that waits for a full batch would add its time limit to each."""
    running = loop()
    asked = []
    consume = running._consumer.consume

    class Watched:
        def __getattr__(self, name):
            return getattr(inner, name)

        def consume(self, count, timeout):
            asked.append(timeout)
            return consume(count, timeout)

    inner, running._consumer = running._consumer, Watched()
    assert running.run(50, 0.2, Bound(0.99, 60.0, "p99")).arrived == 10
    assert set(asked) == {0}


def test_a_stall_of_the_broker_delays_every_record_that_was_due_in_it(loop, broker):
    running = loop()
    running.run(100, 0.2, Bound(0.99, 60.0, "p99"))
    broker.faults.delay("Produce", 1.0)
    try:
        step = running.run(100, 1.0, Bound(0.5, 60.0, "p50"))
    finally:
        broker.faults.heal()
    assert step.arrived == 100
    assert step.at_bound > 200, "half of the records were due while it stood still"


def test_records_that_are_refused_are_the_reason(loop, broker):
    running = loop()
    running.run(100, 0.2, Bound(0.99, 60.0, "p99"))
    broker.faults.error("Produce", "RECORD_LIST_TOO_LARGE", times=1000)
    try:
        step = running.run(100, 0.5, Bound(0.99, 60.0, "p99"))
    finally:
        broker.faults.heal()
    assert step.shortfall(Bound(0.99, 60.0, "p99")).startswith("a record was not written: ")


def test_a_scratch_topic_is_made_like_another_and_deleted_whatever_happens(broker):
    model = broker.create_topic(partitions=3, config={"compression.type": "lz4"})
    with Admin(broker.bootstrap) as admin:
        session = session_of(admin)

        def stop(name):
            assert admin.topic_config(name)["compression.type"] == "lz4"
            assert len(admin.topic(name).partitions) == 3
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), scratch_topic(session, like=model) as name:
            stop(name)
        assert name not in topics.names(session, internal=True)


def test_percentiles_are_those_of_all_records():
    from headrace.client.load.numbers import Latencies

    latencies = Latencies()
    assert latencies.percentile(0.99) == 0
    for number in range(100):
        latencies.add(number / 1000)
    assert math.isclose(latencies.percentile(0.99), 99, abs_tol=0.01)
    assert math.isclose(latencies.percentile(1.0), 99, abs_tol=0.01)
