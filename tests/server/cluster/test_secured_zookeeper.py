"""Brokers log in to ZooKeeper over TLS and keep others away from the cluster's nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import pkcs12
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from headrace.clock import SystemClock
from headrace.server.cluster.store import Create, Store, StoreError
from headrace.server.cluster.zookeeper import ZooKeeperStore
from headrace.server.cluster.zookeeper_access import ZooKeeperAccess
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from headrace.testing.zookeeper import ZooKeeperServer, free_port

JAAS = """Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required user_broker="secret";
};
"""


class Secured:
    """A ZooKeeper that also listens with TLS and knows one SASL user, and the files to reach it."""

    def __init__(self, directory: Path) -> None:
        authority = trustme.CA()
        self.trusted, self.strange = directory / "ca.pem", directory / "strange.pem"
        authority.cert_pem.write_to_path(self.trusted)
        trustme.CA().cert_pem.write_to_path(self.strange)
        self.certificate = directory / "broker.pem"
        authority.issue_cert("broker").private_key_and_cert_chain_pem.write_to_path(self.certificate)
        server = directory / "server.p12"
        server.write_bytes(_pkcs12(authority.issue_cert("localhost", "127.0.0.1")))
        jaas = directory / "jaas.conf"
        jaas.write_text(JAAS)
        self.tls_port = free_port()
        self.server = ZooKeeperServer(
            directory / "zookeeper",
            settings=(
                f"secureClientPort={self.tls_port}\nsecureClientPortAddress=127.0.0.1\n"
                "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
                "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"
                "authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider\n"
                f"ssl.keyStore.location={server}\nssl.keyStore.type=PKCS12\nssl.keyStore.password=secret\n"
                f"ssl.trustStore.location={self.trusted}\nssl.trustStore.type=PEM\nssl.clientAuth=want\n"
            ),
            options=(f"-Djava.security.auth.login.config={jaas}",),
        )

    def tls(self) -> dict[str, str]:
        return {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.truststore.location": str(self.trusted),
        }

    @property
    def tls_hosts(self) -> str:
        return f"localhost:{self.tls_port}"


def _pkcs12(leaf: trustme.LeafCert) -> bytes:
    """As Java likes it: trustme's PEM holds the key in a form that Java does not read."""
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    certificate = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
    return pkcs12.serialize_key_and_certificates(
        b"server", key, certificate, None, serialization.BestAvailableEncryption(b"secret")
    )


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("secured"))
    with made.server:
        yield made


def access(settings: dict[str, str]) -> ZooKeeperAccess:
    return ZooKeeperAccess.of(BrokerConfig.load({"log.dirs": "/data", **settings}))


async def opened(hosts: str, settings: dict[str, str], patience: float | None = 60.0) -> ZooKeeperStore:
    return await ZooKeeperStore.open(hosts, 6.0, patience, SystemClock(), access(settings))


def login(password: str = "secret", scheme: str = "DIGEST") -> dict[str, str]:
    return {
        "headrace.zookeeper.user": "broker",
        "headrace.zookeeper.password": password,
        "headrace.zookeeper.login.scheme": scheme,
        "zookeeper.set.acl": "true",
    }


async def test_a_broker_speaks_tls_with_zookeeper(secured: Secured) -> None:
    store = await opened(f"{secured.tls_hosts}/tls", secured.tls())
    await store.commit([Create("/brokers", b"one")])
    assert (await _read(store, "/brokers")) == b"one"
    await store.close()


async def test_an_ensemble_with_a_strange_certificate_is_not_trusted(secured: Secured) -> None:
    settings = secured.tls() | {"zookeeper.ssl.truststore.location": str(secured.strange)}
    with pytest.raises(StoreError, match="CERTIFICATE_VERIFY_FAILED"):
        await opened(f"{secured.tls_hosts}/strange", settings, patience=3.0)


@pytest.mark.parametrize("scheme", ["DIGEST", "DIGEST-MD5"])
async def test_nodes_belong_to_the_login_that_made_them(secured: Secured, scheme: str) -> None:
    hosts = f"{secured.server.connect_string}/{scheme.lower()}"
    store = await opened(hosts, login(scheme=scheme))
    await store.commit([Create("/facts", b"secret"), Create("/facts/one", b"1", ephemeral=True)])
    assert await store.children("/facts") == ["one"]
    stranger = KazooClient(secured.server.connect_string)
    stranger.start()
    with pytest.raises(NoAuthError):
        stranger.get(f"/{scheme.lower()}/facts")
    with pytest.raises(NoAuthError):
        stranger.create(f"/{scheme.lower()}/facts/two")
    stranger.stop()
    stranger.close()
    await store.close()


async def test_a_client_certificate_is_a_login_too(secured: Secured) -> None:
    settings = secured.tls() | {
        "zookeeper.ssl.keystore.location": str(secured.certificate),
        "zookeeper.set.acl": "true",
    }
    store = await opened(f"{secured.tls_hosts}/mutual", settings)
    await store.commit([Create("/facts", b"secret")])
    await store.close()
    again = await opened(f"{secured.tls_hosts}/mutual", settings)
    assert await _read(again, "/facts") == b"secret"
    await again.close()
    with pytest.raises(StoreError, match="belong to another login"):
        await opened(f"{secured.tls_hosts}/mutual", secured.tls())


async def test_another_login_gets_one_sentence(secured: Secured) -> None:
    hosts = f"{secured.server.connect_string}/other"
    store = await opened(hosts, login())
    await store.commit([Create("/facts", b"secret")])
    await store.close()
    with pytest.raises(StoreError, match="belong to another login"):
        await opened(hosts, login("wrong"))


async def test_a_wrong_password_is_named_as_the_cause(secured: Secured) -> None:
    with pytest.raises(StoreError, match="refused the login of broker"):
        await opened(f"{secured.server.connect_string}/wrong", login("wrong", "DIGEST-MD5"), patience=None)


async def test_a_cluster_older_than_its_login_is_closed_to_others(secured: Secured) -> None:
    hosts = f"{secured.server.connect_string}/older"
    store = await opened(hosts, {})
    await store.commit([Create("/facts", b""), Create("/facts/one", b"1")])
    await store.close()
    store = await opened(hosts, login())
    assert await _read(store, "/facts/one") == b"1"
    await store.close()
    stranger = await opened(secured.server.connect_string, {})
    with pytest.raises(StoreError, match="belong to another login"):
        await _read(stranger, "/older/facts/one")
    await stranger.close()


def test_nodes_without_an_owner_are_refused() -> None:
    with pytest.raises(ConfigError, match="needs a login to own the nodes"):
        access({"zookeeper.set.acl": "true"})


def test_the_password_is_not_shown() -> None:
    assert "secret" not in repr(access(login()))


async def _read(store: Store, path: str) -> bytes | None:
    found = await store.get(path)
    return None if found is None else found[0]
