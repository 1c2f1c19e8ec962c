"""Faults on request: what a broker is told to get wrong, and what real clients make of it."""

import time

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from headrace.server.api.registry import APIS, SERVED
from headrace.testing.refusals import refusal
from headrace.testing.wire import WireClient, batch
from headrace.wire.codec import decode, encode
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.delete_topics import DeleteTopicsRequest
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def produced(broker, topic, *, idempotent=True, value=b"v"):
    """Send one record and wait for it; the error, if any."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": idempotent,
            "acks": "all",
            "linger.ms": 0,
            "retry.backoff.ms": 1,
            "reconnect.backoff.ms": 1,
            "reconnect.backoff.max.ms": 10,
        }
    )
    errors = []
    producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(60) == 0
    return errors[0]


def count(broker, topic):
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "count"})
    from confluent_kafka import TopicPartition

    low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), 30)
    consumer.close()
    return high - low


def test_a_dropped_request_was_never_served(headrace_broker, headrace_topic):
    topic = headrace_topic()
    headrace_broker.faults.drop("Produce", times=2)
    assert produced(headrace_broker, topic) is None
    assert headrace_broker.faults.left == 0
    assert count(headrace_broker, topic) == 1


def test_a_lost_answer_makes_a_careless_producer_write_twice_and_an_idempotent_one_once(
    headrace_broker, headrace_topic
):
    careless, careful = headrace_topic(), headrace_topic()
    headrace_broker.faults.drop_reply("Produce")
    assert produced(headrace_broker, careless, idempotent=False) is None
    headrace_broker.faults.drop_reply("Produce")
    assert produced(headrace_broker, careful) is None
    assert (count(headrace_broker, careless), count(headrace_broker, careful)) == (2, 1)


def test_an_error_is_answered_so_many_times_and_then_no_more(headrace_broker, headrace_topic):
    topic = headrace_topic()
    headrace_broker.faults.error("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=3)
    assert produced(headrace_broker, topic) is None
    assert headrace_broker.faults.left == 0
    headrace_broker.faults.error("produce", "TOPIC_AUTHORIZATION_FAILED")
    assert produced(headrace_broker, topic).code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert count(headrace_broker, topic) == 1


def test_a_delayed_request_is_served_when_its_time_has_come(headrace_broker):
    with WireClient(headrace_broker.bootstrap) as client:
        headrace_broker.faults.delay("Heartbeat", 3600)
        asked = HeartbeatRequest("", 1, "member")
        number = client.send(asked, 4)
        following = client.send(asked, 4)
        while headrace_broker.faults.left:
            time.sleep(0.005)
        headrace_broker.clock.advance(3600)
        assert client.receive(asked, 4, number).error_code == ErrorCode.INVALID_GROUP_ID
        assert client.receive(asked, 4, following).error_code == ErrorCode.INVALID_GROUP_ID


def test_a_delayed_produce_is_written_whole(headrace_broker, headrace_topic):
    topic = headrace_topic()
    headrace_broker.faults.delay("Produce", 0.05)
    assert produced(headrace_broker, topic) is None
    assert count(headrace_broker, topic) == 1


def test_healing_forgets_what_is_left(headrace_broker, headrace_topic):
    headrace_broker.faults.drop("Produce", times=1000)
    headrace_broker.faults.heal()
    assert produced(headrace_broker, headrace_topic()) is None


def test_a_wrong_name_gets_a_sentence(headrace_broker):
    with pytest.raises(ValueError, match=r"No API is called Prodce\. Did you mean Produce\?"):
        headrace_broker.faults.drop("Prodce")
    with pytest.raises(ValueError, match="Kafka has no error NOT_A_THING"):
        headrace_broker.faults.error("Produce", "NOT_A_THING")
    with pytest.raises(ValueError, match="at least one request"):
        headrace_broker.faults.drop("Produce", times=0)


def test_brokers_among_themselves_are_spared_unless_asked_for(headrace_cluster, headrace_topic):
    topic = headrace_topic()
    for broker in headrace_cluster:
        broker.faults.drop("Fetch", times=1)
    # Followers fetch all the time: acks=all could not be had if they were disturbed for long.
    assert produced(headrace_cluster[1], topic) is None
    assert [broker.faults.left for broker in headrace_cluster] == [1, 1, 1]


def errors_in(message):
    found = []
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.name.endswith("error_code"):
            found.append(value)
        elif field.struct is not None and value is not None:
            for each in value if field.array else [value]:
                found += errors_in(each)
    return found


ASKED = {
    "produce": ProduceRequest(None, -1, 1, [TopicProduceData("t", partition_data=[PartitionProduceData(3)])]),
    "fetch": FetchRequest(topics=[FetchTopic("t", partitions=[FetchPartition(3)])]),
    "create_topics": CreateTopicsRequest([CreatableTopic("t")]),
    "delete_topics": DeleteTopicsRequest(topic_names=["t"]),
    "find_coordinator": FindCoordinatorRequest(key="t", coordinator_keys=["t"]),
    "offset_fetch": OffsetFetchRequest("t", groups=[OffsetFetchRequestGroup("t")]),
}


@pytest.mark.parametrize("name", SERVED)
def test_every_api_in_every_version_has_an_answer_that_carries_an_error(name):
    """One element in every list of the request; each list of the answer that tells errors has its counterpart."""
    api = APIS[SERVED[name][0]]
    api.load()
    for version in range(max(api.lowest, api.request.VERSIONS[0]), api.highest + 1):
        reply = refusal(one_of_each(api.request, version), version, api.response, ErrorCode.NOT_CONTROLLER)
        read, _ = decode(api.response, version, bytes(encode(reply, version)))
        told = set(errors_in(read)) - {0}
        assert told == {ErrorCode.NOT_CONTROLLER}, f"version {version}: {read}"


def one_of_each(cls, version):
    message = cls()
    for field in cls.FIELDS:
        if field.array and field.versions[0] <= version <= field.versions[1]:
            one = (
                one_of_each(field.struct, version)
                if field.struct
                else {"string": "t", "int32": 3}.get(field.kind)
            )
            setattr(message, field.name, [] if one is None else [one])
    return message


def test_an_error_names_what_it_is_about():
    def told(name, version):
        api = APIS[SERVED[name][0]]
        api.load()
        return refusal(ASKED[name], version, api.response, ErrorCode.NOT_CONTROLLER)

    (topic,) = told("produce", 9).responses
    assert (topic.name, topic.partition_responses[0].index) == ("t", 3)
    (topic,) = told("fetch", 11).responses
    assert (topic.topic, topic.partitions[0].partition_index) == ("t", 3)
    assert told("create_topics", 7).topics[0].name == "t"
    assert told("delete_topics", 5).responses[0].name == "t"
    assert told("find_coordinator", 4).coordinators[0].key == "t"
    assert told("offset_fetch", 8).groups[0].group_id == "t"


def test_a_refused_produce_that_wants_no_answer_breaks_its_connection(headrace_broker, headrace_topic):
    topic = headrace_topic()
    headrace_broker.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER")
    data = TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch(b"v"))])
    with WireClient(headrace_broker.bootstrap) as client:
        client.send(ProduceRequest(None, 0, 1000, [data]), 9)
        assert client.is_closed_by_broker()


def test_a_full_disk_refuses_writes_until_there_is_room(headrace_broker, headrace_topic):
    topic = headrace_topic()
    assert produced(headrace_broker, topic) is None
    headrace_broker.disk.fill(topic)
    producer = Producer({"bootstrap.servers": headrace_broker.bootstrap, "message.timeout.ms": 300})
    failed = []
    producer.produce(topic, b"v", on_delivery=lambda error, _: failed.append(error))
    producer.flush(60)
    assert failed[0] is not None
    headrace_broker.disk.heal()
    assert produced(headrace_broker, topic) is None
    assert count(headrace_broker, topic) == 2


def test_a_transaction_survives_lost_answers_at_every_step(headrace_broker, headrace_topic):
    topic = headrace_topic()
    producer = Producer(
        {"bootstrap.servers": headrace_broker.bootstrap, "transactional.id": topic, "reconnect.backoff.ms": 1}
    )
    for api in ("InitProducerId", "AddPartitionsToTxn", "Produce", "EndTxn"):
        headrace_broker.faults.drop_reply(api)
    try:
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce(topic, b"v")
        producer.commit_transaction(60)
    except KafkaException as error:
        pytest.fail(str(error))
    assert headrace_broker.faults.left == 0
    consumer = Consumer(
        {"bootstrap.servers": headrace_broker.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    assert consumer.poll(30).value() == b"v"
    consumer.close()
