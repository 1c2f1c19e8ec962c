"""librdkafka, through confluent-kafka, against a broker it takes for Kafka."""

import json
import time

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture
def admin(bootstrap):
    return AdminClient({"bootstrap.servers": bootstrap})


def produce(bootstrap, topic, records, **settings):
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    failures = []
    for key, value, headers, timestamp in records:
        producer.produce(
            topic,
            value,
            key,
            headers=headers or [],
            timestamp=timestamp or 0,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
        producer.poll(0)
    assert producer.flush(30) == 0
    assert failures == []


def consume(bootstrap, topic, start=OFFSET_BEGINNING, **settings):
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "test",
            "enable.partition.eof": True,
            "check.crcs": True,
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.assign([TopicPartition(topic, 0, start)])
    found = []
    while True:
        message = consumer.poll(30)
        assert message is not None, "nothing came within 30 s"
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF
            break
        found.append(message)
    consumer.close()
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_as_they_went_in_every_compression(bootstrap, topic, codec):
    sent = [
        (
            b"key",
            b"value " * 50,
            [("trace", b"abc"), ("trace", b"again"), ("empty", None)],
            1_700_000_000_123,
        ),
        (None, b"no key", [], 1_700_000_000_124),
        (b"tombstone", None, [], 1_700_000_000_125),
        ("ключ".encode(), "значение ☕".encode(), [], 1_700_000_000_126),
        (b"", b"", [], 1_700_000_000_127),
    ]
    produce(bootstrap, topic, sent, **{"compression.type": codec})
    found = consume(bootstrap, topic)
    assert [(m.key(), m.value(), m.headers() or [], m.timestamp()[1]) for m in found] == [
        (key, value, headers, timestamp) for key, value, headers, timestamp in sent
    ]
    assert [m.offset() for m in found] == [0, 1, 2, 3, 4]


def test_compressed_batches_stay_compressed_on_disk(broker, bootstrap, topic):
    produce(
        bootstrap,
        topic,
        [(None, b"again " * 2000, [], None)] * 50,
        **{"compression.type": "zstd", "linger.ms": 100},
    )
    assert sum(file.stat().st_size for file in (broker.data / f"{topic}-0").glob("*.log")) < 50_000


def test_large_records_up_to_the_limit_pass_and_larger_ones_are_refused(bootstrap, topic):
    produce(bootstrap, topic, [(None, b"x" * 1_000_000, [], None)], **{"message.max.bytes": 2_000_000})
    assert len(consume(bootstrap, topic)[0].value()) == 1_000_000
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 3_000_000})
    errors = []
    producer.produce(topic, b"x" * 2_000_000, on_delivery=lambda error, _: errors.append(error.name()))
    producer.flush(30)
    assert errors == ["MSG_SIZE_TOO_LARGE"]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_setting_delivers(bootstrap, topic, acks):
    produce(bootstrap, topic, [(None, b"%d" % n, [], None) for n in range(500)], acks=acks)
    assert [m.value() for m in consume(bootstrap, topic)] == [b"%d" % n for n in range(500)]


def test_an_idempotent_producer_keeps_order_over_many_batches(bootstrap, topic):
    settings = {"enable.idempotence": True, "batch.num.messages": 7, "linger.ms": 0}
    produce(bootstrap, topic, [(None, b"%d" % n, [], None) for n in range(3000)], **settings)
    assert [m.value() for m in consume(bootstrap, topic)] == [b"%d" % n for n in range(3000)]


def test_offsets_are_found_by_time(bootstrap, topic, admin):
    base = 1_700_000_000_000
    produce(bootstrap, topic, [(None, b"%d" % n, [], base + n * 1000) for n in range(100)])
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "times"})

    def at(timestamp):
        return consumer.offsets_for_times([TopicPartition(topic, 0, timestamp)], 30)[0].offset

    assert [at(base), at(base + 1), at(base + 50_000), at(base - 5)] == [0, 1, 50, 0]
    assert at(base + 99_001) == -1
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), 30) == (0, 100)
    newest = admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.max_timestamp()})
    assert next(iter(newest.values())).result(30).offset == 99
    consumer.close()


def test_reading_from_an_offset_that_is_gone_is_out_of_range(bootstrap, topic, admin):
    produce(bootstrap, topic, [(None, b"%d" % n, [], None) for n in range(10)])
    deleted = admin.delete_records([TopicPartition(topic, 0, 4)])
    assert next(iter(deleted.values())).result(30).low_watermark == 4
    assert [m.offset() for m in consume(bootstrap, topic, 0, **{"auto.offset.reset": "earliest"})] == [
        4,
        5,
        6,
        7,
        8,
        9,
    ]
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "strict", "auto.offset.reset": "error"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(30)
    assert message.error().code() == KafkaError._AUTO_OFFSET_RESET
    consumer.close()


