"""An empty cleanup.policy: neither age nor size removes records, only DeleteRecords does."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from headrace.testing.broker import BrokerThread
from tests.waiting import until

SHORT = {"retention.ms": "1", "retention.bytes": "1", "segment.bytes": "1048576", "file.delete.delay.ms": "0"}
RECORDS = 20


@pytest.fixture(params=["on the topic", "on the broker", "by removing the last value"])
def kept(request, tmp_path):
    """A broker that applies retention all the time, with a topic that has no policy and one that deletes."""
    settings = {"log.retention.check.interval.ms": "50"}
    if request.param == "on the broker":
        settings["log.cleanup.policy"] = ""
    with BrokerThread(tmp_path / "data", settings=settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        empty = {"cleanup.policy": ""} if request.param == "on the topic" else {}
        topics = [
            NewTopic("kept", 1, 1, config={**SHORT, **empty}),
            NewTopic("deleted", 1, 1, config={**SHORT, "cleanup.policy": "delete"}),
        ]
        for made in admin.create_topics(topics).values():
            made.result(30)
        if request.param == "by removing the last value":
            entry = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SUBTRACT)
            resource = ConfigResource(ResourceType.TOPIC, "kept", incremental_configs=[entry])
            admin.incremental_alter_configs([resource])[resource].result(30)
        yield broker


def test_only_delete_records_removes_what_a_topic_without_a_policy_holds(kept):
    admin = AdminClient({"bootstrap.servers": kept.bootstrap})
    asked = ConfigResource(ResourceType.TOPIC, "kept")
    assert admin.describe_configs([asked])[asked].result(30)["cleanup.policy"].value == ""
    producer = Producer({"bootstrap.servers": kept.bootstrap, "linger.ms": 0})
    for _ in range(RECORDS):
        for topic in ("kept", "deleted"):
            producer.produce(topic, bytes(300_000), partition=0)
        assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": kept.bootstrap, "group.id": "offsets"})

    def offsets(topic: str) -> tuple[int, int]:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)

    until(lambda: offsets("deleted") == (RECORDS, RECORDS))
    assert offsets("kept") == (0, RECORDS)
    segments = len(list((kept.data / "kept-0").glob("*.log")))
    assert segments > 5
    until_ten = TopicPartition("kept", 0, 10)
    (result,) = admin.delete_records([until_ten]).values()
    assert result.result(30).low_watermark == 10
    until(lambda: len(list((kept.data / "kept-0").glob("*.log"))) < segments)
    assert offsets("kept") == (10, RECORDS)
    consumer.close()
