"""A broker in the test's process: killed and started again, and with time that a test moves."""

import time
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headrace.client import Admin
from headrace.testing.wire import WireClient
from headrace.wire.messages.describe_groups import DescribeGroupsRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.sync_group import SyncGroupRequest
from tests.waiting import until

WEEK = timedelta(days=7)


def produce(bootstrap, topic, *values):
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    errors = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(60) == 0
    assert errors == [None] * len(values)


def offsets(bootstrap, topic):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "offsets"})
    found = consumer.get_watermark_offsets(TopicPartition(topic, 0), 30)
    consumer.close()
    return found


def test_a_killed_broker_comes_back_with_what_it_acknowledged(headrace_broker, headrace_topic):
    topic = headrace_topic()
    produce(headrace_broker.bootstrap, topic, b"a", b"b")
    port = headrace_broker.port
    headrace_broker.kill()
    with pytest.raises(OSError):
        WireClient(headrace_broker.bootstrap, timeout=5)
    assert not list(headrace_broker.data.glob("**/.kafka_cleanshutdown")), "nothing was put in order"
    headrace_broker.start()
    assert headrace_broker.port == port
    assert offsets(headrace_broker.bootstrap, topic) == (0, 2)


def test_a_stopped_broker_comes_back_too_and_stopping_twice_is_no_mistake(headrace_broker, headrace_topic):
    topic = headrace_topic()
    produce(headrace_broker.bootstrap, topic, b"a")
    headrace_broker.stop()
    headrace_broker.stop()
    headrace_broker.start()
    assert offsets(headrace_broker.bootstrap, topic) == (0, 1)


def test_a_running_broker_is_not_started_again(headrace_broker):
    with pytest.raises(RuntimeError, match="running already"):
        headrace_broker.start()


def rebalance_delay(broker):
    with Admin(broker.bootstrap) as admin:
        return admin.broker_config(broker.node.broker_id)["group.initial.rebalance.delay.ms"]


def test_a_new_group_does_not_wait_for_more_members(headrace_broker):
    assert rebalance_delay(headrace_broker) == "0"


@pytest.mark.headrace(settings={"group.initial.rebalance.delay.ms": 3000})
def test_a_new_group_waits_when_the_marker_says_so(headrace_broker):
    assert rebalance_delay(headrace_broker) == "3000"


@pytest.mark.headrace(brokers=1)
def test_a_new_group_of_a_cluster_does_not_wait_either(headrace_cluster):
    assert rebalance_delay(headrace_cluster[1]) == "0"


def test_seven_days_of_retention_take_no_time(headrace_broker, headrace_topic):
    topic = headrace_topic(config={"retention.ms": int(WEEK.total_seconds() * 1000)})
    produce(headrace_broker.bootstrap, topic, b"old")
    headrace_broker.clock.advance(WEEK + timedelta(minutes=10))
    until(lambda: offsets(headrace_broker.bootstrap, topic) == (1, 1))
    produce(headrace_broker.bootstrap, topic, b"new")
    assert offsets(headrace_broker.bootstrap, topic) == (1, 2)


def coordinator(client, group):
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    until(lambda: client.call(request, 4).coordinators[0].error_code == 0)


def state(client, group):
    return client.call(DescribeGroupsRequest([group]), 5).groups[0].group_state


def test_a_session_timeout_takes_no_time(headrace_broker):
    with WireClient(headrace_broker.bootstrap) as client:
        coordinator(client, "group")
        join = JoinGroupRequest(
            "group", 45_000, 60_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")]
        )
        while (joined := client.call(join, 3)).error_code:  # the coordinator may still be loading
            time.sleep(0.01)
        client.call(SyncGroupRequest("group", joined.generation_id, joined.member_id), 3)
        assert state(client, "group") != "Empty"
        headrace_broker.clock.advance(120)
        until(lambda: state(client, "group") == "Empty")


def test_a_transaction_timeout_takes_no_time(headrace_broker, headrace_topic):
    topic = headrace_topic()
    producer = Producer(
        {
            "bootstrap.servers": headrace_broker.bootstrap,
            "transactional.id": topic,
            "transaction.timeout.ms": 60_000,
        }
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(60)
    assert offsets(headrace_broker.bootstrap, topic) == (0, 0), "the last stable offset stays before it"
    headrace_broker.clock.advance(75)
    until(lambda: offsets(headrace_broker.bootstrap, topic) == (0, 2))


def test_a_cluster_goes_on_without_a_killed_leader_and_takes_it_back(headrace_cluster, headrace_topic):
    topic = headrace_topic(config={"min.insync.replicas": 2})
    produce(headrace_cluster.bootstrap, topic, b"a")
    leader = headrace_cluster[1].node.cluster.image.partition(topic, 0).leader
    headrace_cluster[leader].kill()
    others = ",".join(broker.bootstrap for broker in headrace_cluster if broker.node.broker_id != leader)
    produce(others, topic, b"b")
    headrace_cluster[leader].start()
    until(lambda: len(headrace_cluster[leader].node.cluster.image.partition(topic, 0).isr) == 3)
    assert offsets(headrace_cluster.bootstrap, topic) == (0, 2)


@pytest.mark.headrace(brokers=2)
def test_a_cluster_keeps_its_members_when_its_clock_is_moved_by_a_week(headrace_cluster, headrace_topic):
    topic = headrace_topic()
    produce(headrace_cluster.bootstrap, topic, b"a")
    headrace_cluster[1].clock.advance(WEEK)
    image = headrace_cluster[1].node.cluster.image
    assert image.alive(1)
    assert image.alive(2)
    produce(headrace_cluster.bootstrap, topic, b"b")
    until(lambda: set(headrace_cluster[1].node.cluster.image.partition(topic, 0).isr) == {1, 2})
