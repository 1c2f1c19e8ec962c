import itertools
import logging

import pytest

from headrace.wire.errors import ErrorCode
from headrace.wire.messages import alter_configs, incremental_alter_configs
from headrace.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from headrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from headrace.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from headrace.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND = 0, 1, 2
_numbers = itertools.count()


@pytest.fixture
def name(wire):
    made = f"config-{next(_numbers)}"
    wire.ask(CreateTopicsRequest([CreatableTopic(made, 1, 1)]), 7, CreateTopicsResponse)
    return made


def describe(wire, kind, name, keys=None, version=4, **more):
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, keys)], **more)
    (result,) = wire.ask(request, version, DescribeConfigsResponse).results
    return result


def values(wire, kind, name):
    return {config.name: config.value for config in describe(wire, kind, name).configs}


def alter(wire, kind, name, *ops, version=1, **more):
    configs = [incremental_alter_configs.AlterableConfig(*op) for op in ops]
    resource = incremental_alter_configs.AlterConfigsResource(kind, name, configs)
    request = IncrementalAlterConfigsRequest([resource], **more)
    (response,) = wire.ask(request, version, IncrementalAlterConfigsResponse).responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    return response


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_describes_a_topic(wire, name, version):
    alter(wire, TOPIC, name, ("retention.ms", SET, "42"))
    result = describe(wire, TOPIC, name, version=version, include_synonyms=True, include_documentation=True)
    assert (result.error_code, len(result.configs)) == (0, 34)
    config = next(config for config in result.configs if config.name == "retention.ms")
    assert (config.value, config.config_source, config.read_only, config.is_sensitive) == (
        "42",
        1,
        False,
        False,
    )
    synonyms = [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms]
    assert synonyms == [("retention.ms", "42", 1), ("log.retention.hours", "168", 5)]
    if version >= 3:
        assert config.config_type == 5
        assert "dropped" in config.documentation


def test_only_the_settings_asked_for_are_described(wire, name):
    result = describe(wire, TOPIC, name, ["segment.bytes", "no.such.setting"])
    assert [config.name for config in result.configs] == ["segment.bytes"]
    assert result.configs[0].synonyms == []
    assert result.configs[0].documentation is None


def test_this_brokers_settings_are_described(wire):
    configs = {config.name: config for config in describe(wire, BROKER, "1").configs}
    assert configs["listeners"].config_source == 4
    assert configs["num.partitions"].read_only
    assert not configs["log.retention.ms"].read_only


@pytest.mark.parametrize(
    ("kind", "asked", "code", "sentence"),
    [
        (TOPIC, "not-here", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "does not exist"),
        (TOPIC, "no spaces", ErrorCode.INVALID_TOPIC_EXCEPTION, "ASCII"),
        (BROKER, "7", ErrorCode.INVALID_REQUEST, "expected 1 or empty string, but received 7"),
        (BROKER, "one", ErrorCode.INVALID_REQUEST, "must be an integer"),
        (LOGGER, "", ErrorCode.INVALID_REQUEST, "must not be empty"),
        (GROUP, "", ErrorCode.INVALID_REQUEST, "must not be empty"),
        (99, "x", ErrorCode.INVALID_REQUEST, "Unsupported resource type"),
    ],
)
def test_what_cannot_be_described_says_why(wire, kind, asked, code, sentence):
    result = describe(wire, kind, asked)
    assert result.error_code == code
    assert sentence in result.error_message


@pytest.mark.parametrize("version", range(2))
def test_settings_change_one_by_one(wire, name, version):
    assert alter(wire, TOPIC, name, ("retention.ms", SET, "5"), version=version).error_code == 0
    assert alter(wire, TOPIC, name, ("cleanup.policy", APPEND, "compact"), version=version).error_code == 0
    assert values(wire, TOPIC, name)["retention.ms"] == "5"
    assert values(wire, TOPIC, name)["cleanup.policy"] == "delete,compact"
    assert alter(wire, TOPIC, name, ("retention.ms", DELETE, None), version=version).error_code == 0
    assert values(wire, TOPIC, name)["retention.ms"] == "604800000"


