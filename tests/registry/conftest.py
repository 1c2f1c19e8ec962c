"""One broker and one registry for all tests of this folder; each test has subjects of its own."""

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from headrace.testing.broker import BrokerThread
from headrace.testing.registry import RegistryThread


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    with BrokerThread(tmp_path_factory.mktemp("broker"), {"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


@pytest.fixture(scope="session")
def registry(broker: BrokerThread) -> Iterator[RegistryThread]:
    with RegistryThread(broker.bootstrap) as registry:
        yield registry


class Rest:
    """Plain requests: (status, document)."""

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        self._address = urlsplit(url).netloc
        self._headers = headers or {}

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self._address, timeout=20)
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection.request(method, path, data, {**self._headers, **headers})
        reply = connection.getresponse()
        text = reply.read()
        connection.close()
        return reply.status, json.loads(text) if text else None

    def register(self, subject: str, schema: Any, kind: str = "AVRO", **more: Any) -> int:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        status, found = self(
            "POST", f"/subjects/{subject}/versions", {"schema": text, "schemaType": kind, **more}
        )
        assert status == 200, found
        number = found["id"]
        assert isinstance(number, int)
        return number


@pytest.fixture(scope="session")
def rest(registry: RegistryThread) -> Rest:
    return Rest(registry.url)


def record(name: str, *fields: str, **more: Any) -> dict[str, Any]:
    """An Avro record of integers; a field with a question mark has a default."""
    listed = [
        {"name": field.rstrip("?"), "type": "int", **({"default": 0} if field.endswith("?") else {})}
        for field in fields
    ]
    return {"type": "record", "name": name, "fields": listed, **more}