def test_topics_are_created_described_grown_and_deleted(bootstrap, admin):
    admin.create_topics(
        [NewTopic("life", 2, config={"retention.ms": "1000", "cleanup.policy": "compact,delete"})]
    )["life"].result(30)
    assert len(admin.list_topics("life", 30).topics["life"].partitions) == 2
    admin.create_partitions([NewPartitions("life", 5)])["life"].result(30)
    assert sorted(admin.list_topics("life", 30).topics["life"].partitions) == [0, 1, 2, 3, 4]
    resource = ConfigResource(ResourceType.TOPIC, "life")
    settings = admin.describe_configs([resource])[resource].result(30)
    assert (settings["retention.ms"].value, settings["cleanup.policy"].value) == ("1000", "compact,delete")
    resource.add_incremental_config(
        ConfigEntry("retention.ms", "5000", incremental_operation=AlterConfigOpType.SET)
    )
    admin.incremental_alter_configs([resource])[resource].result(30)
    asked = ConfigResource(ResourceType.TOPIC, "life")
    assert admin.describe_configs([asked])[asked].result(30)["retention.ms"].value == "5000"
    admin.delete_topics(["life"])["life"].result(30)
    deadline = time.monotonic() + 30
    while "life" in admin.list_topics(timeout=30).topics:
        assert time.monotonic() < deadline


def test_admin_mistakes_are_told_as_kafka_tells_them(admin, topic):
    def refused(request):
        with pytest.raises(KafkaException) as error:
            next(iter(request.values())).result(30)
        return error.value.args[0]

    assert refused(admin.create_topics([NewTopic(topic, 1)])).name() == "TOPIC_ALREADY_EXISTS"
    assert refused(admin.create_topics([NewTopic("bad name!", 1)])).name() == "TOPIC_EXCEPTION"
    assert refused(admin.create_topics([NewTopic("none", 0)])).name() == "INVALID_PARTITIONS"
    too_many = refused(admin.create_topics([NewTopic("many", 1, 3)]))
    assert too_many.name() == "INVALID_REPLICATION_FACTOR"
    assert "3" in too_many.str()
    wrong = refused(admin.create_topics([NewTopic("wrong", 1, config={"retention.mss": "1"})]))
    assert wrong.name() == "INVALID_CONFIG"
    assert refused(admin.create_partitions([NewPartitions(topic, 1)])).name() == "INVALID_PARTITIONS"
    assert refused(admin.delete_topics(["nowhere"])).name() == "UNKNOWN_TOPIC_OR_PART"


def test_a_topic_appears_on_first_use(bootstrap, admin):
    produce(bootstrap, "on-first-use", [(None, b"hello", [], None)])
    assert [m.value() for m in consume(bootstrap, "on-first-use")] == [b"hello"]


def test_a_long_poll_is_woken_by_a_new_record(bootstrap, topic):
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "waiting",
            "fetch.wait.max.ms": 60000,
            "socket.timeout.ms": 70000,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert consumer.poll(0.5) is None
    produce(bootstrap, topic, [(None, b"wake up", [], None)])
    message = consumer.poll(30)
    assert message.value() == b"wake up"
    consumer.close()


def test_log_append_time_is_stamped_by_the_broker(bootstrap, admin):
    admin.create_topics([NewTopic("stamped", 1, config={"message.timestamp.type": "LogAppendTime"})])[
        "stamped"
    ].result(30)
    before = int(time.time() * 1000) - 1000
    produce(bootstrap, "stamped", [(None, b"x", [], 1_000)] * 3)
    for message in consume(bootstrap, "stamped"):
        kind, stamp = message.timestamp()
        assert kind == 2
        assert stamp >= before


def test_a_record_from_the_far_future_is_refused(bootstrap, topic):
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 30000})
    errors = []
    in_two_hours = int(time.time() * 1000) + 2 * 3600 * 1000
    producer.produce(
        topic, b"x", timestamp=in_two_hours, on_delivery=lambda error, _: errors.append(error.name())
    )
    producer.flush(30)
    assert errors == ["INVALID_TIMESTAMP"]


def test_many_consumers_each_get_everything(bootstrap, topic):
    produce(bootstrap, topic, [(None, json.dumps({"n": n}).encode(), [], None) for n in range(200)])
    for _ in range(5):
        assert len(consume(bootstrap, topic)) == 200
