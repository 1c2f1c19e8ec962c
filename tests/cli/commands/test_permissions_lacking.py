"""What commands say to a user who may not do everything."""

import pytest

from headrace.server.config.authorization import STANDARD
from headrace.testing.broker import BrokerThread

REMEDY = "this user lacks a permission. 'headrace acls explain USER OPERATION RESOURCE' says why."


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    settings = {"authorizer.class.name": STANDARD, "allow.everyone.if.no.acl.found": "true"}
    running = BrokerThread(tmp_path_factory.mktemp("broker"), settings).start()
    yield running
    running.stop()


@pytest.fixture
def orders(headrace, name):
    """A topic that everybody sees, and nobody may change or read."""
    assert headrace("topics", "create", name).code == 0
    assert headrace("acls", "add", "*", "describe", f"topic:{name}").code == 0
    return name


def test_a_denial_says_what_to_ask(headrace, orders):
    for arguments in (
        ("topics", "alter", orders, "--partitions", "2"),
        ("consume", orders, "--max", "1", "--timeout", "20"),
    ):
        ran = headrace(*arguments)
        assert ran.code == 1, arguments
        assert ran.err.endswith(f"uthorization failed: {REMEDY}\n"), arguments


def test_a_topic_is_described_without_the_settings_that_may_not_be_seen(headrace, orders):
    ran = headrace("topics", "describe", orders)
    assert ran.code == 0
    assert ran.err == (
        f"User:ANONYMOUS has no permission for DESCRIBE_CONFIGS on topic {orders}. Its settings are left out.\n"
    )
    assert ran.lines[1].split() == [
        "PARTITION",
        "LEADER",
        "REPLICAS",
        "ISR",
        "FIRST",
        "OFFSET",
        "NEXT",
        "OFFSET",
    ]
    assert headrace("topics", "describe", orders, "--json").json[0]["configs"] == {}


def test_the_cluster_is_described_without_the_permission_to_see_settings(headrace, orders):
    described = headrace("cluster", "describe", "--json")
    assert described.code == 0
    assert described.json["partitions"] >= 1
