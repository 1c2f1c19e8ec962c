"""confluent-kafka's share consumer against a real broker: delivery, acknowledgements, locks, and what administrators do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer

from headrace.client.dead_letter_box import DeadLetterBox
from headrace.testing.broker import BrokerThread
from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode
from headrace.wire.messages import alter_share_group_offsets as alter
from headrace.wire.messages import describe_share_group_offsets as describe
from headrace.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from headrace.wire.messages.delete_groups import DeleteGroupsRequest
from headrace.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.list_groups import ListGroupsRequest
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.wire.messages.share_group_describe import ShareGroupDescribeRequest
from headrace.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from headrace.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.server.share.group_settings import configure
from tests.waiting import until

SETTINGS = {
    "group.share.heartbeat.interval.ms": "100",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.record.lock.duration.ms": "60000",
    "group.share.min.record.lock.duration.ms": "1000",
}
_numbers = itertools.count()
Make = Callable[..., ShareConsumer]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    with BrokerThread(tmp_path_factory.mktemp("broker"), SETTINGS) as running:
        yield running


@pytest.fixture
def names(broker: BrokerThread) -> tuple[str, str]:
    """A topic and a group that begins with its first record."""
    number = next(_numbers)
    topic, group = f"orders-{number}", f"workers-{number}"
    with WireClient(broker.bootstrap) as client:
        client.call(CreateTopicsRequest([CreatableTopic(topic, 1, 1)]), 7)
    configure(broker.bootstrap, group, {"share.auto.offset.reset": "earliest"})
    return topic, group


@pytest.fixture
def join(broker: BrokerThread) -> Iterator[Make]:
    opened: list[ShareConsumer] = []

    def make(topic: str, group: str, explicit: bool = True, **settings: object) -> ShareConsumer:
        mode = "explicit" if explicit else "implicit"
        consumer = ShareConsumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": group,
                "share.acknowledgement.mode": mode,
                "log_level": 0,
                **settings,
            }
        )
        consumer.subscribe([topic])
        opened.append(consumer)
        return consumer

    yield make
    for consumer in opened:
        consumer.close()


def produce(broker: BrokerThread, topic: str, *values: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, str(value).encode())
    producer.flush()


def take(consumer: ShareConsumer, count: int) -> list[Message]:
    """So many records, none of which is acknowledged yet."""
    taken: list[Message] = []

    def enough() -> bool:
        for message in consumer.poll(0.2):
            assert message.error() is None, message.error()
            taken.append(message)
        return len(taken) >= count

    until(enough, f"{count} records")
    return taken


def finish(consumer: ShareConsumer, messages: list[Message], kind: object = AcknowledgeType.ACCEPT) -> None:
    for message in messages:
        consumer.acknowledge(message, kind)
    assert all(error is None for error in consumer.commit_sync().values())


def values(messages: list[Message]) -> list[int]:
    return [int(message.value() or b"") for message in messages]


def lag(broker: BrokerThread, topic: str, group: str) -> tuple[int, int]:
    """The group's start offset in partition 0, and its lag."""
    asked = describe.DescribeShareGroupOffsetsRequestGroup(group, None)
    with WireClient(broker.bootstrap) as client:
        (answer,) = client.call(describe.DescribeShareGroupOffsetsRequest([asked]), 1).groups
    assert answer.error_code == 0
    (partition,) = next(each for each in answer.topics if each.topic_name == topic).partitions
    return partition.start_offset, partition.lag


def test_every_record_is_delivered_once_and_the_group_has_no_lag_then(
    broker: BrokerThread, names: tuple[str, str], join: Make
) -> None:
    produce(broker, names[0], *range(200))
    consumer = join(*names)
    taken = take(consumer, 200)
    assert sorted(values(taken)) == list(range(200))
    assert lag(broker, *names)[1] == 200, "locked is not done"
    finish(consumer, taken)
    assert lag(broker, *names) == (200, 0)


def test_a_released_record_comes_again_and_a_rejected_one_does_not(
    broker: BrokerThread, names: tuple[str, str], join: Make
) -> None:
    produce(broker, names[0], 1, 2, 3)
    consumer = join(*names)
    one, two, three = take(consumer, 3)
    consumer.acknowledge(one, AcknowledgeType.RELEASE)
    consumer.acknowledge(two, AcknowledgeType.REJECT)
    consumer.acknowledge(three, AcknowledgeType.ACCEPT)
    consumer.commit_sync()
    again = take(consumer, 1)
    assert values(again) == [1]
    finish(consumer, again)
    assert lag(broker, *names) == (3, 0)


