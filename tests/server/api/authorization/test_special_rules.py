"""Requests that more than one permission allows, that touch several things, or that only brokers may send."""

from confluent_kafka import Consumer, Producer

from headrace.server.security.operations import Operation, Resource
from headrace.testing.topics import unique_name
from headrace.testing.wire import batch
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import create_topics as ct
from headrace.wire.messages import fetch as fe
from headrace.wire.messages import metadata as md
from headrace.wire.messages import offset_for_leader_epoch as ole
from headrace.wire.messages import produce as pr
from headrace.wire.messages import write_txn_markers as wtm
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.records import BatchBuilder
from tests.server.api.authorization.requests import codes, fetch_of, marker, produce_to
from tests.server.api.authorization.rules import GROUP, TOPIC


def test_creating_a_topic_needs_the_cluster_or_the_topic(wire, rules):
    allowed, refused = unique_name("made"), unique_name("made")
    rules.deny_on_cluster(Operation.CREATE)
    rules.deny(Operation.CREATE, TOPIC, refused)
    request = ct.CreateTopicsRequest([ct.CreatableTopic(name, 1, 1) for name in (allowed, refused)])
    response = wire.ask(request, 7, ct.CreateTopicsResponse)
    assert {each.name: each.error_code for each in response.topics} == {
        allowed: ErrorCode.NONE,
        refused: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


def test_a_topic_is_not_created_on_first_use_by_those_who_may_not_create_it(wire, rules):
    name = unique_name("made")
    rules.deny_on_cluster(Operation.CREATE)
    rules.deny(Operation.CREATE, TOPIC, name)
    ask = md.MetadataRequest([md.MetadataRequestTopic(name=name)])
    (answer,) = wire.ask(ask, 9, md.MetadataResponse).topics
    assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    rules.denied.clear()
    assert name not in {
        each.name for each in wire.ask(md.MetadataRequest(None), 9, md.MetadataResponse).topics
    }


def test_one_denied_topic_does_not_hold_up_the_others_of_a_request(wire, rules, topic):
    other = unique_name("made")
    wire.ask(ct.CreateTopicsRequest([ct.CreatableTopic(other, 1, 1)]), 7, ct.CreateTopicsResponse)
    rules.deny(Operation.WRITE, TOPIC, other)
    request = produce_to(topic)
    request.topic_data += produce_to(other).topic_data
    response = wire.ask(request, 9, pr.ProduceResponse)
    assert {each.name: each.partition_responses[0].error_code for each in response.responses} == {
        topic: ErrorCode.NONE,
        other: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


def test_a_fetch_session_ends_when_the_permission_does(wire, rules, topic):
    request = fetch_of(topic)
    request.session_epoch = 0
    first = wire.ask(request, 12, fe.FetchResponse)
    assert codes(first) == {ErrorCode.NONE}
    rules.deny(Operation.READ, TOPIC, topic)
    wire.ask(produce_to(topic), 9, pr.ProduceResponse)
    again = fe.FetchRequest(max_wait_ms=1000, min_bytes=1, session_id=first.session_id, session_epoch=1)
    assert ErrorCode.TOPIC_AUTHORIZATION_FAILED in codes(wire.ask(again, 12, fe.FetchResponse))


def test_records_of_a_transaction_that_is_not_named_are_refused(wire, topic):
    request = produce_to(topic)
    builder = BatchBuilder(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    request.topic_data[0].partition_data[0].records = batch(b"v", builder=builder)
    assert ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED in codes(wire.ask(request, 9, pr.ProduceResponse))


def test_only_a_broker_may_fetch_as_a_follower(wire, rules, topic):
    rules.deny_on_cluster(Operation.CLUSTER_ACTION)
    answer = wire.ask(fetch_of(topic, replica_id=2), 12, fe.FetchResponse)
    assert ErrorCode.TOPIC_AUTHORIZATION_FAILED in codes(answer)


def test_the_end_of_an_epoch_is_told_to_brokers_and_to_those_who_may_see_the_topic(wire, rules, topic):
    request = ole.OffsetForLeaderEpochRequest(
        -1, [ole.OffsetForLeaderTopic(topic, [ole.OffsetForLeaderPartition(0)])]
    )
    rules.deny(Operation.DESCRIBE, TOPIC, topic)
    assert codes(wire.ask(request, 4, ole.OffsetForLeaderEpochResponse)) == {ErrorCode.NONE}
    rules.deny_on_cluster(Operation.CLUSTER_ACTION)
    assert codes(wire.ask(request, 4, ole.OffsetForLeaderEpochResponse)) == {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED
    }


def test_markers_are_written_by_brokers_and_administrators(wire, rules, topic):
    rules.deny_on_cluster(Operation.CLUSTER_ACTION)
    answer = wire.ask(marker(topic), 1, wtm.WriteTxnMarkersResponse)
    assert ErrorCode.CLUSTER_AUTHORIZATION_FAILED not in codes(answer)
    rules.deny_on_cluster(Operation.ALTER)
    answer = wire.ask(marker(topic), 1, wtm.WriteTxnMarkersResponse)
    assert codes(answer) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


def test_whoever_may_write_to_some_topic_may_do_so_idempotently(wire, rules, topic):
    request = InitProducerIdRequest(None, 0)
    rules.deny_on_cluster(Operation.IDEMPOTENT_WRITE)
    assert codes(wire.ask(request, 4, request.reply_type())) == {ErrorCode.NONE}
    for each in wire.ask(md.MetadataRequest(None), 9, md.MetadataResponse).topics:
        rules.deny(Operation.WRITE, TOPIC, each.name)
    assert codes(wire.ask(request, 4, request.reply_type())) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


def test_the_authorizer_is_told_who_asks(wire, rules, topic):
    wire.ask(fetch_of(topic), 12, fe.FetchResponse)
    assert ("User:ANONYMOUS", Operation.READ, Resource(TOPIC, topic)) in rules.asked


def test_a_real_client_is_told_what_it_may_not_do(broker, rules, topic):
    rules.deny(Operation.WRITE, TOPIC, topic)
    rules.deny(Operation.READ, GROUP, "real")
    errors = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    producer.produce(topic, b"v", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    assert errors[0].name() == "TOPIC_AUTHORIZATION_FAILED"
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "real", "log_level": 0})
    consumer.subscribe([topic])
    message = consumer.poll(30)
    assert message.error().name() == "GROUP_AUTHORIZATION_FAILED"
    consumer.close()
