"""Users are added, listed and removed; a password stands on no command line and in no output."""

from __future__ import annotations

import pytest

from headrace.testing.broker import BrokerThread
from headrace.testing.wire import WireClient
from tests.server.security.test_before_the_login import log_in


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "connection.failed.authentication.delay.ms": 1,
    }
    with BrokerThread(tmp_path_factory.mktemp("broker"), settings) as running:
        yield running


def may_log_in(broker, user, password, mechanism="SCRAM-SHA-256"):
    with WireClient(f"127.0.0.1:{broker.node.addresses['SASL_PLAINTEXT'][1]}") as client:
        return log_in(client, mechanism, user=user, password=password).error_code == 0


def test_a_user_comes_gets_a_new_password_and_goes(broker, headrace, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("first word\n")
    added = headrace("users", "add", "alice", "--password-file", str(secret))
    assert added.out == "Added user alice (SCRAM-SHA-256, SCRAM-SHA-512).\n", added.err
    assert may_log_in(broker, "alice", "first word")
    assert may_log_in(broker, "alice", "first word", "SCRAM-SHA-512")

    again = headrace("users", "add", "alice", "--password-file", str(secret))
    assert (again.code, again.out) == (1, "")
    assert "exists already (SCRAM-SHA-256, SCRAM-SHA-512); 'headrace users password alice'" in again.err

    changed = headrace("users", "password", "alice", "--iterations", "8192", stdin="second word\n")
    assert changed.out == "Set a new password for user alice.\n"
    assert may_log_in(broker, "alice", "second word")
    assert not may_log_in(broker, "alice", "first word")
    assert headrace("users", "list", "--json").json == [
        {"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 8192},
        {"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 8192},
    ]

    removed = headrace("users", "remove", "alice", "--mechanism", "scram-sha-256")
    assert removed.out == "Removed user alice (SCRAM-SHA-256).\n"
    assert not may_log_in(broker, "alice", "second word")
    assert may_log_in(broker, "alice", "second word", "SCRAM-SHA-512")
    assert headrace("users", "remove", "alice").out == "Removed user alice (SCRAM-SHA-512).\n"
    assert headrace("users", "list").err == "There are no users; 'headrace users add NAME' adds one.\n"


@pytest.mark.parametrize(
    ("arguments", "given", "sentence"),
    [
        (["users", "remove", "bob"], "", "There is no user 'bob'."),
        (["users", "password", "bob"], "x", "There is no user 'bob'."),
        (
            ["users", "add", "bob", "--mechanism", "PLAIN"],
            "x",
            "--mechanism takes SCRAM-SHA-256 or SCRAM-SHA-512",
        ),
        (["users", "add", "bob"], "", "There is no password on standard input"),
        (
            ["users", "add", "bob", "--password-file", "/nowhere"],
            "",
            "The password file /nowhere cannot be read",
        ),
        (["users", "add", ""], "x", "Username must not be empty."),
    ],
)
def test_a_mistake_gets_one_sentence(headrace, arguments, given, sentence):
    ran = headrace(*arguments, stdin=given)
    assert ran.code != 0
    assert ran.out == ""
    assert sentence in ran.err
    assert len(ran.err.splitlines()) == 1


def test_kafkas_tool_keeps_users(broker, headrace):
    configs = ("kafka", "configs", "--entity-type", "users")
    altered = headrace(
        *configs, "--entity-name", "carol", "--alter", "--add-config",
        "SCRAM-SHA-256=[iterations=8192,password=carol's,=word],SCRAM-SHA-512=[password=other]",
    )  # fmt: skip
    assert altered.out == "Completed updating config for user carol.\n", altered.err
    assert may_log_in(broker, "carol", "carol's,=word")
    assert may_log_in(broker, "carol", "other", "SCRAM-SHA-512")
    described = headrace(*configs, "--entity-name", "carol", "--describe")
    assert described.out == (
        "SCRAM credential configs for user-principal 'carol' are "
        "SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096\n"
    )
    assert headrace(*configs, "--describe").out == described.out
    deleted = headrace("kafka", "configs", "--user", "carol", "--alter", "--delete-config", "SCRAM-SHA-256")
    assert deleted.code == 0
    assert not may_log_in(broker, "carol", "carol's,=word")
    assert headrace(*configs, "--describe").out.endswith("are SCRAM-SHA-512=iterations=4096\n")
    again = headrace("kafka", "configs", "--user", "carol", "--alter", "--delete-config", "SCRAM-SHA-256")
    assert again.err == "Attempt to delete a user credential that does not exist.\n"


@pytest.mark.parametrize(
    ("added", "sentence"),
    [
        ("SCRAM-SHA-256=[passwort=hush]", "Invalid credential: SCRAM-SHA-256 takes"),
        ("SCRAM-SHA-256=[iterations=100,password=hush]", "Too few iterations."),
        ("SCRAM-SHA-256=[iterations=99999999,password=hush]", "Too many iterations."),
        ("retention.ms=5", "Unexpected config names: retention.ms"),
    ],
)
def test_kafkas_tool_says_what_is_wrong_but_not_the_password(headrace, added, sentence):
    ran = headrace("kafka", "configs", "--user", "dave", "--alter", "--add-config", added)
    assert ran.code == 1
    assert sentence in ran.err
    assert "hush" not in ran.err
