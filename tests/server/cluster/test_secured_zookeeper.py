"""Brokers log in to ZooKeeper over TLS and keep others away from the cluster's nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from headrace.clock import SystemClock
from headrace.server.cluster.store import Create, Store, StoreError
from headrace.server.cluster.zookeeper import ZooKeeperStore
from headrace.server.cluster.zookeeper_access import ZooKeeperAccess
from headrace.server.config.broker import BrokerConfig
from headrace.server.config.definition import ConfigError
from tests.secured_zookeeper import SecuredZooKeeper, login


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZooKeeper]:
    made = SecuredZooKeeper(tmp_path_factory.mktemp("secured"))
    with made.server:
        yield made


def access(settings: dict[str, str]) -> ZooKeeperAccess:
    return ZooKeeperAccess.of(BrokerConfig.load({"log.dirs": "/data", **settings}))


async def opened(hosts: str, settings: dict[str, str], patience: float | None = 60.0) -> ZooKeeperStore:
    return await ZooKeeperStore.open(hosts, 6.0, patience, SystemClock(), access(settings))


async def test_a_broker_speaks_tls_with_zookeeper(secured: SecuredZooKeeper) -> None:
    store = await opened(f"{secured.tls_hosts}/tls", secured.tls())
    await store.commit([Create("/brokers", b"one")])
    assert (await _read(store, "/brokers")) == b"one"
    await store.close()


async def test_an_ensemble_with_a_strange_certificate_is_not_trusted(secured: SecuredZooKeeper) -> None:
    settings = secured.tls() | {"zookeeper.ssl.truststore.location": str(secured.strange)}
    with pytest.raises(StoreError, match="CERTIFICATE_VERIFY_FAILED"):
        await opened(f"{secured.tls_hosts}/strange", settings, patience=3.0)


@pytest.mark.parametrize("scheme", ["DIGEST", "DIGEST-MD5"])
async def test_nodes_belong_to_the_login_that_made_them(secured: SecuredZooKeeper, scheme: str) -> None:
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


async def test_a_client_certificate_is_a_login_too(secured: SecuredZooKeeper) -> None:
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


async def test_another_login_gets_one_sentence(secured: SecuredZooKeeper) -> None:
    hosts = f"{secured.server.connect_string}/other"
    store = await opened(hosts, login())
    await store.commit([Create("/facts", b"secret")])
    await store.close()
    with pytest.raises(StoreError, match="belong to another login"):
        await opened(hosts, login("wrong"))


async def test_a_wrong_password_is_named_as_the_cause(secured: SecuredZooKeeper) -> None:
    with pytest.raises(StoreError, match="refused the login of broker"):
        await opened(f"{secured.server.connect_string}/wrong", login("wrong", "DIGEST-MD5"), patience=None)


async def test_a_cluster_older_than_its_login_is_closed_to_others(secured: SecuredZooKeeper) -> None:
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