@pytest.mark.parametrize("version", range(3))
def test_the_older_way_replaces_what_a_topic_had(wire, name, version):
    alter(wire, TOPIC, name, ("retention.ms", SET, "5"))
    resource = alter_configs.AlterConfigsResource(
        TOPIC, name, [alter_configs.AlterableConfig("segment.ms", "6")]
    )
    (response,) = wire.ask(AlterConfigsRequest([resource]), version, AlterConfigsResponse).responses
    assert response.error_code == 0
    assert values(wire, TOPIC, name)["retention.ms"] == "604800000"
    assert values(wire, TOPIC, name)["segment.ms"] == "6"


def test_validate_only_changes_nothing(wire, name):
    assert alter(wire, TOPIC, name, ("retention.ms", SET, "5"), validate_only=True).error_code == 0
    assert values(wire, TOPIC, name)["retention.ms"] == "604800000"


@pytest.mark.parametrize(
    ("kind", "ops", "code"),
    [
        (TOPIC, [("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        (TOPIC, [("retention.ms", 9, "5")], ErrorCode.INVALID_REQUEST),
        (99, [("retention.ms", SET, "5")], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_what_cannot_be_changed_says_why(wire, name, kind, ops, code):
    response = alter(wire, kind, name, *ops)
    assert response.error_code == code
    assert response.error_message


def test_a_resource_named_twice_is_refused_both_times(wire, name):
    resource = incremental_alter_configs.AlterConfigsResource(TOPIC, name, [])
    request = IncrementalAlterConfigsRequest([resource, resource])
    responses = wire.ask(request, 1, IncrementalAlterConfigsResponse).responses
    assert [response.error_code for response in responses] == [ErrorCode.INVALID_REQUEST] * 2


def test_a_cluster_wide_default_holds_for_topics_without_their_own(make_broker, wire_to):
    wire = wire_to(make_broker())
    wire.ask(CreateTopicsRequest([CreatableTopic("t", 1, 1)]), 7, CreateTopicsResponse)
    assert alter(wire, BROKER, "", ("log.retention.ms", SET, "9")).error_code == 0
    assert values(wire, TOPIC, "t")["retention.ms"] == "9"
    assert values(wire, BROKER, "") == {"log.retention.ms": "9"}
    assert alter(wire, BROKER, "1", ("log.retention.ms", SET, "10")).error_code == 0
    assert values(wire, TOPIC, "t")["retention.ms"] == "10"


def test_loggers_are_read_and_set_on_the_broker_they_belong_to(wire):
    logger = logging.getLogger("headrace.server.api")
    before = logger.level
    try:
        assert "headrace.server.api" in values(wire, LOGGER, "1")
        assert alter(wire, LOGGER, "1", ("headrace.server.api", SET, "DEBUG")).error_code == 0
        assert values(wire, LOGGER, "1")["headrace.server.api"] == "DEBUG"
        assert logger.level == logging.DEBUG
        assert (
            alter(wire, LOGGER, "1", ("headrace.server.api", SET, "LOUD")).error_code
            == ErrorCode.INVALID_CONFIG
        )
        assert alter(wire, LOGGER, "1", ("root", DELETE, None)).error_code == ErrorCode.INVALID_REQUEST
        assert alter(wire, LOGGER, "1", ("no.such", SET, "INFO")).error_code == ErrorCode.INVALID_CONFIG
        assert alter(wire, LOGGER, "2", ("root", SET, "INFO")).error_code == ErrorCode.INVALID_REQUEST
    finally:
        logger.setLevel(before)


def test_groups_have_settings_of_their_own(wire):
    assert alter(wire, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")).error_code == 0
    assert alter(wire, GROUP, "g", ("share.auto.offset.reset", SET, "by_duration:PT1H")).error_code == 0
    assert values(wire, GROUP, "g") == {
        "consumer.session.timeout.ms": "50000",
        "consumer.heartbeat.interval.ms": "5000",
        "share.session.timeout.ms": "45000",
        "share.heartbeat.interval.ms": "5000",
        "share.record.lock.duration.ms": "30000",
        "share.delivery.count.limit": "5",
        "share.partition.max.record.locks": "2000",
        "share.auto.offset.reset": "by_duration:PT1H",
        "share.isolation.level": "read_uncommitted",
        "share.renew.acknowledge.enable": "true",
        "errors.deadletterqueue.topic.name": "",
        "errors.deadletterqueue.copy.record.enable": "false",
    }
    response = wire.ask(ListConfigResourcesRequest([GROUP]), 1, ListConfigResourcesResponse)
    assert [(each.resource_name, each.resource_type) for each in response.config_resources] == [("g", GROUP)]


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("share.auto.offset.reset", "soon", "by_duration"),
        ("share.auto.offset.reset", "by_duration:PT", "by_duration"),
        ("share.record.lock.duration.ms", "1000", "group.share.min.record.lock.duration.ms"),
        ("share.delivery.count.limit", "11", "group.share.max.delivery.count.limit"),
        ("share.isolation.level", "none", "read_committed"),
        ("errors.deadletterqueue.topic.name", "__letters", "cannot start with __"),
    ],
)
def test_what_a_share_group_cannot_be_set_to_is_refused(wire, setting, value, reason):
    refused = alter(wire, GROUP, "g", (setting, SET, value))
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert reason in refused.error_message


def test_everything_that_has_settings_is_listed(wire, name):
    response = wire.ask(ListConfigResourcesRequest(), 1, ListConfigResourcesResponse)
    listed = {(each.resource_name, each.resource_type) for each in response.config_resources}
    assert {(name, TOPIC), ("1", BROKER), ("1", LOGGER)} <= listed
    response = wire.ask(ListConfigResourcesRequest([BROKER]), 1, ListConfigResourcesResponse)
    assert [each.resource_name for each in response.config_resources] == ["1"]
    assert (
        wire.ask(ListConfigResourcesRequest([7]), 1, ListConfigResourcesResponse).error_code
        == ErrorCode.UNSUPPORTED_VERSION
    )
    assert wire.ask(ListConfigResourcesRequest(), 0, ListConfigResourcesResponse).config_resources == []


@pytest.mark.parametrize(
    ("kind", "broker_id", "setting", "value"),
    [
        (BROKER, "", "background.threads", "12"),
        (BROKER, "1", "sasl.kerberos.min.time.before.relogin", "30000"),
    ],
)
def test_a_setting_that_kafka_changes_while_running_changes_though_it_does_not_act(
    make_broker, wire_to, caplog, kind, broker_id, setting, value
):
    wire = wire_to(make_broker())
    with caplog.at_level(logging.WARNING, "headrace"):
        assert alter(wire, kind, broker_id, (setting, SET, value)).error_code == 0
    assert values(wire, BROKER, "1")[setting] == value
    (said,) = [record.getMessage() for record in caplog.records if setting in record.getMessage()]
    assert said.startswith(f"Settings without effect: {setting} (")


def test_a_topic_setting_that_does_not_act_is_kept_and_the_log_says_why(make_broker, wire_to, caplog):
    wire = wire_to(make_broker())
    wire.ask(CreateTopicsRequest([CreatableTopic("t", 1, 1)]), 7, CreateTopicsResponse)
    with caplog.at_level(logging.WARNING, "headrace"):
        assert alter(wire, TOPIC, "t", ("local.retention.ms", SET, "5")).error_code == 0
    assert values(wire, TOPIC, "t")["local.retention.ms"] == "5"
    assert "local.retention.ms of topic t (there is no remote (tiered) storage)" in caplog.text
