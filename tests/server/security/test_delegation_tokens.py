"""Delegation tokens: made, shown, renewed and ended as in Kafka, and good for a login over SCRAM."""

import base64
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.server.security import tokens as tokens_module
from headrace.server.security.tokens import TokenCredentials, TokenKeys
from headrace.testing.clock import MovableClock
from headrace.testing.wire import WireClient
from headrace.wire.errors import ErrorCode
from headrace.wire.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from headrace.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from headrace.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from headrace.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from headrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from headrace.wire.messages.sasl_handshake import SaslHandshakeRequest
from headrace.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from headrace.wire.sasl.logins import Login, client_exchange
from tests.server.security.test_before_the_login import is_served, log_in
from tests.waiting import until

HOUR = 3_600_000
SETTINGS = {
    "delegation.token.secret.key": "the brokers' own",
    "delegation.token.max.lifetime.ms": 10 * HOUR,
    "delegation.token.expiry.time.ms": HOUR,
    "delegation.token.expiry.check.interval.ms": HOUR,
    "connections.max.idle.ms": 1000 * HOUR,
    "connection.failed.authentication.delay.ms": 0,
}


def raise_level(broker):
    with WireClient(broker.bootstrap) as client:
        update = FeatureUpdateKey("delegation.token.version", 1, upgrade_type=1)
        assert client.call(UpdateFeaturesRequest(1000, [update]), 1).error_code == 0


@pytest.fixture
def clock():
    return MovableClock()


@pytest.fixture
def broker(make_secured, clock):
    broker = make_secured(SETTINGS, clock=clock)
    for user in ("alice", "bob", "carol"):
        broker.add_user(user)
    raise_level(broker)
    return broker


class As:
    """A client that is logged in as somebody."""

    def __init__(self, broker, user):
        self.client = WireClient(broker.secured)
        assert log_in(self.client, "SCRAM-SHA-256", user=user).error_code == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.socket.close()

    def create(self, *renewers, lifetime=-1, owner=None):
        asked = [CreatableRenewers("User", renewer) for renewer in renewers]
        kind = "User" if owner else None
        return self.client.call(CreateDelegationTokenRequest(kind, owner, asked, lifetime), 3)

    def renew(self, token, period=-1):
        return self.client.call(RenewDelegationTokenRequest(token.hmac, period), 2)

    def expire(self, token, period=-1):
        return self.client.call(ExpireDelegationTokenRequest(token.hmac, period), 2)

    def describe(self, *owners):
        asked = [DescribeDelegationTokenOwner("User", owner) for owner in owners] if owners else None
        return self.client.call(DescribeDelegationTokenRequest(asked), 3)


def log_in_with(client, token, mechanism="SCRAM-SHA-256", hmac=None):
    secret = base64.b64encode(token.hmac if hmac is None else hmac).decode()
    steps = client_exchange(Login(mechanism, token.token_id, secret, by_token=True))
    assert client.call(SaslHandshakeRequest(mechanism), 1).error_code == 0
    reply = client.call(SaslAuthenticateRequest(next(steps)), 2)
    while not reply.error_code:
        try:
            reply = client.call(SaslAuthenticateRequest(steps.send(reply.auth_bytes)), 2)
        except StopIteration:
            break
    return reply


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_lets_others_log_in_as_its_owner_until_it_expires(broker, clock, mechanism):
    with As(broker, "alice") as alice:
        token = alice.create("bob")
    assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (
        0,
        "alice",
        "alice",
    )
    assert token.expiry_timestamp_ms - token.issue_timestamp_ms == HOUR
    assert token.max_timestamp_ms - token.issue_timestamp_ms == 10 * HOUR
    with WireClient(broker.secured) as client:
        reply = log_in_with(client, token, mechanism)
        assert reply.error_code == 0
        assert 0 < reply.session_lifetime_ms <= HOUR
        assert is_served(client)
        assert broker.run(principals) == ["User:alice"]
    clock.advance(3601)
    with WireClient(broker.secured) as client:
        assert log_in_with(client, token, mechanism).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


async def principals(node):
    return [each.principal for each in node.acceptors.connections if each.login is not None]


