"""Settings written for the Java client work with librdkafka, or say why not."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from headrace.client.config import merged
from headrace.link.errors import SettingsError
from headrace.link.java_values import check_assignors
from headrace.link.translation import Removed, translate


def settings(**properties: str) -> dict[str, str]:
    return translate({name.replace("__", "."): value for name, value in properties.items()}).settings


def test_a_login_in_jaas_form_becomes_user_and_password() -> None:
    jaas = (
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="a\\"b c";'
    )
    assert settings(sasl__jaas__config=jaas) == {"sasl.username": "ann", "sasl.password": 'a"b c'}


def test_a_login_module_of_somebodys_own_is_refused_with_the_ways_there_are() -> None:
    with pytest.raises(SettingsError, match=r"OwnModule, which is Java code; use PLAIN, SCRAM or GSSAPI"):
        settings(sasl__jaas__config="com.example.OwnModule required;")


def test_a_pem_trust_store_becomes_the_ca_file() -> None:
    given = settings(
        ssl__truststore__location="/ca.pem", ssl__truststore__type="PEM", ssl__truststore__password="x"
    )
    assert given == {"ssl.ca.location": "/ca.pem"}


@pytest.mark.parametrize("given", [{}, {"ssl__keystore__type": "jks"}], ids=["by its content", "by its type"])
def test_a_java_key_store_is_refused_with_the_command_that_converts_it(
    tmp_path: Path, given: dict[str, str]
) -> None:
    store = tmp_path / "k.jks"
    store.write_bytes(bytes.fromhex("feedfeed00000002"))
    with pytest.raises(
        SettingsError, match=f"{store} is JKS, .*keytool -importkeystore -srckeystore {store}"
    ):
        settings(ssl__keystore__location=str(store), **given)


@pytest.mark.parametrize(
    "given",
    [{}, {"ssl.keystore.type": "PKCS12"}],
    ids=["as librdkafka has it", "as Java has it"],
)
def test_a_pkcs12_key_store_remains_one_for_every_client_a_command_makes(given: dict[str, str]) -> None:
    store = {
        "bootstrap.servers": "h:1",
        "ssl.keystore.location": "/client.p12",
        "ssl.keystore.password": "secret",
    }
    translated = translate({**store, **given}).settings
    assert translated == store
    assert merged(translated, {}) == store


def test_a_pem_key_store_gives_certificate_and_key() -> None:
    given = settings(ssl__keystore__location="/k.pem", ssl__keystore__type="PEM", ssl__key__password="x")
    assert given == {
        "ssl.certificate.location": "/k.pem",
        "ssl.key.location": "/k.pem",
        "ssl.key.password": "x",
    }


def test_assignor_classes_become_names() -> None:
    classes = "org.apache.kafka.clients.consumer.RangeAssignor, org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    assert settings(partition__assignment__strategy=classes) == {
        "partition.assignment.strategy": "range,cooperative-sticky"
    }


@pytest.mark.parametrize(
    ("removed", "value", "kept"),
    [
        ("request.required.acks", "-1", {"acks": "-1"}),
        ("metadata.broker.list", "h:1", {"bootstrap.servers": "h:1"}),
        ("auto.commit.enable", "false", {"enable.auto.commit": "false"}),
        ("auto.offset.reset", "smallest", {"auto.offset.reset": "earliest"}),
    ],
)
def test_a_removed_setting_is_used_under_its_successors_name_and_said_to_be(
    removed: str, value: str, kept: dict[str, str]
) -> None:
    translation = translate({removed: value})
    assert translation.settings == kept
    successor = next(iter(kept))
    assert len(translation.notes) == 1
    assert removed in translation.notes[0]
    assert successor in translation.notes[0]


def test_a_removed_setting_does_not_override_its_successor() -> None:
    assert translate({"request.required.acks": "0", "acks": "all"}).settings == {"acks": "all"}


def test_a_setting_of_zookeeper_times_is_ignored_with_the_way_on() -> None:
    translation = translate({"zookeeper.connect": "localhost:2181"})
    assert translation.settings == {}
    assert "bootstrap.servers" in translation.notes[0]


def test_everything_a_java_properties_file_usually_holds_is_accepted_by_librdkafka() -> None:
    translation = translate(
        {
            "bootstrap.servers": "127.0.0.1:9",
            "key.serializer": "org.apache.kafka.common.serialization.StringSerializer",
            "acks": "all",
            "buffer.memory": "33554432",
            "max.block.ms": "60000",
            "max.request.size": "2000000",
            "send.buffer.bytes": "-1",
            "receive.buffer.bytes": "65536",
            "fetch.max.wait.ms": "200",
            "linger.ms": "5",
            "batch.size": "16384",
            "compression.type": "lz4",
            "enable.idempotence": "true",
            "max.in.flight.requests.per.connection": "5",
            "delivery.timeout.ms": "120000",
            "request.timeout.ms": "30000",
            "metadata.max.age.ms": "300000",
            "reconnect.backoff.ms": "50",
            "reconnect.backoff.max.ms": "1000",
            "ssl.endpoint.identification.algorithm": "",
            "sasl.mechanism": "SCRAM-SHA-512",
            "client.dns.lookup": "use_all_dns_ips",
            "interceptor.classes": "com.example.Interceptor",
            "partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner",
        }
    )
    assert translation.notes == []
    AdminClient(dict(translation.settings))


def test_a_caller_may_refuse_what_was_removed_and_keep_what_it_reads_itself() -> None:
    with pytest.raises(SettingsError, match=r"request\.required.acks was removed from Kafka: use acks"):
        translate({"request.required.acks": "1"}, removed=Removed.REFUSED)
    with pytest.raises(
        SettingsError, match=r"kafka\.zk\.connect was removed from Kafka: use bootstrap\.servers"
    ):
        translate({"zk.connect": "z:2181"}, removed=Removed.REFUSED, prefix="kafka.")
    given = {"max.block.ms": 5, "linger.ms": 1}
    assert translate(given, own={"max.block.ms"}).settings == given
    ignored = translate(given)
    assert ignored.settings == {"linger.ms": 1}
    assert ignored.ignored == ["max.block.ms has no effect here: librdkafka has nothing to set here."]


def test_of_two_names_for_one_setting_the_later_wins() -> None:
    first = {"fetch.max.wait.ms": 1, "fetch.wait.max.ms": 2}
    assert translate(first).settings == {"fetch.wait.max.ms": 2}
    assert translate(dict(reversed(first.items()))).settings == {"fetch.wait.max.ms": 1}
    assert merged(
        {"bootstrap.servers": "h:1", "buffer.memory": 1, "queue.buffering.max.kbytes": 2},
        {"buffer_memory": 4096},
    ) == {"bootstrap.servers": "h:1", "queue.buffering.max.kbytes": "4"}


@pytest.mark.parametrize("chosen", ["gzip", "lz4", "zstd"])
def test_the_level_of_the_codec_in_use_becomes_the_level(chosen: str) -> None:
    levels = {f"compression.{codec}.level": str(len(codec)) for codec in ("gzip", "lz4", "zstd")}
    assert translate({**levels, "compression.type": chosen}).settings == {
        "compression.type": chosen,
        "compression.level": str(len(chosen)),
    }
    assert translate({**levels, "compression.type": "snappy"}).settings == {"compression.type": "snappy"}


@pytest.mark.parametrize("store", ["trust", "key"])
@pytest.mark.parametrize("name", ["store.pem", "store", "store.jks"])
def test_a_store_without_a_type_is_what_its_file_holds(tmp_path: Path, store: str, name: str) -> None:
    file = tmp_path / name
    file.write_text("Bag Attributes\n-----BEGIN CERTIFICATE-----\n")
    translated = translate({f"ssl.{store}store.location": str(file)}).settings
    names = ["ssl.ca.location"] if store == "trust" else ["ssl.certificate.location", "ssl.key.location"]
    assert translated == dict.fromkeys(names, str(file))


def test_a_client_id_and_secret_in_jaas_form_are_a_login_by_oidc() -> None:
    jaas = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId='me' clientSecret='x' scope='s';"
    assert settings(sasl__jaas__config=jaas) == {
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "x",
        "sasl.oauthbearer.scope": "s",
        "sasl.oauthbearer.method": "oidc",
    }


def test_a_member_offers_eager_assignors_or_the_cooperative_one() -> None:
    classes = (
        "org.apache.kafka.clients.consumer.StickyAssignor,org.apache.kafka.clients.consumer.RangeAssignor"
    )
    strategy = settings(partition__assignment__strategy=classes)["partition.assignment.strategy"]
    with pytest.raises(
        SettingsError, match=r"does not mix cooperative-sticky .* name cooperative-sticky alone"
    ):
        check_assignors(strategy)
    for alone in ("cooperative-sticky", "range,roundrobin", ""):
        check_assignors(alone)
