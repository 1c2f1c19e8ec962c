"""Feature levels: which exist, which are in effect, and switching the transaction protocol."""

import pytest

from headrace.server.transactions.metadata import Transaction
from headrace.server.transactions.records import TransactionRecord, decode_record, encode_record
from headrace.testing import cluster as testing
from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

UPGRADE, SAFE, UNSAFE = 1, 2, 3
WHO = {"client_software_name": "test", "client_software_version": "1"}


def levels(bootstrap):
    with WireClient(bootstrap) as client:
        reply = client.call(ApiVersionsRequest(**WHO), 4)
    return {feature.name: feature.max_version_level for feature in reply.finalized_features}


def update(bootstrap, *updates, version=2, validate_only=False):
    with WireClient(bootstrap) as client:
        return client.call(UpdateFeaturesRequest(60000, list(updates), validate_only), version)


def transactions(level, kind=UPGRADE, **more):
    return FeatureUpdateKey("transaction.version", level, upgrade_type=kind, **more)


@pytest.fixture
def bootstrap(make_broker):
    return make_broker().bootstrap


def test_the_highest_levels_hold_until_somebody_says_otherwise(bootstrap):
    assert levels(bootstrap) == {"group.version": 1, "share.version": 2, "transaction.version": 2}


def test_the_supported_levels_are_told_to_clients_that_understand_a_level_of_zero(bootstrap):
    with WireClient(bootstrap) as client:
        assert client.call(ApiVersionsRequest(**WHO), 3).supported_features == []
        supported = client.call(ApiVersionsRequest(**WHO), 4).supported_features
    assert {(each.name, each.min_version, each.max_version) for each in supported} == {
        ("group.version", 0, 1),
        ("transaction.version", 0, 2),
        ("delegation.token.version", 0, 1),
        ("share.version", 0, 2),
        ("mirror.version", 0, 1),
    }


def test_the_transaction_protocol_is_switched_down_and_up_and_survives_a_restart(make_broker):
    broker = make_broker()
    assert update(broker.bootstrap, transactions(1, SAFE)).error_code == 0
    assert levels(broker.bootstrap)["transaction.version"] == 1
    assert update(broker.bootstrap, transactions(0, UNSAFE)).error_code == 0
    broker.stop()
    broker.start()
    assert "transaction.version" not in levels(broker.bootstrap), "a level of 0 is not a finalized feature"
    assert update(broker.bootstrap, transactions(2)).error_code == 0
    assert levels(broker.bootstrap)["transaction.version"] == 2


def test_a_dry_run_changes_nothing(bootstrap):
    assert update(bootstrap, transactions(0, SAFE), validate_only=True).error_code == 0
    assert levels(bootstrap)["transaction.version"] == 2


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (transactions(3), "0 to 2"),
        (transactions(-1, SAFE), "0 to 2"),
        (transactions(1), "safe or unsafe downgrade"),
        (transactions(1, 7), "no upgrade type 7"),
        (FeatureUpdateKey("kraft.version", 1), "no such feature"),
    ],
)
def test_what_cannot_be_set_is_refused_with_the_reason_and_takes_the_rest_with_it(bootstrap, wrong, reason):
    fine = FeatureUpdateKey("group.version", 0, upgrade_type=SAFE)
    reply = update(bootstrap, fine, wrong)
    assert reply.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert reason in reply.error_message
    assert levels(bootstrap) == {"group.version": 1, "share.version": 2, "transaction.version": 2}


def test_a_downgrade_cannot_raise_a_level(bootstrap):
    update(bootstrap, transactions(0, SAFE))
    reply = update(bootstrap, transactions(2, SAFE))
    assert reply.error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_the_oldest_clients_say_whether_a_downgrade_is_allowed_and_get_an_answer_per_feature(bootstrap):
    refused = update(bootstrap, transactions(1), version=0)
    assert refused.results[0].error_code == ErrorCode.INVALID_UPDATE_VERSION
    done = update(bootstrap, transactions(1, allow_downgrade=True), version=0)
    assert [(each.feature, each.error_code) for each in done.results] == [("transaction.version", 0)]
    assert levels(bootstrap)["transaction.version"] == 1


def test_any_broker_takes_the_request_and_every_broker_tells_the_new_level(tmp_path):
    cluster = testing.threads(tmp_path, 2)
    try:
        controller = cluster[1].node.cluster.image.controller_id
        other = cluster[2 if controller == 1 else 1]
        assert update(other.bootstrap, transactions(1, SAFE)).error_code == 0
        assert levels(cluster[controller].bootstrap)["transaction.version"] == 1
    finally:
        cluster.stop()


@pytest.mark.parametrize("version", [0, 1])
def test_records_of_both_versions_are_read_back(version):
    record = TransactionRecord("id", Transaction("id", 7, 3, 60000, updated_ms=5))
    key, value = encode_record(record, version)
    assert value[:2] == version.to_bytes(2, "big")
    assert decode_record(bytes(key), bytes(value)) == record