def test_a_token_needs_its_hmac_and_must_exist(broker):
    with As(broker, "alice") as alice:
        token = alice.create()
        alice.expire(token)
    with WireClient(broker.secured) as client:
        gone = log_in_with(client, token)
        assert gone.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    with As(broker, "alice") as alice:
        token = alice.create()
    with WireClient(broker.secured) as client:
        wrong = log_in_with(client, token, hmac=b"wrong")
        assert (wrong.error_code, wrong.error_message) == (gone.error_code, gone.error_message)
    with WireClient(broker.secured) as client:
        # Without the extension a token's id is a user's name like any other.
        assert log_in(client, "SCRAM-SHA-256", user=token.token_id, password="x").error_code


def test_strangers_cost_no_hash_and_a_token_costs_one(broker, clock, monkeypatch):
    hashed = []

    def credential(keys, *given):
        hashed.append(given)
        return real(keys, *given)

    real = TokenKeys.credential
    monkeypatch.setattr(TokenKeys, "credential", credential)
    with As(broker, "alice") as alice:
        token = alice.create()
    strangers = {first_answer(broker, f"nobody-{number}") for number in range(20)}
    assert len(strangers) == 20, "each is asked with a salt of its own"
    assert strangers == {first_answer(broker, f"nobody-{number}") for number in range(20)}
    assert hashed == []
    asked = {first_answer(broker, token.token_id) for _ in range(5)}
    with WireClient(broker.secured) as client:
        assert log_in_with(client, token).error_code == 0
    assert hashed == [(token.token_id, "SCRAM-SHA-256")]
    clock.advance(3601)
    assert {first_answer(broker, token.token_id)} == asked, "an expired token is asked as before"


def first_answer(broker, token_id, mechanism="SCRAM-SHA-256"):
    """(salt and iterations) that a login with a token is asked with."""
    with WireClient(broker.secured) as client:
        assert client.call(SaslHandshakeRequest(mechanism), 1).error_code == 0
        first = f"n,,n={token_id},r=abc,tokenauth=true".encode()
        reply = client.call(SaslAuthenticateRequest(first), 2)
        return bytes(reply.auth_bytes).partition(b",")[2]


async def test_only_so_many_credentials_are_kept(monkeypatch):
    monkeypatch.setattr(tokens_module, "MOST_KEPT", 3)
    keys = TokenKeys("the brokers' own")
    with ThreadPoolExecutor(2) as threads:
        credentials = TokenCredentials(keys, threads)
        for number in range(5):
            found = await credentials.of(f"id-{number}", "SCRAM-SHA-512")
            assert found == keys.credential(f"id-{number}", "SCRAM-SHA-512")
            assert found is await credentials.of(f"id-{number}", "SCRAM-SHA-512")
        assert len(credentials._kept) == 3


