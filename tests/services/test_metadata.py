"""Descriptions of services, published for whoever has no interface."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient

from headrace.services import Bootstrap, MetadataReportConfig
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
