"""Clients beyond their quotas are told how long to wait, get nothing more until then, and cost nothing when they leave."""

import pytest

from headrace.testing.wire import batch, frame
from headrace.wire.errors import ErrorCode
from headrace.wire.frames import reply_number
from headrace.wire.messages import create_partitions as cp
from headrace.wire.messages import create_topics as ct
from headrace.wire.messages import delete_topics as dt
from headrace.wire.messages import fetch as fe
from headrace.wire.messages import metadata as md
from headrace.wire.messages import offset_commit as oc
from headrace.wire.messages import produce as pr
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.list_groups import ListGroupsRequest
from tests.server.api import quota_client
from tests.server.api.quota_client import Client
from tests.waiting import until

PRODUCE, FETCH = 12, 12
THROTTLED_APP = "throttled"


@pytest.fixture
def client(make_broker):
    opened = []

    def connect(broker, client_id=THROTTLED_APP):
        opened.append(Client(broker.bootstrap, client_id))
        return opened[-1]

    yield connect
    for each in opened:
        each.socket.close()


def set_quota(broker, entity=(("client-id", THROTTLED_APP),), **values):
    quota_client.set_quota(broker.bootstrap, entity, **values)


def produce(topic, size, acks=-1):
    data = [pr.TopicProduceData(topic, partition_data=[pr.PartitionProduceData(0, batch(b"v" * size))])]
    return pr.ProduceRequest(None, acks, 30_000, data)


def fetch(topic, offset=0, **session):
    partitions = [fe.FetchPartition(0, fetch_offset=offset, partition_max_bytes=10_000_000)]
    return fe.FetchRequest(
        max_wait_ms=0, max_bytes=10_000_000, topics=[fe.FetchTopic(topic, partitions=partitions)], **session
    )


def body_size(request, version):
    return len(frame(request, version, 1, THROTTLED_APP)) - 4 - 8 - 2 - len(THROTTLED_APP) - 1


def wait_for(size, limit, span=10):
    """Kafka's arithmetic for a client that has used nothing before."""
    return int((size / span - limit) / limit * span * 1000 + 0.5)


WIDE = {"quota.window.size.seconds": 1000}
"""A window beside which the time that a test takes does not matter."""


async def muted(node):
    return [connection.muted for connection in node.acceptors.connections]


def fetched_size(reply):
    return sum(len(part.records or b"") for topic in reply.responses for part in topic.partitions)


def test_a_producer_beyond_its_quota_is_told_how_long_to_wait_and_has_to(make_broker, client):
    broker = make_broker()
    topic = broker.create_topic()
    set_quota(broker, producer_byte_rate=1000)
    producer = client(broker)
    request = produce(topic, 50_000)
    reply = producer.call(request, PRODUCE)
    assert reply.responses[0].partition_responses[0].error_code == 0
    assert reply.throttle_time_ms == wait_for(body_size(request, PRODUCE), 1000)
    number = producer.send(request, PRODUCE)
    broker.clock.advance(reply.throttle_time_ms / 1000 - 30)
    assert broker.run(muted) == [True]
    assert producer.waits()
    broker.clock.advance(31)
    again = producer.receive(request, PRODUCE, number)
    assert again.responses[0].partition_responses[0].base_offset == 1
    assert again.throttle_time_ms == reply.throttle_time_ms, (
        "what was sent so long ago does not count any more"
    )


def test_another_client_and_the_same_without_its_quota_are_not_throttled(make_broker, client):
    broker = make_broker()
    topic = broker.create_topic()
    set_quota(broker, producer_byte_rate=1000)
    other = client(broker, "other")
    assert other.call(produce(topic, 50_000), PRODUCE).throttle_time_ms == 0
    assert other.call(produce(topic, 50_000), PRODUCE).throttle_time_ms == 0
    set_quota(broker, producer_byte_rate=None)
    assert client(broker).call(produce(topic, 50_000), PRODUCE).throttle_time_ms == 0


def test_a_quota_that_is_raised_holds_for_the_next_request_and_a_client_waits_out_what_it_was_told(
    make_broker, client
):
    broker = make_broker()
    topic = broker.create_topic()
    set_quota(broker, producer_byte_rate=1000)
    producer = client(broker)
    throttled = producer.call(produce(topic, 50_000), PRODUCE)
    assert throttled.throttle_time_ms > 0
    set_quota(broker, producer_byte_rate=1_000_000)
    number = producer.send(produce(topic, 50_000), PRODUCE)
    assert client(broker).call(produce(topic, 50_000), PRODUCE).throttle_time_ms == 0
    assert producer.waits()
    broker.clock.advance(throttled.throttle_time_ms / 1000)
    assert producer.receive(produce(topic, 1), PRODUCE, number).throttle_time_ms == 0


