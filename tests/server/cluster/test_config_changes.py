from collections.abc import Callable, Iterable

import pytest

from headrace.server.cluster.config_changes import ConfigOp, OpType, incremental_alter, replace_all
from headrace.server.cluster.differences import apply_changes
from headrace.server.cluster.image import Broker, ConfigResource, MetadataImage, ResourceType
from headrace.server.cluster.policy_changes import ConfigsChanged
from headrace.server.cluster.topics import create_topics
from headrace.server.config.broker import BrokerConfig
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.create_topics import CreatableTopic

CONFIG = BrokerConfig.load({})
TOPIC = ConfigResource(ResourceType.TOPIC, "orders")
CLUSTER = ConfigResource(ResourceType.BROKER, "")
BROKER = ConfigResource(ResourceType.BROKER, "1")
SET, DELETE, APPEND, SUBTRACT = OpType.SET, OpType.DELETE, OpType.APPEND, OpType.SUBTRACT


@pytest.fixture
def image(
    image_of: Callable[[Iterable[Broker]], MetadataImage], broker: Callable[..., Broker]
) -> MetadataImage:
    empty = image_of([broker(1)])
    return apply_changes(empty, 1, create_topics(empty, CONFIG, [CreatableTopic("orders", 1, 1)]).changes)


def alter(image: MetadataImage, resource: ConfigResource, *ops: ConfigOp) -> MetadataImage:
    outcome = incremental_alter(image, CONFIG, {resource: ops})
    assert outcome.result == {resource: None}, outcome.result
    return apply_changes(image, image.offset + 1, outcome.changes)


def test_settings_are_set_and_taken_away_one_by_one(image: MetadataImage) -> None:
    image = alter(image, TOPIC, ConfigOp("retention.ms", SET, "5"), ConfigOp("segment.ms", SET, "6"))
    assert image.topic_configs("orders") == {"retention.ms": "5", "segment.ms": "6"}
    image = alter(image, TOPIC, ConfigOp("retention.ms", DELETE))
    assert image.topic_configs("orders") == {"segment.ms": "6"}


def test_lists_grow_and_shrink_from_their_default(image: MetadataImage) -> None:
    image = alter(image, TOPIC, ConfigOp("cleanup.policy", APPEND, "compact"))
    assert image.topic_configs("orders") == {"cleanup.policy": "delete,compact"}
    image = alter(image, TOPIC, ConfigOp("cleanup.policy", APPEND, "compact"))
    image = alter(image, TOPIC, ConfigOp("cleanup.policy", SUBTRACT, "delete"))
    assert image.topic_configs("orders") == {"cleanup.policy": "compact"}


def test_a_change_that_changes_nothing_writes_nothing(image: MetadataImage) -> None:
    image = alter(image, TOPIC, ConfigOp("retention.ms", SET, "5"))
    assert incremental_alter(image, CONFIG, {TOPIC: [ConfigOp("retention.ms", SET, "5")]}).changes == []


def test_the_older_way_replaces_everything(image: MetadataImage) -> None:
    image = alter(image, TOPIC, ConfigOp("retention.ms", SET, "5"))
    outcome = replace_all(image, CONFIG, {TOPIC: {"segment.ms": "9"}})
    assert apply_changes(image, 3, outcome.changes).topic_configs("orders") == {"segment.ms": "9"}


def test_brokers_and_the_whole_cluster_have_dynamic_settings(image: MetadataImage) -> None:
    image = alter(image, CLUSTER, ConfigOp("log.retention.ms", SET, "5"))
    image = alter(
        image, BROKER, ConfigOp("log.retention.ms", SET, "6"), ConfigOp("max.connections", SET, "7")
    )
    assert image.cluster_configs() == {"log.retention.ms": "5"}
    assert image.broker_configs(1) == {"log.retention.ms": "6", "max.connections": "7"}


