"""kafka-delegation-tokens.sh, with a user who may have tokens and a login with the token that was made."""

from __future__ import annotations

import pytest

from headrace.testing.broker import BrokerThread
from tests.server.security.conftest import PASSWORD, SecuredBroker
from tests.server.security.test_delegation_tokens import SETTINGS, raise_level


@pytest.fixture(scope="module")
def broker(tmp_path_factory) -> BrokerThread:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        **SETTINGS,
    }
    with SecuredBroker(tmp_path_factory.mktemp("broker"), settings) as running:
        running.add_user("alice")
        raise_level(running)
        yield running


@pytest.fixture
def tool(broker, headrace, tmp_path):
    client = tmp_path / "alice.properties"

    def run(*arguments, user="alice", password=PASSWORD, token=False):
        mark = ' tokenauth="true"' if token else ""
        client.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{user}" password="{password}"{mark};\n'
        )
        return headrace(
            "kafka",
            "delegation-tokens",
            "--bootstrap-server",
            broker.secured,
            "--command-config",
            client,
            *arguments,
        )

    return run


def test_a_token_is_made_shown_renewed_and_ended(tool):
    made = tool("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    assert made.code == 0, made.err
    assert made.lines[0] == "Calling create token operation with renewers : User:bob"
    token_id, hmac, owner, requester, renewers = made.lines[-1].split()[:5]
    assert made.lines[1] == f"Created delegation token with tokenId : {token_id}"
    assert (owner, requester, renewers) == ("User:alice", "User:alice", "[User:bob]")
    shown = tool("--describe", "--owner-principal", "User:alice")
    assert shown.lines[0] == "Total number of tokens : 1"
    assert token_id in shown.lines[-1]
    by_token = tool("--describe", user=token_id, password=hmac, token=True)
    assert by_token.code == 1
    assert "The commands cannot log in with a delegation token" in by_token.err
    assert tool("--renew", "--renew-time-period", "-1", "--hmac", hmac).out.startswith(
        "Completed renew operation."
    )
    assert tool("--expire", "--expiry-time-period", "-1", "--hmac", hmac).out.startswith(
        "Completed expire operation."
    )
    assert tool("--describe").lines[0] == "Total number of tokens : 0"
    assert (
        tool("--renew", "--renew-time-period", "-1", "--hmac", hmac).err
        == "There is no token with this HMAC.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--create", "--describe"), "Command must include exactly one action"),
        (("--create",), "Missing required argument: --max-life-time-period"),
        (("--renew", "--renew-time-period", "5"), "Missing required argument: --hmac"),
        (("--expire", "--hmac", "!", "--expiry-time-period", "5"), "--hmac is not base64"),
        (
            ("--create", "--max-life-time-period", "5", "--renewer-principal", "bob"),
            "A principal looks like User:alice",
        ),
    ],
)
def test_a_mistake_is_named(tool, arguments, sentence):
    ran = tool(*arguments)
    assert ran.code == 1
    assert sentence in ran.err


def test_without_a_login_there_are_no_tokens(headrace, tmp_path):
    (tmp_path / "plain.properties").write_text("client.id=x\n")
    ran = headrace(
        "kafka", "delegation-tokens", "--describe", "--command-config", tmp_path / "plain.properties"
    )
    assert "only for clients that have logged in" in ran.err
