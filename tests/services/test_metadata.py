"""Descriptions of services, published for whoever has no interface."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from headrace.services import Bootstrap, MetadataReportConfig, points
from headrace.services.metadata import MetadataIdentifier, MetadataReport
from headrace.testing.zookeeper import ZooKeeperServer


def test_metadata_is_published(
    who: Any, application: Callable[..., Bootstrap], zookeeper: ZooKeeperServer, client: KazooClient
) -> None:
    group = f"meta{os.getpid()}"
    report = MetadataReportConfig(address=f"zookeeper://{zookeeper.connect_string}", group=group)
    app = application("shop", metadata_report=report)
    config = app.service(who.named("a"), interface=who.interface, version="1", group="g")
    app.start()
    path = f"/{group}/metadata/com.acme.Who/1/g/provider/shop"
    described = json.loads(client.get(path)[0])
    assert described["canonicalName"] == "com.acme.Who"
    assert described["methods"] == [{"name": "who", "parameterTypes": [], "returnType": "java.lang.String"}]
    assert described["parameters"]["application"] == "shop"
    assert "pid" not in described["parameters"]
    consumer = application("buyer", metadata_report=report)
    consumer.reference(who.interface, url=f"dubbo://{config.urls[0].address}", version="1", group="g")
    stored = json.loads(client.get(f"/{group}/metadata/com.acme.Who/1/g/consumer/buyer")[0])
    assert stored["side"] == "consumer"


def test_what_could_not_be_published_is_published_later(
    who: Any, application: Callable[..., Bootstrap], eventually: Callable[..., None]
) -> None:
    attempts: list[str] = []
    stored: dict[str, str] = {}

    class Reluctant(MetadataReport):
        async def start(self) -> None: ...

        async def store(self, identifier: MetadataIdentifier, text: str) -> None:
            attempts.append(identifier.path)
            if len(attempts) < 3:
                raise OSError("not now")
            stored[identifier.path] = text

        async def load(self, identifier: MetadataIdentifier) -> str | None:
            return stored.get(identifier.path)

    points.METADATA_REPORTS.register("reluctant", Reluctant)
    report = MetadataReportConfig(address="reluctant://here:1", retry_period=10)
    app = application("shop", metadata_report=report)
    app.service(who.named("a"), interface=who.interface)
    app.start()  # waits for no report
    eventually(lambda: stored)
    assert json.loads(stored["metadata/com.acme.Who/provider/shop"])["canonicalName"] == "com.acme.Who"
    assert len(attempts) == 3


def test_a_report_that_is_away_stops_no_export(
    who: Any, application: Callable[..., Bootstrap], tmp_path: Path, eventually: Callable[..., None]
) -> None:
    with ZooKeeperServer(tmp_path / "zk") as server:
        server.kill()
        report = MetadataReportConfig(
            address=f"zookeeper://{server.connect_string}", timeout=500, retry_period=100, retry_times=3000
        )
        app = application("shop", metadata_report=report)
        config = app.service(who.named("a"), interface=who.interface)
        app.start()
        assert application("c").reference(who.interface, url=config.urls[0].identity).who() == "a"
        server.start()
        kazoo = KazooClient(server.connect_string)
        kazoo.start()
        try:
            eventually(lambda: kazoo.exists("/dubbo/metadata/com.acme.Who/provider/shop"), seconds=120)
        finally:
            kazoo.stop()
            kazoo.close()