def test_a_producer_that_wants_no_reply_is_muted_all_the_same(make_broker, client):
    broker = make_broker()
    topic = broker.create_topic()
    set_quota(broker, producer_byte_rate=1000)
    producer = client(broker)
    producer.send(produce(topic, 50_000, acks=0), PRODUCE)
    number = producer.send(ApiVersionsRequest("a", "1"), 3)
    until(lambda: broker.run(muted) == [True])
    assert producer.waits()
    broker.clock.advance(60)
    assert producer.receive(ApiVersionsRequest("a", "1"), 3, number).error_code == 0


def filled(broker, *sizes):
    topic = broker.create_topic(config={"retention.ms": -1})  # time moves far in these tests
    with Client(broker.bootstrap, "writer") as writer:
        for size in sizes:
            writer.call(produce(topic, size), PRODUCE)
    return topic


def test_a_consumer_beyond_its_quota_gets_an_empty_reply_and_the_records_later(make_broker, client):
    broker = make_broker(WIDE)
    topic = filled(broker, 5000, 6000)
    set_quota(broker, consumer_byte_rate=1)
    consumer = client(broker)
    first = consumer.call(fetch(topic), FETCH)
    assert first.throttle_time_ms == 0
    assert 5000 < fetched_size(first) < 6000, "no more than could ever be sent at once"
    second = consumer.call(fetch(topic, offset=1), FETCH)
    assert second.throttle_time_ms > 0
    assert second.responses == []
    number = consumer.send(fetch(topic, offset=1), FETCH)
    assert consumer.waits()
    broker.clock.advance(12_000)
    third = consumer.receive(fetch(topic), FETCH, number)
    assert third.throttle_time_ms == 0
    assert fetched_size(third) > 6000


def test_a_batch_too_large_for_the_quota_is_let_through_when_nothing_else_was_used(make_broker, client):
    broker = make_broker()
    topic = filled(broker, 50_000, 50_000)
    set_quota(broker, consumer_byte_rate=1000)
    consumer = client(broker)
    first = consumer.call(fetch(topic), FETCH)
    assert fetched_size(first) > 50_000
    assert first.throttle_time_ms > 40_000
    broker.clock.advance(first.throttle_time_ms / 1000)
    assert fetched_size(consumer.call(fetch(topic, offset=1), FETCH)) > 50_000


def test_a_session_outlives_a_throttled_reply_and_a_new_one_is_not_made_by_it(make_broker, client):
    broker = make_broker(WIDE)
    topic = filled(broker, 6000, 6000)
    set_quota(broker, consumer_byte_rate=1)
    consumer = client(broker)
    opened = consumer.call(fetch(topic, session_epoch=0), FETCH)
    assert fetched_size(opened) > 6000
    going_on = fetch(topic, offset=1, session_id=opened.session_id, session_epoch=1)
    throttled = consumer.call(going_on, FETCH)
    assert (throttled.session_id, throttled.responses) == (opened.session_id, [])
    assert throttled.throttle_time_ms > 0
    broker.clock.advance(12_000)
    empty = fe.FetchRequest(
        max_wait_ms=0, max_bytes=10_000_000, session_id=opened.session_id, session_epoch=2
    )
    assert fetched_size(consumer.call(empty, FETCH)) > 6000, "the partition is not forgotten"
    refused = consumer.call(fetch(topic, session_epoch=0), FETCH)
    assert refused.throttle_time_ms > 0
    assert refused.session_id == 0
    assert broker.run(sessions) == 1


async def sessions(node):
    return len(node.engines.sessions)


REQUESTS = [
    (md.MetadataRequest(None), 0),
    (md.MetadataRequest(None), 2),
    (md.MetadataRequest(None), 3),
    (md.MetadataRequest(None), 12),
    (ListGroupsRequest(), 0),
    (ListGroupsRequest(), 4),
    (ApiVersionsRequest("a", "1"), 3),
    (oc.OffsetCommitRequest("g", topics=[]), 2),
    (oc.OffsetCommitRequest("g", topics=[]), 3),
    (oc.OffsetCommitRequest("g", topics=[]), 8),
    (ct.CreateTopicsRequest([]), 7),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: f"{type(each[0]).__name__}-{each[1]}")
