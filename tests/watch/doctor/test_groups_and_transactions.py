"""Groups that stand still, are gone or lose records, and transactions that hang, on a real broker."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headrace.testing.wire import WireClient, batch
from headrace.watch.doctor.scene import Bounds
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.wire.records import BatchBuilder
from tests.watch.doctor.looking import findings


@pytest.fixture
def broker(make_broker):
    return make_broker(
        {
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
            "transaction.partition.verification.enable": "false",
            "log.retention.check.interval.ms": "50",
        }
    )


def fill(broker, topic, count=10):
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(60) == 0


@pytest.fixture
def member(broker):
    """A consumer that has read one record, committed, and is still there."""
    consumers = []

    def join(group, topic):
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumers.append(consumer)
        consumer.subscribe([topic])
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        return consumer

    yield join
    for consumer in consumers:
        consumer.close()


def test_a_group_that_commits_nothing_though_it_has_members_is_found(broker, member):
    topic = broker.create_topic()
    fill(broker, topic)
    member("stuck", topic)
    [(severity, sentence, subjects)] = findings("groups-standing", broker.bootstrap)
    assert (severity, subjects) == ("warning", (f"{topic}-0",))
    assert sentence.startswith("Group stuck has 9 unread records, the oldest ")


def test_a_group_without_members_is_found_and_one_that_has_read_everything_is_fine(broker, member):
    topic = broker.create_topic()
    fill(broker, topic)
    member("left", topic).close()
    [(severity, sentence, _)] = findings("groups-standing", broker.bootstrap)
    assert severity == "warning"
    assert "Group left has 9 unread records" in sentence
    assert sentence.endswith("and no members.")
    reader = member("done", topic)
    reader.commit(offsets=[TopicPartition(topic, 0, 10)], asynchronous=False)
    assert len(findings("groups-standing", broker.bootstrap)) == 1


def test_groups_that_may_not_be_seen_hide_no_others_and_are_counted(broker, member):
    topic = broker.create_topic()
    fill(broker, topic)
    for group in ("a", "b", "c"):
        member(group, topic).close()
    assert findings("groups-unseen", broker.bootstrap) == []
    broker.faults.error("OffsetFetch", "GROUP_AUTHORIZATION_FAILED")
    [(severity, sentence, _)] = findings("groups-unseen", broker.bootstrap)
    assert severity == "note"
    assert sentence.startswith("Not looked at: 1 group,")


def test_records_that_retention_deletes_soon_are_an_error_and_lost_ones_too(broker, member):
    topic = broker.create_topic(config={"retention.ms": 1_800_000})
    fill(broker, topic)
    member("slow", topic)
    [(severity, sentence, subjects)] = findings("groups-losing-records", broker.bootstrap)
    assert (severity, subjects) == ("error", (f"{topic}-0",))
    assert f"Retention may delete records of {topic}-0 in 29 min" in sentence
    assert findings("groups-losing-records", broker.bootstrap, bounds=Bounds(loss_warning=60)) == []
    with WireClient(broker.bootstrap) as client:
        from headrace.wire.messages.delete_records import (
            DeleteRecordsPartition,
            DeleteRecordsRequest,
            DeleteRecordsTopic,
        )

        reply = client.call(
            DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, 5)])], 30_000), 2
        )
        assert reply.topics[0].partitions[0].error_code == 0
    found = findings("groups-losing-records", broker.bootstrap, bounds=Bounds(loss_warning=60))
    [(severity, sentence, _)] = found
    assert severity == "error"
    assert sentence.startswith(f"Group slow has lost 4 records of {topic}-0")


def test_a_transaction_that_nobody_will_end_is_an_error(broker):
    topic = broker.create_topic()
    assert findings("hanging-transactions", broker.bootstrap, bounds=Bounds(open_transaction=0)) == []
    with WireClient(broker.bootstrap) as client:
        producer_id = client.call(InitProducerIdRequest(None, 60000), 5).producer_id
        builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)
        data = PartitionProduceData(0, batch(b"lost", builder=builder))
        request = ProduceRequest("nobody", -1, 10000, [TopicProduceData(topic, partition_data=[data])])
        assert client.call(request, 9).responses[0].partition_responses[0].error_code == 0
    [(severity, sentence, subjects)] = findings(
        "hanging-transactions", broker.bootstrap, bounds=Bounds(open_transaction=0)
    )
    assert (severity, subjects) == ("error", (f"{topic}-0",))
    assert sentence.startswith(f"1 transaction hanging in {topic}-0")
