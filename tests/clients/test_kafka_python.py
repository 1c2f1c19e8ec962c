"""kafka-python, a client written from the protocol alone."""

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewPartitions, NewTopic
from kafka.errors import TopicAlreadyExistsError


def read(bootstrap, topic, count, **settings):
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, consumer_timeout_ms=30000, group_id=None, **settings
    )
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    found = []
    for record in consumer:
        found.append(record)
        if len(found) == count:
            break
    consumer.close()
    return found


@pytest.mark.parametrize("codec", [None, "gzip", "lz4", "zstd", "snappy"])
def test_records_come_back_as_they_went(bootstrap, topic, codec):
    producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type=codec, acks="all", linger_ms=20)
    sent = [
        producer.send(
            topic, b"value %d" % n, key=b"key", headers=[("h", b"1")], timestamp_ms=1_700_000_000_000 + n
        )
        for n in range(200)
    ]
    assert [future.get(30).offset for future in sent] == list(range(200))
    producer.send(topic, None, key=b"gone").get(30)
    producer.close()
    found = read(bootstrap, topic, 201)
    assert [record.value for record in found] == [b"value %d" % n for n in range(200)] + [None]
    assert found[0].headers == [("h", b"1")]
    assert found[5].timestamp == 1_700_000_000_005


def test_time_lookups_and_ends(bootstrap, topic):
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for n in range(10):
        producer.send(topic, b"x", timestamp_ms=1_700_000_000_000 + n)
    producer.flush(30)
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    partition = TopicPartition(topic, 0)
    assert consumer.beginning_offsets([partition])[partition] == 0
    assert consumer.end_offsets([partition])[partition] == 10
    assert consumer.offsets_for_times({partition: 1_700_000_000_004})[partition].offset == 4
    consumer.close()


def test_admin_calls(bootstrap):
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic("kp-admin", 1, 1)])
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([NewTopic("kp-admin", 1, 1)])
    admin.create_partitions({"kp-admin": NewPartitions(3)})
    (described,) = admin.describe_topics(["kp-admin"])
    assert len(described["partitions"]) == 3
    admin.delete_topics(["kp-admin"])
    admin.close()
