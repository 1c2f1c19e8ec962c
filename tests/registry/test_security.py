"""Who is let in and what they may do: passwords, tokens, permissions by subject, TLS, also between instances."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import trustme
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from headrace.registry.security import kept_password, kept_token
from headrace.registry.serving import ServeError
from headrace.registry.settings import SettingError, read
from headrace.testing.broker import BrokerThread
from headrace.testing.registry import RegistryThread
from tests.registry.conftest import Rest, record
from tests.waiting import until

OWN = {"kafkastore.topic": "_secured", "schema.registry.group.id": "secured"}


def basic(login: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}


def test_passwords_and_permissions(broker: BrokerThread, tmp_path: Path) -> None:
    users, acls = tmp_path / "users", tmp_path / "acls"
    users.write_text(f"# people\nada: {kept_password('secret')}\nbob: plain\n")
    acls.write_text("allow ada all *\nallow bob read orders-*\ndeny bob read orders-secret\n")
    settings = {
        **OWN,
        "authentication.method": "BASIC",
        "headrace.registry.users.file": users,
        "headrace.registry.acls.file": acls,
    }
    with RegistryThread(broker.bootstrap, settings) as registry:
        ada, bob = Rest(registry.url, basic("ada:secret")), Rest(registry.url, basic("bob:plain"))
        for wrong in ({}, basic("ada:wrong"), basic("eve:secret"), {"Authorization": "Basic %"}):
            assert Rest(registry.url, wrong)("GET", "/subjects") == (
                401,
                {"error_code": 401, "message": "Unauthorized"},
            )
        number = ada.register("orders-a", record("Acl", "a"))
        hidden = ada.register("orders-secret", record("Hidden", "a"))
        assert bob("GET", "/subjects") == (200, ["orders-a"])
        assert [each["subject"] for each in bob("GET", "/schemas")[1]] == ["orders-a"]
        assert bob("GET", f"/schemas/ids/{number}")[0] == 200
        assert bob("GET", "/subjects/orders-a/versions/1")[0] == 200
        for method, path in (
            ("GET", f"/schemas/ids/{hidden}"),
            ("GET", "/subjects/orders-secret/versions"),
            ("POST", "/subjects/orders-a/versions"),
            ("DELETE", "/subjects/orders-a"),
            ("PUT", "/config/orders-a"),
            ("PUT", "/config"),
            ("PUT", "/mode"),
            ("DELETE", "/contexts/.x"),
        ):
            status, found = bob(method, path, {})
            assert (status, found["error_code"]) == (403, 40301), path
        assert found["message"] == "User is denied operation Configure on Cluster"
        ada("PUT", "/config/orders-alias", {"alias": "orders-secret"})
        ada.register(":.hidden:orders-elsewhere", record("Elsewhere", "a"))
        acls.write_text("allow ada all *\nallow bob read,write orders-*\ndeny bob all orders-secret\n")
        body = {"schema": '"int"'}
        for method, path in (
            ("GET", "/subjects/orders-alias/versions/1"),
            ("GET", "/subjects/orders-alias/versions"),
            ("POST", "/subjects/orders-alias/versions"),
            ("GET", "/subjects/orders-elsewhere/versions/1"),
        ):
            assert bob(method, path, body)[0] == 403, path
        body["references"] = [{"name": "Hidden", "subject": "orders-secret", "version": 1}]
        assert bob("POST", "/subjects/orders-mine/versions", body)[1]["error_code"] == 40301
        acls.write_text("allow bob write orders-*\n")
        until(lambda: bob("POST", "/subjects/orders-b/versions", {"schema": '"int"'})[0] == 200)
        host = registry.url.replace("http://", "http://bob:plain@")
        assert SchemaRegistryClient({"url": host}).register_schema("orders-c", Schema('"long"', "AVRO")) > 0


def test_tokens(broker: BrokerThread, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(f"ada: {kept_token('a-token')}\n")
    settings = {**OWN, "authentication.method": "BEARER", "headrace.registry.users.file": users}
    with RegistryThread(broker.bootstrap, settings) as registry:
        assert Rest(registry.url, {"Authorization": "Bearer a-token"})("GET", "/subjects")[0] == 200
        assert Rest(registry.url, {"Authorization": "Bearer other"})("GET", "/subjects")[0] == 401
        assert Rest(registry.url, basic("ada:a-token"))("GET", "/subjects")[0] == 401


def test_tls_for_clients_and_between_instances(broker: BrokerThread, tmp_path: Path) -> None:
    authority = trustme.CA()
    store, trusted = tmp_path / "key.pem", tmp_path / "ca.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(store))
    authority.cert_pem.write_to_path(str(trusted))
    settings = {
        "kafkastore.topic": "_encrypted",
        "schema.registry.group.id": "encrypted",
        "listeners": "https://127.0.0.1:0",
        "ssl.keystore.location": store,
        "ssl.truststore.location": trusted,
    }
    reading = {**settings, "leader.eligibility": "false"}
    with (
        RegistryThread(broker.bootstrap, settings) as writer,
        RegistryThread(broker.bootstrap, reading) as reader,
    ):
        assert writer.url.startswith("https://")
        client = SchemaRegistryClient({"url": reader.url, "ssl.ca.location": str(trusted)})
        found: list[int] = []

        def attempt() -> Any:
            try:
                found.append(client.register_schema("tls", Schema('"int"', "AVRO")))
            except Exception as error:
                if "50003" not in str(error):
                    raise
            return found

        until(attempt)
        assert client.get_schema(found[0]).schema_str == '"int"'
        plain = SchemaRegistryClient({"url": writer.url, "max.retries": 0})
        with pytest.raises(Exception, match="certificate"):
            plain.get_subjects()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"listeners": "ftp://x:1"}, "listeners takes http://HOST:PORT"),
        ({"listeners": "https://127.0.0.1:0"}, "set ssl.keystore.location"),
        ({"authentication.method": "MAGIC"}, "authentication.method is NONE, BASIC, BEARER"),
        ({"authentication.method": "BASIC"}, "set headrace.registry.users.file"),
        ({"headrace.registry.acls.file": "x"}, "nobody has to say who they are"),
        ({"schema.compatibility.level": "some"}, "is one of none, backward"),
        ({"kafkastore.topic.replication.factor": "0"}, "a number from 1 upwards"),
        ({"leader.eligibility": "maybe"}, "true or false"),
        ({"schema.compatability.level": "full"}, "Did you mean schema.compatibility.level?"),
    ],
)
def test_settings_that_cannot_be_meant(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingError) as refused:
        read({"kafkastore.bootstrap.servers": "127.0.0.1:1", **settings})
    assert sentence in str(refused.value)


def test_files_that_cannot_be_used_are_told_at_the_start(broker: BrokerThread, tmp_path: Path) -> None:
    users = tmp_path / "users"
    settings = {**OWN, "authentication.method": "BASIC", "headrace.registry.users.file": users}
    with pytest.raises(ServeError, match="cannot be read"):
        RegistryThread(broker.bootstrap, settings).start()
    users.write_text("no colon\n")
    with pytest.raises(ServeError, match="has the line 'no colon'"):
        RegistryThread(broker.bootstrap, settings).start()
