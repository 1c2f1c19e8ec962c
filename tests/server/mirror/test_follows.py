"""What else a mirror follows: partitions, settings, the log's start, groups, open and ended transactions; and what it reports."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headrace.client.administration import mirrors
from headrace.testing.broker import BrokerThread
from headrace.testing.wire import WireClient
from headrace.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.wire.messages.init_producer_id import InitProducerIdRequest
from tests.server.mirror.dc import Site, produce, segments
from tests.waiting import until


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    with BrokerThread(tmp_path_factory.mktemp("source")) as broker:
        yield broker


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    with BrokerThread(tmp_path_factory.mktemp("target")) as broker:
        Site(broker.bootstrap).allow_links()
        yield broker


@pytest.fixture
def site(target):
    return Site(target.bootstrap)


@pytest.fixture
def mirrored(source, site):
    """A topic with a link of its own, under the topic's name."""

    def make(groups=(), partitions=1, **config):
        topic = source.create_topic(partitions=partitions, config=config)
        site.link(source.bootstrap, topics=[topic], groups=groups, name=topic)
        until(lambda: site.topic(topic, topic) is not None)
        site.names[topic] = topic
        return topic

    site.names = {}
    plain = site.topic
    site.topic = lambda name, link=None: plain(name, link or site.names.get(name, name))
    return make


def ask(broker, request, version):
    with WireClient(broker.bootstrap) as client:
        return client.call(request, version)


