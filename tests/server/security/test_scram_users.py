"""SCRAM users in the cluster's metadata: what the APIs answer, what survives, and what a stranger can find out."""

import base64

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from headrace.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.server.security.conftest import PASSWORD
from tests.server.security.test_before_the_login import is_served, log_in

SHA_256, SHA_512 = 1, 2


def alter(broker, deletions=(), upsertions=()):
    with WireClient(broker.bootstrap) as client:
        reply = client.call(AlterUserScramCredentialsRequest(list(deletions), list(upsertions)), 0)
    return {result.user: (result.error_code, result.error_message) for result in reply.results}


def describe(broker, *users):
    with WireClient(broker.bootstrap) as client:
        wanted = [UserName(user) for user in users] if users else None
        reply = client.call(DescribeUserScramCredentialsRequest(wanted), 0)
    assert reply.error_code == 0
    return {
        result.user: (
            result.error_code,
            [(info.mechanism, info.iterations) for info in result.credential_infos],
        )
        for result in reply.results
    }


def upsertion(user="alice", mechanism=SHA_256, iterations=4096, salt=b"salt", salted=b"salted"):
    return ScramCredentialUpsertion(user, mechanism, iterations, salt, salted)


@pytest.fixture
def broker(make_secured):
    return make_secured()


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (
            {"upsertions": [upsertion(iterations=4095)]},
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "Too few iterations",
        ),
        (
            {"upsertions": [upsertion(iterations=16385)]},
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "Too many iterations",
        ),
        ({"upsertions": [upsertion("")]}, ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (
            {"upsertions": [upsertion(mechanism=0)]},
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            "Unknown SCRAM mechanism",
        ),
        (
            {"upsertions": [upsertion(), upsertion()]},
            ErrorCode.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        ),
        (
            {"deletions": [ScramCredentialDeletion("alice", SHA_256)], "upsertions": [upsertion()]},
            ErrorCode.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        ),
        (
            {"deletions": [ScramCredentialDeletion("alice", SHA_256)]},
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
        (
            {"deletions": [ScramCredentialDeletion("", SHA_256)]},
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "Username must not be empty",
        ),
    ],
)
def test_what_kafka_refuses_is_refused_and_changes_nothing(broker, change, code, message):
    ((answer,),) = [alter(broker, **change).values()]
    assert answer == (code, message)
    assert describe(broker) == {}


def test_users_are_described_without_their_keys_and_survive_a_restart(broker):
    broker.add_user("bob", mechanisms=["SCRAM-SHA-512"], iterations=8192)
    broker.add_user("alice")
    expected = {"alice": (0, [(SHA_256, 4096), (SHA_512, 4096)]), "bob": (0, [(SHA_512, 8192)])}
    assert describe(broker) == expected
    assert describe(broker, "bob", "eve", "alice", "alice") == {
        "bob": expected["bob"],
        "eve": (ErrorCode.RESOURCE_NOT_FOUND, []),
        "alice": (ErrorCode.DUPLICATE_RESOURCE, []),
    }
    broker.kill()
    broker.start()
    assert describe(broker) == expected
    with WireClient(broker.secured) as client:
        assert log_in(client, "SCRAM-SHA-512", user="bob").error_code == 0


def test_librdkafka_administers_users(broker):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    for future in admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion("carol", info, b"a password", b"a salt of hers")]
    ).values():
        future.result(60)
    described = admin.describe_user_scram_credentials(["carol"])["carol"].result(60)
    assert [(each.mechanism, each.iterations) for each in described.scram_credential_infos] == [
        (ScramMechanism.SCRAM_SHA_256, 8192)
    ]
    with WireClient(broker.secured) as client:
        assert log_in(client, "SCRAM-SHA-256", user="carol", password="a password").error_code == 0
    for future in admin.alter_user_scram_credentials(
        [UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_256)]
    ).values():
        future.result(60)
    with WireClient(broker.secured) as client:
        refused = log_in(client, "SCRAM-SHA-256", user="carol", password="a password")
        assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_user_who_is_removed_stays_logged_in_until_the_connection_ends(broker):
    broker.add_user("alice")
    with WireClient(broker.secured) as client:
        log_in(client, "SCRAM-SHA-256")
        deletions = [ScramCredentialDeletion("alice", SHA_256), ScramCredentialDeletion("alice", SHA_512)]
        assert alter(broker, deletions=deletions) == {"alice": (0, None)}
        assert is_served(client)
    with WireClient(broker.secured) as client:
        assert log_in(client, "SCRAM-SHA-256").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def challenge(broker, user, mechanism="SCRAM-SHA-256"):
    """(salt, iterations) that a stranger is asked with."""
    with WireClient(broker.secured) as client:
        client.call(SaslHandshakeRequest(mechanism), 1)
        reply = client.call(SaslAuthenticateRequest(f"n,,n={user},r=abcdef".encode()), 2)
    assert reply.error_code == 0
    fields = dict(part.split("=", 1) for part in reply.auth_bytes.decode().split(","))
    return base64.b64decode(fields["s"]), int(fields["i"])


def test_a_name_that_nobody_has_is_asked_like_any_other(broker):
    broker.add_user("alice", iterations=8192)
    real = challenge(broker, "alice")
    strange = challenge(broker, "mallory")
    assert strange[1] == real[1] == 8192
    assert len(strange[0]) == len(real[0])
    assert challenge(broker, "mallory") == strange
    assert challenge(broker, "malory")[0] != strange[0]
    assert challenge(broker, "mallory", "SCRAM-SHA-512")[0] != strange[0]
    broker.kill()
    broker.start()
    assert challenge(broker, "mallory") == strange, "a restart must not show who is not there"


def test_the_salts_of_javas_tools_are_imitated(broker):
    salt = b"1q2w3e4r5t6z7u8i9o0p"
    assert alter(broker, upsertions=[upsertion(salt=salt)]) == {"alice": (0, None)}
    strange, _ = challenge(broker, "mallory")
    assert len(strange) == len(salt)
    assert strange.isalnum()
    assert strange == strange.lower()


def test_nobody_logs_in_under_the_empty_name(broker):
    broker.add_user("alice")
    with WireClient(broker.secured) as client:
        assert (
            log_in(client, "SCRAM-SHA-256", user="", password="").error_code
            == ErrorCode.SASL_AUTHENTICATION_FAILED
        )
    assert "" not in describe(broker)
    with WireClient(broker.secured) as client:
        assert log_in(client, "SCRAM-SHA-256", password=PASSWORD).error_code == 0
