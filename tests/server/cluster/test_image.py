import json
import uuid

import pytest

from headrace.server.cluster.change_codec import decode_changes, encode_changes
from headrace.server.cluster.changes import (
    BrokerChanged,
    BrokerUnregistered,
    Change,
    ClusterNamed,
    ControllerElected,
    PartitionsChanged,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)
from headrace.server.cluster.differences import apply_changes, changes_between, describe_image
from headrace.server.cluster.ids import format_id, parse_id, random_id
from headrace.server.cluster.image import (
    Broker,
    ConfigResource,
    Endpoint,
    MetadataImage,
    Partition,
    ResourceType,
    Topic,
)
from headrace.server.cluster.policy_changes import (
    AclChanged,
    ConfigsChanged,
    FeatureChanged,
    QuotaChanged,
    ScramChanged,
)

TOPIC = Topic(
    "orders",
    uuid.UUID(int=7),
    (Partition((1, 2), (1, 2), 1), Partition((2, 1), (2,), 2, 3, 4, (1,), (2,), True)),
)
RESOURCE = ConfigResource(ResourceType.TOPIC, "orders")
BROKER = Broker(1, 99, (Endpoint("PLAINTEXT", "localhost", 9092, "PLAINTEXT"),), "r1", "h1", False, True)

EVERYTHING: list[Change] = [
    ClusterNamed("abc"),
    ControllerElected(1, 5),
    BrokerChanged(BROKER),
    TopicCreated(TOPIC),
    ConfigsChanged(RESOURCE, {"retention.ms": "1", "segment.ms": "2"}),
    ProducerIdsAllocated(1000),
    FeatureChanged("transaction.version", 2),
    AclChanged("a1", (2, "orders", 3, "User:ann", "*", 4, 3)),
    QuotaChanged((("user", "ann"), ("client-id", None)), {"producer_byte_rate": 1024.0}),
    ScramChanged("ann", "SCRAM-SHA-256", {"salt": "x", "iterations": "4096"}),
]

UNDOING: list[Change] = [
    BrokerUnregistered(1),
    TopicDeleted(TOPIC.id),
    FeatureChanged("transaction.version", None),
    AclChanged("a1", None),
    QuotaChanged((("user", "ann"), ("client-id", None)), {"producer_byte_rate": None}),
    ScramChanged("ann", "SCRAM-SHA-256", None),
]


def test_every_change_survives_being_written_down() -> None:
    changes = [*EVERYTHING, PartitionsChanged(TOPIC.id, {1: Partition((2,), (2,), -1, 9, 9)}), *UNDOING]
    assert decode_changes(encode_changes(changes)) == changes


def test_long_lists_of_changes_are_compressed_and_read_back() -> None:
    changes: list[Change] = [
        TopicCreated(Topic(f"t{number}", random_id(), (Partition((1,), (1,), 1),))) for number in range(200)
    ]
    data = encode_changes(changes)
    assert data[:1] != b"["
    assert decode_changes(data) == changes


def test_a_change_of_a_later_version_is_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match="newer one"):
        decode_changes(json.dumps([["hologram", 1]]).encode())


def test_an_image_can_be_made_again_from_its_description() -> None:
    image = apply_changes(MetadataImage(), 3, EVERYTHING)
    assert apply_changes(MetadataImage(), 3, describe_image(image)) == image


def test_what_can_be_made_can_be_unmade() -> None:
    image = apply_changes(apply_changes(MetadataImage(), 0, EVERYTHING), 1, UNDOING)
    assert (image.brokers, image.topics, image.topics_by_id, image.configs) == ({}, {}, {}, {})
    assert (image.features, image.acls, image.quotas, image.scram) == ({}, {}, {}, {})


def test_the_changes_between_two_images_lead_from_one_to_the_other() -> None:
    empty = MetadataImage()
    full = apply_changes(empty, 1, EVERYTHING)
    other = Topic("orders", uuid.UUID(int=8), (Partition((1,), (1,), 1),))
    grown = apply_changes(
        full,
        2,
        [
            PartitionsChanged(TOPIC.id, {0: Partition((1, 2), (1,), 1, 1, 1), 2: Partition((1,), (1,), 1)}),
            ConfigsChanged(RESOURCE, {"retention.ms": None, "flush.ms": "5"}),
            QuotaChanged((("user", "ann"), ("client-id", None)), {"consumer_byte_rate": 1.0}),
        ],
    )
    renewed = apply_changes(
        full, 2, [TopicDeleted(TOPIC.id), TopicCreated(other), ConfigsChanged(RESOURCE, {"segment.ms": "9"})]
    )
    # Partitions are never taken away, so no history leads from `grown` back to `full`.
    images = (empty, full, grown, renewed)
    for old, new in ((old, new) for old in images for new in images if (old, new) != (grown, full)):
        assert apply_changes(old, new.offset, changes_between(old, new)) == new


def test_a_change_leaves_the_old_image_as_it_was_and_shares_what_it_does_not_touch() -> None:
    topics: list[Change] = [
        TopicCreated(Topic(f"t{number}", uuid.UUID(int=number + 1), (Partition((1,), (1,), 1),) * 5))
        for number in range(1000)
    ]
    old = apply_changes(MetadataImage(), 0, topics)
    new = apply_changes(old, 1, [PartitionsChanged(uuid.UUID(int=3), {4: Partition((1,), (1,), -1, 1, 1)})])
    assert old.partition("t2", 4) == Partition((1,), (1,), 1)
    assert new.partition("t2", 4) == Partition((1,), (1,), -1, 1, 1)
    assert new.topics_by_id[uuid.UUID(int=3)] is new.topics["t2"]
    assert new.topics["t5"] is old.topics["t5"]
    assert new.configs is old.configs
    assert new.topic_configs("t5") is old.topic_configs("t5")
    assert new.brokers is old.brokers


def test_partitions_added_keep_their_order() -> None:
    image = apply_changes(MetadataImage(), 0, [TopicCreated(TOPIC)])
    added = {3: Partition((3,), (3,), 3), 2: Partition((2,), (2,), 2)}
    image = apply_changes(image, 1, [PartitionsChanged(TOPIC.id, added)])
    assert [partition.replicas for partition in image.topics["orders"].partitions] == [
        (1, 2),
        (2, 1),
        (2,),
        (3,),
    ]


def test_the_partitions_of_a_broker_are_those_with_a_replica_on_it() -> None:
    image = apply_changes(MetadataImage(), 0, [TopicCreated(TOPIC)])
    assert [(topic.name, index) for topic, index, _ in image.partitions_of(2)] == [
        ("orders", 0),
        ("orders", 1),
    ]
    assert list(image.partitions_of(3)) == []


def test_ids_are_written_as_kafka_writes_them() -> None:
    identifier = uuid.UUID("6d0c1b2e-9a3f-4c57-8f10-2b6f0c9d1e2f")
    assert format_id(identifier) == "bQwbLpo_TFePECtvDJ0eLw"
    assert parse_id("bQwbLpo_TFePECtvDJ0eLw") == identifier
    assert not any(format_id(random_id()).startswith("-") for _ in range(500))
    with pytest.raises(ValueError, match="22 base64"):
        parse_id("short")
