"""The admin clients people use, against a real broker: create, describe, grow, configure, delete."""

import pytest


def test_confluent_kafka_administers_topics_and_settings(bootstrap):
    from confluent_kafka import KafkaException, TopicCollection
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        NewPartitions,
        NewTopic,
        ResourceType,
    )

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("cf", 2, 1, config={"retention.ms": "1000"})])["cf"].result(30)
    with pytest.raises(KafkaException) as caught:
        admin.create_topics([NewTopic("cf", 2, 1)])["cf"].result(30)
    assert caught.value.args[0].str() == "Topic 'cf' already exists."
    admin.create_partitions([NewPartitions("cf", 5)])["cf"].result(30)
    described = admin.describe_topics(TopicCollection(["cf"]))["cf"].result(30)
    assert [partition.leader.id for partition in described.partitions] == [1] * 5
    assert admin.list_topics(timeout=30).topics["cf"].error is None

    resource = ConfigResource(ResourceType.TOPIC, "cf")
    configs = admin.describe_configs([resource])[resource].result(30)
    assert configs["retention.ms"].value == "1000"
    change = ConfigResource(
        ResourceType.TOPIC,
        "cf",
        incremental_configs=[ConfigEntry("retention.ms", "7", incremental_operation=AlterConfigOpType.SET)],
    )
    admin.incremental_alter_configs([change])[change].result(30)
    assert admin.describe_configs([resource])[resource].result(30)["retention.ms"].value == "7"

    cluster = admin.describe_cluster(include_authorized_operations=True).result(30)
    assert (cluster.controller.id, len(cluster.nodes), len(cluster.cluster_id)) == (1, 1, 22)
    admin.delete_topics(["cf"])["cf"].result(30)
    assert "cf" not in admin.list_topics(timeout=30).topics


def test_kafka_python_administers_topics_and_settings(bootstrap):
    from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic
    from kafka.errors import TopicAlreadyExistsError

    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics([NewTopic("kp", 2, 1, topic_configs={"retention.ms": "1000"})])
        with pytest.raises(TopicAlreadyExistsError):
            admin.create_topics([NewTopic("kp", 2, 1)])
        admin.create_partitions({"kp": NewPartitions(4)})
        (topic,) = admin.describe_topics(["kp"])
        assert len(topic["partitions"]) == 4
        assert "kp" in admin.list_topics()
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "kp", {"retention.ms": "7"})])
        described = repr(admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "kp")]))
        assert "'7'" in described
        assert len(admin.describe_cluster()["brokers"]) == 1
        admin.delete_topics(["kp"])
        assert "kp" not in admin.list_topics()
    finally:
        admin.close()


async def test_aiokafka_administers_topics_and_settings(bootstrap):
    from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        created = await admin.create_topics([NewTopic("ai", 2, 1, topic_configs={"retention.ms": "1000"})])
        assert created.topic_errors[0][1] == 0
        again = await admin.create_topics([NewTopic("ai", 2, 1)])
        assert again.topic_errors[0][1] == 36
        await admin.create_partitions({"ai": NewPartitions(4)})
        (topic,) = await admin.describe_topics(["ai"])
        assert len(topic["partitions"]) == 4
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "ai", {"retention.ms": "7"})])
        described = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "ai")])
        assert "'7'" in repr(described)
        await admin.delete_topics(["ai"])
        assert "ai" not in await admin.list_topics()
    finally:
        await admin.close()