def test_implicit_acknowledgements_are_sent_with_the_next_poll(
    broker: BrokerThread, names: tuple[str, str], join: Make
) -> None:
    produce(broker, names[0], 1, 2)
    consumer = join(*names, explicit=False)
    taken = values(list(consumer.poll(10)))
    until(lambda: not list(consumer.poll(0.1)) or taken, "the records")
    until(lambda: [*consumer.poll(0.2)] == [] and lag(broker, *names) == (2, 0), "the acknowledgement")


def test_a_lock_that_ends_frees_the_record_for_others(
    broker: BrokerThread, names: tuple[str, str], join: Make
) -> None:
    configure(
        broker.bootstrap,
        names[1],
        {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": "1000"},
    )
    produce(broker, names[0], 7)
    slow, quick = join(*names), join(*names)
    take(slow, 1)
    configure(broker.bootstrap, names[1], {"share.auto.offset.reset": "earliest"})  # the next lock is long
    again = take(quick, 1)
    assert values(again) == [7]
    finish(quick, again)
    assert lag(broker, *names) == (1, 0)


def test_a_member_that_leaves_frees_what_it_holds(
    broker: BrokerThread, names: tuple[str, str], join: Make
) -> None:
    produce(broker, names[0], 7)
    first = join(*names)
    take(first, 1)
    first.close()
    assert values(take(join(*names), 1)) == [7]


def test_a_record_that_is_given_up_goes_to_the_dead_letter_topic(
    broker: BrokerThread, names: tuple[str, str], join: Make
) -> None:
    topic, group = names
    letters = f"dlq.{topic}"
    with WireClient(broker.bootstrap) as client:
        enabled = [CreatableTopicConfig("errors.deadletterqueue.group.enable", "true")]
        client.call(CreateTopicsRequest([CreatableTopic(letters, 1, 1, configs=enabled)]), 7)
    configure(
        broker.bootstrap,
        group,
        {
            "share.auto.offset.reset": "earliest",
            "share.delivery.count.limit": "2",
            "errors.deadletterqueue.topic.name": letters,
            "errors.deadletterqueue.copy.record.enable": "true",
        },
    )
    configure(broker.bootstrap, "undertakers", {"share.auto.offset.reset": "earliest"})
    produce(broker, topic, 1, 2)
    consumer = join(*names)
    one, two = take(consumer, 2)
    consumer.acknowledge(one, AcknowledgeType.REJECT)
    consumer.acknowledge(two, AcknowledgeType.RELEASE)
    consumer.commit_sync()
    finish(consumer, take(consumer, 1), AcknowledgeType.RELEASE)
    dead = take(join(letters, "undertakers"), 2)
    found = {int(each.value() or b""): dict(each.headers() or []) for each in dead}
    assert found[1]["headrace.dlq.reason"].startswith(b"Rejected: ")
    assert found[2]["headrace.dlq.reason"].startswith(b"DeliveryCountExceeded: ")
    for offset, headers in ((0, found[1]), (1, found[2])):
        assert headers["headrace.dlq.topic"] == headers["__dlq.errors.topic"] == topic.encode()
        assert headers["headrace.dlq.offset"] == headers["__dlq.errors.offset"] == str(offset).encode()
        assert headers["__dlq.errors.group"] == group.encode()
    assert found[2]["headrace.dlq.attempt"] == b"2"
    with DeadLetterBox(letters, {"bootstrap.servers": broker.bootstrap}) as box:
        assert box.count() == 2, "headrace dlq knows them"
    assert lag(broker, *names) == (2, 0)


def test_a_record_too_large_for_the_dead_letter_topic_does_not_cost_the_letters_of_others(
    broker: BrokerThread, names: tuple[str, str], join: Make
) -> None:
    topic, group = names
    letters = f"dlq.{topic}"
    with WireClient(broker.bootstrap) as client:
        configs = {"errors.deadletterqueue.group.enable": "true", "max.message.bytes": "3000"}
        enabled = [CreatableTopicConfig(name, value) for name, value in configs.items()]
        client.call(CreateTopicsRequest([CreatableTopic(letters, 1, 1, configs=enabled)]), 7)
    own = {
        "share.auto.offset.reset": "earliest",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.copy.record.enable": "true",
    }
    configure(broker.bootstrap, group, own)
    configure(broker.bootstrap, f"undertakers-{group}", {"share.auto.offset.reset": "earliest"})
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"0".zfill(5000))
    producer.produce(topic, b"7")
    producer.flush()
    consumer = join(*names)
    finish(consumer, take(consumer, 2), AcknowledgeType.REJECT)
    assert values(take(join(letters, f"undertakers-{group}"), 1)) == [7]
    assert lag(broker, *names) == (2, 0)