@pytest.mark.parametrize(
    ("resource", "ops", "code", "sentence"),
    [
        (TOPIC, [ConfigOp("retention.ms", SET, "-9")], ErrorCode.INVALID_CONFIG, "at least -1"),
        (
            TOPIC,
            [ConfigOp("no.such", SET, "1")],
            ErrorCode.INVALID_CONFIG,
            "Unknown topic config name: no.such",
        ),
        (TOPIC, [ConfigOp("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG, "its type is not LIST"),
        (TOPIC, [ConfigOp("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST, "Null value not supported"),
        (
            TOPIC,
            [ConfigOp("retention.ms", SET, "1"), ConfigOp("retention.ms", DELETE)],
            ErrorCode.INVALID_REQUEST,
            "duplicate config keys",
        ),
        (
            TOPIC,
            [ConfigOp("cleanup.policy", APPEND, "shrink")],
            ErrorCode.INVALID_CONFIG,
            "cleanup.policy",
        ),
        (
            TOPIC,
            [ConfigOp("min.compaction.lag.ms", SET, "9"), ConfigOp("max.compaction.lag.ms", SET, "8")],
            ErrorCode.INVALID_CONFIG,
            "conflict topic config setting",
        ),
        (
            ConfigResource(ResourceType.TOPIC, "absent"),
            [ConfigOp("retention.ms", SET, "1")],
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "does not exist",
        ),
        (
            ConfigResource(ResourceType.TOPIC, ""),
            [ConfigOp("retention.ms", SET, "1")],
            ErrorCode.INVALID_REQUEST,
            "Default topic resources",
        ),
        (
            CLUSTER,
            [ConfigOp("node.id", SET, "1")],
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically",
        ),
        (
            CLUSTER,
            [ConfigOp("ssl.keystore.location", SET, "/keys")],
            ErrorCode.INVALID_REQUEST,
            "broker id must be specified",
        ),
        (CLUSTER, [ConfigOp("log.retention.ms", SET, "0")], ErrorCode.INVALID_CONFIG, "unlimited (-1)"),
        (CLUSTER, [ConfigOp("message.max.bytes", SET, "x")], ErrorCode.INVALID_CONFIG, "Not a number"),
        (
            ConfigResource(ResourceType.BROKER, "7"),
            [ConfigOp("max.connections", SET, "1")],
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "No broker with id 7 found",
        ),
        (
            ConfigResource(ResourceType.BROKER, "one"),
            [ConfigOp("max.connections", SET, "1")],
            ErrorCode.INVALID_REQUEST,
            "base 10 number",
        ),
        (
            ConfigResource(ResourceType.GROUP, "g"),
            [ConfigOp("colour", SET, "1")],
            ErrorCode.INVALID_CONFIG,
            "Unknown group config name",
        ),
        (
            ConfigResource(ResourceType.CLIENT_METRICS, "m"),
            [ConfigOp("interval.ms", SET, "1")],
            ErrorCode.INVALID_REQUEST,
            "interval must be between 100 and 3600000 (1 hour)",
        ),
    ],
)
def test_what_cannot_be_changed_is_refused_in_kafkas_words(
    image: MetadataImage, resource: ConfigResource, ops: list[ConfigOp], code: ErrorCode, sentence: str
) -> None:
    outcome = incremental_alter(image, CONFIG, {resource: ops})
    error = outcome.result[resource]
    assert error is not None
    assert (error.code, sentence in error.message) == (code, True), error.message
    assert outcome.changes == []


def test_a_wrong_resource_does_not_hold_back_the_others(image: MetadataImage) -> None:
    requested = {
        TOPIC: [ConfigOp("retention.ms", SET, "x")],
        CLUSTER: [ConfigOp("max.connections", SET, "9")],
    }
    outcome = incremental_alter(image, CONFIG, requested)
    assert outcome.result[TOPIC] is not None
    assert outcome.result[CLUSTER] is None
    assert apply_changes(image, 2, outcome.changes).cluster_configs() == {"max.connections": "9"}


def test_what_an_earlier_version_has_stored_can_be_taken_away_though_it_cannot_be_set_any_more(
    image: MetadataImage,
) -> None:
    broker = ConfigResource(ResourceType.BROKER, "1")
    stored = apply_changes(image, image.offset, [ConfigsChanged(broker, {"listeners": "PLAINTEXT://:1"})])
    outcome = incremental_alter(stored, CONFIG, {broker: [ConfigOp("listeners", DELETE)]})
    assert outcome.result[broker] is None
    assert outcome.changes == [ConfigsChanged(broker, {"listeners": None})]