def test_request_time_throttles_every_kind_of_request_for_one_sample_at_most(make_broker, client, request_):
    broker = make_broker()
    request, version = request_
    asking = client(broker)
    asking.call(oc.OffsetCommitRequest("g", topics=[]), 8)
    set_quota(broker, request_percentage=1e-9)
    reply = asking.call(request, version)
    has_field = any(each.name == "throttle_time_ms" and version >= each.versions[0] for each in reply.FIELDS)
    assert reply.throttle_time_ms == (1000 if has_field else 0)
    number = asking.send(ListGroupsRequest(), 4)
    assert broker.run(muted) == [True]
    broker.clock.advance(1)
    assert reply_number(asking.receive_frame()) == number


def test_request_time_and_bandwidth_throttle_for_the_longer_of_the_two(make_broker, client):
    broker = make_broker()
    topic = filled(broker, 10)
    set_quota(broker, producer_byte_rate=1000, request_percentage=1e-9)
    producer = client(broker)
    request = produce(topic, 50_000)
    assert producer.call(request, PRODUCE).throttle_time_ms == wait_for(body_size(request, PRODUCE), 1000)
    broker.clock.advance(3600)
    assert producer.call(produce(topic, 10), PRODUCE).throttle_time_ms == 1000
    broker.clock.advance(3600)
    throttled = producer.call(fetch(topic), FETCH)
    assert (throttled.throttle_time_ms, throttled.responses) == (1000, [])


