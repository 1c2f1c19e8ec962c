"""Users and tokens of a cluster of three: changed through any broker, known on all of them, asked alike by all."""

import pytest

from headrace.testing.cluster import Cluster
from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode
from tests.server.security.conftest import SETTINGS, SecuredBroker
from tests.server.security.test_before_the_login import log_in
from tests.server.security.test_delegation_tokens import SETTINGS as TOKENS
from tests.server.security.test_delegation_tokens import As, log_in_with, raise_level
from tests.server.security.test_scram_users import challenge
from tests.waiting import until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    directory = tmp_path_factory.mktemp("secured-cluster")
    with Cluster(SecuredBroker, directory, 3, {**SETTINGS, **TOKENS}) as cluster:
        until(lambda: all(len(broker.run(brokers)) == 3 for broker in cluster), "a cluster of three")
        yield cluster


async def brokers(node):
    return [broker for broker in node.cluster.image.brokers.values() if not broker.fenced]


async def is_controller(node):
    return node.cluster.is_controller


def others(cluster):
    """The brokers that are not the controller."""
    return [broker for broker in cluster if not broker.run(is_controller)]


def may_log_in(broker, user):
    with WireClient(broker.secured) as client:
        return log_in(client, "SCRAM-SHA-512", user=user).error_code == 0


def test_a_user_added_through_any_broker_logs_in_to_all(cluster):
    for number, broker in enumerate(cluster):
        broker.add_user(f"user-{number}")
        assert may_log_in(broker, f"user-{number}"), "the broker that was asked knows it when it answers"
        until(lambda number=number: all(may_log_in(each, f"user-{number}") for each in cluster))


def test_all_brokers_ask_a_stranger_alike(cluster):
    cluster[1].add_user("known")
    until(lambda: len({challenge(broker, "stranger") for broker in cluster}) == 1)
    assert len({challenge(broker, "known") for broker in cluster}) == 1


def test_a_token_made_through_another_broker_names_its_requester_and_counts_everywhere(cluster):
    broker = others(cluster)[0]
    for user in ("alice", "bob", "carol"):
        broker.add_user(user)
    raise_level(broker)
    with As(broker, "alice") as alice, As(broker, "bob") as bob, As(broker, "carol") as carol:
        token = alice.create("bob", owner="carol")
        assert token.error_code == 0
        assert (token.principal_name, token.token_requester_principal_name) == ("carol", "alice")
        assert alice.renew(token).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert bob.renew(token).error_code == 0
        (described,) = [each for each in bob.describe().tokens if each.token_id == token.token_id]
        assert [each.principal_name for each in described.renewers] == ["bob"]
        for each in cluster:
            with WireClient(each.secured) as client:
                assert log_in_with(client, token).error_code == 0
        assert carol.expire(token).error_code == 0
    until(lambda: all(not each.run(tokens) for each in cluster))


async def tokens(node):
    return list(node.cluster.image.tokens)
