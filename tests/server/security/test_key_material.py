"""Keys and certificates as Kafka's users have them: PEM files, PEM text in a setting, PKCS12, encrypted keys; and what is refused."""

import ssl
import subprocess

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.server.security.server_tls import listener_tls
from tests.certificates import Certificates


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


def tls(**settings):
    given = {name.replace("_", "."): str(value) for name, value in settings.items()}
    config = BrokerConfig.load({"listeners": "SSL://localhost:0", **given})
    return listener_tls(config, config.listeners[0])


def handshake(server: ssl.SSLContext, certificates: Certificates) -> bytes:
    """The certificate that a client which trusts the authority sees."""
    client = ssl.create_default_context(cafile=certificates.ca)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    left = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    right = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for side in (left, right):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
    return left.getpeercert(binary_form=True)


def pkcs12_of(pem, password, path):
    data = pem.read_bytes()
    key = serialization.load_pem_private_key(data, None)
    certificate, *rest = x509.load_pem_x509_certificates(data)
    encryption = serialization.BestAvailableEncryption(password.encode())
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"broker", key, certificate, rest, encryption))
    return path


def encrypted(pem, password):
    key = serialization.load_pem_private_key(pem.read_bytes(), None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password.encode()),
    ).decode()


def chain_of(pem):
    text = pem.read_text()
    return text[text.index("-----BEGIN CERTIFICATE") :]


def test_a_pem_file(certificates):
    assert handshake(tls(ssl_keystore_location=certificates.broker).context, certificates)


@pytest.mark.parametrize("lines", ["\n", " "], ids=["in lines", "in one line"])
def test_pem_text_with_an_encrypted_key(certificates, lines):
    key = encrypted(certificates.broker, "hush")
    found = tls(
        ssl_keystore_type="PEM",
        ssl_keystore_key=key.replace("\n", lines),
        ssl_keystore_certificate_chain=chain_of(certificates.broker).replace("\n", lines),
        ssl_key_password="hush",
    )
    assert handshake(found.context, certificates)


@pytest.mark.parametrize("kind", ["PKCS12", "pkcs12", "JKS"])
def test_a_pkcs12_file_under_its_own_name_and_that_of_kafkas_default(certificates, tmp_path, kind):
    store = pkcs12_of(certificates.broker, "hush", tmp_path / "broker.p12")
    found = tls(ssl_keystore_location=store, ssl_keystore_password="hush", ssl_keystore_type=kind)
    assert handshake(found.context, certificates)


def test_a_pkcs12_trust_store_that_java_made(certificates, tmp_path):
    store = tmp_path / "trust.p12"
    command = [
        "keytool",
        "-importcert",
        "-noprompt",
        "-alias",
        "ca",
        "-file",
        certificates.ca,
        "-keystore",
        store,
    ]
    subprocess.run(
        [*command, "-storetype", "PKCS12", "-storepass", "hush-hush"], check=True, capture_output=True
    )
    found = tls(
        ssl_keystore_location=certificates.broker,
        ssl_truststore_location=store,
        ssl_truststore_password="hush-hush",
        ssl_client_auth="required",
    )
    assert len(found.context.get_ca_certs()) == 1


def refusal(**settings) -> str:
    with pytest.raises(ConfigError) as refused:
        tls(**settings)
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert "hush" not in sentence
    return sentence


def test_a_file_of_another_kind_than_its_type_says_is_refused(certificates):
    sentence = refusal(ssl_keystore_location=certificates.broker, ssl_keystore_type="PKCS12")
    assert f"ssl.keystore.type is PKCS12, but {certificates.broker} holds PEM" in sentence
    assert "it is PEM or PKCS12" in refusal(
        ssl_keystore_location=certificates.broker, ssl_keystore_type="BKS"
    )


def test_a_jks_file_is_refused_with_the_command_that_converts_it(tmp_path):
    store = tmp_path / "broker.jks"
    store.write_bytes(bytes.fromhex("feedfeed00000002"))
    sentence = refusal(ssl_keystore_location=store, ssl_keystore_type="PKCS12")
    target = tmp_path / "broker.p12"
    assert (
        f"`keytool -importkeystore -srckeystore {store} -destkeystore {target} -deststoretype PKCS12`"
        in sentence
    )


def test_no_key_store(certificates):
    assert "needs a certificate: set ssl.keystore.location" in refusal()


def test_client_auth_without_a_trust_store(certificates):
    for auth in ("required", "requested"):
        sentence = refusal(ssl_keystore_location=certificates.broker, ssl_client_auth=auth)
        assert f"ssl.client.auth={auth} and no truststore" in sentence
        assert "set ssl.truststore.location" in sentence


def test_a_key_that_does_not_match(certificates):
    other = encrypted(certificates.issue("other"), "hush")
    sentence = refusal(
        ssl_keystore_key=other,
        ssl_keystore_certificate_chain=chain_of(certificates.broker),
        ssl_key_password="hush",
    )
    assert "the private key does not match the certificate" in sentence


