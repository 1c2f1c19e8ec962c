"""`headrace init`: two commands to a broker that asks for TLS and a login."""

from __future__ import annotations

import datetime
import os
import re
import ssl
import stat
import subprocess

import pytest
from cryptography import x509

from headrace.cli.parsing import properties
from headrace.testing.broker import BrokerThread
from headrace.testing.wire import WireClient
from tests.cli.conftest import command
from tests.server.security.test_before_the_login import log_in


def run(directory, *arguments, stdin="", env=None):
    done = subprocess.run(
        command(*arguments),
        cwd=directory,
        input=stdin.encode(),
        capture_output=True,
        timeout=90,
        env={**os.environ, "HEADRACE_CONTEXT": "", **(env or {})},
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def password_in(file):
    return properties.load(file)["sasl.jaas.config"].split('password="')[1].removesuffix('";')


def test_the_administrator_logs_in_to_the_cluster_that_was_made(tmp_path):
    code, out, err = run(
        tmp_path, "init", "--admin", "alice", "--password-file", "-", stdin='my "s\\ecret"\n'
    )
    assert (code, err) == (0, "")
    assert "headrace up --config conf/server.properties" in out
    assert "s\\ecret" not in out
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "delegation.token.secret.key": "x",
        "connection.failed.authentication.delay.ms": 1,
    }
    with BrokerThread(tmp_path / "data", settings) as broker:
        secured = f"127.0.0.1:{broker.node.addresses['SASL_PLAINTEXT'][1]}"
        with WireClient(secured) as client:
            assert log_in(client, "SCRAM-SHA-512", user="alice", password='my "s\\ecret"').error_code == 0
        with WireClient(secured) as client:
            password = (
                properties.load(tmp_path / "conf/server.properties")[
                    "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config"
                ]
                .split('password="')[1]
                .removesuffix('";')
            )
            assert log_in(client, "SCRAM-SHA-512", user="broker", password=password).error_code == 0
        with WireClient(secured) as client:
            assert log_in(client, "SCRAM-SHA-512", user="alice", password="other").error_code != 0
        assert broker.run(features) == {
            "delegation.token.version": 1,
            "mirror.version": 1,
            "share.version": 2,
        }


async def features(node):
    return dict(node.cluster.image.features)


def test_secrets_are_for_their_owner_alone_and_certificates_fit(tmp_path):
    code, out, _ = run(
        tmp_path, "init", "--admin", "alice", "--listen", "0.0.0.0:9093", "--host", "kafka.example.com"
    )
    assert code == 0
    conf = tmp_path / "conf"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in conf.iterdir()}
    assert modes.pop("ca.pem") == 0o644
    assert modes == dict.fromkeys(("server.properties", "admin.properties", "ca.key", "broker.pem"), 0o600)
    assert password_in(conf / "admin.properties") not in out
    assert "bootstrap.servers=kafka.example.com:9093" in out
    assert (
        properties.load(conf / "server.properties")["advertised.listeners"]
        == "SASL_SSL://kafka.example.com:9093"
    )
    context = ssl.create_default_context(cafile=conf / "ca.pem")
    context.load_cert_chain(conf / "broker.pem")
    broker, authority = x509.load_pem_x509_certificates((conf / "broker.pem").read_bytes())
    broker.verify_directly_issued_by(authority)
    names = broker.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName)[0] == "kafka.example.com"
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    now = datetime.datetime.now(datetime.UTC)
    assert broker.not_valid_before_utc < now < broker.not_valid_after_utc


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--admin", 'a"b'], "--admin takes a name without quotes"),
        (["--admin", "broker"], "which brokers use"),
        (["--admin", "alice", "--listen", "9092"], "--listen takes HOST:PORT"),
        (["--admin", "alice", "--password-file", "/nowhere"], "The password file /nowhere cannot be read"),
    ],
)
def test_a_mistake_gets_one_sentence_and_leaves_nothing(tmp_path, arguments, sentence):
    code, out, err = run(tmp_path, "init", *arguments)
    assert code != 0
    assert out == ""
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_that_is_there_is_left_alone(tmp_path):
    assert run(tmp_path, "init", "--admin", "alice")[0] == 0
    code, _, err = run(tmp_path, "init", "--admin", "bob", "--files", "other")
    assert code == 1
    assert "holds a cluster already; add users to it with 'headrace users add'" in err
    assert not (tmp_path / "other").exists()
    code, _, err = run(tmp_path, "init", "--admin", "bob", "--data", "other")
    assert code == 1
    assert "conf/server.properties is there already; choose another directory with --files." in err


def test_two_commands_make_an_encrypted_broker_with_logins(tmp_path, start):
    assert run(tmp_path, "init", "--admin", "alice", "--listen", "127.0.0.1:19192")[0] == 0
    broker = start("up", "--config", tmp_path / "conf/server.properties")
    assert "is ready" in broker.stdout.readline()
    code, out, err = run(
        tmp_path,
        "topics",
        "create",
        "orders",
        "-b",
        "127.0.0.1:19192",
        "--command-config",
        "conf/admin.properties",
    )
    assert (code, out) == (0, "Created topic orders.\n"), err
    _try_an_application(tmp_path)
    broker.terminate()
    broker.wait(60)
    assert "without effect" not in broker.stderr.read(), "every setting that init writes acts"


def _try_an_application(home):
    """What docs/security.md goes on with: a user with the permissions of one topic, and of a group only for a group."""
    there, admin = ("-b", "127.0.0.1:19192"), ("--command-config", "conf/admin.properties")
    assert (
        run(home, "users", "add", "app", "--password-file", "-", *there, *admin, stdin="pass word\n")[0] == 0
    )
    assert run(home, "acls", "add", "app", "read,write", "topic:orders", *there, *admin)[0] == 0
    code, out, _ = run(home, "acls", "explain", "app", "delete", "topic:orders", *there, *admin)
    assert (code, out) == (1, "No: the resource has ACLs, and none of them allows it.\n")
    settings = (home / "conf/admin.properties").read_text()
    (home / "conf/app.properties").write_text(
        re.sub("username=.*", 'username="app" password="pass word";', settings)
    )
    app = (*there, "--command-config", "conf/app.properties")
    assert run(home, "produce", "orders", *app, stdin="hello\n")[0] == 0
    read = ("consume", "orders", "--from-beginning", "--max", "1", *app)
    assert run(home, *read)[:2] == (0, "hello\n")
    code, _, err = run(home, *read, "--group", "app")
    assert code == 1
    assert "User:app has no permission for DESCRIBE on group app." in err
    assert run(home, "acls", "add", "app", "read", "group:app", *there, *admin)[0] == 0
    assert run(home, *read, "--group", "app")[:2] == (0, "hello\n")