def test_owner_and_renewers_renew_and_end_a_token_and_nobody_else(broker, clock):
    with As(broker, "alice") as alice, As(broker, "bob") as bob, As(broker, "carol") as carol:
        token = alice.create("bob")
        clock.advance(1800)
        assert carol.renew(token).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert carol.expire(token).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        renewed = bob.renew(token)
        assert renewed.error_code == 0
        assert 0 <= renewed.expiry_timestamp_ms - token.expiry_timestamp_ms - HOUR // 2 < 60_000
        assert bob.renew(token, 20 * HOUR).expiry_timestamp_ms <= renewed.expiry_timestamp_ms + 60_000
        sooner = alice.expire(token, 60_000)
        assert sooner.expiry_timestamp_ms < renewed.expiry_timestamp_ms
        clock.advance(120)
        assert alice.renew(token).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
        assert alice.expire(token, 1000).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
        assert alice.expire(token).error_code == 0
        assert alice.renew(token).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_a_token_is_not_renewed_beyond_its_longest_life(broker, clock):
    with As(broker, "alice") as alice:
        token = alice.create(lifetime=HOUR // 2)
        assert token.max_timestamp_ms == token.expiry_timestamp_ms == token.issue_timestamp_ms + HOUR // 2
        clock.advance(600)
        assert alice.renew(token).expiry_timestamp_ms == token.max_timestamp_ms
        assert alice.create(lifetime=100 * HOUR).max_timestamp_ms <= clock.now_ms() + 10 * HOUR


def test_tokens_are_described_with_their_secrets_and_survive_a_restart(broker):
    with As(broker, "alice") as alice, As(broker, "bob") as bob:
        first, second = alice.create("bob"), bob.create()
        described = {each.token_id: each for each in alice.describe().tokens}
        assert set(described) == {first.token_id, second.token_id}, "without ACLs everybody sees everything"
        assert described[first.token_id].hmac == first.hmac
        assert [each.principal_name for each in described[first.token_id].renewers] == ["bob"]
        assert {each.token_id for each in alice.describe("bob").tokens} == {first.token_id, second.token_id}
        assert {each.token_id for each in alice.describe("alice").tokens} == {first.token_id}
        empty = alice.client.call(DescribeDelegationTokenRequest([]), 3)
        assert (empty.error_code, empty.tokens) == (0, [])
    broker.kill()
    broker.start()
    with WireClient(broker.secured) as client:
        assert log_in_with(client, first).error_code == 0


def test_a_token_gets_no_token_and_neither_does_a_stranger(broker):
    with As(broker, "alice") as alice:
        token = alice.create()
    with WireClient(broker.secured) as by_token, WireClient(broker.bootstrap) as stranger:
        log_in_with(by_token, token)
        for client in (by_token, stranger):
            for request in (
                CreateDelegationTokenRequest(None, None, [], -1),
                RenewDelegationTokenRequest(token.hmac, -1),
                ExpireDelegationTokenRequest(token.hmac, -1),
                DescribeDelegationTokenRequest(None),
            ):
                reply = client.call(request, 2)
                assert reply.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_renewers_are_users(broker):
    with As(broker, "alice") as alice:
        for kind in ("Group", "Requester"):
            asked = CreateDelegationTokenRequest(None, None, [CreatableRenewers(kind, "User:eve")], -1)
            assert alice.client.call(asked, 3).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_a_token_for_somebody_else_names_both(broker):
    with As(broker, "alice") as alice:
        token = alice.create(owner="bob")
    assert (token.principal_name, token.token_requester_principal_name) == ("bob", "alice")


def test_expired_tokens_are_removed_by_and_by(broker, clock):
    with As(broker, "alice") as alice:
        alice.create()
    clock.advance(2 * HOUR / 1000 + 60)
    until(lambda: broker.run(tokens) == [])


async def tokens(node):
    return list(node.cluster.image.tokens)


def test_without_a_key_there_are_no_tokens(make_secured):
    broker = make_secured()
    broker.add_user("alice")
    raise_level(broker)
    with As(broker, "alice") as alice:
        assert alice.create().error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        assert alice.describe().error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_until_the_level_is_raised_nothing_is_written_that_an_older_broker_cannot_read(make_secured, caplog):
    broker = make_secured(SETTINGS)
    broker.add_user("alice")
    with As(broker, "alice") as alice:
        assert alice.create().error_code == ErrorCode.UNSUPPORTED_VERSION
        assert "headrace features set delegation.token.version=1" in caplog.text
        raise_level(broker)
        assert alice.create().error_code == 0
    with WireClient(broker.bootstrap) as client:
        lower = FeatureUpdateKey("delegation.token.version", 0, upgrade_type=2)
        refused = client.call(UpdateFeaturesRequest(1000, [lower]), 1)
        assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_with_acls_a_token_is_its_owners_business(make_secured):
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    guarded = {"authorizer.class.name": authorizer, "super.users": "User:ANONYMOUS;User:admin"}
    broker = make_secured({**SETTINGS, **guarded})
    for user in ("admin", "alice", "bob", "carol"):
        broker.add_user(user)
    raise_level(broker)
    with As(broker, "alice") as alice, As(broker, "bob") as bob, As(broker, "carol") as carol:
        token = alice.create("bob")
        assert token.error_code == 0, "everybody may have a token of their own"
        assert carol.create(owner="alice").error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert [each.token_id for each in bob.describe().tokens] == [token.token_id]
        assert carol.describe().tokens == []
        assert carol.renew(token).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        with As(broker, "admin") as admin:
            assert [each.token_id for each in admin.describe().tokens] == [token.token_id]
            assert admin.create(owner="carol").error_code == 0