def test_passwords(certificates, tmp_path):
    key = {
        "ssl_keystore_key": encrypted(certificates.broker, "hush"),
        "ssl_keystore_certificate_chain": chain_of(certificates.broker),
    }
    assert "is encrypted; set ssl.key.password" in refusal(**key)
    assert "check ssl.key.password" in refusal(**key, ssl_key_password="hush!")
    store = pkcs12_of(certificates.broker, "hush", tmp_path / "b.p12")
    assert "check ssl.keystore.password" in refusal(
        ssl_keystore_location=store, ssl_keystore_password="hush!"
    )
    assert "set ssl.keystore.password" in refusal(ssl_keystore_location=store)


def test_files_that_are_not_there_or_hold_something_else(tmp_path):
    assert "the file cannot be read: No such file" in refusal(ssl_keystore_location=tmp_path / "none")
    empty = tmp_path / "empty"
    empty.write_text("hello")
    assert "holds neither PEM nor PKCS12" in refusal(ssl_keystore_location=empty)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"ssl_enabled_protocols": "TLSv1"}, "names TLSv1; TLSv1.2 and TLSv1.3 are offered"),
        (
            {"ssl_cipher_suites": "TLS_RSA_WITH_RC4_128_MD5"},
            "there is no cipher suite TLS_RSA_WITH_RC4_128_MD5",
        ),
        ({"ssl_protocol": "SSLv3"}, "ssl.protocol is SSLv3"),
        ({"ssl_protocol": "TLSv1.2", "ssl_enabled_protocols": "TLSv1.3"}, "leave no version"),
        ({"ssl_cipher_suites": "TLS_AES_128_GCM_SHA256"}, "cannot be had without TLS_AES_256_GCM_SHA384"),
        (
            {"ssl_cipher_suites": "TLS_AES_256_GCM_SHA384", "ssl_enabled_protocols": "TLSv1.2"},
            "has no suite for TLSv1.2",
        ),
    ],
)
def test_versions_and_suites_that_are_not_offered_are_named(certificates, settings, sentence):
    assert sentence in refusal(ssl_keystore_location=certificates.broker, **settings)


def test_suites_by_their_java_names(certificates):
    found = tls(
        ssl_keystore_location=certificates.broker,
        ssl_cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    )
    assert found.context.maximum_version is ssl.TLSVersion.TLSv1_2
    names = {suite["name"] for suite in found.context.get_ciphers() if suite["protocol"] != "TLSv1.3"}
    assert names == {"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"}


def test_sasl_ssl_asks_for_certificates_only_when_its_own_setting_says_so(certificates, monkeypatch):
    from headrace.server.config.listeners import Listener

    listener = Listener("SASL_SSL", "localhost", 0, "SASL_SSL")
    common = {
        "listeners": "SSL://localhost:0",
        "ssl.keystore.location": str(certificates.broker),
        "ssl.truststore.location": str(certificates.ca),
    }
    for setting, auth in (
        ("ssl.client.auth", "none"),
        ("listener.name.sasl_ssl.ssl.client.auth", "required"),
    ):
        assert listener_tls(BrokerConfig.load({**common, setting: "required"}), listener).client_auth == auth


def test_clients_of_ours_read_pkcs12_stores(certificates, tmp_path):
    from headrace.link.blocking import Connection
    from headrace.link.settings import KafkaSettings
    from headrace.testing.broker import BrokerThread
    from headrace.wire.messages.metadata import MetadataRequest

    trusted = tmp_path / "trust.p12"
    authority = x509.load_pem_x509_certificate(certificates.ca.read_bytes())
    encryption = serialization.BestAvailableEncryption(b"hush-hush")
    trusted.write_bytes(pkcs12.serialize_key_and_certificates(None, None, None, [authority], encryption))
    with BrokerThread(tmp_path / "data", certificates.listener(ssl_client_auth="required")) as broker:
        options = {
            "bootstrap.servers": f"localhost:{broker.port}",
            "security.protocol": "SSL",
            "ssl.truststore.location": str(trusted),
            "ssl.truststore.password": "hush-hush",
            "ssl.keystore.location": str(pkcs12_of(certificates.issue("me"), "hush", tmp_path / "me.p12")),
            "ssl.keystore.password": "hush",
            "ssl.cipher.suites": "TLS_AES_256_GCM_SHA384",
        }
        settings = KafkaSettings.of(options, "a test")
        assert "hush" not in repr(settings)
        with Connection("localhost", broker.port, settings) as connection:
            assert connection.call(MetadataRequest()).brokers


def test_without_the_library_for_pkcs12_the_sentence_says_how_to_get_it(certificates, tmp_path, monkeypatch):
    import sys

    store = pkcs12_of(certificates.broker, "hush", tmp_path / "b.p12")
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    sentence = refusal(ssl_keystore_location=store, ssl_keystore_password="hush")
    assert "reading PKCS12 needs a library: pip install 'headrace[security]'" in sentence
