"""Clocks that differ, by real brokers whose clocks a test has moved."""

from functools import partial

import pytest

from headrace.testing.broker import BrokerThread
from headrace.testing.clock import MovableClock
from headrace.testing.cluster import Cluster
from headrace.testing.wire import WireClient, batch
from headrace.watch.doctor.clocks import Reading, judge
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.watch.doctor.looking import findings, scene_of

ONE_PARTITION = {"offsets.topic.num.partitions": "2", "group.initial.rebalance.delay.ms": "0"}


@pytest.fixture
def make(make_broker):
    def run(seconds, settings=ONE_PARTITION):
        clock = MovableClock()
        clock._ahead = float(seconds)  # a test may not move it back while it runs
        return make_broker(settings, clock=clock)

    return run


def stamped(broker):
    """A topic with a record that the broker has stamped."""
    topic = broker.create_topic(config={"message.timestamp.type": "LogAppendTime"})
    with WireClient(broker.bootstrap) as client:
        data = TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch(b"x"))])
        reply = client.call(ProduceRequest(None, -1, 10_000, [data]), 9)
    assert reply.responses[0].partition_responses[0].error_code == 0
    return topic


def commit(broker, topic):
    """Makes __consumer_offsets."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "someone"})
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    consumer.close()


def test_a_clock_that_is_fast_shows_in_what_a_broker_has_stamped(make):
    broker = make(90)
    stamped(broker)
    severity, sentence, subjects = findings("clock-skew", broker.bootstrap)[0]
    assert (severity, subjects) == ("warning", ("1",))
    assert "ahead of this machine's" in sentence


def test_a_probe_shows_a_clock_that_is_slow_and_leaves_no_group_behind(make):
    from headrace.client.administration import groups

    broker = make(-300)
    topic = stamped(broker)
    commit(broker, topic)
    (without, sentence, subjects) = findings("clock-skew", broker.bootstrap)[0]
    assert (without, subjects) == ("note", ("1",))
    assert "slow is not known" in sentence
    [(severity, sentence, subjects)] = findings("clock-skew", broker.bootstrap, may_probe=True)
    assert (severity, subjects) == ("warning", ("1",))
    assert "behind this machine's" in sentence
    scene = scene_of(broker.bootstrap)
    assert [each.group for each in groups.listings(scene.session)] == ["someone"]
    scene.watching.close()


def test_clocks_that_agree_are_fine(make):
    broker = make(0)
    commit(broker, stamped(broker))
    assert findings("clock-skew", broker.bootstrap, may_probe=True) == []


def test_brokers_that_disagree_are_found(tmp_path):
    clocks = [MovableClock(), MovableClock()]
    clocks[1]._ahead = 600.0
    given = iter(clocks)
    make = lambda data, settings: BrokerThread(data, settings, clock=next(given))  # noqa: E731
    settings = {"offsets.topic.num.partitions": "8", "offsets.topic.replication.factor": "1"}
    with Cluster(partial(make), tmp_path, 2, settings) as cluster:
        commit(cluster[1], cluster.create_topic(replication_factor=1))
        found = findings("clock-skew", cluster.bootstrap, may_probe=True)
    errors = [(sentence, subjects) for severity, sentence, subjects in found if severity == "error"]
    assert [subjects for _, subjects in errors] == [("2", "1")]
    assert "ahead of broker 1's" in errors[0][0]


def test_a_reading_says_only_what_it_can():
    old = {1: Reading(-500.0, None)}
    assert list(judge(old, 2.0)) == [], "an old record says nothing of a slow clock"
    assert [each.subjects for each in judge({1: Reading(-500.0, -499.0)}, 2.0)] == [("1",)]
    both = {1: Reading(0.0, 0.5), 2: Reading(-1.0, None)}
    assert list(judge(both, 2.0)) == []