def test_a_group_that_reads_committed_records_sees_no_aborted_ones(
    broker: BrokerThread, names: tuple[str, str], join: Make
) -> None:
    configure(
        broker.bootstrap,
        names[1],
        {"share.auto.offset.reset": "earliest", "share.isolation.level": "read_committed"},
    )
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": names[0]})
    producer.init_transactions()
    for value, end in ((1, producer.abort_transaction), (2, producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(names[0], str(value).encode())
        producer.flush()
        end()
    consumer = join(*names)
    taken = take(consumer, 1)
    assert values(taken) == [2]
    finish(consumer, taken)
    until(lambda: [*consumer.poll(0.1)] == [] and lag(broker, *names) == (4, 0), "the end of the log")


def test_members_share_a_partition(broker: BrokerThread, names: tuple[str, str], join: Make) -> None:
    consumers = [join(*names) for _ in range(4)]
    seen: list[int] = []

    def everybody_polls() -> bool:
        for consumer in consumers:
            taken = list(consumer.poll(0.05))
            if taken:
                finish(consumer, taken)
                seen.extend(values(taken))
        return len(seen) >= 300

    for consumer in consumers:
        consumer.poll(0.1)
    for start in range(0, 300, 10):
        produce(broker, names[0], *range(start, start + 10))
        everybody_polls()
    until(everybody_polls, "all records")
    assert sorted(seen) == list(range(300))


def test_administrators_list_describe_reset_and_delete_a_group(
    broker: BrokerThread, names: tuple[str, str], join: Make
) -> None:
    topic, group = names
    produce(broker, topic, *range(5))
    consumer = join(*names)
    finish(consumer, take(consumer, 5))
    reset = alter.AlterShareGroupOffsetsRequest(
        group,
        [
            alter.AlterShareGroupOffsetsRequestTopic(
                topic, [alter.AlterShareGroupOffsetsRequestPartition(0, 3)]
            )
        ],
    )
    with WireClient(broker.bootstrap) as client:
        listed = {each.group_id: each for each in client.call(ListGroupsRequest([], ["share"]), 5).groups}
        assert (listed[group].group_type, listed[group].protocol_type) == ("Share", "share")
        (described,) = client.call(ShareGroupDescribeRequest([group]), 1).groups
        assert described.group_state == "Stable"
        (member,) = described.members
        assert [each.topic_name for each in member.assignment.topic_partitions] == [topic]
        assert client.call(reset, 0).error_code == ErrorCode.NON_EMPTY_GROUP
        consumer.close()
        assert client.call(reset, 0).responses[0].partitions[0].error_code == 0
    assert lag(broker, *names) == (3, 2)
    consumer = join(*names)
    taken = take(consumer, 2)
    assert values(taken) == [3, 4]
    finish(consumer, taken)
    consumer.close()
    with WireClient(broker.bootstrap) as client:
        forget = DeleteShareGroupOffsetsRequest(group, [DeleteShareGroupOffsetsRequestTopic(topic)])
        assert client.call(forget, 0).responses[0].error_code == 0
        assert client.call(forget, 0).responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert client.call(DeleteGroupsRequest([group]), 2).results[0].error_code == 0
        (described,) = client.call(ShareGroupDescribeRequest([group]), 1).groups
        assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_without_the_feature_level_there_are_no_share_groups(
    make_broker: Callable[..., BrokerThread],
) -> None:
    broker = make_broker()
    with WireClient(broker.bootstrap) as client:
        lower = FeatureUpdateKey("share.version", 0, upgrade_type=2)
        assert client.call(UpdateFeaturesRequest(1000, [lower]), 2).error_code == 0
        (described,) = client.call(ShareGroupDescribeRequest(["g"]), 1).groups
        assert described.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_group_of_consumers_stays_one_though_it_is_empty(
    broker: BrokerThread, names: tuple[str, str]
) -> None:
    topic, group = names
    with WireClient(broker.bootstrap) as client:
        [found] = client.call(FindCoordinatorRequest(coordinator_keys=[group]), 4).coordinators
        assert found.error_code == 0
        kept = OffsetCommitRequestTopic(topic, partitions=[OffsetCommitRequestPartition(0, 7)])
        until(
            lambda: (
                client.call(OffsetCommitRequest(group, topics=[kept]), 9).topics[0].partitions[0].error_code
                == 0
            ),
            "the commit",
        )
        joined = client.call(ShareGroupHeartbeatRequest(group, "m1", 0, None, [topic]), 1)
        assert joined.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert joined.error_message == f"Group {group} is not a share group."
