"""A webhook as a sink: records are posted in order, with growing delays while the receiver is away.

At least once: after a crash the last requests come again, with the same Idempotency-Key, by which a receiver knows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from headrace.connectors.base import Chunk, Sink
from headrace.connectors.errors import Rejected
from headrace.connectors.http.client import check_listens, header_problems, pool, request, url_problems
from headrace.connectors.settings import Seconds, setting
from headrace.connectors.topic import read_json


@dataclass(frozen=True)
class WebhookSettings:
    url: str = setting("Where to send records.", example="https://example.org/hooks/orders")
    method: Literal["POST", "PUT"] = setting("The HTTP method.", default="POST")
    headers: dict[str, str] = setting(
        "Further request headers.", default={}, example={"Authorization": "Bearer ${TOKEN}"}
    )
    content_type: str = setting("What a value is.", default="application/json")
    batch: int = setting("The most records in one request.", default=1, minimum=1)
    format: Literal["array", "ndjson"] = setting(
        "How several JSON values stand in a request.", default="array"
    )
    timeout: Seconds = setting("How long an answer may take.", default=30.0, minimum=0.1)

    def problems(self) -> Iterator[str]:
        yield from url_problems(self.url)
        yield from header_problems(self.headers)
        if not self.content_type.isascii() or not self.content_type.isprintable():
            yield f"content_type is {self.content_type!r}: write a media type, such as application/json"
        if self.batch > 1 and self.content_type != "application/json":
            yield f"batch is {self.batch}, but only JSON values go together: use batch = 1"


class WebhookSink(Sink):
    delivery = "at least once"
    summary = "A webhook: records posted in order, tried again while the receiver is away."
    Settings = WebhookSettings
    settings: WebhookSettings

    def __init__(self, name: str, settings: WebhookSettings) -> None:
        super().__init__(name, settings)
        self._sent: dict[tuple[str, int], int] = {}

    def check(self) -> None:
        check_listens(self.settings.url, self.settings.timeout)

    def identity(self) -> dict[str, object]:
        return {"url": self.settings.url.split("?")[0]}

    def open(self) -> None:
        self._pool = pool(self.settings.timeout)

    def close(self) -> None:
        self._pool.clear()

    def write(self, chunk: Chunk) -> None:
        # A chunk that is retried, because the receiver was away or refused a record, resumes where it stopped.
        place = chunk.origin, chunk.partition
        rows = [
            row
            for row in chunk.rows.select(["_offset", "_key", "_value"]).to_pylist()
            if row["_value"] is not None and row["_offset"] >= self._sent.get(place, 0)
        ]
        for start in range(0, len(rows), self.settings.batch):
            some = rows[start : start + self.settings.batch]
            self._send(chunk, some)
            self._sent[place] = some[-1]["_offset"] + 1

    def _send(self, chunk: Chunk, rows: list[dict[str, Any]]) -> None:
        offsets = f"{rows[0]['_offset']}" if len(rows) == 1 else f"{rows[0]['_offset']}-{rows[-1]['_offset']}"
        headers = {
            "Content-Type": self.settings.content_type,
            **self.settings.headers,
            "Idempotency-Key": f"{self.name}/{chunk.origin}/{chunk.partition}/{offsets}",
            "Headrace-Topic": chunk.topic,
            "Headrace-Partition": str(chunk.partition),
            "Headrace-Offset": offsets,
        }
        key = rows[0]["_key"]
        if len(rows) == 1 and key is not None and key.isascii() and key.decode().isprintable():
            headers["Headrace-Key"] = key.decode()
        body = rows[0]["_value"]
        if self.settings.batch > 1:
            self._check_json(rows)
            values = [row["_value"] for row in rows]
            body = b"[" + b",".join(values) + b"]"
            if self.settings.format == "ndjson":
                headers["Content-Type"] = "application/x-ndjson"
                body = b"".join(value.replace(b"\n", b" ") + b"\n" for value in values)
        answer = request(self._pool, self.settings.method, self.settings.url, headers, body)
        if answer.status >= 300:
            text = answer.data[:200].decode("utf-8", "replace").strip()
            reason = f"the webhook answered {answer.status}" + (f": {text}" if text else "")
            raise Rejected({row["_offset"]: reason for row in rows})

    def _check_json(self, rows: list[dict[str, Any]]) -> None:
        broken = {}
        for row in rows:
            try:
                read_json(row["_value"])
            except ValueError as error:
                broken[row["_offset"]] = f"its value is not JSON: {error}"
        if broken:
            raise Rejected(broken)