def test_creating_and_deleting_topics_beyond_the_quota_is_refused(make_broker, client):
    broker = make_broker()
    set_quota(broker, controller_mutation_rate=1)
    admin = client(broker)
    topics = [ct.CreatableTopic(name, 20, 1) for name in ("first", "second")]
    reply = admin.call(ct.CreateTopicsRequest(topics), 7)
    assert {each.name: ErrorCode(each.error_code).name for each in reply.topics} == {
        "first": "NONE",
        "second": "THROTTLING_QUOTA_EXCEEDED",
    }
    assert reply.topics[1].error_message == "The throttling quota has been exceeded."
    assert 0 < reply.throttle_time_ms <= 9000, "11 tokens, 20 were taken"
    broker.clock.advance(9)
    grown = admin.call(cp.CreatePartitionsRequest([cp.CreatePartitionsTopic("first", 31)], 30_000), 3)
    assert [each.error_code for each in grown.results] == [0]
    refused = admin.call(cp.CreatePartitionsRequest([cp.CreatePartitionsTopic("first", 32)], 30_000), 3)
    assert [each.error_code for each in refused.results] == [ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    broker.clock.advance(20)
    states = [dt.DeleteTopicState(name) for name in ("unknown", "first")]
    deleted = admin.call(dt.DeleteTopicsRequest(topics=states), 6)
    assert {each.name: each.error_code for each in deleted.responses} == {
        "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "first": 0,
    }
    kept = admin.call(ct.CreateTopicsRequest([ct.CreatableTopic("third", 1, 1)]), 7)
    assert kept.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_an_old_client_creates_its_topics_and_has_to_wait(make_broker, client):
    broker = make_broker()
    set_quota(broker, controller_mutation_rate=1)
    admin = client(broker)
    topics = [ct.CreatableTopic(name, 20, 1) for name in ("first", "second")]
    reply = admin.call(ct.CreateTopicsRequest(topics), 5)
    assert [each.error_code for each in reply.topics] == [0, 0]
    assert 0 < reply.throttle_time_ms <= 29_000
    gone = client(broker).call(dt.DeleteTopicsRequest(["first"]), 4)
    assert [each.error_code for each in gone.responses] == [0]


def test_a_topic_is_not_created_on_first_use_beyond_the_quota(make_broker, client):
    broker = make_broker({"num.partitions": 20})
    set_quota(broker, controller_mutation_rate=0.1)
    asking = client(broker)
    for name, code in (("one", 0), ("two", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)):
        wanted = md.MetadataRequest([md.MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
        reply = asking.call(wanted, 12)
        assert reply.topics[0].error_code == code
        assert reply.throttle_time_ms == 0
    broker.clock.advance(200)
    assert asking.call(wanted, 12).topics[0].error_code == 0


async def timers(node):
    return len([each for of_loop in node.clock._timers.values() for each in of_loop])


def test_a_client_that_leaves_while_it_is_muted_leaves_nothing_behind(make_broker, client):
    broker = make_broker()
    topic = broker.create_topic()
    set_quota(broker, producer_byte_rate=1000)
    until(lambda: broker.run(muted) == [])
    before = broker.run(timers)
    leaving = client(broker)
    assert leaving.call(produce(topic, 50_000), PRODUCE).throttle_time_ms > 0
    leaving.send(produce(topic, 50_000), PRODUCE)
    leaving.socket.close()
    until(lambda: broker.run(muted) == [])
    until(lambda: broker.run(timers) <= before)


async def holds(node):
    """What keeps a throttled connection muted, one after the other, on a real connection."""
    (connection,) = node.acceptors.connections
    seen = []
    connection.mute()
    connection.throttle(10)
    connection.throttle(5)
    node.clock.advance(6)
    seen.append(connection.muted)
    connection.unmute()
    seen.append(connection.muted)
    connection.mute()
    node.clock.advance(5)
    seen.append(connection.muted)
    connection.unmute()
    seen.append(connection.muted)
    return seen


def test_a_connection_is_muted_until_its_request_is_answered_and_its_longest_throttle_is_over(
    make_broker, client
):
    broker = make_broker()
    open_ = client(broker)
    open_.call(ApiVersionsRequest("a", "1"), 3)
    assert broker.run(holds) == [True, True, True, False]
    assert open_.call(ApiVersionsRequest("a", "1"), 3).error_code == 0


def test_a_broker_that_stops_does_not_wait_for_throttled_clients(make_broker, client):
    broker = make_broker()
    topic = broker.create_topic()
    set_quota(broker, producer_byte_rate=1)
    throttled = client(broker)
    assert throttled.call(produce(topic, 50_000), PRODUCE).throttle_time_ms > 3_600_000
    broker.stop()
    assert throttled.is_closed_by_broker()


def test_a_throttled_client_is_not_idle(make_broker, client):
    broker = make_broker({"connections.max.idle.ms": 60_000})
    topic = broker.create_topic()
    set_quota(broker, producer_byte_rate=100)
    throttled = client(broker)
    wait = throttled.call(produce(topic, 50_000), PRODUCE).throttle_time_ms / 1000
    assert wait > 300
    broker.clock.advance(wait - 1)
    broker.clock.advance(2)
    broker.clock.advance(30)
    assert throttled.call(ApiVersionsRequest("a", "1"), 3).error_code == 0


def test_brokers_are_exempt(make_broker, client):
    broker = make_broker()
    topic = broker.create_topic()
    set_quota(broker, (("client-id", None),), producer_byte_rate=1, request_percentage=1e-9)
    follower = client(broker, "headrace-broker-2")
    assert follower.call(produce(topic, 50_000), PRODUCE).throttle_time_ms == 0
    assert follower.call(md.MetadataRequest(None), 12).throttle_time_ms == 0
    assert client(broker, "headrace").call(produce(topic, 50_000), PRODUCE).throttle_time_ms > 0


def test_a_user_has_a_quota(make_broker, client):
    """Every client is ANONYMOUS where nobody has to log in."""
    broker = make_broker()
    topic = broker.create_topic()
    set_quota(broker, (("user", "ada"),), producer_byte_rate=1000)
    assert client(broker).call(produce(topic, 50_000), PRODUCE).throttle_time_ms == 0

    async def log_in(node):
        for connection in node.acceptors.connections:
            connection.identify("User:ada")

    ada = client(broker)
    ada.call(ApiVersionsRequest("a", "1"), 3)
    broker.run(log_in)
    assert ada.call(produce(topic, 50_000), PRODUCE).throttle_time_ms > 0


def test_quotas_survive_a_restart(make_broker, client):
    broker = make_broker()
    topic = broker.create_topic()
    set_quota(broker, producer_byte_rate=1000)
    broker.stop()
    broker.start()
    assert client(broker).call(produce(topic, 50_000), PRODUCE).throttle_time_ms > 0


def test_the_windows_are_those_of_the_settings(make_broker, client):
    broker = make_broker({"quota.window.num": 3, "quota.window.size.seconds": 100})
    topic = broker.create_topic()
    set_quota(broker, producer_byte_rate=1000)
    request = produce(topic, 50_000)
    first = client(broker).call(request, PRODUCE)
    assert first.throttle_time_ms == 0, "50,000 bytes are 250 a second over two whole samples"
    request = produce(topic, 500_000)
    broker.clock.advance(240)
    throttled = client(broker).call(request, PRODUCE).throttle_time_ms
    assert throttled - wait_for(body_size(request, PRODUCE), 1000, 200) > 0, "the first one still counts"
    broker.clock.advance(3600)
    assert client(broker).call(request, PRODUCE).throttle_time_ms == wait_for(
        body_size(request, PRODUCE), 1000, 200
    )