def read(bootstrap, topic, isolation, start=0):
    """The values a reader gets up to the end that its isolation shows it."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, start)])
    values = []
    while (message := consumer.poll(30)) is not None and not message.error():
        values.append((message.offset(), message.value()))
    consumer.close()
    return values


def test_partitions_and_settings_are_followed(source, target, site, mirrored):
    topic = mirrored(**{"retention.ms": 12345678})

    def settings():
        async def look(node):
            return dict(node.cluster.image.topic_configs(topic))

        return target.run(look)

    assert settings() == {"retention.ms": "12345678"}
    ask(source, CreatePartitionsRequest([CreatePartitionsTopic(topic, 3)], 10_000), 3)
    produce(source.bootstrap, topic, b"in a new partition", partition=2)
    site.await_copy(topic, {0: 0, 1: 0, 2: 1})
    change = [AlterableConfig("cleanup.policy", 0, "compact"), AlterableConfig("retention.ms", 1, None)]
    ask(source, IncrementalAlterConfigsRequest([AlterConfigsResource(2, topic, change)]), 1)
    until(lambda: settings() == {"cleanup.policy": "compact"}, "the settings")


def test_the_start_of_the_log_is_followed(source, target, site, mirrored):
    topic = mirrored()
    for number in range(4):
        produce(source.bootstrap, topic, b"%d" % number, b"x")
    site.await_copy(topic, {0: 8})
    request = DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, 5)])], 10_000)
    ask(source, request, 2)

    def start():
        async def look(node):
            return node.replicas.find(topic.encode(), 0, by_id=False).log.log_start_offset

        return target.run(look)

    until(lambda: start() == 5, "the log start")


def test_a_mirror_that_comes_late_begins_where_the_source_does_in_the_middle_of_a_batch(
    source, target, site, mirrored
):
    topic = source.create_topic()
    produce(source.bootstrap, topic, *[b"%d" % number for number in range(10)])
    produce(source.bootstrap, topic, b"10")
    request = DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, 4)])], 10_000)
    ask(source, request, 2)
    site.link(source.bootstrap, topics=[topic], name=topic)
    site.await_copy(topic, {0: 11})
    assert [offset for offset, _ in read(target.bootstrap, topic, "read_committed", 4)] == list(range(4, 11))
    assert site.topic(topic).positions[0].missed_records == 0


def test_records_that_the_source_deleted_first_are_counted(source, target, site, mirrored):
    topic = mirrored()
    produce(source.bootstrap, topic, b"0", b"1")
    site.await_copy(topic, {0: 2})
    site.call(mirrors.pause, topic)
    for number in range(2, 8):
        produce(source.bootstrap, topic, b"%d" % number)
    request = DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, 6)])], 10_000)
    ask(source, request, 2)
    site.call(mirrors.resume, topic)
    site.await_copy(topic, {0: 8})
    assert site.topic(topic).positions[0].missed_records == 4
    assert [offset for offset, _ in read(target.bootstrap, topic, "read_committed", 6)] == [6, 7]


def test_a_topic_made_again_at_the_source_is_reported_and_its_copy_kept(source, target, site, mirrored):
    topic = mirrored()
    produce(source.bootstrap, topic, b"of the first")
    site.await_copy(topic, {0: 1})
    ask(source, DeleteTopicsRequest(topics=[DeleteTopicState(topic)], timeout_ms=10_000), 6)
    source.create_topic(topic)
    site.await_state(topic, "failed")
    assert "made again" in site.topic(topic).reason
    assert read(target.bootstrap, topic, "read_committed") == [(0, b"of the first")]
    # It may go now, and comes back as the new one.
    produce(source.bootstrap, topic, b"of the second")
    ask(target, DeleteTopicsRequest(topics=[DeleteTopicState(topic)], timeout_ms=10_000), 6)
    site.await_copy(topic, {0: 1})
    assert read(target.bootstrap, topic, "read_committed") == [(0, b"of the second")]


def test_a_deleted_topic_is_reported(source, site, mirrored):
    topic = mirrored()
    ask(source, DeleteTopicsRequest(topics=[DeleteTopicState(topic)], timeout_ms=10_000), 6)
    site.await_state(topic, "failed")
    assert "was deleted at the source" in site.topic(topic).reason


def test_a_topic_that_is_here_already_is_left_alone(source, target, site):
    topic = source.create_topic()
    target.create_topic(topic)
    site.link(source.bootstrap, topics=[topic], name=topic)

    def obstacle():
        (link,) = (each for each in site.call(mirrors.describe) if each.name == topic)
        return link.obstacles.get(topic, "")

    until(lambda: "is not a mirror of this link" in obstacle(), "the report")
    assert produce(target.bootstrap, topic, b"mine").error_code == 0


def test_committed_offsets_are_copied_exactly(source, target, site, mirrored):
    group = "billing"
    topic = mirrored(groups=[group])
    produce(source.bootstrap, topic, *[b"%d" % number for number in range(6)])

    def commit(offset):
        consumer = Consumer({"bootstrap.servers": source.bootstrap, "group.id": group})
        consumer.commit(offsets=[TopicPartition(topic, 0, offset, metadata="m")], asynchronous=False)
        consumer.close()

    def committed():
        consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": group})
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
        consumer.close()
        return found.offset

    commit(4)
    until(lambda: committed() == 4, "the offset")
    site.await_copy(topic, {0: 6})
    commit(2)
    until(lambda: committed() == 2, "an offset that was set back")


def test_a_failover_aborts_what_was_open_and_shows_what_was_decided(source, target, site, mirrored):
    topic = mirrored()

    def begin(name):
        producer = Producer({"bootstrap.servers": source.bootstrap, "transactional.id": f"{topic}-{name}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(topic, name)
        producer.flush(30)
        return producer

    committed, aborted, still_open = begin("committed"), begin("aborted"), begin("open")
    committed.commit_transaction(30)
    aborted.abort_transaction(30)
    produce(source.bootstrap, topic, b"after")
    site.await_copy(topic, {0: 6})
    # Cut in the middle of a transaction: read_committed readers stop before it, as at the source.
    assert read(source.bootstrap, topic, "read_committed") == [(0, b"committed")]
    assert read(target.bootstrap, topic, "read_committed") == [(0, b"committed")]
    site.call(mirrors.fail_over, topic)
    site.await_state(topic, "failed over")
    assert produce(target.bootstrap, topic, b"new").error_code == 0
    # The marker of the abort and the new record may come in either order.
    until(
        lambda: (
            [value for _, value in read(target.bootstrap, topic, "read_committed")]
            == [b"committed", b"after", b"new"]
        ),
        "the end of the open transaction",
    )
    assert segments(target.data, topic).startswith(segments(source.data, topic))
    still_open.abort_transaction(30)


def test_new_producer_ids_are_above_all_mirrored_ones(source, target, site, mirrored):
    mine = ask(source, InitProducerIdRequest(None, 0), 4).producer_id
    before = ask(target, InitProducerIdRequest(None, 0), 4).producer_id
    mirrored()
    after = ask(target, InitProducerIdRequest(None, 0), 4).producer_id
    assert after > mine + 1_000_000
    assert after > before


def test_a_link_to_the_cluster_itself_says_so_and_follows_nothing(site, target):
    topic = target.create_topic()
    site.link(target.bootstrap, topics=[topic], name="itself")

    def link():
        return next(each for each in site.call(mirrors.describe) if each.name == "itself")

    until(lambda: any("it is this cluster itself" in each for each in link().trouble), "the sentence")
    assert link().topics == []
    site.call(mirrors.delete, "itself")
