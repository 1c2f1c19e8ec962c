from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from headrace.testing import zookeeper
from headrace.testing.zookeeper import ZooKeeperServer, ZooKeeperUnavailableError


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path) as running:
        yield running


def test_data_and_port_survive_a_restart(server: ZooKeeperServer) -> None:
    address = server.connect_string
    client = KazooClient(hosts=address)
    client.start(timeout=20)
    client.create("/kept", b"value")
    client.stop()
    client.close()

    server.stop()
    server.start()

    assert server.connect_string == address
    client = KazooClient(hosts=address)
    client.start(timeout=20)
    assert client.get("/kept")[0] == b"value"
    client.stop()
    client.close()


def test_a_missing_java_is_told_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ZooKeeperUnavailableError, match="needs Java"):
        ZooKeeperServer(tmp_path).start()


def test_a_missing_maven_is_told_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(zookeeper.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ZooKeeperUnavailableError, match="install Maven"):
        zookeeper.find_jars()


def test_a_failed_fetch_names_mavens_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    (tmp_path / "mvn").write_text("#!/bin/sh\necho '[ERROR] no route to the repository'\nexit 1\n")
    (tmp_path / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(zookeeper.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ZooKeeperUnavailableError, match="no route to the repository"):
        zookeeper.find_jars()
